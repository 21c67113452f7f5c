//! Transports: sans-I/O state machines that take (now, packet or timer) and
//! yield packets and deadlines. None sees the event queue.
//!
//! A new transport is one file (or folder) here and one line in [`TransportSpec`].

pub mod tcp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::SpecError;

/// The transport that carries every flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransportSpec {
    /// TCP: NewReno (RFC 5681, 6582), or SACK with PRR (RFC 6675, 6937).
    Tcp(tcp::TcpSpec),
}

impl Default for TransportSpec {
    fn default() -> Self {
        TransportSpec::Tcp(tcp::TcpSpec::default())
    }
}

impl TransportSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a connection with them could not work.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            TransportSpec::Tcp(spec) => spec.check(),
        }
    }
}
