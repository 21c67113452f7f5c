//! What TCP's headers weigh, and the timestamp option.

use tailcut_engine::{Bytes, Time};

use super::{Recovery, TcpSpec};
use crate::packet::{OptionStore, Timestamps};
use crate::transport::Segment;

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

/// Sizes of a connection's packets on the wire, framing included.
#[derive(Debug, Clone, Copy)]
pub struct WireSizes {
    overhead: u64,
    syn: u64,
}

impl WireSizes {
    /// Those of connections with these parameters, each packet in a frame that adds `framing`.
    pub fn new(tcp: &TcpSpec, framing: Bytes) -> WireSizes {
        let timestamps = if tcp.timestamps { TIMESTAMPS } else { 0 };
        let overhead = HEADERS + framing.0 + timestamps;
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

/// The clock of the timestamp option, in milliseconds.
pub(crate) fn clock(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32
}

/// Adds the timestamp option to a segment that leaves.
#[cold]
pub(crate) fn stamp(segment: &mut Segment, now: Time, echo: u32, options: &mut OptionStore) {
    segment.options = options.stamp(segment.options, Timestamps { value: clock(now), echo });
}
