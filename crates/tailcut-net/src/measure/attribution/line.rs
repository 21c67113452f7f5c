//! The packets on one link and before it, and what its transmitter has done: who waited for whom.

use std::collections::VecDeque;

use super::chains::Moment;
use super::queue::Queue;

/// What a packet has waited for at one port: from the moment that it came with until its first bit leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Waited {
    /// Transmissions of its connection.
    pub same: u64,
    /// Transmissions of its flow's other connections.
    pub own: u64,
    /// Transmissions of other flows.
    pub others: u64,
}

impl Waited {
    pub fn total(self) -> u64 {
        self.same + self.own + self.others
    }
}

/// A packet, and the moment at which it came to where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    pub moment: Moment,
    pub flow: u32,
    pub connection: u32,
    /// It was sent before: what its connection has sent since does not explain why it leaves late.
    pub again: bool,
}

impl Carried {
    pub const NOTHING: Carried =
        Carried { moment: Moment::NONE, flow: u32::MAX, connection: u32::MAX, again: true };

    /// Which waiting for `other` is.
    #[inline]
    pub fn waits<'w>(&self, other: &Carried, waited: &'w mut Waited) -> &'w mut u64 {
        match other {
            other if other.flow != self.flow => &mut waited.others,
            other if other.connection != self.connection => &mut waited.own,
            _ => &mut waited.same,
        }
    }
}

/// A packet that a transmitter has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Riding {
    pub carried: Carried,
    pub begins: u64,
    pub departs: u64,
    pub waited: Waited,
    /// The one before it in its lane.
    before: u32,
}

impl Riding {
    pub fn new(carried: Carried, begins: u64, departs: u64, waited: Waited) -> Riding {
        Riding { carried, begins, departs, waited, before: 0 }
    }

    #[inline]
    pub fn transmission(&self) -> u64 {
        self.departs - self.begins
    }

    /// What a packet has waited for that follows it directly, by the moment with which this one came.
    #[inline]
    pub fn and_itself(&self) -> Waited {
        Waited { same: self.waited.same + self.transmission(), ..self.waited }
    }
}

/// Packets of one flow are in one lane: they are found without a look at most of the others.
const LANES: usize = 16;

#[inline]
fn lane(flow: u32) -> usize {
    flow as usize % LANES
}

/// One direction of a link, and the queue before it.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Taken by the transmitter and not yet at the far end, in order; the first has the number `first`.
    riding: VecDeque<Riding>,
    first: u32,
    /// The number of the last packet in each lane.
    lanes: [u32; LANES],
    /// What waits, where the order is decided at departure and anything ever waited.
    queue: Option<Box<Queue>>,
}

impl Line {
    pub fn new() -> Line {
        Line { riding: VecDeque::new(), first: 1, lanes: [0; LANES], queue: None }
    }

    /// A packet by its number, if it is still on the link.
    #[inline]
    fn get(&self, number: u32) -> Option<&Riding> {
        self.riding.get(number.wrapping_sub(self.first) as usize)
    }

    /// The last that the transmitter took, if it is still on the link.
    pub fn last(&self) -> Option<&Riding> {
        self.riding.back()
    }

    /// The transmitter takes a packet.
    #[inline]
    pub fn push(&mut self, mut riding: Riding) {
        if let Some(queue) = &mut self.queue {
            queue.take(&riding);
        }
        let number = self.first.wrapping_add(self.riding.len() as u32);
        let lane = &mut self.lanes[lane(riding.carried.flow)];
        riding.before = std::mem::replace(lane, number);
        self.riding.push_back(riding);
    }

    /// The first packet has crossed the link, or is lost on it.
    #[inline]
    pub fn pop(&mut self) -> Option<Riding> {
        let riding = self.riding.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(riding)
    }

    /// The link has gone down.
    pub fn stop(&mut self, now: u64) {
        if let Some(queue) = &mut self.queue {
            queue.stop(now);
        }
    }

    /// The queue before the link, of which nobody knew if nothing ever waited there.
    pub fn queue(&mut self, now: u64) -> &mut Queue {
        let busy_until = self.last().map_or(now, |last| last.departs.max(now));
        self.queue.get_or_insert_with(|| Box::new(Queue::new(busy_until)))
    }

    /// What a packet that comes now waits for on a link whose order is that of arrival, until it begins; and the packet with whose
    /// moment the waiting is counted from, if that is not its own: the last of its connection, if that leaves later than it comes.
    #[inline]
    pub fn ahead(&self, begins: u64, of: &Carried) -> (Waited, Option<&Riding>) {
        let (mut waited, mut since) = (Waited::default(), of.moment.at);
        let (mut found, mut number) = (None, self.lanes[lane(of.flow)]);
        while let Some(riding) = self.get(number).filter(|riding| riding.departs > since) {
            if riding.carried.flow == of.flow {
                let same = riding.carried.connection == of.connection;
                if same && !of.again && riding.carried.moment.is_told() {
                    since = riding.departs;
                    found = Some(riding);
                    break;
                }
                let time = riding.departs - riding.begins.max(since);
                *of.waits(&riding.carried, &mut waited) += time;
            }
            number = riding.before;
        }
        waited.others = begins - since - waited.same - waited.own;
        // Looking at every packet of an endless queue would take the tests minutes.
        let few = self.riding.len() <= 1_000;
        debug_assert!(!few || waited == self.looked_at(since, of), "what waits is transmitted");
        if let Some(before) = found {
            let until = before.and_itself();
            waited = Waited {
                same: until.same + waited.same,
                own: until.own + waited.own,
                others: until.others + waited.others,
            };
        }
        (waited, found)
    }

    /// What is sent from `since` until whatever is taken next begins, packet by packet.
    fn looked_at(&self, since: u64, of: &Carried) -> Waited {
        let mut waited = Waited::default();
        for riding in self.riding.iter().rev().take_while(|riding| riding.departs > since) {
            *of.waits(&riding.carried, &mut waited) += riding.departs - riding.begins.max(since);
        }
        waited
    }

    /// What is on the link departs at these times: whatever waited for another packet waits as long as that takes now.
    pub fn retime(&mut self, now: u64, departures: impl Iterator<Item = u64>) {
        let mut shares: Vec<(Carried, u64, u64)> = vec![];
        let mut free = None;
        for (riding, departs) in self.riding.iter_mut().zip(departures) {
            if riding.departs <= now {
                continue;
            }
            let (before, transmission) =
                (riding.departs - riding.begins.max(now), riding.transmission());
            let told = riding.carried.moment.is_told();
            for (other, old, new) in shares.iter().filter(|_| told) {
                let waits = riding.carried.waits(other, &mut riding.waited);
                *waits = *waits - old + new;
            }
            riding.begins = free.unwrap_or(riding.begins);
            riding.departs = departs;
            free = Some(departs);
            merge(&mut shares, riding.carried, before, departs - riding.begins.max(now));
            if let Some(queue) = &mut self.queue {
                queue.takes_longer(riding, transmission);
            }
        }
    }
}

/// Adds what a packet had still to send, and has now, to that of its connection.
fn merge(shares: &mut Vec<(Carried, u64, u64)>, carried: Carried, old: u64, new: u64) {
    let same = |other: &&mut (Carried, u64, u64)| {
        (other.0.flow, other.0.connection) == (carried.flow, carried.connection)
    };
    match shares.iter_mut().find(same) {
        Some(share) => (share.1, share.2) = (share.1 + old, share.2 + new),
        None => shares.push((carried, old, new)),
    }
}
