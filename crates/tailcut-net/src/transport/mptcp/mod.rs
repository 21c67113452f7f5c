//! Multipath TCP (RFC 8684) as the papers use it: the data of a flow spread over
//! subflows with ports of their own, so that ECMP gives each a path of its own;
//! windows coupled by the linked increases algorithm (RFC 6356).

mod data;
mod lia;
mod manager;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

pub use data::{Multipath, Phase};
pub use lia::{increase, SubflowWindow};
pub(super) use manager::Data;

use super::spread::Spread;
use super::tcp::{check_window, CongestionSpec, TcpSpec};
use super::Transport;
use crate::component::SpecError;

/// Parameters of Multipath TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MptcpSpec {
    /// Subflows of every flow. The first opens the connection, the others join when it is established.
    pub subflows: u32,
    /// Receive window that all subflows share (RFC 8684 section 3.3.5). A slow path holds up what the others
    /// deliver behind it, so that it wants to be a multiple of TCP's.
    pub receive_window: Bytes,
    /// Each subflow: segments, initial window, loss recovery, timers. Its `receive_window` bounds what one subflow
    /// may have in flight; its congestion avoidance is replaced by the coupled one.
    pub tcp: TcpSpec,
}

impl Default for MptcpSpec {
    fn default() -> Self {
        MptcpSpec { subflows: 8, receive_window: Bytes(512_000), tcp: TcpSpec::default() }
    }
}

/// More subflows than this are a slip.
const MAX_SUBFLOWS: u32 = 64;

impl Transport for MptcpSpec {
    fn check(&self) -> Result<(), SpecError> {
        check("mptcp-subflows", self.subflows, self.receive_window, &self.tcp)
    }

    fn segments(&self) -> TcpSpec {
        self.tcp.clone()
    }

    fn mss_field(&self) -> &'static str {
        "tcp.mss"
    }

    fn spread(&self) -> Option<Arc<dyn Spread>> {
        Some(Arc::new(self.clone()))
    }
}

/// Checks what the multipath transports have in common.
pub(super) fn check(
    code: &'static str,
    subflows: u32,
    receive_window: Bytes,
    tcp: &TcpSpec,
) -> Result<(), SpecError> {
    if !(1..=MAX_SUBFLOWS).contains(&subflows) {
        let message = format!("subflows = {subflows}: 1 to {MAX_SUBFLOWS}");
        return Err(SpecError::new(code, "subflows", message).hint("the papers use 8"));
    }
    if receive_window.0 < tcp.mss.0 {
        let message = format!(
            "receive_window = \"{receive_window}\" is smaller than one segment of {} B: nothing could be sent",
            tcp.mss.0
        );
        return Err(SpecError::new("mptcp-receive-window", "receive_window", message));
    }
    check_window("mptcp-receive-window", "receive_window", receive_window, tcp.mss.0.max(1))?;
    if tcp.congestion != CongestionSpec::default() || tcp.uses_ecn() {
        let message = "the windows of subflows are coupled in congestion avoidance (RFC 6356) and halved by losses";
        return Err(SpecError::new("mptcp-congestion", "tcp.congestion", message)
            .hint("leave congestion and ecn out"));
    }
    tcp.check().map_err(|error| SpecError { field: format!("tcp.{}", error.field), ..error })
}
