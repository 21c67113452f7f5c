//! The event queue of a run, and the numbers of its entities.
//!
//! Events of one instant come in the order of these numbers: packets that arrive before what the
//! run does itself, that before transmitters that fall idle, those before frames of flow control,
//! those before hosts that ask for more and interfaces that have turns, and those before timers of
//! connections. Either end of a connection has a timer of its own. Timers come by the hosts of these
//! ends, and those of one host in the order in which it has opened connections as a sender and first
//! waited for something as a receiver: a connection's place in the table of the run, which may have
//! been another's, decides nothing, and neither does what another host does.

use tailcut_engine::event_queue::Typical;
use tailcut_engine::{EventQueue, Time};

use super::pulls::PacerId;
use crate::packet::ConnectionId;
use crate::port::SerializationRate;
use crate::topology::{Graph, HostId, PortId};

/// A kind of due event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The first packet of a link reaches its far end.
    Arrival(PortId),
    /// A flow starts, or wants to be asked again.
    Flows,
    /// The arrivals end.
    ArrivalsEnd,
    /// Series are sampled.
    Sample,
    /// Something fails or comes back.
    Incident,
    /// All ports are sampled.
    Instant,
    /// The transmitter of a port with a scheduled queue falls idle.
    Idle(PortId),
    /// A frame of flow control reaches the near end of a link.
    Frame(PortId),
    /// A host may ask one of its senders for more.
    Pull(PacerId),
    /// An interface of a host with several has sent what its host gave it.
    Turn(PortId),
    /// The earliest deadline of a connection's sender.
    Sender(ConnectionId),
    /// The earliest deadline of a connection's receiver.
    Receiver(ConnectionId),
}

/// The time, and the agenda: one pending event per entity.
pub(super) struct EventClock {
    now: Time,
    /// The time of the event before.
    before: Time,
    agenda: EventQueue,
    /// Samples that are expected.
    samples: usize,
    /// Ports come first; as many arrivals as there are.
    ports: u32,
    /// Ports that may fall idle: all or none.
    idle: u32,
    /// Links that flow control may stop: all or none.
    frames: u32,
    /// Paces at which hosts ask for more: all or none.
    pulls: u32,
    /// Interfaces that have turns, where hosts have several: all or none.
    turns: u32,
    /// The first of the connections: all other entities come before.
    connections: u32,
    /// The number of connection ends that each host has given an order.
    ends: Vec<u32>,
}

/// Events of some networks only.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OptionalEvents {
    /// Transmitters with scheduled queues fall idle.
    pub idle: bool,
    /// Links are stopped by flow control.
    pub frames: bool,
    /// Paces at which hosts ask for more.
    pub pulls: u32,
    /// Interfaces that have turns, where hosts have several.
    pub turns: u32,
}

/// Entities between the arrivals and the idle transmitters.
const OWN: u32 = 5;

impl EventClock {
    /// The clock of one of `parts` equal parts of a network whose packets have at most `bytes`.
    pub fn new(graph: &Graph, bytes: u16, seldom: OptionalEvents, parts: u32) -> EventClock {
        let ports = 2 * graph.links.len() as u32;
        let transmissions =
            || graph.links.iter().map(|link| SerializationRate::new(link.rate).transmission(bytes));
        // Most events lie no farther ahead than a full packet's arrival over the slowest link.
        let delays =
            transmissions().zip(&graph.links).map(|(time, link)| time + link.propagation.0);
        let delay = Time(delays.max().unwrap_or(1));
        // Links that are busy have full packets one behind the other: so many events each.
        let events: f64 = transmissions().map(|time| 1.0 / time.max(1) as f64).sum();
        let spacing = Time((graph.links.len() as f64 / events.max(f64::MIN_POSITIVE)) as u64);
        let idle = if seldom.idle { ports } else { 0 };
        let frames = if seldom.frames { ports } else { 0 };
        let OptionalEvents { pulls, turns, .. } = seldom;
        let connections = ports + OWN + idle + frames + pulls + turns;
        // In a busy fabric about every fourth link has packets on their way.
        let mut agenda =
            EventQueue::new(Typical { delay, spacing, busy: ports / 4 / parts }, connections);
        agenda.grow_to(connections as usize);
        let ends = vec![0; graph.each_host().len()];
        let now = Time::ZERO;
        EventClock {
            now,
            before: now,
            agenda,
            samples: 0,
            ports,
            idle,
            frames,
            pulls,
            turns,
            connections,
            ends,
        }
    }

    /// Makes room for a connection that a host opens, and orders its sender among the ends of that
    /// host.
    pub fn admit(&mut self, id: ConnectionId, host: HostId) {
        self.agenda.grow_to(self.entity(EventKind::Receiver(id)) as usize + 1);
        self.order(EventKind::Sender(id), host);
    }

    /// Orders a receiver among the ends of its host, before its first timer.
    pub fn order_receiver(&mut self, id: ConnectionId, host: HostId) {
        self.order(EventKind::Receiver(id), host);
    }

    fn order(&mut self, end: EventKind, host: HostId) {
        let number = &mut self.ends[host.index()];
        let rank = u64::from(host.0) << 32 | u64::from(*number);
        *number += 1;
        self.agenda.rank(self.entity(end), rank);
    }

    /// The entity that an event is of. In line, since the kind is known wherever it is asked for.
    #[inline(always)]
    fn entity(&self, due: EventKind) -> u32 {
        match due {
            EventKind::Arrival(port) => port.0,
            EventKind::Flows => self.ports,
            EventKind::ArrivalsEnd => self.ports + 1,
            EventKind::Sample => self.ports + 2,
            EventKind::Incident => self.ports + 3,
            EventKind::Instant => self.ports + 4,
            EventKind::Idle(port) => self.ports + OWN + port.0,
            EventKind::Frame(port) => self.ports + OWN + self.idle + port.0,
            EventKind::Pull(pacer) => self.ports + OWN + self.idle + self.frames + pacer.0,
            EventKind::Turn(port) => self.connections - self.turns + port.link() as u32,
            EventKind::Sender(id) => self.connections + 2 * id.0,
            EventKind::Receiver(id) => self.connections + 2 * id.0 + 1,
        }
    }

    /// Returns the event of an entity.
    #[inline]
    fn due(&self, entity: u32) -> EventKind {
        if entity < self.ports {
            EventKind::Arrival(PortId(entity))
        } else if entity >= self.connections {
            let end = entity - self.connections;
            match end % 2 {
                0 => EventKind::Sender(ConnectionId(end / 2)),
                _ => EventKind::Receiver(ConnectionId(end / 2)),
            }
        } else {
            match entity - self.ports {
                0 => EventKind::Flows,
                1 => EventKind::ArrivalsEnd,
                2 => EventKind::Sample,
                3 => EventKind::Incident,
                4 => EventKind::Instant,
                other if other - OWN < self.idle => EventKind::Idle(PortId(other - OWN)),
                other if other - OWN - self.idle < self.frames => {
                    EventKind::Frame(PortId(other - OWN - self.idle))
                }
                other if other - OWN - self.idle - self.frames < self.pulls => {
                    EventKind::Pull(PacerId(other - OWN - self.idle - self.frames))
                }
                _ => {
                    let link = entity - (self.connections - self.turns);
                    EventKind::Turn(PortId::both_directions(link as usize)[0])
                }
            }
        }
    }

    /// The time of the event that was taken last.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Takes the first event, if it is due by `end`; if it is due later, the time is `end`.
    #[inline(always)]
    pub fn next(&mut self, end: Time) -> Option<EventKind> {
        let (time, entity) = self.agenda.pop()?;
        self.before = self.now;
        self.now = time.min(end);
        (time <= end).then(|| self.due(entity))
    }

    /// Takes the first event, if it is earlier than `limit`, or at `limit` and before incidents
    /// where `until_incident` says so.
    #[inline(always)]
    pub fn next_before(&mut self, limit: Time, until_incident: bool) -> Option<EventKind> {
        let first = if until_incident { self.entity(EventKind::Incident) } else { 0 };
        let (time, entity) = self.agenda.pop_before(limit, first)?;
        self.now = time;
        Some(self.due(entity))
    }

    /// Moves the time to that of something beside the agenda.
    pub fn advance_to(&mut self, at: Time) {
        self.now = at;
    }

    /// Returns a time that no pending event precedes; `None` when nothing is pending.
    pub fn earliest(&self) -> Option<Time> {
        self.agenda.earliest()
    }

    /// Returns the order of an event among all of its instant.
    #[inline]
    pub fn order_of(&self, due: EventKind) -> u64 {
        let entity = self.entity(due);
        match entity < self.connections {
            true => entity.into(),
            // Ranks begin with a host's number, which is less than this.
            false => 1 << 63 | self.agenda.rank_of(entity),
        }
    }

    /// Expects a sample, of which none of its kind is pending. It does not keep a run going.
    pub fn expect_sample(&mut self, due: EventKind, at: Time) {
        self.samples += 1;
        self.schedule(due, at);
    }

    /// Whether a sample that was just taken from the agenda is to be made. Where nothing but
    /// samples is expected the run has ended with the event before: the time goes back to it.
    pub fn is_sample_due(&mut self) -> bool {
        self.samples -= 1;
        let due = self.agenda.len() > self.samples;
        if !due {
            self.now = self.before;
        }
        due
    }

    /// Expects an event of which none is pending.
    #[inline(always)]
    pub fn schedule(&mut self, due: EventKind, at: Time) {
        self.agenda.schedule(self.entity(due), at);
    }

    /// Expects an event at this time, whether or not it was pending.
    #[inline]
    pub fn reschedule(&mut self, due: EventKind, at: Time) {
        self.agenda.reschedule(self.entity(due), at);
    }

    /// Expects an event at this time, or no more where there is none, whether or not it was
    /// pending.
    pub fn reschedule_or_cancel(&mut self, due: EventKind, at: Option<Time>) {
        match at {
            Some(at) => self.reschedule(due, at),
            None => self.cancel(due),
        }
    }

    /// Wakes an end of a connection at this time, or now if that has passed.
    #[inline]
    pub fn wake(&mut self, end: EventKind, at: Time) {
        self.reschedule(end, at.max(self.now));
    }

    /// Expects an event no more, if it was pending.
    pub fn cancel(&mut self, due: EventKind) {
        self.agenda.cancel(self.entity(due));
    }

    /// The port at whose far end a packet arrives after `ahead` other events, if that is known
    /// already.
    #[inline]
    pub fn upcoming_arrival(&self, ahead: usize) -> Option<PortId> {
        self.agenda.upcoming(ahead).filter(|&entity| entity < self.ports).map(PortId)
    }

    /// Whether transmitters may fall idle.
    #[inline]
    pub fn has_idle(&self) -> bool {
        self.idle > 0
    }

    /// The same for a transmitter that falls idle.
    #[inline]
    pub fn upcoming_idle(&self, ahead: usize) -> Option<PortId> {
        let entity = self.agenda.upcoming(ahead)?;
        entity.checked_sub(self.ports + OWN).filter(|&port| port < self.idle).map(PortId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::star::Star;

    /// Five hosts around a switch: ten ports.
    fn clock(seldom: OptionalEvents) -> EventClock {
        let graph = Star { hosts: 5, ..Star::default() }.build().expect("hosts are enough");
        EventClock::new(&graph, 1_500, seldom, 1)
    }

    /// In the order of one instant.
    fn all(seldom: OptionalEvents) -> Vec<EventKind> {
        let mut all = vec![EventKind::Arrival(PortId(0)), EventKind::Arrival(PortId(9))];
        all.extend([
            EventKind::Flows,
            EventKind::ArrivalsEnd,
            EventKind::Sample,
            EventKind::Incident,
        ]);
        if seldom.idle {
            all.extend([EventKind::Idle(PortId(0)), EventKind::Idle(PortId(9))]);
        }
        if seldom.frames {
            all.extend([EventKind::Frame(PortId(0)), EventKind::Frame(PortId(9))]);
        }
        if seldom.pulls > 0 {
            all.extend([EventKind::Pull(PacerId(0)), EventKind::Pull(PacerId(4))]);
        }
        if seldom.turns > 0 {
            all.extend([EventKind::Turn(PortId(0)), EventKind::Turn(PortId(8))]);
        }
        all.extend([0, 7].map(|id| EventKind::Sender(ConnectionId(id))));
        all.push(EventKind::Receiver(ConnectionId(7)));
        all
    }

    #[test]
    fn events_of_one_instant_have_their_order_whatever_the_order_of_asking() {
        for bits in 0..16 {
            let [idle, frames, pulls, turns] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let [pulls, turns] = [pulls, turns].map(|any| if any { 5 } else { 0 });
            let seldom = OptionalEvents { idle, frames, pulls, turns };
            let mut clock = clock(seldom);
            (0..8).for_each(|id| clock.admit(ConnectionId(id), HostId(id % 5)));
            clock.order_receiver(ConnectionId(7), HostId(4));
            let all = all(seldom);
            all.iter().rev().for_each(|&due| clock.schedule(due, Time(7)));
            let came: Vec<_> = std::iter::from_fn(|| clock.next(Time(8))).collect();
            assert_eq!((came, clock.now()), (all, Time(7)));
        }
    }

    #[test]
    fn timers_of_one_instant_come_by_hosts_and_in_the_order_of_their_ends_there() {
        let mut clock = clock(OptionalEvents::default());
        // Places as they are taken, and taken again.
        for (place, host) in [(0, 3), (1, 3), (2, 1), (0, 3), (3, 0), (2, 3)] {
            clock.admit(ConnectionId(place), HostId(host));
        }
        (0..4).for_each(|place| clock.schedule(EventKind::Sender(ConnectionId(place)), Time(7)));
        for (place, host) in [(1, 0), (3, 3), (0, 3)] {
            clock.order_receiver(ConnectionId(place), HostId(host));
            clock.schedule(EventKind::Receiver(ConnectionId(place)), Time(7));
        }
        let came: Vec<_> = std::iter::from_fn(|| clock.next(Time(8))).collect();
        let [sender, receiver] = [EventKind::Sender, EventKind::Receiver];
        let expected = [
            (sender, 3),
            (receiver, 1),
            (sender, 1),
            (sender, 0),
            (sender, 2),
            (receiver, 3),
            (receiver, 0),
        ];
        assert_eq!(came, expected.map(|(end, place)| end(ConnectionId(place))));
    }

    #[test]
    fn reschedules_and_cancels_events() {
        let mut clock = clock(OptionalEvents::default());
        clock.schedule(EventKind::Arrival(PortId(3)), Time(5));
        clock.reschedule(EventKind::Arrival(PortId(3)), Time(9));
        clock.reschedule(EventKind::Flows, Time(8));
        clock.cancel(EventKind::Flows);
        assert_eq!(
            (clock.next(Time::NEVER), clock.now()),
            (Some(EventKind::Arrival(PortId(3))), Time(9))
        );
        assert_eq!((clock.next(Time::NEVER), clock.now()), (None, Time(9)));
    }

    #[test]
    fn reschedule_or_cancel_does_either() {
        let mut clock = clock(OptionalEvents::default());
        let [kept, lost] = [3, 4].map(|port| EventKind::Arrival(PortId(port)));
        [kept, lost].into_iter().for_each(|due| clock.schedule(due, Time(5)));
        clock.reschedule_or_cancel(kept, Some(Time(9)));
        clock.reschedule_or_cancel(lost, None);
        assert_eq!((clock.next(Time::NEVER), clock.now()), (Some(kept), Time(9)));
        assert!(clock.agenda.is_empty());
    }

    #[test]
    fn samples_alone_do_not_keep_a_run_going() {
        let mut clock = clock(OptionalEvents::default());
        clock.schedule(EventKind::Arrival(PortId(3)), Time(5));
        clock.expect_sample(EventKind::Sample, Time(4));
        clock.expect_sample(EventKind::Instant, Time(6));
        assert_eq!(clock.next(Time::NEVER), Some(EventKind::Sample));
        assert!(clock.is_sample_due());
        clock.expect_sample(EventKind::Sample, Time(8));
        assert_eq!(clock.next(Time::NEVER), Some(EventKind::Arrival(PortId(3))));
        for sample in [EventKind::Instant, EventKind::Sample] {
            assert_eq!(clock.next(Time::NEVER), Some(sample));
            assert!(!clock.is_sample_due());
            assert_eq!(clock.now(), Time(5));
        }
    }

    #[test]
    fn a_connection_is_not_woken_in_the_past() {
        let mut clock = clock(OptionalEvents::default());
        [0, 1].into_iter().for_each(|id| clock.admit(ConnectionId(id), HostId(0)));
        let [late, early] = [0, 1].map(|id| EventKind::Sender(ConnectionId(id)));
        clock.schedule(EventKind::Flows, Time(7));
        clock.next(Time::NEVER);
        clock.wake(late, Time(9));
        clock.wake(early, Time(2));
        let woken = [early, late].map(Some);
        let times = woken.map(|due| {
            assert_eq!(clock.next(Time::NEVER), due);
            clock.now()
        });
        assert_eq!(times, [Time(7), Time(9)]);
    }

    #[test]
    fn the_time_does_not_pass_the_end() {
        let mut clock = clock(OptionalEvents::default());
        clock.schedule(EventKind::Flows, Time(5));
        clock.schedule(EventKind::ArrivalsEnd, Time(9));
        assert_eq!((clock.next(Time(5)), clock.now()), (Some(EventKind::Flows), Time(5)));
        assert_eq!((clock.next(Time(8)), clock.now()), (None, Time(8)));
    }

    #[test]
    fn upcoming_events_are_found_by_kind() {
        let mut clock = clock(OptionalEvents { idle: true, frames: true, pulls: 5, turns: 5 });
        clock.schedule(EventKind::Idle(PortId(4)), Time(6));
        clock.schedule(EventKind::Arrival(PortId(2)), Time(5));
        clock.schedule(EventKind::ArrivalsEnd, Time(4));
        assert_eq!(clock.next(Time::NEVER), Some(EventKind::ArrivalsEnd));
        let arrivals = [0, 1].map(|ahead| clock.upcoming_arrival(ahead));
        let idle = [0, 1].map(|ahead| clock.upcoming_idle(ahead));
        assert_eq!((arrivals, idle), ([Some(PortId(2)), None], [None, Some(PortId(4))]));
    }
}
