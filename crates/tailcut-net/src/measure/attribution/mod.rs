//! Attribution: splits every flow's completion time into parts that add up to it, to the
//! picosecond.
//!
//! An event of a flow has a chain of causes from the flow's start, and each cause takes time: a
//! packet waits for others, is transmitted, propagates; a timer runs. The chain travels with the
//! packet. A packet that a host sends continues the chain of the event that made the host send. The
//! chain of the packet that completes the flow is the split. Nothing is traced backwards, and no
//! part is computed as a remainder: an assertion checks that the parts add up. The rules are in
//! `docs/components/attribution.md`.

mod chains;
mod entries;
mod link_wait;
mod packets;
mod parts;
mod queue;
#[cfg(debug_assertions)]
mod wires;

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{ConnectionEnd, Observer};
use crate::packet::{ConnectionId, Flags, Packet, PacketId};
use crate::port::Port;
use crate::topology::{Graph, PortId};
use crate::traffic::FlowIndex;
use crate::transport::{SendLimit, Timer};

use chains::{Chains, Moment, NONE};
use entries::{Armed, ConnectionBook, FlowBook};
use link_wait::{Waited, ahead, ahead_in_order, retime};
use packets::{NOWHERE, OTHERS, PROPAGATION, Packets, TRANSMISSION, TracedPacket, WAITING};
pub use parts::{PARTS, Part, PartTimes};
use queue::{Left, QueueClock};

/// Observer that splits completion times.
#[derive(Debug, Clone)]
pub struct Attribution {
    chains: Chains,
    packets: Packets,
    /// Clocks of scheduled queues, by port; `None` where no packet has ever waited.
    queues: Vec<Option<Box<QueueClock>>>,
    #[cfg(debug_assertions)]
    wires: wires::Wires,
    /// Kind of place of each port.
    kinds: Vec<u8>,
    flows: Vec<FlowBook>,
    /// Whether the last byte of a flow has arrived; later events are not traced.
    over: Vec<bool>,
    connections: Vec<ConnectionBook>,
    /// The moment of the event that is being handled.
    cause: Moment,
    /// The chain of that event for packets sent because of it, once there is one, and the part that
    /// the previous round trip counts as in it.
    settled: (Part, u32),
    finished: BTreeMap<u64, PartTimes>,
}

/// Returns the kind of place before a link, as an index into [`WAITING`].
fn kind(graph: &Graph, port: usize) -> u8 {
    let (link, up) = (&graph.links[port / 2], port.is_multiple_of(2));
    let from = if up { link.a } else { link.b };
    match (up, link.tier) {
        _ if graph.switch(from).is_none() => 0,
        (true, 0 | 1) => 1,
        (true, _) => 2,
        (false, 0) => 5,
        (false, 1) => 4,
        (false, _) => 3,
    }
}

/// Returns the clock of the scheduled queue before a link, if a packet ever waited there.
#[inline]
fn queue_of(queues: &mut [Option<Box<QueueClock>>], link: PortId) -> Option<&mut QueueClock> {
    queues.get_mut(link.index())?.as_deref_mut()
}

impl Attribution {
    /// Creates an attribution for the flows on `graph`.
    pub fn new(graph: &Graph) -> Attribution {
        let ports = 2 * graph.links.len();
        Attribution {
            chains: Chains::default(),
            packets: Packets::default(),
            queues: vec![],
            #[cfg(debug_assertions)]
            wires: wires::Wires::new(ports),
            kinds: (0..ports).map(|port| kind(graph, port)).collect(),
            flows: vec![],
            over: vec![],
            connections: vec![],
            cause: Moment::NONE,
            settled: (Part::SlowStart, NONE),
            finished: BTreeMap::new(),
        }
    }

    /// Returns the parts of the completion time of a flow; `None` unless its last byte has arrived.
    pub fn parts_of(&self, flow: u64) -> Option<&PartTimes> {
        self.finished.get(&flow)
    }

    /// Makes `moment` the cause of what follows.
    #[inline]
    fn cause(&mut self, moment: Moment) {
        let before = std::mem::replace(&mut self.cause, moment);
        self.chains.release(before.chain);
        self.chains.release(std::mem::replace(&mut self.settled.1, NONE));
    }

    /// Makes the end of a wait since the moment `since` the cause of what follows, and counts the
    /// wait as `part`.
    fn cause_since(&mut self, now: Time, since: Moment, part: Part) {
        let mut moment = self.chains.keep(&since);
        if moment.is_traced() {
            self.chains.add(&mut moment.chain, part, now.0 - since.at);
            moment.at = now.0;
        }
        self.cause(moment);
    }

    /// Returns the chain of the current event, with the previous round trip counted as `part`.
    /// Everything sent because of the event shares it.
    #[inline]
    fn settled(&mut self, part: Part) -> u32 {
        if self.settled.1 == NONE || self.settled.0 != part {
            let mut moment = self.chains.keep(&self.cause);
            self.chains.settle(&mut moment, part);
            let (_, before) = std::mem::replace(&mut self.settled, (part, moment.chain));
            self.chains.release(before);
        }
        self.chains.share(self.settled.1);
        self.settled.1
    }

    /// Continues the chain of `packet` from the packet `before` it, which leaves after this one
    /// came: the later of two causes counts.
    #[inline]
    fn go_on_from(&mut self, now: Time, packet: u32, before: u32) {
        let (new, old) = (self.packets[before].chain, self.packets[packet].chain);
        self.chains.share(new);
        self.chains.release(old);
        self.packets.go_on_from(packet, before, now.0);
    }

    /// Counts the wait of a packet before `link` until its first bit leaves at `begins`.
    #[inline]
    fn wait_for_others(&mut self, now: Time, packet: u32, link: PortId, on: &Port, begins: Time) {
        let (packets, times) = (&self.packets, [now.0, begins.0]);
        let (waited, before) = match packets[packet].is_orderly() {
            true => ahead_in_order(packets, link.0, times, packet),
            false => ahead(packets, on, times, packet),
        };
        #[cfg(debug_assertions)]
        {
            let since = before.map_or(now.0, |before| self.packets[before].departs);
            let agree = self.wires.agree(&self.packets, link.0, since, packet, waited);
            debug_assert!(agree, "what waits is transmitted");
        }
        if let Some(before) = before {
            self.go_on_from(now, packet, before);
        }
        self.waits(packet, link, waited);
    }

    /// Adds waiting before `link` to a packet.
    #[inline]
    fn waits(&mut self, packet: u32, link: PortId, waited: Waited) {
        let Waited { same, own, others } = waited;
        let kind = usize::from(self.kinds[link.index()]);
        if same > 0 {
            self.packets.meet(packet, TRANSMISSION, same, &mut self.chains);
        }
        if others > 0 {
            self.packets.meet(packet, OTHERS + kind, others, &mut self.chains);
        }
        if own > 0 {
            self.chains.add(&mut self.packets[packet].chain, WAITING[kind][0], own);
        }
    }

    /// Takes a packet out of the scheduled queue before `link`.
    fn leave(&mut self, now: Time, packet: u32, link: PortId) -> Left {
        let queue = self.queues[link.index()].as_mut().expect("it waited there");
        queue.leave(now.0, &self.packets, packet)
    }

    /// Notes, in builds with assertions, that a packet leaves its link, if it was on one.
    #[inline(always)]
    #[allow(clippy::unused_self, reason = "builds with assertions note it")]
    fn comes(&mut self, packet: u32) {
        #[cfg(debug_assertions)]
        self.wires.pop(&self.packets, packet);
        #[cfg(not(debug_assertions))]
        let _ = packet;
    }

    /// Forgets a packet that causes nothing more.
    fn forget(&mut self, packet: u32) {
        self.comes(packet);
        let chain = self.packets.forget(packet);
        self.chains.release(chain);
    }
}

impl Observer for Attribution {
    const WANTS_VIEWS: bool = false;
    const TRACES_PACKETS: bool = true;

    #[inline]
    fn packet_nears(&mut self, ticket: PacketId) {
        if let Some(record) = self.packets.get(ticket.0) {
            tailcut_engine::prefetch(record);
        }
    }

    #[inline]
    fn packet_sent(&mut self, now: Time, flow: FlowIndex, ticket: PacketId, packet: &Packet) {
        let place = ticket.0;
        self.packets.admit(place, now.0);
        if !self.cause.is_traced() || self.over[flow.index()] {
            return;
        }
        let Moment { chain, at, transmission, propagation } = self.cause;
        let traced = (self.chains.flow(chain), at);
        debug_assert_eq!(traced, (flow.0, now.0), "what makes a host send is traced");
        let again = packet.flags.has(Flags::RETRANSMISSION);
        let back = packet.flags.has(Flags::TO_SENDER);
        let connection = packet.connection;
        let chain = match packet.flags {
            _ if back => self.chains.keep(&self.cause).chain,
            _ if again => self.settled(Part::Recovery),
            _ => self.settled(self.connections[connection.index()].window()),
        };
        let end = if back { ConnectionEnd::Receiver } else { ConnectionEnd::Sender };
        let last = &mut self.connections[connection.index()].timers[end as usize].last;
        let before = last.as_mut().map(|last| std::mem::replace(last, place));
        self.packets.trace(place, &TracedPacket { chain, flow: flow.0, connection, again, before });
        if back {
            self.packets.meet(place, TRANSMISSION, transmission, &mut self.chains);
            self.packets.meet(place, PROPAGATION, propagation, &mut self.chains);
        }
    }

    #[inline]
    fn packet_on_link(
        &mut self,
        now: Time,
        ticket: PacketId,
        link: PortId,
        on: &Port,
        begins: Time,
        departs: Time,
    ) {
        let packet = ticket.0;
        self.comes(packet);
        if begins > now && self.packets[packet].is_traced() {
            self.wait_for_others(now, packet, link, on, begins);
        }
        self.packets.ride(packet, link.0, now.0, [begins.0, departs.0], &mut self.chains);
        #[cfg(debug_assertions)]
        self.wires.push(packet, link.0);
        if let Some(queue) = queue_of(&mut self.queues, link) {
            queue.take(&self.packets, packet);
        }
    }

    fn packet_waits(&mut self, now: Time, ticket: PacketId, link: PortId, on: &Port) {
        self.comes(ticket.0);
        self.packets.wait(ticket.0, now.0, &mut self.chains);
        let last = on.latest().next().map(|(last, _)| last.seq.ticket().0);
        if self.queues.len() <= link.index() {
            self.queues.resize(link.index() + 1, None);
        }
        let queue = self.queues[link.index()].get_or_insert_with(|| {
            let departs = last.map_or(now.0, |last| self.packets[last].departs);
            Box::new(QueueClock::new(departs.max(now.0)))
        });
        queue.enter(now.0, &self.packets, ticket.0, last);
    }

    fn packet_leaves(&mut self, now: Time, ticket: PacketId, link: PortId, on: &Port) {
        let packet = ticket.0;
        let left = self.leave(now, packet, link);
        self.packets[packet].departs = now.0;
        let record = self.packets[packet];
        if !record.is_traced() {
            return;
        }
        let goes_on = !record.is_again() && left.since < now.0;
        let before =
            on.latest().map(|(before, _)| before.seq.ticket().0).find(|&before| before != packet);
        let before = before.filter(|&before| {
            let before = &self.packets[before];
            goes_on && before.departs == now.0 && before.is_of_connection_of(&record)
        });
        match before {
            Some(before) => self.go_on_from(now, packet, before),
            None => {
                self.waits(packet, link, left.waited);
                if left.idle > 0 {
                    let chain = &mut self.packets[packet].chain;
                    self.chains.add(chain, Part::Pause, left.idle);
                }
            }
        }
    }

    #[inline]
    fn packet_delivered(&mut self, now: Time, ticket: PacketId, packet: &Packet) {
        let end = if packet.flags.has(Flags::TO_SENDER) {
            ConnectionEnd::Sender
        } else {
            ConnectionEnd::Receiver
        };
        let timers = &self.connections[packet.connection.index()].timers;
        tailcut_engine::prefetch(&timers[end as usize]);
        self.comes(ticket.0);
        let mut moment = self.packets.arrive(ticket.0, now.0, &mut self.chains);
        if moment.is_traced() && packet.flags.has(Flags::SYN | Flags::TO_SENDER) {
            // The handshake is not a round trip that waits for a window.
            self.chains.settle_as_they_are(&mut moment);
        }
        self.cause(moment);
    }

    fn packet_ends(&mut self, _: Time, ticket: PacketId, packet: &Packet) {
        let end = if packet.flags.has(Flags::TO_SENDER) {
            ConnectionEnd::Receiver
        } else {
            ConnectionEnd::Sender
        };
        let last = &mut self.connections[packet.connection.index()].timers[end as usize].last;
        if let Some(last) = last.as_mut().filter(|_| self.packets[ticket.0].is_orderly()) {
            self.packets.take_out(ticket.0, last);
        }
        self.forget(ticket.0);
    }

    fn packet_displaced(&mut self, now: Time, ticket: PacketId, link: PortId) {
        self.leave(now, ticket.0, link);
        self.forget(ticket.0);
    }

    fn packet_stranded(&mut self, now: Time, ticket: PacketId, link: PortId) {
        if let Some(queue) = queue_of(&mut self.queues, link) {
            queue.stop(now.0);
        }
        match self.packets[ticket.0].link == link.0 {
            true => self.forget(ticket.0),
            false => self.packet_displaced(now, ticket, link),
        }
    }

    fn link_retimed(&mut self, now: Time, link: PortId, departures: &[(PacketId, Time)]) {
        let kind = usize::from(self.kinds[link.index()]);
        let (packets, chains) = (&mut self.packets, &mut self.chains);
        let queue = queue_of(&mut self.queues, link);
        retime(queue, packets, chains, now.0, departures, |packets, chains, packet, old, new| {
            packets.change(packet, TRANSMISSION, old.same, new.same, chains);
            packets.change(packet, OTHERS + kind, old.others, new.others, chains);
            if old.own > 0 {
                chains.change(&mut packets[packet].chain, WAITING[kind][0], old.own, new.own);
            }
        });
    }

    fn flow_starts(&mut self, now: Time, flow: FlowIndex, id: u64) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, FlowBook::NEW);
            self.over.resize(flow.index() + 1, true);
        }
        self.flows[flow.index()] = FlowBook { id, start: now.0, ..FlowBook::NEW };
        self.over[flow.index()] = false;
        let start = self.chains.begin(now.0, flow.0);
        self.cause(start);
    }

    fn policy_timer_armed(&mut self, _: Time, flow: FlowIndex) {
        self.chains.restart(&mut self.flows[flow.index()].asked, &self.cause);
    }

    fn policy_timer_fired(&mut self, now: Time, flow: FlowIndex) {
        self.cause_since(now, self.flows[flow.index()].asked, Part::CopyDelay);
    }

    fn flow_finishes(&mut self, now: Time, flow: FlowIndex) {
        let book = &mut self.flows[flow.index()];
        let FlowBook { id, start, asked, .. } = *book;
        (book.asked, self.over[flow.index()]) = (Moment::NONE, true);
        self.chains.release(asked.chain);
        let mut moment = self.chains.keep(&self.cause);
        assert!(moment.is_traced(), "flow {id} has finished, and nothing has led there");
        assert_eq!(
            self.chains.flow(moment.chain),
            flow.0,
            "flow {id} has finished by what another did"
        );
        self.chains.settle_as_they_are(&mut moment);
        let parts = self.chains.parts(moment.chain);
        self.chains.release(moment.chain);
        assert_eq!(parts.total(), Time(now.0 - start), "the parts of flow {id} add up: {parts:?}");
        self.finished.insert(id, parts);
    }

    fn connection_opens(
        &mut self,
        _: Time,
        connection: ConnectionId,
        flow: FlowIndex,
        orderly: bool,
    ) {
        self.packets.open(connection, flow.0);
        if self.connections.len() <= connection.index() {
            self.connections.resize(connection.index() + 1, ConnectionBook::NEW);
        }
        let before =
            std::mem::replace(&mut self.connections[connection.index()], ConnectionBook::NEW);
        let ConnectionBook { timers: [sender, receiver], pull, turn } = before;
        for moment in [sender.since, receiver.since, pull, turn] {
            self.chains.release(moment.chain);
        }
        for end in &mut self.connections[connection.index()].timers {
            end.last = orderly.then_some(NOWHERE);
        }
    }

    #[inline]
    fn timer_set(
        &mut self,
        _: Time,
        at: ConnectionId,
        end: ConnectionEnd,
        deadline: Time,
        timer: Timer,
    ) {
        let armed = &mut self.connections[at.index()].timers[end as usize];
        if armed.deadline == deadline {
            return;
        }
        let since = self.chains.keep(&self.cause);
        let before = std::mem::replace(armed, Armed { deadline, timer, since, ..*armed });
        self.chains.release(before.since.chain);
    }

    #[inline]
    fn sender_limited(&mut self, _: Time, connection: ConnectionId, stop: SendLimit) {
        let sender =
            &mut self.connections[connection.index()].timers[ConnectionEnd::Sender as usize];
        sender.window = match stop {
            SendLimit::SlowStart => Part::SlowStart,
            SendLimit::CongestionWindow => Part::CongestionWindow,
            SendLimit::ReceiveWindow => Part::ReceiveWindow,
        };
    }

    fn timer_fires(&mut self, now: Time, connection: ConnectionId, end: ConnectionEnd) {
        let Armed { timer, since, window, .. } =
            self.connections[connection.index()].timers[end as usize];
        let part = match timer {
            Timer::Open => Part::CopyDelay,
            Timer::Syn => Part::SynTimeout,
            Timer::Retransmission => Part::Timeout,
            Timer::Probe => Part::Probe,
            // Only the window stopped the sender, so there was no tail to probe.
            Timer::WindowProbe => window,
            Timer::Reordering => Part::Reordering,
            Timer::Pacing => Part::Pacing,
            Timer::DelayedAck => Part::DelayedAck,
        };
        self.cause_since(now, since, part);
        if end == ConnectionEnd::Sender && self.cause.is_traced() {
            let settles = if timer == Timer::Reordering { Part::Recovery } else { window };
            self.chains.settle(&mut self.cause, settles);
        }
    }

    fn connection_wakes(&mut self, now: Time, connection: ConnectionId) {
        let Armed { since, window, .. } =
            self.connections[connection.index()].timers[ConnectionEnd::Sender as usize];
        self.cause_since(now, since, window);
    }

    fn pull_wanted(&mut self, _: Time, connection: ConnectionId) {
        self.chains.restart(&mut self.connections[connection.index()].pull, &self.cause);
    }

    fn pull_turn(&mut self, now: Time, connection: ConnectionId) {
        self.cause_since(now, self.connections[connection.index()].pull, Part::Pull);
    }

    fn turn_wanted(&mut self, _: Time, connection: ConnectionId) {
        self.chains.restart(&mut self.connections[connection.index()].turn, &self.cause);
    }

    fn turn_given(&mut self, now: Time, connection: ConnectionId, alone: bool) {
        let part = if alone { Part::Transmission } else { Part::InterfaceOthers };
        self.cause_since(now, self.connections[connection.index()].turn, part);
    }
}
