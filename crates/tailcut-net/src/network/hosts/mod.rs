//! The connections of all hosts: both ends of each, their places in the table of the run, and what of them is under way.

#[cfg(test)]
pub(super) mod tests;
mod view;

use tailcut_engine::Time;

use super::profile::Profile;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::packet::{ConnectionId, Flags, FlowKey, OptionStore, Packet};
use crate::traffic::{Flow, FlowIndex};
use crate::transport::{DataAck, Mapping, Phase, Segment, Transmit};

/// A connection that is to be.
pub(super) struct Opening {
    /// What its packets go by, from sender to receiver.
    pub key: FlowKey,
    /// Whose bytes it carries.
    pub flow: FlowIndex,
    /// Its number among those of its flow.
    pub copy: u8,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// Number of its transport.
    pub profile: u8,
    pub sender: Sender,
    /// The application at its receiver has gone.
    pub closed: bool,
}

/// Both halves of a connection.
struct Connection {
    key: FlowKey,
    flow: FlowIndex,
    from: u64,
    /// Packets of this connection queued or on a wire.
    in_network: u32,
    receiver: Receiver,
    /// When the agenda will wake this connection.
    timer: Time,
    /// The next connection of the same flow.
    sibling: Option<ConnectionId>,
    copy: u8,
    profile: u8,
    live: bool,
    sender: Sender,
}

/// What the ends of its connection see of a packet.
#[inline]
fn as_segment(packet: &Packet) -> Segment {
    let &Packet { seq, options, wire_bytes, flags, .. } = packet;
    Segment { seq, options, wire_bytes, flags }
}

/// What a receiver has made of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heard {
    /// It carried data for an application that is still there.
    pub data: bool,
    /// It completed what the connection carries.
    pub completed: bool,
}

/// The connections of a run.
pub(super) struct Hosts<'a> {
    /// The transports of the run; a connection knows the number of its own.
    profiles: &'a [Profile],
    connections: Vec<Connection>,
    /// Places of retired connections, to be used again.
    vacant: Vec<ConnectionId>,
    live: usize,
    /// What few packets carry.
    options: OptionStore,
}

impl<'a> Hosts<'a> {
    pub fn new(profiles: &'a [Profile]) -> Hosts<'a> {
        let options = OptionStore::default();
        Hosts { profiles, connections: vec![], vacant: vec![], live: 0, options }
    }

    // --- who is there -----------------------------------------------------------------------------------------------

    /// Gives a connection a place, preferably a used one.
    pub fn admit(&mut self, opening: Opening) -> ConnectionId {
        let Opening { key, flow, copy, from, profile, sender, closed } = opening;
        // A sender without segments will be given some, nobody knows how many.
        let segments = match sender.segments() {
            0 => u32::MAX,
            segments => segments,
        };
        let mut receiver = Receiver::new(self.transport(profile), segments);
        receiver.closed = closed;
        let connection = Connection {
            key,
            flow,
            from,
            in_network: 0,
            receiver,
            timer: Time::NEVER,
            sibling: None,
            copy,
            profile,
            live: true,
            sender,
        };
        self.live += 1;
        if let Some(id) = self.vacant.pop() {
            self.connections[id.index()] = connection;
            return id;
        }
        self.connections.push(connection);
        ConnectionId::at(self.connections.len() - 1)
    }

    /// A connection is over: its place is free.
    pub fn retire(&mut self, id: ConnectionId) {
        self.connections[id.index()].live = false;
        self.live -= 1;
        self.vacant.push(id);
    }

    /// Whether any connection is there.
    pub fn any(&self) -> bool {
        self.live > 0
    }

    /// The connections that are there, by their places.
    pub fn live(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, connection)| connection.live).map(|(place, _)| ConnectionId::at(place))
    }

    /// Whose a packet with this key is, if its connection is still there.
    pub fn owner(&self, id: ConnectionId, key: FlowKey) -> Option<FlowIndex> {
        let connection = &self.connections[id.index()];
        let ours = [connection.key, connection.key.reversed()].contains(&key);
        (ours && connection.live).then_some(connection.flow)
    }

    #[inline]
    fn get(&self, id: ConnectionId) -> &Connection {
        &self.connections[id.index()]
    }

    /// What the packets of a connection go by, from sender to receiver.
    #[inline]
    pub fn key(&self, id: ConnectionId) -> FlowKey {
        self.get(id).key
    }

    /// Whose bytes it carries.
    #[inline]
    pub fn flow(&self, id: ConnectionId) -> FlowIndex {
        self.get(id).flow
    }

    /// Its number among those of its flow.
    #[inline]
    pub fn copy(&self, id: ConnectionId) -> u8 {
        self.get(id).copy
    }

    /// The number of its transport.
    pub fn number(&self, id: ConnectionId) -> u8 {
        self.get(id).profile
    }

    /// What a connection goes by.
    #[inline]
    pub fn profile(&self, id: ConnectionId) -> &'a Profile {
        &self.profiles[usize::from(self.connections[id.index()].profile)]
    }

    /// A transport by its number.
    pub fn transport(&self, number: u8) -> &'a Profile {
        &self.profiles[usize::from(number)]
    }

    #[inline]
    pub fn sender(&self, id: ConnectionId) -> &Sender {
        &self.get(id).sender
    }

    #[inline]
    pub fn sender_mut(&mut self, id: ConnectionId) -> &mut Sender {
        &mut self.connections[id.index()].sender
    }

    pub fn receiver(&self, id: ConnectionId) -> &Receiver {
        &self.get(id).receiver
    }

    pub fn receiver_mut(&mut self, id: ConnectionId) -> &mut Receiver {
        &mut self.connections[id.index()].receiver
    }

    /// Nothing can be heard any more of a connection that is still there.
    #[inline]
    pub fn is_over(&self, id: ConnectionId) -> bool {
        let connection = self.get(id);
        connection.in_network == 0 && connection.live && connection.sender.finished()
    }

    /// Bytes that a connection carries: all of its flow's, or a piece of them.
    pub fn carries(&self, id: ConnectionId, flow: &Flow) -> u64 {
        let (profile, sender) = (self.profile(id), self.sender(id));
        if profile.spreads {
            return flow.bytes;
        }
        let last = sender.segments() - 1;
        u64::from(last) * profile.tcp.mss.0 + sender.payload(profile, last)
    }

    /// Up to where a connection has brought its flow, when its receiver lacks this segment.
    pub fn brought(&self, id: ConnectionId, next: u32, flow: &Flow) -> u64 {
        let here = u64::from(next) * self.profile(id).tcp.mss.0;
        self.get(id).from + here.min(self.carries(id, flow))
    }

    /// Up to where its sender knows that it has.
    pub fn acknowledged(&self, id: ConnectionId) -> u64 {
        let here = u64::from(self.sender(id).una()) * self.profile(id).tcp.mss.0;
        self.get(id).from + here
    }

    // --- the connections of one flow, a chain of which the flow knows the head ----------------------------------------

    /// The connection after another one of its flow.
    pub fn after(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.connections[id.index()].sibling
    }

    /// The first connection of a chain that carries a copy.
    pub fn find(&self, head: Option<ConnectionId>, copy: u8) -> Option<ConnectionId> {
        let mut at = head;
        while let Some(id) = at.filter(|id| self.get(*id).copy != copy) {
            at = self.after(id);
        }
        at
    }

    /// Puts a connection in a chain before those of its copy and later ones; the chain's head from now on.
    pub fn insert(&mut self, head: Option<ConnectionId>, id: ConnectionId) -> ConnectionId {
        let copy = self.get(id).copy;
        let (mut before, mut after) = (None, head);
        while let Some(earlier) = after.filter(|after| self.get(*after).copy < copy) {
            (before, after) = (Some(earlier), self.after(earlier));
        }
        self.connections[id.index()].sibling = after;
        let Some(before) = before else { return id };
        self.connections[before.index()].sibling = Some(id);
        head.unwrap_or(id)
    }

    /// Puts a connection at the head of a chain.
    pub fn prepend(&mut self, head: Option<ConnectionId>, id: ConnectionId) -> ConnectionId {
        self.connections[id.index()].sibling = head;
        id
    }

    /// Takes a connection out of its chain; the chain's head from now on.
    pub fn unlink(&mut self, head: Option<ConnectionId>, id: ConnectionId) -> Option<ConnectionId> {
        let after = self.after(id);
        if head == Some(id) {
            return after;
        }
        let mut at = head;
        while let Some(before) = at {
            let next = self.after(before);
            if next == Some(id) {
                self.connections[before.index()].sibling = after;
                break;
            }
            at = next;
        }
        head
    }

    // --- packets ----------------------------------------------------------------------------------------------------

    /// A packet of a connection is in the network from now on.
    #[inline]
    pub fn note_sent(&mut self, id: ConnectionId) {
        self.connections[id.index()].in_network += 1;
    }

    /// It is there no more.
    #[inline]
    pub fn note_gone(&mut self, id: ConnectionId) {
        self.connections[id.index()].in_network -= 1;
    }

    /// The options of a packet that is no more may be used again.
    #[inline]
    pub fn release(&mut self, packet: &Packet) {
        self.options.release(packet.options);
    }

    /// What few packets carry.
    #[inline]
    pub fn options(&self) -> &OptionStore {
        &self.options
    }

    /// A packet has reached its connection's sender.
    #[inline]
    pub fn tell_sender(&mut self, now: Time, packet: &Packet) {
        let profile = self.profile(packet.connection);
        let sender = &mut self.connections[packet.connection.index()].sender;
        sender.on_packet(profile, now, &as_segment(packet), &self.options);
    }

    /// A packet has reached its connection's receiver.
    #[inline]
    pub fn tell_receiver(&mut self, now: Time, packet: &Packet) -> Heard {
        let profile = self.profile(packet.connection);
        let receiver = &mut self.connections[packet.connection.index()].receiver;
        let data = packet.flags.has(Flags::DATA) && !receiver.closed;
        let completed = receiver.on_packet(profile, now, &as_segment(packet), &self.options);
        Heard { data, completed }
    }

    /// What a connection's sender has to send, if anything.
    #[inline]
    pub fn poll_sender(&mut self, id: ConnectionId, now: Time) -> Option<Transmit> {
        let profile = self.profile(id);
        self.connections[id.index()].sender.poll_transmit(profile, now)
    }

    /// The packet for it.
    #[inline]
    pub fn segment(
        &mut self,
        id: ConnectionId,
        now: Time,
        transmit: Transmit,
        mapping: Option<Mapping>,
    ) -> Segment {
        let profile = self.profile(id);
        let sender = &mut self.connections[id.index()].sender;
        sender.packet(profile, now, transmit, mapping, &mut self.options)
    }

    /// Whether a connection's receiver has anything to send.
    #[inline]
    pub fn owes_answer(&self, id: ConnectionId) -> bool {
        self.connections[id.index()].receiver.owes_anything()
    }

    /// The next packet of a connection's receiver, if there is one.
    #[inline]
    pub fn poll_receiver(
        &mut self,
        id: ConnectionId,
        now: Time,
        data: Option<DataAck>,
    ) -> Option<Segment> {
        let profile = self.profile(id);
        let receiver = &mut self.connections[id.index()].receiver;
        receiver.poll_transmit(profile, now, data, &mut self.options)
    }

    // --- timers -----------------------------------------------------------------------------------------------------

    /// The earliest deadline of a connection, where it is to be woken earlier than it will be: it is from now on. A deadline
    /// that moves later costs nothing: the timer finds out when it fires.
    #[inline]
    pub fn earlier(&mut self, id: ConnectionId) -> Option<Time> {
        let connection = &mut self.connections[id.index()];
        let due = connection.sender.deadline().min(connection.receiver.deadline());
        (due < connection.timer).then(|| {
            connection.timer = due;
            due
        })
    }

    /// Whether a connection's receiver wants to be woken before the connection will be.
    #[inline]
    pub fn receiver_is_earlier(&self, id: ConnectionId) -> bool {
        let connection = &self.connections[id.index()];
        connection.receiver.deadline() < connection.timer
    }

    /// A connection's timer has fired. True when its receiver was waiting for that.
    pub fn wake_receiver(&mut self, id: ConnectionId, now: Time) -> bool {
        let profile = self.profile(id);
        let Connection { timer, receiver, .. } = &mut self.connections[id.index()];
        *timer = Time::NEVER;
        let due = receiver.deadline() <= now;
        if due {
            receiver.on_timer(&profile.tcp, now);
        }
        due
    }

    /// The same for its sender. True when a sender repeats what is not answered, and has been heard before.
    pub fn wake_sender(&mut self, id: ConnectionId, now: Time) -> bool {
        let profile = self.profile(id);
        let sender = &mut self.connections[id.index()].sender;
        sender.deadline() <= now
            && sender.on_timer(profile, now)
            && sender.phase() == Phase::Established
    }
}
