//! The traits of a kind of queue: its parameters, and its state at each port.

use tailcut_engine::{Rate, Time};

use super::{QueueEnvironment, Ties};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::Graph;

/// The port that a queue is created for.
#[derive(Debug, Clone, Copy)]
pub struct PortContext {
    /// Number of the port.
    pub number: u32,
    /// Whether the port is the interface of a host.
    pub host: bool,
    /// Whether the port is a switch's, and leads to a host.
    pub last_hop: bool,
    /// Limit of the port's queue.
    pub limit: Limit,
    /// Marking threshold of the port, if it has one.
    pub threshold: Option<Amount>,
    /// Bytes of a full data packet on the wire.
    pub full_packet: u64,
    /// Seed of the run.
    pub seed: u64,
}

/// The parameters of a kind of queue.
pub trait QueueKind {
    /// Refuses parameters with which a queue could hold nothing, or would have no effect.
    fn check(&self) -> Result<(), SpecError>;
    /// Refuses parameters that do not suit the limits and thresholds around the queue.
    fn check_thresholds(&self, _: &QueueEnvironment) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses a transport without the features that the queue needs.
    fn check_packets(&self, _: TransportFeatures) -> Result<(), SpecError> {
        Ok(())
    }
    /// Why this kind cannot use a shared buffer, as error code and reason: it drops or trims
    /// packets that wait already. `None` if it can.
    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// Refuses parameters that do not suit a network.
    fn check_topology(&self, _: &Graph) -> Result<(), SpecError> {
        Ok(())
    }
    /// Returns the threshold at the ports of a link of this tier and rate; `None` for kinds that do
    /// not mark by a threshold.
    fn threshold(&self, _tier: &str, _rate: Rate) -> Option<Amount> {
        None
    }
    /// Returns the limit of a switch port.
    fn limit(&self) -> Limit;
    /// Returns the order of an arrival at a full queue and the end of a transmission at the same
    /// instant.
    fn ties(&self) -> Ties;
    /// Returns the limit of a port as a whole, where `at.limit` is the limit of one of its queues.
    fn limit_in_all(&self, at: &PortContext) -> Limit {
        at.limit
    }
    /// Returns whether the queue ever marks a packet.
    fn marks_packets(&self) -> bool {
        false
    }
    /// Returns whether the queue may drop a packet at random although there is room for it.
    fn drops_early(&self) -> bool {
        false
    }
    /// Which packets of flows that lost paths to a failure hosts mark with
    /// [`Flags::LOST_PATHS`](crate::packet::Flags). `None` if the queue ignores the mark.
    fn lost_paths(&self) -> Option<LostPaths> {
        None
    }
    /// Returns whether ports hold their packets until departure, because the order is decided then
    /// ([`PortQueue::schedule`]).
    fn schedules_departures(&self) -> bool {
        false
    }
    /// Returns whether admission depends on the packet and the backlog alone, so that it also works
    /// where departures are not known on arrival.
    fn admits_by_backlog(&self) -> bool {
        true
    }
}

/// The state of a kind of queue at a port.
pub(crate) trait PortQueue: QueueKind {
    /// State that decides on admission besides the limit.
    type Admission: Admit;
    /// State that holds waiting packets and orders them at departure.
    type Schedule: PacketScheduler;

    /// Creates the admission state of a port; `None` if the limit alone decides there.
    fn admission(&self, at: &PortContext) -> Option<Self::Admission>;
    /// Creates the scheduler of a port; `None` if the port is first in, first out.
    fn schedule(&self, at: &PortContext) -> Option<Self::Schedule>;
}

/// The packets that hosts mark, of a flow that has lost paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostPaths {
    /// Packets towards the receiver.
    Data,
    /// All packets, acknowledgements included.
    All,
}

/// Features of a transport that queues may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportFeatures {
    /// Whether its packets carry a priority.
    pub priorities: bool,
    /// Whether its receivers understand a header without its payload.
    pub hears_headers: bool,
}

/// Decides on packets that there is room for, at a port whose order is fixed on arrival.
///
/// No method has a default, so that wrapping states cannot forget to forward a call.
pub(crate) trait Admit {
    /// Returns the fewest waiting packets at which the state may do anything but accept; `None` if
    /// it must see every packet.
    fn active_from_backlog(&self) -> Option<u32>;
    /// Returns whether arrivals need `waiting_bytes`.
    fn counts_bytes(&self) -> bool;
    /// Returns whether an arrival needs the counts of marked packets that wait. `marked`: the
    /// arrival itself is marked.
    fn counts_marked(&self, marked: bool) -> bool;
    /// Decides on one packet.
    fn admit(&mut self, arrival: &Arrival) -> Verdict;
    /// Notes a packet that is dropped because there is no room for it.
    fn on_overflow(&mut self, arrival: &Arrival);
    /// Notes that the link has gone down or changed its rate at `now`. `marked_leave` is when the
    /// last bit of the marked packets still in the port now leaves; `None` if there are none. Times
    /// in picoseconds.
    fn link_changed(&mut self, now: u64, marked_leave: Option<u64>);
}

/// Counts of packets without data that found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Headers {
    /// Headers of trimmed packets returned to their senders.
    pub returned: u64,
    /// Headers, answers, pulls and SYNs dropped.
    pub dropped: u64,
}

/// Holds the waiting packets of a port and decides which is sent next.
pub(crate) trait PacketScheduler {
    /// Queues a packet, possibly changed; returns false if it does not wait. Appends to `displaced`
    /// the packets that are dropped for it, and the headers that return to their senders, possibly
    /// its own ([`Packet::returned`]). No packet is dropped for one that is dropped itself.
    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool;
    /// Removes and returns the packet to be sent next.
    fn pop(&mut self, now: Time) -> Option<Packet>;
    /// Notes that the link has another rate than it was built with, or has that again.
    fn change_rate(&mut self, _now: Rate, _built: Rate) {}
    /// Returns the number of waiting packets.
    fn len(&self) -> u32;
    /// Returns a packet that is sent soon, if any waits, so that its memory can be prefetched.
    fn first(&self) -> Option<&Packet>;
    /// Calls `see` for every waiting packet.
    fn visit(&self, see: &mut dyn FnMut(&Packet));
    /// Returns the packets dropped so far.
    fn drops(&self) -> u64;
    /// Returns the fates of packets without data that had no room; `None` if they are not counted
    /// apart.
    fn headers(&self) -> Option<Headers>;
    /// Returns the most packets that ever waited.
    fn longest(&self) -> u32;
}

impl<A: Admit> Admit for Box<A> {
    fn active_from_backlog(&self) -> Option<u32> {
        A::active_from_backlog(self)
    }
    fn counts_bytes(&self) -> bool {
        A::counts_bytes(self)
    }
    fn counts_marked(&self, marked: bool) -> bool {
        A::counts_marked(self, marked)
    }
    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        A::admit(self, arrival)
    }
    fn on_overflow(&mut self, arrival: &Arrival) {
        A::on_overflow(self, arrival);
    }
    fn link_changed(&mut self, now: u64, marked_leave: Option<u64>) {
        A::link_changed(self, now, marked_leave);
    }
}

/// Large state lies behind a box: the queues of all ports are in one table, and each entry fits one
/// cache line.
impl<S: PacketScheduler> PacketScheduler for Box<S> {
    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        S::offer(self, now, packet, displaced)
    }
    fn pop(&mut self, now: Time) -> Option<Packet> {
        S::pop(self, now)
    }
    fn change_rate(&mut self, now: Rate, built: Rate) {
        S::change_rate(self, now, built);
    }
    fn len(&self) -> u32 {
        S::len(self)
    }
    fn first(&self) -> Option<&Packet> {
        S::first(self)
    }
    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        S::visit(self, see);
    }
    fn drops(&self) -> u64 {
        S::drops(self)
    }
    fn headers(&self) -> Option<Headers> {
        S::headers(self)
    }
    fn longest(&self) -> u32 {
        S::longest(self)
    }
}

/// The state of kinds that have none.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Never {}

impl Admit for Never {
    fn active_from_backlog(&self) -> Option<u32> {
        match *self {}
    }
    fn counts_bytes(&self) -> bool {
        match *self {}
    }
    fn counts_marked(&self, _: bool) -> bool {
        match *self {}
    }
    fn admit(&mut self, _: &Arrival) -> Verdict {
        match *self {}
    }
    fn on_overflow(&mut self, _: &Arrival) {
        match *self {}
    }
    fn link_changed(&mut self, _: u64, _: Option<u64>) {
        match *self {}
    }
}

impl PacketScheduler for Never {
    fn offer(&mut self, _: Time, _: Packet, _: &mut Vec<Packet>) -> bool {
        match *self {}
    }
    fn pop(&mut self, _: Time) -> Option<Packet> {
        match *self {}
    }
    fn len(&self) -> u32 {
        match *self {}
    }
    fn first(&self) -> Option<&Packet> {
        match *self {}
    }
    fn visit(&self, _: &mut dyn FnMut(&Packet)) {
        match *self {}
    }
    fn drops(&self) -> u64 {
        match *self {}
    }
    fn headers(&self) -> Option<Headers> {
        match *self {}
    }
    fn longest(&self) -> u32 {
        match *self {}
    }
}

/// Admission where the limit alone decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Admit for Plain {
    fn active_from_backlog(&self) -> Option<u32> {
        Some(u32::MAX)
    }
    fn counts_bytes(&self) -> bool {
        false
    }
    fn counts_marked(&self, _: bool) -> bool {
        false
    }
    fn admit(&mut self, _: &Arrival) -> Verdict {
        Verdict::Accept
    }
    fn on_overflow(&mut self, _: &Arrival) {}
    fn link_changed(&mut self, _: u64, _: Option<u64>) {}
}

/// The arrival of a packet that there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrival {
    /// When the packet arrives, and when its last bit leaves if it is accepted, in picoseconds.
    pub now: u64,
    pub leaves: u64,
    /// Whether the transmitter is busy.
    pub busy: bool,
    /// Size of the packet on the wire in bytes.
    pub wire_bytes: u16,
    /// Whether the packet is marked as belonging to a flow that has lost paths.
    pub marked: bool,
    /// Waiting packets with that mark and their bytes; counted only if [`Admit::counts_marked`]
    /// asks for it.
    pub marked_waiting: u32,
    pub marked_bytes: u64,
    /// Transmission time of a full packet in picoseconds.
    pub full_packet: u64,
    /// Packets waiting behind the one in transmission.
    pub waiting: u32,
    /// Bytes waiting behind the packet in transmission.
    pub waiting_bytes: u64,
    /// Whether the packet may be marked instead of dropped (RFC 3168).
    pub ecn_capable: bool,
    /// Full packets that could have been sent since the transmitter fell idle.
    pub idle_packets: u64,
}

/// The decision on a packet that there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Accept the packet with the congestion-experienced mark.
    Mark,
    Drop,
}

/// Packets, and which of them a queue drops: helpers for tests.
#[cfg(test)]
pub(crate) mod script {
    use super::*;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, SeqField};
    use crate::topology::HostId;

    /// Returns a data packet of a flow.
    pub fn packet(flow: u32, seq: u32, wire_bytes: u16) -> Packet {
        let (key, connection) = (FlowKey::new(HostId(flow), HostId(99), 1, 1), ConnectionId(flow));
        Packet {
            key,
            connection,
            seq: SeqField::new(seq),
            options: NO_OPTIONS,
            wire_bytes,
            flags: Flags::DATA,
        }
    }

    /// Offers a packet and returns the packets that are dropped or returned.
    pub fn offer(queue: &mut impl PacketScheduler, packet: Packet) -> Vec<Packet> {
        let mut dropped = vec![];
        let waits = queue.offer(Time::ZERO, packet, &mut dropped);
        if !waits && !dropped.last().is_some_and(Packet::is_returned) {
            dropped.push(packet);
        }
        dropped
    }
}
