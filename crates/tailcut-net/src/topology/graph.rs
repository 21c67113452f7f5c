//! The graph that every topology builds: nodes joined by full-duplex links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use crate::amount::{Amount, Limit};

use super::{Attachment, HostId, NodeId, PortId, SwitchId};

/// A full-duplex link. Direction `2 * index` runs from `a` to `b`, direction `2 * index + 1` from
/// `b` to `a`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// One end: the lower tier (the host, for a host link).
    pub a: NodeId,
    /// The other end: the higher tier.
    pub b: NodeId,
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub propagation: Time,
    /// Index into [`Graph::tiers`].
    pub tier: u8,
    /// Overrides the experiment's queue limit at both ends (toy fabrics), as in the `queue.limit`
    /// field.
    pub queue_limit: Option<Limit>,
    /// Overrides the threshold of marking queues at both ends, as in the `queue.threshold` field.
    pub threshold: Option<Amount>,
    /// Probability that the link corrupts a packet, in each direction.
    pub loss: f64,
}

impl Link {
    /// Creates a link without loss, with the experiment's queues.
    pub fn new(a: NodeId, b: NodeId, rate: Rate, propagation: Time, tier: u8) -> Link {
        Link { a, b, rate, propagation, tier, queue_limit: None, threshold: None, loss: 0.0 }
    }
}

/// A network of hosts and switches.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Graph {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: u32,
    /// Names of the link tiers, from the hosts upwards: `"host"`, `"aggregation"`, `"core"`.
    pub tiers: Vec<String>,
    /// The links. The order of a switch's links is its port order, and so the order of ECMP
    /// candidates.
    pub links: Vec<Link>,
    /// How hosts attach to switches.
    #[serde(default, skip_serializing_if = "Attachment::is_single")]
    pub attachment: Attachment,
    /// Optional display name of each node (hosts, then switches); empty without names.
    pub names: Vec<String>,
    /// Attributes of the graph's file that are not read.
    pub ignored: Vec<String>,
}

impl Graph {
    /// Returns the number of hosts and switches.
    pub fn nodes(&self) -> usize {
        (self.hosts + self.switches) as usize
    }

    /// Returns all nodes, hosts first.
    pub fn each_node(&self) -> impl ExactSizeIterator<Item = NodeId> {
        (0..self.nodes()).map(NodeId::at)
    }

    /// Returns whether any link corrupts packets.
    pub fn is_lossy(&self) -> bool {
        self.links.iter().any(|link| link.loss > 0.0)
    }

    /// Returns the switches in the order of their numbers.
    pub fn each_switch(&self) -> impl ExactSizeIterator<Item = SwitchId> {
        (0..self.switches as usize).map(SwitchId::at)
    }

    /// Returns the host that `node` is, or `None` for a switch.
    pub fn host(&self, node: NodeId) -> Option<HostId> {
        node.host(self.hosts)
    }

    /// Returns the hosts in the order of their numbers.
    pub fn each_host(&self) -> impl ExactSizeIterator<Item = HostId> {
        (0..self.hosts as usize).map(HostId::at)
    }

    /// Returns the switch that `node` is, or `None` for a host.
    pub fn switch(&self, node: NodeId) -> Option<SwitchId> {
        node.switch(self.hosts)
    }

    /// Returns the node that a directed link leads to.
    pub fn far_end(&self, port: PortId) -> NodeId {
        let link = &self.links[port.link()];
        [link.b, link.a][port.index() % 2]
    }

    /// Returns the propagation delay from the first host to the host farthest from it. No two hosts
    /// are more than twice as far apart.
    pub fn reach(&self) -> Time {
        self.farthest(|link| link.propagation)
    }

    /// Returns the time from the first host to the host farthest from it, where `takes` returns the
    /// time that a link takes.
    pub fn farthest(&self, takes: impl Fn(&Link) -> Time) -> Time {
        let mut neighbours = vec![vec![]; self.nodes()];
        for (index, link) in self.links.iter().enumerate() {
            if self.is_internal(index) {
                continue;
            }
            neighbours[link.a.index()].push((link.b, takes(link)));
            neighbours[link.b.index()].push((link.a, takes(link)));
        }
        let mut distances = vec![Time::NEVER; self.nodes()];
        let mut queue = BinaryHeap::from([(Reverse(Time::ZERO), 0)]);
        while let Some((Reverse(distance), node)) = queue.pop() {
            if distances.get(node).is_none_or(|known| *known <= distance) {
                continue;
            }
            distances[node] = distance;
            let next = neighbours[node].iter();
            queue.extend(next.map(|(other, more)| (Reverse(distance + *more), other.index())));
        }
        let hosts = distances.into_iter().take(self.hosts as usize);
        hosts.filter(|distance| *distance < Time::NEVER).max().unwrap_or_default()
    }

    /// Returns the switch that a link between two switches leads to.
    pub(super) fn next_switch(&self, port: PortId) -> SwitchId {
        self.switch(self.far_end(port)).expect("the link joins two switches")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::fat_tree::FatTree;

    #[test]
    fn the_farthest_host_of_a_fat_tree_is_six_links_away() {
        let tree = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
        assert_eq!(tree.reach(), Time(6 * tree.links[0].propagation.0));
    }
}
