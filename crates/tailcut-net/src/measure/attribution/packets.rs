//! The packets under way, each with what has led to where it is. A packet's record stays in its place from when its host sends it.

use std::collections::BTreeMap;

use super::chains::{Chains, Moment, NONE};
use super::parts::Part;
use crate::packet::ConnectionId;

/// No packet, and no link.
pub(super) const NOWHERE: u32 = u32::MAX;

/// How many kinds of places there are to wait at: interfaces of hosts, and tiers of links upwards and downwards.
pub(super) const KINDS: usize = 6;

/// What waiting at a place of a kind counts as: behind the flow's other connections, and behind other flows.
pub(super) const WAITING: [[Part; 2]; KINDS] = [
    [Part::InterfaceOwn, Part::InterfaceOthers],
    [Part::Up2Own, Part::Up2Others],
    [Part::Up3Own, Part::Up3Others],
    [Part::Down3Own, Part::Down3Others],
    [Part::Down2Own, Part::Down2Others],
    [Part::Down1Own, Part::Down1Others],
];

/// How much a packet has met of something, by its place in these: transmission and propagation as of [`Moment`], the former until its
/// last bit leaves; and how long it has waited behind other flows, by the kind of place.
type Met<T> = [T; 2 + KINDS];
pub(super) const TRANSMISSION: usize = 0;
pub(super) const PROPAGATION: usize = 1;
pub(super) const OTHERS: usize = 2;

/// The connection of a packet that nobody asks after; and what is said of a packet in one bit: it was sent before, or is of an orderly
/// connection.
const NOBODY: u32 = (1 << 30) - 1;
const AGAIN: u32 = 1 << 31;
const ORDERLY: u32 = 1 << 30;

/// More than fits.
const LONG: u32 = u32::MAX;

/// A packet under way: one cache line. Its chain stays that of what made its host send it, which others may share; what it has met
/// since is noted here until it arrives.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Record {
    /// What has led here; none where nobody wants to know.
    pub chain: u32,
    /// Its connection, and what is said of it in one bit.
    owner: u32,
    /// Its flow.
    pub flow: u32,
    /// The link that it is on.
    pub link: u32,
    /// Where it is of an orderly connection, the packet that its host has sent before it there.
    pub before: u32,
    /// How long it takes to transmit it where it is, in picoseconds; `LONG` where that is written elsewhere.
    takes: u32,
    /// In picoseconds, four milliseconds at most: its chain has what is more.
    met: Met<u32>,
    /// When its last bit leaves, or has left the last link; when it was sent, or left a queue, until it is on one.
    pub departs: u64,
}

impl Record {
    const NEW: Record = Record {
        chain: NONE,
        owner: NOBODY,
        flow: u32::MAX,
        link: NOWHERE,
        before: NOWHERE,
        takes: 0,
        met: [0; 2 + KINDS],
        departs: 0,
    };

    /// Whether somebody wants to know what has led here.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.chain != NONE
    }

    /// Whether it was sent before: what its connection has sent since does not explain why it leaves late.
    #[inline]
    pub fn is_again(&self) -> bool {
        self.owner & AGAIN != 0
    }

    /// Whether its connection is its flow's only one, and keeps the order of its packets.
    #[inline]
    pub fn is_orderly(&self) -> bool {
        self.owner & ORDERLY != 0
    }

    /// Its flow, and its connection.
    #[inline]
    pub fn whose(&self) -> (u32, u32) {
        (self.flow, self.connection())
    }

    /// The place of its connection.
    #[inline]
    fn connection(&self) -> u32 {
        self.owner & NOBODY
    }

    /// Whether both are of one connection.
    #[inline]
    pub fn is_of_connection_of(&self, other: &Record) -> bool {
        (self.owner ^ other.owner) & NOBODY == 0
    }
}

/// What is said of a packet after which somebody asks.
pub(super) struct TracedPacket {
    pub chain: u32,
    pub flow: u32,
    pub connection: ConnectionId,
    /// It was sent before.
    pub again: bool,
    /// Where its connection is orderly, the packet that its host has sent before it there.
    pub before: Option<u32>,
}

/// All packets under way, by their tickets.
#[derive(Debug, Clone, Default)]
pub(super) struct Packets {
    all: Vec<Record>,
    /// The flow of each connection, whose place is another's only when no packet of it is under way.
    flows: Vec<u32>,
    /// How long packets take to transmit on slow links.
    long: BTreeMap<u32, u64>,
}

impl Packets {
    /// A connection of a flow is there.
    pub fn open(&mut self, connection: ConnectionId, flow: u32) {
        if self.flows.len() <= connection.index() {
            self.flows.resize(connection.index() + 1, u32::MAX);
        }
        self.flows[connection.index()] = flow;
    }

    /// The flow of a connection.
    #[inline]
    pub fn flow_of(&self, connection: ConnectionId) -> u32 {
        self.flows[connection.index()]
    }

    /// A packet is sent, and nobody asks after it.
    #[inline]
    pub fn admit(&mut self, packet: u32, now: u64) {
        let new = Record { departs: now, ..Record::NEW };
        match self.all.get_mut(packet as usize) {
            Some(record) => *record = new,
            None => self.all.push(new),
        }
    }

    /// Somebody wants to know what has led to where a packet is.
    #[inline]
    pub fn trace(&mut self, packet: u32, told: &TracedPacket) {
        let &TracedPacket { chain, flow, connection, again, before } = told;
        debug_assert!(connection.0 < NOBODY, "no run has so many connections");
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let bits = bit(again, AGAIN) | bit(before.is_some(), ORDERLY);
        let record = &mut self[packet];
        (record.chain, record.flow, record.owner) = (chain, flow, connection.0 | bits);
        record.before = before.unwrap_or(NOWHERE);
    }

    /// A packet is no more: its chain is given back.
    #[inline]
    pub fn forget(&mut self, packet: u32) -> u32 {
        let record = &mut self[packet];
        record.link = NOWHERE;
        let (chain, long) = (record.chain, record.takes == LONG);
        if long {
            self.long.remove(&packet);
        }
        chain
    }

    /// A packet of an orderly connection is no more before it arrives: whoever was behind it is behind the one before it. `last` is the last that
    /// its host has sent there.
    pub fn take_out(&mut self, packet: u32, last: &mut u32) {
        let before = self[packet].before;
        if *last == packet {
            *last = before;
            return;
        }
        let mut at = *last;
        // Those behind it are all under way.
        while let Some(other) = self.all.get_mut(at as usize) {
            if other.before == packet {
                other.before = before;
                return;
            }
            at = other.before;
        }
    }

    /// A packet has arrived: the moment, whose chain has all that it has waited.
    #[inline]
    pub fn arrive(&mut self, packet: u32, now: u64, chains: &mut Chains) -> Moment {
        let mut chain = self.forget(packet);
        let Record { met: [transmission, propagation, others @ ..], departs, .. } = &self[packet];
        if chain != NONE && *others != [0; KINDS] {
            chains.go_on(&mut chain, others);
        }
        let propagation = u64::from(*propagation) + (now - departs);
        Moment { chain, at: now, transmission: u64::from(*transmission), propagation }
    }

    /// A packet has crossed its link, and waits before the next one.
    pub fn wait(&mut self, packet: u32, now: u64, chains: &mut Chains) {
        let travels = now - self[packet].departs;
        self.meet(packet, PROPAGATION, travels, chains);
        self[packet].link = NOWHERE;
    }

    /// A packet meets so much more of something.
    #[inline]
    pub fn meet(&mut self, packet: u32, what: usize, time: u64, chains: &mut Chains) {
        let met = &mut self[packet].met[what];
        match u32::try_from(u64::from(*met) + time) {
            Ok(sum) => *met = sum,
            Err(_) => self.meet_long(packet, what, time, chains),
        }
    }

    /// Its chain has all of it from now on, and so have those of the packets that go on from this one.
    #[cold]
    fn meet_long(&mut self, packet: u32, what: usize, time: u64, chains: &mut Chains) {
        let record = &mut self[packet];
        if record.is_traced() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            *chains.met_mut(&mut record.chain, what) += met + time;
        }
    }

    /// Of what a packet has met, so much is another time now.
    pub fn change(&mut self, packet: u32, what: usize, before: u64, now: u64, chains: &mut Chains) {
        let record = &mut self[packet];
        if before != now && record.is_traced() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            let more = chains.met_mut(&mut record.chain, what);
            *more = *more + met - before + now;
        }
    }

    /// A packet is transmitted on a link from then until then. It has crossed the one before at `crossed`.
    #[inline]
    pub fn ride(
        &mut self,
        packet: u32,
        link: u32,
        crossed: u64,
        [begins, departs]: [u64; 2],
        chains: &mut Chains,
    ) {
        let (takes, record) = (departs - begins, &mut self.all[packet as usize]);
        let travels = crossed - std::mem::replace(&mut record.departs, departs);
        record.link = link;
        let transmission = u64::from(record.met[TRANSMISSION]) + takes;
        let propagation = u64::from(record.met[PROPAGATION]) + travels;
        if transmission | propagation < u64::from(LONG) && record.takes != LONG {
            record.takes = takes as u32;
            (record.met[TRANSMISSION], record.met[PROPAGATION]) =
                (transmission as u32, propagation as u32);
        } else {
            self.ride_long(packet, takes, travels, chains);
        }
    }

    #[cold]
    fn ride_long(&mut self, packet: u32, takes: u64, travels: u64, chains: &mut Chains) {
        self.take(packet, takes);
        self.meet(packet, TRANSMISSION, takes, chains);
        self.meet(packet, PROPAGATION, travels, chains);
    }

    /// It begins and departs at other times than was said.
    pub fn retime(&mut self, packet: u32, begins: u64, departs: u64, chains: &mut Chains) {
        let before = self.takes(packet);
        self[packet].departs = departs;
        self.take(packet, departs - begins);
        self.change(packet, TRANSMISSION, before, departs - begins, chains);
    }

    fn take(&mut self, packet: u32, takes: u64) {
        let fits = u32::try_from(takes).unwrap_or(LONG);
        if std::mem::replace(&mut self[packet].takes, fits) == LONG {
            self.long.remove(&packet);
        }
        if fits == LONG {
            self.long.insert(packet, takes);
        }
    }

    /// How long it takes to transmit a packet.
    #[inline]
    pub fn takes(&self, packet: u32) -> u64 {
        match self[packet].takes {
            LONG => self.long[&packet],
            takes => u64::from(takes),
        }
    }

    /// What has led to a packet, and what it has met until `now`, is what another has, which is on the link that it goes on now.
    #[inline]
    pub fn go_on_from(&mut self, packet: u32, other: u32, now: u64) {
        let Record { chain, met, .. } = self[other];
        let record = &mut self[packet];
        (record.chain, record.met, record.departs) = (chain, met, now);
    }

    /// When its first bit leaves.
    #[inline]
    pub fn begins(&self, packet: u32) -> u64 {
        self[packet].departs - self.takes(packet)
    }

    /// A place, if there is one by this number.
    #[inline]
    pub fn get(&self, packet: u32) -> Option<&Record> {
        self.all.get(packet as usize)
    }
}

impl std::ops::Index<u32> for Packets {
    type Output = Record;
    #[inline]
    fn index(&self, packet: u32) -> &Record {
        &self.all[packet as usize]
    }
}

impl std::ops::IndexMut<u32> for Packets {
    #[inline]
    fn index_mut(&mut self, packet: u32) -> &mut Record {
        &mut self.all[packet as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(chain: u32, before: Option<u32>) -> TracedPacket {
        let connection = ConnectionId(3);
        TracedPacket { chain, flow: 7, connection, again: true, before }
    }

    #[test]
    fn a_record_fills_one_cache_line() {
        assert_eq!(std::mem::size_of::<Record>(), 64);
    }

    #[test]
    fn a_reused_slot_starts_untraced() {
        let mut packets = Packets::default();
        (0..2).for_each(|packet| packets.admit(packet, 5));
        packets.trace(0, &told(0, None));
        assert_eq!((packets[0].whose(), packets[0].is_again()), ((7, 3), true));
        assert!(packets[0].is_traced() && !packets[0].is_orderly() && !packets[1].is_traced());
        packets.forget(0);
        packets.admit(0, 6);
        assert!(!packets[0].is_traced() && packets[0].whose() != (7, 3));
    }

    /// Five were sent; one after the other is dropped, the last of them first.
    #[test]
    fn a_dropped_packet_leaves_the_chain_of_predecessors() {
        let (mut packets, mut last) = (Packets::default(), 4);
        for (packet, before) in [NOWHERE, 0, 1, 2, 3].into_iter().enumerate() {
            packets.admit(packet as u32, 0);
            packets.trace(packet as u32, &told(0, Some(before)));
        }
        for dropped in [4, 2, 0] {
            packets.take_out(dropped, &mut last);
        }
        assert_eq!((last, packets[3].before, packets[1].before), (3, 1, NOWHERE));
    }

    /// Four milliseconds fit into a record, and four seconds do not.
    #[test]
    fn counts_times_that_do_not_fit_a_record() {
        let (mut packets, mut chains) = (Packets::default(), Chains::default());
        let (fits, long) = (u64::from(u32::MAX), 4_000_000_000_000);
        let [first, second, third] = [0, 1, 2].map(|packet| {
            packets.admit(packet, 10);
            packets.trace(packet, &told(chains.begin(0, 7).chain, None));
            packets.ride(packet, 0, 10, [10, 11], &mut chains);
            packets.meet(packet, OTHERS + 1, fits, &mut chains);
            packet
        });
        packets.meet(first, OTHERS + 1, 1, &mut chains);
        packets.ride(first, 0, 13, [20, 20 + long], &mut chains);
        assert_eq!((packets.takes(first), packets.begins(first)), (long, 20));
        chains.share(packets[first].chain);
        packets.go_on_from(second, first, 17);
        packets.ride(second, 0, 17, [20 + long, 21 + long], &mut chains);
        packets.retime(second, 20, 20 + 2 * long, &mut chains);
        packets.change(second, PROPAGATION, 0, fits + 1, &mut chains);
        packets.retime(first, 20, 27, &mut chains);
        let mut met = |packet, packets: &mut Packets| {
            let mut moment = packets.arrive(packet, packets[packet].departs + 5, &mut chains);
            chains.settle_as_they_are(&mut moment);
            let parts = chains.parts(moment.chain);
            [Part::Transmission, Part::Propagation, Part::Up2Others].map(|part| parts.of(part).0)
        };
        assert_eq!(met(third, &mut packets), [1, 5, fits]);
        assert_eq!(met(first, &mut packets), [1 + 7, 2 + 5, fits + 1]);
        assert_eq!(met(second, &mut packets), [1 + 3 * long, 2 + fits + 1 + 5, fits + 1]);
        assert!(packets.long.is_empty());
    }
}
