//! Ports, wires and switches: how a packet gets from port to port.

use tailcut_engine::{Bytes, Time};

use super::scheduled::Scheduled;
use crate::balance::{ecmp, Balancer, Fork, Layout, Pick, Queues};
use crate::measure::ideal::Stage;
use crate::packet::{Flags, FlowKey, OptionStore, Packet};
use crate::port::{Clocking, Port};
use crate::queue::pfabric::PriorityQueue;
use crate::queue::QueueSpec;
use crate::scenario::Scenario;
use crate::switch::Pools;
use crate::topology::{Graph, PathCounts, PortId, RouteError, Routes};

/// What hangs at the far end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Host(u32),
    /// Numbered over switches.
    Switch(u32),
}

pub(super) struct Fabric {
    pub ports: Vec<Port>,
    pub routes: Routes,
    path_counts: PathCounts,
    pub options: OptionStore,
    /// What waits at the ports where the order is decided at departure.
    pub scheduled: Scheduled,
    /// Node at the far end of each port: hosts, then switches.
    ends: Vec<u32>,
    hosts: u32,
    salts: Vec<u64>,
    pub balancer: Balancer,
    hops: Vec<Stage>,
    /// Hosts mark what they send before it leaves.
    pub marking: bool,
    /// Hosts mark the packets of flows of at least so many bytes.
    hosts_mark: Option<Bytes>,
    /// Buffers that the ports of a switch share.
    pub pools: Option<Pools>,
    /// Which flows have lost paths; none unless the queues want to know.
    pub manager: Option<FaultManager>,
}

/// What waits at the ports of a fabric.
struct Waiting<'a> {
    ports: &'a [Port],
    scheduled: &'a Scheduled,
}

impl Queues for Waiting<'_> {
    fn wait(&self, port: PortId, now: Time) -> Time {
        let link = &self.ports[port as usize];
        let committed = link.busy_until().0.saturating_sub(now.0);
        let queue = self.scheduled.queues().get(port as usize).and_then(Option::as_ref);
        let transmission = |packet: &Packet| link.transmission_time(packet.wire_bytes);
        let queued: u64 = queue.into_iter().flat_map(|q| q.packets()).map(transmission).sum();
        Time(committed + queued)
    }
}

/// The fault manager of Selective RED: tells hosts which of their flows have lost paths.
pub(super) struct FaultManager {
    acks: bool,
    /// Per pair of groups of hosts, source first; empty while no link is known to be down.
    lost: Vec<bool>,
}

impl FaultManager {
    /// None of the paths in use is missing.
    fn new(queue: &QueueSpec) -> Option<FaultManager> {
        match queue {
            QueueSpec::SelectiveRed(spec) => {
                Some(FaultManager { acks: spec.mark_acks, lost: vec![] })
            }
            _ => None,
        }
    }

    /// Whether this packet belongs to a flow that has lost paths, and is to say so.
    fn marks(&self, routes: &Routes, packet: &Packet) -> bool {
        let (src, dst) = (routes.group(packet.key.src()), routes.group(packet.key.dst()));
        // A flow is what its data packets cross, whichever way its acknowledgements go.
        let (source, destination) = match packet.flags.has(Flags::TO_SENDER) {
            true if !self.acks => return false,
            true => (dst, src),
            false => (src, dst),
        };
        self.lost.get(source * routes.groups() + destination).copied().unwrap_or(false)
    }
}

impl Fabric {
    pub fn new(scenario: &Scenario) -> Result<Fabric, RouteError> {
        let graph = &scenario.graph;
        let routes = Routes::new(graph)?;
        let queue = &scenario.scheme.queue;
        let (mut ports, mut ends, mut hops) = (vec![], vec![], vec![]);
        let mut scheduled = Scheduled::default();
        for link in &graph.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let number = ports.len() as u32;
                let (limit, discipline) = if from < graph.hosts {
                    (scenario.host.nic_queue, queue.discipline_of_hosts())
                } else {
                    let limit = link.queue_limit.unwrap_or(queue.limit());
                    let discipline = queue.discipline(number, limit, scenario.seed);
                    (queue.limit_in_all(limit), discipline)
                };
                if let QueueSpec::Pfabric(spec) = queue {
                    let schedules = spec.hosts || from >= graph.hosts;
                    scheduled.push(schedules.then(|| PriorityQueue::new(limit)));
                }
                ports.push(Port::with_discipline(link.rate, link.propagation, limit, discipline));
                ends.push(to);
                hops.push(Stage {
                    clocking: Clocking::new(link.rate),
                    propagation: link.propagation.0,
                    abreast: 1,
                });
            }
        }
        let salts = (0..graph.switches).map(ecmp::salt).collect();
        let (options, hosts) = (OptionStore::default(), graph.hosts);
        let balance = &scenario.scheme.balance;
        let layout = Layout { graph, routes: &routes, seed: scenario.seed };
        let mut balancer = Balancer::new(balance, layout);
        let hosts_mark = balancer.tinyflow().and_then(|flows| flows.hosts_mark());
        let manager = FaultManager::new(queue);
        Ok(Fabric {
            ports,
            routes,
            path_counts: PathCounts::default(),
            options,
            scheduled,
            ends,
            hosts,
            salts,
            balancer,
            hops,
            marking: hosts_mark.is_some(),
            hosts_mark,
            pools: Pools::new(&scenario.switch, graph),
            manager,
        })
    }

    /// Routing has settled: every switch uses `routes`, and the fault manager tells the hosts what was lost of `whole`.
    pub fn reroute(&mut self, graph: &Graph, whole: &Routes, routes: Routes) {
        self.routes = routes;
        self.path_counts = PathCounts::default();
        if let Some(manager) = &mut self.manager {
            manager.lost = whole.lost_paths(graph, &self.routes);
            self.marking = manager.lost.contains(&true) || self.hosts_mark.is_some();
        }
    }

    /// What a host marks on a packet before it leaves.
    #[cold]
    pub fn mark(&self, packet: &mut Packet, flow_bytes: u64) {
        if self.hosts_mark.is_some_and(|least| flow_bytes >= least.0)
            && packet.flags.has(Flags::DATA)
        {
            packet.flags = packet.flags | Flags::ELEPHANT;
        }
        if self.manager.as_ref().is_some_and(|manager| manager.marks(&self.routes, packet)) {
            packet.flags = packet.flags | Flags::LOST_PATHS;
        }
    }

    /// Whether the switch of `port` has memory for one more packet there; it needs none while the port is idle.
    #[cold]
    pub fn has_memory(&mut self, now: Time, port: PortId, bytes: u16) -> bool {
        let busy = self.ports[port as usize].busy_until() > now;
        let pools = self.pools.as_mut().expect("switches share their buffers");
        pools.admits(now.0, port, bytes) || !busy
    }

    /// A packet was accepted at `port`; it may have to wait in its switch's memory.
    #[cold]
    pub fn note_memory(&mut self, now: Time, port: PortId, bytes: u16) {
        let service = self.ports[port as usize].transmission_time(bytes);
        let begins = self.ports[port as usize].busy_until().0 - service;
        if let Some(pools) = self.pools.as_mut().filter(|_| begins > now.0) {
            pools.add(port, bytes, begins);
        }
    }

    /// What waits at `port` has changed under its switch's memory.
    pub fn recount_memory(&mut self, now: Time, port: PortId) {
        if let Some(pools) = &mut self.pools {
            pools.retime(port, &self.ports[port as usize].waiting_begins(now));
        }
    }

    /// How far ahead most events lie: the slowest link's time for a full packet.
    pub fn typical_delay(&self, bytes: u16) -> Time {
        let longest =
            self.hops.iter().map(|h| h.clocking.transmission(bytes) + h.propagation).max();
        Time(longest.unwrap_or(1))
    }

    #[inline]
    pub fn far_end(&self, port: PortId) -> Node {
        let node = self.ends[port as usize];
        if node < self.hosts {
            Node::Host(node)
        } else {
            Node::Switch(node - self.hosts)
        }
    }

    /// The port by which a packet leaves a switch.
    #[inline]
    pub fn egress(&mut self, now: Time, switch: u32, packet: &mut Packet) -> PortId {
        match self.routes.candidates(switch, packet.key.dst()) {
            [only] => *only,
            many => {
                let salt = self.salts[switch as usize];
                let queues = &Waiting { ports: &self.ports, scheduled: &self.scheduled };
                let choices = many.len() as u32;
                let fork = Fork { now, switch, salt, choices, ports: many, queues };
                many[self.balancer.pick(fork, packet) as usize]
            }
        }
    }

    /// The ports that packets with this key cross under ECMP: one of the shortest paths.
    pub fn path(&self, routes: &Routes, key: FlowKey) -> Vec<PortId> {
        let mut path = vec![routes.host_port(key.src())];
        while let Node::Switch(switch) = self.far_end(path[path.len() - 1]) {
            let candidates = routes.candidates(switch, key.dst());
            let pick = ecmp::pick(key.0, self.salts[switch as usize], candidates.len() as u32);
            path.push(candidates[pick as usize]);
        }
        path
    }

    /// The ports of all shortest paths from one host to another, by how many links come before them.
    pub fn layers(&self, routes: &Routes, src: u32, dst: u32) -> Vec<Vec<PortId>> {
        let mut layers = vec![vec![routes.host_port(src)]];
        loop {
            let mut next: Vec<PortId> = vec![];
            for &port in &layers[layers.len() - 1] {
                if let Node::Switch(switch) = self.far_end(port) {
                    next.extend(routes.candidates(switch, dst));
                }
            }
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return layers;
            }
            layers.push(next);
        }
    }

    /// How many shortest paths lead from one host to another; `u32::MAX` stands for that many or more.
    pub fn shortest_paths(&mut self, graph: &Graph, src: u32, dst: u32) -> u32 {
        self.path_counts.between(graph, &self.routes, src, dst)
    }

    /// A port as it was built.
    pub fn hop(&self, port: PortId) -> Stage {
        self.hops[port as usize]
    }
}
