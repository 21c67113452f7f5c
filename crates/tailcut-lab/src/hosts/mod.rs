//! Hosts: one process per host, in its own network namespace.

pub mod agenda;
pub mod dependent_flows;
pub mod drops;
pub mod guests;
pub mod host_flow;
pub mod idle_flows;
pub mod process;
pub mod receiver;
pub mod release_pipes;
pub mod repnet;
pub mod sender;
pub mod setup;
pub mod socket_driver;
pub mod window_sampler;
