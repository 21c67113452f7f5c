//! What a receiver answers: SYN-ACKs, acknowledgements, FINs and resets.

use tailcut_engine::Time;

use super::{Acknowledge, Receiver};
use crate::packet::{inline_number, Flags, OptionStore, SackBlocks, NO_OPTIONS};
use crate::transport::segment::{DataAck, Segment};
use crate::transport::tcp::options::{stamp, WireSizes};
use crate::transport::tcp::{Close, Recovery, TcpSpec};

/// What a receiver is to send, in the order in which it leaves.
mod owed {
    /// An acknowledgement of what came before a change of marks (DCTCP).
    pub const BEFORE: u8 = 1;
    /// ns-3's acknowledgement of data that came with the FIN, before its own FIN.
    pub const FIRST: u8 = 2;
    pub const SYN_ACK: u8 = 4;
    pub const ACK: u8 = 8;
    /// ns-3's acknowledgement after its own FIN.
    pub const LAST: u8 = 16;
    pub const RESET: u8 = 32;
}

impl Receiver {
    /// A packet has arrived. True when it completes the data: all of it is here, in order.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        let flags = packet.flags;
        if spec.timestamps {
            self.note_timestamp(packet, options);
        }
        if spec.uses_ecn() {
            self.hear_marks(spec, flags);
        }
        if !flags.has(Flags::SYN) {
            self.end_handshake();
        }
        if flags.has(Flags::DATA) && !self.closed {
            let complete_before = self.complete();
            if self.on_segment(spec, now, packet.seq) == Acknowledge::Now {
                self.owes |= owed::ACK;
            }
            let completed = !complete_before && self.complete();
            if completed && spec.imitate.three_packet_close {
                self.close_in_three(spec, flags.has(Flags::FIN));
            }
            return completed;
        }
        self.on_other(spec, now, flags);
        false
    }

    fn on_other(&mut self, spec: &TcpSpec, now: Time, flags: Flags) {
        if flags.has(Flags::RST) {
            self.closed = true;
        } else if self.closed {
            if flags.has(Flags::SYN) || flags.has(Flags::DATA) {
                self.owes |= owed::RESET;
            }
        } else if flags.has(Flags::SYN) {
            self.answer_syn(spec, now);
        }
    }

    /// A SYN has arrived, or the answer to one is due again.
    fn answer_syn(&mut self, spec: &TcpSpec, now: Time) {
        self.syn_ack_again = self.in_handshake();
        if self.on_syn(spec, now) {
            self.owes |= owed::SYN_ACK;
        } else if !self.in_handshake() {
            // A SYN of a connection that is established: an old duplicate (RFC 9293 section 3.10.7.4).
            self.owes |= owed::ACK;
        }
    }

    /// What a data segment says of congestion.
    #[cold]
    fn hear_marks(&mut self, spec: &TcpSpec, flags: Flags) {
        if !flags.has(Flags::DATA) || self.closed {
            return;
        }
        let experienced = flags.has(Flags::CONGESTION_EXPERIENCED);
        if self.owes_ack_before(spec, experienced) {
            // Nothing waits beyond a gap while in-order segments are unacknowledged: there are no blocks to carry.
            self.owes |= owed::BEFORE;
            self.before = self.next();
            self.acknowledged();
        }
        self.note_congestion(spec, experienced, flags.has(Flags::WINDOW_REDUCED));
    }

    /// Which timestamp to echo from now on (RFC 7323 section 4.3): that of a segment at or before the last
    /// acknowledgement sent.
    #[cold]
    fn note_timestamp(&mut self, packet: &Segment, options: &OptionStore) {
        if !packet.flags.has(Flags::DATA) || packet.seq <= self.last_acknowledged() {
            self.recent = options.get(packet.options).timestamps.value;
        }
    }

    /// ns-3's answer to everything up to the FIN: an ACK if it comes with the FIN, a FIN of its own, and one more ACK.
    #[cold]
    fn close_in_three(&mut self, spec: &TcpSpec, came_with_fin: bool) {
        if spec.close == Close::Fin {
            self.owes |= owed::LAST;
            self.owes |= if came_with_fin { owed::FIRST } else { 0 };
        }
    }

    /// The timer has reached [`Receiver::deadline`]: a delayed ACK is due, or a SYN-ACK again.
    pub fn on_timer(&mut self, spec: &TcpSpec, now: Time) {
        if self.in_handshake() {
            self.answer_syn(spec, now);
        } else {
            self.owes |= owed::ACK;
        }
    }

    /// Acknowledges at once what has arrived.
    #[inline]
    pub fn acknowledge_now(&mut self) {
        self.owes |= owed::ACK;
    }

    /// The receiving application resets the connection. Nobody knows of one whose SYN has not arrived.
    pub fn reset(&mut self) {
        self.closed = true;
        self.acknowledged();
        if self.established {
            self.owes |= owed::RESET;
        }
    }

    /// Whether [`Receiver::poll_transmit`] has anything.
    #[inline]
    pub fn owes_anything(&self) -> bool {
        self.owes != 0
    }

    /// What to send now, if anything; to be called until it has nothing. `data` is what the layer above has an
    /// acknowledgement say.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Option<Segment> {
        let mut segment = match self.owes {
            0 => return None,
            owed::ACK => {
                self.owes = 0;
                self.acknowledgement(spec, sizes, data, options)
            }
            _ => self.other(spec, sizes, data, options),
        };
        segment.flags = segment.flags | Flags::TO_SENDER;
        if spec.timestamps {
            stamp(&mut segment, spec, now, self.recent, options);
        }
        Some(segment)
    }

    #[cold]
    fn other(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Segment {
        let due = self.owes & self.owes.wrapping_neg();
        self.owes &= !due;
        let plain = |seq, echo| {
            let echo = if echo { Flags::ECN_ECHO } else { Flags(0) };
            Segment::bare(Flags::ACK | echo, seq, sizes.bare())
        };
        match due {
            // What came before met the opposite of what changed the echo.
            owed::BEFORE => {
                let ack = plain(self.before, !self.echoes());
                Segment { options: data.map_or(NO_OPTIONS, |d| inline_number(d.number)), ..ack }
            }
            owed::FIRST | owed::LAST => plain(self.next(), false),
            owed::SYN_ACK => {
                let again = if self.syn_ack_again { Flags::RETRANSMISSION } else { Flags(0) };
                // An ECN-setup SYN-ACK carries ECE alone (RFC 3168 section 6.1.1).
                let setup = if spec.uses_ecn() { Flags::ECN_ECHO } else { Flags(0) };
                Segment::bare(Flags::SYN | Flags::ACK | setup | again, 0, sizes.syn())
            }
            owed::RESET => Segment::bare(Flags::RST, 0, sizes.bare()),
            _ => self.acknowledgement(spec, sizes, data, options),
        }
    }

    /// Acknowledges everything received so far.
    #[inline]
    fn acknowledgement(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Segment {
        self.acknowledged();
        let mut flags = Flags::ACK;
        let complete = data.map_or(self.complete(), |data| data.complete);
        if complete && spec.close == Close::Fin {
            flags = flags | Flags::FIN;
        }
        if self.echoes() {
            flags = flags | Flags::ECN_ECHO;
        }
        let mut ack = Segment::bare(flags, self.next(), sizes.bare());
        if self.has_blocks() && spec.recovery == Recovery::SackPrr {
            let limit = if spec.timestamps { 3 } else { SackBlocks::MAX };
            let blocks = self.take_blocks().first(limit);
            ack.wire_bytes = sizes.ack(blocks.as_slice().len());
            ack.options = options.insert(blocks);
            if let Some(data) = data {
                ack.options = options.enumerate(ack.options, data.number);
            }
        } else if let Some(data) = data {
            ack.options = inline_number(data.number);
        }
        ack
    }
}
