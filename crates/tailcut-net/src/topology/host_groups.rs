//! Groups of nearby hosts, such as racks and pods, and the rates of their uplinks.

use tailcut_engine::Rate;

use super::{Graph, Link, NodeId};

/// Partition of the hosts into the parts that remain connected without the links of some tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGroups {
    /// Group of each host; groups are numbered in the order of their first hosts.
    pub of_host: Vec<u32>,
    /// Total rate, in one direction, of the links that leave each group.
    pub uplink: Vec<Rate>,
}

impl HostGroups {
    /// Returns the number of hosts in each group.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.uplink.len()];
        for &group in &self.of_host {
            sizes[group as usize] += 1;
        }
        sizes
    }
}

impl Graph {
    /// Returns the groups that remain connected without the links between switches of `tier` and
    /// above. Tier 1 gives the racks.
    pub fn groups_below(&self, tier: u8) -> HostGroups {
        let nodes = self.nodes();
        let mut parent: Vec<NodeId> = (0..nodes).map(NodeId::at).collect();
        let inner = |link: &&Link| link.tier < tier || self.switch(link.a).is_none();
        for link in self.links.iter().filter(inner) {
            let (a, b) = (root(&mut parent, link.a), root(&mut parent, link.b));
            parent[a.max(b).index()] = a.min(b);
        }
        let mut number = vec![u32::MAX; nodes];
        let mut of_host = Vec::with_capacity(self.hosts as usize);
        let mut groups = 0;
        for host in 0..self.hosts {
            let root = root(&mut parent, NodeId(host)).index();
            if number[root] == u32::MAX {
                number[root] = groups;
                groups += 1;
            }
            of_host.push(number[root]);
        }
        let mut uplink = vec![Rate(0); groups as usize];
        for link in self.links.iter().filter(|link| !inner(link)) {
            let (a, b) = (root(&mut parent, link.a), root(&mut parent, link.b));
            for end in [a, b] {
                let group = number[end.index()];
                if a != b && group != u32::MAX {
                    uplink[group as usize].0 += link.rate.0;
                }
            }
        }
        HostGroups { of_host, uplink }
    }

    /// Returns the groups of hosts that share an edge switch.
    pub fn racks(&self) -> HostGroups {
        self.groups_below(1)
    }

    /// Returns the groups of hosts that reach each other without the topmost tier of links: the
    /// pods of a fat-tree, the racks of a leaf-spine.
    pub fn pods(&self) -> HostGroups {
        self.groups_below((self.tiers.len() as u8).saturating_sub(1).max(1))
    }

    /// Returns the rate of each host's interfaces together, without links inside its server.
    pub fn host_rates(&self) -> Vec<Rate> {
        let mut rates = vec![Rate(0); self.hosts as usize];
        for (index, link) in self.links.iter().enumerate() {
            if self.switch(link.a).is_none() && !self.is_internal(index) {
                rates[link.a.index()].0 += link.rate.0;
            }
        }
        rates
    }
}

/// Returns the representative of `node`, and shortens the path to it.
fn root(parent: &mut [NodeId], mut node: NodeId) -> NodeId {
    while parent[node.index()] != node {
        parent[node.index()] = parent[parent[node.index()].index()];
        node = parent[node.index()];
    }
    node
}
