//! Observers: they look on and never take part. A run with and without them gives the same flows.

pub mod fair_shares;
pub mod ideal;
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

/// What an observer may look at. Every hook has an empty default.
pub trait Observer {
    /// False lets the simulator skip preparing what nobody looks at.
    const ACTIVE: bool = true;

    /// A host hands a packet to its interface.
    fn host_sends(&mut self, _now: Time, _host: u32, _packet: &PacketView) {}
    /// A packet has reached its host.
    fn host_receives(&mut self, _now: Time, _host: u32, _packet: &PacketView) {}
    /// A packet has reached the port `link`, whose queue decides the order at departure: `link_sends` or `dropped` follows.
    fn link_queues(&mut self, _now: Time, _link: PortId, _packet: &PacketView) {}
    /// A packet was accepted by the port `link` at `now`; its last bit leaves at `departs`.
    fn link_sends(&mut self, _now: Time, _link: PortId, _departs: Time, _packet: &PacketView) {}
    /// A packet found the queue of `link` full, or made way in it for a better one.
    fn dropped(&mut self, _now: Time, _link: PortId, _packet: &PacketView) {}
    /// The rate or the propagation delay of `link` changes; what is on it is re-timed.
    fn link_changes(&mut self, _now: Time, _link: PortId, _rate: Rate, _propagation: Time) {}
    /// A packet is lost on `link` to a failure.
    fn lost(&mut self, _now: Time, _link: PortId, _loss: Loss, _packet: &PacketView) {}
    /// A sender has handled an event.
    fn sender_acted(&mut self, _now: Time, _flow: u64, _copy: u8, _sender: &Sender) {}
}

/// Looks on if it is there.
impl<A: Observer> Observer for Option<A> {
    const ACTIVE: bool = A::ACTIVE;

    fn host_sends(&mut self, now: Time, host: u32, packet: &PacketView) {
        if let Some(observer) = self {
            observer.host_sends(now, host, packet);
        }
    }
    fn host_receives(&mut self, now: Time, host: u32, packet: &PacketView) {
        if let Some(observer) = self {
            observer.host_receives(now, host, packet);
        }
    }
    fn link_sends(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        if let Some(observer) = self {
            observer.link_sends(now, link, departs, packet);
        }
    }
    fn dropped(&mut self, now: Time, link: PortId, packet: &PacketView) {
        if let Some(observer) = self {
            observer.dropped(now, link, packet);
        }
    }
    fn sender_acted(&mut self, now: Time, flow: u64, copy: u8, sender: &Sender) {
        if let Some(observer) = self {
            observer.sender_acted(now, flow, copy, sender);
        }
    }
}

/// Two look on.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const ACTIVE: bool = A::ACTIVE || B::ACTIVE;

    fn host_sends(&mut self, now: Time, host: u32, packet: &PacketView) {
        self.0.host_sends(now, host, packet);
        self.1.host_sends(now, host, packet);
    }
    fn host_receives(&mut self, now: Time, host: u32, packet: &PacketView) {
        self.0.host_receives(now, host, packet);
        self.1.host_receives(now, host, packet);
    }
    fn link_sends(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        self.0.link_sends(now, link, departs, packet);
        self.1.link_sends(now, link, departs, packet);
    }
    fn dropped(&mut self, now: Time, link: PortId, packet: &PacketView) {
        self.0.dropped(now, link, packet);
        self.1.dropped(now, link, packet);
    }
    fn sender_acted(&mut self, now: Time, flow: u64, copy: u8, sender: &Sender) {
        self.0.sender_acted(now, flow, copy, sender);
        self.1.sender_acted(now, flow, copy, sender);
    }
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const ACTIVE: bool = false;
}
