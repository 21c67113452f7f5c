//! A threshold that grows to the largest reordering seen, as Linux's did before RACK (`tcp_reordering`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_max;
use crate::component::SpecError;

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

#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Adaptive {
    max: u32,
    pub undo: bool,
}

impl Adaptive {
    pub fn new(spec: &AdaptiveSpec) -> Adaptive {
        Adaptive { max: spec.max, undo: spec.undo }
    }

    /// A hole of this extent was reordering: one more duplicate ACK would be needed to call it a loss.
    pub fn learn(&mut self, extent: u32, threshold: u32) -> u32 {
        threshold.max((extent + 1).min(self.max))
    }
}
