//! Two edge switches joined by parallel paths: the toy fabrics of RepFlow (Fig. 3, Table I) and
//! TinyFlow (Figs. 1 and 2), which are one pod of a small fat-tree.
//!
//! Each path runs through a switch of its own, so that the choice is made at the edge switch and
//! each half of a path has a queue of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, paths, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of parallel paths. Hosts `0..hosts_per_side` are on the left, the others on the
/// right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParallelPaths {
    /// Hosts at each of the two edge switches.
    #[schemars(range(min = 1))]
    pub hosts_per_side: u32,
    /// Paths between the edge switches.
    #[schemars(range(min = 1, max = 1023))]
    pub paths: u32,
    /// Rate of the host links, and of the paths without `path_rates`.
    pub rate: Rate,
    /// Rate of each path in order; empty if all have `rate`.
    pub path_rates: Vec<Rate>,
    /// One-way propagation delay of every link, or of each part: `{ host = "2us", path = "1ms" }`.
    pub propagation: OneOrEach<Time, ParallelPathsValues<Time>>,
}

/// A value for each part of the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelPathsValues<T> {
    /// Between hosts and edge switches.
    pub host: T,
    /// Each of the two links of a path.
    pub path: T,
}

impl Default for ParallelPaths {
    fn default() -> Self {
        ParallelPaths {
            hosts_per_side: 2,
            paths: 2,
            rate: Rate(1_000_000_000),
            path_rates: vec![],
            propagation: OneOrEach::One(Time::from_us(2)),
        }
    }
}

impl ParallelPaths {
    /// Builds the graph: hosts, the two edge switches, then one switch per path.
    ///
    /// # Errors
    /// Refuses counts and rates of 0, and `path_rates` without exactly one rate per path.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        at_least(
            "parallel-paths-hosts",
            "hosts_per_side",
            self.hosts_per_side,
            1,
            "host per side",
        )?;
        paths("parallel-paths-paths", "paths", self.paths)?;
        let hosts = 2 * u64::from(self.hosts_per_side);
        size("parallel-paths-size", "hosts_per_side", hosts, hosts + 2 + u64::from(self.paths))?;
        positive("parallel-paths-rate", "rate", self.rate)?;
        for rate in &self.path_rates {
            positive("parallel-paths-rate", "path_rates", *rate)?;
        }
        if !self.path_rates.is_empty() && self.path_rates.len() != self.paths as usize {
            let (given, paths) = (self.path_rates.len(), self.paths);
            return Err(TopologyError::new(
                "parallel-paths-rates",
                "path_rates",
                format!("path_rates lists {given} rates: must list one for each of {paths} paths"),
            )
            .hint("leave path_rates out to give every path the same rate"));
        }
        let propagation = match &self.propagation {
            OneOrEach::One(value) => ParallelPathsValues { host: *value, path: *value },
            OneOrEach::Each(parts) => *parts,
        };

        let hosts = 2 * self.hosts_per_side;
        let mut build =
            Builder::new(hosts, &[("edge", 2), ("path", self.paths)], &["host", "path"]);
        for host in 0..hosts {
            build.link(host, hosts + host / self.hosts_per_side, 0, self.rate, propagation.host);
        }
        for edge in 0..2 {
            for path in 0..self.paths {
                let rate = self.path_rates.get(path as usize).copied().unwrap_or(self.rate);
                build.link(hosts + edge, hosts + 2 + path, 1, rate, propagation.path);
            }
        }
        Ok(build.finish())
    }
}

impl Topology for ParallelPaths {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
