//! Long flows from some hosts, short flows from the others, all between the partners of one
//! permutation (MMPTCP, SIGCOMM 2015).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::Demand;
use super::pairs::derangement;
use super::sizes::SizesSpec;
use super::{
    Flow, Pattern, TrafficContext, TrafficError, check_flow_count, jitter, numbered, positive,
    whole_ns,
};
use crate::topology::HostId;

/// Parameters of long and short flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LongAndShort {
    /// Fraction of hosts, drawn at random, that send one long flow each (MMPTCP: a third).
    #[schemars(range(min = 0, max = 1))]
    pub long_share: f64,
    /// Sizes of the long flows; by default they last the whole run.
    pub long: SizesSpec,
    /// Sizes of the short flows of the other hosts (MMPTCP: 70 KB).
    pub short: SizesSpec,
    /// Mean number of short flows per second over the whole network, which arrive as one Poisson
    /// process (MMPTCP: 256).
    pub short_flows_per_second: f64,
    /// Maximum delay of each long flow's start, drawn uniformly.
    pub jitter: Time,
}

impl Default for LongAndShort {
    fn default() -> Self {
        LongAndShort {
            long_share: 1.0 / 3.0,
            long: SizesSpec::Endless,
            short: SizesSpec::Fixed(Bytes(70_000)),
            short_flows_per_second: 256.0,
            jitter: Time::ZERO,
        }
    }
}

impl LongAndShort {
    fn flows(&self, setting: &TrafficContext) -> Result<Vec<Flow>, TrafficError> {
        let hosts = setting.graph.hosts;
        let long_hosts = libm::round(self.long_share * f64::from(hosts));
        if !(self.long_share >= 0.0 && self.long_share < 1.0) || long_hosts >= f64::from(hosts) {
            let error = format!(
                "long_share = {}: at least one of {hosts} hosts sends short flows",
                self.long_share
            );
            return Err(TrafficError::new("long-and-short-share", "long_share", error)
                .hint("write a fraction such as 0.33"));
        }
        if hosts < 2 {
            let error = "traffic needs at least two hosts";
            return Err(TrafficError::new("traffic-hosts", "kind", error));
        }
        if self.jitter >= setting.horizon.arrivals {
            let error = format!("jitter = \"{}\": must be less than horizon.arrivals", self.jitter);
            return Err(TrafficError::new("long-and-short-jitter", "jitter", error));
        }
        positive("short_flows_per_second", self.short_flows_per_second)?;
        let end = setting.horizon.arrivals.as_ns() as f64;
        let mean_gap_ns = 1e9 / self.short_flows_per_second;
        check_flow_count(end / mean_gap_ns, "short_flows_per_second")?;
        let long = self.long.resolve(setting.read, "long")?;
        let short = self.short.resolve(setting.read, "short")?;
        let endless = setting.endless();
        let partner = derangement(hosts, &mut setting.stream("partners"));
        let mut order: Vec<HostId> = setting.graph.each_host().collect();
        setting.stream("roles").shuffle(&mut order);
        let (long_senders, short_senders) = order.split_at(long_hosts as usize);
        let (mut lengths, mut delays) = (setting.stream("long sizes"), setting.stream("jitter"));
        let mut flows = Vec::new();
        for &src in long_senders {
            let bytes = long.sample(&mut lengths, endless);
            let start = jitter(&mut delays, self.jitter);
            flows.push(Flow { src, dst: partner[src.index()], bytes, start, id: 0 });
        }
        let (mut gaps, mut ends) = (setting.stream("gaps"), setting.stream("ends"));
        let mut lengths = setting.stream("sizes");
        let mut now = 0.0;
        loop {
            now += gaps.exponential(mean_gap_ns);
            if now >= end {
                return Ok(flows);
            }
            let src = short_senders[ends.below(short_senders.len() as u64) as usize];
            let bytes = short.sample(&mut lengths, endless);
            flows.push(Flow { src, dst: partner[src.index()], bytes, start: whole_ns(now), id: 0 });
        }
    }
}

impl Pattern for LongAndShort {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting).map(numbered)
    }
    fn sized_by(&self) -> &'static str {
        "long"
    }
    fn files(&self) -> Vec<&str> {
        [&self.long, &self.short].into_iter().filter_map(|sizes| sizes.file()).collect()
    }
}
