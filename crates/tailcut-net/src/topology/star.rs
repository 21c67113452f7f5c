//! The star: hosts around one switch. Only the links to the hosts can be congested.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::files::FileReader;

/// Parameters of a star.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Star {
    /// Number of hosts.
    #[schemars(range(min = 2))]
    pub hosts: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// One-way propagation delay of every link.
    pub propagation: Time,
}

impl Default for Star {
    fn default() -> Self {
        Star { hosts: 8, rate: Rate(1_000_000_000), propagation: Time::from_us(2) }
    }
}

impl Star {
    /// Builds the graph.
    ///
    /// # Errors
    /// Refuses fewer than two hosts, a rate of 0, and networks that are too large.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        at_least("star-hosts", "hosts", self.hosts, 2, "hosts")?;
        size("star-size", "hosts", u64::from(self.hosts), u64::from(self.hosts) + 1)?;
        positive("star-rate", "rate", self.rate)?;
        let mut build = Builder::new(self.hosts, &[("s", 1)], &["host"]);
        for host in 0..self.hosts {
            build.link(host, self.hosts, 0, self.rate, self.propagation);
        }
        Ok(build.finish())
    }
}

impl Topology for Star {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
