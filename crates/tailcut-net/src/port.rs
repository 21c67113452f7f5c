//! An egress port and the wire behind it: one event per packet and hop.
//!
//! Where the queue's order is fixed on arrival, the departure of a packet is
//! known when it arrives: the port computes it at once and needs no dequeue
//! event. Packets waiting, in service and on the wire lie in one ring in order
//! of arrival at the far end, so that a port has one pending event whatever its
//! backlog. A packet counts as in service from the instant its transmission
//! starts. Whether a packet that arrives at that very instant finds it in service
//! matters where the queue is full, and is decided there (the module `ties`).

mod admission;
mod clocking;
mod faults;
mod ties;

use tailcut_engine::{RandomStream, Rate, Time};

use self::admission::Admission;
pub use self::clocking::SerializationRate;
use self::faults::Faults;
pub(crate) use self::faults::Retiming;
use crate::amount::{Amount, Limit};
use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};
use crate::queue::{Discipline, Order, Plain};
use crate::topology::NodeId;

/// Two to a cache line, of which neither reaches into the next one.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Entry {
    /// The arrival of the last bit at the far end, in picoseconds.
    arrival: u64,
    packet: Packet,
}

/// The outcome of a packet offered to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortOutcome {
    /// Accepted, and the first in the ring: the port's event is due at this time.
    First(Time),
    /// Accepted behind others.
    Behind,
    /// The queue was full.
    Dropped,
    /// The link is down.
    Lost,
}

/// Counters of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Packets accepted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets queued or on the wire as the link went down, offered while it was down, or arrived
    /// corrupted.
    pub lost: u64,
    /// Most packets ever waiting.
    pub max_queue: u32,
}

/// A directed link: queue, transmitter and wire.
///
/// What every packet touches fills one cache line; the rest lies in the next.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Port {
    /// The time at which the transmitter falls idle.
    busy_until: u64,
    /// Packets waiting, in service and on the wire: `held` entries from `head`, going round. Empty
    /// before the first packet: most ports of a large network may never have one.
    ring: Box<[Entry]>,
    propagation: u64,
    /// Bytes of all accepted packets.
    bytes: u64,
    head: u32,
    held: u32,
    /// Accepted packets, modulo 2^32; `Cold::wraps` counts how often that overflowed.
    packets: u32,
    /// Picoseconds per byte, as in [`SerializationRate`]; 0 if that is not a whole number.
    ps_per_byte: u32,
    /// From so many packets in the ring on, an arrival is looked at closely.
    fast_path_limit: u32,
    far_end: NodeId,
    cold: Cold,
}

/// Fields that few packets touch.
#[derive(Debug, Clone)]
struct Cold {
    clocking: SerializationRate,
    limit: Limit,
    discipline: Discipline,
    order: Order,
    drops: u64,
    max_queue: u32,
    wraps: u32,
    /// Number (as in `packets`) of the first packet not known to be in service.
    started: u32,
    /// The link's faults; `None` on most links.
    faults: Option<Box<Faults>>,
    /// The random delays of packets before they are sent, if any.
    jitter: Option<Box<Jitter>>,
}

impl Cold {
    /// Returns the limit of a queue in packets, if nothing else decides what is accepted and when
    /// it leaves.
    #[inline]
    fn limit_alone(&self) -> Option<u32> {
        let alone = matches!(self.discipline, Discipline::Plain(_))
            && self.faults.is_none()
            && self.jitter.is_none();
        match self.limit {
            Limit::AtMost(Amount::Packets(limit)) if alone => Some(limit),
            _ => None,
        }
    }
}

/// Even draws below a time.
#[derive(Debug, Clone)]
struct Jitter {
    below: u64,
    stream: RandomStream,
}

/// A full Ethernet frame with preamble and gap: what an idle RED queue counts its idleness in.
pub(crate) const FULL_PACKET: u16 = 1538;

const BLANK: Entry = Entry {
    arrival: 0,
    packet: Packet {
        key: FlowKey(0),
        connection: ConnectionId(0),
        seq: SeqField::new(0),
        options: NO_OPTIONS,
        wire_bytes: 0,
        flags: Flags(0),
    },
};

impl Port {
    /// An idle drop-tail port, where departures go before arrivals of the same instant.
    pub fn new(rate: Rate, propagation: Time, limit: Limit) -> Port {
        Port::with_discipline(rate, propagation, limit, Discipline::Plain(Plain))
    }

    /// An idle port, where departures go before arrivals of the same instant.
    pub(crate) fn with_discipline(
        rate: Rate,
        propagation: Time,
        limit: Limit,
        discipline: Discipline,
    ) -> Port {
        let clocking = SerializationRate::new(rate);
        let cold = Cold {
            clocking,
            limit,
            discipline,
            order: Order::Departure,
            drops: 0,
            max_queue: 0,
            wraps: 0,
            started: 0,
            faults: None,
            jitter: None,
        };
        let mut port = Port {
            busy_until: 0,
            ring: Box::default(),
            propagation: propagation.0,
            bytes: 0,
            head: 0,
            held: 0,
            packets: 0,
            ps_per_byte: u32::try_from(clocking.ps_per_byte).unwrap_or(0),
            fast_path_limit: 0,
            far_end: NodeId(0),
            cold,
        };
        port.update_fast_path_limit();
        port
    }

    /// Returns the port with `far_end` as its far end.
    pub(crate) fn leading_to(self, far_end: NodeId) -> Port {
        Port { far_end, ..self }
    }

    /// Each packet begins so much later at most than it could, drawn from `stream`.
    pub(crate) fn hold_back(&mut self, at_most: Time, stream: RandomStream) {
        self.cold.jitter = Some(Box::new(Jitter { below: at_most.0, stream }));
        self.update_fast_path_limit();
    }

    /// The node that it leads to.
    #[inline]
    pub(crate) fn far_end(&self) -> NodeId {
        self.far_end
    }

    /// The ring holds more than what waits, so most packets need no exact count.
    fn update_fast_path_limit(&mut self) {
        let limit = match self.cold.limit {
            Limit::Unlimited => u32::MAX,
            Limit::AtMost(Amount::Packets(n)) => n,
            Limit::AtMost(Amount::Bytes(_)) => 0,
        };
        let from = limit.min(self.cold.max_queue);
        let troubled = self.cold.jitter.is_some()
            || self.cold.faults.as_ref().is_some_and(|faults| faults.matter());
        self.fast_path_limit = match self.cold.discipline.active_from_backlog() {
            Some(acts) if !troubled => from.min(acts).saturating_add(1),
            _ => 0,
        };
    }

    #[inline]
    fn transmission(&self, bytes: u16) -> u64 {
        if self.ps_per_byte != 0 {
            u64::from(bytes) * u64::from(self.ps_per_byte)
        } else {
            self.cold.clocking.transmission(bytes)
        }
    }

    /// Offers a packet at `now`.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, mut packet: Packet) -> PortOutcome {
        let now = now.0;
        if self.held >= self.fast_path_limit {
            match self.admit(now, &mut packet) {
                Admission::Accepted => {}
                Admission::Full => {
                    self.cold.drops += 1;
                    return PortOutcome::Dropped;
                }
                Admission::Dead => return PortOutcome::Lost,
            }
        }
        let start = self.busy_until.max(now);
        // Behind millions of packets on the slowest link it is after the end of any run.
        self.busy_until = start.saturating_add(self.transmission(packet.wire_bytes));
        let arrival = self.busy_until.saturating_add(self.propagation);
        if self.held as usize == self.ring.len() {
            self.grow();
        }
        let at = (self.head + self.held) as usize & (self.ring.len() - 1);
        self.ring[at] = Entry { arrival, packet };
        self.held += 1;
        self.bytes += u64::from(packet.wire_bytes);
        self.packets = self.packets.wrapping_add(1);
        if self.packets == 0 {
            self.cold.wraps += 1;
        }
        if self.held == 1 { PortOutcome::First(Time(arrival)) } else { PortOutcome::Behind }
    }

    /// Takes the packet that has reached the far end, and says when the next one will.
    #[inline]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        debug_assert!(self.held > 0, "the port's event was due");
        let mask = self.ring.len() - 1;
        let packet = self.ring[self.head as usize & mask].packet;
        self.held -= 1;
        if self.held == 0 {
            // Starting again from the first slot keeps the memory in use small.
            self.head = 0;
            return (packet, None);
        }
        self.head = (self.head + 1) & mask as u32;
        (packet, Some(Time(self.ring[self.head as usize & mask].arrival)))
    }

    /// Forgets the packets that have reached the far end by `now`, where somebody else has taken
    /// them.
    pub(crate) fn forget_arrived(&mut self, now: Time) {
        while self.held > 0 && self.entry(0).arrival <= now.0 {
            self.take();
        }
    }

    /// Puts a packet on the link that arrives at `at`, not before those that are on it: its queue
    /// and transmitter are somewhere else. Returns whether it is the first one there.
    pub(crate) fn receive(&mut self, at: Time, packet: Packet) -> bool {
        if self.held as usize == self.ring.len() {
            self.grow();
        }
        let place = (self.head + self.held) as usize & (self.ring.len() - 1);
        self.ring[place] = Entry { arrival: at.0, packet };
        self.held += 1;
        self.held == 1
    }

    /// Asks for the packet that [`Port::take`] will return.
    #[inline]
    pub fn fetch_first(&self) {
        if let Some(first) = self.ring.get(self.head as usize) {
            tailcut_engine::prefetch(first);
        }
    }

    /// Returns that packet; meaningless if the port holds none.
    #[inline]
    pub fn next(&self) -> &Packet {
        &self.entry(0).packet
    }

    #[inline]
    fn entry(&self, index: u32) -> &Entry {
        &self.ring[(self.head + index) as usize & (self.ring.len() - 1)]
    }

    /// The packet accepted last, as it will leave.
    ///
    /// # Panics
    /// When the port holds none.
    pub fn last(&self) -> &Packet {
        &self.entry(self.held.checked_sub(1).expect("a packet was accepted")).packet
    }

    /// The packets waiting, in service or on the wire, the last to arrive first, and when the last
    /// bit of each leaves, or left.
    #[inline]
    pub fn latest(&self) -> impl Iterator<Item = (&Packet, Time)> {
        let departs = |entry: &Entry| Time(entry.arrival.saturating_sub(self.propagation));
        let entries = (0..self.held).rev().map(|index| self.entry(index));
        entries.map(move |entry| (&entry.packet, departs(entry)))
    }

    /// Returns when the transmitter falls idle if nothing more is offered.
    pub fn busy_until(&self) -> Time {
        Time(self.busy_until)
    }

    /// Packets waiting, in service or on the wire.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The packets waiting, in service or on the wire, the next to arrive first.
    pub fn packets(&self) -> impl Iterator<Item = &Packet> {
        (0..self.held).map(|index| &self.entry(index).packet)
    }

    /// Returns the packets with their departure times, at the current propagation delay.
    pub fn departures(&self) -> Vec<(Packet, Time)> {
        let mut departures: Vec<_> = self.latest().map(|(packet, at)| (*packet, at)).collect();
        departures.reverse();
        departures
    }

    /// Returns how long the transmitter has been busy in `[0, now)`.
    pub fn busy(&self, now: Time) -> Time {
        let (spent, before) =
            self.cold.faults.as_ref().map_or((0, 0), |faults| faults.spent_before());
        let since = self.cold.clocking.rate.transmission_time(self.bytes - before);
        Time(spent + since.0).since(self.busy_until().since(now))
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> PortCounters {
        PortCounters {
            packets: u64::from(self.cold.wraps) << 32 | u64::from(self.packets),
            bytes: self.bytes,
            drops: self.cold.drops,
            lost: self.cold.faults.as_ref().map_or(0, |faults| faults.lost()),
            max_queue: self.cold.max_queue,
        }
    }

    /// A packet is dropped before it is offered: the switch has no memory for it.
    pub fn drop_before_queue(&mut self, now: Time, packet: &Packet) {
        self.cold.drops += 1;
        if self.cold.discipline.active_from_backlog().is_none() {
            let (arrival, _) = self.arrival(now.0, packet);
            self.cold.discipline.on_overflow(&arrival);
        }
    }

    /// Returns the propagation delay.
    pub fn propagation(&self) -> Time {
        Time(self.propagation)
    }

    /// Returns the transmission time of `bytes`.
    pub fn transmission_time(&self, bytes: u16) -> u64 {
        self.transmission(bytes)
    }

    /// Returns when the transmission of each waiting packet begins, and its size.
    pub fn waiting_begins(&mut self, now: Time) -> Vec<(u64, u16)> {
        let waiting = self.waiting(now.0);
        let entries = (self.held - waiting..self.held).map(|index| self.entry(index));
        let bytes = |entry: &Entry| entry.packet.wire_bytes;
        let begins =
            |e: &Entry| e.arrival - self.propagation - self.transmission(e.packet.wire_bytes);
        entries.map(|entry| (begins(entry), bytes(entry))).collect()
    }

    #[cold]
    fn grow(&mut self) {
        let length = (2 * self.ring.len()).max(4);
        let mut ring = Vec::with_capacity(length);
        ring.extend((0..self.held).map(|index| *self.entry(index)));
        ring.resize(length, BLANK);
        self.ring = ring.into_boxed_slice();
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_fields_of_a_port_fill_one_cache_line() {
        assert_eq!(std::mem::offset_of!(Port, cold), 64);
    }
}
