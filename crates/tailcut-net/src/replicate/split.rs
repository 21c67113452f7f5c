//! Splitting in the application (an alternative design of TinyFlow, section III-C): a large flow is sent as a
//! sequence of small ones, one after another, each on a connection with a source port of its own, so that ECMP
//! gives each a path of its own without any change to switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use crate::component::SpecError;

/// Parameters of splitting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Split {
    /// Larger flows than this are split: the application knows how much it will send.
    pub threshold: Bytes,
    /// Bytes of each piece (TinyFlow: 10 KB).
    pub piece: Bytes,
}

impl Default for Split {
    fn default() -> Self {
        Split { threshold: Bytes(100_000), piece: Bytes(10_000) }
    }
}

impl Split {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.piece == Bytes(0) {
            let message = "piece = \"0B\": a piece carries at least a byte";
            return Err(SpecError::new("split-piece", "piece", message));
        }
        if self.piece > self.threshold {
            let message = format!(
                "piece = \"{}\" is more than threshold = \"{}\": some flows would be split into one piece",
                self.piece, self.threshold
            );
            return Err(SpecError::new("split-piece", "piece", message)
                .hint("write a threshold of at least one piece"));
        }
        Ok(())
    }

    /// Whether a flow of so many bytes is split.
    pub fn applies(&self, bytes: u64) -> bool {
        bytes > self.threshold.0
    }
}
