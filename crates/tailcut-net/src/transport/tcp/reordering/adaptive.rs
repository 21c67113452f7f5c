//! A threshold that grows to the largest reordering seen, as Linux's did before RACK (`tcp_reordering`).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_max;
use crate::component::SpecError;
use crate::transport::tcp::congestion::{Congestion, Window};

/// Parameters of the adaptive threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveSpec {
    /// The largest threshold (Linux: 300).
    pub max: u32,
    /// Take a reduction back when duplicate reports or timestamps prove every retransmission of the recovery needless.
    pub undo: bool,
}

impl Default for AdaptiveSpec {
    fn default() -> Self {
        AdaptiveSpec { max: 300, undo: true }
    }
}

impl AdaptiveSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        check_max(self.max)
    }
}

/// What a recovery or a timeout changed, should it turn out to be spurious.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Undo {
    pub window: Window,
    /// What had had its reduction.
    pub reduced_until: u32,
    pub congestion: Congestion,
    /// The first segment outstanding when it began.
    pub from: u32,
    /// A timeout began it.
    pub timeout: bool,
    /// Retransmissions since then.
    pub resent: u32,
    /// Retransmissions not reported as duplicates.
    pub unproven: u32,
}

#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Adaptive {
    max: u32,
    undoes: bool,
    /// The path reorders: holes are repaired one by one from now on.
    pub reorders: bool,
    pub undo: Option<Undo>,
    /// The timestamp that the ACK in hand echoes.
    pub echoed: Option<u32>,
    /// When the first of the retransmissions that are not yet settled left, on the clock of the timestamp option.
    pub resending_since: Option<u32>,
    /// Retransmissions of this recovery in their order, with the end of what had been sent when they left.
    resent: VecDeque<(u32, u32)>,
}

impl Adaptive {
    pub fn new(spec: &AdaptiveSpec) -> Adaptive {
        Adaptive {
            max: spec.max,
            undoes: spec.undo,
            reorders: false,
            undo: None,
            echoed: None,
            resending_since: None,
            resent: VecDeque::new(),
        }
    }

    /// A hole so many segments below the highest that had arrived was reordering: the new threshold.
    pub fn learn(&mut self, distance: u32, threshold: u32) -> u32 {
        self.reorders |= distance > threshold;
        threshold.max(distance.min(self.max))
    }

    /// Remembers what is about to change.
    pub fn remember(&mut self, undo: Undo) {
        self.undo = self.undoes.then_some(undo);
    }

    /// The receiver had segment `seq` already.
    pub fn was_duplicate(&mut self, seq: u32) {
        if let Some(undo) = self.undo.as_mut().filter(|undo| seq >= undo.from) {
            undo.unproven = undo.unproven.saturating_sub(1);
        }
    }

    /// Segment `seq` leaves again at `stamp`, when everything below `end` has been sent.
    pub fn on_resend(&mut self, seq: u32, end: u32, stamp: u32) {
        self.resent.push_back((seq, end));
        self.resending_since.get_or_insert(stamp);
        if let Some(undo) = &mut self.undo {
            undo.resent += 1;
            undo.unproven += 1;
        }
    }

    /// A retransmission that `threshold` segments first sent after it have overtaken, now that everything the
    /// receiver holds lies below `sacked_end`.
    pub fn overtaken(&mut self, sacked_end: u32, threshold: u32) -> Option<u32> {
        let &(seq, end) = self.resent.front()?;
        if sacked_end < end.saturating_add(threshold) {
            return None;
        }
        self.resent.pop_front();
        Some(seq)
    }

    /// A timeout: what was sent again before is not followed any further.
    pub fn forget_retransmissions(&mut self) {
        self.resent.clear();
        self.resending_since = None;
    }
}
