//! What a story is made of. Times are in picoseconds from the beginning of the run.

use serde::Serialize;

use crate::packet::Flags;
use crate::topology::PortId;

/// What happened to one flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Story {
    /// The flow's number.
    pub flow: u64,
    /// Its packets in the order in which hosts sent them, both directions, all connections.
    pub packets: Vec<Journey>,
    /// What its senders did, in order.
    pub acts: Vec<Act>,
    /// Packets that were sent when the story had as many as it may have.
    pub left_out: u64,
}

/// A packet on its way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Journey {
    /// Which of the flow's connections, from 0.
    pub copy: u8,
    /// Source port of that connection at the flow's sender.
    pub port: u16,
    /// What it is.
    pub kind: PacketKind,
    /// Whether the packet goes from the flow's receiver to its sender.
    pub back: bool,
    /// TCP sequence number of its first byte.
    pub seq: u64,
    /// Payload bytes.
    pub bytes: u16,
    /// TCP acknowledgement number; of packets towards the sender.
    pub ack: u64,
    /// It carries what was sent before.
    pub again: bool,
    /// A queue has marked it (ECN).
    pub marked: bool,
    /// When its host handed it to the interface.
    pub sent_ps: u64,
    /// The links that took it.
    pub hops: Vec<Hop>,
    /// How its way ended; none while it is under way.
    pub end: Option<JourneyEnd>,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketKind {
    /// Opens a connection.
    Syn,
    /// Answers that.
    SynAck,
    /// Carries payload, or did before a queue trimmed it.
    Data,
    /// One byte that asks to be heard (pFabric).
    Probe,
    /// Acknowledges.
    Ack,
    /// Asks for more (NDP).
    Pull,
    /// Says that a segment came without its payload (NDP).
    Cut,
    /// The header of a packet on its way back to its sender (NDP); the story tells it as the end of that packet.
    Returned,
    /// Ends a connection.
    Fin,
    /// Resets it.
    Rst,
}

impl PacketKind {
    /// By its flags; which of them a transport uses otherwise is not known here.
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

/// A link that took a packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hop {
    /// The directed link.
    pub link: PortId,
    /// When the packet came to it.
    pub at_ps: u64,
    /// When its first bit left.
    pub begins_ps: u64,
    /// When its last bit left.
    pub departs_ps: u64,
    /// Packets that the link sent while it waited, the one that it found in service included.
    pub ahead: u32,
    /// Those of its own flow among them.
    pub own: u32,
}

/// How a packet's way ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JourneyEnd {
    /// When.
    pub at_ps: u64,
    /// How.
    pub how: JourneyOutcome,
    /// On which link, unless it was received.
    pub link: Option<PortId>,
}

/// How a packet's way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JourneyOutcome {
    /// At its host.
    Received,
    /// It found a queue full, or made way for a better one.
    Dropped,
    /// Found a queue full even for its header, which went back to its sender (NDP).
    Returned,
    /// The link was down.
    DeadLink,
    /// The link went down while it was on it.
    UnderWay,
    /// Corrupted on the link.
    Corrupted,
}

/// What a sender did on an event, before it sent anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Act {
    /// When.
    pub at_ps: u64,
    /// Which of the flow's connections.
    pub copy: u8,
    /// Source port of that connection at the flow's sender.
    pub port: u16,
    /// What.
    pub what: ActKind,
    /// Congestion window in bytes, afterwards.
    pub window: u64,
    /// Slow-start threshold in bytes, afterwards; none where the transport has none.
    pub threshold: Option<u64>,
    /// How long the timer had run that expired, where that is known.
    pub timer_ps: Option<u64>,
}

/// What senders do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActKind {
    /// Its retransmission timer has expired.
    TimedOut,
    /// Duplicate or selective acknowledgements told of a loss: fast retransmit.
    Recovers,
    /// Everything that a recovery or a timeout was about has arrived.
    Recovered,
    /// It has taken a recovery or a timeout back.
    Undid,
    /// An ECN echo made it reduce its window.
    #[serde(rename = "heeded")]
    EcnReduced,
    /// Its window is another one.
    Window,
}
