//! The chain h0 - s0 - s1 - ... - h1: one path whose links may all differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use super::build::{Builder, at_least, positive, size};
use super::{Graph, Topology, TopologyError};
use crate::amount::Limit;
use crate::component::OneOrEach;
use crate::files::FileReader;

/// Parameters of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Chain {
    /// Switches between the two hosts; the chain has one link more.
    #[schemars(range(min = 1))]
    pub switches: u32,
    /// Rate of every link, or a list with the rate of each from h0 to h1.
    pub rate: OneOrEach<Rate, Vec<Rate>>,
    /// One-way propagation delay of every link, or a list with the delay of each from h0 to h1.
    pub propagation: OneOrEach<Time, Vec<Time>>,
    /// Queue limit at both ends of the links between switches; `queue.limit` by default.
    pub trunk_queue: Option<Limit>,
}

impl Default for Chain {
    fn default() -> Self {
        Chain {
            switches: 2,
            rate: OneOrEach::One(Rate(1_000_000_000)),
            propagation: OneOrEach::One(Time::from_us(2)),
            trunk_queue: None,
        }
    }
}

/// Returns the value of each of `links` links.
fn per_link<T: Copy>(
    values: &OneOrEach<T, Vec<T>>,
    links: u32,
    field: &'static str,
) -> Result<Vec<T>, TopologyError> {
    match values {
        OneOrEach::One(value) => Ok(vec![*value; links as usize]),
        OneOrEach::Each(list) if list.len() == links as usize => Ok(list.clone()),
        OneOrEach::Each(list) => Err(TopologyError::new(
            "chain-links",
            field,
            format!(
                "{field} lists {} values: {} switches make {links} links",
                list.len(),
                links - 1
            ),
        )
        .hint("list one value per link from h0 to h1, or write a single value for all")),
    }
}

impl Chain {
    /// Builds the graph: h0, h1, then the switches from h0 to h1.
    ///
    /// # Errors
    /// Refuses a chain without a switch, a rate of 0, and a list without exactly one value per
    /// link.
    pub fn build(&self) -> Result<Graph, TopologyError> {
        at_least("chain-switches", "switches", self.switches, 1, "switch")?;
        size("chain-size", "switches", 2, 2 + u64::from(self.switches))?;
        let links = self.switches + 1;
        let rates = per_link(&self.rate, links, "rate")?;
        let propagations = per_link(&self.propagation, links, "propagation")?;
        let (first, last) = (2, 2 + self.switches - 1);

        let mut build = Builder::new(2, &[("s", self.switches)], &["host", "trunk"]);
        for (index, (rate, propagation)) in rates.into_iter().zip(propagations).enumerate() {
            let rate = positive("chain-rate", "rate", rate)?;
            let index = index as u32;
            if index == 0 {
                build.link(0, first, 0, rate, propagation);
            } else if index == links - 1 {
                build.link(1, last, 0, rate, propagation);
            } else {
                build.link(first + index - 1, first + index, 1, rate, propagation).queue_limit =
                    self.trunk_queue;
            }
        }
        Ok(build.finish())
    }
}

impl Topology for Chain {
    fn graph(&self, _: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build()
    }
}
