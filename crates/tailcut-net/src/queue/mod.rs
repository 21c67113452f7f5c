//! Queues of switch ports: which packet is admitted, marked or dropped.
//!
//! A new discipline is one file here and one line in [`QueueSpec`].

pub mod drop_tail;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Limit};
use crate::component::SpecError;

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

impl QueueSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a queue with them could hold nothing.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            QueueSpec::DropTail(spec) => check_limit("drop-tail-limit", "limit", spec.limit),
        }
    }
}

/// Checks that a queue holds something.
pub(crate) fn check_limit(code: &'static str, field: &str, limit: Limit) -> Result<(), SpecError> {
    match limit {
        Limit::AtMost(amount @ (Amount::Packets(0) | Amount::Bytes(0))) => {
            let message = format!("{field} = \"{amount}\": a queue holds at least one packet");
            Err(SpecError::new(code, field, message).hint("write for example \"100packets\", or \"unlimited\""))
        }
        _ => Ok(()),
    }
}
