//! Queues of switch ports: which packet is admitted, marked or dropped.
//!
//! A new discipline is one file here and one line in [`QueueSpec`].

pub mod drop_tail;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue of every switch port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueSpec {
    /// First in, first out; a packet that finds the queue full is dropped.
    DropTail(drop_tail::DropTail),
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(drop_tail::DropTail::default())
    }
}
