//! Closed-loop transfers: every client moves a number of bytes in flows, one after another (RPS,
//! INFOCOM 2013, section III-C).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::{Demand, FlowPool, Signal, StartRule};
use super::sizes::SizesSpec;
use super::{Flow, Pattern, TrafficContext, TrafficError, check_flow_count, check_hosts, jitter};

/// Parameters of closed-loop transfers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Transfers {
    /// Clients on each host, each with a transfer of its own (RPS: 2).
    #[schemars(range(min = 1))]
    pub clients_per_host: u32,
    /// Total bytes that each client moves (RPS: 2 GB).
    pub bytes: Bytes,
    /// Flow sizes; the last flow of a client is cut to what remains.
    pub sizes: SizesSpec,
    /// How often a client draws its destination.
    pub destinations: Destinations,
    /// Hosts between which transfers run; all by default.
    pub hosts: Vec<u32>,
    /// Maximum delay of each client's start, drawn uniformly.
    pub jitter: Time,
}

/// How often a client draws its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Destinations {
    /// For each flow.
    #[default]
    PerFlow,
    /// Once.
    PerClient,
}

impl Default for Transfers {
    fn default() -> Self {
        Transfers {
            clients_per_host: 2,
            bytes: Bytes(2_000_000_000),
            sizes: SizesSpec::Builtin("data-mining".into()),
            destinations: Destinations::default(),
            hosts: vec![],
            jitter: Time::ZERO,
        }
    }
}

impl Transfers {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let hosts = check_hosts("transfers-hosts", "hosts", &self.hosts, setting.graph.hosts)?;
        if self.clients_per_host == 0 {
            let error = "clients_per_host = 0: must be at least 1";
            return Err(TrafficError::new("transfers-clients", "clients_per_host", error));
        }
        if self.bytes.0 == 0 {
            let error = "bytes = \"0B\": must be at least 1B";
            return Err(TrafficError::new("transfers-bytes", "bytes", error));
        }
        if self.jitter > setting.horizon.arrivals {
            let error = format!("jitter = \"{}\": must be at most horizon.arrivals", self.jitter);
            return Err(TrafficError::new("transfers-jitter", "jitter", error));
        }
        let sizes = self.sizes.resolve(setting.read, "sizes")?;
        let clients = hosts.len() as f64 * f64::from(self.clients_per_host);
        check_flow_count(clients * (1.0 + self.bytes.0 as f64 / sizes.mean()), "bytes")?;
        let mut starts = setting.stream("jitter");
        let mut demand = Demand::default();
        for (at, &src) in hosts.iter().enumerate() {
            for client in 0..self.clients_per_host {
                let client = at as u64 * u64::from(self.clients_per_host) + u64::from(client);
                let (mut lengths, mut ends) =
                    (setting.stream_of("sizes", client), setting.stream_of("ends", client));
                let opens = jitter(&mut starts, self.jitter);
                let job = demand.job("transfer");
                // The client starts its next flow when it knows that the one before has arrived.
                let pool = demand.pool(FlowPool { opens, at_once: 1, on: Signal::Acknowledged });
                let mut other = || {
                    let step = 1 + ends.below(hosts.len() as u64 - 1) as usize;
                    hosts[(at + step) % hosts.len()]
                };
                let mut dst = other();
                let mut left = self.bytes.0;
                while left > 0 {
                    let bytes = sizes.sample(&mut lengths, left).min(left);
                    left -= bytes;
                    let flow = Flow { src, dst, bytes, start: opens, id: 0 };
                    demand.flow(StartRule { job, pool, delay: Time::ZERO }, flow);
                    if self.destinations == Destinations::PerFlow {
                        dst = other();
                    }
                }
            }
        }
        Ok(demand)
    }
}

impl Pattern for Transfers {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting).map(Demand::numbered)
    }
    fn files(&self) -> Vec<&str> {
        self.sizes.file().into_iter().collect()
    }
}
