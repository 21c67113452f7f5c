//! Rails: accelerator k of every server attaches to leaf k of its unit, and the accelerators of a
//! server are joined by an internal switch.
//!
//! NVIDIA's DGX SuperPOD has 8 leaves for every 32 servers. A host of the graph is an accelerator
//! with its interface: host `s * rails + k` is accelerator k of server s. Accelerators of one
//! server reach each other by the internal switch only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, interfaces, links, paths, positive, size, uplinks};
use super::leaf_spine::LeafSpineValues;
use super::{Attachment, Graph, Topology, TopologyError};
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of a rail-optimised fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RailOptimised {
    /// Servers.
    #[schemars(range(min = 1))]
    pub servers: u32,
    /// Rails: accelerators of a server, each with an interface of its own.
    #[schemars(range(min = 2, max = 8))]
    pub rails: u32,
    /// Servers that share one leaf per rail. All servers when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub servers_per_unit: Option<u32>,
    /// Spine switches.
    #[schemars(range(min = 1, max = 1023))]
    pub spines: u32,
    /// Parallel links between a leaf and each spine.
    #[schemars(range(min = 1))]
    pub links_per_spine: u32,
    /// Rate of every link outside servers, or of each tier: `{ host = "400Gbps", spine = "800Gbps" }`.
    pub rate: OneOrEach<Rate, LeafSpineValues<Rate>>,
    /// One-way propagation delay of every link outside servers, or of each tier.
    pub propagation: OneOrEach<Time, LeafSpineValues<Time>>,
    /// Rate of each accelerator's link to the internal switch of its server: 450 GB/s by default.
    pub internal_rate: Rate,
    /// One-way propagation delay of the links inside servers.
    pub internal_propagation: Time,
}

impl Default for RailOptimised {
    fn default() -> Self {
        RailOptimised {
            servers: 4,
            rails: 2,
            servers_per_unit: None,
            spines: 1,
            links_per_spine: 4,
            rate: OneOrEach::One(Rate(400_000_000_000)),
            propagation: OneOrEach::One(Time::from_us(1)),
            internal_rate: Rate(3_600_000_000_000),
            internal_propagation: Time(500_000),
        }
    }
}

impl RailOptimised {
    /// Builds the graph: hosts by server, then leaves by unit and rail, then spines, then the
    /// servers' internal switches.
    ///
    /// # Errors
    /// Refuses fewer than 2 or more than 8 rails, fabrics without a server or spine, rates of 0,
    /// and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        interfaces("rail-optimised-rails", "rails", self.rails)?;
        at_least("rail-optimised-servers", "servers", self.servers, 1, "server")?;
        let unit = self.servers_per_unit.unwrap_or(self.servers);
        at_least("rail-optimised-servers", "servers_per_unit", unit, 1, "server per unit")?;
        at_least("rail-optimised-links", "links_per_spine", self.links_per_spine, 1, "link")?;
        if self.spines == 0 {
            let message = "spines = 0: rails must meet at a spine";
            return Err(TopologyError::new("rail-optimised-spines", "spines", message)
                .hint("write spines = 1; with interface.kind = \"by-rail\" and all servers in one unit no packet crosses it, as in a network of rails alone"));
        }
        paths("rail-optimised-spines", "spines", self.spines)?;
        let uplinks = uplinks("rail-optimised-links", self.spines, self.links_per_spine)?;
        let leaves = self.servers.div_ceil(unit).saturating_mul(self.rails);
        let [servers, spines] = [self.servers, self.spines].map(u64::from);
        let total = servers * u64::from(self.rails);
        size(
            "rail-optimised-size",
            "servers",
            total,
            total + u64::from(leaves) + spines + servers,
        )?;
        links("rail-optimised-size", "servers", 2 * total + u64::from(leaves * uplinks))?;
        let (rate, propagation) = (self.rate.tiers(), self.propagation.tiers());
        positive("rail-optimised-rate", "rate.host", rate.host)?;
        positive("rail-optimised-rate", "rate.spine", rate.spine)?;
        positive("rail-optimised-rate", "internal_rate", self.internal_rate)?;
        let hosts = self.servers * self.rails;
        let switches = [("leaf", leaves), ("spine", self.spines), ("server", self.servers)];
        let mut build = Builder::new(hosts, &switches, &["host", "internal", "spine"]);
        build.attach(Attachment::Rails { rails: self.rails });
        let (first_leaf, first_server) = (hosts, hosts + leaves + self.spines);
        for host in 0..hosts {
            let (server, rail) = (host / self.rails, host % self.rails);
            let leaf = first_leaf + server / unit * self.rails + rail;
            build.link(host, leaf, 0, rate.host, propagation.host);
            let (inside, delay) = (self.internal_rate, self.internal_propagation);
            build.link(host, first_server + server, 1, inside, delay);
        }
        let between = [leaves, self.spines, self.links_per_spine];
        build.join_leaves(first_leaf, between, 2, rate.spine, propagation.spine);
        Ok(build.finish())
    }
}

impl Topology for RailOptimised {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
