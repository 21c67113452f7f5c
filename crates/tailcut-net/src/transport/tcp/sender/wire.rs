//! Packets that a sender sends and receives.

use tailcut_engine::Time;

use super::Sender;
use crate::packet::{Flags, NO_OPTIONS, OptionStore, SackBlocks, inline_number};
use crate::transport::Transmit;
use crate::transport::segment::{Mapping, Segment};
use crate::transport::tcp::options::{WireSizes, stamp};
use crate::transport::tcp::{Close, Paws, TcpSpec};

impl Sender {
    /// Handles a packet from the receiver.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) {
        if spec.timestamps && !self.note_timestamps(spec, now, packet, options) {
            return;
        }
        if packet.flags.has(Flags::RST) {
            self.on_reset();
        } else if packet.flags.has(Flags::SYN) {
            self.on_syn_ack(spec, now);
        } else {
            let echo = packet.flags.has(Flags::ECN_ECHO);
            if OptionStore::holds(packet.options) {
                let blocks = options.get(packet.options).blocks;
                self.on_ack(spec, now, packet.seq, &blocks, echo);
            } else {
                self.on_ack(spec, now, packet.seq, &SackBlocks::default(), echo);
            }
            if packet.flags.has(Flags::FIN) {
                self.on_fin(spec);
            }
        }
    }

    /// Notes the timestamps of an acknowledgement. The receiver sends no data, so the timestamp of
    /// any of its segments is the one to echo (RFC 7323 section 4.3), under PAWS unless it is older.
    /// Returns false for an ACK that PAWS discards (section 5.3, R1). It is not answered, since the
    /// answer would tell the receiver nothing.
    #[cold]
    fn note_timestamps(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        let timestamps = options.get(packet.options).timestamps;
        let handshake = packet.flags.has(Flags::SYN) || packet.flags.has(Flags::RST);
        if !handshake && self.discards_by_paws(spec, packet.seq, timestamps.value) {
            self.counters.paws_discarded += 1;
            return false;
        }
        self.note_timestamp(spec, now, timestamps.echo);
        self.sense_timestamps(timestamps);
        let older = !handshake
            && !spec.paws.is_off()
            && Paws::Rfc7323.discards(timestamps.value, self.recent);
        if !older {
            self.recent = timestamps.value;
        }
        true
    }

    /// Returns whether PAWS discards an ACK with this timestamp. Linux takes a duplicate of the
    /// last ACK that is no older than a retransmission timeout (`tcp_disordered_ack`).
    fn discards_by_paws(&self, spec: &TcpSpec, ack: u32, value: u32) -> bool {
        if !self.life.is_established() || !spec.paws.discards(value, self.recent) {
            return false;
        }
        let age = Time(u64::from(self.recent.wrapping_sub(value)) * spec.timestamp_tick.0);
        !(spec.paws == Paws::Linux && ack == self.una && age <= self.rtt.rto())
    }

    /// Returns the packet for a [`Transmit`]. `mapping` is the data sequence mapping of a subflow;
    /// `None` for a connection of its own.
    #[inline]
    pub fn packet(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        transmit: Transmit,
        mapping: Option<Mapping>,
        options: &mut OptionStore,
    ) -> Segment {
        let mut packet = match transmit {
            Transmit::Segment { seq, retransmission } => {
                let mut flags = Flags::DATA | Flags::ACK;
                if retransmission {
                    flags = flags | Flags::RETRANSMISSION;
                } else if self.ecn {
                    // Never on retransmissions (RFC 3168 section 6.1.5).
                    flags = flags | Flags::ECN_CAPABLE;
                    if self.take_cwr() {
                        flags = flags | Flags::WINDOW_REDUCED;
                    }
                }
                let (last, payload, options) = match mapping {
                    None => (seq + 1 == self.segments, self.payload(spec, seq), NO_OPTIONS),
                    Some(m) => (m.last, m.payload, inline_number(m.number)),
                };
                if last && spec.close == Close::Fin {
                    flags = flags | Flags::FIN;
                }
                Segment { seq, options, wire_bytes: sizes.data(payload), flags, entropy: 0 }
            }
            Transmit::Ack => Segment::bare(Flags::ACK, 0, sizes.bare()),
            Transmit::Probe => Segment::bare(Flags::PROBE | Flags::ACK, self.una, sizes.data(1)),
            Transmit::Syn { retry } => {
                let again = if retry { Flags::RETRANSMISSION } else { Flags(0) };
                let setup =
                    if self.ecn { Flags::ECN_ECHO | Flags::WINDOW_REDUCED } else { Flags(0) };
                Segment::bare(Flags::SYN | again | setup, 0, sizes.syn())
            }
            Transmit::Reset => Segment::bare(Flags::RST, 0, sizes.bare()),
        };
        if spec.entropy.is_some() {
            packet.entropy = self.choose_port(now, transmit);
        }
        if spec.timestamps {
            stamp(&mut packet, spec, now, self.recent, options);
        }
        packet
    }
}
