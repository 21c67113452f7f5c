//! Properties of each topology: counts, degrees, capacity, distances and the number of paths.

use proptest::prelude::*;
use serde_json::json;
use tailcut_engine::{Rate, Time};
use tailcut_net::component::SpecError;
use tailcut_net::topology::{Graph, HostId, NodeId, PortId, Routes, SwitchId, TopologySpec};

pub fn build(spec: serde_json::Value) -> Result<Graph, SpecError> {
    let spec: TopologySpec = serde_json::from_value(spec).expect("a well-formed topology");
    spec.build(&|path: &str| panic!("{path} is not needed"))
}

fn neighbours(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut near = vec![vec![]; graph.nodes()];
    for link in &graph.links {
        near[link.a.index()].push(link.b);
        near[link.b.index()].push(link.a);
    }
    near
}

/// Returns the links on a shortest path from `src` to every node, and the number of shortest paths.
fn shortest_paths(graph: &Graph, src: u32) -> Vec<(u32, u64)> {
    let near = neighbours(graph);
    let mut found = vec![(u32::MAX, 0); near.len()];
    found[src as usize] = (0, 1);
    let mut layer = vec![NodeId(src)];
    for distance in 1.. {
        let mut next = vec![];
        for &node in &layer {
            for &peer in &near[node.index()] {
                if found[peer.index()].0 == u32::MAX {
                    found[peer.index()].0 = distance;
                    next.push(peer);
                }
                if found[peer.index()].0 == distance {
                    found[peer.index()].1 += found[node.index()].1;
                }
            }
        }
        if next.is_empty() {
            return found;
        }
        layer = next;
    }
    unreachable!("some layer is empty")
}

/// Returns the number of paths that routing offers from behind `port` to `dst`.
fn routed_paths(graph: &Graph, routes: &Routes, port: PortId, dst: u32) -> u64 {
    let Some(switch) = graph.switch(graph.far_end(port)) else { return 1 };
    let ports = routes.candidates(switch, HostId(dst));
    ports.iter().map(|&port| routed_paths(graph, routes, port, dst)).sum()
}

fn even_k() -> impl Strategy<Value = u32> {
    (1u32..=6).prop_map(|half| 2 * half)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_fat_tree_has_the_published_counts_and_degrees(k in even_k(), oversubscription in 1u32..=4) {
        let graph = build(json!({"kind": "fat-tree", "k": k, "oversubscription": oversubscription})).unwrap();
        let half = k / 2;
        prop_assert_eq!(graph.hosts, k * half * half * oversubscription);
        prop_assert_eq!(graph.switches, 5 * k * k / 4);
        prop_assert_eq!(graph.links.len() as u32, graph.hosts + 2 * k * half * half);
        let near = neighbours(&graph);
        for host in 0..graph.hosts {
            prop_assert_eq!(near[host as usize].len(), 1);
        }
        for switch in 0..graph.switches {
            let edge = switch < k * half;
            let expected = if edge { half * oversubscription + half } else { k };
            prop_assert_eq!(near[(graph.hosts + switch) as usize].len() as u32, expected);
        }
    }

    #[test]
    fn a_fat_tree_without_oversubscription_has_full_bisection(k in even_k()) {
        let graph = build(json!({"kind": "fat-tree", "k": k, "rate": "10Gbps"})).unwrap();
        for groups in [graph.racks(), graph.pods()] {
            for (uplink, hosts) in groups.uplink.iter().zip(groups.sizes()) {
                prop_assert_eq!(uplink.0, u64::from(hosts) * 10_000_000_000);
            }
        }
    }

    #[test]
    fn hosts_of_a_fat_tree_are_two_four_or_six_links_apart_with_half_k_squared_paths(
        k in even_k(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()
    ) {
        let graph = build(json!({"kind": "fat-tree", "k": k})).unwrap();
        let half = k / 2;
        let (a, b) = (a.index(graph.hosts as usize) as u32, b.index(graph.hosts as usize) as u32);
        prop_assume!(a != b);
        let expected = if a / half == b / half {
            (2, 1)
        } else if a / (half * half) == b / (half * half) {
            (4, u64::from(half))
        } else {
            (6, u64::from(half * half))
        };
        prop_assert_eq!(shortest_paths(&graph, a)[b as usize], expected);
        let routes = Routes::new(&graph).unwrap();
        prop_assert_eq!(routed_paths(&graph, &routes, routes.host_port(HostId(a)), b), expected.1);
    }

    #[test]
    fn a_leaf_spine_has_one_path_per_spine(racks in 2u32..6, hosts in 1u32..6, spines in 1u32..6) {
        let graph = build(json!({
            "kind": "leaf-spine", "racks": racks, "hosts_per_rack": hosts, "spines": spines
        })).unwrap();
        prop_assert_eq!((graph.hosts, graph.switches), (racks * hosts, racks + spines));
        let last = graph.hosts - 1;
        prop_assert_eq!(shortest_paths(&graph, 0)[last as usize], (4, u64::from(spines)));
        let racks_of = graph.racks();
        prop_assert_eq!(racks_of.sizes(), vec![hosts; racks as usize]);
        prop_assert!(racks_of.uplink.iter().all(|rate| rate.0 == u64::from(spines) * 1_000_000_000));
    }

    #[test]
    fn parallel_paths_offer_one_path_each(hosts in 1u32..5, paths in 1u32..9) {
        let graph = build(json!({"kind": "parallel-paths", "hosts_per_side": hosts, "paths": paths})).unwrap();
        prop_assert_eq!(shortest_paths(&graph, 0)[hosts as usize], (4, u64::from(paths)));
        let routes = Routes::new(&graph).unwrap();
        prop_assert_eq!(routed_paths(&graph, &routes, routes.host_port(HostId(0)), hosts), u64::from(paths));
    }
}

/// The numbering that the ns-3 reference runs use; ECMP decisions depend on it.
#[test]
fn a_fat_tree_is_numbered_like_the_ns3_reference() {
    let (k, half) = (4u32, 2u32);
    let graph = build(json!({"kind": "fat-tree", "k": k})).unwrap();
    let near = neighbours(&graph);
    let switch = |index: u32| SwitchId(index).node(graph.hosts);
    for pod in 0..k {
        for edge in 0..half {
            let ports = &near[switch(pod * half + edge).index()];
            for h in 0..half {
                assert_eq!(ports[h as usize], NodeId(pod * half * half + edge * half + h));
            }
            for i in 0..half {
                assert_eq!(ports[(half + i) as usize], switch(k * half + pod * half + i));
            }
        }
        for agg in 0..half {
            let ports = &near[switch(k * half + pod * half + agg).index()];
            for c in 0..half {
                assert_eq!(ports[(half + c) as usize], switch(2 * k * half + agg * half + c));
            }
        }
    }
}

#[test]
fn tiers_of_a_fat_tree_can_have_rates_and_delays_of_their_own() {
    let graph = build(json!({
        "kind": "fat-tree", "k": 4,
        "rate": {"host": "1Gbps", "aggregation": "2Gbps", "core": "230Mbps"},
        "propagation": {"host": "1us", "aggregation": "2us", "core": "3us"},
    }))
    .unwrap();
    assert_eq!(graph.tiers, ["host", "aggregation", "core"]);
    for link in &graph.links {
        let (rate, delay) = [(1_000, 1), (2_000, 2), (230, 3)][usize::from(link.tier)];
        assert_eq!((link.rate, link.propagation), (Rate(rate * 1_000_000), Time::from_us(delay)));
    }
}

#[test]
fn the_default_fat_tree_has_32_us_of_propagation_there_and_back() {
    let graph = TopologySpec::default().build(&|_: &str| unreachable!()).unwrap();
    let twelve_links = graph.links[0].propagation.0 * 12;
    assert_eq!(Time(twelve_links), Time::from_ns(32_004));
}

#[test]
fn both_oversubscriptions_of_the_repnet_testbed_are_expressible() {
    for (hosts_per_rack, ratio) in [(3, 1.0), (6, 2.0)] {
        let graph = build(json!({"kind": "leaf-spine", "hosts_per_rack": hosts_per_rack})).unwrap();
        let offered: u64 = graph.host_rates().iter().map(|rate| rate.0).sum();
        let carried: u64 = graph.racks().uplink.iter().map(|rate| rate.0).sum();
        assert_eq!(offered as f64 / carried as f64, ratio);
    }
}

#[test]
fn a_dumbbell_shares_one_bottleneck() {
    let graph = build(json!({
        "kind": "dumbbell", "pairs": 2, "rate": {"host": "1Gbps", "bottleneck": "100Mbps"},
        "bottleneck_queue": "20packets",
    }))
    .unwrap();
    assert_eq!(graph.racks().of_host, [0, 0, 1, 1]);
    assert_eq!(graph.racks().uplink, [Rate(100_000_000); 2]);
    let limited: Vec<_> = graph.links.iter().filter(|link| link.queue_limit.is_some()).collect();
    assert_eq!(limited.len(), 1);
    assert_eq!(shortest_paths(&graph, 0)[2], (3, 1));
}

#[test]
fn every_link_of_a_chain_can_differ() {
    let graph = build(json!({
        "kind": "chain", "switches": 2, "rate": ["1Gbps", "100Mbps", "2Gbps"], "trunk_queue": "20packets",
    }))
    .unwrap();
    let links: Vec<_> =
        graph.links.iter().map(|link| (link.a.0, link.b.0, link.rate.0 / 1_000_000)).collect();
    assert_eq!(links, [(0, 2, 1_000), (2, 3, 100), (1, 3, 2_000)]);
    assert_eq!(
        graph.links.iter().map(|link| link.queue_limit.is_some()).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(shortest_paths(&graph, 0)[1], (3, 1));
}

#[test]
fn one_switch_makes_a_chain_and_a_star() {
    for spec in [json!({"kind": "chain", "switches": 1}), json!({"kind": "star", "hosts": 2})] {
        let graph = build(spec).unwrap();
        assert_eq!(shortest_paths(&graph, 0)[1], (2, 1));
    }
}

#[test]
fn nodes_have_names_and_links_run_upwards() {
    for spec in [
        json!({"kind": "fat-tree", "k": 4}),
        json!({"kind": "leaf-spine"}),
        json!({"kind": "dumbbell"}),
        json!({"kind": "parallel-paths"}),
        json!({"kind": "star"}),
        json!({"kind": "chain"}),
    ] {
        let graph = build(spec.clone()).unwrap();
        assert_eq!(graph.names.len() as u32, graph.hosts + graph.switches, "{spec}");
        let mut names = graph.names.clone();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), graph.names.len(), "names of {spec} repeat");
        for link in &graph.links {
            assert_eq!(
                link.tier == 0,
                graph.switch(link.a).is_none(),
                "tier 0 of {spec} is that of the hosts"
            );
            assert!(graph.switch(link.b).is_some() && usize::from(link.tier) < graph.tiers.len());
        }
        Routes::new(&graph).unwrap_or_else(|error| panic!("{spec}: {error}"));
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_code_and_field() {
    for (spec, code, field) in [
        (json!({"kind": "fat-tree", "k": 5}), "fat-tree-k", "k"),
        (json!({"kind": "fat-tree", "k": 0}), "fat-tree-k", "k"),
        (json!({"kind": "fat-tree", "k": 84}), "fat-tree-k", "k"),
        (
            json!({"kind": "fat-tree", "oversubscription": 0}),
            "fat-tree-oversubscription",
            "oversubscription",
        ),
        (
            json!({"kind": "fat-tree", "k": 82, "oversubscription": 4}),
            "fat-tree-size",
            "oversubscription",
        ),
        (
            json!({"kind": "fat-tree", "rate": {"host": "1Gbps", "aggregation": "1Gbps", "core": "0bps"}}),
            "fat-tree-rate",
            "rate.core",
        ),
        (json!({"kind": "leaf-spine", "racks": 0}), "leaf-spine-racks", "racks"),
        (
            json!({"kind": "leaf-spine", "racks": 1, "hosts_per_rack": 1}),
            "leaf-spine-hosts",
            "hosts_per_rack",
        ),
        (json!({"kind": "leaf-spine", "spines": 1_024}), "leaf-spine-spines", "spines"),
        (json!({"kind": "dumbbell", "pairs": 0}), "dumbbell-pairs", "pairs"),
        (json!({"kind": "parallel-paths", "paths": 0}), "parallel-paths-paths", "paths"),
        (
            json!({"kind": "parallel-paths", "path_rates": ["1Gbps"]}),
            "parallel-paths-rates",
            "path_rates",
        ),
        (json!({"kind": "star", "hosts": 1}), "star-hosts", "hosts"),
        (json!({"kind": "star", "hosts": 600_000}), "star-size", "hosts"),
        (json!({"kind": "chain", "switches": 0}), "chain-switches", "switches"),
        (json!({"kind": "chain", "rate": ["1Gbps", "1Gbps"]}), "chain-links", "rate"),
    ] {
        let error = build(spec.clone()).expect_err(&spec.to_string());
        assert_eq!((error.code, error.field.as_str()), (code, field), "{spec}: {error}");
    }
}

#[test]
fn an_odd_k_suggests_the_next_even_one() {
    let error = build(json!({"kind": "fat-tree", "k": 7})).unwrap_err();
    assert_eq!(error.to_string(), "k = 7: a fat-tree needs an even k from 2 to 82");
    assert_eq!(error.hint.as_deref(), Some("try k = 8"));
}
