//! The kernel lab: a run of a plan over real TCP stacks and sockets, on one Linux machine, without root.
//!
//! Each host is a process in a network namespace of its own; what lies between them is the fabric of `tailcut-net`, the
//! simulator's own switches, ports, queues, balancers and failures, run against the wall clock. A frame of a host comes in by
//! `AF_PACKET`, crosses the fabric as the packet that stands for it, and goes out when its last hop says so.

mod congestion;
mod expected;
pub mod fabric;
pub mod fabrics;
#[cfg(target_os = "linux")]
pub mod hosts;
pub mod lone;
#[cfg(target_os = "linux")]
pub mod measured;
pub mod payload;
#[cfg(target_os = "linux")]
pub mod prepared;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
pub mod processors;
pub mod programs;
pub mod replication;
pub mod settings;
#[cfg(target_os = "linux")]
pub mod supervisor;
#[cfg(target_os = "linux")]
pub mod sys;
#[cfg(target_os = "linux")]
pub mod tools;
pub mod traffic;
mod transports;
pub mod verdict;
pub mod waits;
#[cfg(target_os = "linux")]
pub mod workers;
