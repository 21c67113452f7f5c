//! The kernel lab: runs of a plan over real TCP stacks and sockets, on one Linux machine, without
//! root.
//!
//! Each host is a process in its own network namespace. The fabric between hosts is that of
//! `tailcut-net` in real time: the simulator's switches, ports, queues, balancers and failures. A
//! host's frame enters through `AF_PACKET`, crosses the fabric as a packet, and leaves when its
//! last hop is due.

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
