//! Observers of a run. They never take part in it: a run with and without them gives the same
//! flows.

pub mod attribution;
pub mod fair_shares;
pub mod ideal;
pub mod job_links;
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

/// A packet as its headers describe it. Positions are in bytes; initial sequence numbers are 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketView {
    /// Identifier of the flow.
    pub flow: u64,
    /// Connection of the flow, from 0.
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
    /// Payload of a full segment in bytes.
    pub mss: u16,
    /// True on SYNs, which announce the segment size.
    pub mss_option: bool,
    /// Size of the flow in bytes.
    pub flow_bytes: u64,
    /// Offset of the payload in the data of a multipath flow, in bytes; `None` for other flows.
    pub data: Option<u64>,
    /// Whether the connection uses selective acknowledgements.
    pub sack: bool,
    /// Timestamps, if the connection uses them.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements as ranges of segments of `mss`.
    pub blocks: SackBlocks,
    /// Bytes on the wire, framing included.
    pub wire_bytes: u16,
}

/// The causes by which a failure loses a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Offered to a link that is down.
    DeadLink,
    /// Queued, in service or on the wire as the link went down.
    UnderWay,
    /// Corrupted on the link; detected at its far end.
    Corrupted,
}

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The end that sends the flow's data.
    Sender,
    /// The end that receives the flow's data.
    Receiver,
}

/// A sender of any transport, after it has handled an event and before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderView {
    /// Counters since the connection began.
    pub counters: SenderCounters,
    /// Congestion window in bytes.
    pub window: u64,
    /// State that only TCP senders have; `None` for other transports.
    pub tcp: Option<TcpView>,
}

/// State that only TCP senders have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView {
    /// Slow-start threshold in bytes.
    pub threshold: u64,
    /// State of congestion control.
    pub state: CongestionState,
    /// Current retransmission timeout.
    pub timeout: Time,
}

/// Writes each hook once: for the trait and for the observers that forward to others.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident($($argument:ident: $kind:ty),*);)*) => {
        /// Hooks that the simulator calls at events. Every hook has an empty default.
        pub trait Observer {
            /// Whether the simulator calls the hooks up to `any_sender_acted`. False saves building
            /// packet and sender views.
            const WANTS_VIEWS: bool = true;
            /// Whether the simulator calls the hooks from `packet_nears` on, which follow single
            /// packets and what makes hosts send. An observer that needs no others sets
            /// `WANTS_VIEWS` to false.
            const TRACES_PACKETS: bool = false;
            $($(#[$doc])* fn $hook(&mut self, $($argument: $kind),*) { $(let _ = $argument;)* })*
        }

        /// Forwards every hook if there is an observer.
        impl<A: Observer> Observer for Option<A> {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                if let Some(observer) = self {
                    observer.$hook($($argument),*);
                }
            })*
        }

        /// Forwards every hook, so that the caller keeps the observer even if the run stops with an
        /// error.
        impl<A: Observer> Observer for &mut A {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                (**self).$hook($($argument),*);
            })*
        }

        /// Forwards every hook to both observers, in order.
        impl<A: Observer, B: Observer> Observer for (A, B) {
            const WANTS_VIEWS: bool = A::WANTS_VIEWS || B::WANTS_VIEWS;
            const TRACES_PACKETS: bool = A::TRACES_PACKETS || B::TRACES_PACKETS;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                self.0.$hook($($argument),*);
                self.1.$hook($($argument),*);
            })*
        }

        /// Object-safe form of [`Observer`], for an observer whose type is known at run time only.
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

/// An observer of any type behind a virtual call per hook, so that the simulator is compiled once
/// for all of them.
pub struct Erased<'a>(&'a mut dyn AnyObserver);

impl<'a> Erased<'a> {
    /// Wraps `observer`.
    pub fn new(observer: &'a mut impl Observer) -> Self {
        Self(observer)
    }
}

hooks! {
    /// A host hands a packet to its interface.
    host_sends(now: Time, host: HostId, packet: &PacketView);
    /// A packet has reached its host.
    host_receives(now: Time, host: HostId, packet: &PacketView);
    /// A packet has reached the port `link`, which has a scheduled queue: `link_accepts`, `dropped`
    /// or `returned` follows.
    link_queues(now: Time, link: PortId, packet: &PacketView);
    /// The port `link` accepts a packet at `now`; its last bit leaves at `departs`.
    link_accepts(now: Time, link: PortId, departs: Time, packet: &PacketView);
    /// A packet finds the queue of `link` full, or is displaced from it by a better one.
    dropped(now: Time, link: PortId, packet: &PacketView);
    /// A packet finds the queue of `link` full even for its header, which returns to its sender
    /// from here. In the hooks that follow, that header is the packet that `is_returned`.
    returned(now: Time, link: PortId, packet: &PacketView);
    /// The rate or the propagation delay of `link` changes; departures of its packets are re-timed.
    link_changes(now: Time, link: PortId, rate: Rate, propagation: Time);
    /// A packet is lost on `link` to a failure.
    lost(now: Time, link: PortId, loss: Loss, packet: &PacketView);
    /// A TCP sender has handled an event and has not sent yet.
    tcp_sender_acted(now: Time, flow: u64, copy: u8, sender: &Sender);
    /// A sender of any transport has handled an event and has not sent yet. Its source `port`
    /// distinguishes it from other senders of the copy.
    any_sender_acted(now: Time, flow: u64, copy: u8, port: u16, sender: &SenderView);

    // The following hooks trace every packet by its ticket, which the packet carries in its
    // sequence field. A packet is on one link, waits before it, or has crossed it at this instant.

    /// A packet will soon have crossed its link: the observer may prefetch what it stores about it.
    packet_nears(ticket: PacketId);
    /// A host of `flow` hands a packet to its interface.
    packet_sent(now: Time, flow: FlowIndex, ticket: PacketId, packet: &Packet);
    /// A packet joins the link `link` as its last. Its first bit leaves at `begins`, its last at
    /// `departs`.
    packet_on_link(now: Time, ticket: PacketId, link: PortId, on: &Port, begins: Time, departs: Time);
    /// A packet waits before `link`, in a scheduled queue.
    packet_waits(now: Time, ticket: PacketId, link: PortId, on: &Port);
    /// A packet leaves the scheduled queue before `link`. It joins the link as its last if the link
    /// takes it, or returns to its sender by another link.
    packet_leaves(now: Time, ticket: PacketId, link: PortId, on: &Port);
    /// A packet has reached its host, where it may cause the events that follow.
    packet_delivered(now: Time, ticket: PacketId, packet: &Packet);
    /// A packet is gone: it finds no room, or is lost on the link that it has crossed or was
    /// offered to.
    packet_ends(now: Time, ticket: PacketId, packet: &Packet);
    /// A packet that waits before `link` is dropped for a better one.
    packet_displaced(now: Time, ticket: PacketId, link: PortId);
    /// A packet is lost because `link` goes down. Called for the packets on the link, next to
    /// arrive first, then for those waiting before it.
    packet_stranded(now: Time, ticket: PacketId, link: PortId);
    /// The packets on `link` get new departure times, next to arrive first.
    link_retimed(now: Time, link: PortId, departures: &[(PacketId, Time)]);

    // The following hooks report what makes hosts send, besides packets that are delivered.

    /// A flow starts.
    flow_starts(now: Time, flow: FlowIndex, id: u64);
    /// The policy timer of `flow` is armed.
    policy_timer_armed(now: Time, flow: FlowIndex);
    /// The policy timer of `flow` fires.
    policy_timer_fired(now: Time, flow: FlowIndex);
    /// The last byte of a flow has arrived.
    flow_finishes(now: Time, flow: FlowIndex);
    /// A connection of a flow opens; its identifier may have been another connection's. `orderly`:
    /// the flow never has a second connection, and packets in one direction are never reordered.
    connection_opens(now: Time, connection: ConnectionId, flow: FlowIndex, orderly: bool);
    /// An end of a connection has handled an event; its next timer is `timer`, due at `deadline`.
    timer_set(now: Time, connection: ConnectionId, end: ConnectionEnd, deadline: Time, timer: Timer);
    /// A sender has handled an event and sent all it may. `stop` is the limit that holds it back,
    /// if it has more to send.
    sender_limited(now: Time, connection: ConnectionId, stop: SendLimit);
    /// The timer that `timer_set` reported for this end expires.
    timer_fires(now: Time, connection: ConnectionId, end: ConnectionEnd);
    /// The timer event of a connection fires. `timer_fires` follows for each end whose deadline has
    /// passed; then the sender sends what it may.
    connection_wakes(now: Time, connection: ConnectionId);
    /// The receiver of a connection wants to send a pull and waits for its turn.
    pull_wanted(now: Time, connection: ConnectionId);
    /// The receiver of a connection gets its turn and sends a pull.
    pull_turn(now: Time, connection: ConnectionId);
    /// The sender of a connection waits for its turn at its host's interface.
    turn_wanted(now: Time, connection: ConnectionId);
    /// The sender of a connection gets its turn and may send a packet. `alone`: no other sender of
    /// the host waits for one.
    turn_given(now: Time, connection: ConnectionId, alone: bool);
}

/// The observer that observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WANTS_VIEWS: bool = false;
}
