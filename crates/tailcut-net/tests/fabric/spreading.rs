//! ECMP spreads many flows evenly at every tier, independently between tiers, and keeps each flow
//! on its path.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::json;
use tailcut_engine::{RandomStream, Rate, Time};
use tailcut_net::balance::hash::{self, Salting, Salts};
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::network::simulate_observed;
use tailcut_net::packet::{Flags, FlowKey};
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::{Graph, HostId, NodeId, PortId, Routes, SwitchId};
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::traffic::demand::Jobs;

use crate::fabric::statistics::{assert_even, assert_independent, chi_squared, chi_squared_limit};
use crate::fabric::topologies;

fn fat_tree(k: u32) -> Graph {
    topologies::build(json!({"kind": "fat-tree", "k": k})).unwrap()
}

/// Returns the switches on the way up, each with the number of the equal-cost port that a flow
/// takes there.
fn choices(graph: &Graph, routes: &Routes, key: FlowKey, salting: Salting) -> Vec<(SwitchId, u32)> {
    let mut taken = vec![];
    let mut port = routes.host_port(key.src());
    loop {
        let Some(switch) = graph.switch(graph.far_end(port)) else { return taken };
        let candidates = routes.candidates(switch, key.dst());
        let count = candidates.len() as u32;
        let salt = Salts::of_run(salting, 1).of(switch);
        let choice = hash::pick(key.0, salt, count);
        if count > 1 {
            taken.push((switch, choice));
        }
        port = candidates[choice as usize];
    }
}

/// Returns flows between pods with the consecutive port numbers that hosts use.
fn inter_pod_keys(graph: &Graph, count: u64) -> Vec<FlowKey> {
    let mut stream = RandomStream::new(1, 0, "test");
    let pod = graph.pods().of_host;
    let mut keys = vec![];
    while (keys.len() as u64) < count {
        let hosts = u64::from(graph.hosts);
        let (src, dst) = (stream.below(hosts) as u32, stream.below(hosts) as u32);
        if pod[src as usize] != pod[dst as usize] {
            keys.push(FlowKey::new(
                HostId(src),
                HostId(dst),
                1024 + (keys.len() % 60_000) as u16,
                5000,
            ));
        }
    }
    keys
}

#[test]
fn every_switch_spreads_flows_evenly_and_independently_of_the_tier_below() {
    let graph = fat_tree(8);
    let routes = Routes::new(&graph).unwrap();
    let mut by_switch: BTreeMap<SwitchId, Vec<u64>> = BTreeMap::new();
    let mut edge_and_agg = vec![vec![0; 4]; 4];
    for key in inter_pod_keys(&graph, 200_000) {
        let taken = choices(&graph, &routes, key, Salting::Seed);
        let [(edge, first), (agg, second)] = taken[..] else {
            panic!("two choices between pods: {taken:?}")
        };
        by_switch.entry(edge).or_insert_with(|| vec![0; 4])[first as usize] += 1;
        by_switch.entry(agg).or_insert_with(|| vec![0; 4])[second as usize] += 1;
        edge_and_agg[first as usize][second as usize] += 1;
    }
    assert_eq!(by_switch.len(), 64, "every edge and aggregation switch chooses");
    for (switch, counts) in &by_switch {
        assert_even(counts, &format!("uplinks of switch {switch}"));
    }
    assert_independent(&edge_and_agg, "choices at edge and aggregation");
    assert_even(&edge_and_agg.concat(), "the sixteen paths between pods");
}

/// Without a salt per switch, the second choice repeats the first: hash polarisation.
#[test]
fn without_salts_the_second_tier_repeats_the_choice_of_the_first() {
    let graph = fat_tree(8);
    let routes = Routes::new(&graph).unwrap();
    let mut paths = vec![0; 16];
    for key in inter_pod_keys(&graph, 20_000) {
        let taken = choices(&graph, &routes, key, Salting::None);
        paths[(taken[0].1 * 4 + taken[1].1) as usize] += 1;
    }
    assert!(chi_squared(&paths) > 10.0 * chi_squared_limit(15));
    assert_eq!(paths.iter().filter(|&&count| count > 0).count(), 4, "4 of 16 paths are used");
}

/// RepFlow: copies that differ in the destination port share the first uplink with probability 2/k
/// and the whole way up with (2/k)^2.
#[test]
fn copies_share_links_as_often_as_two_independent_hashes() {
    for k in [4, 8] {
        let graph = fat_tree(k);
        let routes = Routes::new(&graph).unwrap();
        let n = 40_000;
        let (mut first, mut both) = (0, 0);
        for key in inter_pod_keys(&graph, n) {
            let copy = FlowKey::new(key.src(), key.dst(), key.sport(), key.dport() + 1);
            let (a, b) = (
                choices(&graph, &routes, key, Salting::Seed),
                choices(&graph, &routes, copy, Salting::Seed),
            );
            first += u32::from(a[0] == b[0]);
            both += u32::from(a == b);
        }
        let share = 2.0 / f64::from(k);
        for (count, p) in [(first, share), (both, share * share)] {
            let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
            assert!(
                (f64::from(count) - mean).abs() < 3.5 * deviation,
                "k = {k}: {count} instead of {mean}"
            );
        }
    }
}

/// Records the port that each connection takes at each node, and the SYNs by port.
#[derive(Default)]
struct Paths {
    taken: BTreeMap<(u64, u8, bool), BTreeMap<PortId, u64>>,
    syns: BTreeMap<PortId, u64>,
    dropped: u64,
}

impl Observer for Paths {
    fn link_accepts(&mut self, _now: Time, link: PortId, _departs: Time, packet: &PacketView) {
        let back = packet.flags.has(Flags::TO_SENDER);
        *self
            .taken
            .entry((packet.flow, packet.copy, back))
            .or_default()
            .entry(link)
            .or_default() += 1;
        if packet.flags.has(Flags::SYN) && !back {
            *self.syns.entry(link).or_default() += 1;
        }
    }
    fn dropped(&mut self, _now: Time, _link: PortId, _packet: &PacketView) {
        self.dropped += 1;
    }
}

fn run(graph: &Graph, traffic: serde_json::Value, scheme: serde_json::Value) -> (Outcome, Paths) {
    run_with(graph, traffic, scheme, FaultsSpec::default())
}

fn run_with(
    graph: &Graph,
    traffic: serde_json::Value,
    scheme: serde_json::Value,
    faults: FaultsSpec,
) -> (Outcome, Paths) {
    let scenario = Scenario { faults, ..scenario(graph, traffic, scheme) };
    simulate_observed(&scenario, Paths::default(), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn scenario(graph: &Graph, traffic: serde_json::Value, scheme: serde_json::Value) -> Scenario {
    let horizon = Horizon { arrivals: Time::from_ms(20), drain: Time::from_ms(100) };
    let traffic: TrafficSpec = serde_json::from_value(traffic).unwrap();
    let flows = traffic.generate(graph, &horizon, 1, &|_: &str| unreachable!()).unwrap().flows;
    let scheme: Scheme = serde_json::from_value(scheme).unwrap();
    Scenario {
        faults: FaultsSpec::default(),
        switch: SwitchSpec::default(),
        graph: graph.clone(),
        host: HostSpec::default(),
        scheme,
        flows,
        horizon,
        seed: 1,
        jobs: Jobs::default(),
        series: SeriesSpec::default(),
        max_port_samples: 0,
    }
}

#[test]
fn a_run_spreads_its_flows_evenly_at_every_tier() {
    let graph = fat_tree(4);
    let traffic = json!({"kind": "poisson", "sizes": "2KB", "load": 0.3, "pairs": "inter-pod"});
    let (outcome, paths) = run(&graph, traffic, json!({}));
    assert!(outcome.flows.len() > 5_000 && paths.dropped == 0);
    // The uplinks of a switch appear together among the links; SYNs travel up on even ports.
    for tier in [1, 2] {
        let uplinks: Vec<PortId> = (0..graph.links.len())
            .filter(|&link| graph.links[link].tier == tier)
            .map(|link| PortId::both_directions(link)[0])
            .collect();
        let of_switch = uplinks.chunks(2).map(|ports| {
            assert_eq!(graph.links[ports[0].link()].a, graph.links[ports[1].link()].a);
            chi_squared(&ports.iter().map(|port| paths.syns[port]).collect::<Vec<_>>())
        });
        // Counts of eight switches with two uplinks each, together.
        let statistic: f64 = of_switch.sum();
        assert!(statistic < chi_squared_limit(8), "uplinks of tier {tier}: {statistic}");
    }
}

/// Returns the links that each flow's first copy crosses to its receiver.
fn ways(scheme: serde_json::Value, seed: u64) -> BTreeMap<u64, Vec<PortId>> {
    let flows: Vec<_> = (0..8).map(|n| json!({"src": n, "dst": n + 8, "bytes": "20KB"})).collect();
    let traffic = json!({"kind": "trace", "flows": flows});
    let scenario = Scenario { seed, ..scenario(&fat_tree(4), traffic, scheme) };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (_, paths) = simulate_observed(&scenario, Paths::default(), go_on).unwrap();
    let first = paths.taken.into_iter().filter(|((_, copy, back), _)| *copy == 0 && !back);
    first.map(|((flow, _, _), ports)| (flow, ports.into_keys().collect())).collect()
}

#[test]
fn flows_of_a_trace_take_other_paths_under_another_seed_unless_salts_are_fixed() {
    let salts = |salt: &str| json!({"balance": {"kind": "ecmp", "salt": salt}});
    assert_ne!(ways(salts("seed"), 1), ways(salts("seed"), 2));
    assert_eq!(ways(salts("fixed"), 1), ways(salts("fixed"), 2));
    let tinyflow = || json!({"balance": {"kind": "tinyflow"}});
    assert_ne!(ways(tinyflow(), 1), ways(tinyflow(), 2));
}

#[test]
fn schemes_of_one_seed_share_the_salts() {
    let plain = ways(json!({}), 3);
    assert_eq!(ways(json!({"replicate": {"kind": "repflow"}}), 3), plain);
    assert_eq!(ways(json!({"balance": {"kind": "tinyflow"}}), 3), plain, "mice are hashed");
}

#[test]
fn a_run_keeps_every_connection_on_its_path_and_every_packet_accounted_for() {
    let graph = fat_tree(4);
    let traffic = json!({"kind": "poisson", "sizes": "web-search", "load": 0.6});
    let repflow = json!({"replicate": {"kind": "repflow"}, "queue": {"kind": "drop-tail", "limit": "20packets"}});
    let (outcome, paths) = run(&graph, traffic, repflow);
    assert!(paths.dropped > 0, "the queues are short enough to overflow");
    for ((flow, copy, back), ports) in &paths.taken {
        let mut tails: Vec<NodeId> =
            ports.keys().map(|port| graph.far_end(port.reversed())).collect();
        tails.sort_unstable();
        let nodes = tails.len();
        tails.dedup();
        assert_eq!(
            tails.len(),
            nodes,
            "flow {flow} copy {copy} (back: {back}) left a node by two ports"
        );
    }
    let counters = outcome.counters;
    assert_eq!(counters.dropped, paths.dropped);
    assert_eq!(counters.sent, counters.delivered + counters.dropped + counters.in_flight);
    let crossed: u64 = outcome.tiers.iter().map(|tier| tier.packets).sum();
    let seen: u64 = paths.taken.values().flat_map(|ports| ports.values()).sum();
    assert_eq!(crossed, seen, "links count the packets that they accept");
    assert!(outcome.tiers.iter().all(|tier| tier.max_utilisation <= 1.0));
    let switch_tiers = outcome.tiers.iter().filter(|tier| !(tier.up && tier.tier == "host"));
    assert!(switch_tiers.clone().all(|tier| tier.max_queue <= 20));
}

/// DRILL, section 3: with two samples and a memory of one, ports of a switch stay level where
/// random spraying lets them grow apart. Flows have one packet, so that only the choice of ports
/// differs.
#[test]
fn drill_keeps_queues_above_the_edge_shorter_than_spraying() {
    let graph = fat_tree(6);
    let traffic = json!({"kind": "poisson", "sizes": "1460B", "load": 0.85, "pairs": "inter-pod"});
    let longest = |kind: &str| {
        let (outcome, _) = run(&graph, traffic.clone(), json!({"balance": {"kind": kind}}));
        let above = outcome.tiers.iter().filter(|tier| tier.up && tier.tier != "host");
        above.map(|tier| tier.max_queue).max().unwrap_or(0)
    };
    let (drill, spray) = (longest("drill"), longest("spray"));
    assert!(2 * drill < spray, "{drill} and {spray} packets");
}

/// Racks, hosts per rack, and spines of the fabric on which queues are compared.
const LEVEL: (u32, u32, u32) = (4, 8, 8);

/// Returns DRILL's measure of imbalance (section 3.2): the standard deviation of the queues of a
/// leaf's uplinks in packets, averaged over leaves and time.
fn unevenness(sizes: &str, balance: &serde_json::Value) -> f64 {
    let (racks, hosts_per_rack, spines) = LEVEL;
    let shape = json!({"kind": "leaf-spine", "racks": racks, "hosts_per_rack": hosts_per_rack, "spines": spines});
    let graph = topologies::build(shape).unwrap();
    let traffic = json!({"kind": "poisson", "sizes": sizes, "load": 0.8, "pairs": "inter-rack"});
    let transport = json!({"kind": "tcp", "reordering": {"kind": "adaptive"}});
    let mut scenario =
        scenario(&graph, traffic, json!({"balance": balance, "transport": transport}));
    let uplinks = |leaf| (0..spines).map(move |spine| format!("leaf{leaf}>spine{spine}"));
    scenario.series.links = (0..racks).flat_map(uplinks).collect();
    scenario.series.interval = Time::from_us(10);
    // Eight of the first ten milliseconds count.
    let end = Time::from_ms(10);
    scenario.flows.retain(|flow| flow.start < end);
    scenario.horizon = Horizon { arrivals: end, drain: Time::from_ms(1) };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (outcome, _) = simulate_observed(&scenario, Paths::default(), go_on).unwrap();
    let queues = outcome.series.iter().filter(|series| series.name.ends_with("queue_packets"));
    let queues: Vec<_> = queues.map(|series| &series.values[200..1_000]).collect();
    assert_eq!(queues.len(), (racks * spines) as usize);
    let deviation = |leaf: &[&[f64]], at: usize| {
        let count = leaf.len() as f64;
        let mean = leaf.iter().map(|queue| queue[at]).sum::<f64>() / count;
        let squares = leaf.iter().map(|queue| (queue[at] - mean).powi(2)).sum::<f64>();
        (squares / count).sqrt()
    };
    let leaves = queues.chunks(spines as usize);
    let all: Vec<f64> =
        leaves.flat_map(|leaf| (0..800).map(move |at| deviation(leaf, at))).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn queues_of_a_leaf_are_most_even_with_drill() {
    for sizes in ["1460B", "web-search"] {
        let kinds = [
            json!({"kind": "ecmp"}),
            json!({"kind": "spray"}),
            json!({"kind": "round-robin"}),
            json!({"kind": "drill"}),
            json!({"kind": "drill", "samples": LEVEL.2, "memory": 0}),
        ];
        let found = kinds.each_ref().map(|kind| unevenness(sizes, kind));
        println!("{sizes}: {found:.2?}");
        let [ecmp, spray, round_robin, drill, all] = found;
        assert!(drill < 0.6 * spray && drill < ecmp && drill < round_robin, "{found:?}");
        assert!(all <= drill, "{found:?}");
    }
}

/// DRILL's section on asymmetry: the spine that lost a link is a component of its own for the racks
/// that it still connects, and carries whole flows.
#[test]
fn drill_keeps_a_flow_within_one_component_of_spines() {
    // Hosts 0 to 11, leaves 12 to 14, spines 15 to 17.
    let shape = json!({"kind": "leaf-spine", "racks": 3, "hosts_per_rack": 4, "spines": 3});
    let graph = topologies::build(shape).unwrap();
    let broken = NodeId(15);
    let traffic = json!({"kind": "poisson", "sizes": "20KB", "load": 0.3, "pairs": "inter-rack"});
    let down = json!({"kind": "link-down", "link": "leaf0>spine0", "at": "0s"});
    let faults: FaultsSpec =
        serde_json::from_value(json!({"reconvergence": "0s", "incidents": [down]})).unwrap();
    let spines = |components: bool| {
        let scheme = json!({"balance": {"kind": "drill", "components": components}});
        let (outcome, paths) = run_with(&graph, traffic.clone(), scheme, faults.clone());
        assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()), "no packet is lost");
        let data = paths.taken.iter().filter(|((_, _, back), _)| !back);
        let spines = data.map(|(_, ports)| -> BTreeSet<NodeId> {
            let ends = ports.keys().map(|port| graph.far_end(*port));
            ends.filter(|end| *end >= broken).collect()
        });
        spines.collect::<Vec<_>>()
    };
    let mixed = |spines: &[BTreeSet<NodeId>]| {
        spines.iter().filter(|spines| spines.contains(&broken) && spines.len() > 1).count()
    };
    let (divided, undivided) = (spines(true), spines(false));
    assert_eq!(mixed(&divided), 0);
    assert!(mixed(&undivided) > 100, "packets of one flow take all spines");
    let alone = divided.iter().filter(|spines| spines.contains(&broken)).count() as f64;
    // A third of the flows are between racks that this spine still connects, and it has a third of
    // their capacity.
    let (flows, share) = (divided.len() as f64, 1.0 / 9.0);
    let deviation = (flows * share * (1.0 - share)).sqrt();
    assert!((alone - flows * share).abs() < 4.0 * deviation, "{alone} of {flows} flows take it");
}

/// Counts reordered first transmissions by the queues that delayed them.
struct Overtaken<'a> {
    graph: &'a Graph,
    first_spine: NodeId,
    /// By flow and sequence number: the time that a segment took to leave its leaf, and its spine.
    waits: BTreeMap<(u64, u64), [Time; 2]>,
    /// By flow: the highest sequence number received.
    highest: BTreeMap<u64, u64>,
    /// Segments two or more places behind the highest received one, by the queue that delayed them
    /// more than that one: their leaf's or their spine's.
    by: [u64; 2],
}

fn is_first(packet: &PacketView) -> bool {
    packet.flags.has(Flags::DATA) && !packet.flags.has(Flags::RETRANSMISSION)
}

impl Observer for Overtaken<'_> {
    fn link_accepts(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        let ends = [self.graph.far_end(link), self.graph.far_end(link.reversed())];
        let hop = ends.into_iter().position(|end| end >= self.first_spine);
        if let Some(hop) = hop.filter(|_| is_first(packet)) {
            let waits = self.waits.entry((packet.flow, packet.seq)).or_default();
            waits[hop] = departs - now;
        }
    }
    fn host_receives(&mut self, _now: Time, _host: HostId, packet: &PacketView) {
        if !is_first(packet) {
            return;
        }
        let highest = self.highest.entry(packet.flow).or_default();
        if packet.seq + 2 * u64::from(packet.mss) <= *highest {
            let [late, ahead] = [packet.seq, *highest].map(|seq| self.waits[&(packet.flow, seq)]);
            // Compares the two differences without subtraction.
            let spine = late[1] + ahead[0] > late[0] + ahead[1];
            self.by[usize::from(spine)] += 1;
        }
        *highest = packet.seq.max(*highest);
    }
}

/// Returns needless retransmissions in per cent of all segments, and reordered segments by queue.
/// The fabric has eight racks and eight spines, all intact. Spines' rates differ by parts in a
/// million, so that each `spines_of_each` form a component.
fn divided(sizes: &str, spines_of_each: u32) -> (f64, [u64; 2]) {
    let shape = json!({"kind": "leaf-spine", "racks": 8, "hosts_per_rack": 8, "spines": 8});
    let mut graph = topologies::build(shape).unwrap();
    let first_spine = NodeId(graph.hosts + 8);
    for link in graph.links.iter_mut().filter(|link| link.b >= first_spine) {
        link.rate.0 += u64::from((link.b.0 - first_spine.0) / spines_of_each) * 1_000;
    }
    let traffic = json!({"kind": "poisson", "sizes": sizes, "load": 0.5, "load_of": "bisection", "pairs": "inter-rack"});
    let scenario = scenario(&graph, traffic, json!({"balance": {"kind": "drill"}}));
    let (waits, highest) = Default::default();
    let looking = Overtaken { graph: &graph, first_spine, waits, highest, by: [0; 2] };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (outcome, seen) = simulate_observed(&scenario, looking, go_on).unwrap();
    let segments: u64 = outcome.flows.iter().map(|flow| flow.data_packets).sum();
    let needless = outcome.counters.needless_retransmissions;
    (100.0 * needless as f64 / segments as f64, seen.by)
}

/// DRILL's components cause needless retransmissions because long flows meet on a component's few
/// paths, as with ECMP, and are reordered in the spines' queues, which no leaf sees. This also
/// happens in an intact fabric, but not with short flows or with one path per component.
#[test]
fn long_flows_on_few_paths_are_reordered_in_the_queues_of_spines() {
    let [whole, pairs, single] = [8, 2, 1].map(|spines| divided("web-search", spines));
    println!("web search: {whole:.3?} {pairs:.3?} {single:.3?}");
    assert!(pairs.0 > 2.0 * whole.0 && pairs.0 > 2.0 * single.0, "{whole:?} {pairs:?} {single:?}");
    let [leaves, spines] = pairs.1;
    assert!(spines > 10 * leaves, "{leaves} by leaves' queues, {spines} by spines'");
    assert_eq!(single.1, [0; 2], "one path keeps the order");
    let [whole, pairs] = [8, 2].map(|spines| divided("20KB", spines));
    println!("20 KB: {whole:.3?} {pairs:.3?}");
    assert!(pairs.0 < whole.0, "{whole:?} {pairs:?}");
}

/// CONGA, section 2.4: a spine whose link to a leaf has half the capacity should carry half as much
/// as the other. A switch that sees only its own links gives both the same share, until the slow
/// one drops.
#[test]
fn conga_gives_a_half_as_fast_spine_about_half_of_the_load() {
    // Hosts 0 to 15, leaves 16 and 17, spines 18 and 19. The fabric is the bottleneck.
    let shape = json!({"kind": "leaf-spine", "racks": 2, "hosts_per_rack": 8, "spines": 2});
    let mut graph = topologies::build(shape).unwrap();
    let (leaf, spines) = (NodeId(17), [NodeId(18), NodeId(19)]);
    for link in graph.links.iter_mut().filter(|link| spines.contains(&link.b)) {
        let slow = (link.a, link.b) == (leaf, spines[1]);
        link.rate = Rate(if slow { 1_000_000_000 } else { 2_000_000_000 });
    }
    let traffic = json!({"kind": "poisson", "sizes": "20KB", "load": 0.3, "pairs": "inter-rack"});
    let share = |kind: &str| {
        let transport = json!({"kind": "tcp", "reordering": {"kind": "adaptive"}});
        let scheme = json!({"balance": {"kind": kind}, "transport": transport});
        let (_, paths) = run(&graph, traffic.clone(), scheme);
        let carried = spines.map(|spine| {
            let into = |port: PortId| {
                graph.far_end(port) == leaf && graph.far_end(port.reversed()) == spine
            };
            let data = paths.taken.iter().filter(|((_, _, back), _)| !back);
            let ports = data.flat_map(|(_, ports)| ports.iter());
            ports.filter(|(port, _)| into(**port)).map(|(_, packets)| *packets).sum::<u64>()
        });
        carried[1] as f64 / carried[0] as f64
    };
    let (ecmp, conga) = (share("ecmp"), share("conga"));
    assert!(conga < 0.75 && conga < 0.8 * ecmp, "{ecmp} and {conga}");
}
