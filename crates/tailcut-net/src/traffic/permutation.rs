//! Permutation traffic: every host sends to one other host and receives from one other host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::Demand;
use super::pairs::derangement;
use super::rounds::Rounds;
use super::sizes::SizesSpec;
use super::{Flow, Pattern, TrafficContext, TrafficError, jitter, numbered};
use crate::topology::HostId;

/// Parameters of permutation traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permutation {
    /// Flow sizes; `"endless"` for flows that last the whole run.
    pub sizes: SizesSpec,
    /// Number of rounds. In each, every host sends to a newly drawn partner.
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Time from one round to the next.
    pub period: Time,
    /// Maximum delay of each flow's start, drawn uniformly.
    pub jitter: Time,
}

impl Default for Permutation {
    fn default() -> Self {
        Permutation {
            sizes: SizesSpec::Fixed(Bytes(10_000_000)),
            rounds: 1,
            period: Time::from_ms(100),
            jitter: Time::ZERO,
        }
    }
}

impl Permutation {
    fn flows(&self, setting: &TrafficContext) -> Result<Vec<Flow>, TrafficError> {
        let hosts = setting.graph.hosts;
        if hosts < 2 {
            return Err(TrafficError::new(
                "traffic-hosts",
                "kind",
                "a permutation needs at least two hosts",
            ));
        }
        let starts = Rounds {
            count: Some(self.rounds),
            period: self.period,
            jitter: self.jitter,
            flows: hosts,
        }
        .starts(setting.horizon.arrivals)?;
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        let endless = setting.endless();
        let (mut partners, mut lengths, mut delays) =
            (setting.stream("partners"), setting.stream("sizes"), setting.stream("jitter"));
        let mut flows = Vec::with_capacity(starts.len() * hosts as usize);
        for start in starts {
            for (src, dst) in derangement(hosts, &mut partners).into_iter().enumerate() {
                flows.push(Flow {
                    src: HostId::at(src),
                    dst,
                    bytes: sizes.sample(&mut lengths, endless),
                    start: start + jitter(&mut delays, self.jitter),
                    id: 0,
                });
            }
        }
        Ok(flows)
    }
}

impl Pattern for Permutation {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting).map(numbered)
    }
    fn files(&self) -> Vec<&str> {
        self.sizes.file().into_iter().collect()
    }
}
