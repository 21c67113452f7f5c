//! Bucket sort: a master deals numbers out to slaves in small batches, and each slave returns its
//! sorted bucket (RepNet, section IV-C).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::{Demand, Dependent, FlowPool, NONE, Signal, StartRule};
use super::{
    Flow, FlowIndex, MOST_BYTES, Pattern, TrafficContext, TrafficError, check_flow_count,
    check_hosts, jitter,
};
use crate::topology::HostId;

/// Parameters of bucket sort. Every host is the master of its own jobs, and a slave in the jobs of
/// all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BucketSort {
    /// Numbers to sort in each job (RepNet: a million).
    #[schemars(range(min = 1))]
    pub numbers: u32,
    /// Numbers per batch (RepNet: 20).
    #[schemars(range(min = 1))]
    pub batch: u32,
    /// Bytes of the flow that carries a batch (RepNet: about 1 KB).
    pub batch_bytes: Bytes,
    /// Bytes of each number in a returned bucket: five digits and a separator.
    pub bytes_per_number: Bytes,
    /// Batches that a master has in flight at once. The paper does not say how far its master runs
    /// ahead.
    #[schemars(range(min = 1))]
    pub batches_at_once: u32,
    /// Time from the last batch at a slave to the start of its answer.
    pub sort_time: Time,
    /// Jobs of each master, one after another.
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Hosts that take part; all by default.
    pub hosts: Vec<u32>,
    /// Maximum delay of each master's start, drawn uniformly (RepNet: "several milliseconds").
    pub jitter: Time,
}

impl Default for BucketSort {
    fn default() -> Self {
        BucketSort {
            numbers: 1_000_000,
            batch: 20,
            batch_bytes: Bytes(1_000),
            bytes_per_number: Bytes(6),
            batches_at_once: 32,
            sort_time: Time::ZERO,
            rounds: 1,
            hosts: vec![],
            jitter: Time::from_ms(5),
        }
    }
}

impl BucketSort {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let hosts = check_hosts("bucket-sort-hosts", "hosts", &self.hosts, setting.graph.hosts)?;
        self.check(setting)?;
        let batches = self.numbers.div_ceil(self.batch);
        let jobs = hosts.len() as f64 * f64::from(self.rounds);
        check_flow_count(jobs * (f64::from(batches) + hosts.len() as f64), "numbers")?;
        let mut starts = setting.stream("jitter");
        let mut demand = Demand::default();
        for (at, &master) in hosts.iter().enumerate() {
            let opens = jitter(&mut starts, self.jitter);
            let slaves: Vec<HostId> =
                hosts.iter().copied().filter(|&host| host != master).collect();
            let mut buckets = setting.stream_of("buckets", at as u64);
            let mut answers: Vec<FlowIndex> = vec![];
            for _ in 0..self.rounds {
                let job = demand.job("sort");
                let on = Signal::Acknowledged;
                let pool = demand.pool(FlowPool { opens, at_once: self.batches_at_once, on });
                for answer in answers.drain(..) {
                    demand.wait(Dependent::Pool(pool), answer, Signal::Received);
                }
                let mut dealt: Vec<(u32, Vec<FlowIndex>)> = vec![(0, vec![]); slaves.len()];
                let mut left = self.numbers;
                while left > 0 {
                    let count = left.min(self.batch);
                    left -= count;
                    let slave = buckets.below(slaves.len() as u64) as usize;
                    let (dst, bytes) = (slaves[slave], self.batch_bytes.0);
                    let flow = Flow { src: master, dst, bytes, start: opens, id: 0 };
                    let flow = demand.flow(StartRule { job, pool, delay: Time::ZERO }, flow);
                    dealt[slave].0 += count;
                    dealt[slave].1.push(flow);
                }
                for (&slave, (count, batches)) in slaves.iter().zip(&dealt) {
                    if *count == 0 {
                        continue;
                    }
                    let bytes = u64::from(*count) * self.bytes_per_number.0;
                    let flow = Flow { src: slave, dst: master, bytes, start: opens, id: 0 };
                    let answer =
                        demand.flow(StartRule { job, pool: NONE, delay: self.sort_time }, flow);
                    for &batch in batches {
                        demand.wait(Dependent::Flow(answer), batch, Signal::Received);
                    }
                    answers.push(answer);
                }
            }
        }
        Ok(demand)
    }

    fn check(&self, setting: &TrafficContext) -> Result<(), TrafficError> {
        for (field, count) in [
            ("numbers", u64::from(self.numbers)),
            ("batch", u64::from(self.batch)),
            ("batch_bytes", self.batch_bytes.0),
            ("bytes_per_number", self.bytes_per_number.0),
            ("batches_at_once", u64::from(self.batches_at_once)),
            ("rounds", u64::from(self.rounds)),
        ] {
            if count == 0 {
                let error = format!("{field} = 0: must be at least 1");
                return Err(TrafficError::new("bucket-sort-count", field, error));
            }
        }
        if self.jitter > setting.horizon.arrivals {
            let error = format!("jitter = \"{}\": must be at most horizon.arrivals", self.jitter);
            return Err(TrafficError::new("bucket-sort-jitter", "jitter", error));
        }
        Ok(())
    }
}

impl Pattern for BucketSort {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting).map(Demand::numbered)
    }
    fn sized_by(&self) -> &'static str {
        if self.batch_bytes.0 > MOST_BYTES { "batch_bytes" } else { "bytes_per_number" }
    }
}
