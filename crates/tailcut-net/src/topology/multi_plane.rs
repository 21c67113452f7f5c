//! Planes: every host has an interface in each of several networks that do not meet.
//!
//! Each plane is a leaf-spine, or a star if it has one leaf and no spine. The sender's choice of
//! the interface decides the plane of a packet. Alibaba HPN has two planes (SIGCOMM 2024), DeepSeek
//! eight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, interfaces, links, paths, positive, size, uplinks};
use super::leaf_spine::LeafSpineValues;
use super::{Attachment, Graph, Topology, TopologyError};
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of a fabric of several planes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MultiPlane {
    /// Planes: interfaces of every host.
    #[schemars(range(min = 2, max = 8))]
    pub planes: u32,
    /// Leaf switches of each plane.
    #[schemars(range(min = 1))]
    pub leaves: u32,
    /// Hosts that share a leaf switch, the same in every plane.
    #[schemars(range(min = 1))]
    pub hosts_per_leaf: u32,
    /// Spine switches of each plane; 0 with a single leaf.
    #[schemars(range(max = 1023))]
    pub spines: u32,
    /// Parallel links between a leaf and each spine of its plane.
    #[schemars(range(min = 1))]
    pub links_per_spine: u32,
    /// Rate of every link, or of each tier: `{ host = "200Gbps", spine = "400Gbps" }`.
    pub rate: OneOrEach<Rate, LeafSpineValues<Rate>>,
    /// One-way propagation delay of every link, or of each tier.
    pub propagation: OneOrEach<Time, LeafSpineValues<Time>>,
}

impl Default for MultiPlane {
    fn default() -> Self {
        MultiPlane {
            planes: 2,
            leaves: 2,
            hosts_per_leaf: 4,
            spines: 2,
            links_per_spine: 2,
            rate: OneOrEach::One(Rate(400_000_000_000)),
            propagation: OneOrEach::One(Time::from_us(1)),
        }
    }
}

impl MultiPlane {
    /// Builds the graph: hosts by leaf, then for each plane its leaves and its spines.
    ///
    /// # Errors
    /// Refuses fewer than 2 or more than 8 planes, fewer than two hosts, leaves without a spine
    /// between them, rates of 0, and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        interfaces("multi-plane-planes", "planes", self.planes)?;
        at_least("multi-plane-leaves", "leaves", self.leaves, 1, "leaf per plane")?;
        at_least("multi-plane-hosts", "hosts_per_leaf", self.hosts_per_leaf, 1, "host per leaf")?;
        at_least("multi-plane-links", "links_per_spine", self.links_per_spine, 1, "link")?;
        if self.leaves > 1 || self.spines > 0 {
            paths("multi-plane-spines", "spines", self.spines)?;
            uplinks("multi-plane-links", self.spines, self.links_per_spine)?;
        }
        let [planes, leaves, spines] = [self.planes, self.leaves, self.spines].map(u64::from);
        let total = leaves * u64::from(self.hosts_per_leaf);
        size("multi-plane-size", "leaves", total, total + planes * (leaves + spines))?;
        let between = leaves * spines * u64::from(self.links_per_spine);
        links("multi-plane-size", "leaves", planes * (total + between))?;
        let hosts = self.leaves * self.hosts_per_leaf;
        at_least("multi-plane-hosts", "hosts_per_leaf", hosts, 2, "hosts in all")?;
        let (rate, propagation) = (self.rate.tiers(), self.propagation.tiers());
        positive("multi-plane-rate", "rate.host", rate.host)?;
        positive("multi-plane-rate", "rate.spine", rate.spine)?;
        let names: Vec<(String, u32)> = (0..self.planes)
            .flat_map(|plane| {
                [(format!("p{plane}leaf"), self.leaves), (format!("p{plane}spine"), self.spines)]
            })
            .collect();
        let kinds: Vec<(&str, u32)> = names.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let mut build = Builder::new(hosts, &kinds, &["host", "spine"]);
        build.attach(Attachment::Planes { planes: self.planes });
        let first_leaf = |plane: u32| hosts + plane * (self.leaves + self.spines);
        for host in 0..hosts {
            for plane in 0..self.planes {
                let leaf = first_leaf(plane) + host / self.hosts_per_leaf;
                build.link(host, leaf, 0, rate.host, propagation.host);
            }
        }
        for plane in 0..self.planes {
            build.join_leaves(
                first_leaf(plane),
                [self.leaves, self.spines, self.links_per_spine],
                1,
                rate.spine,
                propagation.spine,
            );
        }
        Ok(build.finish())
    }
}

impl Topology for MultiPlane {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
