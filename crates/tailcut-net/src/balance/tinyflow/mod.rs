//! TinyFlow (Xu, Li, LANMAN 2014): edge switches detect elephants among the flows of their hosts
//! and give each a new egress port every few kilobytes, so that it travels as a sequence of mice;
//! other flows use ECMP.
//!
//! The paper samples "every 100 KB" and calls a flow with two samples within 500 us an elephant.
//! Counted exactly on one port of 1 Gbps, which carries 62.5 KB in 500 us, that never happens;
//! counted on a whole switch, two elephants that alternate are missed. Random skips with that mean,
//! as sFlow draws them, detect a lone elephant within a few milliseconds: the default.

mod audit;
mod detector;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Time};

use self::audit::{Detection, DetectionAudit};
use self::detector::Detector;
use super::audit::Audit;
use super::hash::{self, Salts};
use super::{EdgeOnly, Layout, Pick, PickContext, Strategy};
use crate::component::SpecError;
use crate::packet::{Flags, FlowKey, Packet};
use crate::topology::{HostId, Routes, SwitchId};

/// Parameters of TinyFlow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TinyFlow {
    /// How edge switches detect elephants.
    pub detect: Detect,
    /// Bytes from one sample to the next; the mean where skips are random.
    pub sample_every: Bytes,
    /// Number of samples within `window` that make a flow an elephant.
    #[schemars(range(min = 1))]
    pub samples: u32,
    /// Time for which a sample counts.
    pub window: Time,
    /// Time from one poll of the per-flow counters to the next (`detect = "polled-counters"`).
    pub poll_every: Time,
    /// Size from which on a flow is an elephant in truth. Hosts mark such flows, and polled
    /// counters detect it. Samples do not depend on it: it decides which detections count as found,
    /// missed or mistaken.
    pub elephant: Bytes,
    /// Bytes of an elephant between changes of its egress port.
    pub reroute_every: Bytes,
    /// The field that is drawn anew.
    pub reroute: Reroute,
    /// Silence after which an elephant is a flow like any other again.
    pub forget: Time,
}

/// How edge switches detect elephants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detect {
    /// Samples with random skips, for each port that leads to a host.
    #[default]
    RandomSkip,
    /// Samples with random skips, over all traffic from the hosts of a switch.
    RandomSkipSwitch,
    /// Samples at exact intervals of bytes, for each port that leads to a host.
    ExactPort,
    /// Samples at exact intervals of bytes, over all traffic of a switch's hosts.
    ExactSwitch,
    /// Counters per flow, polled at intervals (as in Hedera).
    PolledCounters,
    /// Hosts mark the packets of large flows from the start (as in Mahout).
    HostMarked,
}

/// The field that is drawn anew for an elephant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reroute {
    /// The egress port at the edge switch.
    #[default]
    Egress,
    /// The source port in the packet, which all switches hash.
    ///
    /// The far edge restores the source port.
    FiveTuple,
}

impl Default for TinyFlow {
    fn default() -> Self {
        TinyFlow {
            detect: Detect::default(),
            sample_every: Bytes(100_000),
            samples: 2,
            window: Time::from_us(500),
            poll_every: Time::from_ms(5),
            elephant: Bytes(1_000_000),
            reroute_every: Bytes(10_000),
            reroute: Reroute::default(),
            forget: Time::from_ms(100),
        }
    }
}

impl Strategy for TinyFlow {
    type State = TinyFlows;

    fn check(&self) -> Result<(), SpecError> {
        let bytes = [
            ("sample_every", self.sample_every),
            ("elephant", self.elephant),
            ("reroute_every", self.reroute_every),
        ];
        for (field, value) in bytes {
            if value.0 == 0 || value.0 > 1 << 40 {
                let message = format!("{field} = \"{value}\": must be from \"1B\" to 1 TB");
                return Err(SpecError::new("tinyflow-bytes", field, message));
            }
        }
        let times =
            [("window", self.window), ("poll_every", self.poll_every), ("forget", self.forget)];
        for (field, value) in times {
            if value == Time::ZERO {
                let message = format!("{field} = \"{value}\": must be greater than 0");
                return Err(SpecError::new("tinyflow-time", field, message));
            }
        }
        if self.samples == 0 {
            let message = "samples = 0: must be at least 1";
            return Err(SpecError::new("tinyflow-samples", "samples", message)
                .hint("spraying gives every packet a path of its own: balance.kind = \"spray\""));
        }
        Ok(())
    }

    fn edge_only(&self) -> Option<EdgeOnly> {
        Some(EdgeOnly {
            code: "by-tier-tinyflow",
            kind: "tinyflow",
            name: "TinyFlow",
            why: "TinyFlow's section III-B: the rest of the network uses ECMP",
        })
    }

    fn state(&self, Layout { graph, routes, seed }: Layout<'_>) -> TinyFlows {
        TinyFlows::new(self, graph.switches, graph.hosts, routes, seed)
    }
}

/// The state of an elephant at its edge switch.
#[derive(Debug, Clone, Copy)]
struct Elephant {
    draw: u32,
    bytes: u64,
    last: Time,
}

/// The elephants that an edge switch knows.
#[derive(Debug, Clone)]
struct Edge {
    stream: RandomStream,
    elephants: BTreeMap<u64, Elephant>,
    purge_at: usize,
}

impl Edge {
    /// Makes a flow an elephant; its first path is drawn with the current packet.
    fn add(&mut self, key: FlowKey, now: Time) {
        self.elephants.insert(key.0, Elephant { draw: 0, bytes: u64::MAX, last: now });
    }

    /// Forgets silent elephants once the table has doubled since the last time.
    fn purge(&mut self, now: Time, forget: Time) {
        if self.elephants.len() > self.purge_at {
            self.elephants.retain(|_, e| now - e.last < forget);
            self.purge_at = 1_024.max(2 * self.elephants.len());
        }
    }
}

/// TinyFlow at every edge switch.
#[derive(Debug, Clone)]
pub struct TinyFlows {
    spec: TinyFlow,
    /// Edge switch of each host.
    edge_of: Vec<SwitchId>,
    edges: Vec<Edge>,
    salts: Salts,
    detector: Detector,
    ledger: DetectionAudit,
}

impl Pick for TinyFlows {
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        let PickContext { now, switch, choices, .. } = fork;
        let key = packet.key;
        if self.edge_of[key.src().index()] != switch || !self.is_elephant(now, switch, packet) {
            return hash::pick(key.0, self.salts.of(switch), choices);
        }
        let edge = &mut self.edges[switch.index()];
        let elephant = edge.elephants.get_mut(&key.0).expect("it is one");
        if elephant.bytes >= self.spec.reroute_every.0 {
            (elephant.draw, elephant.bytes) = (edge.stream.bits() as u32, 0);
            self.ledger.reroutes += 1;
        }
        elephant.bytes += u64::from(packet.wire_bytes);
        elephant.last = now;
        match self.spec.reroute {
            // Scaling the draw to the number of choices allows for routing to change that number.
            Reroute::Egress => ((u64::from(elephant.draw) * u64::from(choices)) >> 32) as u32,
            Reroute::FiveTuple => {
                let port = (elephant.draw >> 16) as u16;
                packet.key = key.rewritten(port);
                packet.flags = packet.flags | Flags::REWRITTEN;
                hash::pick(packet.key.0, self.salts.of(switch), choices)
            }
        }
    }

    fn large_flow_threshold(&self) -> Option<Bytes> {
        (self.spec.detect == Detect::HostMarked).then_some(self.spec.elephant)
    }

    fn audit(&mut self) -> Option<&mut dyn Audit> {
        Some(&mut self.ledger)
    }

    fn sees_all(&self) -> bool {
        true
    }

    /// Counts a packet that stays in the rack or has one path left, because hosts send such packets
    /// too.
    fn see(&mut self, now: Time, switch: SwitchId, packet: &Packet) {
        let key = packet.key;
        if self.edge_of[key.src().index()] != switch || !self.is_elephant(now, switch, packet) {
            return;
        }
        let edge = &mut self.edges[switch.index()];
        let elephant = edge.elephants.get_mut(&key.0).expect("it is one");
        elephant.bytes = elephant.bytes.saturating_add(packet.wire_bytes.into());
        elephant.last = now;
    }
}

impl TinyFlows {
    pub(crate) fn new(
        spec: &TinyFlow,
        switches: u32,
        hosts: u32,
        routes: &Routes,
        seed: u64,
    ) -> TinyFlows {
        let edge = |switch| Edge {
            stream: RandomStream::new(seed, u64::from(switch), "tinyflow"),
            elephants: BTreeMap::new(),
            purge_at: 1_024,
        };
        TinyFlows {
            spec: spec.clone(),
            edge_of: (0..hosts).map(|host| routes.edge_switch(HostId(host))).collect(),
            edges: (0..switches).map(edge).collect(),
            salts: Salts::drawn(seed),
            detector: Detector::new(spec, switches, hosts, seed),
            ledger: DetectionAudit::new(spec.elephant),
        }
    }

    /// Counts a packet that a host of this switch sends; returns whether its flow is taken for an
    /// elephant.
    fn is_elephant(&mut self, now: Time, switch: SwitchId, packet: &Packet) -> bool {
        let (key, edge) = (packet.key, &mut self.edges[switch.index()]);
        let seen = self.detector.observe(now, switch, packet, |other| {
            if !edge.elephants.contains_key(&other.key.0) {
                edge.add(other.key, now);
                self.ledger.news.push(other);
            }
        });
        if !seen && edge.elephants.is_empty() {
            return false;
        }
        let known = edge.elephants.get(&key.0);
        let forgotten = known.is_some_and(|e| now - e.last >= self.spec.forget);
        if known.is_some() && !forgotten {
            return true;
        }
        if seen {
            let (connection, acks) = (packet.connection, packet.flags.has(Flags::TO_SENDER));
            self.ledger.news.push(Detection { key, connection, at: now, acks });
            edge.add(key, now);
            edge.purge(now, self.spec.forget);
        } else if forgotten {
            edge.elephants.remove(&key.0);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::blind;
    use crate::packet::{ConnectionId, NO_OPTIONS, SeqField};
    use crate::topology::parallel_paths::ParallelPaths;

    fn at_edge(us: u64, choices: u32) -> PickContext<'static> {
        blind(Time::from_us(us), SwitchId(0), choices)
    }

    fn tinyflows(spec: &TinyFlow) -> TinyFlows {
        let graph = ParallelPaths::default().build().expect("the parameters are valid");
        let routes = Routes::new(&graph).expect("it is connected");
        TinyFlows::new(spec, graph.switches, graph.hosts, &routes, 1)
    }

    fn packet(src: HostId, sport: u16) -> Packet {
        Packet {
            key: FlowKey::new(src, HostId(2), sport, 5_000),
            connection: ConnectionId(u32::from(sport)),
            seq: SeqField::new(0),
            options: NO_OPTIONS,
            wire_bytes: 1_500,
            flags: Flags::DATA,
        }
    }

    /// Sends full packets at 1 Gbps, of `flows` of hosts in turn, for `ms` milliseconds. Returns
    /// the times of detection in microseconds.
    fn detections(detect: Detect, flows: &[(u32, u16)], ms: u64) -> Vec<(u16, u64)> {
        let mut tinyflows = tinyflows(&TinyFlow { detect, ..TinyFlow::default() });
        let interval = 12 / flows.len() as u64;
        for (index, us) in (0..ms * 1_000).step_by(interval as usize).enumerate() {
            let (src, sport) = flows[index % flows.len()];
            tinyflows.pick(at_edge(us, 2), &mut packet(HostId(src), sport));
        }
        let news = tinyflows.ledger.news.iter();
        news.map(|d| (d.key.sport(), d.at.as_ns() / 1_000)).collect()
    }

    /// Two samples of 100 KB within 500 us: a port of 1 Gbps carries 62.5 KB in that time.
    #[test]
    fn exact_sampling_of_a_port_never_finds_an_elephant() {
        assert_eq!(detections(Detect::ExactPort, &[(0, 7)], 100), []);
    }

    #[test]
    fn random_skips_find_a_lone_elephant_within_milliseconds() {
        let found = detections(Detect::RandomSkip, &[(0, 7)], 100);
        assert_eq!(found.len(), 1);
        assert!(found[0].1 < 20_000, "{found:?}");
    }

    #[test]
    fn exact_sampling_of_a_switch_rarely_finds_elephants_that_share_it() {
        // Two ports carry 125 KB in 500 us: consecutive samples fall on the same flow only now and
        // then.
        let found = detections(Detect::ExactSwitch, &[(0, 7), (1, 8)], 200);
        let expected = detections(Detect::RandomSkipSwitch, &[(0, 7), (1, 8)], 200);
        assert!(found.len() <= expected.len());
        assert_eq!(expected.len(), 2);
    }

    #[test]
    fn polled_counters_find_a_flow_at_the_poll_after_it_has_grown_large() {
        // 1 MB at 1 Gbps takes 8 ms, frames included: the poll at 10 ms finds it.
        assert_eq!(detections(Detect::PolledCounters, &[(0, 7)], 30), [(7, 10_008)]);
    }

    #[test]
    fn marked_flows_are_elephants_from_their_first_packet() {
        let mut tinyflows =
            tinyflows(&TinyFlow { detect: Detect::HostMarked, ..TinyFlow::default() });
        let mut marked = packet(HostId(0), 7);
        marked.flags = marked.flags | Flags::LARGE_FLOW;
        tinyflows.pick(at_edge(0, 2), &mut packet(HostId(0), 8));
        assert!(tinyflows.ledger.news.is_empty());
        tinyflows.pick(at_edge(0, 2), &mut marked);
        assert_eq!(tinyflows.ledger.news.len(), 1);
    }

    fn elephant_path(reroute: Reroute) -> (Vec<u32>, Vec<Packet>, u64) {
        let spec = TinyFlow { detect: Detect::HostMarked, reroute, ..TinyFlow::default() };
        let mut tinyflows = tinyflows(&spec);
        let picks = (0..2_800).map(|_| {
            let mut marked = packet(HostId(0), 7);
            marked.flags = marked.flags | Flags::LARGE_FLOW;
            (tinyflows.pick(at_edge(0, 8), &mut marked), marked)
        });
        let (ports, packets) = picks.unzip();
        (ports, packets, tinyflows.ledger.reroutes)
    }

    #[test]
    fn an_elephant_draws_a_new_port_every_ten_kilobytes_uniformly() {
        let (ports, _, reroutes) = elephant_path(Reroute::Egress);
        // Seven packets of 1,500 bytes reach 10 KB.
        assert!(ports.chunks(7).all(|stretch| stretch.iter().all(|port| *port == stretch[0])));
        assert_eq!(reroutes, 400);
        let count = |port| ports.iter().filter(|p| **p == port).count() as f64 / 7.0;
        let chi2: f64 = (0..8).map(|port| (count(port) - 50.0).powi(2) / 50.0).sum();
        assert!(chi2 < 24.32, "chi-squared {chi2} exceeds the 0.1 % point of 7 degrees of freedom");
    }

    #[test]
    fn five_tuple_rewriting_changes_only_the_source_port_and_sets_the_flag() {
        let (_, packets, _) = elephant_path(Reroute::FiveTuple);
        assert!(packets.iter().all(|p| p.flags.has(Flags::REWRITTEN)));
        assert!(packets
            .iter()
            .all(|p| (p.key.src(), p.key.dst(), p.key.dport()) == (HostId(0), HostId(2), 5_000)));
        let mut ports: Vec<u16> = packets.iter().map(|p| p.key.sport()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert!(ports.len() > 350, "{} source ports for 400 stretches", ports.len());
    }

    #[test]
    fn a_switch_that_is_not_the_edge_of_the_source_uses_ecmp() {
        let mut tinyflows =
            tinyflows(&TinyFlow { detect: Detect::HostMarked, ..TinyFlow::default() });
        let mut marked = packet(HostId(0), 7);
        marked.flags = marked.flags | Flags::LARGE_FLOW;
        let switch = SwitchId(1);
        let pick = tinyflows.pick(PickContext { switch, ..at_edge(0, 8) }, &mut marked);
        let hashed = hash::pick(marked.key.0, Salts::drawn(1).of(switch), 8);
        assert_eq!((pick, tinyflows.ledger.news.len()), (hashed, 0));
    }
}
