//! A sender's packets, going and coming: those with data carry the priority of their flow.

use tailcut_engine::Time;

use super::{PfabricSender, PfabricSpec};
use crate::packet::{Flags, NO_OPTIONS, OptionStore, SackBlocks, inline_number};
use crate::transport::Transmit;
use crate::transport::segment::Segment;
use crate::transport::tcp::WireSizes;

impl PfabricSender {
    /// A packet has arrived.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &PfabricSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) {
        if packet.flags.has(Flags::RST) {
            self.on_reset();
        } else if packet.flags.has(Flags::SYN) {
            self.on_syn_ack();
        } else if packet.options == NO_OPTIONS {
            self.on_ack(spec, now, packet.seq, &SackBlocks::default());
        } else {
            self.on_ack(spec, now, packet.seq, &options.get(packet.options).blocks);
        }
    }

    /// The packet for what [`PfabricSender::poll_transmit`] yields.
    #[inline]
    pub fn packet(&self, spec: &PfabricSpec, sizes: &WireSizes, transmit: Transmit) -> Segment {
        let priority = || inline_number(u32::try_from(self.remaining(spec)).unwrap_or(u32::MAX));
        match transmit {
            Transmit::Segment { seq, retransmission } => {
                let again = if retransmission { Flags::RETRANSMISSION } else { Flags(0) };
                let flags = Flags::DATA | Flags::ACK | again;
                let wire_bytes = sizes.data(self.payload(spec, seq));
                Segment { seq, options: priority(), wire_bytes, flags, entropy: 0 }
            }
            Transmit::Probe => Segment {
                options: priority(),
                ..Segment::bare(Flags::PROBE | Flags::ACK, self.una(), sizes.data(1))
            },
            Transmit::Ack => Segment::bare(Flags::ACK, 0, sizes.bare()),
            Transmit::Syn { retry } => {
                let again = if retry { Flags::RETRANSMISSION } else { Flags(0) };
                Segment::bare(Flags::SYN | again, 0, sizes.syn())
            }
            Transmit::Reset => Segment::bare(Flags::RST, 0, sizes.bare()),
        }
    }
}
