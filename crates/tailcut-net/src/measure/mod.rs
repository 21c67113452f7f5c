//! Observers: they look on and never take part. A run with and without them gives the same flows.

pub mod attribution;
pub mod fair_shares;
pub mod ideal;
pub mod paths;
pub mod port_sampler;
pub mod records;
pub mod segments;
pub mod series;
pub mod story;

use tailcut_engine::{Rate, Time};

use crate::packet::{ConnectionId, Flags, Packet, PacketId, SackBlocks, Timestamps};
use crate::port::Port;
use crate::topology::{HostId, PortId};
use crate::traffic::FlowIndex;
use crate::transport::tcp::{CongestionState, Sender, SenderCounters};
use crate::transport::{SendLimit, Timer};

/// A packet as its headers describe it: positions in bytes, initial sequence numbers 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketView {
    /// The flow it belongs to.
    pub flow: u64,
    /// Which of the flow's connections.
    pub copy: u8,
    /// Source host.
    pub src: HostId,
    /// Destination host.
    pub dst: HostId,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// TCP sequence number.
    pub seq: u64,
    /// TCP acknowledgement number; meaningful with [`Flags::ACK`].
    pub ack: u64,
    /// Flags.
    pub flags: Flags,
    /// Payload bytes.
    pub payload: u16,
    /// Advertised receive window in bytes.
    pub window: u64,
    /// Full segment size.
    pub mss: u16,
    /// SYNs announce the segment size.
    pub mss_option: bool,
    /// Size of the flow in bytes.
    pub flow_bytes: u64,
    /// Where the payload belongs in the data of a multipath flow, in bytes from 0.
    pub data: Option<u64>,
    /// The connection uses selective acknowledgements.
    pub sack: bool,
    /// Timestamps, if the connection uses them.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements as ranges of segments of `mss`.
    pub blocks: SackBlocks,
    /// Bytes on the wire, framing included.
    pub wire_bytes: u16,
}

/// How a packet is lost to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Sent to a link that is down.
    DeadLink,
    /// Queued, in service or on the wire as the link went down.
    UnderWay,
    /// Corrupted on the link; noticed at its far end.
    Corrupted,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// It sends the data.
    Sender,
    /// It receives them.
    Receiver,
}

/// A sender of any transport, after it has handled an event and before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderView {
    /// What it has done so far.
    pub counters: SenderCounters,
    /// Congestion window in bytes.
    pub window: u64,
    /// What only TCP has.
    pub tcp: Option<TcpView>,
}

/// What only a sender of TCP has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView {
    /// Slow-start threshold in bytes.
    pub threshold: u64,
    /// How it regards the network.
    pub state: CongestionState,
    /// Its retransmission timeout.
    pub timeout: Time,
}

/// The hooks, written once: the trait, and the observers that pass on what they see.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident($($argument:ident: $kind:ty),*);)*) => {
        /// What an observer may look at. Every hook has an empty default.
        pub trait Observer {
            /// False lets the simulator skip preparing what nobody looks at.
            const WANTS_VIEWS: bool = true;
            /// True lets the simulator tell of every packet on its way, and of what makes hosts send (the hooks that take no
            /// [`PacketView`]); where that is all that is looked at, `WANTS_VIEWS` may be false.
            const TRACES_PACKETS: bool = false;
            $($(#[$doc])* fn $hook(&mut self, $($argument: $kind),*) { $(let _ = $argument;)* })*
        }

        /// Looks on if it is there.
        impl<A: Observer> Observer for Option<A> {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                if let Some(observer) = self {
                    observer.$hook($($argument),*);
                }
            })*
        }

        /// Looks on for somebody else, who has it back even when the run is broken off.
        impl<A: Observer> Observer for &mut A {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                (**self).$hook($($argument),*);
            })*
        }

        /// Two look on.
        impl<A: Observer, B: Observer> Observer for (A, B) {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS || B::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS || B::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                self.0.$hook($($argument),*);
                self.1.$hook($($argument),*);
            })*
        }

        /// The hooks of an observer whose type is known at run time.
        trait AnyObserver {
            $(fn $hook(&mut self, $($argument: $kind),*);)*
        }

        impl<A: Observer> AnyObserver for A {
            $(fn $hook(&mut self, $($argument: $kind),*) {
                Observer::$hook(self, $($argument),*);
            })*
        }

        impl Observer for Erased<'_> {
            const TRACES_PACKETS: bool = true;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                self.0.$hook($($argument),*);
            })*
        }
    };
}

/// An observer of any type, behind one: the simulator is compiled once for all of them. Every hook is a call through a table.
pub struct Erased<'a>(&'a mut dyn AnyObserver);

impl<'a> Erased<'a> {
    /// Looks on for `observer`.
    pub fn new(observer: &'a mut impl Observer) -> Self {
        Self(observer)
    }
}

hooks! {
    /// A host hands a packet to its interface.
    host_sends(now: Time, host: HostId, packet: &PacketView);
    /// A packet has reached its host.
    host_receives(now: Time, host: HostId, packet: &PacketView);
    /// A packet has reached the port `link`, whose queue decides the order at departure: `link_accepts`, `dropped` or `returned` follows.
    link_queues(now: Time, link: PortId, packet: &PacketView);
    /// A packet was accepted by the port `link` at `now`; its last bit leaves at `departs`.
    link_accepts(now: Time, link: PortId, departs: Time, packet: &PacketView);
    /// A packet found the queue of `link` full, or made way in it for a better one.
    dropped(now: Time, link: PortId, packet: &PacketView);
    /// A packet found the queue of `link` full even for its header, which goes back to its sender from here: it is the packet
    /// `is_returned` of the hooks that follow.
    returned(now: Time, link: PortId, packet: &PacketView);
    /// The rate or the propagation delay of `link` changes; what is on it is re-timed.
    link_changes(now: Time, link: PortId, rate: Rate, propagation: Time);
    /// A packet is lost on `link` to a failure.
    lost(now: Time, link: PortId, loss: Loss, packet: &PacketView);
    /// A sender of TCP has handled an event.
    tcp_sender_acted(now: Time, flow: u64, copy: u8, sender: &Sender);
    /// A sender of any transport has handled an event. Its source port tells it from others of the copy.
    any_sender_acted(now: Time, flow: u64, copy: u8, port: u16, sender: &SenderView);

    // Where every packet is, by its ticket, which it carries in the place of `seq`. It is on one link or before it, or has crossed it at this instant.

    /// A packet will soon have crossed the link that it is on: what is known of it may be asked for from memory.
    packet_nears(ticket: PacketId);
    /// A host of `flow` hands a packet to its interface.
    packet_sent(now: Time, flow: FlowIndex, ticket: PacketId, packet: &Packet);
    /// A packet goes on the link `link`, and is the last of what is there; its first bit leaves at `begins` and its last at `departs`.
    packet_on_link(now: Time, ticket: PacketId, link: PortId, on: &Port, begins: Time, departs: Time);
    /// A packet waits before `link`, in a queue that decides the order at departure.
    packet_waits(now: Time, ticket: PacketId, link: PortId, on: &Port);
    /// A packet leaves that queue, to be the last on the link if that is not full or down, or to go back by another one.
    packet_leaves(now: Time, ticket: PacketId, link: PortId, on: &Port);
    /// A packet has reached its host, where it may cause what follows.
    packet_delivered(now: Time, ticket: PacketId, packet: &Packet);
    /// A packet finds no room, or is lost on the link that it has crossed or was to cross: it is no more.
    packet_ends(now: Time, ticket: PacketId, packet: &Packet);
    /// A packet that waits before `link` is no more: another was better.
    packet_displaced(now: Time, ticket: PacketId, link: PortId);
    /// The packet that is the first on `link`, or, where none is, waits before it, is no more: the link has gone down.
    packet_stranded(now: Time, ticket: PacketId, link: PortId);
    /// What is on `link` departs at these times, the first to arrive first.
    link_retimed(now: Time, link: PortId, departures: &[(PacketId, Time)]);

    // What makes hosts send: what a packet that is delivered causes, or one of these.

    /// A flow starts.
    flow_starts(now: Time, flow: FlowIndex, id: u64);
    /// A flow is to be asked again later.
    policy_timer_armed(now: Time, flow: FlowIndex);
    /// It is.
    policy_timer_fired(now: Time, flow: FlowIndex);
    /// The last byte of a flow has arrived.
    flow_finishes(now: Time, flow: FlowIndex);
    /// A connection of a flow is there, in the place of another one perhaps.
    /// It is `orderly` if it is its flow's only one ever, and its packets in one direction arrive everywhere in the order in which they were sent.
    connection_opens(now: Time, connection: ConnectionId, flow: FlowIndex, orderly: bool);
    /// An end of a connection has handled an event, and waits for this until `deadline`.
    timer_set(now: Time, connection: ConnectionId, end: ConnectionEnd, deadline: Time, timer: Timer);
    /// A sender has handled an event and sent what it could: what it stopped for, if it has more.
    sender_limited(now: Time, connection: ConnectionId, stop: SendLimit);
    /// It has waited long enough.
    timer_fires(now: Time, connection: ConnectionId, end: ConnectionEnd);
    /// A connection is woken at a time at which one of its ends once wanted to be: `timer_fires` follows if it still does, and if
    /// not its sender looks again whether it may send.
    connection_wakes(now: Time, connection: ConnectionId);
    /// The receiver of a connection wants to ask for more, in its turn.
    pull_wanted(now: Time, connection: ConnectionId);
    /// Its turn has come.
    pull_turn(now: Time, connection: ConnectionId);
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WANTS_VIEWS: bool = false;
}
