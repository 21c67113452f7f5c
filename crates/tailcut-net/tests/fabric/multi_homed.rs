//! Planes and rails: counts, last hops and refusals.

use serde_json::{Value, json};
use tailcut_net::topology::{Graph, HostId, PathCounts, PortId, Routes};

use crate::fabric::topologies::build;

fn graph(spec: Value) -> Graph {
    build(spec).expect("the parameters are valid")
}

/// Returns the numbers of hosts, switches, and links of each tier.
fn counts(graph: &Graph) -> (u32, u32, Vec<usize>) {
    let of = |tier| graph.links.iter().filter(|link| usize::from(link.tier) == tier).count();
    (graph.hosts, graph.switches, (0..graph.tiers.len()).map(of).collect())
}

#[test]
fn a_rail_optimised_fabric_has_a_leaf_per_rail_and_unit() {
    // Four servers of two rails: 8 interfaces, 2 leaves, 1 spine, 8 + 2 * 4 links. The servers'
    // internal switches and links come on top.
    let small = json!({"kind": "rail-optimised", "servers": 4, "rails": 2, "spines": 1,
        "links_per_spine": 4});
    assert_eq!(counts(&graph(small)), (8, 3 + 4, vec![8, 8, 8]));
    // 16 servers of eight rails: 128 interfaces, 8 leaves, 8 spines, 128 + 8 * 8 * 2 links.
    let large = json!({"kind": "rail-optimised", "servers": 16, "rails": 8, "spines": 8,
        "links_per_spine": 2});
    assert_eq!(counts(&graph(large)), (128, 16 + 16, vec![128, 128, 128]));
    // 1,024 accelerators in units of 32 servers: 32 leaves, 16 spines, 1,024 + 1,024 links.
    let pod = json!({"kind": "rail-optimised", "servers": 128, "rails": 8, "servers_per_unit": 32,
        "spines": 16, "links_per_spine": 2});
    assert_eq!(counts(&graph(pod)), (1_024, 48 + 128, vec![1_024, 1_024, 1_024]));
}

#[test]
fn planes_are_stars_or_leaf_spines_that_do_not_meet() {
    // Two planes, each a star: 4 hosts, 8 interfaces, 2 switches, 8 links.
    let stars = json!({"kind": "multi-plane", "planes": 2, "leaves": 1, "hosts_per_leaf": 4,
        "spines": 0});
    assert_eq!(counts(&graph(stars)), (4, 2, vec![8, 0]));
    // Two planes, 8 hosts, per plane 2 leaves and 2 spines, two links each: 16 + 16 links.
    let spines = json!({"kind": "multi-plane", "planes": 2, "leaves": 2, "hosts_per_leaf": 4,
        "spines": 2, "links_per_spine": 2});
    let graph = graph(spines);
    assert_eq!(counts(&graph), (8, 8, vec![16, 16]));
    assert_eq!([0, 1].map(|plane| graph.links_of_plane(plane).len()), [16, 16]);
    assert!(graph.links_of_plane(2).is_empty());
    let both: Vec<u32> = [0, 1].into_iter().flat_map(|plane| graph.links_of_plane(plane)).collect();
    assert_eq!(both.iter().collect::<std::collections::BTreeSet<_>>().len(), 32);
    // Between leaves: two planes of two spines, two links up and two down each.
    let routes = Routes::new(&graph).expect("it is connected");
    let paths = |dst| PathCounts::default().between(&graph, &routes, HostId(0), HostId(dst));
    assert_eq!((paths(1), paths(7)), (2, 2 * 2 * 2 * 2));
}

/// Returns the nodes that a packet passes behind `first`, by the first candidate at each switch.
fn passed(graph: &Graph, routes: &Routes, first: PortId, dst: u32) -> Vec<String> {
    let mut names = vec![];
    let mut port = first;
    loop {
        let node = graph.far_end(port);
        names.push(graph.names[node.index()].clone());
        let Some(switch) = graph.switch(node) else { return names };
        port = routes.candidates(switch, HostId(dst))[0];
    }
}

#[test]
fn the_first_port_decides_the_plane() {
    let graph = graph(json!({"kind": "multi-plane", "planes": 3}));
    let routes = Routes::new(&graph).expect("it is connected");
    for plane in 0..3 {
        let first = graph.plane_port(3, HostId(1), plane);
        let of = |name: &str| format!("p{plane}{name}");
        let path = [of("leaf0"), of("spine0"), of("leaf1"), "h6".to_owned()];
        assert_eq!(passed(&graph, &routes, first, 6), path);
        assert_eq!(passed(&graph, &routes, first, 2), [of("leaf0"), "h2".to_owned()]);
    }
}

#[test]
fn packets_change_the_rail_at_the_spine_or_inside_the_server() {
    let graph = graph(json!({"kind": "rail-optimised"}));
    let routes = Routes::new(&graph).expect("it is connected");
    // Host 0 is accelerator 0 of server 0, host 7 accelerator 1 of server 3.
    let [own, inside] = [0, 1].map(|link| PortId::both_directions(link)[0]);
    assert_eq!(passed(&graph, &routes, own, 6), ["leaf0", "h6"]);
    assert_eq!(passed(&graph, &routes, own, 7), ["leaf0", "spine0", "leaf1", "h7"]);
    assert_eq!(passed(&graph, &routes, inside, 7), ["server0", "leaf1", "h7"]);
    assert_eq!(passed(&graph, &routes, inside, 1), ["server0", "h1"]);
    assert_eq!(graph.links_of_rail(1), [2, 6, 10, 14]);
    assert_eq!(graph.host_rates()[0].0, 400_000_000_000, "without the internal link");
}

#[test]
fn refuses_parameters_out_of_range() {
    for (spec, code, field) in [
        (json!({"kind": "multi-plane", "planes": 1}), "multi-plane-planes", "planes"),
        (json!({"kind": "multi-plane", "planes": 9}), "multi-plane-planes", "planes"),
        (json!({"kind": "multi-plane", "leaves": 0}), "multi-plane-leaves", "leaves"),
        (json!({"kind": "multi-plane", "spines": 0}), "multi-plane-spines", "spines"),
        (
            json!({"kind": "multi-plane", "hosts_per_leaf": 0}),
            "multi-plane-hosts",
            "hosts_per_leaf",
        ),
        (
            json!({"kind": "multi-plane", "links_per_spine": 0}),
            "multi-plane-links",
            "links_per_spine",
        ),
        (
            json!({"kind": "multi-plane", "links_per_spine": 600}),
            "multi-plane-links",
            "links_per_spine",
        ),
        (json!({"kind": "multi-plane", "rate": "0bps"}), "multi-plane-rate", "rate.host"),
        (json!({"kind": "multi-plane", "leaves": 140_000}), "multi-plane-size", "leaves"),
        (json!({"kind": "rail-optimised", "rails": 1}), "rail-optimised-rails", "rails"),
        (json!({"kind": "rail-optimised", "rails": 9}), "rail-optimised-rails", "rails"),
        (json!({"kind": "rail-optimised", "servers": 0}), "rail-optimised-servers", "servers"),
        (json!({"kind": "rail-optimised", "spines": 0}), "rail-optimised-spines", "spines"),
        (
            json!({"kind": "rail-optimised", "links_per_spine": 0}),
            "rail-optimised-links",
            "links_per_spine",
        ),
        (
            json!({"kind": "rail-optimised", "links_per_spine": 1_024}),
            "rail-optimised-links",
            "links_per_spine",
        ),
        (
            json!({"kind": "rail-optimised", "internal_rate": "0bps"}),
            "rail-optimised-rate",
            "internal_rate",
        ),
        (json!({"kind": "rail-optimised", "servers": 300_000}), "rail-optimised-size", "servers"),
    ] {
        let error = build(spec.clone()).expect_err("it is out of range");
        assert_eq!((error.code, error.field.as_str()), (code, field), "{spec}");
    }
}
