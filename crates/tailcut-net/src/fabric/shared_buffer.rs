//! The memory that the ports of a switch share ([`crate::switch`]): whether a packet fits into it,
//! and what of it is taken.

use tailcut_engine::Time;

use super::{Fabric, OfferOutcome};
use crate::packet::Packet;
use crate::topology::PortId;
use crate::trace::trace;

impl Fabric {
    /// Puts a packet as [`Fabric::put`] does, if the switch has memory for it.
    #[cold]
    pub(super) fn put_in_memory(
        &mut self,
        now: Time,
        port: PortId,
        packet: Packet,
    ) -> OfferOutcome {
        if !self.has_memory(now, port, packet.wire_bytes) {
            trace!("refused: the buffer that the switch's ports share has no room");
            self.ports[port.index()].drop_before_queue(now, &packet);
            return OfferOutcome::Dropped;
        }
        let offered = self.put(now, port, packet);
        if matches!(offered, OfferOutcome::AcceptedFirst(_) | OfferOutcome::AcceptedBehind) {
            self.note_memory(now, port, packet.wire_bytes);
        }
        offered
    }

    /// Whether the switch of `port` has memory for one more packet there; it needs none while the
    /// port is idle.
    fn has_memory(&mut self, now: Time, port: PortId, bytes: u16) -> bool {
        let busy = self.ports[port.index()].busy_until() > now;
        let pools = self.pools.as_mut().expect("switches share their buffers");
        let at = &mut self.ports[port.index()];
        pools.admits(now.0, port, bytes, || at.arrival_goes_first(now)) || !busy
    }

    /// A packet was accepted at `port`; it may have to wait in its switch's memory.
    fn note_memory(&mut self, now: Time, port: PortId, bytes: u16) {
        let service = self.ports[port.index()].transmission_time(bytes);
        let begins = self.ports[port.index()].busy_until().0 - service;
        if let Some(pools) = self.pools.as_mut().filter(|_| begins > now.0) {
            pools.add(port, bytes, begins);
        }
    }

    /// Recounts the switch's memory after the queue of `port` has changed.
    pub(super) fn recount_memory(&mut self, now: Time, port: PortId) {
        if let Some(pools) = &mut self.pools {
            pools.retime(port, &self.ports[port.index()].waiting_begins(now));
        }
    }
}
