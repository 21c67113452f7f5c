//! Flows that arrive one by one, independently of each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Stream;

use super::pairs::{PairSource, Pairs};
use super::sizes::SizesSpec;
use super::{bounded, whole_ns, Flow, Setting, TrafficError};
use crate::topology::Graph;

/// Parameters of Poisson traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Poisson {
    /// How large the flows are.
    pub sizes: SizesSpec,
    /// Offered load: the mean offered bytes per second over the capacity that `load_of` names, above 0 and at most 1.
    #[schemars(range(min = 0, max = 1))]
    pub load: f64,
    /// The capacity that `load` is a fraction of.
    pub load_of: LoadOf,
    /// Who sends to whom.
    pub pairs: Pairs,
    /// Distribution of the times between arrivals; only `exponential` makes the process Poisson.
    pub gaps: Gaps,
}

/// The capacity that a load refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// All host links together (RepFlow, TinyFlow).
    #[default]
    HostLinks,
    /// The bottleneck between racks or pods, whichever fills first (RepNet).
    Bisection,
}

/// Distribution of the times between arrivals, all with the same mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Exponential: a Poisson process.
    #[default]
    Exponential,
    /// Uniform between zero and twice the mean (RepNet's released Mininet scripts).
    Uniform,
    /// All equal.
    Constant,
}

impl Default for Poisson {
    fn default() -> Self {
        Poisson {
            sizes: SizesSpec::Builtin("web-search".into()),
            load: 0.5,
            load_of: LoadOf::default(),
            pairs: Pairs::default(),
            gaps: Gaps::default(),
        }
    }
}

impl Poisson {
    pub(super) fn flows(&self, setting: &Setting) -> Result<Vec<Flow>, TrafficError> {
        if !(self.load > 0.0 && self.load <= 1.0) {
            let error = format!("load = {}: a load lies above 0 and is at most 1", self.load);
            let hint = "load is a fraction: write 0.5 for 50 %";
            return Err(TrafficError::new("poisson-load", "load", error).hint(hint));
        }
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        let mean = sizes.mean();
        if !mean.is_finite() {
            let error = "sizes = \"endless\": a load needs flows with a mean size";
            return Err(TrafficError::new("poisson-sizes", "sizes", error)
                .hint("endless flows go with kind = \"permutation\" or \"incast\""));
        }
        let pairs = self.pairs.source(setting.graph, "pairs", &mut setting.stream("pairs"))?;
        let capacity = match self.load_of {
            LoadOf::HostLinks => setting.graph.host_rates().iter().map(|rate| rate.0 as f64).sum(),
            LoadOf::Bisection => bottleneck(setting.graph, &pairs)?,
        };
        let mean_gap_ns = mean * 8e9 / (self.load * capacity);

        let end = setting.horizon.arrivals.as_ns() as f64;
        bounded(end / mean_gap_ns, "sizes")?;
        let (mut gaps, mut ends, mut lengths) =
            (setting.stream("gaps"), setting.stream("ends"), setting.stream("sizes"));
        let mut now = 0.0;
        let mut flows = Vec::new();
        loop {
            now += self.gaps.draw(mean_gap_ns, &mut gaps);
            if now >= end {
                return Ok(flows);
            }
            let (src, dst) = pairs.draw(&mut ends);
            let bytes = sizes.sample(&mut lengths, 0);
            flows.push(Flow { src, dst, bytes, start: whole_ns(now), id: 0 });
        }
    }
}

impl Gaps {
    fn draw(self, mean: f64, stream: &mut Stream) -> f64 {
        match self {
            Gaps::Exponential => stream.exponential(mean),
            Gaps::Uniform => 2.0 * mean * stream.unit(),
            Gaps::Constant => mean,
        }
    }
}

/// The total rate of flows, in bits per second, that fills the first cut between racks or pods.
fn bottleneck(graph: &Graph, pairs: &PairSource) -> Result<f64, TrafficError> {
    (1..graph.tiers.len() as u8)
        .map(|tier| graph.groups_below(tier))
        .flat_map(|groups| {
            let leaving = pairs.leaving(&groups);
            groups.uplink.into_iter().zip(leaving).filter(|(_, share)| *share > 0.0)
        })
        .map(|(uplink, share)| uplink.0 as f64 / share)
        .min_by(f64::total_cmp)
        .ok_or_else(|| {
            TrafficError::new(
                "poisson-bisection",
                "load_of",
                "no flow leaves its rack: there is no bisection to load",
            )
            .hint("use load_of = \"host-links\"")
        })
}
