//! An egress port and the wire behind it: one event per packet and hop.
//!
//! Where the queue's order is fixed on arrival, the departure of a packet is
//! known when it arrives: the port computes it at once and needs no dequeue
//! event. Packets waiting, in service and on the wire lie in one ring in order
//! of arrival at the far end, so that a port has one pending event whatever its
//! backlog. A packet counts as in service from the instant its transmission
//! starts; a packet arriving at that very instant finds it in service.

use tailcut_engine::{Rate, Time};

use crate::amount::{Amount, Limit};
use crate::packet::Packet;

/// Serialisation at a fixed rate, exact to the nearest picosecond.
#[derive(Debug, Clone, Copy)]
pub struct Clocking {
    /// Picoseconds per byte when that is a whole number, else 0.
    ps_per_byte: u64,
    rate: Rate,
}

impl Clocking {
    /// The clocking of a link of this rate.
    pub fn new(rate: Rate) -> Clocking {
        let bit_ps = 8_000_000_000_000;
        let ps_per_byte = if bit_ps % rate.0 == 0 { bit_ps / rate.0 } else { 0 };
        Clocking { ps_per_byte, rate }
    }
    /// How long `bytes` take to transmit.
    #[inline]
    pub fn transmission(self, bytes: u16) -> u64 {
        if self.ps_per_byte != 0 {
            u64::from(bytes) * self.ps_per_byte
        } else {
            self.rate.transmission_time(u64::from(bytes)).0
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When the last bit reaches the far end, in picoseconds.
    arrival: u64,
    packet: Packet,
}

/// What became of a packet offered to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Accepted, and the first in the ring: the port's event is due at this time.
    First(Time),
    /// Accepted behind others.
    Behind,
    /// The queue was full.
    Dropped,
}

/// What a port has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Packets accepted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Most packets ever waiting.
    pub max_queue: u32,
}

/// A directed link: queue, transmitter and wire.
#[derive(Debug, Clone)]
pub struct Port {
    /// When the transmitter falls idle.
    busy_until: u64,
    ring: Vec<Entry>,
    /// Counters of ring positions, wrapping: first entry, first not known to be in service, end.
    head: u32,
    started: u32,
    tail: u32,
    packet_limit: u32,
    byte_limit: u64,
    propagation: u64,
    clocking: Clocking,
    /// Bytes of accepted packets, and of those known to have started.
    bytes: u64,
    started_bytes: u64,
    packets: u64,
    drops: u64,
    max_queue: u32,
}

impl Port {
    /// An idle port.
    pub fn new(rate: Rate, propagation: Time, limit: Limit) -> Port {
        let (packet_limit, byte_limit) = match limit {
            Limit::Unlimited => (u32::MAX, u64::MAX),
            Limit::AtMost(Amount::Packets(n)) => (n, u64::MAX),
            Limit::AtMost(Amount::Bytes(n)) => (u32::MAX, n),
        };
        Port {
            busy_until: 0,
            ring: Vec::new(),
            head: 0,
            started: 0,
            tail: 0,
            packet_limit,
            byte_limit,
            propagation: propagation.0,
            clocking: Clocking::new(rate),
            bytes: 0,
            started_bytes: 0,
            packets: 0,
            drops: 0,
            max_queue: 0,
        }
    }

    /// Offers a packet at `now`.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Offer {
        let now = now.0;
        let held = self.tail.wrapping_sub(self.head);
        let start = self.busy_until.max(now);
        if self.busy_until > now {
            let full = (held > self.packet_limit && self.waiting(now) >= self.packet_limit)
                || (self.byte_limit != u64::MAX
                    && self.waiting_bytes(now) + u64::from(packet.wire_bytes) > self.byte_limit);
            if full {
                self.drops += 1;
                return Offer::Dropped;
            }
            if held > self.max_queue {
                self.max_queue = self.max_queue.max(self.waiting(now) + 1);
            }
        }
        self.busy_until = start + self.clocking.transmission(packet.wire_bytes);
        let arrival = self.busy_until + self.propagation;
        if held as usize == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() as u32 - 1;
        self.ring[(self.tail & mask) as usize] = Entry { arrival, packet };
        self.tail = self.tail.wrapping_add(1);
        self.packets += 1;
        self.bytes += u64::from(packet.wire_bytes);
        if held == 0 {
            Offer::First(Time(arrival))
        } else {
            Offer::Behind
        }
    }

    /// Takes the packet that has reached the far end, and says when the next one will.
    ///
    /// # Panics
    /// If the ring is empty: the port's event must be due.
    #[inline]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        let mask = self.ring.len() as u32 - 1;
        let entry = self.ring[(self.head & mask) as usize];
        if self.started == self.head {
            self.started = self.started.wrapping_add(1);
            self.started_bytes += u64::from(entry.packet.wire_bytes);
        }
        self.head = self.head.wrapping_add(1);
        let next = (self.head != self.tail)
            .then(|| Time(self.ring[(self.head & mask) as usize].arrival));
        (entry.packet, next)
    }

    /// When the transmitter falls idle if nothing more is offered.
    pub fn busy_until(&self) -> Time {
        Time(self.busy_until)
    }

    /// Packets waiting behind the one in service.
    pub fn queue(&mut self, now: Time) -> u32 {
        self.waiting(now.0)
    }

    /// Packets waiting, in service or on the wire.
    pub fn held(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Iterates over the packets waiting, in service or on the wire.
    pub fn packets(&self) -> impl Iterator<Item = &Packet> {
        let mask = (self.ring.len() as u32).wrapping_sub(1);
        (0..self.held()).map(move |i| &self.ring[(self.head.wrapping_add(i) & mask) as usize].packet)
    }

    /// How long the transmitter has been busy in `[0, now)`.
    pub fn busy(&self, now: Time) -> Time {
        let bits_ps = u128::from(self.bytes) * 8_000_000_000_000;
        let total = (bits_ps / u128::from(self.clocking.rate.0)) as u64;
        Time(total.saturating_sub(self.busy_until.saturating_sub(now.0)))
    }

    /// Serialisation time and propagation delay of a packet of this size.
    pub fn delays(&self, bytes: u16) -> (Time, Time) {
        (Time(self.clocking.transmission(bytes)), Time(self.propagation))
    }

    /// What the port has done so far.
    pub fn counters(&self) -> PortCounters {
        PortCounters {
            packets: self.packets,
            bytes: self.bytes,
            drops: self.drops,
            max_queue: self.max_queue,
        }
    }

    fn waiting(&mut self, now: u64) -> u32 {
        self.note_started(now);
        self.tail.wrapping_sub(self.started)
    }

    fn waiting_bytes(&mut self, now: u64) -> u64 {
        self.note_started(now);
        self.bytes - self.started_bytes
    }

    /// Moves `started` past every packet whose transmission began at or before `now`.
    fn note_started(&mut self, now: u64) {
        let mask = (self.ring.len() as u32).wrapping_sub(1);
        while self.started != self.tail {
            let entry = &self.ring[(self.started & mask) as usize];
            let size = entry.packet.wire_bytes;
            if entry.arrival - self.propagation - self.clocking.transmission(size) > now {
                break;
            }
            self.started = self.started.wrapping_add(1);
            self.started_bytes += u64::from(size);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.ring.len() as u32;
        let size = (old as usize * 2).max(8);
        let mut ring = Vec::with_capacity(size);
        for i in 0..old {
            ring.push(self.ring[(self.head.wrapping_add(i) & (old - 1)) as usize]);
        }
        let (started, held) = (self.started.wrapping_sub(self.head), old);
        let blank = Entry {
            arrival: 0,
            packet: Packet {
                key: crate::packet::FlowKey(0),
                connection: 0,
                seq: 0,
                options: crate::packet::NO_OPTIONS,
                wire_bytes: 0,
                flags: crate::packet::Flags(0),
            },
        };
        ring.resize(size, blank);
        self.ring = ring;
        (self.head, self.started, self.tail) = (0, started, held);
    }
}
