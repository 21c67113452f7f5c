//! Hosts: a process in a network namespace of its own for each.

pub mod driver;
pub mod payload;
pub mod receiving;
pub mod sending;
pub mod setup;
