//! Hosts: the network interface and what frames cost on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use crate::amount::Limit;

/// Parameters of every host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostSpec {
    /// What may wait in the host's own network interface. A limit here makes a
    /// lone large flow drop its own packets unless the receive window is smaller:
    /// real hosts push back on the socket instead.
    pub nic_queue: Limit,
    /// Bytes that each packet occupies on the wire beyond its IP datagram
    /// (Ethernet header and FCS 18, preamble and gap 20; PPP as in ns-3 2).
    pub framing_overhead: Bytes,
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec { nic_queue: Limit::Unlimited, framing_overhead: Bytes(38) }
    }
}
