//! Transports: sans-I/O state machines that take (now, packet or timer) and
//! yield packets and deadlines. None sees the event queue.
//!
//! A new transport is one file (or folder) here and one line in [`TransportSpec`].

mod life;
pub mod mixed;
pub mod mmptcp;
pub mod mptcp;
pub mod pfabric;
pub mod segment;
pub mod tcp;

pub(crate) use life::segments_of;
pub use life::{Phase, Transmit};
pub use segment::{DataAck, Mapping, Segment};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use crate::component::SpecError;
use crate::packet::MAX_NUMBER;

/// The transport that carries every flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransportSpec {
    /// TCP: SACK with PRR (RFC 6675, 9937), or NewReno without SACK (RFC 5681, 6582).
    Tcp(tcp::TcpSpec),
    /// pFabric's minimal transport, for queues that schedule by priority: `queue = { kind = "pfabric" }`.
    Pfabric(pfabric::PfabricSpec),
    /// Multipath TCP (RFC 8684): subflows on paths of their own, coupled by LIA (RFC 6356).
    Mptcp(mptcp::MptcpSpec),
    /// MMPTCP: packets scattered under one window first, then Multipath TCP.
    Mmptcp(mmptcp::MmptcpSpec),
    /// Several transports side by side, chosen by the size of a flow and by lot.
    Mixed(mixed::MixedTransport),
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
            TransportSpec::Pfabric(spec) => spec.check(),
            TransportSpec::Mptcp(spec) => spec.check(),
            TransportSpec::Mmptcp(spec) => spec.check(),
            TransportSpec::Mixed(spec) => spec.check(),
        }
    }

    /// Checks that the segments of a flow of so many bytes can be counted.
    ///
    /// # Errors
    /// When there are more than packets can number.
    pub fn check_flow(&self, bytes: u64) -> Result<(), SpecError> {
        let (field, mss) = match self {
            TransportSpec::Tcp(spec) => ("mss", spec.mss),
            TransportSpec::Pfabric(spec) => ("mss", spec.mss),
            TransportSpec::Mptcp(spec) => ("tcp.mss", spec.tcp.mss),
            TransportSpec::Mmptcp(spec) => ("tcp.mss", spec.tcp.mss),
            TransportSpec::Mixed(spec) => {
                return spec.parts.iter().enumerate().try_for_each(|(at, part)| {
                    part.transport.check_flow(bytes).map_err(|error| SpecError {
                        field: format!("parts[{at}].transport.{}", error.field),
                        ..error
                    })
                });
            }
        };
        let segments = bytes.div_ceil(mss.0);
        if segments <= u64::from(MAX_NUMBER) {
            return Ok(());
        }
        let message = format!(
            "a flow of {} has {segments} segments of {mss}: at most {MAX_NUMBER} can be told apart",
            Bytes(bytes)
        );
        Err(SpecError::new("transport-segments", field, message)
            .hint("raise the size of a segment, or make flows smaller"))
    }

    /// The parameters that decide the size and number of its packets: of the transport whose segments are the largest,
    /// where there are several.
    pub fn segments(&self) -> tcp::TcpSpec {
        match self {
            TransportSpec::Tcp(spec) => spec.clone(),
            TransportSpec::Pfabric(spec) => spec.segments(),
            TransportSpec::Mptcp(spec) => spec.tcp.clone(),
            TransportSpec::Mmptcp(spec) => spec.tcp.clone(),
            TransportSpec::Mixed(spec) => {
                let parts = spec.parts.iter().map(|part| part.transport.segments());
                parts.max_by_key(|tcp| tcp.mss).unwrap_or_default()
            }
        }
    }
}
