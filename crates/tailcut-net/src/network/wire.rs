//! What packets weigh on the wire.

use crate::host::HostSpec;
use crate::transport::tcp::{Recovery, TcpSpec};

/// IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// Timestamp option, padded (RFC 7323).
const TIMESTAMPS: u64 = 12;
/// Window scale option, padded (RFC 7323).
const WINDOW_SCALE: u64 = 4;
/// SACK-permitted option, padded (RFC 2018).
const SACK_PERMITTED: u64 = 4;
/// Maximum segment size option (RFC 9293).
const MSS_OPTION: u64 = 4;

/// Bytes of a full data packet on the wire, framing included.
pub fn full_packet(tcp: &TcpSpec, host: &HostSpec) -> u64 {
    WireSizes::new(tcp, host).overhead + tcp.mss.0
}

/// Sizes on the wire, framing included.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireSizes {
    overhead: u64,
    syn: u64,
}

impl WireSizes {
    pub fn new(tcp: &TcpSpec, host: &HostSpec) -> WireSizes {
        let timestamps = if tcp.timestamps { TIMESTAMPS } else { 0 };
        let overhead = HEADERS + host.framing_overhead.0 + timestamps;
        let sack = if tcp.recovery == Recovery::SackPrr { SACK_PERMITTED } else { 0 };
        let mss = if tcp.mss_option { MSS_OPTION } else { 0 };
        WireSizes { overhead, syn: overhead + WINDOW_SCALE + sack + mss }
    }

    /// A data segment.
    #[inline]
    pub fn data(&self, payload: u64) -> u16 {
        (self.overhead + payload) as u16
    }
    /// The payload of a data segment.
    pub fn payload(&self, wire_bytes: u16) -> u16 {
        wire_bytes - self.overhead as u16
    }
    /// A bare ACK or reset.
    #[inline]
    pub fn bare(&self) -> u16 {
        self.overhead as u16
    }
    /// An ACK with this many SACK blocks: 2 bytes and 8 per block, padded (RFC 2018).
    pub fn ack(&self, blocks: usize) -> u16 {
        let option = if blocks == 0 { 0 } else { 4 + 8 * blocks as u64 };
        (self.overhead + option) as u16
    }
    /// A SYN or SYN-ACK.
    pub fn syn(&self) -> u16 {
        self.syn as u16
    }
}
