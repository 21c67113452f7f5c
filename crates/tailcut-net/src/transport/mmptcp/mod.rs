//! MMPTCP (Kheirkhah, Wakeman and Parisi, SIGCOMM 2015): a flow begins by
//! scattering its packets over all paths under one window, by a random source
//! port on every one of them, and goes on as Multipath TCP when it turns out to be long.

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

/// Parameters of MMPTCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MmptcpSpec {
    /// Subflows of the second phase and the scattering one: with 8, 7 further ones are opened.
    pub subflows: u32,
    /// Start of the second phase.
    pub switch: SwitchTrigger,
    /// Duplicate ACKs that start a fast retransmit while packets are scattered, and so reordered.
    pub dupack_threshold: ScatterThreshold,
    /// Receive window that all subflows share.
    pub receive_window: Bytes,
    /// The scattering subflow and each of the others, as in Multipath TCP.
    pub tcp: TcpSpec,
}

/// The event after which a flow continues as Multipath TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SwitchTrigger {
    /// An amount of data sent ("data volume").
    Volume {
        /// MMPTCP's evaluation scatters short flows whole; 100 KB is the papers' bound of a short
        /// flow.
        #[serde(default = "volume")]
        bytes: Bytes,
    },
    /// At the first fast retransmit or timeout ("congestion event").
    Congestion {},
}

fn volume() -> Bytes {
    Bytes(100_000)
}

/// The duplicate-ACK threshold of the scattering subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScatterThreshold {
    /// 3, plus the number of equal-cost paths if there are several.
    ///
    /// In a fat-tree: 3 below one edge switch, 3 + k/2 within a pod, else 3 + (k/2)^2.
    Topology,
    /// The threshold of `tcp`.
    ///
    /// MMPTCP's other approach is `tcp = { recovery = "sack-prr", reordering = { kind = "rr-tcp" }
    /// }`.
    Tcp,
}

impl Default for MmptcpSpec {
    fn default() -> Self {
        MmptcpSpec {
            subflows: 8,
            switch: SwitchTrigger::Volume { bytes: volume() },
            dupack_threshold: ScatterThreshold::Topology,
            receive_window: Bytes(512_000),
            tcp: TcpSpec::default(),
        }
    }
}

impl Transport for MmptcpSpec {
    fn check(&self) -> Result<(), SpecError> {
        if self.subflows < 2 {
            let message =
                format!("subflows = {}: the scattering one and at least one more", self.subflows);
            return Err(SpecError::new("mmptcp-subflows", "subflows", message)
                .hint("a large volume to switch at keeps flows scattering"));
        }
        if self.dupack_threshold == ScatterThreshold::Topology && !self.tcp.reordering.is_none() {
            let message = "dupack_threshold = \"topology\" and tcp.reordering both decide how many duplicate ACKs mean a loss";
            return Err(SpecError::new("mmptcp-threshold", "dupack_threshold", message)
                .hint("write dupack_threshold = \"tcp\", or leave tcp.reordering out"));
        }
        subflows::check_subflow_spec(
            "mmptcp-subflows",
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
