//! A threshold that grows to the largest reordering seen, as Linux's did before RACK
//! (`tcp_reordering`).
//!
//! Once a path has been seen to reorder, holes are repaired one by one from the first, as in Linux
//! before 2.6.24, and reductions are taken back when timestamps or duplicate reports prove them
//! needless (RFC 3522, 3708, 4015). RFC 6675 would send again every hole that the threshold
//! condemns. A retransmission that is overtaken may be late as well: it takes the timer to call it
//! lost or that much reordering.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::holes::{Extents, Holes};
use super::undo::{self, UndoSnapshot};
use super::{LossDetector, LossVerdict, Method, Parameters, check_max, judge_by_count};
use crate::component::SpecError;
use crate::packet::SackBlocks;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::scoreboard::Scoreboard;
use crate::transport::tcp::sender::{CongestionState, Sender};

/// Parameters of the adaptive threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveSpec {
    /// The largest threshold (Linux: 300).
    pub max: u32,
    /// Take a reduction back when duplicate reports or timestamps prove every retransmission of the
    /// recovery needless.
    pub undo: bool,
}

impl Default for AdaptiveSpec {
    fn default() -> Self {
        AdaptiveSpec { max: 300, undo: true }
    }
}

impl Parameters for AdaptiveSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_max(self.max)
    }
}

impl Method for AdaptiveSpec {
    type State = Adaptive;

    fn new_state(&self) -> Adaptive {
        Adaptive {
            max: self.max,
            undoes: self.undo,
            reorders: false,
            before: None,
            reported: false,
            echoed: None,
            resending_since: None,
            resent: VecDeque::new(),
            holes: Holes::default(),
        }
    }
}

/// The threshold of one connection.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Adaptive {
    max: u32,
    undoes: bool,
    /// The path reorders: holes are repaired one by one from now on.
    reorders: bool,
    /// State before the last recovery or timeout, should it turn out to be spurious.
    before: Option<UndoSnapshot>,
    /// The ACK in hand has a duplicate report.
    reported: bool,
    /// The end of the tick whose timestamp the ACK echoes.
    echoed: Option<Time>,
    /// The departure of the first retransmission that is not yet settled.
    resending_since: Option<Time>,
    /// Retransmissions of this recovery in their order, with the end of what had been sent when
    /// they left.
    resent: VecDeque<(u32, u32)>,
    holes: Holes,
}

impl Extents for Adaptive {
    /// The segments beyond it that have arrived. Linux counts the holes among them in.
    fn extent(&self, board: &Scoreboard, seq: u32) -> u32 {
        board.sacked_end() - seq - 1
    }

    fn learn(&mut self, extent: u32, threshold: u32) -> u32 {
        self.reach(extent + 1, threshold)
    }

    fn was_duplicate(&mut self, seq: u32) {
        if let Some(before) = self.before.as_mut().filter(|before| seq >= before.from) {
            before.on_reports(1);
        }
    }
}

impl Adaptive {
    /// A hole so many segments below the highest that had arrived was reordering: the new
    /// threshold.
    fn reach(&mut self, distance: u32, threshold: u32) -> u32 {
        self.reorders |= distance > threshold;
        threshold.max(distance.min(self.max))
    }

    /// Remembers what is about to change.
    fn remember(&mut self, sender: &Sender, timeout: bool) {
        self.before = self.undoes.then(|| UndoSnapshot::of(sender, timeout));
    }

    /// A retransmission that `threshold` segments first sent after it have overtaken, now that
    /// everything the receiver holds lies below `sacked_end`.
    fn overtaken(&mut self, sacked_end: u32, threshold: u32) -> Option<u32> {
        let &(seq, end) = self.resent.front()?;
        if sacked_end < end.saturating_add(threshold) {
            return None;
        }
        self.resent.pop_front();
        Some(seq)
    }

    /// Judges an ACK once reordering has been seen.
    fn judge_one_by_one(&self, sender: &mut Sender, spec: &TcpSpec, holds: bool) -> LossVerdict {
        let recovers = sender.board.sacked() >= sender.threshold_in_reach(spec);
        let lost = match sender.state {
            CongestionState::Recovery if !holds => mark_one_by_one(sender),
            _ => 0,
        };
        LossVerdict { lost, recovers, holds }
    }

    /// In recovery: a retransmission is lost when as much of what was first sent after it has
    /// arrived as the threshold asks.
    fn mark_lost_again(&mut self, sender: &mut Sender) -> u32 {
        if sender.state != CongestionState::Recovery {
            return 0;
        }
        let (sacked_end, threshold) = (sender.board.sacked_end(), sender.threshold);
        let mut lost = 0;
        while let Some(seq) = self.overtaken(sacked_end, threshold) {
            lost += u32::from(sender.board.lose_again(seq));
        }
        lost
    }

    /// Takes the last recovery or timeout back if it proves needless: by reports of all its
    /// retransmissions as duplicates, or because an ACK that advances echoes what was sent before
    /// the first of them. While that recovery has holes left it is not ended, for it would begin
    /// anew at the next ACK: true, and no more is taken for lost.
    fn take_back(&mut self, sender: &mut Sender, from: u32, duplicate: bool) -> bool {
        let advanced = sender.una > from;
        let recovering = sender.state == CongestionState::Recovery;
        let undecided = recovering || sender.state == CongestionState::Loss;
        let resent = sender.board.resent();
        if !undecided && resent == 0 {
            self.resending_since = None;
        }
        let Some(before) = &self.before else { return false };
        let needless = self.reported && before.is_needless();
        let original = match (self.resending_since, self.echoed) {
            (Some(since), Some(echoed)) => echoed <= since,
            (since, _) => since.is_none(),
        };
        let late = undecided && advanced && original;
        if !(late || needless) {
            return false;
        }
        if late && recovering {
            let distance = sender.board.sacked_end().saturating_sub(from);
            sender.threshold = self.reach(distance, sender.threshold);
            let done = sender.una >= sender.recover || resent == 0 && sender.board.span() == 0;
            if !done && !needless {
                sender.board.forget_losses();
                return true;
            }
        }
        self.restore(sender, duplicate);
        false
    }

    fn restore(&mut self, sender: &mut Sender, duplicate: bool) {
        let Some(before) = self.before.take() else { return };
        if before.put_back(sender) {
            sender.duplicates = u32::from(duplicate);
        }
    }
}

/// In recovery: of the holes that the threshold condemns the first is lost, and all of them once
/// something has arrived that was sent after recovery began.
fn mark_one_by_one(sender: &mut Sender) -> u32 {
    if sender.board.sacked() < sender.threshold {
        0
    } else if sender.board.sacked_end() > sender.recover {
        sender.board.mark_lost(sender.threshold)
    } else {
        sender.board.mark_lost_below(sender.una + 1)
    }
}

impl LossDetector for Adaptive {
    fn congestion_echoed(&mut self, reduces: bool) {
        undo::note_echo(&mut self.before, reduces);
    }

    fn note_echo(&mut self, until: Time) {
        self.echoed = Some(until);
    }

    fn before_ack(
        &mut self,
        sender: &mut Sender,
        _: Time,
        ack: u32,
        blocks: &SackBlocks,
    ) -> SackBlocks {
        let mut holes = std::mem::take(&mut self.holes);
        let (blocks, reported) = holes.learn(self, sender, ack, blocks);
        (self.holes, self.reported) = (holes, reported);
        blocks
    }

    fn detect_losses(
        &mut self,
        sender: &mut Sender,
        spec: &TcpSpec,
        _: Time,
        from: u32,
        duplicate: bool,
    ) -> LossVerdict {
        let holds = self.take_back(sender, from, duplicate);
        let again = self.mark_lost_again(sender);
        let verdict = if self.reorders {
            self.judge_one_by_one(sender, spec, holds)
        } else {
            let threshold = sender.threshold_in_reach(spec);
            judge_by_count(sender, threshold, duplicate)
        };
        LossVerdict { lost: again + verdict.lost, holds, ..verdict }
    }

    fn recovery_begins(&mut self, sender: &Sender, advanced: bool) -> bool {
        self.remember(sender, false);
        !(advanced && self.reorders)
    }

    fn on_send(&mut self, sender: &mut Sender, seq: u32, again: bool, now: Time) {
        if again {
            self.resent.push_back((seq, sender.board.end()));
            self.resending_since.get_or_insert(now);
            if let Some(before) = &mut self.before {
                before.on_resend();
            }
        }
    }

    /// Perhaps for a threshold that nothing reaches, so that it starts anew. The timeout may be
    /// taken back unless something was sent again before it, whose fate it tells.
    fn timeout_begins(&mut self, sender: &mut Sender, spec: &TcpSpec) {
        self.resent.clear();
        self.resending_since = None;
        self.before = None;
        if !sender.board.any_ever_resent() {
            self.remember(sender, true);
        }
        sender.threshold = sender.threshold.min(spec.dupack_threshold);
    }
}
