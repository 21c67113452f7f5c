//! Multipath TCP (RFC 8684) as the papers use it: the data of a flow spread over
//! subflows with ports of their own, so that ECMP gives each a path of its own;
//! windows coupled by the linked increases algorithm (RFC 6356).

mod manager;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use super::Transport;
use super::spread::MultipathSpec;
use super::subflows;
use super::tcp::TcpSpec;
use crate::component::SpecError;

/// Parameters of Multipath TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MptcpSpec {
    /// Subflows of every flow. The first opens the connection, the others join when it is
    /// established.
    pub subflows: u32,
    /// Receive window that all subflows share (RFC 8684 section 3.3.5). A slow path holds up what
    /// the others deliver behind it, so that it wants to be a multiple of TCP's.
    pub receive_window: Bytes,
    /// Each subflow: segments, initial window, loss recovery, timers. Its `receive_window` bounds
    /// what one subflow may have in flight; its congestion avoidance is replaced by the coupled
    /// one.
    pub tcp: TcpSpec,
}

impl Default for MptcpSpec {
    fn default() -> Self {
        MptcpSpec { subflows: 8, receive_window: Bytes(512_000), tcp: TcpSpec::default() }
    }
}

impl Transport for MptcpSpec {
    fn check(&self) -> Result<(), SpecError> {
        subflows::check_subflow_spec(
            "mptcp-subflows",
            self.subflows,
            self.receive_window,
            &self.tcp,
        )
    }

    fn segment_spec(&self) -> TcpSpec {
        self.tcp.clone()
    }

    fn mss_field(&self) -> &'static str {
        "tcp.mss"
    }

    fn multipath(&self) -> Option<Arc<dyn MultipathSpec>> {
        Some(Arc::new(self.clone()))
    }
}
