//! The packets on one link and before it, and what its transmitter has done: who waited for whom.

use tailcut_engine::Time;

use super::chains::Chains;
use super::packets::{Packets, Record, NOWHERE};
use super::queue::Queue;

/// What a packet has waited for at one port.
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
    /// Which waiting of a packet of one flow and connection for another packet is.
    #[inline]
    fn of(&mut self, (flow, connection): (u32, u32), (whose, which): (u32, u32)) -> &mut u64 {
        match (flow == whose, connection == which) {
            (false, _) => &mut self.others,
            (true, false) => &mut self.own,
            (true, true) => &mut self.same,
        }
    }
}

/// Packets of one flow are in one lane: they are found without a look at most of the others.
const LANES: u32 = 12;

/// One direction of a link, and the queue before it. What the transmitter has taken and what is not yet at the far end is a list in order,
/// in the records of the packets.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Line {
    number: u32,
    first: u32,
    last: u32,
    /// The last packet in each lane; it may have left.
    lanes: [u32; LANES as usize - 1],
    /// What waits, where the order is decided at departure and anything ever waited.
    queue: Option<Box<Queue>>,
}

#[inline]
fn lane(flow: u32) -> usize {
    (flow % (LANES - 1)) as usize
}

impl Line {
    /// The line of the port of this number.
    pub fn new(number: u32) -> Line {
        let lanes = [NOWHERE; LANES as usize - 1];
        Line { number, first: NOWHERE, last: NOWHERE, lanes, queue: None }
    }

    /// The first packet on the link.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The last that the transmitter took, if it is still on the link.
    pub fn last<'p>(&self, packets: &'p Packets) -> Option<&'p Record> {
        self.last_place().map(|last| &packets[last])
    }

    /// Its place.
    pub fn last_place(&self) -> Option<u32> {
        (self.last != NOWHERE).then_some(self.last)
    }

    /// The transmitter takes a packet, which begins then and departs then.
    #[inline]
    pub fn push(
        &mut self,
        packets: &mut Packets,
        chains: &mut Chains,
        packet: u32,
        begins: u64,
        departs: u64,
    ) {
        if let Some(flow) = packets.ride(packet, self.number, begins, departs, chains) {
            packets[packet].before = std::mem::replace(&mut self.lanes[lane(flow)], packet);
        }
        if let Some(queue) = &mut self.queue {
            queue.take(packets, packet);
        }
        match std::mem::replace(&mut self.last, packet) {
            NOWHERE => self.first = packet,
            last => packets[last].next = packet,
        }
    }

    /// The first packet has crossed the link, or is lost on it.
    #[inline]
    pub fn pop(&mut self, packets: &mut Packets) -> Option<u32> {
        let packet = self.first;
        if packet == NOWHERE {
            return None;
        }
        let record = &mut packets[packet];
        (record.link, self.first) = (NOWHERE, record.next);
        if self.first == NOWHERE {
            self.last = NOWHERE;
        }
        Some(packet)
    }

    /// The link has gone down.
    pub fn stop(&mut self, now: u64) {
        if let Some(queue) = &mut self.queue {
            queue.stop(now);
        }
    }

    /// The queue before the link, of which nobody knew if nothing ever waited there.
    pub fn queue(&mut self, packets: &Packets, now: u64) -> &mut Queue {
        let busy_until = self.last(packets).map_or(now, |last| last.departs.max(now));
        self.queue.get_or_insert_with(|| Box::new(Queue::new(busy_until)))
    }

    /// What a packet that comes now waits for on a link whose order is that of arrival, until it begins; and the last packet of its
    /// connection, if that leaves later than it comes: from then on the waiting is counted.
    #[inline]
    pub fn ahead(
        &self,
        packets: &Packets,
        now: u64,
        begins: u64,
        of: u32,
    ) -> (Waited, Option<u32>) {
        let (mut waited, mut since, mut found) = (Waited::default(), now, None);
        let (record, flow) = (&packets[of], packets.flow(&packets[of]));
        let (mut at, mut until) = (self.lanes[lane(flow)], u64::MAX);
        // Places are used again. In the list of a lane departures are ever earlier, and none is once a packet has left.
        while let Some(other) = packets.get(at) {
            if other.link != self.number || other.departs >= until || other.departs <= now {
                break;
            }
            let whose = packets.flow(other);
            if whose == flow {
                let same = other.is_of_connection_of(record);
                if same && !record.is_again() {
                    (since, found) = (other.departs, Some(at));
                    break;
                }
                let waiting = if same { &mut waited.same } else { &mut waited.own };
                *waiting += packets.takes(at).min(other.departs - now);
            } else if lane(whose) != lane(flow) {
                break;
            }
            (at, until) = (other.before, other.departs);
        }
        waited.others = begins - since - waited.same - waited.own;
        debug_assert!(self.agrees(packets, since, of, waited), "what waits is transmitted");
        (waited, found)
    }

    /// Whether the same is waited for packet by packet, where a queue is not too long to look at all of it.
    fn agrees(&self, packets: &Packets, since: u64, of: u32, waited: Waited) -> bool {
        let (mut looked, mut at) = (Waited::default(), self.first);
        for _ in 0..200 {
            let Some(other) = packets.get(at) else { return looked == waited };
            *looked.of(packets.whose(of), packets.whose(at)) +=
                packets.takes(at).min(other.departs.saturating_sub(since));
            at = other.next;
        }
        true
    }

    /// What is on the link departs at these times. Tells of every packet that waits for another how long that took from now on, and takes
    /// now: what it waits for as `Waited`.
    pub fn retime(
        &mut self,
        packets: &mut Packets,
        chains: &mut Chains,
        now: u64,
        departures: &[Time],
        mut tell: impl FnMut(&mut Packets, &mut Chains, u32, Waited, Waited),
    ) {
        let mut shares: Vec<((u32, u32), u64, u64)> = vec![];
        let (mut free, mut at) = (None, self.first);
        for &Time(departs) in departures {
            let packet = at;
            let record = packets[packet];
            at = record.next;
            if record.departs <= now {
                continue;
            }
            let (whose, takes) = (packets.whose(packet), packets.takes(packet));
            let before = takes.min(record.departs - now);
            if record.is_told() {
                let (mut old, mut new) = (Waited::default(), Waited::default());
                for &(other, was, is) in &shares {
                    *old.of(whose, other) += was;
                    *new.of(whose, other) += is;
                }
                tell(packets, chains, packet, old, new);
            }
            let begins = free.unwrap_or(packets.begins(packet));
            packets.retime(packet, begins, departs, chains);
            free = Some(departs);
            merge(&mut shares, whose, before, departs - begins.max(now));
            if let Some(queue) = &mut self.queue {
                queue.takes_longer(packets, packet, takes);
            }
        }
    }
}

/// Adds what a packet had still to send, and has now, to that of its connection.
fn merge(shares: &mut Vec<((u32, u32), u64, u64)>, whose: (u32, u32), old: u64, new: u64) {
    match shares.iter_mut().find(|share| share.0 == whose) {
        Some(share) => (share.1, share.2) = (share.1 + old, share.2 + new),
        None => shares.push((whose, old, new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fills_one_cache_line() {
        assert_eq!(std::mem::size_of::<Line>(), 64);
    }
}
