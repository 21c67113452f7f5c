//! Packets in the network, each with the causes that led it to where it is. A packet keeps its slot
//! from when its host sends it.

use std::collections::BTreeMap;

use super::chains::{Chains, Moment, NONE};
use super::parts::Part;
use crate::packet::ConnectionId;

/// The number that stands for no packet and no link.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Number of kinds of places to wait at: interfaces of hosts, and tiers of links upwards and
/// downwards.
pub(super) const KINDS: usize = 6;

/// The parts that waiting at each kind of place counts as: behind the flow's other connections, and
/// behind other flows.
pub(super) const WAITING: [[Part; 2]; KINDS] = [
    [Part::InterfaceOwn, Part::InterfaceOthers],
    [Part::Up2Own, Part::Up2Others],
    [Part::Up3Own, Part::Up3Others],
    [Part::Down3Own, Part::Down3Others],
    [Part::Down2Own, Part::Down2Others],
    [Part::Down1Own, Part::Down1Others],
];

/// Times that a packet has met, by index: transmission and propagation as in [`Moment`],
/// transmission until its last bit leaves; then waiting behind other flows, by kind of place.
type Met<T> = [T; 2 + KINDS];
pub(super) const TRANSMISSION: usize = 0;
pub(super) const PROPAGATION: usize = 1;
pub(super) const OTHERS: usize = 2;

/// The connection of an untraced packet; and flags beside the connection's number: the packet is a
/// retransmission, or belongs to an orderly connection.
const NOBODY: u32 = (1 << 30) - 1;
const AGAIN: u32 = 1 << 31;
const ORDERLY: u32 = 1 << 30;

/// Stands for a time that does not fit.
const LONG: u32 = u32::MAX;

/// The record of a packet in the network: one cache line. Its chain stays that of the event that
/// made its host send it, which other packets may share. Times met since then are stored here until
/// it arrives.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Record {
    /// The chain of causes; `NONE` if the packet is not traced.
    pub chain: u32,
    /// Its connection, with the flags `AGAIN` and `ORDERLY`.
    owner: u32,
    pub flow: u32,
    pub link: u32,
    /// The packet that its host sent before it, if the connection is orderly.
    pub before: u32,
    /// Transmission time on its current link in picoseconds; `LONG` if stored elsewhere.
    takes: u32,
    /// Times met in picoseconds, four milliseconds at most each; longer ones go into the chain.
    met: Met<u32>,
    /// When its last bit leaves its link, or left the last one. Before the first link: when it was
    /// sent, or left a queue.
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

    /// Returns whether the causes of the packet are recorded.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.chain != NONE
    }

    /// Returns whether the packet is a retransmission. Later packets of its connection then do not
    /// explain why it leaves late.
    #[inline]
    pub fn is_again(&self) -> bool {
        self.owner & AGAIN != 0
    }

    /// Returns whether its connection is its flow's only one and keeps its packets in order.
    #[inline]
    pub fn is_orderly(&self) -> bool {
        self.owner & ORDERLY != 0
    }

    /// Returns its flow and its connection.
    #[inline]
    pub fn whose(&self) -> (u32, u32) {
        (self.flow, self.connection())
    }

    /// Returns the number of its connection.
    #[inline]
    fn connection(&self) -> u32 {
        self.owner & NOBODY
    }

    /// Returns whether both packets belong to one connection.
    #[inline]
    pub fn is_of_connection_of(&self, other: &Record) -> bool {
        (self.owner ^ other.owner) & NOBODY == 0
    }
}

/// The data that begin the record of a traced packet.
pub(super) struct TracedPacket {
    pub chain: u32,
    pub flow: u32,
    pub connection: ConnectionId,
    /// Whether the packet is a retransmission.
    pub again: bool,
    /// The packet that its host sent before it, `None` unless the connection is orderly.
    pub before: Option<u32>,
}

/// All packets in the network, by their tickets.
#[derive(Debug, Clone, Default)]
pub(super) struct Packets {
    all: Vec<Record>,
    /// The flow of each connection. A number is reused only when no packet of the connection is in
    /// the network.
    flows: Vec<u32>,
    /// Transmission times that do not fit a record: those on slow links.
    long: BTreeMap<u32, u64>,
}

impl Packets {
    /// Notes that a connection belongs to `flow`.
    pub fn open(&mut self, connection: ConnectionId, flow: u32) {
        if self.flows.len() <= connection.index() {
            self.flows.resize(connection.index() + 1, u32::MAX);
        }
        self.flows[connection.index()] = flow;
    }

    /// Returns the flow of a connection.
    #[inline]
    pub fn flow_of(&self, connection: ConnectionId) -> u32 {
        self.flows[connection.index()]
    }

    /// Adds a packet sent at `now`, untraced.
    #[inline]
    pub fn admit(&mut self, packet: u32, now: u64) {
        let new = Record { departs: now, ..Record::NEW };
        match self.all.get_mut(packet as usize) {
            Some(record) => *record = new,
            None => self.all.push(new),
        }
    }

    /// Starts to record the causes of a packet.
    #[inline]
    pub fn trace(&mut self, packet: u32, traced: &TracedPacket) {
        let &TracedPacket { chain, flow, connection, again, before } = traced;
        debug_assert!(connection.0 < NOBODY, "no run has so many connections");
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let bits = bit(again, AGAIN) | bit(before.is_some(), ORDERLY);
        let record = &mut self[packet];
        (record.chain, record.flow, record.owner) = (chain, flow, connection.0 | bits);
        record.before = before.unwrap_or(NOWHERE);
    }

    /// Ends the record of a packet and returns its chain, which the caller releases or uses.
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

    /// Takes a packet of an orderly connection that never arrives out of the sequence: its
    /// successor follows its predecessor. `last` is the last packet that its host sent.
    pub fn take_out(&mut self, packet: u32, last: &mut u32) {
        let before = self[packet].before;
        if *last == packet {
            *last = before;
            return;
        }
        let mut at = *last;
        // The packets behind it are all in the network.
        while let Some(other) = self.all.get_mut(at as usize) {
            if other.before == packet {
                other.before = before;
                return;
            }
            at = other.before;
        }
    }

    /// Ends the record of a packet that arrives, and returns the moment, whose chain includes all
    /// its waiting.
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

    /// Notes that a packet has crossed its link and waits before the next one.
    pub fn wait(&mut self, packet: u32, now: u64, chains: &mut Chains) {
        let travels = now - self[packet].departs;
        self.meet(packet, PROPAGATION, travels, chains);
        self[packet].link = NOWHERE;
    }

    /// Adds `time` to a time that a packet has met, by index.
    #[inline]
    pub fn meet(&mut self, packet: u32, what: usize, time: u64, chains: &mut Chains) {
        let met = &mut self[packet].met[what];
        match u32::try_from(u64::from(*met) + time) {
            Ok(sum) => *met = sum,
            Err(_) => self.meet_long(packet, what, time, chains),
        }
    }

    /// Moves a time that does not fit into the packet's chain, which later packets may continue.
    #[cold]
    fn meet_long(&mut self, packet: u32, what: usize, time: u64, chains: &mut Chains) {
        let record = &mut self[packet];
        if record.is_traced() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            *chains.met_mut(&mut record.chain, what) += met + time;
        }
    }

    /// Replaces `before` by `now` in a time that a packet has met.
    pub fn change(&mut self, packet: u32, what: usize, before: u64, now: u64, chains: &mut Chains) {
        let record = &mut self[packet];
        if before != now && record.is_traced() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            let more = chains.met_mut(&mut record.chain, what);
            *more = *more + met - before + now;
        }
    }

    /// Puts a packet on a link from `begins` to `departs`. It crossed the previous link at
    /// `crossed`.
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

    /// Changes when a packet begins and departs.
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

    /// Returns the transmission time of a packet on its current link.
    #[inline]
    pub fn takes(&self, packet: u32) -> u64 {
        match self[packet].takes {
            LONG => self.long[&packet],
            takes => u64::from(takes),
        }
    }

    /// Copies the chain and the met times of `other`, which is on the link that `packet` joins at
    /// `now`.
    #[inline]
    pub fn go_on_from(&mut self, packet: u32, other: u32, now: u64) {
        let Record { chain, met, .. } = self[other];
        let record = &mut self[packet];
        (record.chain, record.met, record.departs) = (chain, met, now);
    }

    /// Returns when the first bit of a packet leaves.
    #[inline]
    pub fn begins(&self, packet: u32) -> u64 {
        self[packet].departs - self.takes(packet)
    }

    /// Returns the record with this number, if there is one.
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

    fn traced(chain: u32, before: Option<u32>) -> TracedPacket {
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
        packets.trace(0, &traced(0, None));
        assert_eq!((packets[0].whose(), packets[0].is_again()), ((7, 3), true));
        assert!(packets[0].is_traced() && !packets[0].is_orderly() && !packets[1].is_traced());
        packets.forget(0);
        packets.admit(0, 6);
        assert!(!packets[0].is_traced() && packets[0].whose() != (7, 3));
    }

    /// Drops five packets one after the other, the last one first.
    #[test]
    fn a_dropped_packet_leaves_the_chain_of_predecessors() {
        let (mut packets, mut last) = (Packets::default(), 4);
        for (packet, before) in [NOWHERE, 0, 1, 2, 3].into_iter().enumerate() {
            packets.admit(packet as u32, 0);
            packets.trace(packet as u32, &traced(0, Some(before)));
        }
        for dropped in [4, 2, 0] {
            packets.take_out(dropped, &mut last);
        }
        assert_eq!((last, packets[3].before, packets[1].before), (3, 1, NOWHERE));
    }

    /// Four milliseconds fit into a record; four seconds do not.
    #[test]
    fn counts_times_that_do_not_fit_a_record() {
        let (mut packets, mut chains) = (Packets::default(), Chains::default());
        let (fits, long) = (u64::from(u32::MAX), 4_000_000_000_000);
        let [first, second, third] = [0, 1, 2].map(|packet| {
            packets.admit(packet, 10);
            packets.trace(packet, &traced(chains.begin(0, 7).chain, None));
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
