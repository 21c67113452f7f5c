//! Traffic: the flows of a run and their starts. A new pattern is one file here, with its
//! parameters as a [`Pattern`], and one line in the list below.
//!
//! Every draw comes from a stream named after its purpose, so that the same seed gives the same
//! flows whatever scheme carries them.

pub mod bucket_sort;
pub mod closed_loop;
pub mod collectives;
pub mod critical_path;
pub mod demand;
pub mod graph;
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
mod processors;
mod rounds;
pub mod shuffle;
pub mod sizes;
pub mod trace;
pub mod transfers;
pub mod unfinished;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Rate, Time};

use crate::component::SpecError;
use crate::files::FileReader;
use crate::horizon::Horizon;
use crate::registry::registry;
use crate::topology::{Graph, HostId};
use demand::Demand;

/// Error in the parameters or the file of a traffic pattern.
pub type TrafficError = SpecError;

/// One flow to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: HostId,
    /// Receiving host, different from `src`.
    pub dst: HostId,
    /// Application bytes, at least 1.
    pub bytes: u64,
    /// Time at which the SYN is handed to the NIC.
    pub start: Time,
    /// Identifier in the result tables: the row number, unless a trace gives another.
    pub id: u64,
}

/// A flow of a run, by its index in the run's list.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub u32);

impl FlowIndex {
    /// Returns the flow at index `place`.
    #[inline]
    pub const fn at(place: usize) -> FlowIndex {
        FlowIndex(place as u32)
    }
    /// Returns the index of the flow.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The parameters of a traffic pattern.
pub trait Pattern {
    /// Draws the flows: those without dependencies in order of start, then the others. They are
    /// numbered from 0 unless the pattern numbers them itself.
    ///
    /// # Errors
    /// Refuses parameters out of range for this network or horizon, and unusable files.
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError>;
    /// Returns the parameter that decides the flow sizes.
    fn sized_by(&self) -> &'static str {
        "sizes"
    }
    /// Returns the files that decide the flows.
    fn files(&self) -> Vec<&str> {
        vec![]
    }
}

registry! {
    /// The flows of a run.
    pub enum TrafficSpec: Pattern {
        /// Flows between random hosts arrive as a Poisson process at a given load.
        Poisson(poisson::Poisson),
        /// Every host sends to one other and receives from one other.
        Permutation(permutation::Permutation),
        /// Many hosts answer one host at the same time, again and again.
        Incast(incast::Incast),
        /// Long flows on some hosts, short ones arriving on the others.
        LongAndShort(long_and_short::LongAndShort),
        /// Poisson traffic of which a part goes to a few popular hosts.
        HotSpots(hot_spots::HotSpots),
        /// Queries: a host asks many others and waits for the slowest answer.
        PartitionAggregate(partition_aggregate::PartitionAggregate),
        /// Closed loop: each client moves a number of bytes, one flow after another.
        Transfers(transfers::Transfers),
        /// Every reducer fetches its part from every mapper.
        Shuffle(shuffle::Shuffle),
        /// Masters deal numbers out in small batches, wait for sorted buckets (RepNet).
        BucketSort(bucket_sort::BucketSort),
        /// Tiny flows back to back.
        Pings(pings::Pings),
        /// A given list of flows.
        Trace(trace::Trace),
        /// Messages and computations that wait for each other, from a file.
        Graph(graph::MessageGraph),
        /// Collective operations, such as all-reduce, by a named algorithm.
        Collective(collectives::Collective),
        /// Several patterns at once.
        Mix(mix::Mix),
    }
}

impl Default for TrafficSpec {
    fn default() -> Self {
        TrafficSpec::Poisson(poisson::Poisson::default())
    }
}

/// Maximum number of flows: the list of more would fill gigabytes.
const MAX_FLOWS: f64 = 2e7;

/// Maximum size of a flow in bytes: a link at 400 Gbps takes a minute for it.
pub const MOST_BYTES: u64 = 3_000_000_000_000;

/// Refuses flows larger than [`MOST_BYTES`]. `field` is the parameter that decides sizes.
fn check_flow_sizes(demand: Demand, field: &str) -> Result<Demand, TrafficError> {
    match demand.flows.iter().find(|flow| flow.bytes > MOST_BYTES) {
        None => Ok(demand),
        Some(flow) => {
            let (bytes, most) = (Bytes(flow.bytes), Bytes(MOST_BYTES));
            let error = format!("a flow would have {bytes}: at most {most} are supported");
            Err(TrafficError::new("traffic-flow-size", field, error)
                .hint("make flows smaller; those of sizes = \"endless\" last until the run ends, so shorten horizon.drain"))
        }
    }
}

/// Refuses patterns with far too many flows before they fill the memory.
fn check_flow_count(expected: f64, field: &str) -> Result<(), TrafficError> {
    if expected <= MAX_FLOWS {
        return Ok(());
    }
    let error =
        format!("about {expected:.0} flows would start: at most {MAX_FLOWS:.0} are supported");
    Err(TrafficError::new("traffic-flows", field, error)
        .hint("shorten horizon.arrivals, or make flows larger or rarer"))
}

/// The inputs of a traffic pattern: the network, the horizon and the random streams.
pub struct TrafficContext<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// The horizon of the run.
    pub horizon: &'a Horizon,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the pattern among the parts of a mix.
    pub part: u64,
    /// Reads the files that the pattern names.
    pub read: &'a dyn FileReader,
}

impl TrafficContext<'_> {
    /// Returns the random stream for one purpose.
    fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, self.part, purpose)
    }

    /// Returns the random stream for one purpose of one entity, such as a client or a master.
    fn stream_of(&self, purpose: &str, entity: u64) -> RandomStream {
        RandomStream::new(self.seed, self.part, &format!("{purpose} {entity}"))
    }

    /// Returns more bytes than the fastest host can send before the run ends.
    fn endless(&self) -> u64 {
        let fastest = self.graph.host_rates().into_iter().max().unwrap_or(Rate(0));
        let end = u128::from(self.horizon.arrivals.0) + u128::from(self.horizon.drain.0);
        (u128::from(fastest.0) * end / 8_000_000_000_000) as u64 + 1
    }
}

impl TrafficSpec {
    /// Draws the flows: those without dependencies in order of start, then the others. They are
    /// numbered from 0 unless a trace numbers them. Starts are whole nanoseconds, so that the flow
    /// table holds them exactly.
    ///
    /// # Errors
    /// Refuses parameters out of range for this network or horizon, and unusable files.
    pub fn generate(
        &self,
        graph: &Graph,
        horizon: &Horizon,
        seed: u64,
        read: &dyn FileReader,
    ) -> Result<Demand, TrafficError> {
        self.checked_demand(&TrafficContext { graph, horizon, seed, part: 0, read })
    }

    /// Draws the flows, none of them larger than [`MOST_BYTES`].
    fn checked_demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        check_flow_sizes(self.demand(setting)?, self.sized_by())
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

/// Refuses rates that are not finite or not greater than 0.
fn positive(field: &str, rate: f64) -> Result<(), TrafficError> {
    if rate.is_finite() && rate > 0.0 {
        return Ok(());
    }
    let error = format!("{field} = {rate}: must be greater than 0");
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

/// Returns the hosts that a pattern names, or all hosts if it names none. Refuses fewer than two,
/// repeated ones, and ones that the topology does not have.
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
        Some(two) => format!("host {} is listed twice", two[0]),
        None if sorted.len() < 2 => format!("{} host: at least two must take part", sorted.len()),
        None if sorted[sorted.len() - 1] >= hosts => {
            format!("host {}: hosts are numbered 0 to {}", sorted[sorted.len() - 1], hosts - 1)
        }
        None => return Ok(taking_part),
    };
    Err(TrafficError::new(code, field, error))
}

/// Converts nanoseconds to a time, rounding down to whole ones.
fn whole_ns(nanoseconds: f64) -> Time {
    Time::from_ns(nanoseconds as u64)
}

/// Draws a delay uniformly from `[0, width)`, in whole nanoseconds; 0 if `width` is 0.
fn jitter(stream: &mut RandomStream, width: Time) -> Time {
    match width.as_ns() {
        0 => Time::ZERO,
        ns => Time::from_ns(stream.below(ns)),
    }
}
