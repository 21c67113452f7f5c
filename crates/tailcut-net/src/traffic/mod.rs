//! Traffic: which flows start when. A new pattern is one file here and one line in [`TrafficSpec`].
//!
//! Every draw comes from a stream named by what it decides, so that the same seed
//! gives the same flows whatever scheme carries them.

pub mod incast;
pub mod mix;
pub mod offered;
pub mod pairs;
pub mod permutation;
pub mod poisson;
mod rounds;
pub mod sizes;
pub mod trace;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Stream, Time};

use crate::component::{ReadFile, SpecError};
use crate::scenario::Horizon;
use crate::topology::Graph;

/// Why traffic cannot be generated.
pub type TrafficError = SpecError;

/// One flow to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: u32,
    /// Receiving host, another one.
    pub dst: u32,
    /// Application bytes, at least 1.
    pub bytes: u64,
    /// When the SYN is handed to the NIC.
    pub start: Time,
    /// Identifier that the result table repeats (row number unless a trace names another).
    pub id: u64,
}

/// The flows of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrafficSpec {
    /// Flows between random hosts arrive as a Poisson process at a given load.
    Poisson(poisson::Poisson),
    /// Every host sends to one other and receives from one other.
    Permutation(permutation::Permutation),
    /// Many hosts answer one at the same time, again and again.
    Incast(incast::Incast),
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

/// Refuses patterns of far too many flows before they fill the memory.
fn bounded(expected: f64, field: &str) -> Result<(), TrafficError> {
    if expected <= MAX_FLOWS {
        return Ok(());
    }
    let error =
        format!("about {expected:.0} flows would start: at most {MAX_FLOWS:.0} are possible");
    Err(TrafficError::new("traffic-flows", field, error)
        .hint("shorten horizon.arrivals, or make flows larger or rarer"))
}

/// What a generator knows: the network, when to stop, and where its randomness comes from.
pub(crate) struct Setting<'a> {
    pub graph: &'a Graph,
    pub horizon: &'a Horizon,
    pub seed: u64,
    /// Tells the parts of a mix apart.
    pub part: u64,
    pub read: &'a ReadFile<'a>,
}

impl Setting<'_> {
    /// The stream for one purpose.
    fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, self.part, purpose)
    }

    /// More bytes than the fastest host can send before the run ends.
    fn endless(&self) -> u64 {
        let fastest = self.graph.host_rates().into_iter().max().unwrap_or(Rate(0));
        let end = u128::from(self.horizon.arrivals.0) + u128::from(self.horizon.drain.0);
        (u128::from(fastest.0) * end / 8_000_000_000_000) as u64 + 1
    }
}

impl TrafficSpec {
    /// The flows, in order of start time, numbered from 0 unless a trace numbers them.
    /// Starts are whole nanoseconds, so that the flow table states them exactly.
    ///
    /// # Errors
    /// When a parameter is out of range for this network or horizon, or a file is not what it should be.
    pub fn generate(
        &self,
        graph: &Graph,
        horizon: &Horizon,
        seed: u64,
        read: &ReadFile,
    ) -> Result<Vec<Flow>, TrafficError> {
        self.flows(&Setting { graph, horizon, seed, part: 0, read })
    }

    fn flows(&self, setting: &Setting) -> Result<Vec<Flow>, TrafficError> {
        match self {
            TrafficSpec::Poisson(spec) => spec.flows(setting).map(number),
            TrafficSpec::Permutation(spec) => spec.flows(setting).map(number),
            TrafficSpec::Incast(spec) => spec.flows(setting).map(number),
            TrafficSpec::Trace(spec) => spec.flows(setting),
            TrafficSpec::Mix(spec) => spec.flows(setting).map(number),
        }
    }

    /// The files that decide the flows.
    pub fn files(&self) -> Vec<&str> {
        match self {
            TrafficSpec::Poisson(spec) => spec.sizes.file().into_iter().collect(),
            TrafficSpec::Permutation(spec) => spec.sizes.file().into_iter().collect(),
            TrafficSpec::Incast(spec) => spec.sizes.file().into_iter().collect(),
            TrafficSpec::Trace(spec) => spec.file.as_deref().into_iter().collect(),
            TrafficSpec::Mix(spec) => spec.parts.iter().flat_map(TrafficSpec::files).collect(),
        }
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

/// A time given in nanoseconds, cut to a whole number of them.
fn whole_ns(nanoseconds: f64) -> Time {
    Time::from_ns(nanoseconds as u64)
}

/// Uniform in `[0, width)`, in whole nanoseconds; zero when `width` is.
fn jitter(stream: &mut Stream, width: Time) -> Time {
    match width.as_ns() {
        0 => Time::ZERO,
        ns => Time::from_ns(stream.below(ns)),
    }
}
