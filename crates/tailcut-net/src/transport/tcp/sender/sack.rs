//! Loss recovery by selective acknowledgements (RFC 6675) with proportional rate reduction (RFC 9937).

use tailcut_engine::Time;

use super::reordering::{Choice, Reordering, Verdict};
use super::{CongestionState, Sender};
use crate::packet::SackBlocks;
use crate::transport::life::owed;
use crate::transport::tcp::prr::Prr;
use crate::transport::tcp::{ReductionBase, TcpSpec};

impl Sender {
    /// Section 5 of RFC 6675.
    pub(super) fn on_ack_sack(&mut self, spec: &TcpSpec, now: Time, ack: u32, blocks: &SackBlocks) {
        let cleaned;
        let blocks = if self.reordering.is_some() {
            cleaned = self.learn(now, ack, blocks);
            &cleaned
        } else {
            blocks
        };
        let newly_sacked = self.board.on_blocks(blocks);
        let mut delivered = newly_sacked;
        let from = self.una;
        let advanced = ack > from;
        let (mut acked, mut rtt) = (0, None);
        if advanced {
            acked = self.offset(spec, ack) - self.offset(spec, self.una);
            let progress = self.advance(spec, now, ack);
            delivered += progress.delivered;
            rtt = progress.rtt;
            self.duplicates = 0;
        }
        // An ACK with news of what lies beyond a gap is a duplicate, even one that advances (section 2).
        let duplicate = newly_sacked > 0;
        self.duplicates += u32::from(duplicate);
        let verdict = if self.reordering.is_some() {
            self.judge(spec, now, from, duplicate)
        } else {
            let lost = self.board.mark_overtaken() + self.board.mark_lost(self.threshold);
            let enough = self.duplicates >= self.threshold || self.board.first_is_lost();
            Verdict { lost, recovers: duplicate && enough, holds: false }
        };
        if advanced || self.state == CongestionState::Open {
            self.limited_from = self.board.end();
        }
        let counts = spec.grows_by_delivery().then(|| u64::from(delivered) * spec.mss.0);
        let opens = advanced || counts.is_some() && self.opens_beyond_gap(spec, ack, delivered);
        self.counters.duplicate_acks += u64::from(duplicate && !advanced);
        match self.state {
            CongestionState::Recovery if self.una >= self.recover => {
                self.state = CongestionState::Open;
                self.window.cwnd = self.window.ssthresh;
                self.duplicates = 0;
                // What is known to be lost now was sent after the recovery had begun: another window of data
                // (RFC 5681 section 4.3).
                if self.board.any_lost() && !spec.imitate.timeout_ends_in_open {
                    self.begin_sack_recovery(spec, delivered, advanced);
                } else {
                    // What arrived during the recovery has opened no window, and does not now.
                    let news = acked.min(u64::from(delivered) * spec.mss.0);
                    let by_delivery = counts.is_some();
                    self.grow_by(spec, now, acked, counts.unwrap_or(news), by_delivery, rtt);
                }
            }
            CongestionState::Recovery => {
                if verdict.holds {
                    self.hold(spec, delivered);
                } else {
                    self.reduce(spec, delivered, advanced && verdict.lost == 0);
                }
                let sends = spec.imitate.partial_ack_sends;
                if sends && advanced && !self.board.first_is_resent() {
                    self.life.owe(owed::NEXT);
                }
            }
            CongestionState::Loss if self.una < self.recover => {
                if opens {
                    self.grow(spec, now, acked, counts, rtt);
                }
            }
            CongestionState::Loss if spec.imitate.timeout_ends_in_open => {
                self.state = CongestionState::Open;
                if self.una > self.recover {
                    self.grow(spec, now, acked, counts, rtt);
                }
            }
            _ if verdict.recovers => self.begin_sack_recovery(spec, delivered, advanced),
            _ => {
                let gap = self.board.sacked() > 0;
                let set = advanced && self.disorder_ends(spec);
                if opens && !set {
                    self.grow(spec, now, acked, counts, rtt);
                }
                if gap && self.state != CongestionState::Disorder {
                    self.begin_disorder(spec);
                }
                self.state = if gap { CongestionState::Disorder } else { CongestionState::Open };
            }
        }
        let partial = self.state == CongestionState::Recovery;
        let once = partial && spec.imitate.one_partial_ack_rearms;
        if advanced && !(once && self.rearmed) {
            self.rearmed = partial;
            self.rearm(now);
        }
        if self.reordering.is_some() {
            self.end_ack(now);
        }
    }

    /// Whether an ACK that does not advance opens the window: `tcp_may_raise_cwnd` of Linux, where reordering is wide.
    fn opens_beyond_gap(&self, spec: &TcpSpec, ack: u32, delivered: u32) -> bool {
        let wide = |method: &Reordering| method.is_wide(self.threshold, spec.dupack_threshold);
        delivered > 0 && ack == self.una && self.reordering.as_deref().is_some_and(wide)
    }

    /// Step 4: what the ACK tells of is no reordering but loss.
    pub(super) fn begin_sack_recovery(&mut self, spec: &TcpSpec, delivered: u32, advanced: bool) {
        let mss = spec.mss.0;
        if self.reordering.is_none() || self.begin_with_first(advanced) {
            self.board.mark_first_lost();
        }
        self.window.ssthresh = self.threshold_after_loss(spec, self.flight_at_loss(spec));
        // What was delivered before the recovery is no part of what it has to recover (RFC 9937 6.1).
        let (news, sacked) = (u64::from(delivered) * mss, u64::from(self.board.sacked()) * mss);
        self.prr = Prr::begin((self.flight(spec) + news).saturating_sub(sacked).max(mss));
        let again = self.board.first_is_resent();
        self.enter_recovery();
        self.reduce(spec, delivered, false);
        if again && spec.imitate.recovery_repeats_first {
            self.life.owe(owed::RESEND);
        }
    }

    /// What recovery halves (step 4.2).
    fn flight_at_loss(&self, spec: &TcpSpec) -> u64 {
        if spec.reduction_base == ReductionBase::Pipe || spec.imitate.pipe_is_halved {
            return self.pipe(spec);
        }
        let regular = self.limited_from.clamp(self.una, self.board.end());
        let flight = self.offset(spec, regular) - self.offset(spec, self.una);
        match &self.reordering {
            Some(reordering) if self.state == CongestionState::Disorder => {
                reordering.flight_at_loss(flight)
            }
            _ => flight,
        }
    }

    fn reduce(&mut self, spec: &TcpSpec, delivered: u32, safe: bool) {
        if delivered > 0 {
            let (mss, pipe) = (spec.mss.0, self.pipe(spec));
            self.window.cwnd = pipe
                + self.prr.on_ack(
                    u64::from(delivered) * mss,
                    pipe,
                    self.window.ssthresh,
                    mss,
                    safe,
                );
        }
    }

    /// In recovery: as much leaves as has arrived.
    #[cold]
    fn hold(&mut self, spec: &TcpSpec, delivered: u32) {
        let delivered = u64::from(delivered) * spec.mss.0;
        self.window.cwnd = self.pipe(spec) + delivered;
        self.prr.concede(delivered);
    }

    /// Bytes thought to be in the network.
    pub(super) fn pipe(&self, spec: &TcpSpec) -> u64 {
        u64::from(self.board.pipe()) * spec.mss.0
    }

    /// `NextSeg` of RFC 6675: what is lost, then new data, then what is in doubt.
    #[inline]
    pub(super) fn next_by_pipe(&mut self, spec: &TcpSpec) -> Option<u32> {
        if self.life.owes_anything() {
            if self.life.settle(owed::NEXT) {
                return Some(self.next_whatever_the_window(spec));
            }
            if self.life.settle(owed::PROBE) {
                return self.next_probe(spec);
            }
        }
        let mut room = self.window.cwnd.saturating_sub(self.pipe(spec));
        let mut in_doubt = true;
        if self.reordering.is_some() {
            match self.choose(spec, room) {
                Choice::Only(next) => return next,
                Choice::Within { room: some, in_doubt: too } => (room, in_doubt) = (some, too),
            }
        }
        if room == 0 {
            return None;
        }
        let (size, mss) = (self.size, spec.mss.0);
        let payload = |seq: u32| (size - u64::from(seq) * mss).min(mss);
        let fits = |seq: u32| (payload(seq) <= room).then_some(seq);
        if let Some(seq) = self.next_lost(spec) {
            return fits(seq);
        }
        let held_back = self.state == CongestionState::Disorder && !spec.limited_transmit;
        let more = self.next < self.segments && !held_back;
        if more && self.flight(spec) + payload(self.next) <= self.receive_window(spec) {
            return fits(self.next);
        }
        if self.state != CongestionState::Recovery || !in_doubt {
            return None;
        }
        if let Some(seq) = self.board.next_doubtful() {
            return fits(seq);
        }
        if spec.imitate.no_rescue {
            return None;
        }
        let last = self.board.rescue().and_then(fits)?;
        self.board.rescue_with(last);
        Some(last)
    }

    /// The next segment that is lost and may be sent again.
    #[inline]
    fn next_lost(&mut self, spec: &TcpSpec) -> Option<u32> {
        let lost = self.board.next_lost()?;
        let last_sacked = self.board.sacked_end().saturating_sub(1);
        let waits =
            spec.imitate.lost_waits_for_sack && self.una < last_sacked && last_sacked <= lost;
        (!waits).then_some(lost)
    }

    /// What ns-3 sends on a partial ACK.
    #[cold]
    fn next_whatever_the_window(&mut self, spec: &TcpSpec) -> u32 {
        if let Some(seq) = self.next_lost(spec) {
            return seq;
        }
        let more = self.next < self.segments;
        if more && self.flight(spec) + self.payload(spec, self.next) <= self.receive_window(spec) {
            return self.next;
        }
        self.una
    }
}
