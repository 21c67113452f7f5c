//! Ports whose queue decides the order at departure: a queue before the port, and a second event
//! per packet where departures are not deferred.

use super::{Fabric, OfferOutcome};
use crate::packet::Packet;
use crate::queue::{Headers, Scheduler};
use crate::topology::PortId;
use crate::trace::trace;
use tailcut_engine::{Rate, Time};

/// A port without such a queue, in [`Scheduled::backlog`].
const NONE: u32 = u32::MAX;

/// The queues of the ports that have one.
///
/// A packet that finds the transmitter idle and nothing waiting goes past the queue; whether it
/// does is kept apart, because the queues of a large fabric do not fit into the nearest cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Scheduled {
    /// Per port, up to the last that has such a queue.
    queues: Vec<Option<Scheduler>>,
    /// Per port: how many packets wait in its queue.
    backlog: Vec<u32>,
    /// Displaced packets that have not been collected.
    displaced: Vec<Packet>,
    /// Per port, up to the last of them: whether its departures are never deferred.
    prompt: Vec<bool>,
}

impl Scheduled {
    /// Says that departures of a port are never deferred.
    fn keep_prompt(&mut self, port: PortId) {
        self.prompt.resize(self.prompt.len().max(port.index() + 1), false);
        self.prompt[port.index()] = true;
    }

    /// Returns whether departures of a port are never deferred.
    #[inline]
    fn is_prompt(&self, port: PortId) -> bool {
        self.prompt.get(port.index()).copied().unwrap_or(false)
    }

    /// A port has this queue; ports come in order.
    pub fn place(&mut self, port: PortId, queue: Scheduler) {
        self.queues.resize(port.index(), None);
        self.backlog.resize(port.index(), NONE);
        self.backlog.push(queue.len());
        self.queues.push(Some(queue));
    }

    /// True when no port has such a queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The queue of a port, if it has one.
    pub fn queue(&self, port: PortId) -> Option<&Scheduler> {
        self.queues.get(port.index())?.as_ref()
    }

    /// All of them.
    pub fn queues(&self) -> impl Iterator<Item = &Scheduler> {
        self.queues.iter().flatten()
    }

    /// Asks for the queue whose turn comes soon.
    #[inline]
    pub fn fetch(&self, port: PortId) {
        tailcut_engine::prefetch(&self.queues[port.index()]);
    }

    /// Asks for what waits in it.
    #[inline]
    pub fn fetch_first(&self, port: PortId) {
        if let Some(first) = self.queues[port.index()].as_ref().and_then(|queue| queue.first()) {
            tailcut_engine::prefetch(first);
        }
    }

    /// Returns the displaced packets that have not been collected.
    pub fn pop_displaced(&self) -> &[Packet] {
        &self.displaced
    }

    /// Returns the number of packets in the queue of a port, if it has one.
    #[inline]
    pub fn waiting(&self, port: PortId) -> Option<u32> {
        self.backlog.get(port.index()).copied().filter(|&waiting| waiting != NONE)
    }

    /// The link of a port has another rate than it was built with, or has that again.
    pub fn change_rate(&mut self, port: PortId, now: Rate, built: Rate) {
        if let Some(Some(queue)) = self.queues.get_mut(port.index()) {
            queue.change_rate(now, built);
        }
    }

    /// Takes the packet that a port is to send next.
    pub fn pop(&mut self, now: Time, port: PortId) -> Option<Packet> {
        let queue = self.queues.get_mut(port.index())?.as_mut()?;
        let packet = queue.pop(now);
        self.backlog[port.index()] = queue.len();
        packet
    }
}

/// Deferred departures: which packet a transmitter takes next is settled when somebody looks at the
/// port.
///
/// Nothing depends on it before: on what waits goes by what was offered until then, and the packet
/// reaches the far end after the one before it, whose arrival looks at the port.
impl Fabric {
    /// Defers departures from now on, where nobody needs to know of them when they are due: no
    /// switch looks at queues, shares memory, stops links or writes on packets, and no link fails
    /// or changes. Queues and counters are to be settled before they are looked at
    /// ([`Fabric::settle`], [`Fabric::settle_all`]). Departures of the ports in `prompt`, whose
    /// owners act on them, are never deferred.
    pub(crate) fn defer_departures(&mut self, prompt: impl Iterator<Item = PortId>) {
        prompt.for_each(|port| self.scheduled.keep_prompt(port));
        let told = self.stops.is_some() || self.pools.is_some() || self.stamped;
        let needed = told || self.looked_at || self.next_incident().is_some();
        self.defers = !self.scheduled.is_empty() && !needed;
    }

    /// Whether departures are deferred, but for those of prompt ports.
    #[inline]
    pub(crate) fn defers(&self) -> bool {
        self.defers
    }

    /// Whether departures of this port are deferred.
    #[inline]
    fn defers_at(&self, port: PortId) -> bool {
        self.defers && !self.scheduled.is_prompt(port)
    }

    /// Says whether the event at hand comes after departures of its instant, or before them.
    #[inline]
    pub(crate) fn come_after_departures(&mut self, after: bool) {
        self.after_departures = after;
    }

    /// Carries out the departures of a port that come before the event at hand.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, port: PortId) {
        if self.defers && self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0) {
            self.carry_out_departures(now, port);
        }
    }

    /// Carries out the departures of all ports that come before the event at hand.
    pub(crate) fn settle_all(&mut self, now: Time) {
        if self.defers {
            (0..self.port_count()).map(PortId).for_each(|port| self.settle(now, port));
        }
    }

    fn carry_out_departures(&mut self, now: Time, port: PortId) {
        if self.scheduled.is_prompt(port) {
            return;
        }
        loop {
            let idle = self.ports[port.index()].busy_until();
            if idle > now || idle == now && !self.after_departures {
                return;
            }
            let Some(packet) = self.scheduled.pop(idle, port) else { return };
            let offered = self.put(idle, port, packet);
            debug_assert_eq!(
                offered,
                OfferOutcome::AcceptedBehind,
                "the packet before it has yet to arrive"
            );
        }
    }

    /// Returns when the transmitter of a port, whose last packet under way has just arrived, falls
    /// idle, if something waits there and departures are deferred; [`Fabric::on_transmitter_idle`]
    /// is due then. For links without propagation delay only.
    #[inline]
    pub(crate) fn falls_idle(&self, port: PortId) -> Option<Time> {
        let waits = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        (self.defers_at(port) && waits).then(|| self.ports[port.index()].busy_until())
    }
}

/// The packet that a transmitter took as it fell idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dequeued {
    /// The packet.
    pub packet: Packet,
    /// The outcome of the packet.
    pub offered: OfferOutcome,
    /// The time at which the transmitter falls idle again, if more waits.
    pub idle: Option<Time>,
}

impl Fabric {
    /// Packets waiting at a port, and their bytes.
    pub fn backlog(&mut self, now: Time, port: PortId) -> (u32, u64) {
        match self.scheduled.queue(port) {
            Some(queue) => {
                let mut bytes = 0;
                queue.visit(&mut |packet| bytes += u64::from(packet.wire_bytes));
                (queue.len(), bytes)
            }
            None => self.ports[port.index()].backlog(now),
        }
    }

    /// Whether packets may wait in a queue before this port.
    #[inline]
    pub fn has_scheduled_queue(&self, port: PortId) -> bool {
        self.scheduled.waiting(port).is_some()
    }

    /// Whether any port has such a queue: only then does [`Fabric::on_transmitter_idle`] have to be
    /// called.
    pub fn has_scheduled_queues(&self) -> bool {
        !self.scheduled.is_empty()
    }

    /// Fates of packets without data that had no room, under names; nothing where no queue keeps
    /// them apart.
    pub(crate) fn headers(&self) -> Vec<(&'static str, u64)> {
        let sum = |a: Headers, b: Headers| Headers {
            returned: a.returned + b.returned,
            dropped: a.dropped + b.dropped,
        };
        let headers = self.scheduled.queues().filter_map(|queue| queue.headers()).reduce(sum);
        headers.map_or_else(Vec::new, |Headers { returned, dropped }| {
            vec![("headers_returned", returned), ("headers_dropped", dropped)]
        })
    }

    /// Offers a packet to the scheduled queue of a port whose transmitter is at work.
    pub(super) fn enqueue(&mut self, now: Time, port: PortId, packet: Packet) -> OfferOutcome {
        // Whoever waits already has the port's word.
        let first = self.scheduled.waiting(port) == Some(0);
        let Scheduled { queues, backlog, displaced, .. } = &mut self.scheduled;
        let queue = queues[port.index()].as_mut().expect("the port has a queue");
        let waits = queue.offer(now, packet, displaced);
        backlog[port.index()] = queue.len();
        if !waits {
            trace!("refused: {} packets wait in the port's queue", queue.len());
            return match displaced.last() {
                Some(header) if header.is_returned() => OfferOutcome::Returned,
                None => OfferOutcome::Dropped,
                Some(other) => panic!("{other:?} makes way for a packet that is dropped"),
            };
        }
        let asks = first && !self.defers_at(port);
        OfferOutcome::Queued(asks.then(|| self.ports[port.index()].busy_until().max(now)))
    }

    /// Takes one of the packets that a queue has dropped for better ones, or a header that it sends
    /// back.
    #[inline]
    pub fn displaced(&mut self) -> Option<Packet> {
        match self.scheduled.displaced.is_empty() {
            true => None,
            // The first to go is told of first.
            false => Some(self.scheduled.displaced.remove(0)),
        }
    }

    /// The transmitter of a port with a scheduled queue falls idle: the next packet is sent, if one
    /// waits.
    #[inline]
    pub fn on_transmitter_idle(&mut self, now: Time, port: PortId) -> Option<Dequeued> {
        if !self.try_resume(port) {
            return None;
        }
        let packet = self.scheduled.pop(now, port)?;
        let offered = self.put_slow_path(now, port, packet);
        if self.stamped {
            self.depart_stamp(port, &packet, offered);
        }
        let more = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        self.leaves_controlled(now, port, more);
        let idle = (more && !self.defers_at(port)).then(|| self.ports[port.index()].busy_until());
        Some(Dequeued { packet, offered, idle })
    }
}
