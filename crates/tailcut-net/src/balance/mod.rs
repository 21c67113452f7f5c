//! Load balancing: which of the equal-cost egress ports a packet takes.
//!
//! A new balancer is one file here and one line in [`BalanceSpec`].

pub mod ecmp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How switches choose among equal-cost paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BalanceSpec {
    /// A hash of the five-tuple, salted per switch, picks the path of a flow.
    Ecmp {},
}

impl Default for BalanceSpec {
    fn default() -> Self {
        BalanceSpec::Ecmp {}
    }
}
