//! The cut: which hosts and switches belong to which partition, and how far apart partitions are.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use crate::port::SerializationRate;
use crate::topology::{Graph, HostId, Link, NodeId, PortId};

/// Partitions at most.
pub const MOST: usize = 64;

/// A division of a network's nodes into partitions.
///
/// Hosts stay with their switches, and racks whose hosts are bound to each other stay together.
/// Racks are dealt out in blocks of neighbours, so that pods stay together. A switch above joins the
/// partition of all switches below it; where those are of several partitions, it joins the one that
/// has the fewest switches of its level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The partition of each node.
    nodes: Vec<u8>,
    hosts: usize,
    parts: usize,
    /// The shortest time in which a packet crosses from one partition to another.
    lookahead: Time,
}

impl Cut {
    /// Divides a network into at most `parts` partitions, none of which comes between the hosts of
    /// a pair of `bound`; `shortest` is the size of the smallest packet in bytes.
    ///
    /// # Errors
    /// Refuses a network whose hosts are all at one switch, or bound to each other, and links
    /// between partitions without propagation delay, with the reason.
    pub fn new(
        graph: &Graph,
        parts: usize,
        shortest: u16,
        bound: &[[HostId; 2]],
    ) -> Result<Cut, &'static str> {
        let neighbours = neighbours(graph);
        let racks = racks(graph, &neighbours);
        if parts.min(racks.len()) < 2 {
            return Err("all hosts are at one switch");
        }
        let hosts = graph.hosts as usize;
        // Hosts with several interfaces are at several switches.
        let mut together = vec![];
        for switch in (hosts..graph.nodes()).map(|node| &neighbours[node]) {
            let mut hosts = switch.iter().filter_map(|node| graph.host(*node));
            if let Some(first) = hosts.next() {
                together.extend(hosts.map(|host| [first, host]));
            }
        }
        if groups(hosts, &racks, &together).len() < 2 {
            return Err("all hosts are joined by the switches that they are at");
        }
        together.extend(bound);
        let groups = groups(hosts, &racks, &together);
        let parts = parts.min(groups.len()).min(MOST);
        if parts < 2 {
            return Err("flows start elsewhere at the instant at which others end");
        }
        let mut nodes: Vec<Option<u8>> = vec![None; graph.nodes()];
        let mut dealt = 0;
        for group in &groups {
            let part = (dealt * parts / hosts) as u8;
            for (switch, hosts) in group.iter().map(|rack| &racks[*rack]) {
                dealt += hosts.len();
                nodes[switch.index()] = Some(part);
                hosts.iter().for_each(|host| nodes[host.index()] = Some(part));
            }
        }
        let rack = |(switch, hosts): &(NodeId, Vec<HostId>)| {
            std::iter::once(*switch)
                .chain(hosts.iter().map(|host| NodeId(host.0)))
                .collect::<Vec<_>>()
        };
        let mut level: Vec<NodeId> = racks.iter().flat_map(rack).collect();
        while !level.is_empty() {
            level = assign_above(&mut nodes, &neighbours, &level, parts);
        }
        let nodes = nodes.into_iter().map(|part| part.unwrap_or(0)).collect();
        let mut cut = Cut { nodes, hosts, parts, lookahead: Time::NEVER };
        // Departures into such a link are events for one thread, too.
        if cut.crossing(graph).any(|link| link.propagation == Time::ZERO) {
            return Err("links between switches have no propagation delay");
        }
        let times = cut.crossing(graph).map(|link| {
            link.propagation + Time(SerializationRate::new(link.rate).transmission(shortest))
        });
        cut.lookahead = times.min().unwrap_or(Time::NEVER);
        Ok(cut)
    }

    /// Returns the number of partitions.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the time before which nothing that happens in one partition matters to another.
    pub fn lookahead(&self) -> Time {
        self.lookahead
    }

    /// Returns the partition of a host.
    #[inline]
    pub fn of(&self, host: HostId) -> usize {
        self.nodes[host.index()].into()
    }

    /// Returns the partition of each host.
    pub fn hosts(&self) -> impl Iterator<Item = usize> {
        self.nodes[..self.hosts].iter().map(|part| usize::from(*part))
    }

    /// Returns the partitions that a directed link leaves and reaches.
    pub fn ends(&self, graph: &Graph, port: PortId) -> [usize; 2] {
        [port.reversed(), port].map(|port| self.nodes[graph.far_end(port).index()].into())
    }

    /// Returns the links between partitions.
    fn crossing<'g>(&'g self, graph: &'g Graph) -> impl Iterator<Item = &'g Link> {
        let partition = |node: NodeId| self.nodes[node.index()];
        graph.links.iter().filter(move |link| partition(link.a) != partition(link.b))
    }
}

fn neighbours(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut neighbours = vec![vec![]; graph.nodes()];
    for link in &graph.links {
        neighbours[link.a.index()].push(link.b);
        neighbours[link.b.index()].push(link.a);
    }
    neighbours
}

/// Returns the switches that have hosts, with these, in the order of their first hosts.
fn racks(graph: &Graph, neighbours: &[Vec<NodeId>]) -> Vec<(NodeId, Vec<HostId>)> {
    let mut place = vec![None; graph.nodes()];
    let mut racks: Vec<(NodeId, Vec<HostId>)> = vec![];
    for host in graph.each_host() {
        let up = neighbours[host.index()].iter().find(|node| graph.switch(**node).is_some());
        let Some(&switch) = up else { continue };
        let rack = *place[switch.index()].get_or_insert_with(|| {
            racks.push((switch, vec![]));
            racks.len() - 1
        });
        racks[rack].1.push(host);
    }
    racks
}

/// Returns groups of racks (by number) whose hosts, of `hosts` in all, are bound to each other, in
/// the order of their first racks.
fn groups(hosts: usize, racks: &[(NodeId, Vec<HostId>)], bound: &[[HostId; 2]]) -> Vec<Vec<usize>> {
    let mut rack_of = vec![0; hosts];
    for (rack, (_, hosts)) in racks.iter().enumerate() {
        hosts.iter().for_each(|host| rack_of[host.index()] = rack);
    }
    // The first rack that is known to be of a rack's group.
    let mut first: Vec<usize> = (0..racks.len()).collect();
    fn find(first: &mut [usize], rack: usize) -> usize {
        let mut at = rack;
        while first[at] != at {
            first[at] = first[first[at]];
            at = first[at];
        }
        at
    }
    for pair in bound {
        let [a, b] = pair.map(|host| find(&mut first, rack_of[host.index()]));
        first[a.max(b)] = a.min(b);
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for rack in 0..racks.len() {
        groups.entry(find(&mut first, rack)).or_default().push(rack);
    }
    groups.into_values().collect()
}

/// Assigns the nodes above a level, and returns them.
fn assign_above(
    nodes: &mut [Option<u8>],
    neighbours: &[Vec<NodeId>],
    level: &[NodeId],
    parts: usize,
) -> Vec<NodeId> {
    let mut above: Vec<NodeId> = level
        .iter()
        .flat_map(|node| &neighbours[node.index()])
        .copied()
        .filter(|node| nodes[node.index()].is_none())
        .collect();
    above.sort_unstable();
    above.dedup();
    let mut taken = vec![0usize; parts];
    let below: Vec<Option<u8>> = nodes.to_vec();
    for node in &above {
        let mut parts = neighbours[node.index()].iter().filter_map(|other| below[other.index()]);
        let first = parts.next().expect("a node above has one below");
        let part = match parts.all(|part| part == first) {
            true => first,
            false => (0..taken.len()).min_by_key(|&part| taken[part]).unwrap_or(0) as u8,
        };
        taken[usize::from(part)] += 1;
        nodes[node.index()] = Some(part);
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::fat_tree::FatTree;
    use crate::topology::leaf_spine::LeafSpine;
    use crate::topology::multi_plane::MultiPlane;
    use crate::topology::rail_optimised::RailOptimised;
    use crate::topology::star::Star;

    fn fat_tree(k: u32) -> Graph {
        FatTree { k, ..FatTree::default() }.build().expect("k is even")
    }

    /// Returns how many nodes each partition has.
    fn sizes(cut: &Cut) -> Vec<usize> {
        let count = |part| cut.nodes.iter().filter(|node| usize::from(**node) == part).count();
        (0..cut.parts).map(count).collect()
    }

    #[test]
    fn pods_stay_together_and_cores_are_dealt_out() {
        let graph = fat_tree(4);
        let cut = Cut::new(&graph, 2, 78, &[]).expect("there are pods");
        assert_eq!(sizes(&cut), [18, 18], "8 hosts, 8 switches of pods and 2 cores each");
        let crossing: Vec<_> = graph
            .links
            .iter()
            .filter(|link| cut.nodes[link.a.index()] != cut.nodes[link.b.index()])
            .collect();
        assert!(crossing.iter().all(|link| graph.tiers[usize::from(link.tier)] == "core"));
        assert_eq!(crossing.len(), 8, "half of the links of cores");
    }

    #[test]
    fn racks_of_a_leaf_spine_fabric_are_dealt_out_in_blocks() {
        let graph = LeafSpine { racks: 6, spines: 4, hosts_per_rack: 3, ..LeafSpine::default() }
            .build()
            .expect("it is valid");
        let cut = Cut::new(&graph, 4, 78, &[]).expect("there are racks");
        let of_hosts: Vec<_> = graph.each_host().map(|host| cut.of(host)).collect();
        assert_eq!(of_hosts, [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3]);
        assert_eq!(sizes(&cut), [9, 5, 9, 5]);
    }

    #[test]
    fn the_lookahead_is_the_shortest_crossing() {
        let graph = fat_tree(4);
        let link = &graph.links[0];
        let expected = link.propagation + link.rate.transmission_time(78);
        let cut = Cut::new(&graph, 3, 78, &[]).expect("there are pods");
        assert_eq!((cut.parts(), cut.lookahead()), (3, expected));
    }

    #[test]
    fn a_single_rack_is_not_cut_and_others_no_finer_than_racks() {
        let star = Star { hosts: 9, ..Star::default() }.build().expect("hosts are enough");
        assert_eq!(Cut::new(&star, 2, 78, &[]), Err("all hosts are at one switch"));
        let parts = Cut::new(&fat_tree(4), 500, 78, &[]).map(|cut| cut.parts());
        assert_eq!(parts, Ok(8));
    }

    #[test]
    fn hosts_that_are_bound_to_each_other_stay_together() {
        let graph = LeafSpine { racks: 4, spines: 2, hosts_per_rack: 2, ..LeafSpine::default() }
            .build()
            .expect("it is valid");
        // Hosts of the racks 0 and 2, and of 2 and 3.
        let bound = [[0, 5], [4, 7]].map(|pair| pair.map(HostId));
        let cut = Cut::new(&graph, 4, 78, &bound).expect("a rack is free");
        let of_hosts: Vec<_> = graph.each_host().map(|host| cut.of(host)).collect();
        assert_eq!(of_hosts, [0, 0, 1, 1, 0, 0, 0, 0]);
        let all = [[0, 5], [4, 7], [2, 6]].map(|pair| pair.map(HostId));
        let reason = "flows start elsewhere at the instant at which others end";
        assert_eq!(Cut::new(&graph, 4, 78, &all), Err(reason));
    }

    #[test]
    fn hosts_stay_with_the_switches_of_all_their_interfaces() {
        let planes = MultiPlane { leaves: 4, ..MultiPlane::default() };
        let units =
            RailOptimised { servers: 4, servers_per_unit: Some(2), ..RailOptimised::default() };
        for graph in [planes.build().expect("it is valid"), units.build().expect("it is valid")] {
            let cut = Cut::new(&graph, 2, 78, &[]).expect("there are racks");
            assert_eq!(cut.parts(), 2);
            let of_hosts = graph.links.iter().filter(|link| graph.host(link.a).is_some());
            for link in of_hosts {
                assert_eq!(cut.nodes[link.a.index()], cut.nodes[link.b.index()]);
            }
        }
        let unit = RailOptimised::default().build().expect("it is valid");
        let reason = "all hosts are joined by the switches that they are at";
        assert_eq!(Cut::new(&unit, 2, 78, &[]), Err(reason));
    }

    #[test]
    fn each_port_leaves_and_reaches_a_partition() {
        let graph = fat_tree(4);
        let cut = Cut::new(&graph, 2, 78, &[]).expect("there are pods");
        for (index, link) in graph.links.iter().enumerate() {
            let [a, b] = [link.a, link.b].map(|node| usize::from(cut.nodes[node.index()]));
            let [out, back] = PortId::both_directions(index);
            assert_eq!([cut.ends(&graph, out), cut.ends(&graph, back)], [[a, b], [b, a]]);
        }
    }
}
