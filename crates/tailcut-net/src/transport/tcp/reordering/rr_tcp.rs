//! RR-TCP (Zhang, Karp, Floyd, Peterson: "RR-TCP: A Reordering-Robust TCP with DSACK",
//! ICNP 2003): the threshold that would have spared a given share of the
//! spurious recoveries seen so far. The share is fixed here; the paper's further variants trade it against timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_max;
use crate::component::SpecError;

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

impl RrTcpSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if !(self.percentile > 0.0 && self.percentile <= 1.0) {
            let message =
                format!("percentile = {}: a share lies above 0 and is at most 1", self.percentile);
            return Err(SpecError::new("rr-tcp-percentile", "reordering.percentile", message)
                .hint("write for example 0.9"));
        }
        check_max(self.max)
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
}

impl RrTcp {
    pub fn new(spec: &RrTcpSpec) -> RrTcp {
        RrTcp { spec: spec.clone(), seen: vec![], total: 0, least: None }
    }

    /// The threshold with a hole of this extent among those seen.
    pub fn learn(&mut self, extent: u32, threshold: u32) -> u32 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_spares_the_percentile_of_what_was_seen() {
        let mut histogram = RrTcp::new(&RrTcpSpec::default());
        let thresholds: Vec<u32> = (1..=20).map(|extent| histogram.learn(extent, 3)).collect();
        // Of 20 extents, 18 are at most 18: 19 duplicate ACKs spare them.
        assert_eq!(thresholds[19], 19);
        assert_eq!(thresholds[0], 3);
    }

    #[test]
    fn rare_reordering_does_not_raise_it() {
        let mut histogram = RrTcp::new(&RrTcpSpec::default());
        assert!((0..18).all(|_| histogram.learn(4, 3) == 5));
        assert_eq!(histogram.learn(100, 3), 5);
    }
}
