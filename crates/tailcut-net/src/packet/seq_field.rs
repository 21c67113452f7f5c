//! The sequence field of a packet: a number on the wire, or a ticket for observers.

use super::PacketId;

/// The sequence field of a packet: the number that its sender wrote, or the packet's ticket.
///
/// A packet carries a ticket only in runs whose observer traces packets, and only between its two
/// hosts. Hosts read [`SeqField::number`] and tracing observers [`SeqField::ticket`]; the fabric
/// reads neither and may only compare two fields. The top bit marks tickets: numbers of segments
/// stay below it ([`super::MAX_NUMBER`]), so that debug builds catch whoever reads one as the other.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqField(u32);

impl SeqField {
    const TICKET: u32 = 1 << 31;

    /// The field of a packet with this number.
    #[inline]
    pub const fn new(number: u32) -> SeqField {
        SeqField(number)
    }
    /// The field of a packet that carries a ticket.
    #[inline]
    pub(crate) const fn of_ticket(ticket: PacketId) -> SeqField {
        SeqField(ticket.0 | SeqField::TICKET)
    }
    /// Returns the number that the sender wrote.
    ///
    /// # Panics
    /// In debug builds, when the packet carries a ticket.
    #[inline]
    pub const fn number(self) -> u32 {
        debug_assert!(self.0 & SeqField::TICKET == 0, "the packet carries a ticket");
        self.0
    }
    /// Returns the packet's ticket.
    ///
    /// # Panics
    /// In debug builds, when the packet carries none.
    #[inline]
    pub(crate) const fn ticket(self) -> PacketId {
        debug_assert!(self.0 & SeqField::TICKET != 0, "the packet carries no ticket");
        PacketId(self.0 & !SeqField::TICKET)
    }
}
