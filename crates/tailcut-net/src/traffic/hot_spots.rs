//! Hot spots: Poisson traffic of which a part goes to a few popular hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::demand::Demand;
use super::sizes::SizesSpec;
use super::{Flow, Pattern, TrafficContext, TrafficError, check_flow_count, numbered, whole_ns};
use crate::topology::HostId;

/// Parameters of hot spots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HotSpots {
    /// Number of popular hosts; they are drawn once.
    #[schemars(range(min = 1))]
    pub hot: u32,
    /// Fraction of flows that go to the popular hosts, uniformly among these. The rest go to any
    /// host.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// Flow sizes.
    pub sizes: SizesSpec,
    /// Offered load: mean offered bytes per second relative to the capacity of all host links.
    #[schemars(range(min = 0, max = 1))]
    pub load: f64,
}

impl Default for HotSpots {
    fn default() -> Self {
        HotSpots { hot: 1, share: 0.1, sizes: SizesSpec::Builtin("web-search".into()), load: 0.3 }
    }
}

impl HotSpots {
    fn flows(&self, setting: &TrafficContext) -> Result<Vec<Flow>, TrafficError> {
        let hosts = setting.graph.hosts;
        if hosts < 2 || self.hot == 0 || self.hot >= hosts {
            let most = hosts.saturating_sub(1);
            let error = format!("hot = {}: {hosts} hosts allow from 1 to {most}", self.hot);
            return Err(TrafficError::new("hot-spots-hot", "hot", error));
        }
        for (field, value, low) in
            [("load", self.load, f64::MIN_POSITIVE), ("share", self.share, 0.0)]
        {
            if !(low..=1.0).contains(&value) {
                let error = format!("{field} = {value}: must be a fraction of at most 1");
                return Err(TrafficError::new("hot-spots-fraction", field, error)
                    .hint("write 0.5 for 50 %"));
            }
        }
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        if !sizes.mean().is_finite() {
            let error = "sizes = \"endless\": a load needs flows with a mean size";
            return Err(TrafficError::new("hot-spots-sizes", "sizes", error));
        }
        let capacity: f64 = setting.graph.host_rates().iter().map(|rate| rate.0 as f64).sum();
        let mean_gap_ns = sizes.mean() * 8e9 / (self.load * capacity);
        let end = setting.horizon.arrivals.as_ns() as f64;
        check_flow_count(end / mean_gap_ns, "sizes")?;
        let mut order: Vec<u32> = (0..hosts).collect();
        setting.stream("spots").shuffle(&mut order);
        let hot = &order[..self.hot as usize];
        let (mut gaps, mut ends, mut lengths) =
            (setting.stream("gaps"), setting.stream("ends"), setting.stream("sizes"));
        let mut now = 0.0;
        let mut flows = Vec::new();
        loop {
            now += gaps.exponential(mean_gap_ns);
            if now >= end {
                return Ok(flows);
            }
            let dst = match ends.unit() < self.share {
                true => hot[ends.below(hot.len() as u64) as usize],
                false => ends.below(u64::from(hosts)) as u32,
            };
            let src = (dst + 1 + ends.below(u64::from(hosts) - 1) as u32) % hosts;
            let (src, dst) = (HostId(src), HostId(dst));
            let bytes = sizes.sample(&mut lengths, 0);
            flows.push(Flow { src, dst, bytes, start: whole_ns(now), id: 0 });
        }
    }
}

impl Pattern for HotSpots {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting).map(numbered)
    }
    fn files(&self) -> Vec<&str> {
        self.sizes.file().into_iter().collect()
    }
}
