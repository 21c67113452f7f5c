//! The simulated network: links, switches, hosts, transports, replication, traffic, measurement.
//!
//! Knows nothing of files, Python or papers: it takes a resolved [`scenario::Scenario`] and yields
//! tables.

pub mod amount;
pub mod balance;
pub mod capture;
pub mod component;
pub mod fabric;
pub mod faults;
pub mod files;
pub mod horizon;
pub mod host;
pub mod interface;
pub mod measure;
pub mod network;
pub mod packet;
pub mod port;
pub mod queue;
mod registry;
pub mod replicate;
pub mod scenario;
mod scheme;
pub mod switch;
pub mod topology;
pub mod trace;
pub mod traffic;
pub mod transport;
pub mod watch;
pub mod workload;

pub use network::{
    FlowSpan, OnThreads, PathReach, PredictedFlow, SimError, ThreadTimes, one_thread_reason,
    path_reach, predict_flows, schedule, simulate, simulate_in_turns, simulate_observed,
    simulate_on, simulate_watched, threads_that_pay,
};
