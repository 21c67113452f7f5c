//! Whole runs: lone flows by the closed form, conservation of packets, repeatability, replication.

mod attribution;
mod bbr;
mod conservation;
mod coupling;
mod dctcp;
mod drr;
mod entropy;
mod faults;
mod hystart;
mod ideal;
mod instants;
mod jobs;
mod ledger;
mod lone;
mod measure;
mod multipath;
mod ndp;
mod pfabric;
mod pfc;
mod reordering;
mod repeatable;
mod replication;
mod stories;
mod support;
mod swift;
mod switching;
