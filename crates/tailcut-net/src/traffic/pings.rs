//! Back-to-back pings: tiny flows, each started when the one before is over (RPS, INFOCOM 2013,
//! section III-D).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::demand::{Demand, FlowPool, Signal, StartRule};
use super::pairs::derangement;
use super::{Flow, Pattern, TrafficContext, TrafficError, check_flow_count, check_host};
use crate::topology::HostId;

/// Parameters of pings. A ping is a connection with ports of its own, and so an ECMP path of its
/// own; its time to connect is the round-trip time of two packets without payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pings {
    /// The host that pings; by default, without both ends, every host pings a partner of its own.
    pub from: Option<u32>,
    /// The host that is pinged.
    pub to: Option<u32>,
    /// Pings of each pair of hosts, one after another (RPS: 200).
    #[schemars(range(min = 1))]
    pub count: u32,
    /// Payload of a ping.
    pub bytes: Bytes,
    /// Time from the end of a ping to the start of the next.
    pub gap: Time,
    /// Start of the first ping.
    pub start: Time,
}

impl Default for Pings {
    fn default() -> Self {
        Pings {
            from: None,
            to: None,
            count: 200,
            bytes: Bytes(56),
            gap: Time::ZERO,
            start: Time::ZERO,
        }
    }
}

impl Pings {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let hosts = setting.graph.hosts;
        check_host("pings-host", "from", self.from, hosts)?;
        check_host("pings-host", "to", self.to, hosts)?;
        let pairs: Vec<(HostId, HostId)> = match (self.from, self.to) {
            (Some(from), Some(to)) if from != to => vec![(HostId(from), HostId(to))],
            (None, None) if hosts >= 2 => {
                let partners = derangement(hosts, &mut setting.stream("partners"));
                partners.into_iter().enumerate().map(|(from, to)| (HostId::at(from), to)).collect()
            }
            _ => {
                let error = "from and to must be two different hosts, or both left out";
                return Err(TrafficError::new("pings-pair", "from", error));
            }
        };
        if self.count == 0 || self.bytes.0 == 0 {
            let field = if self.count == 0 { "count" } else { "bytes" };
            let error = format!("{field} = 0: must be at least 1");
            return Err(TrafficError::new("pings-count", field, error));
        }
        if self.start >= setting.horizon.arrivals {
            let error = format!("start = \"{}\": must be before horizon.arrivals", self.start);
            return Err(TrafficError::new("pings-start", "start", error));
        }
        check_flow_count(f64::from(self.count) * pairs.len() as f64, "count")?;
        let (start, bytes) = (self.start, self.bytes.0);
        let mut demand = Demand::default();
        for (src, dst) in pairs {
            let job = demand.job("pings");
            let pool = demand.pool(FlowPool { opens: start, at_once: 1, on: Signal::Acknowledged });
            for ping in 0..self.count {
                let delay = if ping == 0 { Time::ZERO } else { self.gap };
                demand.flow(StartRule { job, pool, delay }, Flow { src, dst, bytes, start, id: 0 });
            }
        }
        Ok(demand)
    }
}

impl Pattern for Pings {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting).map(Demand::numbered)
    }
    fn sized_by(&self) -> &'static str {
        "bytes"
    }
}
