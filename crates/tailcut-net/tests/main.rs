//! Everything that tests this crate from outside, in one program: each program more links the whole simulator once more.

mod capture_analysis;
mod capture_tshark;
mod common;
mod exact;
mod fabric;
mod ns3;
mod run;
mod tcp;
