//! Leaf-spine: the leaf switch of every rack has one link to every spine switch.
//!
//! RepNet's testbed has 2 racks, 3 spines and 6 hosts per rack (2:1) or 3 (1:1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, links, paths, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of a leaf-spine fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSpine {
    /// Racks, each with one leaf switch.
    #[schemars(range(min = 1))]
    pub racks: u32,
    /// Hosts in each rack.
    #[schemars(range(min = 1))]
    pub hosts_per_rack: u32,
    /// Spine switches: the number of paths between racks. With equal rates the fabric is
    /// oversubscribed `hosts_per_rack` : `spines`.
    #[schemars(range(min = 1, max = 1023))]
    pub spines: u32,
    /// Rate of every link, or of each tier: `{ host = "10Gbps", spine = "40Gbps" }`.
    pub rate: OneOrEach<Rate, LeafSpineValues<Rate>>,
    /// One-way propagation delay of every link, or of each tier.
    pub propagation: OneOrEach<Time, LeafSpineValues<Time>>,
}

/// A value for each tier of links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpineValues<T> {
    /// Between hosts and leaf switches.
    pub host: T,
    /// Between leaf and spine switches.
    pub spine: T,
}

impl<T: Copy> OneOrEach<T, LeafSpineValues<T>> {
    pub(super) fn tiers(&self) -> LeafSpineValues<T> {
        match self {
            OneOrEach::One(value) => LeafSpineValues { host: *value, spine: *value },
            OneOrEach::Each(tiers) => *tiers,
        }
    }
}

impl Default for LeafSpine {
    fn default() -> Self {
        LeafSpine {
            racks: 2,
            hosts_per_rack: 6,
            spines: 3,
            rate: OneOrEach::One(Rate(1_000_000_000)),
            propagation: OneOrEach::One(Time::from_us(2)),
        }
    }
}

impl LeafSpine {
    /// Builds the graph: hosts by rack, then leaves, then spines.
    ///
    /// # Errors
    /// Refuses counts and rates of 0, fewer than two hosts, and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        at_least("leaf-spine-racks", "racks", self.racks, 1, "rack")?;
        at_least("leaf-spine-hosts", "hosts_per_rack", self.hosts_per_rack, 1, "host per rack")?;
        paths("leaf-spine-spines", "spines", self.spines)?;
        let total = u64::from(self.racks) * u64::from(self.hosts_per_rack);
        size(
            "leaf-spine-size",
            "racks",
            total,
            total + u64::from(self.racks) + u64::from(self.spines),
        )?;
        let spine_links = u64::from(self.racks) * u64::from(self.spines);
        links("leaf-spine-size", "racks", total + spine_links)?;
        let hosts = self.racks * self.hosts_per_rack;
        at_least("leaf-spine-hosts", "hosts_per_rack", hosts, 2, "hosts in all")?;
        let (rate, propagation) = (self.rate.tiers(), self.propagation.tiers());
        positive("leaf-spine-rate", "rate.host", rate.host)?;
        positive("leaf-spine-rate", "rate.spine", rate.spine)?;

        let first_leaf = hosts;
        let mut build = Builder::new(
            hosts,
            &[("leaf", self.racks), ("spine", self.spines)],
            &["host", "spine"],
        );
        for host in 0..hosts {
            build.link(
                host,
                first_leaf + host / self.hosts_per_rack,
                0,
                rate.host,
                propagation.host,
            );
        }
        let between = [self.racks, self.spines, 1];
        build.join_leaves(first_leaf, between, 1, rate.spine, propagation.spine);
        Ok(build.finish())
    }
}

impl Topology for LeafSpine {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
