//! Congestion control: how the window grows, and what loss, ECN and timeouts make of it.
//!
//! The sender owns the [`Window`] and the mechanics of recovery; an algorithm is
//! asked only for numbers. [`Congestion::grow`] changes the window on an ACK of
//! new data outside recovery; [`Congestion::on_loss`], [`Congestion::on_timeout`]
//! and [`Congestion::on_echo`] return the slow-start threshold after a fast
//! retransmit, a timeout and an ECN echo (the sender sets the window: PRR or
//! inflation in recovery, one segment after a timeout, the threshold itself after
//! an echo, which it hands on once per window of data); [`Congestion::observe`]
//! sees every ACK of an ECN-capable connection. An increase that is computed
//! outside, from several senders, is [`Coupled`]: give the sender
//! `Congestion::Coupled` by [`Sender::set_congestion`](super::Sender::set_congestion) and
//! renew [`Coupled::increase`] (bytes of window per byte acknowledged) whenever the sum over the subflows
//! changes, by [`Sender::couple`](super::Sender::couple). A new algorithm is one file here, one variant of
//! [`Congestion`] and one of [`CongestionSpec`]. The enum is closed and matched,
//! so that NewReno's additions stay in line; algorithms with state are boxed, so
//! that they do not widen plain connections.

mod coupled;
pub mod cubic;
pub mod dctcp;
mod hystart;
mod newreno;
pub mod pacing;
pub mod rate;
pub mod swift;

pub use coupled::Coupled;
use cubic::{Cubic, CubicSpec};
use dctcp::{Dctcp, DctcpSpec};
pub use pacing::Pacing;
pub use rate::RateSample;
use swift::{Swift, SwiftSpec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::amount::Limit;
use crate::component::SpecError;
use crate::transport::tcp::{CongestionState, Hosts, Recovery, TcpSpec};

/// The congestion control of every connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CongestionSpec {
    /// One segment more per round trip, half the flight after a loss (RFC 5681).
    Newreno {},
    /// The window as a cubic function of time (RFC 9438): what Linux runs.
    Cubic(CubicSpec),
    /// Reduction in proportion to the share of marked bytes (RFC 8257); wants a marking queue.
    Dctcp(DctcpSpec),
    /// A target for the round trip, and windows below one segment (Kumar et al. 2020); wants selective acknowledgements.
    Swift(SwiftSpec),
}

impl Default for CongestionSpec {
    fn default() -> Self {
        CongestionSpec::of(Hosts::Plain)
    }
}

impl CongestionSpec {
    /// What hosts do that are told nothing.
    pub fn of(hosts: Hosts) -> CongestionSpec {
        match hosts {
            Hosts::Plain => CongestionSpec::Newreno {},
            Hosts::Linux => CongestionSpec::Cubic(CubicSpec::default()),
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// When the algorithm is not defined for them.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            CongestionSpec::Newreno {} => Ok(()),
            CongestionSpec::Cubic(spec) => spec.check(),
            CongestionSpec::Dctcp(spec) => spec.check(),
            CongestionSpec::Swift(spec) => spec.check(),
        }
    }

    /// Checks it against how losses are recovered.
    ///
    /// # Errors
    /// When the algorithm goes by what that does not tell.
    pub fn check_recovery(&self, recovery: Recovery) -> Result<(), SpecError> {
        match self {
            CongestionSpec::Newreno {} | CongestionSpec::Cubic(_) | CongestionSpec::Dctcp(_) => {
                Ok(())
            }
            CongestionSpec::Swift(spec) => spec.check_recovery(recovery),
        }
    }

    /// Whether the receiver echoes the mark of each segment, or any mark until the sender has reduced its window.
    #[inline]
    pub fn echoes_marks(&self) -> bool {
        matches!(self, CongestionSpec::Dctcp(_))
    }

    /// Whether the window grows as in slow start only up to the slow-start threshold: what the ideal completion time goes
    /// by.
    pub fn heeds_threshold(&self) -> bool {
        matches!(self, CongestionSpec::Newreno {} | CongestionSpec::Dctcp(_))
    }

    /// Whether an ACK opens the window by no more than a segment, however many it covers.
    pub fn grows_by_acks(&self) -> bool {
        !matches!(self, CongestionSpec::Swift(_))
    }

    /// The state of a new connection.
    pub(super) fn start(&self) -> Congestion {
        match self {
            CongestionSpec::Newreno {} => Congestion::Newreno,
            CongestionSpec::Cubic(spec) => Congestion::Cubic(Box::new(Cubic::new(spec))),
            CongestionSpec::Dctcp(spec) => Congestion::Dctcp(Box::new(Dctcp::new(spec))),
            CongestionSpec::Swift(spec) => Congestion::Swift(Box::new(Swift::new(spec))),
        }
    }
}

/// What bounds the data in flight, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// Slow start below, congestion avoidance from here on.
    pub ssthresh: u64,
}

impl Window {
    /// That of a new connection.
    pub fn initial(spec: &TcpSpec) -> Window {
        Window {
            cwnd: spec.initial_window.in_bytes(spec.mss.0),
            ssthresh: match spec.initial_ssthresh {
                Limit::Unlimited => u64::MAX,
                Limit::AtMost(amount) => amount.in_bytes(spec.mss.0),
            },
        }
    }
}

/// An acknowledgement of new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly acknowledged by the cumulative acknowledgement.
    pub bytes: u64,
    /// Bytes that were in flight before it arrived.
    pub flight: u64,
    /// The round trip it measured, if any.
    pub rtt: Option<Time>,
    /// The smoothed round-trip time after it.
    pub smoothed: Time,
    /// The first segment not yet acknowledged.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub end: u32,
}

/// What any ACK tells, in recovery too, of a connection whose congestion control asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly known to have arrived, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes of them that came with an ECN echo.
    pub marked: u64,
    /// The round trip of the segment sent last among them, unless all were sent again.
    pub rtt: Option<Time>,
    /// The shortest round trip so far; [`Time::NEVER`] before the first.
    pub min_rtt: Time,
    /// The smoothed round-trip time.
    pub smoothed: Time,
    /// From the sending of what is acknowledged to that of the ACK, by the timestamp option's clock, which ticks once
    /// per millisecond; hosts' clocks agree.
    pub one_way: Option<Time>,
    /// The rate of delivery, where the ACK says one.
    pub rate: Option<RateSample>,
    /// Bytes in the network before it.
    pub flight: u64,
    /// Bytes in the network after it.
    pub pipe: u64,
    /// The first segment not yet acknowledged.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub end: u32,
    /// How the sender regards the network after it.
    pub state: CongestionState,
}

/// The state of a connection's congestion control.
#[derive(Debug, Clone)]
pub enum Congestion {
    /// RFC 5681.
    Newreno,
    /// RFC 9438.
    Cubic(Box<Cubic>),
    /// RFC 8257.
    Dctcp(Box<Dctcp>),
    /// As NewReno, but its increase is bounded from outside (RFC 6356).
    Coupled(Coupled),
    /// Kumar et al. 2020.
    Swift(Box<Swift>),
}

impl Congestion {
    /// New data is acknowledged outside recovery.
    #[inline]
    pub fn grow(&mut self, window: &mut Window, mss: u64, acked: &Acked) {
        match self {
            Congestion::Newreno | Congestion::Dctcp(_) => newreno::grow(window, mss),
            Congestion::Cubic(state) => state.grow(window, mss, acked),
            Congestion::Coupled(state) => state.grow(window, mss, acked),
            Congestion::Swift(_) => {}
        }
    }

    /// A fast retransmit: the new threshold. `flight` is what was in the network.
    pub fn on_loss(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        match self {
            Congestion::Cubic(state) => state.reduce(window, flight, mss),
            Congestion::Swift(state) => {
                state.on_loss();
                window.cwnd
            }
            Congestion::Newreno | Congestion::Dctcp(_) | Congestion::Coupled(_) => {
                newreno::halved(flight, mss)
            }
        }
    }

    /// The retransmission timer expired for a segment for the first time: the new threshold.
    pub fn on_timeout(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        match self {
            Congestion::Cubic(state) => state.time_out(window, flight, mss),
            Congestion::Swift(_) => window.cwnd,
            Congestion::Newreno | Congestion::Dctcp(_) | Congestion::Coupled(_) => {
                newreno::halved(flight, mss)
            }
        }
    }

    /// The receiver echoes congestion, for the first time in a window of data: the new threshold and window.
    pub fn on_echo(&mut self, window: &Window, mss: u64) -> u64 {
        match self {
            Congestion::Cubic(state) => state.reduce(window, window.cwnd, mss),
            Congestion::Dctcp(state) => state.reduced(window, mss),
            Congestion::Swift(_) => window.cwnd,
            Congestion::Newreno | Congestion::Coupled(_) => newreno::halved(window.cwnd, mss),
        }
    }

    /// An ACK of an ECN-capable connection acknowledges `bytes` up to segment `ack`, with or without
    /// ECN echo, while `end` is the next segment to be sent for the first time.
    pub fn observe(&mut self, bytes: u64, echo: bool, ack: u32, end: u32) {
        if let Congestion::Dctcp(state) = self {
            state.observe(bytes, echo, ack, end);
        }
    }

    /// Whether the algorithm looks at samples of all ACKs.
    pub fn wants_samples(&self) -> bool {
        matches!(self, Congestion::Swift(_))
    }

    /// What any ACK tells, after the sender's recovery has made its own of it: an algorithm that keeps a window of its own
    /// puts it in place. The pacing from now on, if it changes.
    pub fn on_sample(&mut self, window: &mut Window, mss: u64, sample: &Sample) -> Option<Pacing> {
        match self {
            Congestion::Swift(state) => Some(state.on_sample(window, mss, sample)),
            _ => None,
        }
    }

    /// The same after a timeout, of which the sender has made its own.
    pub fn after_timeout(&mut self, window: &mut Window, mss: u64, now: Time) -> Option<Pacing> {
        match self {
            Congestion::Swift(state) => Some(state.on_timeout(window, mss, now)),
            _ => None,
        }
    }

    /// The path has so many switches.
    pub fn set_switches(&mut self, switches: u32) {
        if let Congestion::Swift(state) = self {
            state.set_switches(switches);
        }
    }

    /// An ACK with an ECN echo opens no window (RFC 3168 section 6.1.2). DCTCP's additive increase goes on: there an
    /// echo tells of a share, and may be on every ACK (Alizadeh et al. 2010, section 3.1).
    pub fn pauses_on_echo(&self) -> bool {
        !matches!(self, Congestion::Dctcp(_))
    }

    /// Loss and ECN echo are answered alike, and so by one reduction per window of data
    /// (RFC 3168 section 6.1.2). DCTCP's answer to an echo is smaller than to a loss (RFC 8257 section 3.5).
    pub fn echo_counts_as_loss(&self) -> bool {
        !matches!(self, Congestion::Dctcp(_))
    }
}
