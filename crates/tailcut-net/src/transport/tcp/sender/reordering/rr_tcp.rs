//! RR-TCP (Zhang, Karp, Floyd, Peterson: "RR-TCP: A Reordering-Robust TCP with DSACK", ICNP 2003):
//! the threshold that would have spared a given share of the spurious recoveries seen so far. The
//! share is fixed here; the paper's further variants trade it against timeouts. A recovery whose
//! retransmissions are all reported as duplicates was a false one: the window is restored.

use std::collections::{BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::holes::{Extents, Holes};
use super::undo::UndoSnapshot;
use super::{LossDetector, LossVerdict, Method, Parameters, check_max, judge_by_count};
use crate::component::SpecError;
use crate::packet::SackBlocks;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::scoreboard::Scoreboard;
use crate::transport::tcp::sender::{CongestionState, Sender};

/// Parameters of RR-TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RrTcpSpec {
    /// Share of the reordering seen that is not to be taken for loss.
    pub percentile: f64,
    /// The largest threshold.
    pub max: u32,
    /// Restore the window when duplicate reports prove every retransmission of a recovery needless.
    pub undo: bool,
}

impl Default for RrTcpSpec {
    fn default() -> Self {
        RrTcpSpec { percentile: 0.9, max: 300, undo: true }
    }
}

impl Parameters for RrTcpSpec {
    fn check(&self) -> Result<(), SpecError> {
        if !(self.percentile > 0.0 && self.percentile <= 1.0) {
            let message =
                format!("percentile = {}: a share lies above 0 and is at most 1", self.percentile);
            return Err(SpecError::new("rr-tcp-percentile", "reordering.percentile", message)
                .hint("write for example 0.9"));
        }
        check_max(self.max)
    }
}

impl Method for RrTcpSpec {
    type State = RrTcp;

    fn new_state(&self) -> RrTcp {
        RrTcp {
            spec: self.clone(),
            seen: vec![],
            total: 0,
            least: None,
            holes: Holes::default(),
            threshold: 0,
            recoveries: VecDeque::new(),
            reported: false,
        }
    }
}

/// Recoveries that may turn out to be false: a window of data later the reports of all are in.
const REMEMBERED: usize = 8;

/// A recovery that may turn out to be false.
#[derive(Debug, Clone)]
struct Doubtful {
    before: UndoSnapshot,
    /// Whether it has sent anything again.
    resent: bool,
    /// Segments sent again that nobody has reported as duplicates.
    unproven: BTreeSet<u32>,
}

impl Doubtful {
    /// Everything that was sent again was a duplicate.
    fn is_false(&self) -> bool {
        self.resent && self.unproven.is_empty()
    }
}

/// The extents seen so far.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct RrTcp {
    spec: RrTcpSpec,
    /// Number of times that each extent was seen; the last entry holds all from `max` on.
    seen: Vec<u32>,
    total: u32,
    /// The threshold to start from, known from the first call.
    least: Option<u32>,
    holes: Holes,
    /// The slow-start threshold that returns when the recovery in hand is over.
    threshold: u64,
    /// State before the last recoveries, should they turn out to be false, the oldest first.
    recoveries: VecDeque<Doubtful>,
    /// The ACK in hand has a duplicate report.
    reported: bool,
}

impl Extents for RrTcp {
    fn extent(&self, board: &Scoreboard, seq: u32) -> u32 {
        board.sacked_beyond(seq)
    }

    /// The threshold with a hole of this extent among those seen.
    fn learn(&mut self, extent: u32, threshold: u32) -> u32 {
        let least = *self.least.get_or_insert(threshold);
        let at = extent.min(self.spec.max) as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, 0);
        }
        self.seen[at] += 1;
        self.total += 1;
        let spared = (f64::from(self.total) * self.spec.percentile).ceil() as u32;
        let mut so_far = 0;
        let percentile = self.seen.iter().position(|&count| {
            so_far += count;
            so_far >= spared
        });
        let percentile = percentile.unwrap_or(self.seen.len() - 1) as u32;
        least.max((percentile + 1).min(self.spec.max))
    }

    fn was_duplicate(&mut self, seq: u32) {
        // The last sending is what is reported.
        for recovery in self.recoveries.iter_mut().rev() {
            if recovery.unproven.remove(&seq) {
                return;
            }
        }
    }
}

impl LossDetector for RrTcp {
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

    fn congestion_echoed(&mut self, reduces: bool) {
        if reduces {
            self.recoveries.clear();
        }
        self.threshold = 0;
        self.recoveries.iter_mut().for_each(|recovery| recovery.before.note_congestion());
    }

    fn detect_losses(
        &mut self,
        sender: &mut Sender,
        spec: &TcpSpec,
        _: Time,
        _: u32,
        duplicate: bool,
    ) -> LossVerdict {
        if self.reported {
            self.restore(sender);
        }
        if matches!(sender.state, CongestionState::Open | CongestionState::Disorder) {
            let returns = std::mem::take(&mut self.threshold);
            sender.window.ssthresh = sender.window.ssthresh.max(returns);
        }
        let threshold = sender.threshold_in_reach(spec);
        judge_by_count(sender, threshold, duplicate)
    }

    fn recovery_begins(&mut self, sender: &Sender, _: bool) -> bool {
        if !self.spec.undo {
            return true;
        }
        if self.recoveries.len() == REMEMBERED {
            self.recoveries.pop_front();
        }
        let mut before = UndoSnapshot::of(sender, false);
        before.raise_threshold(std::mem::take(&mut self.threshold));
        self.recoveries.push_back(Doubtful { before, resent: false, unproven: BTreeSet::new() });
        true
    }

    fn on_send(&mut self, _: &mut Sender, seq: u32, again: bool, _: Time) {
        if let Some(recovery) = self.recoveries.back_mut().filter(|_| again) {
            recovery.resent = true;
            recovery.unproven.insert(seq);
        }
    }

    /// Only fast retransmits are taken back.
    fn timeout_begins(&mut self, _: &mut Sender, _: &TcpSpec) {
        self.recoveries.clear();
        self.threshold = 0;
    }
}

impl RrTcp {
    /// Takes back the recoveries that are false. One after which others have begun gives its window
    /// to the next: that one found it reduced.
    fn restore(&mut self, sender: &mut Sender) {
        while let Some(at) = self.recoveries.iter().position(Doubtful::is_false) {
            let Some(Doubtful { before, .. }) = self.recoveries.remove(at) else { return };
            match self.recoveries.get_mut(at) {
                Some(next) => next.before.inherit(before, sender),
                None => self.threshold = before.put_window_back(sender),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_spares_the_percentile_of_what_was_seen() {
        let mut histogram = RrTcpSpec::default().new_state();
        let thresholds: Vec<u32> =
            (1..=20).map(|extent| Extents::learn(&mut histogram, extent, 3)).collect();
        // Of 20 extents, 18 are at most 18: 19 duplicate ACKs spare them.
        assert_eq!(thresholds[19], 19);
        assert_eq!(thresholds[0], 3);
    }

    #[test]
    fn rare_reordering_does_not_raise_the_threshold() {
        let mut histogram = RrTcpSpec::default().new_state();
        assert!((0..18).all(|_| Extents::learn(&mut histogram, 4, 3) == 5));
        assert_eq!(Extents::learn(&mut histogram, 100, 3), 5);
    }
}
