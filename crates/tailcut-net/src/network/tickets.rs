//! Tickets: what a packet under way is known by to an observer who follows packets.
//!
//! A packet carries its ticket in its sequence field ([`SeqField`]), so that a link's own entries
//! say which packet is which. Runs without such an observer have no tickets.

use crate::measure::Observer;
use crate::packet::{Packet, PacketId, SeqField};

/// The packets under way that have tickets.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketIds {
    /// By ticket, the sequence field that the packet's hosts know.
    seqs: Vec<SeqField>,
    free: Vec<PacketId>,
}

impl PacketIds {
    /// The ticket that a packet carries.
    #[inline]
    pub fn of(packet: &Packet) -> PacketId {
        packet.seq.ticket()
    }

    /// Gives a packet a ticket.
    #[inline]
    pub fn issue(&mut self, packet: &mut Packet) -> PacketId {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.seqs.push(SeqField::new(0));
            PacketId(self.seqs.len() as u32 - 1)
        });
        self.seqs[ticket.index()] = std::mem::replace(&mut packet.seq, SeqField::of_ticket(ticket));
        ticket
    }

    /// A packet under way as its hosts know it, with such an observer or another one.
    pub fn as_sent<O: Observer>(&self, packet: &Packet) -> Packet {
        match O::TRACES_PACKETS {
            true => self.without(packet),
            false => *packet,
        }
    }

    /// A packet that is under way no more, as its hosts know it, with such an observer or another
    /// one.
    #[inline(always)]
    pub fn redeemed<O: Observer>(&mut self, mut packet: Packet) -> Packet {
        if O::TRACES_PACKETS {
            self.redeem(&mut packet);
        }
        packet
    }

    /// A packet that keeps its ticket, as its hosts know it.
    fn without(&self, packet: &Packet) -> Packet {
        Packet { seq: self.seqs[PacketIds::of(packet).index()], ..*packet }
    }

    /// A packet is not under way any more: its ticket is free, and it is as its hosts know it.
    #[inline]
    fn redeem(&mut self, packet: &mut Packet) {
        let ticket = PacketIds::of(packet);
        packet.seq = self.seqs[ticket.index()];
        self.free.push(ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Unobserved;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS};

    struct Follower;

    impl Observer for Follower {
        const TRACES_PACKETS: bool = true;
    }

    fn packet(seq: u32) -> Packet {
        let (key, connection, flags) = (FlowKey(7), ConnectionId(3), Flags(0));
        Packet {
            key,
            connection,
            seq: SeqField::new(seq),
            options: NO_OPTIONS,
            wire_bytes: 84,
            flags,
        }
    }

    #[test]
    fn without_a_tracing_observer_packets_are_unchanged() {
        let mut tickets = PacketIds::default();
        assert_eq!(tickets.as_sent::<Unobserved>(&packet(40)), packet(40));
        assert_eq!(tickets.redeemed::<Unobserved>(packet(40)), packet(40));
        let mut followed = packet(41);
        tickets.issue(&mut followed);
        assert_eq!(tickets.as_sent::<Follower>(&followed), packet(41));
        assert_eq!(tickets.redeemed::<Follower>(followed), packet(41));
    }

    #[test]
    fn redeem_restores_the_packet_and_frees_its_ticket() {
        let mut tickets = PacketIds::default();
        let [mut first, mut second] = [packet(40), packet(41)];
        let [a, b] = [&mut first, &mut second].map(|packet| tickets.issue(packet));
        assert_eq!((PacketIds::of(&first), PacketIds::of(&second)), (a, b));
        assert_eq!(tickets.without(&first), packet(40));
        tickets.redeem(&mut first);
        let mut third = packet(42);
        assert_eq!((first, tickets.issue(&mut third)), (packet(40), a));
        assert_eq!([&second, &third].map(|packet| tickets.without(packet).seq.number()), [41, 42]);
    }
}
