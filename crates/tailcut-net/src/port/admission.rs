//! Admission: what a port knows of its backlog, and the slow path of a packet offered to it.

use tailcut_engine::Time;

use super::{FULL_PACKET, Port};
use crate::amount::{Amount, Limit};
use crate::packet::{Flags, Packet};
use crate::queue::{Arrival, Verdict};
use crate::trace::trace;

/// The outcome of the slow path of admission.
pub(super) enum Admission {
    Accepted,
    Full,
    Dead,
}

impl Port {
    /// Decides exactly, marks the packet where the discipline says so, and keeps
    /// the record of the longest queue.
    #[cold]
    pub(super) fn admit(&mut self, now: u64, packet: &mut Packet) -> Admission {
        if self.cold.faults.as_mut().is_some_and(|faults| faults.swallow()) {
            trace!("lost: the link is down");
            return Admission::Dead;
        }
        if let Some(limit) = self.cold.limit_alone() {
            return self.admit_by_length(now, packet.wire_bytes, limit);
        }
        let (arrival, full) = self.arrival(now, packet);
        let Arrival { busy, waiting, .. } = arrival;
        if busy && (full || self.finds_full_first(now, waiting, packet.wire_bytes)) {
            self.cold.discipline.on_overflow(&arrival);
            self.trace_refusal(waiting, full);
            return Admission::Full;
        }
        match self.cold.discipline.admit(&arrival) {
            Verdict::Accept => {}
            Verdict::Mark => {
                trace!("marked: {waiting} packets wait");
                packet.flags = packet.flags | Flags::CONGESTION_EXPERIENCED;
            }
            Verdict::Drop => {
                trace!(
                    "refused early: {waiting} packets wait, and the limit is {}",
                    self.cold.limit
                );
                return Admission::Full;
            }
        }
        if self.cold.faults.as_mut().is_some_and(|faults| faults.corrupt()) {
            trace!("corrupted on the link");
            packet.flags = packet.flags | Flags::CORRUPTED;
        }
        if busy && waiting >= self.cold.max_queue {
            self.cold.max_queue = waiting + 1;
            self.update_fast_path_limit();
        }
        if let Some(jitter) = &mut self.cold.jitter {
            self.busy_until = self.busy_until.max(now + jitter.stream.below(jitter.below));
        }
        Admission::Accepted
    }

    /// Decides as [`Port::admit`] does, where only the limit and the number of packets that wait
    /// matter.
    pub(super) fn admit_by_length(&mut self, now: u64, wire_bytes: u16, limit: u32) -> Admission {
        if self.busy_until <= now {
            return Admission::Accepted;
        }
        let waiting = self.waiting(now);
        if waiting >= limit || self.finds_full_first(now, waiting, wire_bytes) {
            self.trace_refusal(waiting, waiting >= limit);
            return Admission::Full;
        }
        if waiting >= self.cold.max_queue {
            self.cold.max_queue = waiting + 1;
            self.update_fast_path_limit();
        }
        Admission::Accepted
    }

    /// Prints why there is no room: the queue is full, or was until this instant.
    fn trace_refusal(&self, waiting: u32, full: bool) {
        let limit = self.cold.limit;
        match full {
            true => trace!("refused: {waiting} packets wait, and the limit is {limit}"),
            false => trace!(
                "refused: {waiting} packets wait, another begins to leave, and the limit is {limit}"
            ),
        }
    }

    /// A packet as the discipline sees it, and whether it exceeds the limit if it has to wait.
    pub(super) fn arrival(&mut self, now: u64, packet: &Packet) -> (Arrival, bool) {
        let busy = self.busy_until > now;
        let waiting = if busy { self.waiting(now) } else { 0 };
        let marked = packet.flags.has(Flags::LOST_PATHS);
        let counts_marked = self.cold.discipline.counts_marked(marked);
        let counts_bytes = counts_marked || self.cold.discipline.counts_bytes();
        let waiting_bytes = match self.cold.limit {
            Limit::AtMost(Amount::Bytes(_)) => self.waiting_bytes(waiting),
            _ if counts_bytes => self.waiting_bytes(waiting),
            _ => 0,
        };
        let (marked_waiting, marked_bytes) =
            if counts_marked { self.marked(waiting) } else { (0, 0) };
        let full = match self.cold.limit {
            Limit::Unlimited => false,
            Limit::AtMost(Amount::Packets(limit)) => waiting >= limit,
            Limit::AtMost(Amount::Bytes(limit)) => {
                waiting_bytes + u64::from(packet.wire_bytes) > limit
            }
        };
        let idle = now.saturating_sub(self.busy_until);
        let arrival = Arrival {
            now,
            leaves: self.busy_until.max(now) + self.transmission(packet.wire_bytes),
            busy,
            wire_bytes: packet.wire_bytes,
            marked,
            marked_waiting,
            marked_bytes,
            full_packet: self.transmission(FULL_PACKET),
            waiting,
            waiting_bytes,
            ecn_capable: packet.flags.has(Flags::ECN_CAPABLE),
            idle_packets: idle / self.transmission(FULL_PACKET),
        };
        (arrival, full)
    }

    /// Packets waiting behind the one in service.
    pub fn queue(&mut self, now: Time) -> u32 {
        self.waiting(now.0)
    }

    /// The same, and their bytes.
    pub fn backlog(&mut self, now: Time) -> (u32, u64) {
        let waiting = self.waiting(now.0);
        (waiting, self.waiting_bytes(waiting))
    }

    /// Packets whose transmission begins after `now`.
    pub(super) fn waiting(&mut self, now: u64) -> u32 {
        let taken = self.packets.wrapping_sub(self.held);
        // How far beyond the first entry the last count got.
        let mut known = self.cold.started.wrapping_sub(taken);
        if known > self.held {
            known = 0;
        }
        while known < self.held {
            let entry = self.entry(known);
            let service = self.transmission(entry.packet.wire_bytes);
            if entry.arrival > now + self.propagation + service {
                break;
            }
            known += 1;
        }
        self.cold.started = taken.wrapping_add(known);
        self.held - known
    }

    /// Bytes of the last `waiting` packets.
    pub(super) fn waiting_bytes(&self, waiting: u32) -> u64 {
        (self.held - waiting..self.held).map(|i| u64::from(self.entry(i).packet.wire_bytes)).sum()
    }

    /// Returns how many of the last `waiting` packets are marked, and their bytes.
    pub(super) fn marked(&self, waiting: u32) -> (u32, u64) {
        let last = (self.held - waiting..self.held).map(|i| &self.entry(i).packet);
        last.filter(|packet| packet.flags.has(Flags::LOST_PATHS))
            .fold((0, 0), |(n, bytes), packet| (n + 1, bytes + u64::from(packet.wire_bytes)))
    }
}
