//! Attribution: every flow's completion time split into parts that add up to it, to the picosecond.
//!
//! What has led to an event of a flow is a chain of causes from its start, and each of its links takes time: a packet waits for
//! others, is transmitted, travels; a timer runs. The chain goes with the packet. A packet that a host sends goes on from the event
//! that made it send, and the chain of the packet that completes the flow is the split. Nothing is walked backwards, and no
//! part is what is left of the others: that they add up is asserted. The rules are in `docs/components/attribution.md`.

mod chains;
mod line;
mod parts;
mod queue;

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{End, Observer, Timer};
use crate::packet::{ConnectionId, Flags, Packet};
use crate::topology::{Graph, PortId};
use crate::traffic::FlowIndex;

use chains::{Chains, Moment};
use line::{Carried, Line, Riding, Waited};
pub use parts::{Part, Parts, PARTS};
use queue::Left;

/// What is known of a flow.
#[derive(Debug, Clone, Copy)]
struct FlowBook {
    id: u64,
    start: u64,
    /// Its last byte has arrived: the rest is of no interest.
    over: bool,
    /// The moment since which it waits to be asked again.
    asked: Moment,
}

impl FlowBook {
    const NEW: FlowBook = FlowBook { id: 0, start: 0, over: true, asked: Moment::NONE };
}

/// What an end of a connection waits for.
#[derive(Debug, Clone, Copy)]
struct Armed {
    deadline: Time,
    timer: Timer,
    /// The moment since which it does, or waits for nothing.
    since: Moment,
}

/// What is known of a connection.
#[derive(Debug, Clone)]
struct ConnectionBook {
    timers: [Armed; 2],
    /// The moment since which its receiver waits for its turn.
    pull: Moment,
}

impl ConnectionBook {
    const NEW: ConnectionBook = {
        let idle = Armed { deadline: Time::NEVER, timer: Timer::Open, since: Moment::NONE };
        ConnectionBook { timers: [idle; 2], pull: Moment::NONE }
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
    cause: Moment,
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
            lines: vec![Line::new(); ports],
            kinds: (0..ports).map(|port| kinds(graph, port)).collect(),
            flows: vec![],
            connections: vec![],
            hand: Hand::EMPTY,
            cause: Moment::NONE,
            finished: BTreeMap::new(),
        }
    }

    /// The parts of the completion time of a flow, by its identifier; none unless its last byte has arrived.
    pub fn of(&self, flow: u64) -> Option<&Parts> {
        self.finished.get(&flow)
    }

    /// An event is handled from now on.
    #[inline]
    fn cause(&mut self, moment: Moment) {
        let before = std::mem::replace(&mut self.cause, moment);
        self.chains.release(before);
    }

    /// The event is that somebody has waited since some moment.
    fn cause_since(&mut self, now: Time, since: Moment, part: Part) {
        let mut moment = self.chains.keep(&since);
        if moment.is_told() {
            self.chains.parts_mut(&mut moment).add(part, now.0 - since.at);
            moment.at = now.0;
        }
        self.cause(moment);
    }

    /// The chain of a packet goes on from the packet before it, which leaves later than this one came: of its two causes the later counts.
    fn go_on_from(&mut self, carried: &mut Carried, before: Carried) {
        let moment = self.chains.keep(&before.moment);
        self.chains.release(std::mem::replace(&mut carried.moment, moment));
    }
}

impl Observer for Attribution {
    const ACTIVE: bool = false;
    const FOLLOWS: bool = true;

    #[inline]
    fn packet_sent(&mut self, now: Time, flow: FlowIndex, packet: &Packet) {
        self.hand = Hand::EMPTY;
        if !self.cause.is_told() || self.flows[flow.index()].over {
            return;
        }
        let again = packet.flags.has(Flags::RETRANSMISSION);
        let mut moment = self.chains.keep(&self.cause);
        let told = (self.chains.flow(&moment), moment.at);
        debug_assert_eq!(told, (flow.0, now.0), "what makes a host send is told");
        if !packet.flags.has(Flags::TO_SENDER) {
            self.chains.settle(&mut moment, if again { Part::Recovery } else { Part::Window });
        }
        let connection = packet.connection.0;
        self.hand.carried = Carried { moment, flow: flow.0, connection, again };
    }

    #[inline]
    fn packet_rides(&mut self, now: Time, link: PortId, begins: Time, departs: Time, _: &Packet) {
        let Hand { mut carried, queued } = std::mem::replace(&mut self.hand, Hand::EMPTY);
        let (begins, departs) = (begins.0, departs.0);
        let mut waited = queued.unwrap_or_default();
        if begins > now.0 && queued.is_none() && carried.moment.is_told() {
            let (ahead, before) = self.lines[link as usize].ahead(begins, &carried);
            waited = ahead;
            if let Some(before) = before.map(|before| before.carried) {
                self.go_on_from(&mut carried, before);
            }
        }
        debug_assert!(
            !carried.moment.is_told() || carried.moment.at + waited.total() == begins,
            "a transmitter works while packets wait"
        );
        self.lines[link as usize].push(Riding::new(carried, begins, departs, waited));
    }

    fn packet_waits(&mut self, now: Time, link: PortId, packet: &Packet) {
        let Hand { carried, .. } = std::mem::replace(&mut self.hand, Hand::EMPTY);
        let line = &mut self.lines[link as usize];
        let last = line.last().copied();
        line.queue(now.0).enter(now.0, carried, packet, last);
    }

    fn packet_leaves(&mut self, now: Time, link: PortId, packet: &Packet) {
        let line = &mut self.lines[link as usize];
        let Left { mut carried, mut waited, idle } = line.queue(now.0).leave(now.0, packet);
        if carried.moment.is_told() {
            let same = |other: &Carried| {
                (other.flow, other.connection) == (carried.flow, carried.connection)
            };
            let held_up = !carried.again && carried.moment.at < now.0;
            let before = line.last().filter(|q| q.departs == now.0 && same(&q.carried));
            match before.filter(|q| held_up && q.carried.moment.is_told()).copied() {
                Some(before) => {
                    waited = before.and_itself();
                    self.go_on_from(&mut carried, before.carried);
                }
                None if idle > 0 => {
                    self.chains.parts_mut(&mut carried.moment).add(Part::Pause, idle);
                    carried.moment.at += idle;
                }
                None => {}
            }
        }
        // Packets that nobody asks after are counted as if they were of one connection.
        let queued = if carried.moment.is_told() { waited } else { Waited::default() };
        self.hand = Hand { carried, queued: Some(queued) };
    }

    #[inline]
    fn packet_crosses(&mut self, now: Time, link: PortId) {
        let riding = self.lines[link as usize].pop().expect("a packet was on the link");
        let mut carried = riding.carried;
        let Waited { same, own, others } = riding.waited;
        if own + others > 0 && carried.moment.is_told() {
            let [behind_own, behind_others] = self.kinds[link as usize];
            let parts = self.chains.parts_mut(&mut carried.moment);
            parts.add(behind_own, own);
            parts.add(behind_others, others);
        }
        carried.moment.transmission += same + riding.transmission();
        carried.moment.propagation += now.0 - riding.departs;
        carried.moment.at = now.0;
        self.hand = Hand { carried, queued: None };
    }

    #[inline]
    fn packet_delivered(&mut self, _: Time, packet: &Packet) {
        let Hand { carried, .. } = std::mem::replace(&mut self.hand, Hand::EMPTY);
        let mut moment = carried.moment;
        if moment.is_told() && packet.flags.has(Flags::SYN | Flags::TO_SENDER) {
            // The handshake is no round trip that waits for a window.
            self.chains.settle_as_they_are(&mut moment);
        }
        self.cause(moment);
    }

    fn packet_ends(&mut self, _: Time) {
        let Hand { carried, .. } = std::mem::replace(&mut self.hand, Hand::EMPTY);
        self.chains.release(carried.moment);
    }

    fn packet_displaced(&mut self, now: Time, link: PortId, packet: &Packet) {
        let left = self.lines[link as usize].queue(now.0).leave(now.0, packet);
        self.chains.release(left.carried.moment);
    }

    fn packet_stranded(&mut self, now: Time, link: PortId, packet: &Packet) {
        let line = &mut self.lines[link as usize];
        line.stop(now.0);
        match line.pop() {
            Some(riding) => self.chains.release(riding.carried.moment),
            None => self.packet_displaced(now, link, packet),
        }
    }

    fn link_retimed(&mut self, now: Time, link: PortId, departures: &[Time]) {
        self.lines[link as usize].retime(now.0, departures.iter().map(|time| time.0));
    }

    fn flow_starts(&mut self, now: Time, flow: FlowIndex, id: u64) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, FlowBook::NEW);
        }
        self.flows[flow.index()] = FlowBook { id, start: now.0, over: false, ..FlowBook::NEW };
        let start = self.chains.begin(now.0, flow.0);
        self.cause(start);
    }

    fn flow_waits(&mut self, _: Time, flow: FlowIndex) {
        let since = self.chains.keep(&self.cause);
        let before = std::mem::replace(&mut self.flows[flow.index()].asked, since);
        self.chains.release(before);
    }

    fn flow_wakes(&mut self, now: Time, flow: FlowIndex) {
        self.cause_since(now, self.flows[flow.index()].asked, Part::CopyDelay);
    }

    fn flow_finishes(&mut self, now: Time, flow: FlowIndex) {
        let book = &mut self.flows[flow.index()];
        let FlowBook { id, start, asked, .. } = *book;
        (book.over, book.asked) = (true, Moment::NONE);
        self.chains.release(asked);
        let mut moment = self.chains.keep(&self.cause);
        assert!(moment.is_told(), "flow {id} has finished, and nothing has led there");
        assert_eq!(self.chains.flow(&moment), flow.0, "flow {id} has finished by what another did");
        self.chains.settle_as_they_are(&mut moment);
        let parts = *self.chains.parts(&moment);
        self.chains.release(moment);
        assert_eq!(parts.total(), Time(now.0 - start), "the parts of flow {id} add up: {parts:?}");
        self.finished.insert(id, parts);
    }

    fn connection_opens(&mut self, _: Time, connection: ConnectionId, _: FlowIndex) {
        if self.connections.len() <= connection.index() {
            self.connections.resize(connection.index() + 1, ConnectionBook::NEW);
        }
        let before =
            std::mem::replace(&mut self.connections[connection.index()], ConnectionBook::NEW);
        let ConnectionBook { timers: [sender, receiver], pull } = before;
        for moment in [sender.since, receiver.since, pull] {
            self.chains.release(moment);
        }
    }

    #[inline]
    fn timer_set(&mut self, _: Time, at: ConnectionId, end: End, deadline: Time, timer: Timer) {
        let armed = &mut self.connections[at.index()].timers[end as usize];
        if armed.deadline == deadline {
            return;
        }
        let since = self.chains.keep(&self.cause);
        let before = std::mem::replace(armed, Armed { deadline, timer, since });
        self.chains.release(before.since);
    }

    fn timer_fires(&mut self, now: Time, connection: ConnectionId, end: End) {
        let Armed { timer, since, .. } = self.connections[connection.index()].timers[end as usize];
        let part = match timer {
            Timer::Open => Part::CopyDelay,
            Timer::Syn => Part::SynTimeout,
            Timer::Retransmission => Part::Timeout,
            Timer::Probe => Part::Probe,
            Timer::Reordering => Part::Reordering,
            Timer::Pacing => Part::Pacing,
            Timer::DelayedAck => Part::DelayedAck,
        };
        self.cause_since(now, since, part);
        if end == End::Sender && self.cause.is_told() {
            let settles = if timer == Timer::Reordering { Part::Recovery } else { Part::Window };
            self.chains.settle(&mut self.cause, settles);
        }
    }

    fn connection_wakes(&mut self, now: Time, connection: ConnectionId) {
        let since = self.connections[connection.index()].timers[End::Sender as usize].since;
        self.cause_since(now, since, Part::Window);
    }

    fn pull_wanted(&mut self, _: Time, connection: ConnectionId) {
        let since = self.chains.keep(&self.cause);
        let before = std::mem::replace(&mut self.connections[connection.index()].pull, since);
        self.chains.release(before);
    }

    fn pull_turn(&mut self, now: Time, connection: ConnectionId) {
        self.cause_since(now, self.connections[connection.index()].pull, Part::Pull);
    }
}
