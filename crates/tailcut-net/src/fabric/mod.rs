//! The fabric: links with their queues, switches with their balancers and memory, routes, and what fails of them.
//!
//! It knows no connection, no clock and no observer. Whoever drives it keeps the time, holds a list of what is due, and
//! makes sense of the packets: the simulator does it with an agenda and TCP, a laboratory may with a clock on the wall and
//! frames of real hosts. Of a packet the fabric looks at `key` (whence, whither, the five-tuple that ECMP hashes),
//! `wire_bytes`, `flags` and, where queues schedule by priority, [`Packet::number`]; `connection`, `seq` and `options` are the
//! driver's own. Only where something is kept of single packets or flows (stamps, what TinyFlow's guesses are held against) are the first two
//! compared with those of other packets: they have to tell packets apart, and say nothing else.
//!
//! # How to drive it
//!
//! - A host sends: offer the packet to [`Fabric::host_port`]. A port is a directed link with the queue before it.
//! - [`Fabric::offer`] says what becomes of a packet ([`Offered`]). It may have to be asked for again: when the first
//!   packet of the link arrives ([`Fabric::take`], which says when the next one does), or when its transmitter falls idle ([`Fabric::idle`], only
//!   with scheduled queues). Per link and kind at most one such call is ever due.
//! - With flow control ([`flow_control`]), [`Fabric::frame`] tells after each call what frames are on their way, and [`Fabric::heed`] is
//!   due when one arrives, after idle transmitters of the same instant.
//! - Then [`Fabric::forward`] says where the packet is: at a host, or in a switch that has chosen the port that it shall be
//!   offered to next.
//! - At [`Fabric::next_incident`], [`Fabric::incident`] carries out what fails; it may move what is due, or lose packets.
//!
//! Times never go back. Of calls that are due at one instant, arrivals come before idle transmitters, each in the order of
//! ports, so that the same packets meet the same fate.
//!
//! ```
//! use std::collections::BTreeMap;
//! use tailcut_engine::Time;
//! use tailcut_net::fabric::{Fabric, Offered, Parts, Place};
//! use tailcut_net::packet::{ConnectionId, Flags, FlowKey, Packet, NO_OPTIONS};
//! use tailcut_net::topology::star::Star;
//! use tailcut_net::topology::{HostId, PortId};
//!
//! let graph = Star { hosts: 3, ..Star::default() }.build()?;
//! let mut fabric = Fabric::new(&Parts::of(&graph))?;
//! // What is due, in order: time and port. Queues are drop-tail here, so that no transmitter has to be asked.
//! let mut due: BTreeMap<(Time, PortId), ()> = BTreeMap::new();
//! let mut arrived = vec![];
//!
//! let key = FlowKey::new(HostId(0), HostId(2), 1024, 5000);
//! let packet = Packet { key, connection: ConnectionId(7), seq: 0, options: NO_OPTIONS, wire_bytes: 1538, flags: Flags(0) };
//! let mut todo = vec![(Time::ZERO, fabric.host_port(HostId(0)), None, packet)];
//! loop {
//!     for (now, port, ingress, packet) in todo.drain(..) {
//!         match fabric.offer(now, port, ingress, packet) {
//!             Offered::First(at) => drop(due.insert((at, port), ())),
//!             Offered::Behind => {}
//!             other => panic!("nothing is in its way: {other:?}"),
//!         }
//!     }
//!     let Some(((now, port), ())) = due.pop_first() else { break };
//!     let (mut packet, next) = fabric.take(port);
//!     if let Some(at) = next {
//!         due.insert((at, port), ());
//!     }
//!     match fabric.forward(now, port, &mut packet) {
//!         Place::Switch { egress, .. } => todo.push((now, egress, Some(port), packet)),
//!         Place::Host(host) => arrived.push((now, host, packet.connection)),
//!         Place::Lost => {}
//!     }
//! }
//! assert_eq!(arrived.len(), 1);
//! assert_eq!((arrived[0].1, arrived[0].2), (HostId(2), ConnectionId(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod flow_control;
mod incidents;
mod marks;
mod scheduled;
mod stamps;
#[cfg(test)]
mod tests;
mod waiting;
mod ways;

use tailcut_engine::Time;

use crate::amount::Limit;
use crate::balance::audit::Audit;
use crate::balance::{BalanceSpec, Balancer, Fork, Layout, Pick};
use crate::component::SpecError;
use crate::faults::FaultsSpec;
use crate::host::HostSpec;
use crate::packet::{Flags, Packet};
use crate::port::{self, Port, PortCounters};
use crate::queue::{At, Discipline, QueueSpec, Schedule};
use crate::switch::pools::Pools;
use crate::switch::SwitchSpec;
use crate::topology::{Graph, HostId, PathCounts, PortId, RouteError, Routes, SwitchId};

pub use flow_control::Heeded;
use flow_control::Stops;
pub use incidents::Consequence;
use incidents::Incidents;
use marks::Marks;
pub use scheduled::Dequeued;
use scheduled::Scheduled;
use stamps::Stamps;
use waiting::Waiting;
pub(crate) use ways::Ways;

/// What a fabric is made of.
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// The queue of every switch port.
    pub queue: QueueSpec,
    /// How switches choose among equal-cost paths.
    pub balance: BalanceSpec,
    /// Switches.
    pub switch: SwitchSpec,
    /// What may wait in the interface of a host.
    pub nic_queue: Limit,
    /// What fails when.
    pub faults: FaultsSpec,
    /// Seed of whatever it draws.
    pub seed: u64,
}

impl<'a> Parts<'a> {
    /// A network whose parts are all as they are when nothing is said of them.
    pub fn of(graph: &'a Graph) -> Parts<'a> {
        Parts {
            graph,
            queue: QueueSpec::default(),
            balance: BalanceSpec::default(),
            switch: SwitchSpec::default(),
            nic_queue: HostSpec::default().nic_queue,
            faults: FaultsSpec::default(),
            seed: 0,
        }
    }
}

/// Why a fabric cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FabricError {
    /// The graph has no routes.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// What fails is not there, or fails in two ways at once.
    #[error("faults: {0}")]
    Fault(SpecError),
    /// A strategy is that of a switch that is not there.
    #[error("balance: {0}")]
    Balance(SpecError),
}

/// What became of a packet that was offered to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Offered {
    /// It is the first on its link: [`Fabric::take`] is due at this time.
    First(Time),
    /// It follows others on the link.
    Behind,
    /// It waits in a scheduled queue, and [`Fabric::idle`] is due at this time unless it was due already. Others may have
    /// made way for it: [`Fabric::displaced`].
    Waits(Option<Time>),
    /// There was no room for it.
    Dropped,
    /// The link is down.
    Lost,
}

/// Where a packet has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this host.
    Host(HostId),
    /// In a switch (numbered over switches), which sends it by this port: offer it there.
    Switch {
        /// The switch.
        switch: SwitchId,
        /// The port.
        egress: PortId,
    },
    /// Nowhere: it was corrupted on the link.
    Lost,
}

/// Links, switches and routes at work.
#[derive(Debug, Clone)]
pub struct Fabric {
    ports: Vec<Port>,
    routes: Routes,
    path_counts: PathCounts,
    plain: bool,
    /// Whether `stamps` are there: beside what every packet asks for.
    stamped: bool,
    keeps_paths: bool,
    /// What waits at the ports where the order is decided at departure.
    scheduled: Scheduled,
    hosts: u32,
    balancer: Balancer,
    marks: Marks,
    /// Buffers that the ports of a switch share.
    pools: Option<Pools>,
    /// What links are stopped.
    stops: Option<Stops>,
    incidents: Incidents,
    /// What the balancer has written on packets; none where it writes nothing.
    stamps: Option<Box<Stamps>>,
}

impl Fabric {
    /// Builds it, idle.
    ///
    /// # Errors
    /// When the graph has no routes, or something that shall fail or balance is not there.
    pub fn new(parts: &Parts<'_>) -> Result<Fabric, FabricError> {
        let Parts { graph, queue, balance, seed, .. } = parts;
        balance.check_on(graph).map_err(FabricError::Balance)?;
        let routes = Routes::new(graph)?;
        let mut ports = vec![];
        let mut scheduled = Scheduled::default();
        let control = parts.switch.flow_control();
        for link in &graph.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let number = PortId::at(ports.len());
                let host = graph.switch(from).is_none();
                let limit = match host {
                    true => parts.nic_queue,
                    false => link.queue_limit.unwrap_or(queue.limit()),
                };
                let at = At { number: number.0, host, limit, seed: *seed };
                let (mut limit, mut discipline) = (queue.limit_in_all(&at), queue.discipline(&at));
                if control.is_some() {
                    scheduled.place(number, queue.fifo(&at));
                    (limit, discipline) = (Limit::Unlimited, Discipline::Plain);
                } else if let Some(scheduler) = queue.scheduler(&at) {
                    scheduled.place(number, scheduler);
                }
                let port = Port::with_discipline(link.rate, link.propagation, limit, discipline);
                ports.push(port.leading_to(to));
            }
        }
        let incidents = Incidents::new(parts).map_err(FabricError::Fault)?;
        for (port, stream) in incidents.ports(*seed) {
            ports[port.index()].expect_faults(stream);
        }
        let layout = Layout { graph, routes: &routes, seed: *seed };
        let balancer = Balancer::new(balance, layout);
        let pools = Pools::new(&parts.switch, graph);
        let stamps = balancer.stamps().then(|| Box::new(Stamps::new(ports.len())));
        Ok(Fabric {
            ports,
            routes,
            path_counts: PathCounts::default(),
            plain: scheduled.is_empty() && pools.is_none() && stamps.is_none(),
            stamped: stamps.is_some(),
            keeps_paths: balance.keeps_paths(),
            scheduled,
            hosts: graph.hosts,
            marks: Marks::new(queue, balancer.large()),
            balancer,
            pools,
            stops: control.map(|kind| Stops::new(kind, 2 * graph.links.len())),
            incidents,
            stamps,
        })
    }

    /// The port by which a host sends.
    #[inline]
    pub fn host_port(&self, host: HostId) -> PortId {
        self.routes.host_port(host)
    }

    /// Whether a port has nothing but its own queue to ask: packets are not scheduled at departure, do not share memory and have no stamps.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Offers a packet to a port: one that came to its switch by the link `ingress`, or its host's own.
    // The loop's hot spot: a call and a result in memory would cost it several per cent.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> Offered {
        match self.plain {
            true => self.put(now, port, packet),
            false => {
                let offered = self.offer_closely(now, port, ingress, packet);
                if self.stamped {
                    self.offer_stamp(port, ingress, &packet, offered);
                }
                offered
            }
        }
    }

    #[inline]
    fn offer_closely(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> Offered {
        if self.stops.is_some() {
            return self.offer_controlled(now, port, ingress, packet);
        }
        match self.scheduled.waiting(port) {
            Some(waiting) if waiting > 0 || self.ports[port.index()].busy_until() > now => {
                self.enqueue(now, port, packet)
            }
            _ => self.put_closely(now, port, packet),
        }
    }

    /// The port behind the queue takes a packet, if its switch has memory for it, or drops it.
    #[inline]
    fn put_closely(&mut self, now: Time, port: PortId, packet: Packet) -> Offered {
        match self.pools {
            None => self.put(now, port, packet),
            Some(_) => self.put_in_memory(now, port, packet),
        }
    }

    #[cold]
    fn put_in_memory(&mut self, now: Time, port: PortId, packet: Packet) -> Offered {
        if !self.has_memory(now, port, packet.wire_bytes) {
            self.ports[port.index()].note_drop();
            return Offered::Dropped;
        }
        let offered = self.put(now, port, packet);
        if matches!(offered, Offered::First(_) | Offered::Behind) {
            self.note_memory(now, port, packet.wire_bytes);
        }
        offered
    }

    #[inline(always)]
    fn put(&mut self, now: Time, port: PortId, packet: Packet) -> Offered {
        match self.ports[port.index()].offer(now, packet) {
            port::Offer::First(arrival) => Offered::First(arrival),
            port::Offer::Behind => Offered::Behind,
            port::Offer::Dropped => Offered::Dropped,
            port::Offer::Lost => Offered::Lost,
        }
    }

    /// The first packet of a link has reached its far end: takes it, and says when the next one arrives there.
    #[inline]
    pub fn take(&mut self, port: PortId) -> (Packet, Option<Time>) {
        self.ports[port.index()].take()
    }

    /// Where a packet is that was just taken from a link. Packets are offered to the ports that switches have chosen in the
    /// order in which they were forwarded.
    #[inline(always)]
    pub fn forward(&mut self, now: Time, port: PortId, packet: &mut Packet) -> Place {
        if packet.flags.has(Flags::CORRUPTED) {
            self.ports[port.index()].note_lost();
            self.drop_stamp(port);
            return Place::Lost;
        }
        let end = self.ports[port.index()].far_end();
        match end.switch(self.hosts) {
            None => {
                self.drop_stamp(port);
                Place::Host(HostId(end.0))
            }
            Some(switch) => {
                let egress = self.egress(now, switch, port, packet);
                if self.stamped {
                    self.pass_stamp(now, switch, port, egress, packet);
                }
                Place::Switch { switch, egress }
            }
        }
    }

    /// The port by which a packet leaves a switch that it has reached by the link `ingress`.
    #[inline(always)]
    fn egress(
        &mut self,
        now: Time,
        switch: SwitchId,
        ingress: PortId,
        packet: &mut Packet,
    ) -> PortId {
        match self.routes.candidates(switch, packet.key.dst()) {
            [only] => *only,
            many => {
                let queues = &Waiting::at(&self.ports, &self.scheduled);
                let choices = many.len() as u32;
                let fork = Fork { now, switch, ingress, choices, ports: many, queues };
                many[self.balancer.pick(fork, packet) as usize]
            }
        }
    }

    /// Whether the switch of `port` has memory for one more packet there; it needs none while the port is idle.
    fn has_memory(&mut self, now: Time, port: PortId, bytes: u16) -> bool {
        let busy = self.ports[port.index()].busy_until() > now;
        let pools = self.pools.as_mut().expect("switches share their buffers");
        pools.admits(now.0, port, bytes) || !busy
    }

    /// A packet was accepted at `port`; it may have to wait in its switch's memory.
    fn note_memory(&mut self, now: Time, port: PortId, bytes: u16) {
        let service = self.ports[port.index()].transmission_time(bytes);
        let begins = self.ports[port.index()].busy_until().0 - service;
        if let Some(pools) = self.pools.as_mut().filter(|_| begins > now.0) {
            pools.add(port, bytes, begins);
        }
    }

    /// What waits at `port` has changed under its switch's memory.
    fn recount_memory(&mut self, now: Time, port: PortId) {
        if let Some(pools) = &mut self.pools {
            pools.retime(port, &self.ports[port.index()].waiting_begins(now));
        }
    }

    /// How many ports there are: two per link of the graph.
    pub fn ports(&self) -> u32 {
        self.ports.len() as u32
    }

    /// The packet that a port accepted last, as it will leave (its queue may have marked it), and when its last bit does.
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

    /// When the last bit of all that a port has accepted leaves.
    #[inline]
    pub(crate) fn busy_until(&self, port: PortId) -> Time {
        self.ports[port.index()].busy_until()
    }

    /// How long a packet of so many bytes takes at a port.
    #[inline]
    pub(crate) fn transmission(&self, port: PortId, bytes: u16) -> Time {
        Time(self.ports[port.index()].transmission_time(bytes))
    }

    /// The packets in a port and on its link, the first to arrive first, and when the last bit of each leaves, or left.
    pub(crate) fn departures(&self, port: PortId) -> Vec<(Packet, Time)> {
        self.ports[port.index()].departures()
    }

    /// Packets waiting at a port.
    pub fn queue(&mut self, now: Time, port: PortId) -> u32 {
        match self.scheduled.waiting(port) {
            Some(waiting) => waiting,
            None => self.ports[port.index()].queue(now),
        }
    }

    /// How long a transmitter has been busy in `[0, now)`.
    pub fn busy(&self, now: Time, port: PortId) -> Time {
        self.ports[port.index()].busy(now)
    }

    /// What a port has done so far.
    pub fn counters(&self, port: PortId) -> PortCounters {
        let mut counters = self.ports[port.index()].counters();
        if let Some(queue) = self.scheduled.queue(port) {
            (counters.drops, counters.max_queue) = (queue.drops(), queue.longest());
        }
        counters
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

    /// How many shortest paths lead from one host to another at present; `u32::MAX` stands for that many or more.
    pub fn shortest_paths(&mut self, graph: &Graph, src: HostId, dst: HostId) -> u32 {
        self.path_counts.between(graph, &self.routes, src, dst)
    }

    /// What switches guess of flows, where that is counted.
    pub(crate) fn audit(&mut self) -> Option<&mut dyn Audit> {
        self.balancer.audit()
    }
}
