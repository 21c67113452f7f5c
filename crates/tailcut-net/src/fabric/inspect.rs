//! Queries of a fabric at work; none changes it.

use tailcut_engine::Time;

use super::Fabric;
use crate::packet::Packet;
use crate::port::{Port, PortCounters};
use crate::topology::{Graph, HostId, PortId, Routes};

impl Fabric {
    /// Returns the number of ports: two per link of the graph.
    pub fn port_count(&self) -> u32 {
        self.ports.len() as u32
    }

    /// The packet that a port accepted last, as it will leave (its queue may have marked it), and
    /// when its last bit does.
    ///
    /// # Panics
    /// When the port holds none.
    pub fn last(&self, port: PortId) -> (&Packet, Time) {
        let port = &self.ports[port.index()];
        (port.last(), port.busy_until())
    }

    /// A port.
    #[inline]
    pub(crate) fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// Returns the packets in the scheduled queue of a port; 0 without one.
    #[inline]
    pub(crate) fn waiting_at(&self, port: PortId) -> u32 {
        self.scheduled.waiting(port).unwrap_or(0)
    }

    /// Whether a port has nothing to send at `now`.
    #[inline]
    pub(crate) fn is_idle(&self, now: Time, port: PortId) -> bool {
        self.busy_until(port) <= now && self.waiting_at(port) == 0
    }

    /// Returns when the last bit that a port has accepted leaves.
    #[inline]
    pub(crate) fn busy_until(&self, port: PortId) -> Time {
        self.ports[port.index()].busy_until()
    }

    /// Returns the transmission time of `bytes` at a port.
    #[inline]
    pub(crate) fn transmission(&self, port: PortId, bytes: u16) -> Time {
        Time(self.ports[port.index()].transmission_time(bytes))
    }

    /// The packets in a port and on its link, the first to arrive first, and when the last bit of
    /// each leaves, or left.
    pub(crate) fn departures(&self, port: PortId) -> Vec<(Packet, Time)> {
        self.ports[port.index()].departures()
    }

    /// Packets waiting at a port.
    pub fn queue_length(&mut self, now: Time, port: PortId) -> u32 {
        match self.scheduled.waiting(port) {
            Some(waiting) => waiting,
            None => self.ports[port.index()].queue(now),
        }
    }

    /// Returns how long a transmitter has been busy in `[0, now)`.
    pub fn busy_time(&self, now: Time, port: PortId) -> Time {
        self.ports[port.index()].busy(now)
    }

    /// Returns the counters of a port.
    pub fn counters(&self, port: PortId) -> PortCounters {
        let mut counters = self.ports[port.index()].counters();
        if let Some(queue) = self.scheduled.queue(port) {
            (counters.drops, counters.max_queue) = (queue.drops(), queue.longest());
        }
        counters
    }

    /// Returns why the fabric cannot be cut into parts that threads simulate; `None` where it can.
    pub(crate) fn one_thread_reason(&mut self) -> Option<&'static str> {
        let reasons = [
            (self.stops.is_some(), "switches pause links"),
            (self.stamped, "switches write headers on packets"),
            (self.brought.is_some(), "events of one instant come in the order of ns-3"),
            (self.balancer.audit().is_some(), "switches' guesses about flows are checked"),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }

    /// Packets that wait at a port, are being sent or are on its link.
    pub(crate) fn inside(&self, port: PortId) -> u64 {
        let waiting = self.scheduled.waiting(port).unwrap_or(0);
        u64::from(self.ports[port.index()].held()) + u64::from(waiting)
    }

    /// The packets in queues and on links.
    pub fn packets(&self) -> impl Iterator<Item = Packet> + '_ {
        let mut waiting = vec![];
        for queue in self.scheduled.queues() {
            queue.visit(&mut |packet| waiting.push(*packet));
        }
        self.ports.iter().flat_map(Port::packets).copied().chain(waiting)
    }

    /// By which every switch routes at present.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the number of shortest paths between two hosts at present; `u32::MAX` stands for
    /// that many or more.
    pub fn shortest_path_count(&mut self, graph: &Graph, src: HostId, dst: HostId) -> u32 {
        self.path_counts.between(graph, &self.routes, src, dst)
    }
}
