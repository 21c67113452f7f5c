//! What to expect of a run before it is run.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tailcut_engine::Time;
use tailcut_net::topology::{Graph, RouteError, Routes};
use tailcut_net::traffic::demand::Demand;
use tailcut_net::traffic::offered::offered;
use tailcut_net::traffic::Flow;

use crate::sections::Config;

/// The speed that time estimates assume, in packet-hops per second on one core.
pub const PACKET_HOPS_PER_SECOND: u64 = 10_000_000;

/// Sizes and estimates of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Hosts of the network.
    pub hosts: u64,
    /// Its switches.
    pub switches: u64,
    /// Its full-duplex links.
    pub links: u64,
    /// What all host links together can send, in bits per second.
    pub host_capacity_bps: u64,
    /// Flows that start.
    pub flows: u64,
    /// Flows between whose hosts there are several equal-cost paths.
    #[serde(default)]
    pub flows_with_choice: u64,
    /// Application bytes of all flows.
    pub offered_bytes: u64,
    /// The most of them that the hosts' links could carry before the run ends.
    pub carriable_bytes: u64,
    /// Packets that carry them, acknowledgements and replicas included, if none is lost.
    pub expected_packets: u64,
    /// The links that these packets cross, added up.
    pub expected_packet_hops: u64,
    /// Seconds on one core at [`PACKET_HOPS_PER_SECOND`].
    pub estimated_seconds: f64,
    /// Memory that the run adds to its process at its peak.
    pub estimated_memory_bytes: u64,
}

/// A network and its routes.
pub struct Network {
    /// The network.
    pub graph: Graph,
    routes: Routes,
}

impl Network {
    /// Routes a network.
    ///
    /// # Errors
    /// When there is no path between two hosts.
    pub fn new(graph: Graph) -> Result<Network, RouteError> {
        let routes = Routes::new(&graph)?;
        Ok(Network { graph, routes })
    }

    /// The links between the hosts of a flow, and whether there are several paths as short.
    fn hops(&self, flow: &Flow) -> (u8, bool) {
        let mut node = self.graph.far_end(self.routes.host_port(flow.src));
        let (mut hops, mut has_choice) = (1u8, false);
        while let Some(switch) = self.graph.switch(node) {
            let ports = self.routes.candidates(switch, flow.dst);
            has_choice |= ports.len() > 1;
            node = self.graph.far_end(ports[0]);
            hops = hops.saturating_add(1);
        }
        (hops, has_choice)
    }
}

/// The flows of a run on their network, summed up for several schemes.
pub struct Workload {
    network: Rc<Network>,
    flows: Vec<Flow>,
    /// Links between source and destination, per flow.
    hops: Vec<u8>,
    flows_with_choice: u64,
    offered_bytes: u64,
    carriable_bytes: u64,
}

impl Workload {
    /// Works out the path length of every flow, and what can be carried until `end`.
    pub fn new(network: &Rc<Network>, demand: Demand, end: Time) -> Workload {
        let mut flows = demand.flows;
        // Flows that wait are counted from the earliest time at which they could start.
        flows.sort_by_key(|flow| flow.start);
        let ways: Vec<(u8, bool)> = flows.iter().map(|flow| network.hops(flow)).collect();
        let totals = offered(&flows, &network.graph.host_rates(), end);
        Workload {
            network: Rc::clone(network),
            flows,
            hops: ways.iter().map(|(hops, _)| *hops).collect(),
            flows_with_choice: ways.iter().filter(|(_, has_choice)| *has_choice).count() as u64,
            offered_bytes: totals.bytes,
            carriable_bytes: totals.carriable_bytes,
        }
    }

    /// Bytes of the largest flow.
    pub fn largest_flow(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
    }

    /// Whether there is a flow with this identifier.
    pub fn has_flow(&self, id: u64) -> bool {
        self.flows.iter().any(|flow| flow.id == id)
    }

    /// What to expect when `config`'s scheme carries these flows.
    pub fn facts(&self, config: &Config) -> Facts {
        let tcp = config.scheme.transport.segments();
        let policy = config.scheme.replicate.policy();
        // SYN, SYN-ACK and ACK; and the FIN's answer. A connection that loses costs a SYN, its answer and a reset.
        const SETUP: f64 = 3.0;
        const CLOSE: f64 = 1.0;
        const ABANDONED: f64 = 3.0;
        let carried = self.carriable_bytes as f64 / self.offered_bytes.max(1) as f64;
        let (mut packets, mut packet_hops) = (0.0, 0.0);
        for (flow, &hops) in self.flows.iter().zip(&self.hops) {
            let data = (flow.bytes as f64 * carried / tcp.mss.0 as f64).ceil();
            let once = data + (data / f64::from(tcp.ack_every)).ceil() + SETUP + CLOSE;
            let carriage = policy.carriage(flow.bytes);
            let copy = if carriage.all_send { once } else { ABANDONED };
            let pieces = carriage
                .piece
                .map_or(1.0, |piece| (flow.bytes as f64 * carried / piece as f64).ceil());
            let again = (pieces - 1.0).max(0.0) * (SETUP + CLOSE);
            let all = once + again + copy * carriage.further;
            packets += all;
            packet_hops += all * f64::from(hops);
        }
        Facts {
            hosts: u64::from(self.network.graph.hosts),
            switches: u64::from(self.network.graph.switches),
            links: self.network.graph.links.len() as u64,
            host_capacity_bps: self.network.graph.host_rates().iter().map(|rate| rate.0).sum(),
            flows: self.flows.len() as u64,
            flows_with_choice: self.flows_with_choice,
            offered_bytes: self.offered_bytes,
            carriable_bytes: self.carriable_bytes,
            expected_packets: packets as u64,
            expected_packet_hops: packet_hops as u64,
            estimated_seconds: packet_hops / PACKET_HOPS_PER_SECOND as f64,
            estimated_memory_bytes: super::memory::estimate(
                config,
                &self.network.graph,
                &self.flows,
            ),
        }
    }
}
