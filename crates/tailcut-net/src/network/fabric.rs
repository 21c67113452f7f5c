//! Ports, wires and switches: how a packet gets from port to port.

use tailcut_engine::Time;

use crate::amount::Limit;
use crate::balance::ecmp;
use crate::measure::ideal::Hop;
use crate::packet::{FlowKey, OptionStore, Packet};
use crate::port::{Clocking, Port};
use crate::queue::QueueSpec;
use crate::scenario::Scenario;
use crate::topology::{PortId, RouteError, Routes};

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
    pub options: OptionStore,
    /// Node at the far end of each port: hosts, then switches.
    ends: Vec<u32>,
    hosts: u32,
    salts: Vec<u64>,
    hops: Vec<Hop>,
}

impl Fabric {
    pub fn new(scenario: &Scenario) -> Result<Fabric, RouteError> {
        let graph = &scenario.graph;
        let routes = Routes::new(graph)?;
        let QueueSpec::DropTail(drop_tail) = &scenario.scheme.queue;
        let (mut ports, mut ends, mut hops) = (vec![], vec![], vec![]);
        for link in &graph.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let limit: Limit = if from < graph.hosts {
                    scenario.host.nic_queue
                } else {
                    link.queue_limit.unwrap_or(drop_tail.limit)
                };
                ports.push(Port::new(link.rate, link.propagation, limit));
                ends.push(to);
                hops.push(Hop { clocking: Clocking::new(link.rate), propagation: link.propagation.0 });
            }
        }
        let salts = (0..graph.switches).map(ecmp::salt).collect();
        let options = OptionStore::default();
        Ok(Fabric { ports, routes, options, ends, hosts: graph.hosts, salts, hops })
    }

    /// How far ahead most events lie: the slowest link's time for a full packet.
    pub fn typical_delay(&self, bytes: u16) -> Time {
        let longest = self.hops.iter().map(|h| h.clocking.transmission(bytes) + h.propagation).max();
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
    pub fn egress(&self, switch: u32, packet: &Packet) -> PortId {
        self.egress_of(switch, packet.key)
    }

    #[inline]
    fn egress_of(&self, switch: u32, key: FlowKey) -> PortId {
        let candidates = self.routes.candidates(switch, key.dst());
        match candidates {
            [only] => *only,
            many => many[ecmp::pick(key.0, self.salts[switch as usize], many.len() as u32) as usize],
        }
    }

    /// The ports that packets with this key cross.
    pub fn path(&self, key: FlowKey) -> Vec<PortId> {
        let mut path = vec![self.routes.host_port(key.src())];
        while let Node::Switch(switch) = self.far_end(path[path.len() - 1]) {
            path.push(self.egress_of(switch, key));
        }
        path
    }

    pub fn hop(&self, port: PortId) -> Hop {
        self.hops[port as usize]
    }
}
