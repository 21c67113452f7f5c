//! The packets before and on one link, and what its transmitter has done: who waited for whom.

use std::collections::VecDeque;

use super::chains::NONE;
use crate::packet::{Flags, Packet};

/// What a packet has waited for at one port: the time from its chain's event until its first bit leaves.
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

/// A packet, and the chain that has led to where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    /// Nobody wants to know where there is none.
    pub chain: u32,
    pub flow: u32,
    pub connection: u32,
    /// It was sent before: what its connection has sent since does not explain why it leaves late.
    pub again: bool,
}

impl Carried {
    pub const NOTHING: Carried = Carried { chain: NONE, flow: NONE, connection: NONE, again: true };
}

/// A packet that a transmitter has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Riding {
    pub carried: Carried,
    pub begins: u64,
    pub departs: u64,
    pub waited: Waited,
}

impl Riding {
    pub fn transmission(&self) -> u64 {
        self.departs - self.begins
    }
}

/// A count of time that goes on: what it was once, and what of it was still to come then.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    was: u64,
    ahead: u64,
}

impl Mark {
    pub fn new(was: u64, ahead: u64) -> Mark {
        Mark { was, ahead }
    }

    /// What has been counted since.
    pub fn since(self, now: u64) -> u64 {
        // A link that has become faster takes back what was counted before.
        self.ahead.wrapping_add(now).wrapping_sub(self.was)
    }
}

/// A packet in a queue that decides the order at departure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub carried: Carried,
    identity: (u32, u32, u32, u16),
    /// What the transmitter had sent by its arrival: in all, of its flow, of its connection.
    pub all: Mark,
    pub flow: Mark,
    pub connection: Mark,
    /// How long it had been idle.
    pub idle: u64,
}

/// What stays the same of a packet in a queue, which may mark or trim it. Of two packets for which it is the same, either may
/// stand for the other.
fn identity(packet: &Packet) -> (u32, u32, u32, u16) {
    let &Packet { connection, seq, options, flags, .. } = packet;
    (connection.0, seq, options, flags.0 & !(Flags::DATA | Flags::CONGESTION_EXPERIENCED).0)
}

/// One direction of a link, and the queue before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// Taken by the transmitter and not yet at the far end, in order; the first has the number `first`.
    riding: VecDeque<Riding>,
    first: u32,
    waiting: VecDeque<Waiting>,
    /// When the transmitter falls idle, how long what it has taken takes, and how long it was idle until it took the last.
    busy_until: u64,
    sent: u64,
    idle: u64,
}

impl Line {
    /// The number that the next packet on the link will have.
    pub fn next(&self) -> u32 {
        self.first.wrapping_add(self.riding.len() as u32)
    }

    /// The number of a packet that has crossed the link.
    pub fn gone(&self) -> u32 {
        self.first.wrapping_sub(1)
    }

    /// A packet by its number, if it is still on the link.
    pub fn get(&self, number: u32) -> Option<&Riding> {
        self.riding.get(number.wrapping_sub(self.first) as usize)
    }

    /// The transmitter takes a packet.
    #[inline]
    pub fn push(&mut self, riding: Riding) {
        self.idle += riding.begins.saturating_sub(self.busy_until);
        self.busy_until = riding.departs;
        self.sent += riding.transmission();
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
        self.busy_until = self.busy_until.min(now);
    }

    /// What is sent from `since` until whatever is taken next begins.
    pub fn ahead(&self, since: u64, of: &Carried) -> Waited {
        let mut waited = Waited::default();
        for riding in self.riding.iter().rev().take_while(|riding| riding.departs > since) {
            let time = riding.departs - riding.begins.max(since);
            match &riding.carried {
                other if other.flow != of.flow => waited.others += time,
                other if other.connection != of.connection => waited.own += time,
                _ => waited.same += time,
            }
        }
        waited
    }

    /// How long the transmitter has been idle.
    pub fn idle(&self, now: u64) -> u64 {
        self.idle + now.saturating_sub(self.busy_until)
    }

    /// What it has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// A packet begins to wait: `flow` and `connection` have sent so much.
    pub fn wait(
        &mut self,
        now: u64,
        carried: Carried,
        packet: &Packet,
        flow: u64,
        connection: u64,
    ) {
        let ahead = self.busy_until.saturating_sub(now);
        let last = self.riding.back().map(|riding| riding.carried).filter(|_| ahead > 0);
        let ours = last.filter(|last| last.flow == carried.flow).map_or(0, |_| ahead);
        let same =
            last.filter(|last| last.flow == carried.flow && last.connection == carried.connection);
        self.waiting.push_back(Waiting {
            carried,
            identity: identity(packet),
            all: Mark::new(self.sent, ahead),
            flow: Mark::new(flow, ours),
            connection: Mark::new(connection, same.map_or(0, |_| ahead)),
            idle: self.idle(now),
        });
    }

    /// A packet waits no more.
    pub fn leave(&mut self, packet: &Packet) -> Option<Waiting> {
        let identity = identity(packet);
        let place = self.waiting.iter().position(|waiting| waiting.identity == identity)?;
        self.waiting.remove(place)
    }

    /// What is on the link departs at these times: says by how much later each one's own transmission ends than was thought, beyond
    /// the delay of those before it.
    pub fn retime(
        &mut self,
        now: u64,
        departures: impl Iterator<Item = u64>,
    ) -> Vec<(Carried, u64)> {
        let mut shares: Vec<(Carried, u64, u64)> = vec![];
        let mut longer = vec![];
        let mut free = None;
        for (riding, departs) in self.riding.iter_mut().zip(departures) {
            if riding.departs <= now {
                continue;
            }
            let before = riding.departs - riding.begins.max(now);
            let transmission = riding.transmission();
            let told = riding.carried.chain != NONE;
            for (other, old, new) in shares.iter().filter(|_| told) {
                let kind = match &riding.carried {
                    this if this.flow != other.flow => &mut riding.waited.others,
                    this if this.connection != other.connection => &mut riding.waited.own,
                    _ => &mut riding.waited.same,
                };
                *kind = *kind - old + new;
            }
            riding.begins = free.unwrap_or(riding.begins);
            riding.departs = departs;
            free = Some(departs);
            let after = departs - riding.begins.max(now);
            merge(&mut shares, riding.carried, before, after);
            let more = riding.transmission().wrapping_sub(transmission);
            self.sent = self.sent.wrapping_add(more);
            longer.push((riding.carried, more));
        }
        self.busy_until = free.unwrap_or(self.busy_until);
        longer
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
