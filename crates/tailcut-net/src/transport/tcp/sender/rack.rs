//! RACK-TLP (RFC 8985) and F-RTO (RFC 5682 section 3): losses are told by time and not by counts, the tail of a flight is
//! probed before the retransmission timer expires, and a timeout that proves needless is taken back.

mod f_rto;
mod tail_probe;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use self::f_rto::Doubt;
use super::reordering::Verdict;
use super::{CongestionState, Sender};
use crate::component::SpecError;
use crate::measure::Timer;
use crate::packet::SackBlocks;
use crate::transport::tcp::congestion::{Congestion, Window};
use crate::transport::tcp::options::clock;
use crate::transport::tcp::reordering::{split, Method};
use crate::transport::tcp::TcpSpec;

/// Parameters of RACK-TLP and F-RTO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RackSpec {
    /// Probe the tail of a flight (section 7 of RFC 8985).
    pub tail_loss_probe: bool,
    /// What a probe timeout adds where one segment is in flight, for its ACK may be delayed (`TLP.max_ack_delay`; Linux adds
    /// its minimum RTO).
    pub max_ack_delay: Time,
    /// Take a timeout back when what it thought lost arrives (RFC 5682).
    pub f_rto: bool,
    /// Take a recovery back when duplicate reports prove every retransmission of it needless (RFC 3708), as Linux does.
    pub undo: bool,
}

impl Default for RackSpec {
    fn default() -> Self {
        let max_ack_delay = Time::from_ms(40);
        RackSpec { tail_loss_probe: true, max_ack_delay, f_rto: true, undo: true }
    }
}

impl RackSpec {
    pub(in crate::transport::tcp) fn check(&self) -> Result<(), SpecError> {
        if self.max_ack_delay > Time::from_ms(60_000) {
            let message = format!("max_ack_delay = \"{}\": at most a minute", self.max_ack_delay);
            return Err(SpecError::new("rack-max-ack-delay", "reordering.max_ack_delay", message)
                .hint("the receiver's delayed_ack_timeout"));
        }
        Ok(())
    }
}

/// Recoveries without a duplicate report after which the reordering window is small again (section 6.2, step 4).
const PERSISTENCE: u32 = 16;
/// What a reduction changed, should it prove needless.
#[derive(Debug, Clone)]
struct Before {
    window: Window,
    congestion: Congestion,
    reduced_until: u32,
    /// The first segment outstanding when it began.
    from: u32,
    /// Segments sent again since, and those of them not reported as duplicates.
    resent: u32,
    unproven: u32,
}

/// The state of one connection.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Rack {
    spec: RackSpec,
    /// When the segment that was sent last among the delivered ones left, and its end (`RACK.xmit_ts`, `RACK.end_seq`).
    sent: Time,
    end: u32,
    /// Its round trip, and the shortest.
    rtt: Time,
    min_rtt: Time,
    /// End of the highest segment delivered (`RACK.fack`).
    highest: u32,
    reordering_seen: bool,
    /// The reordering window in quarters of the shortest round trip, and recoveries until it is one again.
    quarters: u32,
    persistence: u32,
    /// A duplicate report of this round, which ends here, has had its effect.
    round: Option<u32>,
    /// When a segment that is only late so far is lost.
    lost_at: Time,
    /// When the tail is probed.
    probe_at: Time,
    /// The end of what was sent when a probe left that has not been answered, and whether it was sent before.
    probe: Option<(u32, bool)>,
    /// A round trip was measured since the last probe.
    measured: bool,
    doubt: Doubt,
    before: Option<Before>,
    /// Of the ACK in hand: its duplicate report, what it delivers, whether it has blocks, and its timestamp's echo.
    reported: Option<(u32, u32)>,
    delivered: u32,
    blocks: bool,
    echoed: Option<u32>,
}

impl Rack {
    pub(in crate::transport::tcp) fn new(spec: &RackSpec) -> Rack {
        Rack {
            spec: spec.clone(),
            sent: Time::ZERO,
            end: 0,
            rtt: Time::ZERO,
            min_rtt: Time::NEVER,
            highest: 0,
            reordering_seen: false,
            quarters: 1,
            persistence: 0,
            round: None,
            lost_at: Time::NEVER,
            probe_at: Time::NEVER,
            probe: None,
            measured: true,
            doubt: Doubt::None,
            before: None,
            reported: None,
            delivered: 0,
            blocks: false,
            echoed: None,
        }
    }

    /// The ACK in hand echoes this timestamp.
    pub(in crate::transport::tcp) fn note_timestamp(&mut self, echoed: u32) {
        self.echoed = Some(echoed);
    }

    /// Steps 1 and 2 of section 6.2 for a delivered segment: of one that was sent again it may be the first sending that
    /// arrived, which too short a round trip betrays, or the timestamp of an ACK that is cumulative here (others echo a segment
    /// before the gap, RFC 7323 section 4.3).
    fn on_delivered(&mut self, now: Time, ack: u32, seq: u32, sent: Time, resent: bool) {
        let rtt = now.since(sent);
        if resent {
            let earlier = seq < ack && self.echoed.is_some_and(|echoed| echoed < clock(sent));
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

    /// Step 4: a round with a duplicate report widens the window; so many recoveries without narrow it again.
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

    /// When this wants to be woken.
    fn wake(&self) -> Time {
        self.lost_at.min(self.probe_at)
    }
}

impl Sender {
    fn rack(&mut self) -> Option<&mut Rack> {
        match self.reordering.as_mut().map(|reordering| &mut reordering.method) {
            Some(Method::Rack(rack)) => Some(rack),
            _ => None,
        }
    }

    /// Whether losses are told by time.
    #[inline]
    pub(super) fn tells_by_time(&self) -> bool {
        let method = self.reordering.as_ref().map(|reordering| &reordering.method);
        matches!(method, Some(Method::Rack(_)))
    }

    /// What time tells first: that a segment is lost, or that the tail is to be probed.
    pub(super) fn rack_timer(&self) -> Timer {
        match self.reordering.as_ref().map(|reordering| &reordering.method) {
            Some(Method::Rack(rack)) if rack.probe_at < rack.lost_at => Timer::Probe,
            _ => Timer::Reordering,
        }
    }

    /// When time tells something.
    pub(super) fn rack_wake(&mut self) -> Time {
        self.rack().map_or(Time::NEVER, |rack| rack.wake())
    }

    /// An ACK, before the scoreboard hears of it: steps 1 to 3. Returns its blocks without a duplicate report.
    pub(super) fn rack_learn(&mut self, now: Time, ack: u32, blocks: &SackBlocks) -> SackBlocks {
        let (reported, blocks) = split(ack, blocks);
        let board = &self.board;
        let Some(Method::Rack(rack)) = self.reordering.as_mut().map(|r| &mut r.method) else {
            return blocks;
        };
        (rack.reported, rack.delivered, rack.blocks) = (reported, 0, !blocks.is_empty());
        let highest = rack.highest;
        board.for_each_delivered(ack, &blocks, |seq, sent, resent| {
            rack.delivered += 1;
            rack.on_delivered(now, ack, seq, sent, resent);
            rack.highest = rack.highest.max(seq + 1);
            rack.reordering_seen |= seq + 1 < highest && !resent;
        });
        if let Some((start, end)) = reported {
            self.counters.duplicates_reported += u64::from(end - start);
            if let Some(before) = &mut rack.before {
                let proven = if start >= before.from { end - start } else { 0 };
                before.unproven = before.unproven.saturating_sub(proven);
            }
        }
        blocks
    }

    /// What to make of the ACK in hand, once the scoreboard has heard it.
    pub(super) fn rack_judge(&mut self, spec: &TcpSpec, now: Time, from: u32) -> Verdict {
        let advanced = self.una > from;
        self.answer_probe(spec, advanced);
        self.doubt_timeout(spec, advanced);
        let (una, end, state, recover) = (self.una, self.board.end(), self.state, self.recover);
        let ends = state == CongestionState::Recovery && una >= recover;
        if let Some(rack) = self.rack() {
            rack.adapt(una, end, ends);
            let proven = rack.reported.is_some();
            let undone = rack.before.as_ref().is_some_and(|b| b.resent > 0 && b.unproven == 0);
            if proven && undone && rack.spec.undo {
                self.rack_restore();
            }
        }
        let lost = self.detect(now);
        Verdict { lost, recovers: lost > 0, holds: false }
    }

    /// Step 5: how many segments are newly lost. Those that are only late are looked at again by the timer.
    fn detect(&mut self, now: Time) -> u32 {
        let recovers = matches!(self.state, CongestionState::Recovery | CongestionState::Loss);
        let (smoothed, sacked) = (self.rtt.smoothed(), self.board.sacked());
        let threshold = self.threshold;
        let Some(rack) = self.rack() else { return 0 };
        let window = rack.window(smoothed, recovers, sacked, threshold);
        let (sent, end, patience) = (rack.sent, rack.end, rack.rtt + window);
        let (lost, late) = self.board.mark_late((sent, end), now, patience);
        if let Some(rack) = self.rack() {
            rack.lost_at = late;
        }
        lost
    }

    /// Time tells of a loss, or the tail is to be probed.
    #[cold]
    pub(super) fn on_rack_timer(&mut self, spec: &TcpSpec, now: Time) {
        if !self.life.established() {
            if let Some(rack) = self.rack() {
                (rack.lost_at, rack.probe_at) = (Time::NEVER, Time::NEVER);
            }
            return;
        }
        let Some(rack) = self.rack() else { return };
        if rack.lost_at <= now {
            let lost = self.detect(now);
            let calm = matches!(self.state, CongestionState::Open | CongestionState::Disorder);
            if lost > 0 && calm {
                // As if one more segment had been delivered (as Linux), so that the reduction begins.
                self.begin_sack_recovery(spec, 1, false);
            }
        }
        let may_probe = self.rack().is_some_and(|rack| {
            let due = rack.probe_at <= now;
            rack.probe_at = if due { Time::NEVER } else { rack.probe_at };
            due && rack.probe.is_none()
        });
        if may_probe {
            self.probe_tail();
            self.life.deadline = now + self.rtt.rto();
        }
    }

    /// The retransmission timer expires: before anything changes. F-RTO begins unless a timeout is being repaired.
    #[cold]
    pub(super) fn rack_expect_less(&mut self) {
        let repairs = self.state == CongestionState::Loss && self.una <= self.recover;
        let before = self.rack_before();
        let Some(rack) = self.rack() else { return };
        (rack.probe, rack.probe_at, rack.lost_at) = (None, Time::NEVER, Time::NEVER);
        rack.doubt = if rack.spec.f_rto && !repairs { Doubt::Waiting } else { Doubt::None };
        // In a row, the first knows the window that was in use.
        if !repairs {
            rack.before = Some(before);
        }
    }

    /// Section 6.3: what a timeout takes for lost, the first segment and what is older than a round trip; one segment more
    /// than is left may leave.
    #[cold]
    pub(super) fn rack_lose(&mut self, spec: &TcpSpec, now: Time) {
        let smoothed = self.rtt.smoothed();
        let (sacked, threshold) = (self.board.sacked(), self.threshold);
        let Some(rack) = self.rack() else { return };
        let patience = rack.rtt + rack.window(smoothed, true, sacked, threshold);
        self.board.mark_expired(now, patience);
        self.window.cwnd = self.pipe(spec) + spec.mss.0;
    }

    fn rack_before(&self) -> Before {
        Before {
            window: self.window,
            congestion: self.congestion.clone(),
            reduced_until: self.reduced_until,
            from: self.una,
            resent: 0,
            unproven: self.board.resent(),
        }
    }

    /// A recovery is about to begin.
    pub(super) fn rack_remember(&mut self) {
        let before = self.rack_before();
        if let Some(rack) = self.rack() {
            rack.before = Some(before);
        }
    }

    /// A segment is sent again.
    pub(super) fn rack_resent(&mut self) {
        if let Some(before) = self.rack().and_then(|rack| rack.before.as_mut()) {
            before.resent += 1;
            before.unproven += 1;
        }
    }

    /// A reduction was needless: what it changed is put back, and nothing is lost (RFC 4015 section 3.2, without its pause).
    fn rack_restore(&mut self) {
        let Some(rack) = self.rack() else { return };
        rack.doubt = Doubt::None;
        let Some(before) = rack.before.take() else { return };
        self.window.cwnd = self.window.cwnd.max(before.window.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(before.window.ssthresh);
        self.congestion = before.congestion;
        self.reduced_until = before.reduced_until;
        match self.state {
            CongestionState::Loss => self.counters.timeouts_undone += 1,
            _ => self.counters.recoveries_undone += 1,
        }
        if matches!(self.state, CongestionState::Recovery | CongestionState::Loss) {
            self.board.forget_losses();
            self.duplicates = 0;
            self.timed_out = None;
            self.state = CongestionState::Disorder;
        }
    }
}
