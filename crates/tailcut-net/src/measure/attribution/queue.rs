//! A queue that decides the order at departure: what the transmitter has done while a packet waited there.

use std::collections::{BTreeMap, VecDeque};

use super::link_wait::Waited;
use super::packets::Packets;

/// A count of time that goes on: what it was once, and what of it was still to come then.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    was: u64,
    ahead: u64,
}

impl Mark {
    /// What has been counted since.
    fn since(self, now: u64) -> u64 {
        // A link that has become faster takes back what was counted before.
        self.ahead.wrapping_add(now).wrapping_sub(self.was)
    }
}

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
struct WaitingPacket {
    packet: u32,
    since: u64,
    /// What the transmitter had taken by its arrival: in all, of its flow, of its connection.
    all: Mark,
    flow: Mark,
    connection: Mark,
    /// How long it had been idle.
    idle: u64,
}

/// Packets of one flow, or of one connection of it, that wait; and what the transmitter has taken of them meanwhile.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    waiting: u32,
    taken: u64,
}

/// Of a flow, all of its connections.
const ALL: u32 = u32::MAX;

/// A packet that waits no more.
pub(super) struct Left {
    /// Since when it waited.
    pub since: u64,
    /// What it waited for since its arrival.
    pub waited: Waited,
    /// How long the transmitter was idle meanwhile.
    pub idle: u64,
}

/// What waits before one link.
#[derive(Debug, Clone)]
pub(super) struct QueueClock {
    waiting: VecDeque<WaitingPacket>,
    shares: BTreeMap<(u32, u32), Share>,
    /// When the transmitter falls idle; how long what it has taken takes, and how long it was idle until it took the last.
    busy_until: u64,
    taken: u64,
    idle: u64,
    /// The flow and the connection of the packet that the transmitter took last.
    last: Option<(u32, u32)>,
}

impl QueueClock {
    /// Nothing has ever waited; the transmitter is at work until then.
    pub fn new(busy_until: u64) -> QueueClock {
        let (waiting, shares) = (VecDeque::new(), BTreeMap::new());
        QueueClock { waiting, shares, busy_until, taken: 0, idle: 0, last: None }
    }

    fn shares_of(&mut self, (flow, connection): (u32, u32), mut change: impl FnMut(&mut Share)) {
        for connection in [connection, ALL] {
            if let Some(share) = self.shares.get_mut(&(flow, connection)) {
                change(share);
            }
        }
    }

    /// The transmitter takes a packet.
    pub fn take(&mut self, packets: &Packets, taken: u32) {
        self.idle += packets.begins(taken).saturating_sub(self.busy_until);
        self.busy_until = packets[taken].departs;
        self.last = Some(packets[taken].whose());
        self.count(packets, taken, packets.takes(taken));
    }

    fn count(&mut self, packets: &Packets, taken: u32, time: u64) {
        self.taken = self.taken.wrapping_add(time);
        self.shares_of(packets[taken].whose(), |share| {
            share.taken = share.taken.wrapping_add(time)
        });
    }

    /// What it has taken is transmitted in another time.
    pub fn takes_longer(&mut self, packets: &Packets, taken: u32, before: u64) {
        self.busy_until = packets[taken].departs;
        self.count(packets, taken, packets.takes(taken).wrapping_sub(before));
    }

    /// The link has gone down.
    pub fn stop(&mut self, now: u64) {
        self.busy_until = self.busy_until.min(now);
    }

    fn idle(&self, now: u64) -> u64 {
        self.idle + now.saturating_sub(self.busy_until)
    }

    /// A packet begins to wait; `last` is what the transmitter took last.
    pub fn enter(&mut self, now: u64, packets: &Packets, packet: u32, last: Option<u32>) {
        let ahead = self.busy_until.saturating_sub(now);
        let (flow, connection) = packets[packet].whose();
        let last = last.map(|last| packets[last].whose());
        self.last = last;
        let ours = |connection| {
            last.filter(|last| last.0 == flow)
                .filter(|last| connection == ALL || last.1 == connection)
                .map_or(0, |_| ahead)
        };
        let [connection, flow] = [connection, ALL].map(|connection| {
            let share = self.shares.entry((flow, connection)).or_default();
            share.waiting += 1;
            Mark { was: share.taken, ahead: ours(connection) }
        });
        let (all, idle) = (Mark { was: self.taken, ahead }, self.idle(now));
        self.waiting.push_back(WaitingPacket { packet, since: now, all, flow, connection, idle });
    }

    /// Takes a packet out. One that leaves by another way, as a header without room does, has not waited for all that the transmitter
    /// is at.
    pub fn leave(&mut self, now: u64, packets: &Packets, packet: u32) -> Left {
        let place = self.waiting.iter().position(|waiting| waiting.packet == packet);
        let waiting = place.and_then(|place| self.waiting.remove(place)).expect("it waited there");
        let (flow, connection) = packets[packet].whose();
        let rest = self.busy_until.saturating_sub(now);
        let ours = self.last.filter(|last| rest > 0 && last.0 == flow);
        let marks = [(connection, waiting.connection), (ALL, waiting.flow)];
        let [same, flow] = marks.map(|(connection, mark)| {
            let of = (flow, connection);
            let share = self.shares.get_mut(&of).expect("it is counted");
            let counts = ours.is_some_and(|last| connection == ALL || last.1 == connection);
            let taken = mark.since(share.taken).wrapping_sub(if counts { rest } else { 0 });
            share.waiting -= 1;
            if share.waiting == 0 {
                self.shares.remove(&of);
            }
            taken
        });
        let all = waiting.all.since(self.taken).wrapping_sub(rest);
        let waited = Waited { same, own: flow.wrapping_sub(same), others: all.wrapping_sub(flow) };
        let idle = self.idle(now).wrapping_sub(waiting.idle);
        Left { since: waiting.since, waited, idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_two_equal_packets() {
        let (mut packets, mut queue) = (Packets::default(), QueueClock::new(20));
        for (packet, now) in [(0, 0), (1, 5)] {
            packets.admit(packet, now);
            queue.enter(now, &packets, packet, None);
        }
        let since = [1, 0].map(|packet| queue.leave(9, &packets, packet).since);
        assert_eq!(since, [5, 0]);
    }
}
