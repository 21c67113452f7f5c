//! Changes of a reduction that are undone if it proves needless (RFC 4015 section 3.2, without its
//! pause).

use crate::transport::tcp::congestion::{Congestion, Window};
use crate::transport::tcp::sender::{CongestionState, Sender};

/// The sender's state before a recovery or a timeout, and what it has sent again since.
#[derive(Debug, Clone)]
pub(super) struct UndoSnapshot {
    window: Window,
    congestion: Congestion,
    /// The data for which the window had been reduced.
    reduced_until: u32,
    /// A timeout began it.
    by_timeout: bool,
    /// Congestion was echoed since: the reduction stands (RFC 4015 section 3.2, Linux's
    /// `tcp_fastretrans_alert`).
    congested: bool,
    /// The first segment outstanding when it began.
    pub from: u32,
    /// Segments sent again since.
    resent: u32,
    /// Segments sent again and not reported as duplicates.
    unproven: u32,
}

impl UndoSnapshot {
    /// Remembers the sender as it is before a timeout, or a recovery.
    pub fn of(sender: &Sender, by_timeout: bool) -> UndoSnapshot {
        UndoSnapshot {
            window: sender.window,
            congestion: sender.congestion.clone(),
            reduced_until: sender.reduced_until,
            by_timeout,
            congested: false,
            from: sender.una,
            resent: 0,
            unproven: sender.board.resent(),
        }
    }

    /// A segment is sent again.
    pub fn on_resend(&mut self) {
        self.resent += 1;
        self.unproven += 1;
    }

    /// Counts `segments` that were sent again and are reported as duplicates.
    pub fn on_reports(&mut self, segments: u32) {
        self.unproven = self.unproven.saturating_sub(segments);
    }

    /// Everything that was sent again was a duplicate.
    pub fn is_needless(&self) -> bool {
        self.resent > 0 && self.unproven == 0
    }

    /// Congestion was echoed while this reduction stood for it.
    pub fn note_congestion(&mut self) {
        self.congested = true;
    }

    /// The recovery before this one was needless, and is counted as taken back: the window that it
    /// found is what this one found.
    pub fn inherit(&mut self, earlier: UndoSnapshot, sender: &mut Sender) {
        sender.counters.recoveries_undone += 1;
        if !earlier.congested {
            self.window.cwnd = self.window.cwnd.max(earlier.window.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(earlier.window.ssthresh);
            self.congestion = earlier.congestion;
            self.reduced_until = earlier.reduced_until;
        }
    }

    /// The slow-start threshold was to be that at least.
    pub fn raise_threshold(&mut self, threshold: u64) {
        self.window.ssthresh = self.window.ssthresh.max(threshold);
    }

    /// Takes the reduction of a recovery back and counts it. One that goes on has other holes to
    /// repair, and ends with the window that it found. Returns the threshold that it found, for
    /// then.
    pub fn put_window_back(self, sender: &mut Sender) -> u64 {
        sender.counters.recoveries_undone += 1;
        if self.congested {
            return 0;
        }
        sender.congestion.take_back(&self.congestion);
        sender.reduced_until = self.reduced_until;
        if sender.state == CongestionState::Recovery {
            sender.window.ssthresh = sender.window.ssthresh.max(self.window.cwnd);
        } else {
            sender.window.cwnd = sender.window.cwnd.max(self.window.cwnd);
        }
        self.window.ssthresh
    }

    /// Takes the reduction back and counts it: window and threshold are put back, and what the
    /// congestion control computes of them. Returns true where something was being repaired:
    /// nothing is lost any more.
    pub fn put_back(self, sender: &mut Sender) -> bool {
        if !self.congested {
            sender.window.cwnd = sender.window.cwnd.max(self.window.cwnd);
            sender.window.ssthresh = sender.window.ssthresh.max(self.window.ssthresh);
            sender.congestion.take_back(&self.congestion);
            // The data in flight has not had its reduction after all: the next loss is to have one.
            sender.reduced_until = self.reduced_until;
        }
        if self.by_timeout {
            sender.counters.timeouts_undone += 1;
        } else {
            sender.counters.recoveries_undone += 1;
        }
        let repaired = matches!(sender.state, CongestionState::Recovery | CongestionState::Loss);
        if repaired {
            sender.board.forget_losses();
            sender.state = CongestionState::Disorder;
        }
        repaired
    }
}

/// Notes that congestion was echoed. Where the window has been reduced for that, no earlier
/// reduction is put back.
pub(super) fn note_echo(before: &mut Option<UndoSnapshot>, reduces: bool) {
    if reduces {
        *before = None;
    } else if let Some(before) = before {
        before.note_congestion();
    }
}
