//! Recovery under the adaptive threshold once a path has been seen to reorder: holes are repaired one by one from the
//! first, as in Linux before 2.6.24, and reductions are taken back when timestamps or duplicate reports prove them
//! needless (RFC 3522, 3708, 4015). RFC 6675 would send again every hole that the threshold condemns.

use tailcut_engine::Time;

use super::reordering::Verdict;
use super::{CongestionState, Sender};
use crate::transport::tcp::options::clock;
use crate::transport::tcp::reordering::adaptive::{Adaptive, Undo};
use crate::transport::tcp::reordering::Method;
use crate::transport::tcp::TcpSpec;

impl Sender {
    fn adaptive(&mut self) -> Option<&mut Adaptive> {
        match self.reordering.as_mut().map(|r| &mut r.method) {
            Some(Method::Adaptive(adaptive)) => Some(adaptive),
            _ => None,
        }
    }

    /// Whether reordering has been seen under the adaptive threshold.
    pub(super) fn repairs_one_by_one(&self) -> bool {
        let method = self.reordering.as_ref().map(|r| &r.method);
        matches!(method, Some(Method::Adaptive(adaptive)) if adaptive.reorders)
    }

    /// The ACK in hand echoes this timestamp.
    pub fn note_timestamp(&mut self, echoed: u32) {
        match self.reordering.as_mut().map(|r| &mut r.method) {
            Some(Method::Adaptive(adaptive)) => adaptive.echoed = Some(echoed),
            Some(Method::Rack(rack)) => rack.note_timestamp(echoed),
            _ => {}
        }
    }

    fn undo(&self, timeout: bool) -> Undo {
        Undo {
            window: self.window,
            reduced_until: self.reduced_until,
            congestion: self.congestion.clone(),
            from: self.una,
            timeout,
            resent: 0,
            unproven: self.board.resent(),
        }
    }

    /// A recovery is about to begin.
    #[cold]
    pub(super) fn remember_window(&mut self) {
        if self.tells_by_time() {
            return self.rack_remember();
        }
        let undo = self.undo(false);
        if let Some(adaptive) = self.adaptive() {
            adaptive.remember(undo);
        }
    }

    /// The timer has expired: perhaps for a threshold that nothing reaches, so that it starts anew. The timeout may be
    /// taken back unless something was sent again before it, whose fate it tells.
    #[cold]
    pub(super) fn expect_less(&mut self, spec: &TcpSpec) {
        if self.tells_by_time() {
            return self.rack_expect_less();
        }
        let undo = (!self.board.any_ever_resent()).then(|| self.undo(true));
        let Some(adaptive) = self.adaptive() else { return };
        adaptive.forget_retransmissions();
        adaptive.undo = None;
        if let Some(undo) = undo {
            adaptive.remember(undo);
        }
        self.threshold = self.threshold.min(spec.dupack_threshold);
    }

    /// Segment `seq` is sent again.
    #[cold]
    pub(super) fn note_retransmission(&mut self, seq: u32, now: Time) {
        let end = self.board.end();
        self.rack_resent();
        if let Some(adaptive) = self.adaptive() {
            adaptive.on_resend(seq, end, clock(now));
        }
    }

    /// What an ACK says once reordering has been seen.
    pub(super) fn judge_one_by_one(&mut self, spec: &TcpSpec, holds: bool, again: u32) -> Verdict {
        let recovers = self.board.sacked() >= self.threshold_in_reach(spec);
        let lost = match self.state {
            CongestionState::Recovery if !holds => again + self.mark_one_by_one(),
            _ => again,
        };
        Verdict { lost, recovers, holds }
    }

    /// In recovery: of the holes that the threshold condemns the first is lost, and all of them once something has
    /// arrived that was sent after recovery began.
    fn mark_one_by_one(&mut self) -> u32 {
        if self.board.sacked() < self.threshold {
            0
        } else if self.board.sacked_end() > self.recover {
            self.board.mark_lost(self.threshold)
        } else {
            self.board.mark_lost_below(self.una + 1)
        }
    }

    /// In recovery: a retransmission is lost when as much of what was first sent after it has arrived as the threshold asks.
    pub(super) fn mark_lost_again(&mut self) -> u32 {
        if self.state != CongestionState::Recovery {
            return 0;
        }
        let (sacked_end, threshold) = (self.board.sacked_end(), self.threshold);
        let mut lost = 0;
        while let Some(seq) = self.adaptive().and_then(|a| a.overtaken(sacked_end, threshold)) {
            lost += u32::from(self.board.lose_again(seq));
        }
        lost
    }

    /// Takes the last recovery or timeout back if it proves needless: by reports of all its retransmissions as
    /// duplicates, or because an ACK that advances echoes what was sent before the first of them. While that recovery
    /// has holes left it is not ended, for it would begin anew at the next ACK: true, and no more is taken for lost.
    pub(super) fn take_back(&mut self, from: u32, reported: bool, duplicate: bool) -> bool {
        let advanced = self.una > from;
        let recovering = self.state == CongestionState::Recovery;
        let undecided = recovering || self.state == CongestionState::Loss;
        let (resent, distance) =
            (self.board.resent(), self.board.sacked_end().saturating_sub(from));
        let threshold = self.threshold;
        let done = self.una >= self.recover || resent == 0 && self.board.span() == 0;
        let Some(adaptive) = self.adaptive() else { return false };
        if !undecided && resent == 0 {
            adaptive.resending_since = None;
        }
        let Some(undo) = &adaptive.undo else { return false };
        let needless = reported && undo.resent > 0 && undo.unproven == 0;
        let original = match (adaptive.resending_since, adaptive.echoed) {
            (Some(since), Some(echoed)) => echoed < since,
            (since, _) => since.is_none(),
        };
        let late = undecided && advanced && original;
        if !(late || needless) {
            return false;
        }
        if late && recovering {
            self.threshold = adaptive.learn(distance, threshold);
            if !done && !needless {
                self.board.forget_losses();
                return true;
            }
        }
        self.restore(duplicate);
        false
    }

    /// In recovery: as much leaves as has arrived.
    #[cold]
    pub(super) fn hold(&mut self, spec: &TcpSpec, delivered: u32) {
        let delivered = u64::from(delivered) * spec.mss.0;
        self.window.cwnd = self.pipe(spec) + delivered;
        self.prr.concede(delivered);
    }

    fn restore(&mut self, duplicate: bool) {
        let Some(undo) = self.adaptive().and_then(|adaptive| adaptive.undo.take()) else { return };
        self.window.cwnd = self.window.cwnd.max(undo.window.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(undo.window.ssthresh);
        self.congestion = undo.congestion;
        // What is in flight has not had its reduction after all: the next loss is to have one.
        self.reduced_until = undo.reduced_until;
        if undo.timeout {
            self.counters.timeouts_undone += 1;
        } else {
            self.counters.recoveries_undone += 1;
        }
        if matches!(self.state, CongestionState::Recovery | CongestionState::Loss) {
            self.board.forget_losses();
            self.duplicates = u32::from(duplicate);
            self.state = CongestionState::Disorder;
        }
    }
}
