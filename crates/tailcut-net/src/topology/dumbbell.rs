//! The dumbbell: pairs of hosts whose traffic shares one link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::amount::Limit;
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of a dumbbell. Hosts `0..pairs` are on the left, `pairs..2*pairs` on the right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on each side.
    #[schemars(range(min = 1))]
    pub pairs: u32,
    /// Rate of every link, or of each part: `{ host = "1Gbps", bottleneck = "100Mbps" }`.
    pub rate: OneOrEach<Rate, DumbbellValues<Rate>>,
    /// One-way propagation delay of every link, or of each part.
    pub propagation: OneOrEach<Time, DumbbellValues<Time>>,
    /// Queue limit at both ends of the bottleneck link; `queue.limit` by default.
    pub bottleneck_queue: Option<Limit>,
}

/// A value for each part of the dumbbell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DumbbellValues<T> {
    /// Between hosts and switches.
    pub host: T,
    /// Between the two switches.
    pub bottleneck: T,
}

impl<T: Copy> OneOrEach<T, DumbbellValues<T>> {
    fn parts(&self) -> DumbbellValues<T> {
        match self {
            OneOrEach::One(value) => DumbbellValues { host: *value, bottleneck: *value },
            OneOrEach::Each(parts) => *parts,
        }
    }
}

impl Default for Dumbbell {
    fn default() -> Self {
        Dumbbell {
            pairs: 2,
            rate: OneOrEach::One(Rate(1_000_000_000)),
            propagation: OneOrEach::One(Time::from_us(2)),
            bottleneck_queue: None,
        }
    }
}

impl Dumbbell {
    /// Builds the graph.
    ///
    /// # Errors
    /// Refuses a dumbbell without pairs, a rate of 0, and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        at_least("dumbbell-pairs", "pairs", self.pairs, 1, "pair")?;
        let hosts = 2 * u64::from(self.pairs);
        size("dumbbell-size", "pairs", hosts, hosts + 2)?;
        let (rate, propagation) = (self.rate.parts(), self.propagation.parts());
        positive("dumbbell-rate", "rate.host", rate.host)?;
        positive("dumbbell-rate", "rate.bottleneck", rate.bottleneck)?;

        let hosts = 2 * self.pairs;
        let mut build = Builder::new(hosts, &[("s", 2)], &["host", "bottleneck"]);
        for host in 0..hosts {
            build.link(host, hosts + host / self.pairs, 0, rate.host, propagation.host);
        }
        build.link(hosts, hosts + 1, 1, rate.bottleneck, propagation.bottleneck).queue_limit =
            self.bottleneck_queue;
        Ok(build.finish())
    }
}

impl Topology for Dumbbell {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
