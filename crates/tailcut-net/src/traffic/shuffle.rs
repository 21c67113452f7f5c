//! Shuffle: every reducer fetches its part from every mapper, a few at once (MapReduce; RPS,
//! INFOCOM 2013, section III-E).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::{Demand, FlowPool, Signal, StartRule};
use super::{Flow, Pattern, TrafficContext, TrafficError, check_flow_count, check_hosts};

/// Parameters of a shuffle. For background traffic, make it part of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shuffle {
    /// Map tasks whose output is fetched.
    #[schemars(range(min = 1))]
    pub mappers: u32,
    /// Reduce tasks that fetch it.
    #[schemars(range(min = 1))]
    pub reducers: u32,
    /// Bytes of all outputs together; every pair of tasks has an equal part. Parts that stay on one
    /// host do not cross the network.
    pub bytes: Bytes,
    /// Fetches that each reducer runs at once (Hadoop: 5 by default).
    #[schemars(range(min = 1))]
    pub fetches_at_once: u32,
    /// The hosts that run the tasks: mappers and reducers are each assigned in this order,
    /// round-robin. By default, hosts are drawn: first for the mappers, then others for the
    /// reducers as long as there are any.
    pub hosts: Vec<u32>,
    /// Start of the shuffle.
    pub start: Time,
}

impl Default for Shuffle {
    fn default() -> Self {
        Shuffle {
            mappers: 4,
            reducers: 4,
            bytes: Bytes(4_000_000_000),
            fetches_at_once: 5,
            hosts: vec![],
            start: Time::ZERO,
        }
    }
}

impl Shuffle {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let all = setting.graph.hosts;
        let hosts = check_hosts("shuffle-hosts", "hosts", &self.hosts, all)?;
        for (field, count) in [
            ("mappers", self.mappers),
            ("reducers", self.reducers),
            ("fetches_at_once", self.fetches_at_once),
        ] {
            if count == 0 {
                let error = format!("{field} = 0: must be at least 1");
                return Err(TrafficError::new("shuffle-tasks", field, error));
            }
        }
        let pairs = u64::from(self.mappers) * u64::from(self.reducers);
        if self.bytes.0 < pairs {
            let error =
                format!("bytes = \"{}\": {pairs} pairs of tasks need a byte each", self.bytes);
            return Err(TrafficError::new("shuffle-bytes", "bytes", error));
        }
        if self.start >= setting.horizon.arrivals {
            let error = format!("start = \"{}\": must be before horizon.arrivals", self.start);
            return Err(TrafficError::new("shuffle-start", "start", error));
        }
        check_flow_count(pairs as f64, "mappers")?;
        let (mut places, shift) = (hosts.clone(), self.mappers as usize);
        let drawn = self.hosts.is_empty();
        if drawn {
            setting.stream("places").shuffle(&mut places);
        }
        let mapper_host = |task: u32| places[task as usize % places.len()];
        let reducer_host =
            |task: u32| places[(task as usize + if drawn { shift } else { 0 }) % places.len()];
        let mut demand = Demand::default();
        let job = demand.job("shuffle");
        let (part, more) = (self.bytes.0 / pairs, self.bytes.0 % pairs);
        for reducer in 0..self.reducers {
            let dst = reducer_host(reducer);
            let pool = demand.pool(FlowPool {
                opens: self.start,
                at_once: self.fetches_at_once,
                on: Signal::Received,
            });
            let mut order: Vec<u32> = (0..self.mappers).collect();
            setting.stream_of("order", u64::from(reducer)).shuffle(&mut order);
            for mapper in order {
                let src = mapper_host(mapper);
                let number = u64::from(reducer) * u64::from(self.mappers) + u64::from(mapper);
                let bytes = part + u64::from(number < more);
                if src != dst {
                    let flow = Flow { src, dst, bytes, start: self.start, id: 0 };
                    demand.flow(StartRule { job, pool, delay: Time::ZERO }, flow);
                }
            }
        }
        if demand.flows.is_empty() {
            let error =
                "every mapper shares its host with every reducer: nothing crosses the network";
            return Err(TrafficError::new("shuffle-local", "hosts", error).hint("name more hosts"));
        }
        Ok(demand)
    }
}

impl Pattern for Shuffle {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting).map(Demand::numbered)
    }
    fn sized_by(&self) -> &'static str {
        "bytes"
    }
}
