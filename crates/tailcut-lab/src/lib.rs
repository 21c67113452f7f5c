//! The kernel lab: a run of a plan over real TCP stacks and sockets, on one Linux machine, without root.
//!
//! Each host is a process in a network namespace of its own; what lies between them is the fabric of `tailcut-net`, the
//! simulator's own switches, ports, queues, balancers and failures, run against the wall clock. A frame of a host comes in by
//! `AF_PACKET`, crosses the fabric as the packet that stands for it, and goes out when its last hop says so.

pub mod addressing;
pub mod answers;
pub mod bpf_programs;
pub mod check;
mod congestion;
#[cfg(target_os = "linux")]
pub mod cpu_usage;
pub mod dependencies;
pub mod fabric;
pub mod fabric_kinds;
mod frame_rate;
pub mod host_settings;
#[cfg(target_os = "linux")]
pub mod hosts;
pub mod idle_check;
#[cfg(target_os = "linux")]
pub mod measured;
#[cfg(target_os = "linux")]
pub mod messages;
pub mod payload;
#[cfg(target_os = "linux")]
pub mod prepared;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod replication;
#[cfg(target_os = "linux")]
pub mod request;
#[cfg(target_os = "linux")]
pub mod supervisor;
#[cfg(target_os = "linux")]
pub mod sys;
#[cfg(target_os = "linux")]
pub mod tools;
pub mod traffic;
mod transports;
pub mod verdict;
#[cfg(target_os = "linux")]
pub mod worker;
