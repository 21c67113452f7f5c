//! Settings of hosts: what checking a run yields.

use serde::Serialize;

use crate::congestion::program::CongestionProgram;

/// The settings of every host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostSettings {
    /// The size of the largest IP datagram in bytes.
    pub mtu: u64,
    /// Names of sysctls below `net.`, with `/` between the parts, and their values.
    pub sysctls: Vec<(&'static str, String)>,
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The lab's BPF program that implements the congestion control, if any; registering it gives
    /// it a random name.
    pub program: Option<CongestionProgram>,
    /// Attributes of the route to all other hosts.
    pub route: Vec<(&'static str, String)>,
    /// Whether senders close a connection after its last byte.
    pub closes: bool,
    /// The name of the transport.
    pub transport: &'static str,
    /// The number of a host's addresses besides its own.
    pub further_addresses: u32,
    /// How `repnet-bench` carries the flows, if it does.
    pub repnet: Option<Replication>,
}

/// Settings of `repnet-bench`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replication {
    /// The mode: `net`, or that of a replication scheme.
    pub mode: &'static str,
    /// The largest flow that is replicated, in bytes.
    pub threshold: u64,
    /// The delay before the second copy starts, in nanoseconds.
    pub copy_delay_ns: u64,
    /// Whether the kernel chooses the source ports of replicated flows.
    pub kernel_chooses_ports: bool,
}

impl Replication {
    /// Whether the kernel chooses the source port of a flow of this size.
    pub fn chooses_port(&self, bytes: u64) -> bool {
        self.kernel_chooses_ports && bytes <= self.threshold
    }
}
