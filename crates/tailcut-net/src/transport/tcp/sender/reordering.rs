//! Where a sender that expects reordering departs from RFC 6675: thresholds that move, recoveries that are undone.

use tailcut_engine::Time;

use super::{CongestionState, Sender};
use crate::packet::SackBlocks;
use crate::transport::tcp::reordering::{split, Method, Undo};
use crate::transport::tcp::TcpSpec;

/// The clock of the timestamp option.
fn stamp(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32
}

impl Sender {
    /// What an ACK says of reordering, before the scoreboard hears of it. Returns its blocks without a duplicate report.
    #[cold]
    pub(super) fn learn(&mut self, ack: u32, blocks: &SackBlocks) -> SackBlocks {
        let (duplicate, blocks) = split(ack, blocks);
        let Some(reordering) = &mut self.reordering else { return blocks };
        let mut threshold = self.threshold;
        if let Some((start, end)) = duplicate {
            self.counters.duplicates_reported += u64::from(end - start);
            for seq in start..end {
                threshold = reordering.was_duplicate(seq, threshold);
            }
        }
        self.board.for_each_filled(ack, &blocks, |seq, resent, extent| {
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

    /// A recovery is about to begin.
    #[cold]
    pub(super) fn remember(&mut self, now: Time) {
        let flight = self.una..self.board.end();
        let Some(reordering) = &mut self.reordering else { return };
        if let Method::Adaptive(adaptive) = &reordering.method {
            reordering.undo = adaptive.undo.then(|| Undo {
                window: self.window,
                congestion: self.congestion.clone(),
                flight,
                resent: 0,
                unproven: 0,
                began: Some(stamp(now)),
            });
        }
    }

    /// A segment was sent again.
    #[cold]
    pub(super) fn note_retransmission(&mut self) {
        if self.state != CongestionState::Recovery {
            return;
        }
        if let Some(undo) = self.reordering.as_mut().and_then(|r| r.undo.as_mut()) {
            undo.resent += 1;
            undo.unproven += 1;
        }
    }

    /// The ACK in hand echoes this timestamp.
    pub fn note_timestamp(&mut self, echoed: u32) {
        if let Some(reordering) = &mut self.reordering {
            reordering.echoed = Some(echoed);
        }
    }

    /// Takes the last recovery back if every retransmission in it is proven needless: by duplicate reports
    /// (RFC 3708), or because the first ACK that advances echoes what was sent before it began (RFC 3522, 4015).
    #[cold]
    pub(super) fn undo_if_spurious(&mut self, reported_before: u64, advanced: bool) {
        let recovering = self.state == CongestionState::Recovery;
        let Some(reordering) = &mut self.reordering else { return };
        let Some(undo) = &mut reordering.undo else { return };
        let reported = self.counters.duplicates_reported > reported_before;
        let proven = reported && undo.resent > 0 && undo.unproven == 0;
        let echoed_before = match (undo.began, reordering.echoed) {
            (Some(began), Some(echoed)) => recovering && advanced && echoed < began,
            _ => false,
        };
        if advanced {
            undo.began = None;
        }
        if !(proven || echoed_before) {
            return;
        }
        let Some(undo) = reordering.undo.take() else { return };
        self.window.cwnd = self.window.cwnd.max(undo.window.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(undo.window.ssthresh);
        self.congestion = undo.congestion;
        self.counters.recoveries_undone += 1;
        if recovering {
            self.board.forget_losses();
            self.duplicates = 0;
            self.state = CongestionState::Disorder;
        }
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
