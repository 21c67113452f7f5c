//! The records of a story. Times are in picoseconds from the beginning of the run.

use serde::Serialize;

use crate::packet::Flags;
use crate::topology::PortId;

/// The events of one flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Story {
    /// Identifier of the flow.
    pub flow: u64,
    /// Packets in the order in which hosts sent them: both directions, all connections.
    pub packets: Vec<Journey>,
    /// Acts of the flow's senders, in order.
    pub acts: Vec<Act>,
    /// Packets sent after the story had reached its maximum.
    pub left_out: u64,
}

/// The path of one packet through the network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Journey {
    /// Connection of the flow, from 0.
    pub copy: u8,
    /// Source port of that connection at the flow's sender.
    pub port: u16,
    /// Kind of packet.
    pub kind: PacketKind,
    /// Whether the packet goes from the flow's receiver to its sender.
    pub back: bool,
    /// TCP sequence number of its first byte.
    pub seq: u64,
    /// Payload bytes.
    pub bytes: u16,
    /// TCP acknowledgement number of packets towards the sender; 0 for others.
    pub ack: u64,
    /// Whether the packet repeats earlier data or an earlier SYN.
    pub again: bool,
    /// Whether a queue has marked the packet (ECN).
    pub marked: bool,
    /// Time at which its host handed it to the interface.
    pub sent_ps: u64,
    /// The links that accepted it, in order.
    pub hops: Vec<Hop>,
    /// Where and how it ended; `None` while it is in the network.
    pub end: Option<JourneyEnd>,
}

/// Kinds of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketKind {
    /// SYN: opens a connection.
    Syn,
    /// SYN-ACK: answers a SYN.
    SynAck,
    /// Data, including packets whose payload a queue trimmed.
    Data,
    /// Probe of one byte, sent to get an acknowledgement (pFabric).
    Probe,
    /// Acknowledgement.
    Ack,
    /// Pull: asks the sender for more packets (NDP).
    Pull,
    /// Notice that a segment came without its payload (NDP).
    Cut,
    /// Header of a packet that returns to its sender (NDP). The story records it as the end of that
    /// packet.
    Returned,
    /// FIN: ends a connection.
    Fin,
    /// RST: resets a connection.
    Rst,
}

impl PacketKind {
    /// Returns the kind of a packet by its flags. `asks`: the transport is not TCP, so that trimmed
    /// and returned packets are possible.
    pub(super) fn of(flags: Flags, asks: bool) -> PacketKind {
        let towards_sender = flags.has(Flags::TO_SENDER);
        match () {
            () if flags.has(Flags::SYN) && towards_sender => PacketKind::SynAck,
            () if flags.has(Flags::SYN) => PacketKind::Syn,
            () if flags.has(Flags::RST) => PacketKind::Rst,
            () if flags.has(Flags::DATA) || flags.is_trimmed() && asks => PacketKind::Data,
            () if flags.is_returned() && asks => PacketKind::Returned,
            () if flags.has(Flags::FIN) => PacketKind::Fin,
            () if flags.has(Flags::PROBE) && !towards_sender => PacketKind::Probe,
            () if flags.has(Flags::PULL) => PacketKind::Pull,
            () if flags.has(Flags::TRIMMED) && asks => PacketKind::Cut,
            () => PacketKind::Ack,
        }
    }
}

/// A link that accepted a packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hop {
    /// The directed link.
    pub link: PortId,
    /// Arrival at the port of the link.
    pub at_ps: u64,
    /// Departure of its first bit.
    pub begins_ps: u64,
    /// Departure of its last bit.
    pub departs_ps: u64,
    /// Packets that the link sent while the packet waited, including the one in transmission on its
    /// arrival.
    pub ahead: u32,
    /// Packets of the same flow among `ahead`.
    pub own: u32,
}

/// The end of a packet's journey.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JourneyEnd {
    /// Time of the end.
    pub at_ps: u64,
    /// Outcome.
    pub how: JourneyOutcome,
    /// The link where it ended; `None` if the packet was received.
    pub link: Option<PortId>,
}

/// The outcomes of a packet's journey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JourneyOutcome {
    /// Reached its host.
    Received,
    /// Found a queue full, or was displaced by a better packet.
    Dropped,
    /// Found a queue full even for its header, which returned to its sender (NDP).
    Returned,
    /// Offered to a link that was down.
    DeadLink,
    /// Lost because the link that carried it went down.
    UnderWay,
    /// Corrupted on the link.
    Corrupted,
}

/// What a sender did on an event, before it sent anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Act {
    /// Time of the event.
    pub at_ps: u64,
    /// Connection of the flow, from 0.
    pub copy: u8,
    /// Source port of that connection at the flow's sender.
    pub port: u16,
    /// Kind of act.
    pub what: ActKind,
    /// Congestion window in bytes, afterwards.
    pub window: u64,
    /// Slow-start threshold in bytes, afterwards; `None` if the transport has none.
    pub threshold: Option<u64>,
    /// Duration of the timer that expired, if known.
    pub timer_ps: Option<u64>,
}

/// Kinds of acts of senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActKind {
    /// The retransmission timer expired.
    TimedOut,
    /// Duplicate or selective acknowledgements indicated a loss: fast retransmit.
    Recovers,
    /// Everything that was outstanding when a recovery or a timeout began has been acknowledged.
    Recovered,
    /// The sender undid a recovery or a timeout.
    Undid,
    /// An ECN echo reduced the window.
    #[serde(rename = "heeded")]
    EcnReduced,
    /// The window changed.
    Window,
}
