//! Attribution: every flow's completion time split into parts that add up to it, to the picosecond.
//!
//! What has led to an event of a flow is a chain of causes from its start, and each of its links takes time: a packet waits for
//! others, is transmitted, travels; a timer runs. The chain goes with the packet. A packet that a host sends goes on from the event
//! that made it send, and the chain of the packet that completes the flow is the split. Nothing is walked backwards, and no
//! part is what is left of the others: that they add up is asserted. The rules are in `docs/components/attribution.md`.

mod chains;
mod line;
mod parts;

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{End, Observer, Timer};
use crate::packet::{ConnectionId, Flags, Packet};
use crate::topology::{Graph, PortId};
use crate::traffic::FlowIndex;

use chains::{Chains, NONE};
use line::{Carried, Line, Riding, Waited};
pub use parts::{Part, Parts, PARTS};

/// What a connection, or a flow, has before and on one link.
#[derive(Debug, Clone, Copy)]
struct Place {
    port: PortId,
    /// None for all of the flow.
    connection: u32,
    /// Packets there.
    count: u32,
    /// The last that the transmitter took, by its number on the link.
    last: u32,
    /// Transmission times of what it took, of this connection, while any was there.
    sent: u64,
}

/// What is known of a flow.
#[derive(Debug, Clone)]
struct FlowBook {
    id: u64,
    start: u64,
    /// Its last byte has arrived: the rest is of no interest.
    over: bool,
    /// The event after which it wants to be asked again.
    asked: u32,
    /// Where its packets are: few links at a time.
    places: Vec<Place>,
}

impl FlowBook {
    const NEW: FlowBook = FlowBook { id: 0, start: 0, over: true, asked: NONE, places: vec![] };

    #[inline]
    fn find(&self, port: PortId, connection: u32) -> Option<usize> {
        self.places.iter().position(|p| p.port == port && p.connection == connection)
    }

    /// Another packet is there.
    #[inline]
    fn enter(&mut self, port: PortId, connection: u32, line: &Line) -> usize {
        if let Some(place) = self.find(port, connection) {
            self.places[place].count += 1;
            return place;
        }
        let last = line.gone();
        self.places.push(Place { port, connection, count: 1, last, sent: 0 });
        self.places.len() - 1
    }

    /// One fewer is.
    #[inline]
    fn leave(&mut self, port: PortId, connection: u32) {
        if let Some(place) = self.find(port, connection) {
            self.places[place].count -= 1;
            if self.places[place].count == 0 {
                self.places.swap_remove(place);
            }
        }
    }

    /// Whether other connections of the flow have anything there.
    #[inline]
    fn has_others(&self, port: PortId, connection: u32) -> bool {
        self.places.iter().any(|p| p.port == port && p.connection != connection)
    }

    fn sent(&self, port: PortId, connection: u32) -> u64 {
        self.find(port, connection).map_or(0, |place| self.places[place].sent)
    }
}

/// What an end of a connection waits for.
#[derive(Debug, Clone, Copy)]
struct Armed {
    deadline: Time,
    timer: Timer,
    /// The event since which it does, or waits for nothing.
    chain: u32,
}

/// What is known of a connection.
#[derive(Debug, Clone)]
struct ConnectionBook {
    timers: [Armed; 2],
    /// The event since which its receiver waits for its turn.
    pull: u32,
}

impl ConnectionBook {
    const NEW: ConnectionBook = {
        let idle = Armed { deadline: Time::NEVER, timer: Timer::Open, chain: NONE };
        ConnectionBook { timers: [idle; 2], pull: NONE }
    };
}

/// The packet between two places.
#[derive(Debug, Clone, Copy)]
struct Hand {
    carried: Carried,
    /// It comes from a queue before the link that it goes on, where it waited for this.
    queued: Option<Waited>,
}

impl Hand {
    const EMPTY: Hand = Hand { carried: Carried::NOTHING, queued: None };
}

/// The observer that splits completion times.
#[derive(Debug, Clone)]
pub struct Attribution {
    chains: Chains,
    lines: Vec<Line>,
    /// What waiting at each port counts as: behind the flow's other connections, and behind other flows.
    kinds: Vec<[Part; 2]>,
    flows: Vec<FlowBook>,
    connections: Vec<ConnectionBook>,
    hand: Hand,
    /// The event that is being handled.
    cause: u32,
    finished: BTreeMap<u64, Parts>,
}

/// What waiting before a link counts as.
fn kinds(graph: &Graph, port: usize) -> [Part; 2] {
    let (link, up) = (&graph.links[port / 2], port % 2 == 0);
    let from = if up { link.a } else { link.b };
    match (up, link.tier) {
        _ if from < graph.hosts => [Part::InterfaceOwn, Part::InterfaceOthers],
        (true, 0 | 1) => [Part::Up2Own, Part::Up2Others],
        (true, _) => [Part::Up3Own, Part::Up3Others],
        (false, 0) => [Part::Down1Own, Part::Down1Others],
        (false, 1) => [Part::Down2Own, Part::Down2Others],
        (false, _) => [Part::Down3Own, Part::Down3Others],
    }
}

impl Attribution {
    /// Of the flows on this network.
    pub fn new(graph: &Graph) -> Attribution {
        let ports = 2 * graph.links.len();
        Attribution {
            chains: Chains::default(),
            lines: vec![Line::default(); ports],
            kinds: (0..ports).map(|port| kinds(graph, port)).collect(),
            flows: vec![],
            connections: vec![],
            hand: Hand::EMPTY,
            cause: NONE,
            finished: BTreeMap::new(),
        }
    }

    /// The parts of the completion time of a flow, by its identifier; none unless its last byte has arrived.
    pub fn of(&self, flow: u64) -> Option<&Parts> {
        self.finished.get(&flow)
    }

    /// An event is handled from now on.
    #[inline]
    fn cause(&mut self, chain: u32) {
        let before = std::mem::replace(&mut self.cause, chain);
        self.chains.release(before);
    }

    /// The event is that somebody has waited since another one.
    fn cause_since(&mut self, now: Time, since: u32, part: Part) {
        let chain = match since {
            NONE => NONE,
            since => {
                let chain = self.chains.branch(since);
                self.chains.get_mut(chain).wait(part, now.0);
                chain
            }
        };
        self.cause(chain);
    }

    fn of_interest(&self, carried: &Carried) -> bool {
        carried.chain != NONE && !self.flows[carried.flow as usize].over
    }

    /// The packet in hand, which its hand leaves.
    #[inline]
    fn take(&mut self) -> Hand {
        let mut hand = std::mem::replace(&mut self.hand, Hand::EMPTY);
        if hand.carried.chain != NONE && !self.of_interest(&hand.carried) {
            self.chains.release(hand.carried.chain);
            hand.carried.chain = NONE;
        }
        hand
    }

    /// What the packet `carried` waits for before a link whose order is that of arrival: from its chain's event until `begins`.
    #[inline]
    fn waits_in_order(&mut self, port: PortId, begins: u64, carried: &Carried) -> Waited {
        let (line, flow) = (&self.lines[port as usize], &self.flows[carried.flow as usize]);
        let now = self.chains.get(carried.chain).at;
        let place = flow.find(port, carried.connection);
        let before = place.and_then(|place| line.get(flow.places[place].last));
        let (mut waited, mut since) = (Waited::default(), now);
        let held_up = before.filter(|q| q.departs > now && q.carried.chain != NONE);
        if let Some(q) = held_up.filter(|_| !carried.again) {
            // Of its two causes the packet before it comes later: the chain goes on from that.
            self.chains.replace(carried.chain, q.carried.chain);
            waited = Waited { same: q.waited.same + q.transmission(), ..q.waited };
            since = q.departs;
        }
        let looks = carried.again && held_up.is_some() || flow.has_others(port, carried.connection);
        if looks || cfg!(debug_assertions) {
            let Waited { same, own, others } = line.ahead(since, carried);
            assert_eq!(
                same + own + others,
                begins - since,
                "a transmitter works while packets wait"
            );
            waited.same += same;
            waited.own += own;
            waited.others += others;
        } else {
            waited.others += begins - since;
        }
        waited
    }
}

impl Observer for Attribution {
    const ACTIVE: bool = false;
    const FOLLOWS: bool = true;

    #[inline]
    fn packet_sent(&mut self, now: Time, flow: FlowIndex, packet: &Packet) {
        self.hand = Hand::EMPTY;
        if self.cause == NONE || self.flows[flow.index()].over {
            return;
        }
        let chain = self.chains.branch(self.cause);
        let again = packet.flags.has(Flags::RETRANSMISSION);
        let sent = self.chains.get_mut(chain);
        debug_assert_eq!((sent.flow, sent.at), (flow.0, now.0), "what makes a host send is told");
        if !packet.flags.has(Flags::TO_SENDER) {
            sent.settle(if again { Part::Recovery } else { Part::Window });
        }
        let connection = packet.connection.0;
        self.hand.carried = Carried { chain, flow: flow.0, connection, again };
    }

    #[inline]
    fn packet_rides(&mut self, now: Time, link: PortId, begins: Time, departs: Time, _: &Packet) {
        let Hand { carried, queued } = self.take();
        let (begins, departs) = (begins.0, departs.0);
        let mut waited = queued.unwrap_or_default();
        if carried.chain != NONE {
            if begins > now.0 && queued.is_none() {
                waited = self.waits_in_order(link, begins, &carried);
            }
            let (line, flow) = (&self.lines[link as usize], &mut self.flows[carried.flow as usize]);
            let place = match queued {
                None => flow.enter(link, carried.connection, line),
                Some(_) => flow.find(link, carried.connection).expect("it waited there"),
            };
            flow.places[place].last = line.next();
            for place in [Some(place), flow.find(link, NONE)].into_iter().flatten() {
                // What a link that has become faster took back may be more than what was counted here.
                let sent = &mut flow.places[place].sent;
                *sent = sent.wrapping_add(departs - begins);
            }
            debug_assert_eq!(self.chains.get(carried.chain).at + waited.total(), begins);
        }
        self.lines[link as usize].push(Riding { carried, begins, departs, waited });
    }

    fn packet_waits(&mut self, now: Time, link: PortId, packet: &Packet) {
        let Hand { carried, .. } = self.take();
        let line = &mut self.lines[link as usize];
        let (mut of_flow, mut of_connection) = (0, 0);
        if carried.chain != NONE {
            let flow = &mut self.flows[carried.flow as usize];
            of_connection = {
                let place = flow.enter(link, carried.connection, line);
                flow.places[place].sent
            };
            of_flow = {
                let place = flow.enter(link, NONE, line);
                flow.places[place].sent
            };
        }
        line.wait(now.0, carried, packet, of_flow, of_connection);
    }

    fn packet_leaves(&mut self, now: Time, link: PortId, packet: &Packet) {
        let waiting = self.lines[link as usize].leave(packet).expect("it waited there");
        let (now, mut carried) = (now.0, waiting.carried);
        if carried.chain == NONE || !self.of_interest(&carried) {
            self.chains.release(carried.chain);
            carried.chain = NONE;
            self.hand = Hand { carried, queued: None };
            return;
        }
        let (line, flow) = (&self.lines[link as usize], &mut self.flows[carried.flow as usize]);
        let of_flow = waiting.flow.since(flow.sent(link, NONE));
        flow.leave(link, NONE);
        let place = flow.find(link, carried.connection).expect("it waited there");
        let Place { last, sent, .. } = flow.places[place];
        let since = self.chains.get(carried.chain).at;
        let before = line.get(last).filter(|q| q.departs == now && now > since && !carried.again);
        let waited = match before.filter(|q| q.carried.chain != NONE) {
            Some(q) => {
                self.chains.replace(carried.chain, q.carried.chain);
                Waited { same: q.waited.same + q.transmission(), ..q.waited }
            }
            None => {
                let (same, idle) = (waiting.connection.since(sent), line.idle(now) - waiting.idle);
                let others = waiting.all.since(line.sent()) - of_flow;
                let chain = self.chains.get_mut(carried.chain);
                chain.parts.add(Part::Pause, idle);
                chain.at += idle;
                Waited { same, own: of_flow - same, others }
            }
        };
        self.hand = Hand { carried, queued: Some(waited) };
    }

    #[inline]
    fn packet_crosses(&mut self, now: Time, link: PortId) {
        let riding = self.lines[link as usize].pop().expect("a packet was on the link");
        self.hand = Hand { carried: riding.carried, queued: None };
        if riding.carried.chain == NONE {
            return;
        }
        self.flows[riding.carried.flow as usize].leave(link, riding.carried.connection);
        let chain = self.chains.get_mut(riding.carried.chain);
        let Waited { same, own, others } = riding.waited;
        if own + others > 0 {
            let [behind_own, behind_others] = self.kinds[link as usize];
            chain.parts.add(behind_own, own);
            chain.parts.add(behind_others, others);
        }
        chain.transmission += same + riding.transmission();
        chain.propagation += now.0 - riding.departs;
        chain.at = now.0;
    }

    #[inline]
    fn packet_delivered(&mut self, _: Time, packet: &Packet) {
        let Hand { carried, .. } = self.take();
        if carried.chain != NONE && packet.flags.has(Flags::SYN | Flags::TO_SENDER) {
            // The handshake is no round trip that waits for a window.
            self.chains.get_mut(carried.chain).keep();
        }
        self.cause(carried.chain);
    }

    fn packet_ends(&mut self, _: Time) {
        let Hand { carried, .. } = std::mem::replace(&mut self.hand, Hand::EMPTY);
        self.chains.release(carried.chain);
    }

    fn packet_displaced(&mut self, _: Time, link: PortId, packet: &Packet) {
        let Carried { chain, flow, connection, .. } =
            self.lines[link as usize].leave(packet).expect("it waited there").carried;
        if chain != NONE {
            self.flows[flow as usize].leave(link, NONE);
            self.flows[flow as usize].leave(link, connection);
            self.chains.release(chain);
        }
    }

    fn packet_stranded(&mut self, now: Time, link: PortId, packet: &Packet) {
        let line = &mut self.lines[link as usize];
        line.stop(now.0);
        match line.pop() {
            Some(Riding { carried, .. }) if carried.chain != NONE => {
                self.flows[carried.flow as usize].leave(link, carried.connection);
                self.chains.release(carried.chain);
            }
            Some(_) => {}
            None => self.packet_displaced(now, link, packet),
        }
    }

    fn link_retimed(&mut self, now: Time, link: PortId, departures: &[Time]) {
        let departures = departures.iter().map(|time| time.0);
        for (carried, longer) in self.lines[link as usize].retime(now.0, departures) {
            if self.of_interest(&carried) {
                let flow = &mut self.flows[carried.flow as usize];
                for connection in [carried.connection, NONE] {
                    if let Some(place) = flow.find(link, connection) {
                        let sent = &mut flow.places[place].sent;
                        *sent = sent.wrapping_add(longer);
                    }
                }
            }
        }
    }

    fn flow_starts(&mut self, now: Time, flow: FlowIndex, id: u64) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, FlowBook::NEW);
        }
        self.flows[flow.index()] = FlowBook { id, start: now.0, over: false, ..FlowBook::NEW };
        let chain = self.chains.begin(now.0, flow.0);
        self.cause(chain);
    }

    fn flow_waits(&mut self, _: Time, flow: FlowIndex) {
        let since = self.chains.keep(self.cause);
        let before = std::mem::replace(&mut self.flows[flow.index()].asked, since);
        self.chains.release(before);
    }

    fn flow_wakes(&mut self, now: Time, flow: FlowIndex) {
        self.cause_since(now, self.flows[flow.index()].asked, Part::CopyDelay);
    }

    fn flow_finishes(&mut self, now: Time, flow: FlowIndex) {
        let book = &mut self.flows[flow.index()];
        assert!(self.cause != NONE, "flow {} has finished, and nothing has led there", book.id);
        let mut chain = *self.chains.get(self.cause);
        assert_eq!(chain.flow, flow.0, "flow {} has finished by what another did", book.id);
        chain.keep();
        assert_eq!(
            chain.parts.total(),
            Time(now.0 - book.start),
            "the parts of flow {} add up: {:?}",
            book.id,
            chain.parts
        );
        self.finished.insert(book.id, chain.parts);
        book.over = true;
        book.places = vec![];
        let asked = std::mem::replace(&mut book.asked, NONE);
        self.chains.release(asked);
    }

    fn connection_opens(&mut self, _: Time, connection: ConnectionId, _: FlowIndex) {
        if self.connections.len() <= connection.index() {
            self.connections.resize(connection.index() + 1, ConnectionBook::NEW);
        }
        let before =
            std::mem::replace(&mut self.connections[connection.index()], ConnectionBook::NEW);
        let ConnectionBook { timers: [sender, receiver], pull } = before;
        for chain in [sender.chain, receiver.chain, pull] {
            self.chains.release(chain);
        }
    }

    #[inline]
    fn timer_set(&mut self, _: Time, at: ConnectionId, end: End, deadline: Time, timer: Timer) {
        let armed = &mut self.connections[at.index()].timers[end as usize];
        if armed.deadline == deadline {
            return;
        }
        let chain = self.chains.keep(self.cause);
        let before = std::mem::replace(armed, Armed { deadline, timer, chain });
        self.chains.release(before.chain);
    }

    fn timer_fires(&mut self, now: Time, connection: ConnectionId, end: End) {
        let Armed { timer, chain, .. } = self.connections[connection.index()].timers[end as usize];
        let part = match timer {
            Timer::Open => Part::CopyDelay,
            Timer::Syn => Part::SynTimeout,
            Timer::Retransmission => Part::Timeout,
            Timer::Probe => Part::Probe,
            Timer::Reordering => Part::Reordering,
            Timer::Pacing => Part::Pacing,
            Timer::DelayedAck => Part::DelayedAck,
        };
        self.cause_since(now, chain, part);
        if end == End::Sender && self.cause != NONE {
            let settles = if timer == Timer::Reordering { Part::Recovery } else { Part::Window };
            self.chains.get_mut(self.cause).settle(settles);
        }
    }

    fn connection_wakes(&mut self, now: Time, connection: ConnectionId) {
        let since = self.connections[connection.index()].timers[End::Sender as usize].chain;
        self.cause_since(now, since, Part::Window);
    }

    fn pull_wanted(&mut self, _: Time, connection: ConnectionId) {
        let since = self.chains.keep(self.cause);
        let before = std::mem::replace(&mut self.connections[connection.index()].pull, since);
        self.chains.release(before);
    }

    fn pull_turn(&mut self, now: Time, connection: ConnectionId) {
        self.cause_since(now, self.connections[connection.index()].pull, Part::Pull);
    }
}
