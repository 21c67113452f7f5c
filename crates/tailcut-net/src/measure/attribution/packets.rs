//! The packets under way, each with what has led to where it is. A packet's record stays in its place from when its host sends it.

use super::chains::{Chains, Moment, NONE};
use super::parts::Part;

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

/// A packet under way. What every packet touches at every link fills its first cache line. Its chain stays that of what made its host send it,
/// which others may share; what it has met since is noted here until it arrives.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(128))]
pub(super) struct Record {
    /// What has led here; none where nobody wants to know.
    pub chain: u32,
    pub flow: u32,
    pub connection: u32,
    /// The link that has taken it.
    pub link: u32,
    /// The one behind it on that link.
    pub next: u32,
    /// The one before it there in its lane.
    pub before: u32,
    /// It was sent before: what its connection has sent since does not explain why it leaves late.
    pub again: bool,
    /// What the round trip before it was.
    pub settles: Part,
    /// As of [`Moment`], until its first bit leaves.
    pub transmission: u64,
    pub propagation: u64,
    /// When its first bit leaves, and when its last one does.
    pub begins: u64,
    pub departs: u64,
    /// How long it took: transmission and propagation until its sender sent it.
    pub settled: u64,
    /// How long it has waited behind other flows, by the kind of place.
    pub others: [u64; KINDS],
}

impl Record {
    const NEW: Record = Record {
        chain: NONE,
        flow: u32::MAX,
        connection: u32::MAX,
        link: NOWHERE,
        next: NOWHERE,
        before: NOWHERE,
        again: true,
        settles: Part::SlowStart,
        transmission: 0,
        propagation: 0,
        begins: 0,
        departs: 0,
        settled: 0,
        others: [0; KINDS],
    };

    /// Whether somebody wants to know what has led here.
    #[inline]
    pub fn is_told(&self) -> bool {
        self.chain != NONE
    }

    /// How long it takes to transmit it.
    #[inline]
    pub fn takes(&self) -> u64 {
        self.departs - self.begins
    }

    /// Whether both are of one connection.
    #[inline]
    pub fn is_of_connection_of(&self, other: &Record) -> bool {
        (self.flow, self.connection) == (other.flow, other.connection)
    }
}

/// All packets under way; places are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct Packets {
    all: Vec<Record>,
    free: Vec<u32>,
}

impl Packets {
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

    /// A packet is no more: its chain is given back.
    #[inline]
    pub fn forget(&mut self, packet: u32) -> u32 {
        self.free.push(packet);
        let record = &mut self.all[packet as usize];
        record.link = NOWHERE;
        record.chain
    }

    /// A packet has arrived: the moment, whose chain has all that it has met.
    #[inline]
    pub fn arrive(&mut self, packet: u32, now: u64, chains: &mut Chains) -> Moment {
        let mut chain = self.forget(packet);
        let &Record { transmission, propagation, settles, settled, ref others, .. } = &self[packet];
        if chain != NONE && (settled > 0 || *others != [0; KINDS]) {
            let parts = chains.parts_mut(&mut chain);
            parts.add(settles, settled);
            for ([_, part], &time) in WAITING.iter().zip(others) {
                parts.add(*part, time);
            }
        }
        Moment { chain, at: now, transmission, propagation }
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

    #[test]
    fn what_a_link_touches_fills_one_cache_line() {
        assert_eq!(std::mem::offset_of!(Record, settled), 64);
        assert_eq!(std::mem::size_of::<Record>(), 128);
    }

    #[test]
    fn places_are_used_again() {
        let mut packets = Packets::default();
        let [first, second] = [packets.admit(), packets.admit()];
        packets[first].flow = 7;
        packets.forget(first);
        assert_eq!((packets.admit(), packets[first].flow), (first, u32::MAX));
        assert_ne!(first, second);
    }
}
