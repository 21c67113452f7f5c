//! Observers: they look on and never take part. A run with and without them gives the same flows.

pub mod fair_shares;
pub mod ideal;
pub mod records;
pub mod segments;
pub mod series;

use tailcut_engine::{Rate, Time};

use crate::packet::{Flags, SackBlocks, Timestamps};
use crate::topology::PortId;
use crate::transport::tcp::Sender;

/// A packet as its headers describe it: positions in bytes, initial sequence numbers 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketView {
    /// The flow it belongs to.
    pub flow: u64,
    /// Which of the flow's connections.
    pub copy: u8,
    /// Source host.
    pub src: u32,
    /// Destination host.
    pub dst: u32,
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

/// The hooks, written once: the trait, and the observers that pass on what they see.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident($($argument:ident: $kind:ty),*);)*) => {
        /// What an observer may look at. Every hook has an empty default.
        pub trait Observer {
            /// False lets the simulator skip preparing what nobody looks at.
            const ACTIVE: bool = true;
            $($(#[$doc])* fn $hook(&mut self, $($argument: $kind),*) { $(let _ = $argument;)* })*
        }

        /// Looks on if it is there.
        impl<A: Observer> Observer for Option<A> {
            const ACTIVE: bool = A::ACTIVE;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                if let Some(observer) = self {
                    observer.$hook($($argument),*);
                }
            })*
        }

        /// Two look on.
        impl<A: Observer, B: Observer> Observer for (A, B) {
            const ACTIVE: bool = A::ACTIVE || B::ACTIVE;
            $(fn $hook(&mut self, $($argument: $kind),*) {
                self.0.$hook($($argument),*);
                self.1.$hook($($argument),*);
            })*
        }
    };
}

hooks! {
    /// A host hands a packet to its interface.
    host_sends(now: Time, host: u32, packet: &PacketView);
    /// A packet has reached its host.
    host_receives(now: Time, host: u32, packet: &PacketView);
    /// A packet has reached the port `link`, whose queue decides the order at departure: `link_sends` or `dropped` follows.
    link_queues(now: Time, link: PortId, packet: &PacketView);
    /// A packet was accepted by the port `link` at `now`; its last bit leaves at `departs`.
    link_sends(now: Time, link: PortId, departs: Time, packet: &PacketView);
    /// A packet found the queue of `link` full, or made way in it for a better one.
    dropped(now: Time, link: PortId, packet: &PacketView);
    /// The rate or the propagation delay of `link` changes; what is on it is re-timed.
    link_changes(now: Time, link: PortId, rate: Rate, propagation: Time);
    /// A packet is lost on `link` to a failure.
    lost(now: Time, link: PortId, loss: Loss, packet: &PacketView);
    /// A sender has handled an event.
    sender_acted(now: Time, flow: u64, copy: u8, sender: &Sender);
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const ACTIVE: bool = false;
}
