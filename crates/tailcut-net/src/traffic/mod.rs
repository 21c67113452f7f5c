//! Traffic: which flows start when. A new pattern is one file here, with its parameters as a [`Pattern`], and one line in the list below.
//!
//! Every draw comes from a stream named by what it decides, so that the same seed
//! gives the same flows whatever scheme carries them.

pub mod bucket_sort;
pub mod closed_loop;
pub mod demand;
pub mod hot_spots;
pub mod incast;
pub mod long_and_short;
pub mod mix;
pub mod offered;
pub mod pairs;
pub mod partition_aggregate;
mod partners;
pub mod permutation;
pub mod pings;
pub mod poisson;
mod rounds;
pub mod shuffle;
pub mod sizes;
pub mod trace;
pub mod transfers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Rate, Time};

use crate::component::SpecError;
use crate::files::FileReader;
use crate::horizon::Horizon;
use crate::topology::{Graph, HostId};
use demand::Demand;

/// Why traffic cannot be generated.
pub type TrafficError = SpecError;

/// One flow to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: HostId,
    /// Receiving host, another one.
    pub dst: HostId,
    /// Application bytes, at least 1.
    pub bytes: u64,
    /// When the SYN is handed to the NIC.
    pub start: Time,
    /// Identifier that the result table repeats (row number unless a trace names another).
    pub id: u64,
}

/// A flow of a run, by its place in the run's list.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub u32);

impl FlowIndex {
    /// The flow at this place.
    #[inline]
    pub const fn at(place: usize) -> FlowIndex {
        FlowIndex(place as u32)
    }
    /// Its place.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The parameters of a pattern.
pub(crate) trait Pattern {
    /// The flows, in order of start time, numbered from 0 unless the pattern numbers them itself; then those that wait for others.
    ///
    /// # Errors
    /// When a parameter is out of range for this network or horizon, or a file is not what it should be.
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError>;
    /// The parameter that decides how large flows are.
    fn sized_by(&self) -> &'static str {
        "sizes"
    }
    /// The files that decide the flows.
    fn files(&self) -> Vec<&str> {
        vec![]
    }
}

/// Writes the section `traffic` of the experiment file: one kind per pattern.
macro_rules! patterns {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// The flows of a run.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum TrafficSpec {
            $($(#[$about])* $name($parameters),)*
        }

        impl TrafficSpec {
            fn pattern(&self) -> &dyn Pattern {
                match self { $(TrafficSpec::$name(pattern) => pattern,)* }
            }
        }
    };
}

patterns! {
    /// Flows between random hosts arrive as a Poisson process at a given load.
    Poisson(poisson::Poisson),
    /// Every host sends to one other and receives from one other.
    Permutation(permutation::Permutation),
    /// Many hosts answer one at the same time, again and again.
    Incast(incast::Incast),
    /// Long flows on some hosts, short ones arriving on the others.
    LongAndShort(long_and_short::LongAndShort),
    /// Poisson traffic of which a part goes to a few popular hosts.
    HotSpots(hot_spots::HotSpots),
    /// Queries: a host asks many others and waits for the slowest answer.
    PartitionAggregate(partition_aggregate::PartitionAggregate),
    /// Closed loop: every client moves so many bytes in flows, one after another.
    Transfers(transfers::Transfers),
    /// Every reducer fetches its part from every mapper.
    Shuffle(shuffle::Shuffle),
    /// Masters deal numbers out in small batches and wait for sorted buckets (RepNet).
    BucketSort(bucket_sort::BucketSort),
    /// Tiny flows back to back.
    Pings(pings::Pings),
    /// A given list of flows.
    Trace(trace::Trace),
    /// Several patterns at once.
    Mix(mix::Mix),
}

impl Default for TrafficSpec {
    fn default() -> Self {
        TrafficSpec::Poisson(poisson::Poisson::default())
    }
}

/// More flows than this are a slip of the keyboard: their list alone would fill gigabytes.
const MAX_FLOWS: f64 = 2e7;

/// The most bytes that a flow can have: a link at 400 Gbps takes a minute for them.
pub const MOST_BYTES: u64 = 3_000_000_000_000;

/// Refuses flows whose segments could not be counted.
fn check_flow_sizes(demand: Demand, field: &str) -> Result<Demand, TrafficError> {
    match demand.flows.iter().find(|flow| flow.bytes > MOST_BYTES) {
        None => Ok(demand),
        Some(flow) => {
            let (bytes, most) = (Bytes(flow.bytes), Bytes(MOST_BYTES));
            let error = format!("a flow would have {bytes}: at most {most} are possible");
            Err(TrafficError::new("traffic-flow-size", field, error)
                .hint("make flows smaller; those of sizes = \"endless\" last until the run ends, so shorten horizon.drain"))
        }
    }
}

/// Refuses patterns of far too many flows before they fill the memory.
fn check_flow_count(expected: f64, field: &str) -> Result<(), TrafficError> {
    if expected <= MAX_FLOWS {
        return Ok(());
    }
    let error =
        format!("about {expected:.0} flows would start: at most {MAX_FLOWS:.0} are possible");
    Err(TrafficError::new("traffic-flows", field, error)
        .hint("shorten horizon.arrivals, or make flows larger or rarer"))
}

/// What a generator knows: the network, when to stop, and where its randomness comes from.
pub(crate) struct TrafficContext<'a> {
    pub graph: &'a Graph,
    pub horizon: &'a Horizon,
    pub seed: u64,
    /// Tells the parts of a mix apart.
    pub part: u64,
    pub read: &'a dyn FileReader,
}

impl TrafficContext<'_> {
    /// The stream for one purpose.
    fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, self.part, purpose)
    }

    /// The stream for one purpose of one entity: a client, a master.
    fn stream_of(&self, purpose: &str, entity: u64) -> RandomStream {
        RandomStream::new(self.seed, self.part, &format!("{purpose} {entity}"))
    }

    /// More bytes than the fastest host can send before the run ends.
    fn endless(&self) -> u64 {
        let fastest = self.graph.host_rates().into_iter().max().unwrap_or(Rate(0));
        let end = u128::from(self.horizon.arrivals.0) + u128::from(self.horizon.drain.0);
        (u128::from(fastest.0) * end / 8_000_000_000_000) as u64 + 1
    }
}

impl TrafficSpec {
    /// The flows, in order of start time, numbered from 0 unless a trace numbers them; then those that wait for others.
    /// Starts are whole nanoseconds, so that the flow table states them exactly.
    ///
    /// # Errors
    /// When a parameter is out of range for this network or horizon, or a file is not what it should be.
    pub fn generate(
        &self,
        graph: &Graph,
        horizon: &Horizon,
        seed: u64,
        read: &dyn FileReader,
    ) -> Result<Demand, TrafficError> {
        self.demand(&TrafficContext { graph, horizon, seed, part: 0, read })
    }

    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let pattern = self.pattern();
        check_flow_sizes(pattern.demand(setting)?, pattern.sized_by())
    }

    /// The files that decide the flows.
    pub fn files(&self) -> Vec<&str> {
        self.pattern().files()
    }
}

/// Orders flows by start (ties as generated) and numbers them from 0.
fn number(mut flows: Vec<Flow>) -> Vec<Flow> {
    flows.sort_by_key(|flow| flow.start);
    for (id, flow) in flows.iter_mut().enumerate() {
        flow.id = id as u64;
    }
    flows
}

fn numbered(flows: Vec<Flow>) -> Demand {
    number(flows).into()
}

/// Refuses rates that are no rates.
fn positive(field: &str, rate: f64) -> Result<(), TrafficError> {
    if rate.is_finite() && rate > 0.0 {
        return Ok(());
    }
    let error = format!("{field} = {rate}: a positive number is needed");
    Err(TrafficError::new("traffic-rate", field, error))
}

/// Refuses a host that the topology does not have.
fn check_host(
    code: &'static str,
    field: &str,
    host: Option<u32>,
    hosts: u32,
) -> Result<(), TrafficError> {
    match host {
        Some(host) if host >= hosts => {
            let last = hosts.saturating_sub(1);
            let error = format!("{field} = {host}: hosts are numbered 0 to {last}");
            Err(TrafficError::new(code, field, error))
        }
        _ => Ok(()),
    }
}

/// The hosts that a pattern names, all of them when it names none: at least two, all different.
fn check_hosts(
    code: &'static str,
    field: &str,
    named: &[u32],
    hosts: u32,
) -> Result<Vec<HostId>, TrafficError> {
    let mut sorted: Vec<u32> = if named.is_empty() { (0..hosts).collect() } else { named.to_vec() };
    let taking_part = sorted.iter().copied().map(HostId).collect();
    sorted.sort_unstable();
    let error = match sorted.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => format!("host {} is named twice", two[0]),
        None if sorted.len() < 2 => format!("{} host: at least two take part", sorted.len()),
        None if sorted[sorted.len() - 1] >= hosts => {
            format!("host {}: hosts are numbered 0 to {}", sorted[sorted.len() - 1], hosts - 1)
        }
        None => return Ok(taking_part),
    };
    Err(TrafficError::new(code, field, error))
}

/// A time given in nanoseconds, cut to a whole number of them.
fn whole_ns(nanoseconds: f64) -> Time {
    Time::from_ns(nanoseconds as u64)
}

/// Uniform in `[0, width)`, in whole nanoseconds; zero when `width` is.
fn jitter(stream: &mut RandomStream, width: Time) -> Time {
    match width.as_ns() {
        0 => Time::ZERO,
        ns => Time::from_ns(stream.below(ns)),
    }
}
