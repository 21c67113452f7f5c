//! Where a sender that expects reordering departs from RFC 6675: thresholds that move.

use super::{CongestionState, Sender};
use tailcut_engine::Time;

use crate::packet::SackBlocks;
use crate::transport::tcp::reordering::{split, Method};
use crate::transport::tcp::TcpSpec;

/// What a sender that expects reordering makes of an ACK.
pub(super) struct Verdict {
    /// Segments that it newly takes for lost.
    pub lost: u32,
    /// Outside recovery: one is to begin.
    pub recovers: bool,
    /// In recovery: one segment leaves for each that arrived, for this ACK speaks against a loss.
    pub holds: bool,
}

impl Sender {
    /// What an ACK says of reordering, before the scoreboard hears of it. Returns its blocks without a duplicate report.
    #[cold]
    pub(super) fn learn(&mut self, now: Time, ack: u32, blocks: &SackBlocks) -> SackBlocks {
        if self.tells_by_time() {
            return self.rack_learn(now, ack, blocks);
        }
        let (duplicate, blocks) = split(ack, blocks);
        let Some(reordering) = &mut self.reordering else { return blocks };
        let mut threshold = self.threshold;
        if let Some((start, end)) = duplicate {
            self.counters.duplicates_reported += u64::from(end - start);
            for seq in start..end {
                threshold = reordering.was_duplicate(seq, threshold);
            }
        }
        let board = &self.board;
        board.for_each_filled(ack, &blocks, |seq, resent| {
            let extent = reordering.extent(board, seq);
            threshold = reordering.filled(seq, resent, extent, threshold);
        });
        if let Method::Ncr(ncr) = &mut reordering.method {
            // Steps I.3 and E.5: whatever limited transmit has sent counts, so that about a window must have left.
            let undecided = matches!(self.state, CongestionState::Open | CongestionState::Disorder);
            if undecided && !blocks.is_empty() {
                threshold = ncr.threshold(self.board.end() - ack.max(self.una));
            }
        }
        self.threshold = threshold;
        blocks
    }

    /// What to make of the ACK in hand, once the scoreboard has heard it. `from` is the first segment that was
    /// outstanding before; `duplicate` says that it tells of news beyond a gap. A retransmission that is overtaken may
    /// be late as well: it takes the timer to call it lost or, under the adaptive threshold, that much reordering.
    #[cold]
    pub(super) fn judge(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        from: u32,
        reported_before: u64,
        duplicate: bool,
    ) -> Verdict {
        if self.tells_by_time() {
            return self.rack_judge(spec, now, from);
        }
        let reported = self.counters.duplicates_reported > reported_before;
        let holds = self.take_back(from, reported, duplicate);
        let again = self.mark_lost_again();
        if self.repairs_one_by_one() {
            return self.judge_one_by_one(spec, holds, again);
        }
        let threshold = self.threshold_in_reach(spec);
        let lost = again + self.board.mark_lost(threshold);
        let enough = self.duplicates >= threshold || self.board.first_is_lost();
        Verdict { lost, recovers: duplicate && enough, holds }
    }

    /// The threshold for the ACK in hand. Where nothing more can be sent, so many duplicate ACKs may never come.
    #[cold]
    pub(super) fn threshold_in_reach(&self, spec: &TcpSpec) -> u32 {
        if self.reordering.as_ref().is_some_and(|r| matches!(r.method, Method::Ncr(_))) {
            // A share of what is in flight is always in reach.
            return self.threshold;
        }
        let more = self.next < self.segments
            && self.flight(spec) + self.payload(spec, self.next) <= spec.receive_window.0;
        if more {
            return self.threshold;
        }
        let outstanding = self.board.end() - self.una;
        self.threshold.min((outstanding / 2).max(spec.dupack_threshold))
    }

    /// New data is acknowledged outside recovery. True where that ends reordering under NCR, which then goes on with
    /// the former flight as its threshold and bursts no further than that (steps T.2 and T.3).
    #[inline]
    pub(super) fn reordering_ends(&mut self, spec: &TcpSpec) -> bool {
        self.state == CongestionState::Disorder && self.reordering.is_some() && self.end_ncr(spec)
    }

    #[cold]
    fn end_ncr(&mut self, spec: &TcpSpec) -> bool {
        let (flight, end) = (self.flight(spec), self.board.end());
        let Some(Method::Ncr(ncr)) = self.reordering.as_mut().map(|r| &mut r.method) else {
            return false;
        };
        ncr.go_on(end);
        self.window.cwnd = (flight + spec.mss.0).min(ncr.flight_before);
        self.window.ssthresh = ncr.flight_before;
        true
    }

    /// The first duplicate ACK has arrived (steps I.1 and I.2).
    #[inline]
    pub(super) fn begin_disorder(&mut self, spec: &TcpSpec) {
        if self.reordering.is_some() {
            self.begin_ncr(spec);
        }
    }

    #[cold]
    fn begin_ncr(&mut self, spec: &TcpSpec) {
        let (flight, end) = (self.flight(spec), self.board.end());
        if let Some(Method::Ncr(ncr)) = self.reordering.as_mut().map(|r| &mut r.method) {
            ncr.begin(flight.max(2 * spec.mss.0), end);
        }
    }

    /// Bytes that may leave though the window has room, while duplicate ACKs are not yet taken for loss (step E.2).
    #[cold]
    pub(super) fn restrained(&self, spec: &TcpSpec, room: u64) -> u64 {
        match self.reordering.as_ref().map(|r| &r.method) {
            Some(Method::Ncr(ncr)) if self.state == CongestionState::Disorder => {
                let former = ncr.flight_before.saturating_sub(self.pipe(spec));
                let skipped = u64::from(ncr.skipped(self.board.end())) * spec.mss.0;
                room.min(former).saturating_sub(skipped)
            }
            _ => room,
        }
    }
}
