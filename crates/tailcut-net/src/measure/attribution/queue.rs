//! Clock of a scheduled queue: what the transmitter has sent while a packet waited there.

use std::collections::{BTreeMap, VecDeque};

use super::link_wait::Waited;
use super::packets::Packets;

/// A position of a running count of time: its value once, and how much of it was still to come
/// then.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    was: u64,
    ahead: u64,
}

impl Mark {
    /// Returns the time counted since the mark.
    fn since(self, now: u64) -> u64 {
        // A link that becomes faster takes back time that was counted before, so the differences
        // may wrap.
        self.ahead.wrapping_add(now).wrapping_sub(self.was)
    }
}

/// A waiting packet.
#[derive(Debug, Clone, Copy)]
struct WaitingPacket {
    packet: u32,
    since: u64,
    /// Transmissions taken by its arrival: of all flows, of its flow, of its connection.
    all: Mark,
    flow: Mark,
    connection: Mark,
    /// Idle time of the transmitter by its arrival.
    idle: u64,
}

/// Waiting packets of one flow, or of one connection of it, and the transmissions taken of them
/// meanwhile.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    waiting: u32,
    taken: u64,
}

/// Stands for all connections of a flow.
const ALL: u32 = u32::MAX;

/// What a packet met while it waited in the queue.
pub(super) struct Left {
    /// When it began to wait.
    pub since: u64,
    /// Transmissions that it waited for.
    pub waited: Waited,
    /// Idle time of the transmitter meanwhile.
    pub idle: u64,
}

/// Waiting packets and transmitter times of the scheduled queue before one link.
#[derive(Debug, Clone)]
pub(super) struct QueueClock {
    waiting: VecDeque<WaitingPacket>,
    shares: BTreeMap<(u32, u32), Share>,
    /// When the transmitter falls idle; the sum of the transmission times it has taken; its idle
    /// time until it took the last packet.
    busy_until: u64,
    taken: u64,
    idle: u64,
    /// Flow and connection of the packet that the transmitter took last.
    last: Option<(u32, u32)>,
}

impl QueueClock {
    /// Creates the clock of an empty queue, whose transmitter is busy until `busy_until`.
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

    /// Notes that the transmitter takes a packet.
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

    /// Notes that the transmission of a taken packet changes from `before` to its present time.
    pub fn takes_longer(&mut self, packets: &Packets, taken: u32, before: u64) {
        self.busy_until = packets[taken].departs;
        self.count(packets, taken, packets.takes(taken).wrapping_sub(before));
    }

    /// Notes that the link goes down.
    pub fn stop(&mut self, now: u64) {
        self.busy_until = self.busy_until.min(now);
    }

    fn idle(&self, now: u64) -> u64 {
        self.idle + now.saturating_sub(self.busy_until)
    }

    /// Adds a packet; `last` is the packet that the transmitter took last.
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

    /// Removes a packet and returns what it met. A packet that leaves by another link, as a
    /// returned header does, has not waited for the rest of the current transmission.
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
