//! How hosts are set up: the result of checking a run.

use serde::Serialize;

use crate::congestion::program::CongestionProgram;

/// How each host is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostSettings {
    /// Bytes of the largest IP datagram.
    pub mtu: u64,
    /// Sysctls below `net.`, with `/` between the parts, and their values.
    pub sysctls: Vec<(&'static str, String)>,
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The lab's own program that is it, where there is one: it has another name once it is registered.
    pub program: Option<CongestionProgram>,
    /// Attributes of the route to all other hosts.
    pub route: Vec<(&'static str, String)>,
    /// Whether senders close a connection after its last byte.
    pub closes: bool,
    /// The name of the transport.
    pub transport: &'static str,
    /// Addresses that a host has besides its own.
    pub further_addresses: u32,
    /// How `repnet-bench` carries flows, where it does.
    pub repnet: Option<Replication>,
}

/// How `repnet-bench` carries flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replication {
    /// Its mode: `net`, or that of a scheme.
    pub mode: &'static str,
    /// Longer flows are not replicated.
    pub threshold: u64,
    /// By how much the second copy starts later.
    pub copy_delay_ns: u64,
    /// Whether the kernel chooses the source ports of those that are.
    pub kernel_chooses_ports: bool,
}

impl Replication {
    /// Whether the kernel chooses the source port of a flow of so many bytes.
    pub fn chooses_port(&self, bytes: u64) -> bool {
        self.kernel_chooses_ports && bytes <= self.threshold
    }
}
