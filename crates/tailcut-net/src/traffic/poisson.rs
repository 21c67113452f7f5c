//! Flows that arrive independently of each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream};

use super::demand::Demand;
use super::pairs::{PairSource, Pairs};
use super::sizes::SizesSpec;
use super::{
    Flow, Pattern, TrafficContext, TrafficError, check_flow_count, check_host, numbered, whole_ns,
};
use crate::topology::{Graph, HostId};

/// Parameters of Poisson traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Poisson {
    /// Flow sizes.
    pub sizes: SizesSpec,
    /// Offered load: mean offered bytes per second relative to the capacity that `load_of` names,
    /// greater than 0 and at most 1.
    #[schemars(range(min = 0, max = 1))]
    pub load: f64,
    /// The capacity that `load` is a fraction of.
    pub load_of: LoadOf,
    /// How sources and destinations are drawn.
    pub pairs: Pairs,
    /// Distribution of the times between arrivals; only `exponential` makes the process Poisson.
    pub gaps: Gaps,
    /// Hosts that neither send nor receive. The load remains a fraction of the same capacity.
    pub except: Vec<u32>,
    /// Number of hosts that send together: a flow of at most `fan_in_up_to` is joined by others of
    /// its size, from hosts drawn anew, to its destination (RepNet's incast: 11). They add to the
    /// load.
    #[schemars(range(min = 1))]
    pub fan_in: u32,
    /// Largest flow that is joined (RepNet: mice, 100 KB).
    pub fan_in_up_to: Bytes,
}

/// The capacity that a load is relative to.
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
    /// Uniform between 0 and twice the mean (RepNet's released Mininet scripts).
    Uniform,
    /// Constant.
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
            except: vec![],
            fan_in: 1,
            fan_in_up_to: Bytes(100_000),
        }
    }
}

impl Poisson {
    fn flows(&self, setting: &TrafficContext) -> Result<Vec<Flow>, TrafficError> {
        if !(self.load > 0.0 && self.load <= 1.0) {
            let error = format!("load = {}: must be greater than 0 and at most 1", self.load);
            let hint = "write 0.5 for 50 %";
            return Err(TrafficError::new("poisson-load", "load", error).hint(hint));
        }
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        let mean = sizes.mean();
        if !mean.is_finite() {
            let error = "sizes = \"endless\": a load needs flows with a mean size";
            return Err(TrafficError::new("poisson-sizes", "sizes", error)
                .hint("use endless flows with kind = \"permutation\" or \"incast\""));
        }
        let pairs = self.pairs.source(setting.graph, "pairs", &mut setting.stream("pairs"))?;
        let capacity = match self.load_of {
            LoadOf::HostLinks => setting.graph.host_rates().iter().map(|rate| rate.0 as f64).sum(),
            LoadOf::Bisection => bottleneck(setting.graph, &pairs)?,
        };
        let takes_part = self.taking_part(setting.graph.hosts)?;
        let mean_gap_ns = mean * 8e9 / (self.load * capacity);

        let end = setting.horizon.arrivals.as_ns() as f64;
        check_flow_count(f64::from(self.fan_in) * end / mean_gap_ns, "sizes")?;
        let mut companions = setting.stream("companions");
        let (mut gaps, mut ends, mut lengths) =
            (setting.stream("gaps"), setting.stream("ends"), setting.stream("sizes"));
        let mut now = 0.0;
        let mut flows = Vec::new();
        loop {
            now += self.gaps.draw(mean_gap_ns, &mut gaps);
            if now >= end {
                return Ok(flows);
            }
            let (src, dst) = loop {
                let (src, dst) = pairs.draw(&mut ends);
                if takes_part[src.index()] && takes_part[dst.index()] {
                    break (src, dst);
                }
            };
            let bytes = sizes.sample(&mut lengths, 0);
            let start = whole_ns(now);
            flows.push(Flow { src, dst, bytes, start, id: 0 });
            if self.fan_in > 1 && bytes <= self.fan_in_up_to.0 {
                let others = (setting.graph.each_host())
                    .filter(|&host| host != src && host != dst && takes_part[host.index()]);
                let mut others: Vec<HostId> = others.collect();
                companions.shuffle(&mut others);
                let others = others.into_iter().take(self.fan_in as usize - 1);
                flows.extend(others.map(|src| Flow { src, dst, bytes, start, id: 0 }));
            }
        }
    }

    /// Returns whether each host takes part. Refuses excepted hosts and a `fan_in` that the pattern
    /// cannot have.
    fn taking_part(&self, hosts: u32) -> Result<Vec<bool>, TrafficError> {
        let mut takes_part = vec![true; hosts as usize];
        for (index, &host) in self.except.iter().enumerate() {
            check_host("poisson-except", &format!("except[{index}]"), Some(host), hosts)?;
            takes_part[host as usize] = false;
        }
        let left = takes_part.iter().filter(|part| **part).count();
        if !self.except.is_empty() {
            if self.pairs != Pairs::Random || self.load_of != LoadOf::HostLinks {
                let error =
                    "except is supported with pairs = \"random\" and load_of = \"host-links\" only";
                return Err(TrafficError::new("poisson-except", "except", error));
            }
            if left < 2 {
                let error =
                    format!("except leaves {left} of {hosts} hosts: at least two are needed");
                return Err(TrafficError::new("poisson-except", "except", error));
            }
        }
        if self.fan_in == 0 || self.fan_in as usize >= left {
            let error = format!(
                "fan_in = {}: {left} hosts allow from 1 to {}",
                self.fan_in,
                left.saturating_sub(1)
            );
            return Err(TrafficError::new("poisson-fan-in", "fan_in", error));
        }
        Ok(takes_part)
    }
}

impl Pattern for Poisson {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting).map(numbered)
    }
    fn files(&self) -> Vec<&str> {
        self.sizes.file().into_iter().collect()
    }
}

impl Gaps {
    fn draw(self, mean: f64, stream: &mut RandomStream) -> f64 {
        match self {
            Gaps::Exponential => stream.exponential(mean),
            Gaps::Uniform => 2.0 * mean * stream.unit(),
            Gaps::Constant => mean,
        }
    }
}

/// Returns the total rate of flows, in bits per second, that fills the first cut between racks or
/// pods.
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
