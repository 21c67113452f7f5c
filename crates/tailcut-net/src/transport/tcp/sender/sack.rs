//! Loss recovery by selective acknowledgements (RFC 6675) with proportional rate reduction (RFC
//! 9937).

use tailcut_engine::Time;

use super::reordering::{LossVerdict, Reordering, SendChoice};
use super::{CongestionState, Sender};
use crate::packet::SackBlocks;
use crate::transport::life::owed;
use crate::transport::tcp::prr::Prr;
use crate::transport::tcp::scoreboard::AckProgress;
use crate::transport::tcp::{Close, ReductionBase, TcpSpec};

impl Sender {
    /// Section 5 of RFC 6675.
    #[inline]
    pub(super) fn on_ack_sack(&mut self, spec: &TcpSpec, now: Time, ack: u32, blocks: &SackBlocks) {
        let in_order = ack > self.una && blocks.is_empty() && self.board.is_undisturbed();
        if in_order && self.state == CongestionState::Open && self.reordering.is_none() {
            self.on_ack_in_order(spec, now, ack);
        } else {
            self.on_ack_closely(spec, now, ack, blocks);
        }
    }

    /// Takes an ACK that advances and reports no gap while nothing is missing:
    /// [`Sender::on_ack_closely`] with all else left out.
    fn on_ack_in_order(&mut self, spec: &TcpSpec, now: Time, ack: u32) {
        let from = self.una;
        let acked = self.offset(spec, ack) - self.offset(spec, from);
        let AckProgress { delivered, rtt, .. } = self.advance(spec, now, ack);
        self.duplicates = 0;
        self.limited_from = self.board.end();
        let counts = spec.grows_by_delivery().then(|| u64::from(delivered) * spec.mss.0);
        if spec.imitate.slow_start_grows_twice && counts.is_none() {
            // Nothing beyond the ACK has arrived before.
            let news = self.delivered_bytes(spec, delivered, false);
            let segments = (news / spec.mss.0) as u32;
            self.grow_by_segments(spec, now, acked, segments, rtt);
        } else {
            self.grow(spec, now, acked, counts, rtt);
        }
        self.rearmed = false;
        self.rearm(now);
    }

    /// Takes any other ACK.
    fn on_ack_closely(&mut self, spec: &TcpSpec, now: Time, ack: u32, blocks: &SackBlocks) {
        let cleaned;
        let blocks = if self.reordering.is_some() {
            cleaned = self.learn(now, ack, blocks);
            &cleaned
        } else {
            blocks
        };
        let last_arrived = self.last_has_arrived();
        let newly_sacked = self.board.on_blocks(blocks);
        let mut delivered = newly_sacked;
        let from = self.una;
        let advanced = ack > from;
        let (mut acked, mut rtt, mut repaired) = (0, None, 0);
        if newly_sacked > 0 && spec.imitate.doubt_overtakes && self.reordering.is_none() {
            self.board.mark_overtaken_by_news();
        }
        // An ACK with news of what lies beyond a gap is a duplicate, even one that advances
        // (section 2).
        let duplicate = newly_sacked > 0;
        let waits = spec.imitate.advancing_sack_waits;
        if advanced {
            acked = self.offset(spec, ack) - self.offset(spec, self.una);
            let progress = self.advance(spec, now, ack);
            delivered += progress.delivered;
            rtt = progress.rtt;
            repaired = progress.resent;
            if !(waits && duplicate) {
                self.duplicates = 0;
            }
        }
        let undisturbed = matches!(self.state, CongestionState::Open | CongestionState::Disorder);
        self.duplicates += u32::from(duplicate && (undisturbed || !waits));
        let verdict = if self.reordering.is_some() {
            self.judge(spec, now, from, duplicate)
        } else {
            let again = if spec.imitate.doubt_overtakes { 0 } else { self.board.mark_overtaken() };
            let lost = again + self.board.mark_lost(self.threshold);
            let enough = self.duplicates >= self.threshold || self.board.first_is_lost();
            LossVerdict { lost, recovers: duplicate && enough, holds: false }
        };
        let news = self.delivered_bytes(spec, delivered, last_arrived);
        let whole = || (news / spec.mss.0) as u32;
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
                // What is known to be lost now was sent after the recovery had begun: another
                // window of data (RFC 5681 section 4.3).
                if self.board.any_lost() && !spec.imitate.timeout_ends_in_open {
                    self.begin_sack_recovery(spec, news, advanced);
                } else {
                    if spec.imitate.slow_start_grows_twice && counts.is_none() {
                        self.grow_by_segments(spec, now, acked, self.una - from, rtt);
                    } else {
                        // Data that arrived during the recovery has opened no window, and does not
                        // now.
                        let news = acked.min(news);
                        let by_delivery = counts.is_some();
                        self.grow_by(spec, now, acked, counts.unwrap_or(news), by_delivery, rtt);
                    }
                }
            }
            CongestionState::Recovery => {
                if verdict.holds {
                    self.hold(spec, news);
                } else {
                    let safe = match spec.imitate.repair_is_safe {
                        true => repaired > 0,
                        false => advanced && verdict.lost == 0,
                    };
                    self.reduce(spec, news, safe);
                    if spec.imitate.prr_twice && advanced && duplicate {
                        self.reduce(spec, news, safe);
                    }
                }
                if advanced {
                    self.send_on_partial_ack(spec);
                }
            }
            CongestionState::Loss if self.una < self.recover => {
                if opens {
                    self.grow_once_or_twice(spec, now, acked, counts, whole, rtt);
                }
            }
            CongestionState::Loss if spec.imitate.timeout_ends_in_open => {
                self.state = CongestionState::Open;
                if self.una > self.recover {
                    let segments = self.una - self.recover;
                    self.grow_once_or_twice(spec, now, acked, counts, || segments, rtt);
                }
            }
            _ if verdict.recovers => {
                self.begin_sack_recovery(spec, news, advanced);
                // A partial ACK as well, once the first segment has left.
                if advanced && spec.imitate.prr_twice {
                    self.life.set_pending(owed::RESEND);
                    self.prr_again = news;
                }
            }
            _ if waits && advanced && duplicate => self.state = CongestionState::Disorder,
            _ => {
                let gap = match waits {
                    true => duplicate || !advanced && self.state == CongestionState::Disorder,
                    false => self.board.sacked() > 0,
                };
                let set = advanced && self.disorder_ends(spec);
                if opens && !set {
                    self.grow_once_or_twice(spec, now, acked, counts, whole, rtt);
                }
                if gap && self.state != CongestionState::Disorder {
                    self.begin_disorder(spec);
                }
                self.state = if gap { CongestionState::Disorder } else { CongestionState::Open };
            }
        }
        let partial = self.state == CongestionState::Recovery;
        let once = partial && spec.imitate.one_partial_ack_rearms;
        let waits = waits && duplicate && self.state == CongestionState::Disorder;
        if advanced && !(once && self.rearmed) && !waits {
            self.rearmed = partial;
            self.rearm(now);
        }
        if self.reordering.is_some() {
            self.end_ack(now);
        }
    }

    /// Whether an ACK that does not advance opens the window: `tcp_may_raise_cwnd` of Linux, where
    /// reordering is wide.
    fn opens_beyond_gap(&self, spec: &TcpSpec, ack: u32, delivered: u32) -> bool {
        let wide = |method: &Reordering| method.is_wide(self.threshold, spec.dupack_threshold);
        delivered > 0 && ack == self.una && self.reordering.as_deref().is_some_and(wide)
    }

    /// Step 4: what the ACK tells of is no reordering but loss. The ACK is the first to tell of
    /// `news` bytes.
    pub(super) fn begin_sack_recovery(&mut self, spec: &TcpSpec, news: u64, advanced: bool) {
        let mss = spec.mss.0;
        let again = self.board.first_is_resent() && spec.imitate.recovery_repeats_first;
        if again && !self.board.first_is_lost() {
            self.board.lose_first();
        } else if self.reordering.is_none() || self.begin_with_first(advanced) {
            self.board.mark_first_lost();
        }
        self.window.ssthresh = self.threshold_after_loss(spec, self.flight_at_loss(spec));
        // What was delivered before the recovery is no part of what it has to recover (RFC 9937
        // 6.1).
        let sacked = self.sacked_bytes(spec);
        self.prr = Prr::begin((self.flight(spec) + news).saturating_sub(sacked).max(mss));
        self.enter_recovery();
        self.reduce(spec, news, false);
        if again {
            self.life.set_pending(owed::RESEND);
        }
    }

    /// Sends what ns-3 sends on a partial ACK, whatever the window says. ns-3 looks for a
    /// retransmission that ends a full segment beyond the ACK: a shorter last segment is sent again
    /// though it may be under way.
    #[cold]
    fn send_on_partial_ack(&mut self, spec: &TcpSpec) {
        let under_way = self.board.first_is_resent();
        let short = self.payload(spec, self.una) < spec.mss.0;
        let sends = spec.imitate.partial_ack_sends && !under_way;
        if sends || spec.imitate.short_last_again && under_way && short {
            self.life.set_pending(owed::NEXT);
        }
    }

    /// Grows the window; with the ACK of several `segments` that ends slow start in congestion
    /// avoidance as well, as ns-3 does.
    #[inline(always)]
    fn grow_once_or_twice(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        acked: u64,
        delivered: Option<u64>,
        segments: impl FnOnce() -> u32,
        rtt: Option<Time>,
    ) {
        if spec.imitate.slow_start_grows_twice && delivered.is_none() {
            self.grow_by_segments(spec, now, acked, segments(), rtt);
        } else {
            self.grow(spec, now, acked, delivered, rtt);
        }
    }

    /// Returns the flight that recovery halves (step 4.2).
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

    /// Sets the window in recovery after an ACK that is the first to tell of `delivered` bytes.
    pub(super) fn reduce(&mut self, spec: &TcpSpec, delivered: u64, safe: bool) {
        if delivered > 0 {
            let (mss, pipe) = (spec.mss.0, self.pipe(spec));
            let ssthresh = self.window.ssthresh;
            self.window.cwnd = pipe + self.prr.on_ack(delivered, pipe, ssthresh, mss, safe);
        }
    }

    /// In recovery: as much leaves as has arrived.
    #[cold]
    fn hold(&mut self, spec: &TcpSpec, delivered: u64) {
        self.window.cwnd = self.pipe(spec) + delivered;
        self.prr.concede(delivered);
    }

    /// Bytes thought to be in the network.
    #[inline]
    pub(super) fn pipe(&self, spec: &TcpSpec) -> u64 {
        let whole = u64::from(self.board.pipe()) * spec.mss.0;
        match self.sent_short(spec) {
            0 => whole,
            short => whole - short * u64::from(self.board.times_in_pipe(self.segments - 1)),
        }
    }

    /// Bytes that the last segment lacks of a full one, once it was sent.
    #[inline]
    fn sent_short(&self, spec: &TcpSpec) -> u64 {
        if self.board.end() != self.segments {
            return 0;
        }
        u64::from(self.segments) * spec.mss.0 - self.size
    }

    /// Whether the last segment was sent and has arrived.
    #[inline]
    fn last_has_arrived(&self) -> bool {
        let sent = self.segments > 0 && self.board.end() == self.segments;
        sent && self.board.has_arrived(self.segments - 1)
    }

    /// The bytes of `delivered` segments, of which the ACK in hand is the first to tell; whether
    /// the last segment of all had arrived before.
    #[inline]
    fn delivered_bytes(&self, spec: &TcpSpec, delivered: u32, last_before: bool) -> u64 {
        let whole = u64::from(delivered) * spec.mss.0;
        match self.sent_short(spec) {
            short if short > 0 && !last_before && self.last_has_arrived() => whole - short,
            _ => whole,
        }
    }

    /// Bytes that the receiver holds beyond a gap.
    fn sacked_bytes(&self, spec: &TcpSpec) -> u64 {
        let whole = u64::from(self.board.sacked()) * spec.mss.0;
        match self.sent_short(spec) {
            short if short > 0 && self.board.is_sacked(self.segments - 1) => whole - short,
            _ => whole,
        }
    }

    /// `NextSeg` of RFC 6675: what is lost, then new data, then what is in doubt.
    #[inline]
    pub(super) fn next_by_pipe(&mut self, spec: &TcpSpec) -> Option<u32> {
        if self.life.has_output() {
            if self.life.take_pending(owed::NEXT) {
                return Some(self.next_whatever_the_window(spec));
            }
            if self.life.take_pending(owed::PROBE) {
                return self.next_probe(spec);
            }
        }
        let mut room = self.window.cwnd.saturating_sub(self.pipe(spec));
        let mut in_doubt = true;
        if self.reordering.is_some() {
            match self.choose(spec, room) {
                SendChoice::Only(next) => return next,
                SendChoice::Within { room: some, in_doubt: too } => (room, in_doubt) = (some, too),
            }
        }
        let all_sent = self.next == self.segments && spec.close == Close::Fin;
        let silent = all_sent && spec.imitate.fin_ends_open && self.state == CongestionState::Open;
        if room == 0 || silent {
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
        let doubtful = match spec.imitate.doubt_without_sack {
            true => self.board.next_unmarked(),
            false => self.board.next_doubtful(),
        };
        if let Some(seq) = doubtful {
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

    /// Returns the segment that ns-3 sends on a partial ACK.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Amount;

    /// Three full segments and one of 500 B are under way.
    #[test]
    fn a_short_last_segment_counts_its_bytes() {
        let initial_window = Amount::Packets(10);
        let spec = TcpSpec { initial_window, ..TcpSpec::default() };
        let mut sender = Sender::new(&spec, 3 * 1_460 + 500, Time::ZERO);
        sender.on_timer(&spec, Time::ZERO);
        sender.on_syn_ack(&spec, Time::from_us(10));
        while sender.poll_transmit(&spec, Time::from_us(10)).is_some() {}
        assert_eq!((sender.pipe(&spec), sender.sacked_bytes(&spec)), (4_880, 0));
        let mut blocks = SackBlocks::default();
        blocks.push(3, 4);
        let before = sender.last_has_arrived();
        sender.on_ack(&spec, Time::from_us(20), 0, &blocks, false);
        assert_eq!((sender.pipe(&spec), sender.sacked_bytes(&spec)), (4_380, 500));
        assert_eq!(sender.delivered_bytes(&spec, 1, before), 500);
    }
}
