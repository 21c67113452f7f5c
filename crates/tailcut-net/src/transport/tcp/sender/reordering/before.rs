//! What a reduction changes, should it prove needless (RFC 4015 section 3.2, without its pause).

use crate::transport::tcp::congestion::{Congestion, Window};
use crate::transport::tcp::sender::{CongestionState, Sender};

/// How a sender was before a recovery or a timeout, and what it has sent again since.
#[derive(Debug, Clone)]
pub(super) struct Before {
    window: Window,
    congestion: Congestion,
    /// What had had its reduction.
    reduced_until: u32,
    /// The first segment outstanding when it began.
    pub from: u32,
    /// Segments sent again since.
    resent: u32,
    /// Segments sent again and not reported as duplicates.
    unproven: u32,
}

impl Before {
    /// Now.
    pub fn of(sender: &Sender) -> Before {
        Before {
            window: sender.window,
            congestion: sender.congestion.clone(),
            reduced_until: sender.reduced_until,
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

    /// So many segments that were sent again are reported as duplicates.
    pub fn on_reports(&mut self, segments: u32) {
        self.unproven = self.unproven.saturating_sub(segments);
    }

    /// Everything that was sent again was a duplicate.
    pub fn is_needless(&self) -> bool {
        self.resent > 0 && self.unproven == 0
    }

    /// Puts back what the reduction changed. True where something was being repaired: nothing is lost any more.
    pub fn put_back(self, sender: &mut Sender) -> bool {
        sender.window.cwnd = sender.window.cwnd.max(self.window.cwnd);
        sender.window.ssthresh = sender.window.ssthresh.max(self.window.ssthresh);
        sender.congestion = self.congestion;
        // What is in flight has not had its reduction after all: the next loss is to have one.
        sender.reduced_until = self.reduced_until;
        let repaired = matches!(sender.state, CongestionState::Recovery | CongestionState::Loss);
        if repaired {
            sender.board.forget_losses();
            sender.state = CongestionState::Disorder;
        }
        repaired
    }
}
