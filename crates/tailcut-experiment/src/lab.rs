//! What the kernel lab is told of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel lab (`--on lab`). The simulator takes no notice of it, so that it does not enter what a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabSpec {
    /// What lies between the hosts: `engine`, the simulator's fabric in real time, or `kernel`, with a network namespace for each
    /// switch. `--lab-fabric` goes before it.
    pub fabric: String,
}

impl Default for LabSpec {
    fn default() -> Self {
        LabSpec { fabric: "engine".to_owned() }
    }
}
