//! Errors that prevent a run.

use crate::fabric::FabricError;
use crate::measure::series::UnknownPlace;
use crate::topology::HostId;

/// Why a scenario cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The network cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A requested series names no link or host.
    #[error(transparent)]
    Place(#[from] UnknownPlace),
    /// Addresses have 19 bits.
    #[error("{hosts} hosts are more than the 524,288 that packets can address")]
    TooManyHosts {
        /// Hosts in the graph.
        hosts: u32,
    },
    /// A flow that no host can send.
    #[error(
        "flow {id} goes from host {src} to host {dst} with {bytes} bytes; hosts are 0..{hosts}, distinct, and bytes at least 1"
    )]
    BadFlow {
        /// The flow's identifier.
        id: u64,
        /// The source.
        src: HostId,
        /// The destination.
        dst: HostId,
        /// The size in bytes.
        bytes: u64,
        /// Hosts in the graph.
        hosts: u32,
    },
    /// The caller asked to stop.
    #[error("the run was interrupted")]
    Interrupted,
}
