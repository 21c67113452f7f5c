//! Components against their definition, path by path.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{RandomStream, Rate};

use super::*;
use crate::component::OneOrEach;
use crate::topology::HostId;
use crate::topology::fat_tree::FatTree;
use crate::topology::leaf_spine::{LeafSpine, LeafSpineValues};

fn leaf_spine(racks: u32, spines: u32) -> Graph {
    let shape = LeafSpine { racks, hosts_per_rack: 1, spines, ..LeafSpine::default() };
    shape.build().expect("it is small")
}

fn fat_tree(k: u32) -> Graph {
    FatTree { k, ..FatTree::default() }.build().expect("k is even")
}

/// Returns the number of the link between two switches.
fn between(graph: &Graph, a: u32, b: u32) -> usize {
    let [a, b] = [a, b].map(|switch| SwitchId(switch).node(graph.hosts));
    graph.links.iter().position(|link| (link.a, link.b) == (a, b)).expect("they are joined")
}

/// Returns routes that avoid the `dead` links, and the components of the fabric with them.
fn without(graph: &Graph, dead: &[usize]) -> (Routes, Option<Components>) {
    let whole = Routes::new(graph).expect("it is connected");
    let routes = whole.avoiding(graph, |link| !dead.contains(&link)).expect("they fit");
    let components = Components::new(graph, &routes, Salts::drawn(1));
    (routes, components)
}

fn key(src: u32, dst: u32, number: u16) -> FlowKey {
    FlowKey::new(HostId(src), HostId(dst), number, 5_000)
}

/// Returns the sets of ports that flows from one host to another may take at a switch, each with
/// how many of 10,000 flows may.
fn parts(components: &Components, switch: u32, src: u32, dst: u32) -> BTreeMap<Vec<u16>, u32> {
    let mut counts = BTreeMap::new();
    for number in 0..10_000 {
        let places = components.places(SwitchId(switch), key(src, dst, number));
        *counts.entry(places.unwrap_or(&[]).to_vec()).or_default() += 1;
    }
    counts
}

fn assert_shares(counts: &BTreeMap<Vec<u16>, u32>, expected: &[(&[u16], f64)]) {
    let places: Vec<&[u16]> = counts.keys().map(Vec::as_slice).collect();
    assert_eq!(places, expected.iter().map(|(places, _)| *places).collect::<Vec<_>>());
    for (count, (places, share)) in counts.values().zip(expected) {
        // Four standard deviations of 10,000 draws are 200 at most.
        assert!((f64::from(*count) - 10_000.0 * share).abs() < 200.0, "{places:?}: {count}");
    }
}

#[test]
fn the_spine_that_lost_a_link_is_a_component_of_its_own_for_pairs_that_still_use_it() {
    // Switches 0 to 3 are leaves with one host each, 4 to 6 are spines.
    let graph = leaf_spine(4, 3);
    let (_, components) = without(&graph, &[between(&graph, 0, 4)]);
    let components = components.expect("it is asymmetric");
    // The spine's link to leaf 2 carries nothing from leaf 0, the others' do.
    let thirds: [(&[u16], f64); 2] = [(&[0], 1.0 / 3.0), (&[1, 2], 2.0 / 3.0)];
    assert_shares(&parts(&components, 1, 1, 2), &thirds);
    assert_shares(&parts(&components, 3, 3, 1), &thirds);
    // To and from leaf 0 the two other spines are alike.
    for (switch, src, dst) in [(0, 0, 2), (1, 1, 0)] {
        assert_shares(&parts(&components, switch, src, dst), &[(&[], 1.0)]);
    }
}

#[test]
fn components_are_weighted_by_capacity() {
    // Spine 4 has links of 4 Gbps to both leaves, the two others of 1 Gbps.
    let mut graph = leaf_spine(2, 3);
    for leaf in 0..2 {
        let link = between(&graph, leaf, 2);
        graph.links[link].rate = Rate(4_000_000_000);
    }
    let (_, components) = without(&graph, &[]);
    let components = components.expect("rates differ");
    let weights: [(&[u16], f64); 2] = [(&[0], 4.0 / 6.0), (&[1, 2], 2.0 / 6.0)];
    assert_shares(&parts(&components, 0, 0, 1), &weights);
}

/// The leaf's own links have one rate.
#[test]
fn the_narrowest_link_of_a_path_is_its_capacity() {
    let mut graph = leaf_spine(2, 3);
    let link = between(&graph, 1, 2);
    graph.links[link].rate = Rate(500_000_000);
    let (_, components) = without(&graph, &[]);
    let components = components.expect("rates differ");
    let weights: [(&[u16], f64); 2] = [(&[0], 0.2), (&[1, 2], 0.8)];
    assert_shares(&parts(&components, 0, 0, 1), &weights);
}

#[test]
fn a_symmetric_fabric_is_not_divided() {
    let rate =
        OneOrEach::Each(LeafSpineValues { host: Rate(1_000_000_000), spine: Rate(4_000_000_000) });
    let tiers = LeafSpine { racks: 3, rate, ..LeafSpine::default() }.build();
    for graph in [leaf_spine(5, 4), fat_tree(4), fat_tree(8), tiers.expect("it is small")] {
        assert!(without(&graph, &[]).1.is_none());
    }
    // Neither is one that has lost a leaf with all its links.
    let graph = leaf_spine(4, 3);
    let dead: Vec<usize> = (4..7).map(|spine| between(&graph, 0, spine)).collect();
    assert!(without(&graph, &dead).1.is_none());
}

/// Returns every shortest path from one host's switch to another's, link by link.
fn paths(graph: &Graph, routes: &Routes, src: HostId, dst: HostId) -> Vec<Vec<PortId>> {
    let target = routes.edge_switch(dst);
    let mut done = vec![];
    let mut open = vec![(routes.edge_switch(src), vec![])];
    while let Some((switch, path)) = open.pop() {
        if switch == target {
            done.push(path);
            continue;
        }
        for &port in routes.candidates(switch, dst) {
            let next = graph.switch(graph.far_end(port)).expect("it leads to a switch");
            open.push((next, path.iter().copied().chain([port]).collect()));
        }
    }
    done
}

/// Returns the paths of each component of every pair of hosts, by definition.
type Divided = BTreeMap<(HostId, HostId), BTreeMap<Vec<(u64, Labels)>, Vec<Vec<PortId>>>>;
type Labels = BTreeMap<(SwitchId, SwitchId, u64), u32>;

fn by_definition(graph: &Graph, routes: &Routes) -> Divided {
    let rate = |port: &PortId| graph.links[port.link()].rate.0;
    let pairs = || graph.each_host().flat_map(|src| graph.each_host().map(move |dst| (src, dst)));
    let mut labels: BTreeMap<PortId, Labels> = BTreeMap::new();
    let mut labelled = BTreeSet::new();
    for (src, dst) in pairs() {
        let (from, to) = (routes.edge_switch(src), routes.edge_switch(dst));
        // Hosts of one switch share its pairs.
        if !labelled.insert((from, to)) {
            continue;
        }
        for path in paths(graph, routes, src, dst) {
            let narrowest = path.iter().map(rate).min().unwrap_or(0);
            for port in &path {
                let labels = labels.entry(*port).or_default();
                *labels.entry((from, to, narrowest)).or_default() += 1;
            }
        }
    }
    let mut divided = Divided::new();
    for (src, dst) in pairs() {
        for path in paths(graph, routes, src, dst) {
            let queue = |port: &PortId| (rate(port), labels[port].clone());
            let component = path.iter().map(queue).collect();
            divided.entry((src, dst)).or_default().entry(component).or_default().push(path);
        }
    }
    divided
}

/// Returns the ports that a flow may take, hop by hop, whatever it chooses among them.
fn followed(
    graph: &Graph,
    routes: &Routes,
    components: Option<&Components>,
    key: FlowKey,
) -> BTreeSet<Vec<PortId>> {
    let target = routes.edge_switch(key.dst());
    let mut done = BTreeSet::new();
    let mut open = vec![(routes.edge_switch(key.src()), vec![])];
    while let Some((switch, path)) = open.pop() {
        if switch == target {
            done.insert(path);
            continue;
        }
        let ports = routes.candidates(switch, key.dst());
        let all: Vec<u16> = (0..ports.len() as u16).collect();
        for &place in components.and_then(|all| all.places(switch, key)).unwrap_or(&all) {
            let port = ports[usize::from(place)];
            let next = graph.switch(graph.far_end(port)).expect("it leads to a switch");
            open.push((next, path.iter().copied().chain([port]).collect()));
        }
    }
    done
}

/// Returns the links between switches.
fn inner(graph: &Graph) -> Vec<usize> {
    let inner = |link: &usize| graph.switch(graph.links[*link].a).is_some();
    (0..graph.links.len()).filter(inner).collect()
}

/// Each flow has all paths of exactly one component, at every hop; the flows of a pair are spread
/// over its components by capacity.
#[test]
fn flows_take_the_paths_of_one_component_as_it_is_defined() {
    let mut divided = 0;
    for round in 0..40 {
        let mut stream = RandomStream::new(round, 0, "test");
        let mut graph = match round % 3 {
            0 => leaf_spine(4, 4),
            1 => leaf_spine(3, 5),
            _ => fat_tree(4),
        };
        let links = inner(&graph);
        if round % 2 == 1 {
            let slow = links[stream.below(links.len() as u64) as usize];
            graph.links[slow].rate = Rate(400_000_000);
        }
        let mut draw = |_| links[stream.below(links.len() as u64) as usize];
        let dead: Vec<usize> = (0..round % 4).map(&mut draw).collect();
        let (routes, components) = without(&graph, &dead);
        for ((src, dst), expected) in by_definition(&graph, &routes) {
            divided += u32::from(expected.len() > 1);
            let sets: BTreeMap<BTreeSet<Vec<PortId>>, f64> = expected
                .into_values()
                .map(|paths| {
                    let rate = |port: &PortId| graph.links[port.link()].rate.0;
                    let narrowest = paths[0].iter().map(rate).min().unwrap_or(0);
                    let capacity = paths.len() as f64 * narrowest as f64;
                    (paths.into_iter().collect(), capacity)
                })
                .collect();
            let all: f64 = sets.values().sum();
            let mut counts: BTreeMap<_, f64> = BTreeMap::new();
            for number in 0..100 {
                let key = key(src.0, dst.0, number);
                let taken = followed(&graph, &routes, components.as_ref(), key);
                assert!(sets.contains_key(&taken), "round {round}: {src} to {dst}: {taken:?}");
                *counts.entry(taken).or_default() += 1.0;
            }
            for (paths, capacity) in &sets {
                let (count, expected) = (counts.get(paths).unwrap_or(&0.0), 100.0 * capacity / all);
                // Five standard deviations of a hundred draws.
                assert!(all == 0.0 || (count - expected).abs() <= 25.0, "{count} for {expected}");
            }
        }
    }
    assert!(divided > 1_000, "{divided} pairs have several components");
}

/// This happens where edges spray, or routes have just changed.
#[test]
fn a_switch_off_the_flows_component_hashes_it_to_one_of_its_own() {
    // Aggregation switch 8 is the first of pod 0 and has lost its link to the first core, 16.
    let graph = fat_tree(4);
    let (routes, components) = without(&graph, &[between(&graph, 8, 16)]);
    let components = components.expect("it is asymmetric");
    // Hosts 4 and 8 are in pods 1 and 2; switch 10 is the first aggregation switch of pod 1.
    assert_eq!(routes.candidates(SwitchId(10), HostId(8)).len(), 2);
    let counts = parts(&components, 10, 4, 8);
    let places: Vec<&[u16]> = counts.keys().map(Vec::as_slice).collect();
    assert_eq!(places, [&[0], &[1]]);
    assert!(counts.values().all(|count| *count > 4_000), "{counts:?}");
}

#[test]
fn a_repaired_network_is_symmetric_again() {
    let graph = fat_tree(4);
    let whole = Routes::new(&graph).expect("it is connected");
    let broken = whole.avoiding(&graph, |link| link != between(&graph, 8, 16)).expect("it fits");
    assert!(Components::new(&graph, &broken, Salts::drawn(1)).is_some());
    let again = broken.avoiding(&graph, |_| true).expect("it fits");
    assert!(Components::new(&graph, &again, Salts::drawn(1)).is_none());
}
