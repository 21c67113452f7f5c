//! Partition-aggregate: a host asks many others, and its answer waits for the slowest of them
//! (DCTCP, SIGCOMM 2010, section 2.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::{Demand, Dependent, NONE, Signal, StartRule};
use super::partners::Partners;
use super::sizes::SizesSpec;
use super::{
    Flow, MOST_BYTES, Pattern, TrafficContext, TrafficError, check_flow_count, check_host, jitter,
    positive, whole_ns,
};
use crate::topology::HostId;

/// Parameters of partition-aggregate traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionAggregate {
    /// Workers that each query asks, all different and drawn anew.
    #[schemars(range(min = 1))]
    pub workers: u32,
    /// Bytes of the request to each worker (DCTCP's cluster: 1.6 KB).
    pub request: Bytes,
    /// Bytes of each worker's response (DCTCP's cluster: 1.6 to 2 KB).
    pub response: SizesSpec,
    /// Mean number of queries per second over the whole network, which arrive as a Poisson process.
    pub queries_per_second: f64,
    /// The host that asks; drawn anew for each query by default.
    pub aggregator: Option<u32>,
    /// Time from the request's last byte at the worker to the start of its response.
    pub compute: Time,
    /// Maximum extra delay of each worker, drawn uniformly.
    pub jitter: Time,
}

impl Default for PartitionAggregate {
    fn default() -> Self {
        PartitionAggregate {
            workers: 8,
            request: Bytes(1_600),
            response: SizesSpec::Fixed(Bytes(2_000)),
            queries_per_second: 1_000.0,
            aggregator: None,
            compute: Time::ZERO,
            jitter: Time::ZERO,
        }
    }
}

impl PartitionAggregate {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let hosts = setting.graph.hosts;
        let (code, hint) = ("partition-aggregate-workers", "the aggregator does not ask itself");
        let mut others = Partners::new(hosts, self.workers, code, "workers", hint)?;
        if self.request.0 == 0 {
            let error = "request = \"0B\": must be at least 1B";
            return Err(TrafficError::new("partition-aggregate-request", "request", error));
        }
        check_host("partition-aggregate-aggregator", "aggregator", self.aggregator, hosts)?;
        positive("queries_per_second", self.queries_per_second)?;
        let end = setting.horizon.arrivals.as_ns() as f64;
        let mean_gap_ns = 1e9 / self.queries_per_second;
        check_flow_count(2.0 * end / mean_gap_ns * f64::from(self.workers), "queries_per_second")?;
        let responses = self.response.resolve(setting.read, "response")?;
        let endless = setting.endless();
        let (mut gaps, mut ends) = (setting.stream("gaps"), setting.stream("ends"));
        let (mut lengths, mut delays) = (setting.stream("sizes"), setting.stream("jitter"));
        let mut demand = Demand::default();
        let mut now = 0.0;
        loop {
            now += gaps.exponential(mean_gap_ns);
            if now >= end {
                return Ok(demand);
            }
            let start = whole_ns(now);
            let job = demand.job("query");
            let asks = self.aggregator.unwrap_or_else(|| ends.below(u64::from(hosts)) as u32);
            let asks = HostId(asks);
            for &worker in others.draw(asks, &mut ends) {
                let request = Flow { src: asks, dst: worker, bytes: self.request.0, start, id: 0 };
                let request =
                    demand.flow(StartRule { job, pool: NONE, delay: Time::ZERO }, request);
                let bytes = responses.sample(&mut lengths, endless);
                let delay = self.compute + jitter(&mut delays, self.jitter);
                let response = Flow { src: worker, dst: asks, bytes, start, id: 0 };
                let response = demand.flow(StartRule { job, pool: NONE, delay }, response);
                demand.wait(Dependent::Flow(response), request, Signal::Received);
            }
        }
    }
}

impl Pattern for PartitionAggregate {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting).map(Demand::numbered)
    }
    fn sized_by(&self) -> &'static str {
        if self.request.0 > MOST_BYTES { "request" } else { "response" }
    }
    fn files(&self) -> Vec<&str> {
        self.response.file().into_iter().collect()
    }
}
