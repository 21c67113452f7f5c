//! Telling reordering from loss, on top of selective acknowledgements.
//!
//! Without a method a fixed number of duplicate ACKs means a loss. A method is asked instead
//! wherever the sender would go by that: what an ACK says ([`LossDetector::before_ack`],
//! [`LossDetector::detect_losses`]), what a recovery or a timeout takes for lost, what may leave
//! meanwhile, and when to wake it besides. It may move the threshold, the window and what is known
//! of segments: it is given the sender itself, of whose loss recovery it is a part.
//!
//! A new method is one file here, with its parameters as [`Parameters`], and one line in the list
//! below. What several share lies beside them: [`holes`] (how far segments were reordered),
//! [`undo`] (what a reduction changed, should it prove needless).

pub mod adaptive;
mod holes;
pub mod ncr;
pub mod rack;
pub mod rr_tcp;
mod undo;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::Sender;
use crate::component::SpecError;
use crate::packet::SackBlocks;
use crate::registry::{Inline, registry};
use crate::transport::Timer;
use crate::transport::tcp::{HostDefaults, TcpSpec};

/// The parameters of a method.
pub trait Parameters {
    /// Refuses parameters with which a threshold means nothing.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Whether a segment may leave that the window does not allow, to probe the tail of a flight.
    fn probes(&self) -> bool {
        false
    }
}

/// The parameters of a method with state: of all but the fixed threshold.
pub(super) trait Method: Parameters {
    /// The state of a connection.
    type State: LossDetector;

    /// The state of a new connection.
    fn new_state(&self) -> Self::State;
}

/// A fixed number of duplicate ACKs.
struct FixedThreshold;

impl Parameters for FixedThreshold {}

/// A method at work in one connection. The sender that it is given has no method meanwhile: it is
/// not to be asked for what it would ask its method.
pub(super) trait LossDetector {
    /// Records the duration of a handshake without repetitions.
    fn note_handshake(&mut self, _rtt: Time) {}
    /// Whether segments were overtaken by more than the plan lets pass for reordering: by `base`
    /// duplicate ACKs or more. `threshold` is what means a loss by now.
    fn is_wide(&self, threshold: u32, base: u32) -> bool {
        threshold > base
    }
    /// An ACK echoes congestion, for which the window `reduces` now, or has done so before. What
    /// earlier reductions changed is not put back.
    fn congestion_echoed(&mut self, _reduces: bool) {}
    /// The ACK in hand echoes a timestamp whose tick was over then.
    fn note_echo(&mut self, _: Time) {}
    /// An ACK, before the scoreboard hears of it. Returns its blocks without a duplicate report.
    fn before_ack(
        &mut self,
        sender: &mut Sender,
        now: Time,
        ack: u32,
        blocks: &SackBlocks,
    ) -> SackBlocks;
    /// Judges the ACK in hand, once the scoreboard has read it. `from` is the first segment that
    /// was outstanding before; `duplicate` says that it reports something new beyond a gap.
    fn detect_losses(
        &mut self,
        sender: &mut Sender,
        spec: &TcpSpec,
        now: Time,
        from: u32,
        duplicate: bool,
    ) -> LossVerdict;
    /// The ACK in hand has had its effect.
    fn ack_ends(&mut self, _: &mut Sender, _now: Time) {}
    /// The first duplicate ACK has arrived.
    fn disorder_begins(&mut self, _: &Sender, _: &TcpSpec) {}
    /// New data is acknowledged in disorder. True where the window is set here, and does not grow
    /// besides.
    fn disorder_ends(&mut self, _: &mut Sender, _: &TcpSpec) -> bool {
        false
    }
    /// Returns the flight that a recovery from disorder halves; `flight` is what is outstanding
    /// without limited transmit.
    fn flight_at_loss(&self, flight: u64) -> u64 {
        flight
    }
    /// A recovery is about to begin, by an ACK that has `advanced` or not. Whether its first
    /// segment is lost in any case.
    fn recovery_begins(&mut self, _: &Sender, _advanced: bool) -> bool {
        true
    }
    /// Returns what may leave while the window has this much room.
    fn choose(&mut self, _: &mut Sender, _: &TcpSpec, room: u64) -> SendChoice {
        SendChoice::Within { room, in_doubt: true }
    }
    /// Segment `seq` has left, `again` or for the first time.
    fn on_send(&mut self, _: &mut Sender, _seq: u32, _again: bool, _now: Time) {}
    /// The retransmission timer has expired, and nothing has changed yet.
    fn timeout_begins(&mut self, _: &mut Sender, _: &TcpSpec) {}
    /// Marks the segments that a timeout takes for lost.
    fn lose(&mut self, sender: &mut Sender, _: &TcpSpec, _now: Time) {
        sender.board.mark_all_lost();
    }
    /// Returns when the method's timer is due. The sender asks after each new segment and ACK.
    fn wake(&self) -> Time {
        Time::NEVER
    }
    /// Returns what that timer is for.
    fn timer(&self) -> Timer {
        Timer::Reordering
    }
    /// Fires the timer. Returns whether a recovery is to begin.
    fn on_wake(&mut self, _: &mut Sender, _: &TcpSpec, _now: Time) -> bool {
        false
    }
    /// The segment that probes the tail, once the sender owes a probe
    /// ([`owed::PROBE`](crate::transport::life::owed)).
    fn probe(&mut self, _: &mut Sender, _: &TcpSpec) -> Option<u32> {
        None
    }
}

/// A method's verdict on an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LossVerdict {
    /// Segments that it newly takes for lost.
    pub lost: u32,
    /// Outside recovery: one is to begin.
    pub recovers: bool,
    /// In recovery: one segment leaves for each that arrived, for this ACK speaks against a loss.
    pub holds: bool,
}

/// The segments that may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendChoice {
    /// This segment, or none, regardless of the window.
    Only(Option<u32>),
    /// The choice of RFC 6675.
    Within {
        /// Bytes that may leave.
        room: u64,
        /// In recovery also what may be lost: what is neither known to be lost nor to have arrived.
        in_doubt: bool,
    },
}

registry! {
    /// The method by which a sender tells reordering from loss.
    pub enum ReorderingSpec: Parameters
    [
        /// By a fixed number of duplicate ACKs (RFC 5681).
        None {} = FixedThreshold
    ]
    {
        /// A threshold that grows to the reordering seen, as in Linux without RACK.
        ///
        /// Spurious recoveries are undone.
        Adaptive(adaptive::AdaptiveSpec),
        /// A threshold at a percentile of the reordering seen (RR-TCP).
        RrTcp(rr_tcp::RrTcpSpec),
        /// A threshold of about a window of data (RFC 4653).
        Ncr(ncr::NcrSpec),
        /// Time, with probes of the tail and F-RTO (RFC 8985, 5682): what Linux does.
        Rack(rack::RackSpec),
    }

    /// The method of one connection.
    pub(super) enum Reordering: LossDetector = Inline<Method::State>, new_state() {}
}

impl Default for ReorderingSpec {
    fn default() -> Self {
        ReorderingSpec::of(HostDefaults::Plain)
    }
}

impl ReorderingSpec {
    /// Returns the default of this kind of host.
    pub fn of(hosts: HostDefaults) -> ReorderingSpec {
        match hosts {
            HostDefaults::Plain => ReorderingSpec::None {},
            HostDefaults::Linux => ReorderingSpec::Rack(rack::RackSpec::linux()),
        }
    }

    /// Returns the method of a new connection; none for a fixed threshold.
    pub(super) fn method(&self) -> Option<Box<Reordering>> {
        Reordering::of(self).map(Box::new)
    }

    /// True for a fixed threshold.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, ReorderingSpec::None {})
    }
}

fn check_max(max: u32) -> Result<(), SpecError> {
    if max == 0 {
        let message = "max = 0: every acknowledgement would be a loss; at least 1 is needed";
        return Err(
            SpecError::new("reordering-max", "reordering.max", message).hint("Linux allows 300")
        );
    }
    Ok(())
}

/// Judges an ACK by the count of duplicate ACKs.
fn judge_by_count(sender: &mut Sender, threshold: u32, duplicate: bool) -> LossVerdict {
    let lost = sender.board.mark_lost(threshold);
    let enough = sender.duplicates >= threshold || sender.board.first_is_lost();
    LossVerdict { lost, recovers: duplicate && enough, holds: false }
}

/// Parts a duplicate report (RFC 2883 section 4) from the blocks proper.
pub(super) fn split(ack: u32, blocks: &SackBlocks) -> (Option<(u32, u32)>, SackBlocks) {
    let reported = match blocks.as_slice() {
        [first, ..] if first.1 <= ack => true,
        [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
        _ => false,
    };
    if !reported {
        return (None, *blocks);
    }
    let mut rest = SackBlocks::default();
    blocks.as_slice()[1..].iter().for_each(|&(start, end)| rest.push(start, end));
    (Some(blocks.as_slice()[0]), rest)
}
