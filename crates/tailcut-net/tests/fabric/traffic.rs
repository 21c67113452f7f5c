//! Flows and their start times, and that nothing else decides them.

use proptest::prelude::*;
use serde_json::{Value, json};
use tailcut_engine::Time;
use tailcut_net::component::SpecError;
use tailcut_net::scenario::Horizon;
use tailcut_net::topology::{Graph, HostId};
use tailcut_net::traffic::offered::{OfferedLoad, offered};
use tailcut_net::traffic::{Flow, TrafficSpec};
use tailcut_net::workload::SizeTable;

use crate::fabric::statistics::{
    assert_even, assert_independent, kolmogorov_smirnov, kolmogorov_smirnov_limit,
};
use crate::fabric::topologies;

fn graph(spec: Value) -> Graph {
    topologies::build(spec).unwrap()
}

fn horizon(arrivals_ms: u64) -> Horizon {
    Horizon { arrivals: Time::from_ms(arrivals_ms), drain: Time::ZERO }
}

fn generate(
    spec: Value,
    graph: &Graph,
    arrivals_ms: u64,
    seed: u64,
) -> Result<Vec<Flow>, SpecError> {
    let spec: TrafficSpec = serde_json::from_value(spec).expect("well-formed traffic");
    spec.generate(graph, &horizon(arrivals_ms), seed, &|path: &str| panic!("{path} is not needed"))
        .map(|demand| demand.flows)
}

fn flows(spec: Value, graph: &Graph, arrivals_ms: u64) -> Vec<Flow> {
    generate(spec, graph, arrivals_ms, 1).unwrap()
}

/// Many small flows: about 1.25 million per second per Gbps of load 1.
fn small_flows(load: f64) -> Value {
    json!({"kind": "poisson", "sizes": "100B", "load": load})
}

#[test]
fn poisson_gaps_are_exponential() {
    let star = graph(json!({"kind": "star"}));
    let flows = flows(small_flows(0.5), &star, 10);
    let gaps: Vec<f64> =
        flows.windows(2).map(|two| two[1].start.since(two[0].start).as_secs_f64()).collect();
    let rate = 0.5 * 8e9 / 800.0;
    // Starts are whole nanoseconds: a gap g stands for all of (g - 1 ns, g + 1 ns).
    let law = |gap: f64| 1.0 - (-rate * gap.max(0.0)).exp();
    let n = gaps.len();
    assert!(n > 40_000, "{n} gaps");
    let distance = kolmogorov_smirnov(gaps, |g| law(g - 1e-9), |g| law(g + 1e-9));
    assert!(distance < kolmogorov_smirnov_limit(n), "distance {distance}");
}

#[test]
fn poisson_gaps_sizes_and_pairs_are_independent_of_each_other() {
    let star = graph(json!({"kind": "star", "hosts": 4}));
    let spec = json!({"kind": "poisson", "sizes": {"kind": "uniform", "min": "1B", "max": "199B"}});
    let flows = flows(spec, &star, 50);
    let mean_gap = 0.05 / flows.len() as f64;
    let mut gap_after_gap = vec![vec![0; 2]; 2];
    let mut size_after_size = vec![vec![0; 2]; 2];
    let mut size_by_pair = vec![vec![0; 2]; 16];
    for three in flows.windows(3) {
        let long = |i: usize| {
            usize::from(three[i + 1].start.since(three[i].start).as_secs_f64() > mean_gap)
        };
        let large = |i: usize| usize::from(three[i].bytes > 100);
        gap_after_gap[long(0)][long(1)] += 1;
        size_after_size[large(0)][large(1)] += 1;
        size_by_pair[three[0].src.index() * 4 + three[0].dst.index()][large(0)] += 1;
    }
    size_by_pair.retain(|row| row.iter().sum::<u64>() > 0);
    assert_eq!(size_by_pair.len(), 12);
    assert_independent(&gap_after_gap, "consecutive gaps");
    assert_independent(&size_after_size, "consecutive sizes");
    assert_independent(&size_by_pair, "sizes and pairs");
}

#[test]
fn the_number_of_arrivals_is_poisson() {
    let star = graph(json!({"kind": "star"}));
    // Counts in how many of 20,000 slots of two mean gaps 0, 1, 2 ... flows start.
    let flows = flows(small_flows(0.5), &star, 8);
    let slot_ns = 400;
    let mut per_slot = vec![0usize; 20_000];
    for flow in &flows {
        per_slot[(flow.start.as_ns() / slot_ns) as usize] += 1;
    }
    let mean = 2.0;
    let variance =
        per_slot.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / per_slot.len() as f64;
    // Index of dispersion 1, within 4 standard errors.
    assert!(
        (variance / mean - 1.0).abs() < 4.0 * (2.0 / per_slot.len() as f64).sqrt() * 1.3,
        "{variance}"
    );
}

#[test]
fn the_offered_load_is_the_load_asked_for() {
    let fabric = graph(json!({"kind": "fat-tree", "k": 4}));
    for load in [0.1, 0.5, 0.8] {
        let flows =
            flows(json!({"kind": "poisson", "sizes": "web-search", "load": load}), &fabric, 60_000);
        let bytes: f64 = flows.iter().map(|flow| flow.bytes as f64).sum();
        // A compound Poisson sum has variance (expected flows) x E[size^2].
        let deviation = flows.iter().map(|flow| (flow.bytes as f64).powi(2)).sum::<f64>().sqrt();
        let expected = load * 16.0 * 1e9 / 8.0 * 60.0;
        assert!(
            (bytes - expected).abs() < 3.0 * deviation,
            "load {load}: {bytes} of {expected} bytes"
        );
        assert!(deviation < 0.05 * expected, "the check has teeth");
    }
}

#[test]
fn the_load_of_the_bisection_is_what_crosses_between_racks() {
    for (topology, pairs, capacity) in [
        (json!({"kind": "leaf-spine"}), "inter-rack", 6e9),
        (json!({"kind": "leaf-spine"}), "random", 6e9),
        (json!({"kind": "leaf-spine", "racks": 5, "hosts_per_rack": 2}), "random", 15e9),
        (json!({"kind": "dumbbell", "pairs": 3}), "inter-rack", 2e9),
    ] {
        let fabric = graph(topology.clone());
        let spec = json!({
            "kind": "poisson", "sizes": "1KB", "load": 0.4, "load_of": "bisection", "pairs": pairs
        });
        let rack = fabric.racks().of_host;
        let crossing = flows(spec, &fabric, 200)
            .iter()
            .filter(|flow| rack[flow.src.index()] != rack[flow.dst.index()])
            .count() as f64;
        let expected = 0.4 * capacity * 0.2 / 8_000.0;
        assert!(
            (crossing - expected).abs() < 4.0 * expected.sqrt(),
            "{topology} {pairs}: {crossing} of {expected}"
        );
    }
}

#[test]
fn the_load_of_the_bisection_is_that_of_the_tier_that_fills_first() {
    let slow_core = graph(json!({
        "kind": "fat-tree", "k": 4, "rate": {"host": "1Gbps", "aggregation": "1Gbps", "core": "230Mbps"}
    }));
    let spec = json!({"kind": "poisson", "sizes": "1KB", "load": 0.5, "load_of": "bisection"});
    let pod = slow_core.pods().of_host;
    let crossing = flows(spec, &slow_core, 200)
        .iter()
        .filter(|flow| pod[flow.src.index()] != pod[flow.dst.index()])
        .count() as f64;
    let expected = 0.5 * 16.0 * 230e6 * 0.2 / 8_000.0;
    assert!(
        (crossing - expected).abs() < 4.0 * expected.sqrt(),
        "{crossing} of {expected} between pods"
    );
}

#[test]
fn random_pairs_are_uniform_over_all_ordered_pairs() {
    let star = graph(json!({"kind": "star", "hosts": 5}));
    let mut counts = vec![0u64; 25];
    for flow in flows(small_flows(0.5), &star, 20) {
        counts[flow.src.index() * 5 + flow.dst.index()] += 1;
    }
    assert!((0..5).all(|host| counts[host * 6] == 0), "a host sends to itself");
    counts.retain(|&count| count > 0);
    assert_eq!(counts.len(), 20);
    assert_even(&counts, "pairs");
}

#[test]
fn inter_rack_and_inter_pod_pairs_cross() {
    let fabric = graph(json!({"kind": "fat-tree", "k": 4}));
    for (pairs, groups) in [("inter-rack", fabric.racks()), ("inter-pod", fabric.pods())] {
        let spec = json!({"kind": "poisson", "sizes": "10KB", "pairs": pairs});
        let flows = flows(spec, &fabric, 10);
        assert!(flows.len() > 500);
        let crosses =
            |flow: &Flow| groups.of_host[flow.src.index()] != groups.of_host[flow.dst.index()];
        assert!(flows.iter().all(crosses), "{pairs}");
    }
}

#[test]
fn permutation_pairs_keep_their_partner() {
    let fabric = graph(json!({"kind": "fat-tree", "k": 4}));
    let spec = json!({"kind": "poisson", "sizes": "10KB", "pairs": "permutation"});
    let mut partner = vec![None; 16];
    for flow in flows(spec, &fabric, 10) {
        assert_eq!(*partner[flow.src.index()].get_or_insert(flow.dst), flow.dst);
    }
    let mut receivers: Vec<HostId> = partner.into_iter().flatten().collect();
    receivers.sort_unstable();
    assert_eq!(receivers, fabric.each_host().collect::<Vec<_>>());
}

#[test]
fn gaps_may_be_constant_or_uniform_instead() {
    let star = graph(json!({"kind": "star"}));
    let gaps = |kind: &str| {
        let flows = flows(json!({"kind": "poisson", "sizes": "10KB", "gaps": kind}), &star, 100);
        flows.windows(2).map(|two| two[1].start.since(two[0].start).as_ns()).collect::<Vec<_>>()
    };
    assert!(gaps("constant").iter().all(|&gap| gap == 20_000), "10 KB each at half of 8 Gbps");
    let uniform = gaps("uniform");
    assert!(uniform.iter().all(|&gap| gap <= 40_000));
    assert!(uniform.iter().any(|&gap| gap < 1_000) && uniform.iter().any(|&gap| gap > 39_000));
}

/// The same first flows on every machine: integers, because logarithms are computed in software.
#[test]
fn a_seed_gives_the_same_flows_on_every_machine() {
    let fabric = graph(json!({"kind": "fat-tree", "k": 4}));
    let flows = flows(json!({"kind": "poisson"}), &fabric, 1_000);
    let first: Vec<_> =
        flows.iter().take(4).map(|f| (f.id, f.src.0, f.dst.0, f.bytes, f.start.as_ns())).collect();
    let expected = [
        (0, 6, 9, 1_598_713, 1_724_396),
        (1, 11, 4, 971_952, 2_690_214),
        (2, 11, 3, 11_442, 3_962_883),
        (3, 1, 5, 615_303, 5_317_876),
    ];
    assert_eq!(first, expected);
}

#[test]
fn load_changes_when_flows_start_but_not_what_they_are() {
    let star = graph(json!({"kind": "star"}));
    let at = |load: f64| flows(json!({"kind": "poisson", "load": load}), &star, 500);
    let (low, high) = (at(0.2), at(0.8));
    assert!(low.len() > 50 && high.len() > 3 * low.len());
    for (a, b) in low.iter().zip(&high) {
        assert_eq!((a.src, a.dst, a.bytes), (b.src, b.dst, b.bytes));
    }
}

#[test]
fn a_permutation_is_a_derangement_drawn_anew_each_round() {
    let fabric = graph(json!({"kind": "fat-tree", "k": 4}));
    let spec = json!({"kind": "permutation", "sizes": "1MB", "rounds": 3, "period": "10ms"});
    let flows = flows(spec, &fabric, 100);
    let rounds: Vec<_> = flows.chunks(16).collect();
    assert_eq!(rounds.len(), 3);
    for (index, round) in rounds.iter().enumerate() {
        assert!(round.iter().all(|f| f.src != f.dst && f.bytes == 1_000_000));
        assert!(round.iter().all(|f| f.start == Time::from_ms(10 * index as u64)));
        for end in [|f: &Flow| f.src, |f: &Flow| f.dst] {
            let mut hosts: Vec<HostId> = round.iter().map(end).collect();
            hosts.sort_unstable();
            assert_eq!(hosts, fabric.each_host().collect::<Vec<_>>());
        }
    }
    let partners = |round: &[Flow]| round.iter().map(|f| f.dst).collect::<Vec<_>>();
    assert_ne!(partners(rounds[0]), partners(rounds[1]));
}

/// Four elements have nine derangements.
#[test]
fn all_derangements_are_equally_likely() {
    let star = graph(json!({"kind": "star", "hosts": 4}));
    let spec = json!({"kind": "permutation", "sizes": "1B", "rounds": 9_000, "period": "1us"});
    let mut counts = std::collections::BTreeMap::new();
    for round in flows(spec, &star, 100).chunks(4) {
        *counts.entry(round.iter().map(|f| f.dst).collect::<Vec<_>>()).or_insert(0u64) += 1;
    }
    assert_eq!(counts.len(), 9);
    assert_even(&counts.into_values().collect::<Vec<_>>(), "derangements");
}

#[test]
fn endless_flows_outlast_the_run() {
    let star = graph(json!({"kind": "star", "rate": "1Gbps"}));
    let flows = flows(json!({"kind": "permutation", "sizes": "endless"}), &star, 100);
    assert!(
        flows.iter().all(|flow| flow.bytes > 12_500_000 && flow.bytes < 12_600_000),
        "0.1 s at 1 Gbps"
    );
}

#[test]
fn incast_brings_distinct_hosts_to_one() {
    let star = graph(json!({"kind": "star", "hosts": 12}));
    let spec = json!({"kind": "incast", "fan_in": 11, "sizes": "20KB", "period": "10ms"});
    let flows = flows(spec, &star, 1_000);
    let rounds: Vec<_> = flows.chunks(11).collect();
    assert_eq!(rounds.len(), 100);
    for round in &rounds {
        let mut senders: Vec<HostId> = round.iter().map(|f| f.src).collect();
        senders.sort_unstable();
        senders.dedup();
        assert_eq!(senders.len(), 11);
        assert!(
            round
                .iter()
                .all(|f| f.dst == round[0].dst && f.src != f.dst && f.start == round[0].start)
        );
    }
    assert!(
        rounds.iter().any(|round| round[0].dst != rounds[0][0].dst),
        "the receiver is drawn anew"
    );
}

#[test]
fn incast_senders_are_drawn_evenly() {
    let star = graph(json!({"kind": "star", "hosts": 6}));
    let spec =
        json!({"kind": "incast", "fan_in": 2, "receiver": 3, "period": "1us", "sizes": "1B"});
    let mut counts = vec![0u64; 6];
    for flow in flows(spec, &star, 10) {
        assert_eq!(flow.dst, HostId(3));
        counts[flow.src.index()] += 1;
    }
    assert_eq!(counts.remove(3), 0);
    assert_even(&counts, "senders");
}

#[test]
fn jitter_delays_starts_by_less_than_itself() {
    let star = graph(json!({"kind": "star"}));
    let spec =
        json!({"kind": "incast", "fan_in": 7, "rounds": 100, "period": "1ms", "jitter": "10us"});
    for (index, flow) in flows(spec, &star, 1_000).iter().enumerate() {
        let late = flow.start.as_ns() - (index as u64 / 7) * 1_000_000;
        assert!(late < 10_000, "flow {index} is {late} ns late");
    }
}

#[test]
fn another_part_of_a_mix_leaves_the_others_as_they_are() {
    let star = graph(json!({"kind": "star"}));
    let short = json!({"kind": "poisson", "load": 0.1, "sizes": "10KB"});
    let long = json!({"kind": "permutation", "sizes": "endless"});
    let alone = flows(json!({"kind": "mix", "parts": [short]}), &star, 100);
    let both = flows(json!({"kind": "mix", "parts": [short, long]}), &star, 100);
    let what = |flow: &&Flow| (flow.src, flow.dst, flow.bytes, flow.start);
    let kept: Vec<_> =
        both.iter().filter(|flow| flow.bytes == 10_000).map(|flow| what(&flow)).collect();
    assert_eq!(kept, alone.iter().map(|flow| what(&flow)).collect::<Vec<_>>());
    assert_eq!(both.len(), alone.len() + 8);
    assert!(both.iter().enumerate().all(|(index, flow)| flow.id == index as u64));
}

#[test]
fn equal_parts_of_a_mix_draw_different_flows() {
    let star = graph(json!({"kind": "star"}));
    let part = json!({"kind": "poisson", "load": 0.1, "sizes": "10KB"});
    let flows = flows(json!({"kind": "mix", "parts": [part, part]}), &star, 100);
    assert!(flows.windows(2).all(|two| two[0].start != two[1].start));
}

#[test]
fn traffic_out_of_range_is_refused_by_code_and_field() {
    let star = graph(json!({"kind": "star", "hosts": 4}));
    for (spec, code, field) in [
        (json!({"kind": "poisson", "load": 0.0}), "poisson-load", "load"),
        (json!({"kind": "poisson", "load": 1.01}), "poisson-load", "load"),
        (json!({"kind": "poisson", "load": -0.5}), "poisson-load", "load"),
        (json!({"kind": "poisson", "sizes": "endless"}), "poisson-sizes", "sizes"),
        (json!({"kind": "poisson", "sizes": "unheard-of"}), "workload-name", "sizes"),
        (json!({"kind": "poisson", "pairs": "inter-rack"}), "traffic-pairs", "pairs"),
        (json!({"kind": "poisson", "load_of": "bisection"}), "poisson-bisection", "load_of"),
        (json!({"kind": "permutation", "rounds": 0}), "traffic-rounds", "rounds"),
        (json!({"kind": "permutation", "rounds": 2, "period": "0s"}), "traffic-period", "period"),
        (
            json!({"kind": "permutation", "rounds": 3, "period": "60ms"}),
            "traffic-horizon",
            "rounds",
        ),
        (json!({"kind": "permutation", "jitter": "100ms"}), "traffic-horizon", "rounds"),
        (json!({"kind": "poisson", "sizes": "1B", "load": 1.0}), "traffic-flows", "sizes"),
        (json!({"kind": "incast", "fan_in": 3, "period": "1ns"}), "traffic-flows", "rounds"),
        (
            json!({"kind": "permutation", "rounds": 4_000_000_000u32, "period": "100000s"}),
            "traffic-horizon",
            "rounds",
        ),
        (json!({"kind": "incast", "fan_in": 4}), "incast-fan-in", "fan_in"),
        (json!({"kind": "incast", "fan_in": 0}), "incast-fan-in", "fan_in"),
        (json!({"kind": "incast", "fan_in": 2, "receiver": 4}), "incast-receiver", "receiver"),
        (json!({"kind": "mix", "parts": []}), "mix-parts", "parts"),
        (json!({"kind": "mix", "parts": [{"kind": "mix", "parts": []}]}), "mix-nested", "parts[0]"),
        (
            json!({"kind": "mix", "parts": [{"kind": "poisson", "load": 2.0}]}),
            "poisson-load",
            "parts[0].load",
        ),
    ] {
        let error = generate(spec.clone(), &star, 100, 1).expect_err(&spec.to_string());
        assert_eq!((error.code, error.field.as_str()), (code, field), "{spec}: {error}");
    }
}

/// Any pattern, on any small fabric.
fn patterns() -> impl Strategy<Value = (Value, Value)> {
    let topology = prop_oneof![
        (1u32..4).prop_map(|half| json!({"kind": "fat-tree", "k": 2 * half})),
        (2u32..5, 1u32..5)
            .prop_map(|(r, h)| json!({"kind": "leaf-spine", "racks": r, "hosts_per_rack": h})),
        (2u32..20).prop_map(|hosts| json!({"kind": "star", "hosts": hosts})),
    ];
    let traffic = prop_oneof![
        (0.01f64..1.0).prop_map(|load| json!({"kind": "poisson", "load": load, "sizes": "hadoop-bytes"})),
        (1u32..5, 0u64..900).prop_map(|(rounds, jitter)| json!({
            "kind": "permutation", "rounds": rounds, "period": "1ms", "jitter": format!("{jitter}us"),
        })),
        Just(json!({"kind": "incast", "fan_in": 1, "period": "700us"})),
    ];
    (topology, traffic)
}

proptest! {
    #[test]
    fn flows_are_well_formed_and_repeatable((topology, traffic) in patterns(), seed in any::<u64>()) {
        let graph = graph(topology);
        let flows = generate(traffic.clone(), &graph, 10, seed).unwrap();
        for (index, flow) in flows.iter().enumerate() {
            prop_assert!(flow.src != flow.dst && flow.src < HostId(graph.hosts) && flow.dst < HostId(graph.hosts));
            prop_assert!(flow.bytes >= 1 && flow.start < Time::from_ms(10));
            prop_assert_eq!((flow.id, flow.start.0 % 1_000), (index as u64, 0));
        }
        prop_assert!(flows.windows(2).all(|two| two[0].start <= two[1].start));
        prop_assert_eq!(generate(traffic, &graph, 10, seed).unwrap(), flows);
    }

    #[test]
    fn no_more_can_be_carried_than_is_offered_or_than_links_allow(load in 0.1f64..1.0, seed in 0u64..1_000) {
        let star = graph(json!({"kind": "star", "hosts": 4}));
        let flows = generate(json!({"kind": "poisson", "load": load, "sizes": "data-mining"}), &star, 50, seed).unwrap();
        let end = Time::from_ms(60);
        let totals = offered(flows.iter(), &star.host_rates(), end);
        prop_assert!(totals.carriable_bytes <= totals.bytes);
        prop_assert!(totals.carriable_bytes as f64 <= 4.0 * 1e9 / 8.0 * 0.06);
        let later = offered(flows.iter(), &star.host_rates(), Time::from_ms(100_000_000));
        prop_assert_eq!(later.carriable_bytes, totals.bytes);
    }
}

#[test]
fn what_can_be_carried_is_bounded_by_the_busier_end() {
    let flow =
        |src, dst, bytes, start_us| Flow { src, dst, bytes, start: Time::from_us(start_us), id: 0 };
    let star = graph(json!({"kind": "star", "hosts": 3, "rate": "8Mbps"}));
    // The rate is 1 byte per microsecond. Host 2 receives both flows: 100 bytes by 100 us, although
    // each sender could send 150.
    let flows = [flow(HostId(0), HostId(2), 80, 0), flow(HostId(1), HostId(2), 90, 10)];
    let totals = offered(flows.iter(), &star.host_rates(), Time::from_us(100));
    assert_eq!(totals, OfferedLoad { flows: 2, bytes: 170, carriable_bytes: 100 });
    // A flow that starts at the end adds only to the offered bytes.
    let totals = offered(
        [flow(HostId(0), HostId(1), 10, 100)].iter(),
        &star.host_rates(),
        Time::from_us(100),
    );
    assert_eq!(totals, OfferedLoad { flows: 1, bytes: 10, carriable_bytes: 0 });
}

/// At line rate only about a fifth of the bytes that data mining offers fits into half a second:
/// E[min(size, rate x time left)] / E[size], with uniform start times.
#[test]
fn most_data_mining_bytes_do_not_fit_into_half_a_second() {
    let star = graph(json!({"kind": "star", "hosts": 1_024}));
    let spec = json!({"kind": "poisson", "sizes": "data-mining", "load": 0.02});
    let end = Time::from_ms(500);
    let flows = flows(spec, &star, 500);
    let alone: f64 =
        flows.iter().map(|f| (f.bytes as f64).min(end.since(f.start).as_secs_f64() * 125e6)).sum();
    let totals = offered(flows.iter(), &star.host_rates(), end);
    assert!(totals.carriable_bytes as f64 <= alone + 1.0, "sharing a link makes it no better");

    let table = SizeTable::builtin("data-mining", "sizes").unwrap();
    let grid = |i: usize| (i as f64 + 0.5) / 2_000.0;
    let sizes: Vec<f64> = (0..2_000).map(|i| table.quantile(grid(i))).collect();
    let fitting =
        |left: f64| sizes.iter().map(|size| size.min(left * 62.5e6)).sum::<f64>() / 2_000.0;
    let share = (0..2_000).map(|i| fitting(grid(i))).sum::<f64>() / 2_000.0 / table.mean();
    assert!((share - 0.19).abs() < 0.005, "{share} of the bytes fit");
}
