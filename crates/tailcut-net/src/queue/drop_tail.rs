//! Drop-tail: first in, first out, a fixed limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Limit};

/// Parameters of a drop-tail queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DropTail {
    /// What may wait behind the packet being transmitted, which is not counted
    /// (RepFlow: 100 packets; TinyFlow: 25; pFabric: 36 KB). ACKs count too.
    pub limit: Limit,
}

impl Default for DropTail {
    fn default() -> Self {
        DropTail { limit: Limit::AtMost(Amount::Packets(100)) }
    }
}
