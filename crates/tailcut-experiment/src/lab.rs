//! The `[lab]` section.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel lab (`--on lab`). The simulator ignores this section, which is not part of a run's
/// identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabSpec {
    /// The fabric between the hosts: `engine` (the simulator's, in real time) or `kernel` (one
    /// network namespace per switch). `--lab-fabric` overrides it.
    pub fabric: String,
}

impl Default for LabSpec {
    fn default() -> Self {
        LabSpec { fabric: "engine".to_owned() }
    }
}
