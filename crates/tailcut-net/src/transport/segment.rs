//! A packet as the ends of a connection see it: without addresses.

use crate::packet::{Flags, NO_OPTIONS};

/// A packet that an end has built, or that has reached it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Towards the receiver: index of the segment (the SYN and bare ACKs carry 0).
    /// Towards the sender: index of the next segment expected.
    pub seq: u32,
    /// Index of the options in the [`OptionStore`](crate::packet::OptionStore) of the builder.
    pub options: u32,
    /// Size on the wire, framing included.
    pub wire_bytes: u16,
    /// Flags; those that only the fabric sets mean nothing to an end.
    pub flags: Flags,
    /// The entropy value that switches hash: the sender's port, in either direction. Set by ends
    /// that choose it for each packet, and ignored of others.
    pub entropy: u16,
}

impl Segment {
    /// A packet without options.
    pub fn bare(flags: Flags, seq: u32, wire_bytes: u16) -> Segment {
        Segment { seq, options: NO_OPTIONS, wire_bytes, flags, entropy: 0 }
    }
}

/// The place of a segment in the data of a flow that is spread over several connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Position in the data.
    pub number: u32,
    /// Payload bytes.
    pub payload: u64,
    /// Whether the segment carries the end of the data.
    pub last: bool,
}

/// The data-level acknowledgement of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAck {
    /// Everything before this position in the data has arrived.
    pub number: u32,
    /// The data is complete, and this connection tells the sender so.
    pub complete: bool,
}
