//! Hosts: a process in a network namespace of its own for each.

pub mod agenda;
pub mod alone;
pub mod driver;
pub mod drops;
pub mod guests;
pub mod receiving;
pub mod repnet;
pub mod sending;
pub mod setup;
pub mod turns;
pub mod waiting;
pub mod windows;
