//! Replication: which connections carry a flow.
//!
//! A new way is one file here and one line in [`ReplicateSpec`].

pub mod repflow;
pub mod repsyn;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How flows are replicated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReplicateSpec {
    /// One connection carries the flow.
    #[default]
    None,
    /// Copies of short flows; the first to finish wins (RepFlow).
    Repflow(repflow::RepFlow),
    /// Several SYNs for short flows; data on the first connection to be established (RepNet).
    Repsyn(repsyn::RepSyn),
}
