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

/// The connection of a packet that nobody asks after; and a bit that says that a packet was sent before.
const NOBODY: u32 = (1 << 31) - 1;
const AGAIN: u32 = 1 << 31;

/// More than fits.
const LONG: u32 = u32::MAX;

/// A packet under way: one cache line. Its chain stays that of what made its host send it, which others may share; what it has met
/// since is noted here until it arrives.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Record {
    /// What has led here; none where nobody wants to know.
    pub chain: u32,
    /// Its connection, and whether it was sent before.
    owner: u32,
    /// The link that has taken it.
    pub link: u32,
    /// The one behind it on that link.
    pub next: u32,
    /// The one before it there in its lane.
    pub before: u32,
    /// How long it takes to transmit it where it is, in picoseconds; `LONG` where that is written elsewhere.
    takes: u32,
    /// In picoseconds, four milliseconds at most: its chain has what is more.
    met: Met<u32>,
    /// When its last bit leaves.
    pub departs: u64,
}

impl Record {
    const NEW: Record = Record {
        chain: NONE,
        owner: NOBODY,
        link: NOWHERE,
        next: NOWHERE,
        before: NOWHERE,
        takes: 0,
        met: [0; 2 + KINDS],
        departs: 0,
    };

    /// Whether somebody wants to know what has led here.
    #[inline]
    pub fn is_told(&self) -> bool {
        self.chain != NONE
    }

    /// Whether it was sent before: what its connection has sent since does not explain why it leaves late.
    #[inline]
    pub fn is_again(&self) -> bool {
        self.owner & AGAIN != 0
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

/// All packets under way; places are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct Packets {
    all: Vec<Record>,
    free: Vec<u32>,
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

    /// A place for a packet that nobody asks after.
    #[inline]
    pub fn admit(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = Record::NEW;
            return place;
        }
        self.all.push(Record::NEW);
        self.all.len() as u32 - 1
    }

    /// Somebody wants to know what has led to where a packet is.
    #[inline]
    pub fn tell(&mut self, packet: u32, chain: u32, connection: ConnectionId, again: bool) {
        debug_assert!(connection.0 < NOBODY, "no run has so many connections");
        let record = &mut self[packet];
        (record.chain, record.owner) = (chain, connection.0 | if again { AGAIN } else { 0 });
    }

    /// A packet is no more: its chain is given back.
    #[inline]
    pub fn forget(&mut self, packet: u32) -> u32 {
        self.free.push(packet);
        let record = &mut self[packet];
        record.link = NOWHERE;
        let (chain, long) = (record.chain, record.takes == LONG);
        if long {
            self.long.remove(&packet);
        }
        chain
    }

    /// A packet has arrived: the moment, whose chain has all that it has waited.
    #[inline]
    pub fn arrive(&mut self, packet: u32, now: u64, chains: &mut Chains) -> Moment {
        let mut chain = self.forget(packet);
        let [transmission, propagation, others @ ..] = &self[packet].met;
        if chain != NONE && *others != [0; KINDS] {
            chains.go_on(&mut chain, others);
        }
        let (transmission, propagation) = (u64::from(*transmission), u64::from(*propagation));
        Moment { chain, at: now, transmission, propagation }
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
        if record.is_told() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            *chains.met_mut(&mut record.chain, what) += met + time;
        }
    }

    /// Of what a packet has met, so much is another time now.
    pub fn change(&mut self, packet: u32, what: usize, before: u64, now: u64, chains: &mut Chains) {
        let record = &mut self[packet];
        if before != now && record.is_told() {
            let met = u64::from(std::mem::take(&mut record.met[what]));
            let more = chains.met_mut(&mut record.chain, what);
            *more = *more + met - before + now;
        }
    }

    /// A packet is transmitted on a link from then until then; its flow, if somebody asks after it.
    #[inline]
    pub fn ride(
        &mut self,
        packet: u32,
        link: u32,
        begins: u64,
        departs: u64,
        chains: &mut Chains,
    ) -> Option<u32> {
        let takes = departs - begins;
        let record = &mut self.all[packet as usize];
        (record.link, record.next, record.departs) = (link, NOWHERE, departs);
        let flow = self.flows.get(record.connection() as usize).copied();
        let met = u64::from(record.met[TRANSMISSION]) + takes;
        if met < u64::from(LONG) && record.takes != LONG {
            (record.takes, record.met[TRANSMISSION]) = (takes as u32, met as u32);
        } else {
            self.take(packet, begins, departs);
            self.meet(packet, TRANSMISSION, takes, chains);
        }
        flow
    }

    /// It begins and departs at other times than was said.
    pub fn retime(&mut self, packet: u32, begins: u64, departs: u64, chains: &mut Chains) {
        let before = self.takes(packet);
        self.take(packet, begins, departs);
        self.change(packet, TRANSMISSION, before, departs - begins, chains);
    }

    #[inline]
    fn take(&mut self, packet: u32, begins: u64, departs: u64) {
        let takes = departs - begins;
        let record = &mut self.all[packet as usize];
        record.departs = departs;
        let fits = u32::try_from(takes).unwrap_or(LONG);
        if std::mem::replace(&mut record.takes, fits) == LONG {
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

    /// What has led to a packet, and what it has met, is what another has.
    #[inline]
    pub fn go_on_from(&mut self, packet: u32, other: u32) {
        let Record { chain, met, .. } = self[other];
        let record = &mut self[packet];
        (record.chain, record.met) = (chain, met);
    }

    /// When its first bit leaves.
    #[inline]
    pub fn begins(&self, packet: u32) -> u64 {
        self[packet].departs - self.takes(packet)
    }

    /// The flow of a packet; of one that nobody asks after, none.
    #[inline]
    pub fn flow(&self, record: &Record) -> u32 {
        self.flows.get(record.connection() as usize).copied().unwrap_or(u32::MAX)
    }

    /// Its flow, and its connection.
    pub fn whose(&self, packet: u32) -> (u32, u32) {
        let record = &self[packet];
        (self.flow(record), record.connection())
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

    const FIRST: ConnectionId = ConnectionId(0);

    #[test]
    fn a_record_fills_one_cache_line() {
        assert_eq!(std::mem::size_of::<Record>(), 64);
    }

    #[test]
    fn places_are_used_again() {
        let mut packets = Packets::default();
        packets.open(FIRST, 7);
        let [first, second] = [packets.admit(), packets.admit()];
        packets.tell(first, 0, FIRST, true);
        assert_eq!((packets.whose(first), packets[first].is_again()), ((7, 0), true));
        packets.forget(first);
        assert_eq!((packets.admit(), packets.whose(first).0), (first, u32::MAX));
        assert_ne!(first, second);
    }

    /// Four milliseconds fit into a record, and four seconds do not.
    #[test]
    fn what_does_not_fit_is_counted_all_the_same() {
        let (mut packets, mut chains) = (Packets::default(), Chains::default());
        packets.open(FIRST, 7);
        let (fits, long) = (u64::from(u32::MAX), 4_000_000_000_000);
        let [first, second, third] = [(); 3].map(|()| {
            let packet = packets.admit();
            packets.tell(packet, chains.begin(0, 7).chain, FIRST, false);
            packets.ride(packet, 0, 10, 11, &mut chains);
            packets.meet(packet, OTHERS + 1, fits, &mut chains);
            packet
        });
        packets.meet(first, OTHERS + 1, 1, &mut chains);
        packets.ride(first, 0, 20, 20 + long, &mut chains);
        assert_eq!((packets.takes(first), packets.begins(first)), (long, 20));
        chains.share(packets[first].chain);
        packets.go_on_from(second, first);
        packets.ride(second, 0, 20 + long, 21 + long, &mut chains);
        packets.retime(second, 20, 20 + 2 * long, &mut chains);
        packets.change(second, PROPAGATION, 0, fits + 1, &mut chains);
        packets.retime(first, 20, 27, &mut chains);
        let mut met = |packet, packets: &mut Packets| {
            let mut moment = packets.arrive(packet, 0, &mut chains);
            chains.settle_as_they_are(&mut moment);
            let parts = chains.parts(moment.chain);
            [Part::Transmission, Part::Propagation, Part::Up2Others].map(|part| parts.of(part).0)
        };
        assert_eq!(met(third, &mut packets), [1, 0, fits]);
        assert_eq!(met(first, &mut packets), [1 + 7, 0, fits + 1]);
        assert_eq!(met(second, &mut packets), [1 + 3 * long, fits + 1, fits + 1]);
        assert!(packets.long.is_empty());
    }
}
