//! Arrivals at a full queue at the very instant at which a transmission ends
//! ([`Ties`](crate::queue::Ties)).

use tailcut_engine::Time;

use super::Port;
use crate::amount::{Amount, Limit};
use crate::queue::Order;

impl Port {
    /// Returns the port with this order of what happens at one instant.
    pub(crate) fn in_order(mut self, order: Order) -> Port {
        self.cold.order = order;
        self
    }

    /// The event that brings the next packet was scheduled at `at`; matters where ns-3's order is
    /// imitated.
    pub(crate) fn note_schedule(&mut self, at: u64) {
        if let Order::Scheduled(arrival) = &mut self.cold.order {
            *arrival = at;
        }
    }

    /// Whether a packet for which there is room finds none after all: it would be full but for a
    /// packet that begins to be transmitted at this very instant, and the arrival goes first.
    #[inline]
    pub(super) fn finds_full_first(&mut self, now: u64, waiting: u32, bytes: u16) -> bool {
        match self.cold.limit {
            Limit::Unlimited => false,
            Limit::AtMost(Amount::Packets(limit)) if waiting + 1 < limit => false,
            Limit::AtMost(_) => self.goes_before_departure(now, waiting, bytes),
        }
    }

    #[inline(never)]
    fn goes_before_departure(&mut self, now: u64, waiting: u32, wire_bytes: u16) -> bool {
        if matches!(self.cold.order, Order::Departure) {
            return false;
        }
        let begun = self.held - waiting;
        let Some(first) = begun.checked_sub(1).map(|at| *self.entry(at)) else { return false };
        let bytes = first.packet.wire_bytes;
        if first.arrival != now + self.propagation + self.transmission(bytes) {
            return false;
        }
        if let Limit::AtMost(Amount::Bytes(limit)) = self.cold.limit {
            let others = self.waiting_bytes(waiting);
            if others + u64::from(bytes) + u64::from(wire_bytes) <= limit {
                return false;
            }
        }
        // The packet has waited only if another transmission ends now; on a wire without delay that
        // packet has arrived.
        let began = match begun.checked_sub(2).map(|at| *self.entry(at)) {
            Some(before) if before.arrival == now + self.propagation => {
                now - self.transmission(before.packet.wire_bytes).min(now)
            }
            None if self.propagation == 0 => now,
            _ => return false,
        };
        self.cold.order.arrival_goes_first(began)
    }

    /// Whether an arrival goes before the transmission that ends now, of the packet accepted last.
    pub(crate) fn arrival_goes_first(&mut self, now: Time) -> bool {
        let last = self.held.checked_sub(1).map(|at| self.entry(at).packet.wire_bytes);
        let began = last.map_or(now.0, |bytes| now.0.saturating_sub(self.transmission(bytes)));
        self.cold.order.arrival_goes_first(began)
    }
}

#[cfg(test)]
mod tests {
    use tailcut_engine::{RandomStream, Rate, Time};

    use super::super::PortOutcome;
    use super::*;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};

    const NS: u64 = 1_000;
    /// A full segment takes 12,016 ns at 1 Gbps, an ACK 336.
    const DATA: u16 = 1_502;
    const ACK: u16 = 42;
    const WIRE: u64 = 2_667 * NS;

    fn packet(wire_bytes: u16) -> Packet {
        let (key, connection) = (FlowKey(0), ConnectionId(0));
        Packet {
            key,
            connection,
            seq: SeqField::new(0),
            options: NO_OPTIONS,
            wire_bytes,
            flags: Flags::DATA,
        }
    }

    fn port(limit: Limit, order: Order) -> Port {
        Port::new(Rate(1_000_000_000), Time(WIRE), limit).in_order(order)
    }

    /// Returns the outcome of a packet of this size that arrives as the first transmission ends,
    /// while one segment is sent from 1 ms on and another waits.
    fn meets_the_end(order: Order, wire_bytes: u16) -> PortOutcome {
        let (mut port, from) = (port(Limit::AtMost(Amount::Packets(1)), order), 1_000_000 * NS);
        port.offer(Time(from), packet(DATA));
        port.offer(Time(from + 5_000 * NS), packet(DATA));
        let (now, took) = (from + 12_016 * NS, u64::from(wire_bytes) * 8 * NS);
        port.note_schedule(now - WIRE - took);
        port.offer(Time(now), packet(wire_bytes))
    }

    #[test]
    fn a_departure_that_goes_first_makes_room() {
        assert_eq!(meets_the_end(Order::Departure, DATA), PortOutcome::Behind);
    }

    #[test]
    fn an_arrival_that_goes_first_finds_the_queue_full() {
        assert_eq!(meets_the_end(Order::Arrival, DATA), PortOutcome::Dropped);
        assert_eq!(meets_the_end(Order::Arrival, ACK), PortOutcome::Dropped);
    }

    #[test]
    fn an_arrival_is_scheduled_before_the_end_of_a_packet_of_its_size_and_an_ack_after_it() {
        assert_eq!(meets_the_end(Order::Scheduled(0), DATA), PortOutcome::Dropped);
        assert_eq!(meets_the_end(Order::Scheduled(0), ACK), PortOutcome::Behind);
    }

    #[test]
    fn a_coin_favours_nobody() {
        let tossed = |port| meets_the_end(Order::Coin(RandomStream::new(7, port, "ties")), DATA);
        let dropped = (0..1_000).filter(|&port| tossed(port) == PortOutcome::Dropped).count();
        // Four standard deviations of 1,000 tosses.
        assert!(dropped.abs_diff(500) < 64, "{dropped}");
    }

    #[test]
    fn limits_in_bytes_have_the_same_order() {
        let bytes = Limit::AtMost(Amount::Bytes(u64::from(DATA)));
        let meets = |order| {
            let mut port = port(bytes, order);
            port.offer(Time(0), packet(DATA));
            port.offer(Time(5_000 * NS), packet(DATA));
            port.offer(Time(12_016 * NS), packet(DATA))
        };
        let [departure, arrival] = [Order::Departure, Order::Arrival].map(meets);
        assert_eq!((departure, arrival), (PortOutcome::Behind, PortOutcome::Dropped));
    }

    /// The first of three packets of one instant finds the port idle and begins at once: no
    /// transmission ends then.
    #[test]
    fn a_packet_that_finds_the_port_idle_has_not_waited() {
        let mut port = port(Limit::AtMost(Amount::Packets(1)), Order::Arrival);
        let offers = [0; 3].map(|_| port.offer(Time(NS), packet(DATA)));
        assert!(
            matches!(offers, [PortOutcome::First(_), PortOutcome::Behind, PortOutcome::Dropped]),
            "{offers:?}"
        );
    }

    /// A picosecond before the end of the transmission the queue is full whatever the order, and
    /// after it there is room.
    #[test]
    fn other_instants_have_no_order() {
        for order in [Order::Departure, Order::Arrival] {
            let mut port = port(Limit::AtMost(Amount::Packets(1)), order);
            port.offer(Time(0), packet(DATA));
            port.offer(Time(5_000 * NS), packet(DATA));
            let end = 12_016 * NS;
            assert_eq!(port.offer(Time(end - 1), packet(DATA)), PortOutcome::Dropped);
            assert_eq!(port.offer(Time(end + 1), packet(DATA)), PortOutcome::Behind);
        }
    }
}
