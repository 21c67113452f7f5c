//! The order of events at one instant, where it takes more than a port to know: ns-3's.

use tailcut_engine::Time;

use super::Fabric;
use crate::packet::Packet;
use crate::topology::PortId;

/// The packet that a host has got last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brought {
    /// The arrival time and the link.
    at: Time,
    by: PortId,
    /// The time at which its arrival was scheduled.
    scheduled: u64,
}

impl Fabric {
    /// Returns when ns-3 would have scheduled the arrival of a packet by a link: when its
    /// transmission began.
    fn scheduled(&self, now: Time, link: PortId, packet: &Packet) -> u64 {
        let port = &self.ports[link.index()];
        let took = port.transmission_time(packet.wire_bytes) + port.propagation().0;
        now.0.saturating_sub(took)
    }

    /// A host gets a packet, which may let others out at this instant.
    #[cold]
    pub(super) fn note_brought(&mut self, now: Time, by: PortId, packet: &Packet) {
        if self.brought.is_some() {
            let scheduled = self.scheduled(now, by, packet);
            self.brought = Some(Brought { at: now, by, scheduled });
        }
    }

    /// A packet is about to be offered. What its host sends on its own, when a flow starts or a
    /// timer expires, was scheduled long ago.
    #[cold]
    pub(super) fn note_schedule(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: &Packet,
    ) {
        let at = match (ingress, self.brought) {
            (Some(link), _) => self.scheduled(now, link, packet),
            (None, Some(last)) if last.at == now && last.by == port.reversed() => last.scheduled,
            _ => 0,
        };
        self.ports[port.index()].note_schedule(at);
    }
}
