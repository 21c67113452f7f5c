//! TCP (RFC 9293) for one-directional flows of known size.

mod check;
pub(super) use check::check_window;
pub mod congestion;
mod deviations;
mod hosts;
pub(crate) mod options;
mod prr;
pub mod receiver;
pub mod rtt;
pub(crate) mod scoreboard;
pub mod sender;
mod spec;

pub use congestion::{Congestion, CongestionSpec, Coupled, Window};
pub use deviations::{DEPARTURES, Deviation, Imitation, OLDER_DEPARTURES};
pub use hosts::HostDefaults;
pub use options::WireSizes;
pub use receiver::{AckTiming, Receiver};
pub use sender::reordering::{self, ReorderingSpec};
pub use sender::{CongestionState, Sender, SenderCounters};
pub use spec::{Close, Paws, Recovery, ReductionBase, RtoVariation, TcpSpec, WindowGrowth};
