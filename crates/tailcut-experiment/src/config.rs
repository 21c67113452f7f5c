//! The configuration of a run: its checks across sections, its network and its flows.

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

/// The options of `[measure]` that change the tables of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// The clock whose completion time is divided by the ideal time.
    pub clock: FctClock,
    /// Flows of at most this size are short.
    pub short: Bytes,
    /// Upper bounds of the size groups.
    pub size_groups: Vec<Bytes>,
    /// Records duplicate ACKs, reordering, needless retransmissions and timeouts per flow.
    pub segments: bool,
    /// Records the throughput of long flows.
    pub throughput: bool,
    /// Records the parts of completion times. Left out of the configuration when false, so that run
    /// identifiers stay the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attribution: bool,
    /// The largest number of instants at which all ports are sampled; `None` samples none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instants: Option<u32>,
}

/// The permitted values of `fabric_instants`.
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
                "short = \"0B\": must be greater than 0B, or no flow is short",
            ));
        }
        let ascending = self.size_groups.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.size_groups.first() == Some(&Bytes(0)) || self.size_groups.len() > 64
        {
            let message = "size_groups must be at most 64 ascending upper bounds, each above 0B";
            return Err(SpecError::new("measure-size-groups", "size_groups", message)
                .hint("write for example [\"10KB\", \"100KB\", \"1MB\"]"));
        }
        if let Some(instants) = self.instants.filter(|instants| !INSTANTS.contains(instants)) {
            let (least, most) = (INSTANTS.start(), INSTANTS.end());
            let message = format!("fabric_instants = {instants}: must be from {least} to {most}");
            return Err(SpecError::new("measure-fabric", "fabric_instants", message)
                .hint("to sample no ports, leave out fabric"));
        }
        Ok(())
    }
}

/// The most samples of a run: a shorter interval is taken for a wrong unit.
const MOST_SAMPLES: u64 = 10_000_000;

/// A section, and the parameter of it that cannot be realised.
pub type SectionError = (&'static str, SpecError);

/// A section, and the outcome of its check.
pub type SectionOutcome = (&'static str, Result<(), SpecError>);

impl Config {
    /// Checks the parameters, without network and flows. Returns each section's first error.
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

    /// Refuses attribution together with `host.jitter`: no part of a completion time covers the
    /// time for which an interface delays a packet.
    fn check_attribution(&self) -> Result<(), SpecError> {
        if !self.labels.attribution || self.host.jitter == Time::ZERO {
            return Ok(());
        }
        let message = "attribution does not cover the delays of host.jitter";
        Err(SpecError::new("attribution-jitter", "attribution", message)
            .hint("leave out host.jitter or attribution"))
    }

    /// Refuses a sampling interval of which a run would take more than [`MOST_SAMPLES`] samples.
    fn check_samples(&self) -> Result<(), SpecError> {
        let (end, interval) = (self.horizon.arrivals + self.horizon.drain, self.series.interval);
        let samples = end.0 / interval.0.max(1);
        if self.series.is_off() || samples <= MOST_SAMPLES {
            return Ok(());
        }
        let message = format!(
            "interval = \"{interval}\": {samples} samples in a run, more than {MOST_SAMPLES}"
        );
        Err(SpecError::new("series-interval", "interval", message)
            .hint("write a longer interval, or a shorter horizon"))
    }

    /// Checks that queues hold enough for their thresholds and full packets. Passes if the sections
    /// `switch` or `queue` are invalid by themselves, which their own checks report.
    fn check_room(&self) -> Result<(), SpecError> {
        if self.switch.check().is_err() || self.scheme.queue.check().is_err() {
            return Ok(());
        }
        self.scheme.queue.check_environment(&self.around(None, None))
    }

    /// Returns the environment of the queues at a link with its own limit and marking threshold, if
    /// it has them.
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

    /// Checks the scheme against the network.
    ///
    /// # Errors
    /// If the balancer or the queue does not fit the network, or the queue at a link with its own
    /// limit or threshold holds too little.
    pub fn check_topology(&self, graph: &Graph) -> Result<(), SectionError> {
        self.scheme.balance.check_topology(graph).map_err(|error| ("balance", error))?;
        self.scheme.queue.check_topology(graph).map_err(|error| ("queue", error))?;
        self.scheme.interface.check_topology(graph).map_err(|error| ("interface", error))?;
        self.check_interfaces(graph)?;
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

    /// Refuses what is not simulated for hosts with several interfaces.
    fn check_interfaces(&self, graph: &Graph) -> Result<(), SectionError> {
        if graph.attachment.is_single() {
            return Ok(());
        }
        self.scheme.check_interfaces(graph)?;
        if self.switch.flow_control().is_some() {
            let message = "flow control: not simulated for hosts with several interfaces";
            let error = SpecError::new("interface-single", "flow_control", message);
            return Err(("switch", error.hint("leave out flow_control")));
        }
        if !self.series.differentials.is_empty() {
            let message = "queue differentials: not recorded for hosts with several interfaces";
            let error = SpecError::new("interface-single", "differentials", message);
            return Err(("series", error.hint("leave out differentials")));
        }
        Ok(())
    }

    /// Checks that the queue works with a shared buffer, which admits packets on arrival.
    fn check_memory(&self) -> Result<(), SpecError> {
        match self.switch.shared_buffer {
            Limit::Unlimited => Ok(()),
            Limit::AtMost(_) => self.scheme.queue.check_shared(),
        }
    }

    /// Checks that the queue works with the switch's flow control, which needs first in, first out.
    fn check_flow_control(&self) -> Result<(), SpecError> {
        match self.switch.flow_control() {
            None => Ok(()),
            Some(control) => self.scheme.queue.check_flow_control(&*control),
        }
    }

    /// Builds the network. `read` reads the files that the topology names.
    ///
    /// # Errors
    /// If the topology cannot be built, or a time series or a fault names a link or host that it
    /// does not have.
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

    /// Generates the flows. They depend on the network, the horizon and the seed, never on the
    /// scheme.
    ///
    /// # Errors
    /// If the traffic does not fit the network or the horizon.
    pub fn demand(
        &self,
        graph: &Graph,
        seed: u64,
        read: &dyn FileReader,
    ) -> Result<Demand, SectionError> {
        self.traffic.generate(graph, &self.horizon, seed, read).map_err(|error| ("traffic", error))
    }

    /// Returns the paths of the files that decide the run, as written.
    pub fn files(&self) -> Vec<&str> {
        [self.topology.files(), self.traffic.files()].concat()
    }
}

/// The largest propagation delay and the lowest rate of a link. Beyond them, sums of times could
/// leave the range of simulated time.
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
