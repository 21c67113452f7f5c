//! Drop-tail: first in, first out, with a fixed limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Never, PortContext, PortQueue, QueueKind, Ties, check_limit};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of a drop-tail queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DropTail {
    /// Most that may wait behind the packet in transmission, which is not counted (RepFlow: 100
    /// packets; TinyFlow: 25; pFabric: 36 KB). ACKs count too.
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
}

impl Default for DropTail {
    fn default() -> Self {
        DropTail { limit: Limit::AtMost(Amount::Packets(100)), ties: Ties::default() }
    }
}

impl QueueKind for DropTail {
    fn check(&self) -> Result<(), SpecError> {
        check_limit("drop-tail-limit", "limit", self.limit)
    }

    fn limit(&self) -> Limit {
        self.limit
    }
    fn ties(&self) -> Ties {
        self.ties
    }
}

impl PortQueue for DropTail {
    type Admission = Never;
    type Schedule = Never;

    fn admission(&self, _: &PortContext) -> Option<Never> {
        None
    }
    fn schedule(&self, _: &PortContext) -> Option<Never> {
        None
    }
}
