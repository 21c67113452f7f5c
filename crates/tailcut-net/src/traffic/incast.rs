//! Incast: many hosts answer one at the same time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::rounds::Rounds;
use super::sizes::SizesSpec;
use super::{jitter, Flow, Setting, TrafficError};

/// Parameters of incast traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Incast {
    /// Hosts that answer in each round, all different and drawn anew (RepNet: 11).
    #[schemars(range(min = 1))]
    pub fan_in: u32,
    /// How many bytes each of them sends.
    pub sizes: SizesSpec,
    /// The host that receives; drawn anew in each round when left out.
    pub receiver: Option<u32>,
    /// Number of rounds; as many as start within `horizon.arrivals` when left out.
    pub rounds: Option<u32>,
    /// Time from one round to the next.
    pub period: Time,
    /// Each answer starts this much later at most, uniformly.
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
    pub(super) fn flows(&self, setting: &Setting) -> Result<Vec<Flow>, TrafficError> {
        let hosts = setting.graph.hosts;
        if self.fan_in == 0 || self.fan_in >= hosts {
            let error = format!(
                "fan_in = {}: {hosts} hosts allow from 1 to {}",
                self.fan_in,
                hosts.saturating_sub(1)
            );
            return Err(TrafficError::new("incast-fan-in", "fan_in", error)
                .hint("the receiver does not answer itself"));
        }
        if let Some(receiver) = self.receiver.filter(|receiver| *receiver >= hosts) {
            let error = format!("receiver = {receiver}: hosts are numbered 0 to {}", hosts - 1);
            return Err(TrafficError::new("incast-receiver", "receiver", error));
        }
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
        let mut others: Vec<u32> = (0..hosts).collect();
        let mut flows = Vec::with_capacity(starts.len() * self.fan_in as usize);
        for start in starts {
            let dst = self.receiver.unwrap_or_else(|| ends.below(u64::from(hosts)) as u32);
            // The receiver goes last; the responders are drawn to the front (partial Fisher-Yates).
            let last = hosts as usize - 1;
            let place = others.iter().position(|&host| host == dst).expect("every host is listed");
            others.swap(place, last);
            for i in 0..self.fan_in as usize {
                others.swap(i, i + ends.below((last - i) as u64) as usize);
                flows.push(Flow {
                    src: others[i],
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
