//! Incast: many hosts answer one host at the same time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::Demand;
use super::partners::Partners;
use super::rounds::Rounds;
use super::sizes::SizesSpec;
use super::{Flow, Pattern, TrafficContext, TrafficError, check_host, jitter, numbered};
use crate::topology::HostId;

/// Parameters of incast traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Incast {
    /// Hosts that answer in each round, all different and drawn anew (RepNet: 11).
    #[schemars(range(min = 1))]
    pub fan_in: u32,
    /// Bytes that each of them sends.
    pub sizes: SizesSpec,
    /// The receiving host; drawn anew in each round by default.
    pub receiver: Option<u32>,
    /// Number of rounds; by default as many as start within `horizon.arrivals`.
    pub rounds: Option<u32>,
    /// Time from one round to the next.
    pub period: Time,
    /// Maximum delay of each answer, drawn uniformly.
    pub jitter: Time,
}

impl Default for Incast {
    fn default() -> Self {
        Incast {
            fan_in: 8,
            sizes: SizesSpec::Fixed(Bytes(70_000)),
            receiver: None,
            rounds: None,
            period: Time::from_ms(10),
            jitter: Time::ZERO,
        }
    }
}

impl Incast {
    fn flows(&self, setting: &TrafficContext) -> Result<Vec<Flow>, TrafficError> {
        let hosts = setting.graph.hosts;
        let hint = "the receiver does not answer itself";
        let mut others = Partners::new(hosts, self.fan_in, "incast-fan-in", "fan_in", hint)?;
        check_host("incast-receiver", "receiver", self.receiver, hosts)?;
        let starts = Rounds {
            count: self.rounds,
            period: self.period,
            jitter: self.jitter,
            flows: self.fan_in,
        }
        .starts(setting.horizon.arrivals)?;
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        let endless = setting.endless();
        let (mut ends, mut lengths, mut delays) =
            (setting.stream("ends"), setting.stream("sizes"), setting.stream("jitter"));
        let mut flows = Vec::with_capacity(starts.len() * self.fan_in as usize);
        for start in starts {
            let dst = self.receiver.unwrap_or_else(|| ends.below(u64::from(hosts)) as u32);
            let dst = HostId(dst);
            flows.extend(others.draw(dst, &mut ends).iter().map(|&src| Flow {
                src,
                dst,
                bytes: sizes.sample(&mut lengths, endless),
                start: start + jitter(&mut delays, self.jitter),
                id: 0,
            }));
        }
        Ok(flows)
    }
}

impl Pattern for Incast {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting).map(numbered)
    }
    fn files(&self) -> Vec<&str> {
        self.sizes.file().into_iter().collect()
    }
}
