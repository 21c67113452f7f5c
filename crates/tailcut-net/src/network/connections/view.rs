//! Packets as their headers describe them, for observers.

use super::Connections;
use crate::measure::PacketView;
use crate::network::profile::TransportProfile;
use crate::packet::{Flags, Packet};
use crate::traffic::Flow;
use crate::transport::ConnectionState;
use crate::transport::tcp::{Close, Recovery};

impl Connections<'_> {
    /// Returns an observer's view of a packet of a flow.
    pub fn view(&self, packet: &Packet, flow: &Flow) -> PacketView {
        let id = packet.connection;
        let profile = self.sender_profile(id);
        let TransportProfile { tcp, sizes, is_multipath: spreads, has_entropy, .. } = profile;
        let sender = self.sender(id);
        let flow_bytes = self.carries(id, flow);
        // The segments of a subflow may carry data of any place, some of it again.
        let size = if *spreads { u64::MAX } else { flow_bytes };
        let offset = |segments: u32| 1 + (u64::from(segments) * tcp.mss.0).min(size);
        let data = packet.flags.has(Flags::DATA);
        let syn = packet.flags.has(Flags::SYN);
        let fin = u64::from(tcp.close == Close::Fin);
        let (seq, ack) = if packet.is_returned() {
            (offset(packet.seq.number()), 1)
        } else if packet.flags.has(Flags::TO_SENDER) {
            let all = !syn && packet.seq.number() == sender.segments();
            let ack = if syn { 1 } else { offset(packet.seq.number()) + if all { fin } else { 0 } };
            (u64::from(!syn), ack)
        } else if data || packet.is_trimmed() {
            (offset(packet.seq.number()), 1)
        } else if syn {
            (0, 0)
        } else {
            let done = sender.phase() == ConnectionState::Done;
            (offset(sender.una()) + if done { fin } else { 0 }, 1 + if done { fin } else { 0 })
        };
        let options = self.options().get(packet.options);
        // Whoever rewrites a packet on its way puts it back before its host sees it. The entropy
        // value of a packet stands for its flow label, and leaves its ports as they are.
        let key = match *has_entropy || packet.flags.has(Flags::REWRITTEN) {
            true if packet.flags.has(Flags::TO_SENDER) => self.receiver_info(id).key,
            true => self.sender_info(id).key,
            false => packet.key,
        };
        PacketView {
            flow: flow.id,
            copy: self.sender_info(id).copy,
            src: key.src(),
            dst: key.dst(),
            sport: key.sport(),
            dport: key.dport(),
            seq,
            ack,
            flags: packet.flags.in_header(),
            payload: if data || packet.flags.has(Flags::PROBE) {
                sizes.payload(packet.wire_bytes)
            } else {
                0
            },
            window: tcp.receive_window.0,
            mss: tcp.mss.0 as u16,
            mss_option: tcp.mss_option,
            flow_bytes,
            data: (*spreads && data)
                .then(|| self.options().number(packet.options))
                .flatten()
                .map(|segment| u64::from(segment) * tcp.mss.0),
            sack: tcp.recovery == Recovery::SackPrr,
            timestamps: tcp.timestamps.then_some(options.timestamps),
            blocks: options.blocks,
            wire_bytes: packet.wire_bytes,
        }
    }
}
