//! The fat-tree of k-port switches (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).
//!
//! It has k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 cores. Edge uplink i goes to
//! aggregation switch i of the pod; uplink c of aggregation switch a goes to core a*k/2 + c. The
//! choice of both uplinks is therefore the choice of the path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::component::OneOrEach;
use crate::files::FileReader;

/// The largest k: routes between more edge switches would take minutes to compute.
const MAX_K: u32 = 82;

/// Parameters of a fat-tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FatTree {
    /// Ports per switch: even, from 2 to 82. The network has k^3/4 hosts at `oversubscription` 1.
    #[schemars(range(min = 2, max = 82))]
    pub k: u32,
    /// Rate of every link, or of each tier: `{ host = "1Gbps", aggregation = "1Gbps", core =
    /// "230Mbps" }`.
    pub rate: OneOrEach<Rate, FatTreeValues<Rate>>,
    /// One-way propagation delay of every link, or of each tier. By default the twelve links of a
    /// round trip between pods add up to 32 us.
    pub propagation: OneOrEach<Time, FatTreeValues<Time>>,
    /// Hosts per uplink of an edge switch: 4 attaches four times as many hosts as a full-bisection
    /// fat-tree has.
    #[schemars(range(min = 1))]
    pub oversubscription: u32,
}

/// A value for each tier of links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTreeValues<T> {
    /// Between hosts and edge switches.
    pub host: T,
    /// Between edge and aggregation switches.
    pub aggregation: T,
    /// Between aggregation and core switches.
    pub core: T,
}

impl<T: Copy> OneOrEach<T, FatTreeValues<T>> {
    fn tiers(&self) -> FatTreeValues<T> {
        match self {
            OneOrEach::One(value) => {
                FatTreeValues { host: *value, aggregation: *value, core: *value }
            }
            OneOrEach::Each(tiers) => *tiers,
        }
    }
}

impl Default for FatTree {
    fn default() -> Self {
        FatTree {
            k: 4,
            rate: OneOrEach::One(Rate(1_000_000_000)),
            propagation: OneOrEach::One(Time::from_ns(2_667)),
            oversubscription: 1,
        }
    }
}

impl FatTree {
    /// Builds the graph.
    ///
    /// # Errors
    /// Refuses a k that is odd or out of range, a rate of 0, and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        let k = self.k;
        if k % 2 == 1 || !(2..=MAX_K).contains(&k) {
            let error = format!("k = {k}: a fat-tree needs an even k from 2 to {MAX_K}");
            let nearest = (k + k % 2).clamp(2, MAX_K);
            return Err(
                TopologyError::new("fat-tree-k", "k", error).hint(format!("try k = {nearest}"))
            );
        }
        at_least(
            "fat-tree-oversubscription",
            "oversubscription",
            self.oversubscription,
            1,
            "host per uplink",
        )?;
        let (rate, propagation) = (self.rate.tiers(), self.propagation.tiers());
        for (field, rate) in [
            ("rate.host", rate.host),
            ("rate.aggregation", rate.aggregation),
            ("rate.core", rate.core),
        ] {
            positive("fat-tree-rate", field, rate)?;
        }

        let half = k / 2;
        let (edges, cores) = (k * half, half * half);
        let host_count = u64::from(edges) * u64::from(half) * u64::from(self.oversubscription);
        size(
            "fat-tree-size",
            "oversubscription",
            host_count,
            host_count + u64::from(2 * edges + cores),
        )?;
        let per_edge = half * self.oversubscription;
        let hosts = edges * per_edge;
        let (first_edge, first_agg, first_core) = (hosts, hosts + edges, hosts + 2 * edges);

        let mut build = Builder::new(
            hosts,
            &[("edge", edges), ("agg", edges), ("core", cores)],
            &["host", "aggregation", "core"],
        );
        for host in 0..hosts {
            build.link(host, first_edge + host / per_edge, 0, rate.host, propagation.host);
        }
        for edge in 0..edges {
            let pod = edge / half;
            for uplink in 0..half {
                let agg = first_agg + pod * half + uplink;
                build.link(first_edge + edge, agg, 1, rate.aggregation, propagation.aggregation);
            }
        }
        for agg in 0..edges {
            for uplink in 0..half {
                let core = first_core + agg % half * half + uplink;
                build.link(first_agg + agg, core, 2, rate.core, propagation.core);
            }
        }
        Ok(build.finish())
    }
}

impl Topology for FatTree {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
