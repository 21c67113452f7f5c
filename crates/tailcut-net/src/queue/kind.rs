//! What a kind of queue is: its parameters, and what it keeps at each port.

use tailcut_engine::{Rate, Time};

use super::{QueueEnvironment, Ties};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::Graph;

/// A port that gets a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortContext {
    /// Its number.
    pub number: u32,
    /// It is the interface of a host.
    pub host: bool,
    /// What may wait there.
    pub limit: Limit,
    /// Beyond what it marks, where a threshold says so.
    pub threshold: Option<Amount>,
    /// Bytes of a full data packet on the wire.
    pub full_packet: u64,
    /// Seed of the run.
    pub seed: u64,
}

/// The parameters of a kind of queue.
pub(crate) trait QueueKind {
    /// What decides at each port which packets are admitted, besides the limit.
    type Admission: Admit;
    /// What keeps the packets that wait at a port, where their order is decided at departure.
    type Schedule: PacketScheduler;

    /// Refuses parameters with which a queue could hold nothing, or would do nothing.
    fn check(&self) -> Result<(), SpecError>;
    /// Refuses those that do not suit what surrounds the queue.
    fn check_environment(&self, _: &QueueEnvironment) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses a transport whose packets it can do nothing with.
    fn check_packets(&self, _: TransportFeatures) -> Result<(), SpecError> {
        Ok(())
    }
    /// What it does with packets that wait already, if anything, after the code of the error that says so where the ports
    /// of a switch share a buffer: that decides on arrival what may wait.
    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// Refuses those that do not suit a network.
    fn check_topology(&self, _: &Graph) -> Result<(), SpecError> {
        Ok(())
    }
    /// The threshold at the ports of a link of a tier and a rate, for kinds that mark by one.
    fn threshold(&self, _tier: &str, _rate: Rate) -> Option<Amount> {
        None
    }
    /// What may wait at a switch port.
    fn limit(&self) -> Limit;
    /// The order of an arrival at a full queue and the end of a transmission at the same instant.
    fn ties(&self) -> Ties;
    /// What may wait at a port in all, where `at.limit` is that of a queue.
    fn limit_in_all(&self, at: &PortContext) -> Limit {
        at.limit
    }
    /// Whether it ever marks a packet.
    fn marks_packets(&self) -> bool {
        false
    }
    /// Whether chance may drop a packet for which there is room.
    fn drops_early(&self) -> bool {
        false
    }
    /// Which packets hosts are to mark of flows that have lost paths to a failure ([`Flags::LOST_PATHS`](crate::packet::Flags)), if it goes by that.
    fn lost_paths(&self) -> Option<LostPaths> {
        None
    }
    /// The state of a port that may refuse or mark what there is room for; none for drop-tail.
    fn admission(&self, at: &PortContext) -> Option<Self::Admission>;
    /// The state of a port whose order is decided at departure; none where it is first in, first out.
    fn schedule(&self, at: &PortContext) -> Option<Self::Schedule>;
}

/// Which packets of a flow that has lost paths say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LostPaths {
    /// Those on the way to its receiver.
    Data,
    /// Acknowledgements as well.
    All,
}

/// What the transport writes into its packets, and reads from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransportFeatures {
    /// A priority.
    pub priorities: bool,
    /// Its receivers make sense of a header without its payload.
    pub hears_headers: bool,
}

/// Decides on packets that there is room for, at a port whose order is fixed on arrival.
///
/// No method has a default: what holds a state passes every call on, and one that it forgot would be answered here.
pub(crate) trait Admit {
    /// Whether it goes by the packet and by what waits alone, so that it also works where departures are not known on arrival.
    const BY_WAITING: bool;

    /// Fewest waiting packets at which it may do anything but accept; none when it must see every packet.
    fn active_from_backlog(&self) -> Option<u32>;
    /// True when it must know the bytes that wait.
    fn counts_bytes(&self) -> bool;
    /// True when it must know what marked packets wait, for an arrival that is marked itself or not.
    fn counts_marked(&self, marked: bool) -> bool;
    /// Decides on one packet.
    fn admit(&mut self, arrival: &Arrival) -> Verdict;
    /// A packet came for which there is no room: it is dropped, whatever is said of it.
    fn on_overflow(&mut self, arrival: &Arrival);
    /// The link has gone down or changed its rate at `now`. `marked_leave` is when the last bit of the marked packets that
    /// the port still has to send leaves now; none if there are none.
    fn link_changed(&mut self, now: u64, marked_leave: Option<u64>);
}

/// Packets without data that found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Headers {
    /// Headers of trimmed packets that went back to their senders.
    pub returned: u64,
    /// Headers, answers, pulls and SYNs that were dropped.
    pub dropped: u64,
}

/// Keeps the packets that wait at a port, and says which is sent next.
pub(crate) trait PacketScheduler {
    /// Whether there are such queues at all.
    const KEEPS: bool;
    /// Lets a packet wait, as it is or changed; false if it does not. Packets that are dropped for it go to `displaced`, and
    /// headers that go back to their senders, its own among them ([`Packet::returned`]). For a packet that is dropped
    /// itself no other one is.
    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool;
    /// Takes the packet to be sent next.
    fn pop(&mut self, now: Time) -> Option<Packet>;
    /// Packets waiting.
    fn len(&self) -> u32;
    /// One that is sent soon, if any waits: its memory is asked for early.
    fn first(&self) -> Option<&Packet>;
    /// Shows every packet that waits.
    fn visit(&self, see: &mut dyn FnMut(&Packet));
    /// Packets dropped so far.
    fn drops(&self) -> u64;
    /// Fates of packets without data that had no room, where they are apart from those with data.
    fn headers(&self) -> Option<Headers>;
    /// Most packets ever waiting.
    fn longest(&self) -> u32;
}

impl<A: Admit> Admit for Box<A> {
    const BY_WAITING: bool = A::BY_WAITING;

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

/// What is large lies elsewhere: the queues of all ports are in one table, and each is to fill one line of the cache.
impl<S: PacketScheduler> PacketScheduler for Box<S> {
    const KEEPS: bool = S::KEEPS;

    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        S::offer(self, now, packet, displaced)
    }
    fn pop(&mut self, now: Time) -> Option<Packet> {
        S::pop(self, now)
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

/// Of kinds that have no such state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Never {}

impl Admit for Never {
    const BY_WAITING: bool = true;

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
    const KEEPS: bool = false;

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

/// What a queue sees of an arriving packet that it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrival {
    /// When it arrives, and when its last bit leaves if it is accepted, in picoseconds.
    pub now: u64,
    pub leaves: u64,
    /// The transmitter is at work.
    pub busy: bool,
    /// Its size.
    pub wire_bytes: u16,
    /// It belongs to a flow that has lost paths.
    pub marked: bool,
    /// How many of the packets waiting do, and their bytes; counted where the discipline asks for it.
    pub marked_waiting: u32,
    pub marked_bytes: u64,
    /// Transmission time of a full packet.
    pub full_packet: u64,
    /// Packets waiting behind the one in service.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// The packet may be marked instead of dropped (RFC 3168).
    pub ecn_capable: bool,
    /// Full packets that could have been sent since the transmitter fell idle.
    pub idle_packets: u64,
}

/// What a queue does with a packet that it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Accept it with the congestion-experienced mark.
    Mark,
    Drop,
}

/// Packets, and what a queue drops of them: what tests write.
#[cfg(test)]
pub(crate) mod script {
    use super::*;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS};
    use crate::topology::HostId;

    /// A packet with data of a flow.
    pub fn packet(flow: u32, seq: u32, wire_bytes: u16) -> Packet {
        let (key, connection) = (FlowKey::new(HostId(flow), HostId(99), 1, 1), ConnectionId(flow));
        Packet { key, connection, seq, options: NO_OPTIONS, wire_bytes, flags: Flags::DATA }
    }

    /// Offers a packet; what is dropped or goes back, if anything.
    pub fn offer(queue: &mut impl PacketScheduler, packet: Packet) -> Vec<Packet> {
        let mut dropped = vec![];
        let waits = queue.offer(Time::ZERO, packet, &mut dropped);
        if !waits && !dropped.last().is_some_and(Packet::is_returned) {
            dropped.push(packet);
        }
        dropped
    }
}
