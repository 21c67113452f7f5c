//! Prefetches: a large fabric does not fit into the nearest cache. None changes a result.

use super::Fabric;
use crate::packet::Packet;
use crate::topology::PortId;

impl Fabric {
    /// Asks for a port whose turn comes soon.
    #[inline]
    pub(crate) fn fetch(&self, port: PortId) {
        tailcut_engine::prefetch(&self.ports[port.index()]);
    }

    /// Asks for the packet that it will hand out.
    #[inline]
    pub(crate) fn fetch_first(&self, port: PortId) {
        self.ports[port.index()].fetch_first();
    }

    /// Prefetches that packet.
    #[inline]
    pub(crate) fn next(&self, port: PortId) -> &Packet {
        self.ports[port.index()].next()
    }

    /// Asks for the route of that packet.
    #[inline]
    pub(crate) fn fetch_route(&self, port: PortId) {
        let port = &self.ports[port.index()];
        if let Some(switch) = port.far_end().switch(self.hosts) {
            self.routes.fetch(switch, port.next().key.low_dst());
        }
    }

    /// Asks for a port whose transmitter falls idle soon, and for its queue.
    #[inline]
    pub(crate) fn fetch_idle(&self, port: PortId) {
        self.fetch(port);
        self.scheduled.fetch(port);
    }

    /// Asks for what waits in that queue.
    #[inline]
    pub(crate) fn fetch_waiting(&self, port: PortId) {
        self.scheduled.fetch_first(port);
    }
}
