//! RACK-TLP (RFC 8985) and F-RTO (RFC 5682 section 3): losses are told by time and not by counts,
//! the tail of a flight is probed before the retransmission timer expires, and a timeout that
//! proves needless is taken back.

mod f_rto;
mod tail_probe;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use self::f_rto::FRtoState;
use super::undo::{self, UndoSnapshot};
use super::{LossDetector, LossVerdict, Method, Parameters, SendChoice, split};
use crate::component::SpecError;
use crate::packet::SackBlocks;
use crate::transport::Timer;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::hosts::LINUX_MIN_RTO;
use crate::transport::tcp::sender::{CongestionState, Sender};

/// Parameters of RACK-TLP and F-RTO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RackSpec {
    /// Probe the tail of a flight (section 7 of RFC 8985).
    pub tail_loss_probe: bool,
    /// Addition to the probe timeout where one segment is in flight, whose ACK may be delayed
    /// (`TLP.max_ack_delay`; Linux adds its minimum RTO).
    pub max_ack_delay: Time,
    /// Take a timeout back when what it thought lost arrives (RFC 5682).
    pub f_rto: bool,
    /// Take a recovery back when duplicate reports prove every retransmission of it needless (RFC
    /// 3708), as Linux does.
    pub undo: bool,
}

impl Default for RackSpec {
    fn default() -> Self {
        let max_ack_delay = Time::from_ms(40);
        RackSpec { tail_loss_probe: true, max_ack_delay, f_rto: true, undo: true }
    }
}

impl RackSpec {
    /// Returns the parameters of a current Linux.
    pub(super) fn linux() -> RackSpec {
        RackSpec { max_ack_delay: LINUX_MIN_RTO, ..RackSpec::default() }
    }
}

impl Parameters for RackSpec {
    fn probes(&self) -> bool {
        self.tail_loss_probe
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.max_ack_delay > Time::from_ms(60_000) {
            let message = format!("max_ack_delay = \"{}\": at most a minute", self.max_ack_delay);
            return Err(SpecError::new("rack-max-ack-delay", "reordering.max_ack_delay", message)
                .hint("the receiver's delayed_ack_timeout"));
        }
        Ok(())
    }
}

impl Method for RackSpec {
    type State = Rack;

    fn new_state(&self) -> Rack {
        Rack {
            spec: self.clone(),
            sent: Time::ZERO,
            end: 0,
            rtt: Time::ZERO,
            min_rtt: Time::NEVER,
            highest: 0,
            reordering_seen: false,
            extent: 0,
            quarters: 1,
            persistence: 0,
            round: None,
            lost_at: Time::NEVER,
            probe_at: Time::NEVER,
            probes_tail: false,
            probe: None,
            measured: true,
            doubt: FRtoState::None,
            before: None,
            reported: None,
            delivered: 0,
            blocks: false,
            echoed: None,
        }
    }
}

/// Recoveries without a duplicate report after which the reordering window is small again (section
/// 6.2, step 4).
const PERSISTENCE: u32 = 16;

/// The state of one connection.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Rack {
    spec: RackSpec,
    /// Departure and end of the delivered segment that was sent last (`RACK.xmit_ts`,
    /// `RACK.end_seq`).
    sent: Time,
    end: u32,
    /// Round trip of that segment, and the shortest.
    rtt: Time,
    min_rtt: Time,
    /// End of the highest segment delivered (`RACK.fack`).
    highest: u32,
    reordering_seen: bool,
    /// From a segment that others overtook to the end of the highest of them, at most:
    /// `tcp_reordering` of Linux.
    extent: u32,
    /// The reordering window in quarters of the shortest round trip, and recoveries until it is one
    /// again.
    quarters: u32,
    persistence: u32,
    /// A duplicate report of this round, which ends here, has had its effect.
    round: Option<u32>,
    /// The time at which a segment that is late becomes lost.
    lost_at: Time,
    /// The time of the tail loss probe, and whether all data has left by now.
    probe_at: Time,
    probes_tail: bool,
    /// The end of what was sent when a probe left that has not been answered, and whether it was
    /// sent before.
    probe: Option<(u32, bool)>,
    /// A round trip was measured since the last probe.
    measured: bool,
    doubt: FRtoState,
    before: Option<UndoSnapshot>,
    /// Facts of the ACK in hand: its duplicate report, what it delivers, whether it has blocks, and
    /// the end of the tick that it echoes.
    reported: Option<(u32, u32)>,
    delivered: u32,
    blocks: bool,
    echoed: Option<Time>,
}

impl Rack {
    /// Steps 1 and 2 of section 6.2 for a delivered segment: of one that was sent again it may be
    /// the first sending that arrived, which too short a round trip betrays, or the timestamp of an
    /// ACK that is cumulative here (others echo a segment before the gap, RFC 7323 section 4.3).
    fn on_delivered(&mut self, now: Time, ack: u32, seq: u32, sent: Time, resent: bool) {
        let rtt = now.since(sent);
        if resent {
            let earlier = seq < ack && self.echoed.is_some_and(|until| until <= sent);
            if earlier || rtt < self.min_rtt {
                return;
            }
        } else {
            self.min_rtt = self.min_rtt.min(rtt);
            self.measured = true;
        }
        self.rtt = rtt;
        if (sent, seq + 1) > (self.sent, self.end) {
            (self.sent, self.end) = (sent, seq + 1);
        }
    }

    /// Step 4: how far a segment may be late.
    fn window(&self, smoothed: Time, recovers: bool, sacked: u32, threshold: u32) -> Time {
        if !self.reordering_seen && (recovers || sacked >= threshold) {
            return Time::ZERO;
        }
        if self.min_rtt == Time::NEVER {
            return Time::ZERO;
        }
        Time(self.min_rtt.0 / 4 * u64::from(self.quarters)).min(smoothed)
    }

    /// Step 4: a round with a duplicate report widens the window; so many recoveries without narrow
    /// it again.
    fn adapt(&mut self, una: u32, next: u32, recovery_ends: bool) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
        if self.reported.is_some() && self.round.is_none() {
            self.round = Some(next);
            self.quarters = (self.quarters + 1).min(255);
            self.persistence = PERSISTENCE;
        } else if recovery_ends {
            self.persistence = self.persistence.saturating_sub(1);
            if self.persistence == 0 {
                self.quarters = 1;
            }
        }
    }

    /// Step 5: how many segments are newly lost. Those that are only late are looked at again by
    /// the timer.
    fn detect(&mut self, sender: &mut Sender, now: Time) -> u32 {
        let recovers = matches!(sender.state, CongestionState::Recovery | CongestionState::Loss);
        let (smoothed, sacked) = (sender.rtt.smoothed(), sender.board.sacked());
        let window = self.window(smoothed, recovers, sacked, sender.threshold);
        let (lost, late) = sender.board.mark_late((self.sent, self.end), now, self.rtt + window);
        self.lost_at = late;
        lost
    }

    /// A reduction was needless: what it changed is put back, and nothing is lost.
    fn restore(&mut self, sender: &mut Sender) {
        self.doubt = FRtoState::None;
        let Some(before) = self.before.take() else { return };
        if before.put_back(sender) {
            sender.duplicates = 0;
            sender.timed_out = None;
        }
    }
}

impl LossDetector for Rack {
    fn congestion_echoed(&mut self, reduces: bool) {
        undo::note_echo(&mut self.before, reduces);
    }

    /// Step 1: whatever RFC 6298 measures. A handshake's packets are short, so that on slow links
    /// no segment is ever as quick.
    fn note_handshake(&mut self, rtt: Time) {
        self.min_rtt = self.min_rtt.min(rtt);
    }

    fn is_wide(&self, _: u32, base: u32) -> bool {
        self.extent > base
    }

    fn note_echo(&mut self, until: Time) {
        self.echoed = Some(until);
    }

    /// Steps 1 to 3.
    fn before_ack(
        &mut self,
        sender: &mut Sender,
        now: Time,
        ack: u32,
        blocks: &SackBlocks,
    ) -> SackBlocks {
        let (reported, blocks) = split(ack, blocks);
        (self.reported, self.delivered, self.blocks) = (reported, 0, !blocks.is_empty());
        let highest = self.highest;
        sender.board.for_each_delivered(ack, &blocks, |seq, sent, resent| {
            self.delivered += 1;
            self.on_delivered(now, ack, seq, sent, resent);
            self.highest = self.highest.max(seq + 1);
            if seq + 1 < highest && !resent {
                self.reordering_seen = true;
                self.extent = self.extent.max(highest - seq);
            }
        });
        if let Some((start, end)) = reported {
            sender.counters.duplicates_reported += u64::from(end - start);
            if let Some(before) = self.before.as_mut().filter(|before| start >= before.from) {
                before.on_reports(end - start);
            }
        }
        blocks
    }

    fn detect_losses(
        &mut self,
        sender: &mut Sender,
        spec: &TcpSpec,
        now: Time,
        from: u32,
        _: bool,
    ) -> LossVerdict {
        let advanced = sender.una > from;
        self.answer_probe(sender, spec, advanced);
        self.doubt_timeout(sender, spec, advanced);
        let repairs = matches!(sender.state, CongestionState::Recovery | CongestionState::Loss);
        let ends = repairs && sender.una >= sender.recover;
        self.adapt(sender.una, sender.board.end(), ends);
        let needless = self.before.as_ref().is_some_and(UndoSnapshot::is_needless);
        if self.reported.is_some() && needless && self.spec.undo {
            self.restore(sender);
        }
        let lost = self.detect(sender, now);
        LossVerdict { lost, recovers: lost > 0, holds: false }
    }

    fn ack_ends(&mut self, sender: &mut Sender, now: Time) {
        self.schedule_probe(sender, now);
    }

    /// Returns whether the first segment counts as lost: only time decides that.
    fn recovery_begins(&mut self, sender: &Sender, _: bool) -> bool {
        self.before = Some(UndoSnapshot::of(sender, false));
        // The window pays for what the probe has told by the recovery.
        self.probe = None;
        false
    }

    /// Returns the segments that may leave: nothing that time has not condemned is in doubt.
    fn choose(&mut self, sender: &mut Sender, spec: &TcpSpec, room: u64) -> SendChoice {
        let within = SendChoice::Within { room, in_doubt: false };
        self.next_in_doubt(sender, spec).map_or(within, SendChoice::Only)
    }

    fn on_send(&mut self, sender: &mut Sender, _: u32, again: bool, now: Time) {
        if !again {
            self.schedule_probe(sender, now);
        } else if let Some(before) = &mut self.before {
            before.on_resend();
        }
    }

    /// F-RTO begins unless a timeout is being repaired.
    fn timeout_begins(&mut self, sender: &mut Sender, _: &TcpSpec) {
        let repairs = sender.state == CongestionState::Loss && sender.una <= sender.recover;
        (self.probe, self.probe_at, self.lost_at) = (None, Time::NEVER, Time::NEVER);
        self.doubt = if self.spec.f_rto && !repairs { FRtoState::Waiting } else { FRtoState::None };
        // In a row, the first knows the window that was in use.
        if !repairs {
            self.before = Some(UndoSnapshot::of(sender, true));
        }
    }

    /// Section 6.3: the first segment and what is older than a round trip; one segment more than is
    /// left may leave.
    fn lose(&mut self, sender: &mut Sender, spec: &TcpSpec, now: Time) {
        let (smoothed, sacked) = (sender.rtt.smoothed(), sender.board.sacked());
        let patience = self.rtt + self.window(smoothed, true, sacked, sender.threshold);
        sender.board.mark_expired(now, patience);
        sender.window.cwnd = sender.pipe(spec) + spec.mss.0;
    }

    fn wake(&self) -> Time {
        self.lost_at.min(self.probe_at)
    }

    fn timer(&self) -> Timer {
        match self.probe_at < self.lost_at {
            true if self.probes_tail => Timer::Probe,
            true => Timer::WindowProbe,
            false => Timer::Reordering,
        }
    }

    /// Time tells of a loss, or the tail is to be probed.
    fn on_wake(&mut self, sender: &mut Sender, _: &TcpSpec, now: Time) -> bool {
        if !sender.life.is_established() {
            (self.lost_at, self.probe_at) = (Time::NEVER, Time::NEVER);
            return false;
        }
        let mut recovers = false;
        if self.lost_at <= now {
            let calm = matches!(sender.state, CongestionState::Open | CongestionState::Disorder);
            recovers = self.detect(sender, now) > 0 && calm;
        }
        if self.probe_at <= now {
            self.probe_at = Time::NEVER;
            if self.probe.is_none() {
                self.probe_tail(sender);
                sender.life.deadline = now + sender.rtt.rto();
            }
        }
        recovers
    }

    fn probe(&mut self, sender: &mut Sender, spec: &TcpSpec) -> Option<u32> {
        self.tail_probe(sender, spec)
    }
}
