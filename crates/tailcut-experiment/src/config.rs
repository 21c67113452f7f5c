//! What the configuration of a run means: its network and flows, and what in it does not go together.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::SpecError;
use tailcut_net::files::FileReader;
use tailcut_net::network::full_packet;
use tailcut_net::queue::QueueEnvironment;
use tailcut_net::topology::find::{find_hosts, find_link, link_name};
use tailcut_net::topology::{Graph, PortId};
use tailcut_net::traffic::demand::Demand;

use crate::file::{FctClock, MeasureSpec};
use crate::sections::Config;

/// What of `[measure]` shows in the flow table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// The completion time that is normalised.
    pub clock: FctClock,
    /// Flows of at most this size are short.
    pub short: Bytes,
    /// Upper bounds of the size groups.
    pub size_groups: Vec<Bytes>,
    /// What happens to segments is recorded.
    pub segments: bool,
    /// The throughput of long flows is recorded.
    pub throughput: bool,
    /// What completion times are made of is recorded. A run without is the one that it was before there was a choice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attribution: bool,
    /// At how many instants all ports are sampled, at the most, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instants: Option<u32>,
}

/// Instants at which all ports can be sampled.
const INSTANTS: RangeInclusive<u32> = 2..=10_000;

impl From<&MeasureSpec> for TableOptions {
    fn from(measure: &MeasureSpec) -> Self {
        TableOptions {
            clock: measure.clock,
            short: measure.short,
            size_groups: measure.size_groups.clone(),
            segments: measure.segments,
            throughput: measure.throughput,
            attribution: measure.attribution,
            instants: measure.fabric.then_some(measure.fabric_instants),
        }
    }
}

impl TableOptions {
    fn check(&self) -> Result<(), SpecError> {
        if self.short == Bytes(0) {
            return Err(SpecError::new(
                "measure-short",
                "short",
                "short = \"0B\": no flow would be short",
            ));
        }
        let ascending = self.size_groups.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.size_groups.first() == Some(&Bytes(0)) || self.size_groups.len() > 64
        {
            let message = "size_groups are not ascending upper bounds above 0B, at most 64 of them";
            return Err(SpecError::new("measure-size-groups", "size_groups", message)
                .hint("write for example [\"10KB\", \"100KB\", \"1MB\"]"));
        }
        if let Some(instants) = self.instants.filter(|instants| !INSTANTS.contains(instants)) {
            let (least, most) = (INSTANTS.start(), INSTANTS.end());
            let message = format!("fabric_instants = {instants}: between {least} and {most}");
            return Err(SpecError::new("measure-fabric", "fabric_instants", message)
                .hint("leave fabric out to sample no port"));
        }
        Ok(())
    }
}

/// Samples of a run beyond which its interval is a slip of the unit.
const MOST_SAMPLES: u64 = 10_000_000;

/// A parameter that cannot be realised, and the section it belongs to.
pub type SectionError = (&'static str, SpecError);

/// What a check of a section has found.
pub type SectionOutcome = (&'static str, Result<(), SpecError>);

impl Config {
    /// Checks what concerns the parameters alone.
    ///
    /// # Errors
    /// Every section's first error.
    pub fn check(&self) -> Vec<SectionError> {
        let scheme = &self.scheme;
        let together = [
            ("measure", self.labels.check()),
            ("measure", self.check_attribution()),
            ("series", self.check_samples()),
            ("queue", self.check_room()),
            ("switch", self.check_memory()),
            ("switch", self.check_flow_control()),
            ("queue", scheme.check_priorities()),
            ("transport", scheme.check_marks()),
            ("replicate", scheme.check_replication()),
        ];
        self.check_each()
            .into_iter()
            .chain(together)
            .filter_map(|(section, outcome)| Some((section, outcome.err()?)))
            .collect()
    }

    /// A packet that an interface holds back waits for nobody, and no part counts that.
    fn check_attribution(&self) -> Result<(), SpecError> {
        if !self.labels.attribution || self.host.jitter == Time::ZERO {
            return Ok(());
        }
        let message = "attribution has no part for what host.jitter holds back";
        Err(SpecError::new("attribution-jitter", "attribution", message)
            .hint("leave host.jitter out, or attribution"))
    }

    /// More samples than can be meant keep a run busy with nothing else.
    fn check_samples(&self) -> Result<(), SpecError> {
        let (end, interval) = (self.horizon.arrivals + self.horizon.drain, self.series.interval);
        let samples = end.0 / interval.0.max(1);
        if self.series.is_off() || samples <= MOST_SAMPLES {
            return Ok(());
        }
        let message = format!(
            "interval = \"{interval}\": {samples} samples until the run ends, at most {MOST_SAMPLES}"
        );
        Err(SpecError::new("series-interval", "interval", message)
            .hint("sample more rarely, or shorten the horizon"))
    }

    /// What queues can hold, against what they are to do. Sections that are wrong in themselves have said so.
    fn check_room(&self) -> Result<(), SpecError> {
        if self.switch.check().is_err() || self.scheme.queue.check().is_err() {
            return Ok(());
        }
        self.scheme.queue.check_environment(&self.around(None, None))
    }

    /// Surroundings of the queues, at a link that holds `link_limit` and marks beyond `threshold` if it says so itself.
    fn around(&self, link_limit: Option<Limit>, threshold: Option<Amount>) -> QueueEnvironment {
        let tcp = self.scheme.transport.segment_spec();
        QueueEnvironment {
            link_limit,
            threshold,
            full_packet: full_packet(&tcp, &self.host),
            nic_queue: self.host.nic_queue,
            switch: self.switch.clone(),
        }
    }

    /// Checks the scheme on the network.
    ///
    /// # Errors
    /// When switches cannot balance so, or a link whose queue has a limit of its own holds too little.
    pub fn check_topology(&self, graph: &Graph) -> Result<(), SectionError> {
        self.scheme.balance.check_topology(graph).map_err(|error| ("balance", error))?;
        self.scheme.queue.check_topology(graph).map_err(|error| ("queue", error))?;
        let mut known = vec![];
        for (index, link) in graph.links.iter().enumerate() {
            let tier = &graph.tiers[usize::from(link.tier)];
            let of_queue = || self.scheme.queue.threshold(tier, link.rate);
            let own = (link.queue_limit, link.threshold.or_else(of_queue));
            let says_nothing = link.queue_limit.is_none() && link.threshold.is_none();
            if says_nothing || known.contains(&own) {
                continue;
            }
            known.push(own);
            self.scheme.queue.check_environment(&self.around(own.0, own.1)).map_err(|error| {
                let name = link_name(graph, PortId::both_directions(index)[0]);
                let message = format!("the queue of {name}: {}", error.message);
                ("queue", SpecError { message, ..error })
            })?;
        }
        Ok(())
    }

    /// A shared buffer decides on arrival what may wait; so must the queues behind it.
    fn check_memory(&self) -> Result<(), SpecError> {
        match self.switch.shared_buffer {
            Limit::Unlimited => Ok(()),
            Limit::AtMost(_) => self.scheme.queue.check_shared(),
        }
    }

    /// What links are stopped for waits in the order of its arrival.
    fn check_flow_control(&self) -> Result<(), SpecError> {
        match self.switch.flow_control() {
            None => Ok(()),
            Some(control) => self.scheme.queue.check_flow_control(&*control),
        }
    }

    /// Builds the network.
    ///
    /// # Errors
    /// When the topology cannot be built, or a time series or a fault names a link that it does not have.
    pub fn graph(&self, read: &dyn FileReader) -> Result<Graph, SectionError> {
        let graph = self.topology.build(read).map_err(|error| ("topology", error))?;
        check_links(&graph).map_err(|error| ("topology", error))?;
        for (index, link) in self.series.links.iter().enumerate() {
            find_link(&graph, link).map_err(|error| {
                let field = format!("links[{index}]");
                ("series", SpecError::new("series-link", field, error.to_string()))
            })?;
        }
        self.faults.check_topology(&graph).map_err(|error| ("faults", error))?;
        for (index, pair) in self.series.differentials.iter().enumerate() {
            find_hosts(&graph, pair).map_err(|error| {
                let field = format!("differentials[{index}]");
                ("series", SpecError::new("series-differential", field, error.to_string()))
            })?;
        }
        Ok(graph)
    }

    /// Generates the flows, which depend on nothing that a scheme changes.
    ///
    /// # Errors
    /// When the traffic does not fit the network or the horizon.
    pub fn demand(
        &self,
        graph: &Graph,
        seed: u64,
        read: &dyn FileReader,
    ) -> Result<Demand, SectionError> {
        self.traffic.generate(graph, &self.horizon, seed, read).map_err(|error| ("traffic", error))
    }

    /// The files that decide the run, as written.
    pub fn files(&self) -> Vec<&str> {
        [self.topology.files(), self.traffic.files()].concat()
    }
}

/// Propagation and transmission times beyond these leave the range of simulated time when they add up.
const LONGEST_PROPAGATION: Time = Time::from_ms(10_000);
const LOWEST_RATE: Rate = Rate(1_000);

fn check_links(graph: &Graph) -> Result<(), SpecError> {
    for link in &graph.links {
        if link.propagation > LONGEST_PROPAGATION {
            let message = format!("a link has a propagation delay of {}", link.propagation);
            return Err(SpecError::new("link-propagation", "propagation", message)
                .hint(format!("write at most \"{LONGEST_PROPAGATION}\"")));
        }
        if link.rate < LOWEST_RATE {
            let message = format!("a link has a rate of {}", link.rate);
            return Err(SpecError::new("link-rate", "rate", message)
                .hint(format!("write at least \"{LOWEST_RATE}\"")));
        }
    }
    Ok(())
}
