//! The connections of all hosts: their places in the table of the run, the two ends of each, and
//! what of them is under way.
//!
//! A connection's two ends are two structs, and what happens at a host touches those that are
//! there; each has a timer of its own. A run on one core keeps one thing of both once: how many of
//! the connection's packets are in the network.

mod chains;
mod opening;
#[cfg(test)]
pub(super) mod tests;
mod view;

use tailcut_engine::Time;

pub(super) use self::chains::Chains;
pub(super) use self::opening::{FlowContext, NewConnection};
use super::profile::{ProfileId, TransportProfile};
use super::receiver::Receiver;
use super::sender::Sender;
use crate::packet::{Carried, ConnectionId, Flags, FlowKey, OptionStore, Packet};
use crate::traffic::{Flow, FlowIndex};
use crate::transport::tcp::Close;
use crate::transport::{ConnectionState, DataAck, Mapping, Segment, Transmit};

/// A connection as its end knows it from the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionInfo {
    /// The key of the packets that the end sends.
    pub key: FlowKey,
    /// The flow whose bytes the connection carries.
    pub flow: FlowIndex,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// The connection's number within its flow.
    pub copy: u8,
    /// The transport profile.
    pub profile: ProfileId,
}

/// A connection at the host that sends.
struct SendingEnd {
    known: ConnectionInfo,
    /// Whether the end waits for a turn at its interface.
    in_line: bool,
    /// The next connection of the same flow at this host.
    sibling: Option<ConnectionId>,
    /// The time at which the event queue will wake the end, no later than its deadline.
    timer: Time,
    sender: Sender,
}

/// A connection at the host that receives.
struct ReceiverEnd {
    known: ConnectionInfo,
    /// The next connection of the same flow at this host.
    sibling: Option<ConnectionId>,
    /// The time at which the event queue will wake the end, no later than its deadline.
    timer: Time,
    /// Whether the end has a place in the order of its host's ends.
    is_ordered: bool,
    receiver: Receiver,
}

/// The part of a connection that a run on one core keeps once.
struct Shared {
    live: bool,
    /// The number of its packets that are queued or on a wire, and of its ends that are being
    /// processed.
    holds: u32,
}

/// Holds of a connection whose ends lie in different partitions, beside those of packets: as many
/// packets may end in a partition as have never set out there.
const UNTIL_RETIRED: u32 = 1 << 31;

/// Both ends in their place of the table. Neither looks at the other.
struct Connection {
    receiving: ReceiverEnd,
    shared: Shared,
    sending: SendingEnd,
}

/// Returns the view of a packet for the ends of its connection.
#[inline]
fn as_segment(packet: &Packet) -> Segment {
    let &Packet { seq, options, wire_bytes, flags, key, .. } = packet;
    let entropy = if flags.has(Flags::TO_SENDER) { key.dport() } else { key.sport() };
    Segment { seq: seq.number(), options, wire_bytes, flags, entropy }
}

/// The outcome of a packet at a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReceiveOutcome {
    /// Whether it carried data for an application that is still there.
    pub data: bool,
    /// Whether it completed the connection's data.
    pub completed: bool,
}

/// The connections of a run.
pub(super) struct Connections<'a> {
    /// The transports of the run; a connection knows the number of its own.
    profiles: &'a [TransportProfile],
    connections: Vec<Connection>,
    /// Places of retired connections, to be used again.
    vacant: Vec<ConnectionId>,
    live: usize,
    /// The options that few packets carry.
    options: OptionStore,
}

impl<'a> Connections<'a> {
    pub fn new(profiles: &'a [TransportProfile]) -> Connections<'a> {
        Connections {
            profiles,
            connections: vec![],
            vacant: vec![],
            live: 0,
            options: OptionStore::default(),
        }
    }

    /// Returns whether any transport of the run discards old segments (PAWS).
    pub fn use_paws(&self) -> bool {
        self.profiles.iter().any(|profile| !profile.tcp.paws.is_off())
    }

    // --- who is there

    /// Gives a connection a place, preferably a used one.
    pub fn admit(&mut self, opening: NewConnection) -> ConnectionId {
        let NewConnection { key, flow, copy, from, profile, sender, closed } = opening;
        // A sender without segments will be given some, nobody knows how many.
        let segments = match sender.segments() {
            0 => u32::MAX,
            segments => segments,
        };
        let mut receiver = Receiver::new(self.transport(profile), segments);
        receiver.closed = closed;
        let known = ConnectionInfo { key, flow, from, copy, profile };
        let (sibling, timer) = (None, Time::NEVER);
        let sending = SendingEnd { known, in_line: false, sibling, timer, sender };
        let known = ConnectionInfo { key: key.reversed(), ..known };
        let receiving = ReceiverEnd { known, sibling, timer, is_ordered: false, receiver };
        let shared = Shared { live: true, holds: 0 };
        let connection = Connection { receiving, shared, sending };
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
        self.connections[id.index()].shared.live = false;
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
        all.filter(|(_, connection)| connection.shared.live)
            .map(|(place, _)| ConnectionId::at(place))
    }

    /// Returns the flow of a packet with this key, if its connection still exists.
    pub fn owner(&self, id: ConnectionId, key: FlowKey) -> Option<FlowIndex> {
        let ours =
            [self.sender_info(id), self.receiver_info(id)].into_iter().find(|end| end.key == key);
        ours.filter(|_| self.connections[id.index()].shared.live).map(|end| end.flow)
    }

    /// Returns a connection as its sending end knows it.
    #[inline]
    pub fn sender_info(&self, id: ConnectionId) -> &ConnectionInfo {
        &self.connections[id.index()].sending.known
    }

    /// Returns a connection as its receiving end knows it.
    #[inline]
    pub fn receiver_info(&self, id: ConnectionId) -> &ConnectionInfo {
        &self.connections[id.index()].receiving.known
    }

    /// Returns the flow of a packet in the network, as recorded at the end that sent the packet.
    #[inline]
    pub fn flow_of(&self, packet: &Packet) -> FlowIndex {
        match packet.flags.has(Flags::TO_SENDER) {
            true => self.receiver_info(packet.connection).flow,
            false => self.sender_info(packet.connection).flow,
        }
    }

    /// Returns the transport profile recorded at the connection's sending end.
    #[inline]
    pub fn sender_profile(&self, id: ConnectionId) -> &'a TransportProfile {
        self.transport(self.sender_info(id).profile)
    }

    /// The same, as its receiving end does.
    #[inline]
    pub fn receiver_profile(&self, id: ConnectionId) -> &'a TransportProfile {
        self.transport(self.receiver_info(id).profile)
    }

    /// A transport by its number.
    #[inline]
    pub fn transport(&self, number: ProfileId) -> &'a TransportProfile {
        &self.profiles[number.index()]
    }

    #[inline]
    pub fn sender(&self, id: ConnectionId) -> &Sender {
        &self.connections[id.index()].sending.sender
    }

    #[inline]
    pub fn sender_mut(&mut self, id: ConnectionId) -> &mut Sender {
        &mut self.connections[id.index()].sending.sender
    }

    pub fn receiver(&self, id: ConnectionId) -> &Receiver {
        &self.connections[id.index()].receiving.receiver
    }

    pub fn receiver_mut(&mut self, id: ConnectionId) -> &mut Receiver {
        &mut self.connections[id.index()].receiving.receiver
    }

    /// Nothing can be heard any more of a connection that is still there.
    #[inline]
    pub fn is_over(&self, id: ConnectionId) -> bool {
        let Connection { shared, sending, receiving } = &self.connections[id.index()];
        shared.holds == 0
            && shared.live
            && sending.sender.finished()
            && !receiving.receiver.repeats_fin()
    }

    /// Bytes that a connection carries: all of its flow's, or a piece of them.
    pub fn carries(&self, id: ConnectionId, flow: &Flow) -> u64 {
        let (profile, sender) = (self.sender_profile(id), self.sender(id));
        if profile.is_multipath {
            return flow.bytes;
        }
        let last = sender.segments() - 1;
        u64::from(last) * profile.tcp.mss.0 + sender.payload(profile, last)
    }

    /// Up to where a connection has brought its flow, when its receiver lacks this segment.
    pub fn brought(&self, id: ConnectionId, next: u32, flow: &Flow) -> u64 {
        let here = u64::from(next) * self.sender_profile(id).tcp.mss.0;
        self.sender_info(id).from + here.min(self.carries(id, flow))
    }

    /// Up to where its sender knows that it has.
    pub fn acknowledged(&self, id: ConnectionId) -> u64 {
        let here = u64::from(self.sender(id).una()) * self.sender_profile(id).tcp.mss.0;
        self.sender_info(id).from + here
    }

    // --- subflows

    /// Before an acknowledgement: `growth` is how much the coupling lets a subflow's window grow by
    /// it, asked for where that matters.
    #[inline]
    pub fn couple(&mut self, id: ConnectionId, growth: impl FnOnce() -> Option<f64>) {
        let Sender::Tcp(sender) = self.sender_mut(id) else { return };
        if sender.cwnd() < sender.ssthresh() {
            return;
        }
        if let Some(growth) = growth() {
            sender.couple(growth);
        }
    }

    /// The sender knows that all data of the flow has arrived: the subflow that has `heard` of it
    /// closes as TCP does, if it has nothing under way, and so does any where nothing is ever sent
    /// after the last ACK; others are reset.
    pub fn close_subflow(&mut self, id: ConnectionId, heard: bool) {
        let silent = self.sender_profile(id).tcp.close == Close::None;
        if let Sender::Tcp(sender) = self.sender_mut(id) {
            if sender.outstanding() == 0 && (heard || silent) {
                sender.finish();
            }
            if !sender.finished() {
                sender.abort();
            }
        }
    }

    // --- packets

    /// A packet of the connection is in the network, or one of its ends is at work: it is not over
    /// before that is so no more. A packet may be dropped at its own host's interface, while its
    /// end goes on.
    #[inline]
    pub fn retain(&mut self, id: ConnectionId) {
        self.connections[id.index()].shared.holds += 1;
    }

    /// The packet is gone, or the end is done.
    #[inline]
    pub fn release(&mut self, id: ConnectionId) {
        self.connections[id.index()].shared.holds -= 1;
    }

    /// A partition alone does not know when a connection is over: it is not before it is retired.
    pub fn hold_until_retired(&mut self, id: ConnectionId) {
        self.connections[id.index()].shared.holds += UNTIL_RETIRED;
    }

    /// Returns how many more of a held connection's packets have set out in a partition than have
    /// ended there.
    pub fn packets_held(&self, id: ConnectionId) -> i64 {
        i64::from(self.connections[id.index()].shared.holds) - i64::from(UNTIL_RETIRED)
    }

    /// The options of a packet that is no more may be used again.
    #[inline]
    pub fn release_options(&mut self, packet: &Packet) {
        self.options.release(packet.options);
    }

    /// Stores the options of a packet from another partition, and returns what its `options` must
    /// say.
    pub fn import_options(&mut self, carried: Carried) -> u32 {
        self.options.import(carried)
    }

    /// Returns the options that few packets carry.
    #[inline]
    pub fn options(&self) -> &OptionStore {
        &self.options
    }

    /// A packet has reached its connection's sender.
    #[inline(always)]
    pub fn on_packet_at_sender(&mut self, now: Time, packet: &Packet) {
        let SendingEnd { known, sender, .. } =
            &mut self.connections[packet.connection.index()].sending;
        let profile = &self.profiles[known.profile.index()];
        sender.on_packet(profile, now, &as_segment(packet), &self.options);
    }

    /// A packet has reached its connection's receiver.
    #[inline(always)]
    pub fn on_packet_at_receiver(&mut self, now: Time, packet: &Packet) -> ReceiveOutcome {
        let ReceiverEnd { known, receiver, .. } =
            &mut self.connections[packet.connection.index()].receiving;
        let profile = &self.profiles[known.profile.index()];
        let data = packet.flags.has(Flags::DATA) && !receiver.closed;
        let completed = receiver.on_packet(profile, now, &as_segment(packet), &self.options);
        ReceiveOutcome { data, completed }
    }

    /// Returns the next segment of a connection's sender; `None` if it has nothing to send.
    #[inline]
    pub fn poll_sender(&mut self, id: ConnectionId, now: Time) -> Option<Transmit> {
        let SendingEnd { known, sender, .. } = &mut self.connections[id.index()].sending;
        sender.poll_transmit(&self.profiles[known.profile.index()], now)
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
        let SendingEnd { known, sender, .. } = &mut self.connections[id.index()].sending;
        let profile = &self.profiles[known.profile.index()];
        sender.packet(profile, now, transmit, mapping, &mut self.options)
    }

    /// Whether a connection's receiver has anything to send.
    #[inline]
    pub fn owes_answer(&self, id: ConnectionId) -> bool {
        self.receiver(id).has_output()
    }

    /// The next packet of a connection's receiver, if there is one.
    #[inline(always)]
    pub fn poll_receiver(
        &mut self,
        id: ConnectionId,
        now: Time,
        data: Option<DataAck>,
    ) -> Option<Segment> {
        let ReceiverEnd { known, receiver, .. } = &mut self.connections[id.index()].receiving;
        let profile = &self.profiles[known.profile.index()];
        receiver.poll_transmit(profile, now, data, &mut self.options)
    }

    /// A sender waits for a turn at its interface. Returns false if it waits already.
    pub fn queue_for_turn(&mut self, id: ConnectionId) -> bool {
        !std::mem::replace(&mut self.connections[id.index()].sending.in_line, true)
    }

    /// Returns whether a sender waits for a turn.
    pub fn waits_for_turn(&self, id: ConnectionId) -> bool {
        self.connections[id.index()].sending.in_line
    }

    /// A sender waits for no turn any more. Returns whether it did.
    pub fn leave_turns(&mut self, id: ConnectionId) -> bool {
        std::mem::take(&mut self.connections[id.index()].sending.in_line)
    }

    // --- timers

    /// Returns the deadline of a connection's sender, where that is to be woken earlier than it
    /// will be: it is from now on. A deadline that moves later costs nothing: the timer finds out
    /// when it fires.
    #[inline]
    pub fn wake_for_sender(&mut self, id: ConnectionId) -> Option<Time> {
        let SendingEnd { timer, sender, .. } = &mut self.connections[id.index()].sending;
        earlier(timer, sender.deadline())
    }

    /// Returns the same for its receiver.
    #[inline]
    pub fn wake_for_receiver(&mut self, id: ConnectionId) -> Option<Time> {
        let ReceiverEnd { timer, receiver, .. } = &mut self.connections[id.index()].receiving;
        earlier(timer, receiver.deadline())
    }

    /// Returns true once: where a connection's receiver has no place yet in the order of its host's
    /// ends.
    pub fn joins_order(&mut self, id: ConnectionId) -> bool {
        !std::mem::replace(&mut self.connections[id.index()].receiving.is_ordered, true)
    }

    /// The timer of a connection's receiver fires. Returns true where the receiver was waiting for
    /// it.
    pub fn fire_receiver_timer(&mut self, id: ConnectionId, now: Time) -> bool {
        let profile = self.receiver_profile(id);
        let ReceiverEnd { timer, receiver, .. } = &mut self.connections[id.index()].receiving;
        *timer = Time::NEVER;
        let due = receiver.deadline() <= now;
        if due {
            receiver.on_timer(&profile.tcp, now);
        }
        due
    }

    /// The timer of a connection's sender fires. Returns true where that repeats data that are not
    /// acknowledged.
    pub fn fire_sender_timer(&mut self, id: ConnectionId, now: Time) -> bool {
        let profile = self.sender_profile(id);
        let SendingEnd { timer, sender, .. } = &mut self.connections[id.index()].sending;
        *timer = Time::NEVER;
        sender.deadline() <= now
            && sender.on_timer(profile, now)
            && sender.phase() == ConnectionState::Established
    }
}

/// Moves a timer to an earlier deadline; returns it if it is one.
#[inline]
fn earlier(timer: &mut Time, due: Time) -> Option<Time> {
    (due < *timer).then(|| {
        *timer = due;
        due
    })
}
