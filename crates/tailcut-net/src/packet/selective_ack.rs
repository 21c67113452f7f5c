//! The acknowledgement of a transport that acknowledges every packet by its number.

/// The content of an acknowledgement of Ultra Ethernet's transport beside the next expected number,
/// which the packet itself carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectiveAck {
    /// The packet that it answers; [`SelectiveAck::NO_PACKET`] for a request without data.
    pub packet: u32,
    /// The first number of `map`.
    pub base: u32,
    /// Bit n: packet `base + n` has arrived.
    pub map: u64,
    /// Bytes on the wire of all packets that have arrived, each counted once.
    pub bytes: u64,
    /// The entropy value of the packet that it answers.
    pub entropy: u16,
    /// Whether that packet had been marked.
    pub marked: bool,
    /// Whether that packet was a retransmission.
    pub again: bool,
    /// Whether that packet was trimmed on the link to its receiver.
    pub last_hop: bool,
}

impl SelectiveAck {
    /// Stands for no packet.
    pub const NO_PACKET: u32 = u32::MAX;
}
