//! The leaves of a fabric, their uplinks, and the state of every link.

use super::estimate::Estimate;
use crate::topology::Graph;

/// Stands for no leaf and no uplink.
pub(super) const NONE: u32 = u32::MAX;

/// The leaves of a fabric and their uplinks.
#[derive(Debug, Clone)]
pub(super) struct LeafMap {
    /// Leaf of each host.
    pub leaf_of_host: Vec<u32>,
    /// Leaf of each switch; `NONE` without hosts.
    pub leaf_of_switch: Vec<u32>,
    /// By port.
    pub links: Vec<LeafLink>,
    /// Number of uplinks of each leaf.
    pub uplinks: Vec<u32>,
}

/// The state of a link that every packet needs, in one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafLink {
    pub estimate: Estimate,
    /// Number among the uplinks of its leaf; `NONE` if it is no uplink.
    pub uplink: u32,
    pub from_host: bool,
    pub to_host: bool,
}

impl LeafMap {
    pub fn new(graph: &Graph) -> LeafMap {
        let ends = || graph.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let mut leaf_of_switch = vec![NONE; graph.switches as usize];
        let mut leaf_of_host = vec![NONE; graph.hosts as usize];
        let mut leaves = 0;
        for (from, to) in ends() {
            let (None, Some(switch)) = (graph.switch(from), graph.switch(to)) else { continue };
            let leaf = &mut leaf_of_switch[switch.index()];
            if *leaf == NONE {
                *leaf = leaves;
                leaves += 1;
            }
            leaf_of_host[from.0 as usize] = *leaf;
        }
        let mut uplinks = vec![0; leaves as usize];
        let mut number = |from, to| {
            let (Some(from), Some(_)) = (graph.switch(from), graph.switch(to)) else { return NONE };
            let Some(count) = uplinks.get_mut(leaf_of_switch[from.index()] as usize) else {
                return NONE;
            };
            *count += 1;
            *count - 1
        };
        let link = |(from, to)| LeafLink {
            estimate: Estimate::default(),
            uplink: number(from, to),
            from_host: graph.switch(from).is_none(),
            to_host: graph.switch(to).is_none(),
        };
        let links = ends().map(link).collect();
        LeafMap { leaf_of_host, leaf_of_switch, links, uplinks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::leaf_spine::LeafSpine;

    #[test]
    fn leaves_are_switches_with_hosts_and_number_their_uplinks() {
        let shape = LeafSpine { racks: 3, hosts_per_rack: 2, spines: 2, ..LeafSpine::default() };
        let places = LeafMap::new(&shape.build().expect("it is small"));
        assert_eq!(places.leaf_of_host, [0, 0, 1, 1, 2, 2]);
        assert_eq!(places.leaf_of_switch, [0, 1, 2, NONE, NONE]);
        assert_eq!(places.uplinks, [2, 2, 2]);
        let uplinks = places.links.iter().filter(|link| link.uplink != NONE);
        assert_eq!(uplinks.map(|link| link.uplink).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
        let of_hosts = places.links.iter().filter(|link| link.from_host || link.to_host);
        assert!(of_hosts.clone().all(|link| link.uplink == NONE && link.from_host != link.to_host));
        assert_eq!(of_hosts.count(), 12);
    }
}
