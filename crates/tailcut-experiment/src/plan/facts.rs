//! Sizes and estimates of a run, known before it starts.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tailcut_engine::Time;
use tailcut_engine::random::mix;
use tailcut_net::topology::{Graph, PortId, RouteError, Routes};
use tailcut_net::traffic::demand::Demand;
use tailcut_net::traffic::offered::offered;
use tailcut_net::traffic::{Flow, FlowIndex};
use tailcut_net::transport::TransportSpec;
use tailcut_net::{FlowSpan, schedule};

use super::notes;
use crate::sections::Config;

/// The speed that time estimates assume, in packet-hops per second on one core.
pub const PACKET_HOPS_PER_SECOND: u64 = 10_000_000;

/// Sizes and estimates of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEstimates {
    /// The number of hosts.
    pub hosts: u64,
    /// The number of switches.
    pub switches: u64,
    /// The number of full-duplex links.
    pub links: u64,
    /// The rate of all host links together, in bits per second.
    pub host_capacity_bps: u64,
    /// The number of flows.
    pub flows: u64,
    /// The number of flows with several equal-cost paths.
    #[serde(default)]
    pub flows_with_choice: u64,
    /// The application bytes of all flows.
    pub offered_bytes: u64,
    /// The most application bytes that the hosts' links could carry before the run ends.
    pub carriable_bytes: u64,
    /// The number of packets for these bytes if none is lost, acknowledgements and replicas
    /// included.
    pub expected_packets: u64,
    /// The number of links that these packets cross, added up.
    pub expected_packet_hops: u64,
    /// The run's duration in seconds on one core, at [`PACKET_HOPS_PER_SECOND`].
    pub estimated_seconds: f64,
    /// The memory in bytes that the run adds to its process at its peak.
    pub estimated_memory_bytes: u64,
    /// A fingerprint of the flows: equal for equal hosts, sizes and times.
    #[serde(default)]
    pub demand: u64,
    /// Whether anything but the flows depends on the seed.
    #[serde(default = "yes")]
    pub draws: bool,
    /// Sentences about effects of the configuration that its author may not expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Sentences that say when routing learns of each failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routing: Vec<String>,
}

fn yes() -> bool {
    true
}

/// A network with its routes.
pub struct RoutedGraph {
    /// The network.
    pub graph: Graph,
    routes: Routes,
}

impl RoutedGraph {
    /// Computes the routes of a network.
    ///
    /// # Errors
    /// If two hosts have no path between them.
    pub fn new(graph: Graph) -> Result<RoutedGraph, RouteError> {
        let routes = Routes::new(&graph)?;
        Ok(RoutedGraph { graph, routes })
    }

    fn way(&self, flow: &Flow) -> Way {
        let time = |port: PortId| {
            let link = &self.graph.links[port.link()];
            Time(link.propagation.0.saturating_add(link.rate.transmission_time(SYN).0))
        };
        let first = self.routes.host_port(flow.src);
        let mut node = self.graph.far_end(first);
        let mut way = Way { hops: 1, has_choice: false, syn: time(first) };
        while let Some(switch) = self.graph.switch(node) {
            let ports = self.routes.candidates(switch, flow.dst);
            way.has_choice |= ports.len() > 1;
            way.syn += ports.iter().map(|port| time(*port)).max().unwrap_or(Time::ZERO);
            way.hops = way.hops.saturating_add(1);
            node = self.graph.far_end(ports[0]);
        }
        way
    }
}

/// The size in bytes of a SYN with its options on the wire.
const SYN: u64 = 98;

/// A shortest path of a flow.
struct Way {
    /// The number of links.
    hops: u8,
    /// Whether there are several paths of this length.
    has_choice: bool,
    /// The time that a SYN takes without queueing, over the slowest link at each hop.
    syn: Time,
}

/// The flows of a run on their network, with sums that several schemes share.
pub struct RunFlows {
    network: Rc<RoutedGraph>,
    pub(super) flows: Vec<Flow>,
    /// When each flow is under way, by an estimate; `None` if no flow waits for others.
    pub(super) spans: Option<Vec<FlowSpan>>,
    /// The number of rows and dependencies of jobs.
    pub(super) jobs: JobSizes,
    /// The number of links between source and destination, per flow.
    hops: Vec<u8>,
    flows_with_choice: u64,
    /// The longest time of a SYN and its answer without queueing.
    round_trip: Time,
    /// The end of the run.
    end: Time,
    demand: u64,
    offered_bytes: u64,
    carriable_bytes: u64,
}

/// The numbers of what jobs consist of beside flows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JobSizes {
    pub dependencies: u64,
    pub computations: u64,
}

impl RunFlows {
    /// Computes the path length of every flow, when flows that wait for others are under way, and
    /// the bytes that can be carried until `end`.
    pub fn new(network: &Rc<RoutedGraph>, demand: Demand, end: Time) -> RunFlows {
        let Demand { flows, jobs, .. } = demand;
        let rates = network.graph.host_rates();
        let ways: Vec<Way> = flows.iter().map(|flow| network.way(flow)).collect();
        let latency = |flow: FlowIndex| ways[flow.index()].syn;
        let spans = (!jobs.is_empty()).then(|| schedule(&flows, &jobs, &rates, &latency, end));
        // A flow that waits for others counts from its earliest possible start.
        let mut by_start: Vec<&Flow> = flows.iter().collect();
        by_start.sort_by_key(|flow| flow.start);
        let totals = offered(by_start.iter().copied(), &rates, end);
        RunFlows {
            network: Rc::clone(network),
            demand: fingerprint(&by_start),
            spans,
            jobs: JobSizes {
                dependencies: (jobs.edges.len() + jobs.computed.len()) as u64,
                computations: jobs.computations.len() as u64,
            },
            hops: ways.iter().map(|way| way.hops).collect(),
            flows_with_choice: ways.iter().filter(|way| way.has_choice).count() as u64,
            round_trip: Time(2 * ways.iter().map(|way| way.syn.0).max().unwrap_or(0)),
            end,
            offered_bytes: totals.bytes,
            carriable_bytes: totals.carriable_bytes,
            flows,
        }
    }

    /// Returns the bytes of the largest flow of more than `above` and up to `up_to` bytes.
    pub fn largest_flow(&self, above: u64, up_to: u64) -> Option<u64> {
        let sizes = self.flows.iter().map(|flow| flow.bytes);
        sizes.filter(|&bytes| bytes > above && bytes <= up_to).max()
    }

    /// Returns whether there is a flow with this identifier.
    pub fn has_flow(&self, id: u64) -> bool {
        self.flows.iter().any(|flow| flow.id == id)
    }

    /// Returns the facts of a run in which `config`'s scheme carries these flows with this seed.
    pub fn facts(&self, config: &Config, seed: u64) -> RunEstimates {
        let transport = &config.scheme.transport;
        let carriers: Vec<(&TransportSpec, u64)> =
            transport.carriers().into_iter().map(|one| (one, one.segment_spec().mss.0)).collect();
        let policy = &config.scheme.replicate;
        // Packets of a replica that is abandoned (SYN, SYN-ACK, RST).
        const ABANDONED: f64 = 3.0;
        let spans = self.spans.as_deref();
        let begun = |at: usize| spans.map_or(1.0, |all| all[at].share_until(self.end));
        let shares = self.flows.iter().enumerate().map(|(at, flow)| flow.bytes as f64 * begun(at));
        let carried = (self.carriable_bytes as f64 / shares.sum::<f64>().max(1.0)).min(1.0);
        let (mut packets, mut packet_hops) = (0.0, 0.0);
        for (at, (flow, &hops)) in self.flows.iter().zip(&self.hops).enumerate() {
            let bytes = flow.bytes as f64 * begun(at) * carried;
            if bytes == 0.0 {
                continue;
            }
            let (transport, mss) = carriers[transport.carrier_of(flow, seed)];
            let carriage = policy.replication_plan(flow.bytes);
            let pieces = carriage.piece.map_or(1.0, |piece| (bytes / piece as f64).ceil());
            let segments = (bytes / mss as f64).ceil();
            let of_a_piece = transport.packets_beside_data((segments / pieces).ceil() as u64);
            let once = segments + pieces * of_a_piece as f64;
            let copy = if carriage.all_send { once } else { ABANDONED };
            let all = once + copy * carriage.expected_extra_copies;
            packets += all;
            packet_hops += all * f64::from(hops);
        }
        RunEstimates {
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
                self,
                seed,
            ),
            demand: self.demand,
            draws: notes::draws(config, &self.network.graph, self.flows_with_choice > 0),
            notes: self.notes(config),
            routing: notes::routing(config),
        }
    }
}

impl RunFlows {
    fn notes(&self, config: &Config) -> Vec<String> {
        let RoutedGraph { graph, routes } = &*self.network;
        let choice = self.flows_with_choice > 0;
        let mut notes = notes::notes(config, graph, routes, self.round_trip, choice);
        let longest = self.hops.iter().max();
        let farthest = self.flows.iter().zip(&self.hops).find(|(_, hops)| Some(*hops) == longest);
        if let Some((flow, _)) = farthest.filter(|_| choice) {
            notes.extend(notes::entropy(config, graph, routes, flow));
        }
        notes
    }
}

/// Returns a hash of the flows in 48 bits, which every JSON reader represents exactly.
fn fingerprint(flows: &[&Flow]) -> u64 {
    let of = |all, flow: &Flow| {
        let ends = u64::from(flow.src.0) << 32 | u64::from(flow.dst.0);
        [flow.id, ends, flow.bytes, flow.start.0].iter().fold(all, |all, part| mix(all ^ part))
    };
    flows.iter().fold(1, |all, flow| of(all, flow)) >> 16
}
