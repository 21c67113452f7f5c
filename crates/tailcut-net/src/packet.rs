//! Packets: 24 bytes, copied from link to link.
//!
//! Sequence numbers count segments of one MSS, because flows have a known size
//! and are cut once; captures and logs translate them to bytes. Everything that
//! few packets carry (SACK blocks, timestamps) waits in an [`OptionStore`].

mod flow_key;
mod options;
mod selective_ack;
mod seq_field;

pub use self::flow_key::{FlowKey, SERVICE_PORTS};
use self::options::INLINE;
pub use self::options::{
    Carried, MAX_NUMBER, NO_OPTIONS, OptionStore, Options, SackBlocks, Timestamps, inline_number,
};
pub use self::selective_ack::SelectiveAck;
pub use self::seq_field::SeqField;

/// Port on which every receiving application listens; copy n of a flow goes to the n-th port after
/// it. These and the source ports enter the ECMP hash; they are those of the ns-3 scenarios that
/// runs are held against.
pub const SERVICE_PORT: u16 = 5000;
/// Source ports of flow n: the (n modulo `SOURCE_PORTS`)-th from here.
pub(crate) const FIRST_SOURCE_PORT: u16 = 1024;
pub(crate) const SOURCE_PORTS: u64 = 60_000;

/// TCP flags and what else a packet says in one bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Synchronise.
    pub const SYN: Flags = Flags(1);
    /// Finish.
    pub const FIN: Flags = Flags(2);
    /// Reset.
    pub const RST: Flags = Flags(4);
    /// The acknowledgement field is valid.
    pub const ACK: Flags = Flags(8);
    /// Travels from the flow's receiver to its sender.
    pub const TO_SENDER: Flags = Flags(16);
    /// Carries payload.
    pub const DATA: Flags = Flags(32);
    /// Has been sent before.
    pub const RETRANSMISSION: Flags = Flags(64);

    /// May be marked instead of dropped (ECT of RFC 3168).
    pub const ECN_CAPABLE: Flags = Flags(128);
    /// Has met congestion (CE of RFC 3168).
    pub const CONGESTION_EXPERIENCED: Flags = Flags(256);
    /// ECN echo (ECE of RFC 3168).
    pub const ECN_ECHO: Flags = Flags(512);
    /// Congestion window reduced (CWR of RFC 3168).
    pub const WINDOW_REDUCED: Flags = Flags(1024);
    /// Carries one byte that the receiver has or could not use, to draw an acknowledgement.
    pub const PROBE: Flags = Flags(2048);
    /// Towards the sender: the receiver asks for more (NDP).
    pub const PULL: Flags = Flags::PROBE;
    /// Towards the sender: the payload of a segment was cut on its way (NDP, Ultra Ethernet).
    pub const TRIMMED: Flags = Flags::ECN_ECHO;
    /// Towards the receiver: the sender asks for an acknowledgement at once (Ultra Ethernet).
    pub const ACK_REQUEST: Flags = Flags::PROBE;
    /// On a trimmed header: the packet had been marked before it was trimmed.
    pub const MARKED_BEFORE: Flags = Flags::ECN_ECHO;
    /// On a trimmed header: the packet was trimmed on the link to its receiver.
    pub const LAST_HOP: Flags = Flags::WINDOW_REDUCED;

    /// Towards the sender: all has arrived, and by no other copy of the flow before. It is no part
    /// of a header: captures leave it out.
    pub const FIRST_COPY: Flags = Flags::WINDOW_REDUCED;

    /// Belongs to a large flow, as its host knows.
    pub const LARGE_FLOW: Flags = Flags(1 << 12);
    /// Travels under another source port than its connection's (TinyFlow's five-tuple rewriting).
    pub const REWRITTEN: Flags = Flags(1 << 13);
    /// Belongs to a flow that has lost paths to a failure (Selective RED).
    pub const LOST_PATHS: Flags = Flags(1 << 14);
    /// Will fail its checksum at the far end of the link that it is on.
    pub const CORRUPTED: Flags = Flags(1 << 15);

    /// Returns the flags of a data packet that has lost its payload on the way; queues mark no
    /// packet that never had one.
    #[inline]
    pub const fn is_trimmed(self) -> bool {
        let of_these = Flags::DATA.0 | Flags::TO_SENDER.0 | Flags::CONGESTION_EXPERIENCED.0;
        self.0 & of_these == Flags::CONGESTION_EXPERIENCED.0
    }
    /// Flags of a header that goes back to the sender of its packet: no acknowledgement is marked.
    #[inline]
    pub const fn is_returned(self) -> bool {
        let of_these = Flags::DATA.0 | Flags::TO_SENDER.0 | Flags::CONGESTION_EXPERIENCED.0;
        self.0 & of_these == Flags::TO_SENDER.0 | Flags::CONGESTION_EXPERIENCED.0
    }
    /// Returns the flags of a trimmed header.
    #[inline]
    pub const fn in_header(self) -> Flags {
        match self.has(Flags::TO_SENDER) {
            true => Flags(self.0 & !Flags::FIRST_COPY.0),
            false => self,
        }
    }
    /// True when every bit of `other` is set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// A connection, by its place in the table of whoever sends its packets. The fabric hands it on,
/// and at most asks whether two packets have the same.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// The connection at this place.
    #[inline]
    pub const fn at(place: usize) -> ConnectionId {
        ConnectionId(place as u32)
    }
    /// Returns the index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet under way, by its place among all that are, to whoever follows packets; the place is
/// another's when it is no more.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

impl PacketId {
    /// Returns the index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Addresses and ports.
    pub key: FlowKey,
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Towards the receiver: index of the segment (the SYN and bare ACKs carry 0).
    /// Towards the sender: index of the next segment expected. In the fabric of a traced run: the
    /// packet's ticket.
    pub seq: SeqField,
    /// Entry of the [`OptionStore`], a number by itself ([`inline_number`]), or [`NO_OPTIONS`].
    pub options: u32,
    /// Size on the wire, framing included.
    pub wire_bytes: u16,
    /// Flags.
    pub flags: Flags,
}

impl Packet {
    /// Returns the packet without its payload, `wire_bytes` long, as a trimming queue forwards it:
    /// marked as having met congestion. `last_hop`: it is trimmed on the link to its receiver.
    #[inline]
    pub fn trimmed(self, wire_bytes: u16, last_hop: bool) -> Packet {
        let also = |condition, flag: Flags| if condition { flag } else { Flags(0) };
        let flags = Flags(self.flags.0 & !Flags::DATA.0)
            | Flags::CONGESTION_EXPERIENCED
            | also(self.flags.has(Flags::CONGESTION_EXPERIENCED), Flags::MARKED_BEFORE)
            | also(last_hop, Flags::LAST_HOP);
        Packet { flags, wire_bytes: wire_bytes.min(self.wire_bytes), ..self }
    }

    /// Whether it has lost its payload on the way: no queue marks what never had one.
    #[inline]
    pub const fn is_trimmed(&self) -> bool {
        self.flags.is_trimmed()
    }

    /// Turns the header of a trimmed packet around, with its addresses exchanged.
    #[inline]
    pub fn returned(self) -> Packet {
        let flags = Flags(self.flags.0 & !Flags::LAST_HOP.0) | Flags::TO_SENDER;
        Packet { key: self.key.reversed(), flags, ..self }
    }

    /// Whether it is a header on its way back to the sender of its packet.
    #[inline]
    pub const fn is_returned(&self) -> bool {
        self.flags.is_returned()
    }

    /// The header as it was before it was turned around.
    #[inline]
    pub fn before_return(self) -> Packet {
        let flags = Flags(self.flags.0 & !Flags::TO_SENDER.0);
        Packet { key: self.key.reversed(), flags, ..self }
    }

    /// The number that it carries by itself, if it carries one.
    #[inline]
    pub const fn number(&self) -> Option<u32> {
        match self.options {
            NO_OPTIONS => None,
            inline @ INLINE.. => Some(inline - INLINE),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;

    #[test]
    fn a_packet_stays_small() {
        assert_eq!(std::mem::size_of::<Packet>(), 24);
    }

    #[test]
    fn a_ticket_and_the_same_number_are_different_fields() {
        let ticket = SeqField::of_ticket(PacketId(9));
        assert_eq!((ticket.ticket(), SeqField::new(9).number()), (PacketId(9), 9));
        assert_ne!(ticket, SeqField::new(9));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the packet carries a ticket")]
    fn a_ticket_is_not_read_as_a_number() {
        SeqField::of_ticket(PacketId(9)).number();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the packet carries no ticket")]
    fn a_number_is_not_read_as_a_ticket() {
        SeqField::new(9).ticket();
    }

    #[test]
    fn in_header_drops_the_first_copy_flag() {
        let ack = Flags::ACK | Flags::TO_SENDER;
        assert_eq!((ack | Flags::FIRST_COPY).in_header(), ack);
        let data = Flags::DATA | Flags::WINDOW_REDUCED;
        assert_eq!(data.in_header(), data);
    }

    #[test]
    fn a_header_goes_back_to_where_its_packet_came_from() {
        let key = FlowKey::new(HostId(3), HostId(70), 1024, 5000);
        let (options, flags) = (NO_OPTIONS, Flags::DATA | Flags::ACK);
        let data = Packet {
            key,
            connection: ConnectionId(0),
            seq: SeqField::new(9),
            options,
            wire_bytes: 1_538,
            flags,
        };
        let header = data.trimmed(84, false);
        let back = header.returned();
        assert_eq!([data, header, back].map(|p| p.is_trimmed()), [false, true, false]);
        assert_eq!([data, header, back].map(|p| p.is_returned()), [false, false, true]);
        assert_eq!((back.key.dst(), back.seq.number(), back.wire_bytes), (HostId(3), 9, 84));
        assert_eq!(back.before_return(), header);
    }

    #[test]
    fn a_number_needs_no_entry_until_something_else_does() {
        let mut store = OptionStore::default();
        let alone = store.set_number(NO_OPTIONS, 7);
        assert_eq!(
            (store.live(), store.number(alone), store.number(NO_OPTIONS)),
            (0, Some(7), None)
        );
        let stamped = store.stamp(alone, Timestamps { value: 1, echo: 2 });
        assert_eq!((store.live(), store.number(stamped)), (1, Some(7)));
        assert_eq!(store.get(stamped).timestamps.echo, 2);
        store.release(stamped);
        store.release(alone);
        assert_eq!(store.live(), 0);
    }

    #[test]
    fn options_are_recycled() {
        let mut store = OptionStore::default();
        let mut blocks = SackBlocks::default();
        blocks.push(3, 5);
        let first = store.insert(blocks);
        assert_eq!(store.get(first).blocks.as_slice(), [(3, 5)]);
        store.release(first);
        assert_eq!(store.insert(blocks), first);
        assert!(store.get(NO_OPTIONS).blocks.is_empty());
    }
}
