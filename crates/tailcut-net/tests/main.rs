//! All integration tests of this crate in one program: each further program would link the whole
//! simulator again.

mod capture_analysis;
mod capture_tshark;
mod common;
mod exact;
mod fabric;
mod ns3;
mod run;
mod tcp;
