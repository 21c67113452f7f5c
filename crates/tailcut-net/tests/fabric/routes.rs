//! Routes are the equal-cost ports of a search from every edge switch by itself.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tailcut_net::topology::{Graph, NodeId, PortId, Routes, SwitchId};

use super::topologies::build;

/// Returns the ports of each switch towards others, as far as their links live, with these.
fn switch_ports(graph: &Graph, alive: &[bool]) -> Vec<Vec<(PortId, usize)>> {
    let mut ports = vec![vec![]; graph.switches as usize];
    for (index, link) in graph.links.iter().enumerate().filter(|(index, _)| alive[*index]) {
        let [out, back] = PortId::both_directions(index);
        if let (Some(a), Some(b)) = (graph.switch(link.a), graph.switch(link.b)) {
            ports[a.index()].push((out, b.index()));
            ports[b.index()].push((back, a.index()));
        }
    }
    ports
}

/// Returns how many links each switch is away from `from`; `None` without a path.
fn distances(ports: &[Vec<(PortId, usize)>], from: usize) -> Vec<Option<u32>> {
    let mut distance = vec![None; ports.len()];
    distance[from] = Some(0);
    let mut queue = VecDeque::from([from]);
    while let Some(switch) = queue.pop_front() {
        for &(_, peer) in &ports[switch] {
            if distance[peer].is_none() {
                distance[peer] = distance[switch].map(|links| links + 1);
                queue.push_back(peer);
            }
        }
    }
    distance
}

/// Holds the routes around dead links against searches, from every switch to every host.
fn check(graph: &Graph, alive: &[bool]) {
    let whole = Routes::new(graph).expect("it is connected");
    let routes = whole.avoiding(graph, |link| alive[link]).expect("it fits");
    let ports = switch_ports(graph, alive);
    for host in graph.each_host() {
        let edge = routes.edge_switch(host);
        let distance = distances(&ports, edge.index());
        for switch in (0..graph.switches).map(SwitchId) {
            let found = routes.candidates(switch, host);
            let nearer = |&&(_, peer): &&(PortId, usize)| {
                distance[peer].map(|links| links + 1) == distance[switch.index()]
            };
            let expected: Vec<PortId> = match distance[switch.index()] {
                Some(0) => vec![routes.host_port(host).reversed()],
                Some(_) => ports[switch.index()].iter().filter(nearer).map(|port| port.0).collect(),
                None => whole.candidates(switch, host).to_vec(),
            };
            assert_eq!(found, expected, "from {switch} to {host}");
        }
    }
}

/// Fabrics with many edge switches that have the same neighbours.
fn fabric() -> impl Strategy<Value = Graph> {
    let fat_tree = (1u32..=3).prop_map(|half| json!({ "kind": "fat-tree", "k": 2 * half }));
    let leaf_spine = (2u32..6, 1u32..4, 1u32..3).prop_map(|(racks, spines, hosts)| {
        json!({ "kind": "leaf-spine", "racks": racks, "spines": spines, "hosts_per_rack": hosts })
    });
    let paths = (1u32..4, 1u32..5).prop_map(
        |(hosts, paths)| json!({ "kind": "parallel-paths", "hosts_per_side": hosts, "paths": paths }),
    );
    prop_oneof![fat_tree, leaf_spine, paths].prop_map(|spec| build(spec).expect("it is valid"))
}

proptest! {
    #[test]
    fn routes_of_healthy_fabrics_are_those_of_a_search_from_each_edge_switch(graph in fabric()) {
        check(&graph, &vec![true; graph.links.len()]);
    }

    #[test]
    fn routes_around_dead_links_are_those_of_a_search_from_each_edge_switch(
        graph in fabric(),
        dead in vec(any::<prop::sample::Index>(), 1..8),
    ) {
        let mut alive = vec![true; graph.links.len()];
        dead.iter().for_each(|link| alive[link.index(graph.links.len())] = false);
        check(&graph, &alive);
    }
}

#[test]
fn edge_switches_that_lose_the_same_links_still_reach_each_other() {
    let graph =
        build(json!({ "kind": "leaf-spine", "racks": 3, "spines": 2, "hosts_per_rack": 1 }))
            .expect("it is valid");
    let leads_to_first_spine = |node: NodeId| node.0 == graph.hosts + 3;
    let alive: Vec<bool> = graph
        .links
        .iter()
        .map(|link| !leads_to_first_spine(link.a) && !leads_to_first_spine(link.b))
        .collect();
    assert!(alive.contains(&false));
    check(&graph, &alive);
}
