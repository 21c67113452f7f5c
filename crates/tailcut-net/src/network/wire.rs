//! Sizes of packets on the wire.

use crate::host::HostSpec;
use crate::transport::tcp::{TcpSpec, WireSizes};

/// Bytes of a full data packet on the wire, framing included.
pub fn full_packet(tcp: &TcpSpec, host: &HostSpec) -> u64 {
    u64::from(WireSizes::new(tcp, host.framing_overhead).bare()) + tcp.mss.0
}
