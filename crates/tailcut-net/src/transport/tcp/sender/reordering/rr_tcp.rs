//! RR-TCP (Zhang, Karp, Floyd, Peterson: "RR-TCP: A Reordering-Robust TCP with DSACK",
//! ICNP 2003): the threshold that would have spared a given share of the
//! spurious recoveries seen so far. The share is fixed here; the paper's further variants trade it against timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::holes::{Extents, Holes};
use super::{check_max, judge_by_count, Method, Parameters, Verdict};
use crate::component::SpecError;
use crate::packet::SackBlocks;
use crate::transport::tcp::scoreboard::Scoreboard;
use crate::transport::tcp::sender::Sender;
use crate::transport::tcp::TcpSpec;

/// Parameters of RR-TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RrTcpSpec {
    /// Share of the reordering seen that is not to be taken for loss.
    pub percentile: f64,
    /// The largest threshold.
    pub max: u32,
}

impl Default for RrTcpSpec {
    fn default() -> Self {
        RrTcpSpec { percentile: 0.9, max: 300 }
    }
}

impl Parameters for RrTcpSpec {
    type State = RrTcp;

    fn check(&self) -> Result<(), SpecError> {
        if !(self.percentile > 0.0 && self.percentile <= 1.0) {
            let message =
                format!("percentile = {}: a share lies above 0 and is at most 1", self.percentile);
            return Err(SpecError::new("rr-tcp-percentile", "reordering.percentile", message)
                .hint("write for example 0.9"));
        }
        check_max(self.max)
    }

    fn start(&self) -> RrTcp {
        RrTcp { spec: self.clone(), seen: vec![], total: 0, least: None, holes: Holes::default() }
    }
}

/// The extents seen so far.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct RrTcp {
    spec: RrTcpSpec,
    /// How often each extent was seen; the last entry holds all from `max` on.
    seen: Vec<u32>,
    total: u32,
    /// The threshold to start from, known from the first call.
    least: Option<u32>,
    holes: Holes,
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
}

impl Method for RrTcp {
    fn learn(&mut self, sender: &mut Sender, _: Time, ack: u32, blocks: &SackBlocks) -> SackBlocks {
        let mut holes = std::mem::take(&mut self.holes);
        let (blocks, _) = holes.learn(self, sender, ack, blocks);
        self.holes = holes;
        blocks
    }

    fn judge(
        &mut self,
        sender: &mut Sender,
        spec: &TcpSpec,
        _: Time,
        _: u32,
        duplicate: bool,
    ) -> Verdict {
        let threshold = sender.threshold_in_reach(spec);
        judge_by_count(sender, threshold, duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_spares_the_percentile_of_what_was_seen() {
        let mut histogram = RrTcpSpec::default().start();
        let thresholds: Vec<u32> =
            (1..=20).map(|extent| Extents::learn(&mut histogram, extent, 3)).collect();
        // Of 20 extents, 18 are at most 18: 19 duplicate ACKs spare them.
        assert_eq!(thresholds[19], 19);
        assert_eq!(thresholds[0], 3);
    }

    #[test]
    fn rare_reordering_does_not_raise_it() {
        let mut histogram = RrTcpSpec::default().start();
        assert!((0..18).all(|_| Extents::learn(&mut histogram, 4, 3) == 5));
        assert_eq!(Extents::learn(&mut histogram, 100, 3), 5);
    }
}
