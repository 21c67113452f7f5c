//! Congestion control: growth of the window, and its reaction to loss, ECN and timeouts.
//!
//! The sender owns the [`Window`] and the mechanics of recovery; an algorithm only answers with
//! numbers ([`CongestionControl`]). Methods that an algorithm leaves out are NewReno's. The sender
//! sets the window: PRR or inflation in recovery, one segment after a timeout, the threshold after
//! an echo, which it reports once per window of data. An increase that several senders share is
//! [`Coupled`]: give the sender `Congestion::Coupled` by
//! [`Sender::set_congestion`](super::Sender::set_congestion) and renew [`Coupled::increase`] (bytes
//! of window per byte acknowledged) by [`Sender::couple`](super::Sender::couple) whenever the sum
//! over the subflows changes.
//!
//! A new algorithm is one file here (a folder where it has parts), with its parameters as
//! [`CongestionAlgorithm`], and one line in the list below. The enum is closed so that NewReno's
//! additions stay in line. States are boxed so that they do not widen plain connections (NewReno's
//! is empty and takes no memory).

pub mod bbr;
mod coupled;
pub mod cubic;
pub mod dctcp;
pub mod hystart;
pub mod newreno;
pub mod pacing;
pub mod rate;
pub mod swift;

pub use coupled::Coupled;
pub use pacing::Pacing;
pub use rate::RateSample;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::amount::Limit;
use crate::component::SpecError;
use crate::registry::registry;
use crate::transport::tcp::{CongestionState, HostDefaults, Recovery, TcpSpec};

/// The bounds of the data in flight, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// Slow start below, congestion avoidance from here on.
    pub ssthresh: u64,
}

impl Window {
    /// Returns whether the window limits a sender with `flight` outstanding bytes: in slow start
    /// while more than half of it is in use (Linux: `tcp_is_cwnd_limited`).
    #[inline]
    pub fn is_cwnd_limited(&self, flight: u64, mss: u64) -> bool {
        if self.cwnd < self.ssthresh { self.cwnd < 2 * flight } else { self.cwnd < flight + mss }
    }

    /// Returns the window of a new connection.
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
    /// The arrival time.
    pub now: Time,
    /// Bytes newly acknowledged by the cumulative acknowledgement; with `by_delivery`, bytes newly
    /// known to have arrived.
    pub bytes: u64,
    /// Whether the window grows by these bytes, whatever their number
    /// ([`WindowGrowth::Delivered`](crate::transport::tcp::WindowGrowth)).
    pub by_delivery: bool,
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

/// Measurements of one ACK, in recovery too, for algorithms that ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// The arrival time.
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
    /// The time from the sending of the acknowledged segment to that of the ACK, by the timestamp
    /// option's clock in whole ticks; hosts' clocks agree.
    pub one_way: Option<Time>,
    /// The rate of delivery, where the ACK says one.
    pub rate: Option<RateSample>,
    /// Bytes delivered so far.
    pub total_delivered: u64,
    /// Bytes that it showed to be lost, in whole segments.
    pub lost: u64,
    /// Bytes lost so far, those that timers took for lost among them.
    pub total_lost: u64,
    /// Bytes in the network before it.
    pub flight: u64,
    /// Bytes in the network after it.
    pub pipe: u64,
    /// The first segment not yet acknowledged.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub end: u32,
    /// The sender's congestion state after the ACK.
    pub state: CongestionState,
}

/// The parameters of a congestion control.
pub trait CongestionAlgorithm {
    /// The state of a connection.
    type State: CongestionControl
    where
        Self: Sized;

    /// Checks the parameters.
    ///
    /// # Errors
    /// When the algorithm is not defined for them.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Checks it against how losses are recovered.
    ///
    /// # Errors
    /// When the algorithm goes by what that does not tell.
    fn check_recovery(&self, _: Recovery) -> Result<(), SpecError> {
        Ok(())
    }
    /// Returns whether the receiver echoes the mark of each segment, rather than any mark until the
    /// sender has reduced its window.
    fn echoes_marks(&self) -> bool {
        false
    }
    /// Returns whether the window grows exponentially only up to the slow-start threshold, and
    /// beyond it no faster than NewReno's. The ideal completion time depends on it.
    fn respects_ssthresh(&self) -> bool {
        false
    }
    /// Returns the least window in segments from the first ACK on. The ideal completion time
    /// depends on it.
    fn min_window_segments(&self) -> u32 {
        0
    }
    /// The state of a new connection.
    fn new_state(&self) -> Self::State
    where
        Self: Sized;
}

/// The congestion control of one connection.
pub trait CongestionControl {
    /// New data is acknowledged outside recovery, or delivered, by which the window may grow.
    #[inline]
    fn grow(&mut self, window: &mut Window, mss: u64, acked: &Acked) {
        newreno::grow(window, mss, acked);
    }

    /// A fast retransmit: the new threshold. `flight` is what was in the network.
    fn on_loss(&mut self, _: &Window, flight: u64, mss: u64) -> u64 {
        newreno::halved(flight, mss)
    }

    /// The retransmission timer expired for a segment for the first time: the new threshold.
    fn on_timeout(&mut self, _: &Window, flight: u64, mss: u64) -> u64 {
        newreno::halved(flight, mss)
    }

    /// Handles the first congestion echo in a window of data. Returns the new threshold and window.
    fn on_echo(&mut self, window: &Window, mss: u64) -> u64 {
        newreno::halved(window.cwnd, mss)
    }

    /// Returns whether a congestion echo reduces the window.
    fn answers_echoes(&self) -> bool {
        true
    }

    /// Undoes the last reduction, which was needless; the sender restores window and threshold.
    /// `before` is the state before the reduction. What the algorithm computes of windows is
    /// restored as well; its later measurements stay.
    fn take_back(&mut self, _before: &Self)
    where
        Self: Sized,
    {
    }

    /// Handles an ACK of `bytes` up to segment `ack` on an ECN-capable connection, with or without
    /// an echo. `end` is the next new segment.
    fn on_ecn_feedback(&mut self, _bytes: u64, _echo: bool, _ack: u32, _end: u32) {}

    /// Returns whether the algorithm takes samples of all ACKs.
    fn wants_samples(&self) -> bool {
        false
    }

    /// Handles the sample of an ACK after recovery has processed it. An algorithm with a window of
    /// its own sets it. Returns the pacing if it changes.
    fn on_sample(&mut self, _: &mut Window, _mss: u64, _: &AckSample) -> Option<Pacing> {
        None
    }

    /// The same after a timeout, of which the sender has made its own.
    fn after_timeout(&mut self, _: &mut Window, _mss: u64, _now: Time) -> Option<Pacing> {
        None
    }

    /// Handles establishment; `rtt` is the handshake's duration unless a segment of it was
    /// repeated. Called only if the algorithm takes samples.
    fn on_open(&mut self, _: &Window, _mss: u64, _now: Time, _rtt: Option<Time>) -> Option<Pacing> {
        None
    }

    /// A sender that had run out of data has some again, and nothing is in the network.
    fn after_idle(&mut self, _now: Time) -> Option<Pacing> {
        None
    }

    /// Returns whether the algorithm deliberately sends less than the network may carry; delivery
    /// rates then count as application-limited.
    fn is_self_limited(&self) -> bool {
        false
    }

    /// The path has so many switches.
    fn set_switches(&mut self, _: u32) {}

    /// Seeds the connection's own random stream.
    fn draw_from(&mut self, _seed: u64, _entity: u64) {}

    /// An ACK with an ECN echo opens no window (RFC 3168 section 6.1.2).
    fn echo_pauses_growth(&self) -> bool {
        true
    }

    /// Loss and ECN echo are answered alike, and so by one reduction per window of data
    /// (RFC 3168 section 6.1.2).
    fn echo_counts_as_loss(&self) -> bool {
        true
    }

    /// Returns whether ns-3's sender without SACK also grows the window in congestion avoidance on
    /// the ACK of several segments that ends slow start.
    fn grows_twice_in_ns3(&self) -> bool {
        false
    }
}

registry! {
    /// The congestion control of every connection.
    pub enum CongestionSpec: CongestionAlgorithm {
        /// Window grows by a segment per round trip and is halved by a loss (RFC 5681).
        Newreno(newreno::NewrenoSpec),
        /// The window as a cubic function of time (RFC 9438): what Linux runs.
        Cubic(cubic::CubicSpec),
        /// Reduces by the share of marked bytes (RFC 8257); needs a marking queue.
        Dctcp(dctcp::DctcpSpec),
        /// Holds the round trip to a target (Kumar et al. 2020); needs SACK.
        ///
        /// Windows may be smaller than one segment.
        Swift(swift::SwiftSpec),
        /// Paces by delivery rate and shortest round trip (version 1); needs SACK.
        ///
        /// Delivery rate and round trip take the place of losses.
        Bbr(bbr::BbrSpec),
    }

    /// The state of a connection's congestion control. The states are boxed so that they do not
    /// widen plain connections (NewReno's is empty and takes no memory).
    #[allow(missing_docs)] // the kinds are those of the parameters
    pub enum Congestion: CongestionControl = Box<CongestionAlgorithm::State>, new_state()
    [
        /// NewReno with an increase bounded from outside (RFC 6356).
        Coupled(Coupled)
    ]
    {
        /// Grows the window by newly acknowledged data outside recovery.
        static pub fn grow(&mut self, window: &mut Window, mss: u64, acked: &Acked);
        /// Undoes the algorithm's part of the last reduction, which was needless. `before` is the
        /// state before it.
        static pair pub(super) fn take_back(&mut self, before: &Congestion);
    }
}

impl Congestion {
    /// The state of a new connection.
    pub(super) fn new(spec: &CongestionSpec) -> Congestion {
        Congestion::of(spec).expect("every algorithm has a state")
    }
}

impl Default for CongestionSpec {
    fn default() -> Self {
        CongestionSpec::for_hosts(HostDefaults::Plain)
    }
}

impl CongestionSpec {
    /// Returns the default of this kind of host.
    pub fn for_hosts(hosts: HostDefaults) -> CongestionSpec {
        match hosts {
            HostDefaults::Plain => CongestionSpec::Newreno(newreno::NewrenoSpec {}),
            HostDefaults::Linux => CongestionSpec::Cubic(cubic::CubicSpec::linux()),
        }
    }
}
