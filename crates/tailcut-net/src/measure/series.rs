//! Time series of chosen flows and links, sampled at fixed times and bounded.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;
use crate::horizon::LONGEST;

use crate::fabric::Fabric;
use crate::measure::records::{Sampled, Series};
use crate::topology::find::{UnknownHosts, UnknownLink, find_hosts, find_link};
use crate::topology::{Graph, HostId, PortId, Routes};

/// Time series of chosen flows and directed links, sampled and bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesSpec {
    /// Flows (by id) whose congestion windows and rates are sampled, separately for each connection
    /// (copy, subflow).
    pub flows: Vec<u64>,
    /// Links whose queue and utilisation are sampled, as `"from>to"` in node names or numbers
    /// (`"h0>s0"`).
    pub links: Vec<String>,
    /// Pairs of hosts, as `"from>to"` (`"h0>h15"`), whose shortest paths are compared by their
    /// queues. Each sample is the longest sum of queues along a path minus the shortest (RPS,
    /// figure 4a).
    pub differentials: Vec<String>,
    /// Time between samples.
    pub interval: Time,
    /// Maximum samples per series. Later samples are not taken, and the result says so.
    pub max_samples: u32,
}

impl Default for SeriesSpec {
    fn default() -> Self {
        SeriesSpec {
            flows: vec![],
            links: vec![],
            differentials: vec![],
            interval: Time::from_us(100),
            max_samples: 10_000,
        }
    }
}

impl SeriesSpec {
    /// Returns whether nothing is sampled.
    pub fn is_off(&self) -> bool {
        self.flows.is_empty() && self.links.is_empty() && self.differentials.is_empty()
    }

    /// Checks the interval and the number of samples.
    ///
    /// # Errors
    /// Refuses an interval of 0 or of more than a day, and `max_samples = 0`.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.interval == Time::ZERO {
            return Err(SpecError::new(
                "series-interval",
                "interval",
                "interval = \"0s\": must be greater than 0",
            ));
        }
        if self.interval > LONGEST {
            let message = format!("interval = \"{}\": must be at most {LONGEST}", self.interval);
            return Err(SpecError::new("series-interval", "interval", message));
        }
        if self.max_samples == 0 {
            let message = "max_samples = 0: must be at least 1";
            return Err(SpecError::new("series-max-samples", "max_samples", message)
                .hint("leave flows and links empty to record no series"));
        }
        Ok(())
    }
}

/// A requested link or pair of hosts that the graph does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPlace {
    /// An unknown link.
    #[error(transparent)]
    Link(#[from] UnknownLink),
    /// An unknown pair of hosts.
    #[error(transparent)]
    Hosts(#[from] UnknownHosts),
}

/// Link state that series sample.
pub trait LinkProbe {
    /// Returns the packets waiting at a directed link, without the one in transmission.
    fn queue(&mut self, now: Time, port: PortId) -> u32;

    /// Returns the time for which the link has transmitted since the run began.
    fn busy(&mut self, now: Time, port: PortId) -> Time;
}

impl LinkProbe for Fabric {
    fn queue(&mut self, now: Time, port: PortId) -> u32 {
        Fabric::queue_length(self, now, port)
    }

    fn busy(&mut self, now: Time, port: PortId) -> Time {
        Fabric::busy_time(self, now, port)
    }
}

struct LinkSeries {
    port: PortId,
    at: Time,
    busy_before: Time,
    queue: Series,
    utilisation: Series,
}

/// A sample of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Flow and connection.
    pub of: Sampled,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes acknowledged so far.
    pub acknowledged: u64,
}

struct ConnectionSeries {
    acknowledged_before: u64,
    window: Series,
    rate: Series,
}

impl ConnectionSeries {
    fn new(of: Sampled) -> ConnectionSeries {
        let Sampled { flow, copy } = of;
        let whose = match copy {
            0 => format!("flow {flow}"),
            _ => format!("flow {flow} connection {copy}"),
        };
        let named = |what: &str| Series { of: Some(of), ..series(format!("{whose} {what}")) };
        let (window, rate) = (named("cwnd_bytes"), named("rate_bps"));
        ConnectionSeries { acknowledged_before: 0, window, rate }
    }
}

/// The shortest paths between two hosts. There may be too many to enumerate, so they are stored as
/// a graph: for each switch, the ports that lead on.
struct PathSeries {
    from: HostId,
    to: HostId,
    /// The switches of the paths, each after those that it leads to. Each port comes with the
    /// position of the next switch in this list, `None` at the last switch. The sending host's own
    /// port is left out, because all paths share it.
    switches: Vec<Vec<(PortId, Option<usize>)>>,
    differential: Series,
}

impl PathSeries {
    /// Recomputes the paths from `routes`.
    fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        let (from, to) = (self.from, self.to);
        let mut place = BTreeMap::new();
        let mut switches = vec![];
        let mut open = vec![routes.edge_switch(from)];
        while let Some(&switch) = open.last() {
            let ports = routes.candidates(switch, to);
            let next = ports.iter().filter_map(|&port| graph.switch(graph.far_end(port)));
            let unknown = next.filter(|next| !place.contains_key(next));
            let known = open.len();
            open.extend(unknown);
            if open.len() == known {
                open.pop();
                if !place.contains_key(&switch) {
                    let after = |&port| {
                        let next = graph.switch(graph.far_end(port));
                        (port, next.and_then(|next| place.get(&next).copied()))
                    };
                    switches.push(ports.iter().map(after).collect());
                    place.insert(switch, switches.len() - 1);
                }
            }
        }
        self.switches = switches;
    }

    /// Returns the longest sum of queues along a path minus the shortest.
    fn differential(&self, mut queue: impl FnMut(PortId) -> u64) -> u64 {
        let mut sums: Vec<(u64, u64)> = Vec::with_capacity(self.switches.len());
        for ports in &self.switches {
            let (mut least, mut most) = (u64::MAX, 0);
            for &(port, next) in ports {
                let here = queue(port);
                let (shortest, longest) = next.map_or((0, 0), |next| sums[next]);
                (least, most) = (least.min(here + shortest), most.max(here + longest));
            }
            sums.push((least, most));
        }
        sums.last().map_or(0, |(least, most)| most - least)
    }
}

/// Collects samples of the requested flows, links and paths.
pub struct SeriesSampler {
    interval: Time,
    max_samples: usize,
    links: Vec<LinkSeries>,
    differentials: Vec<PathSeries>,
    /// Series of connections. A flow's later connections are added when they are first sampled.
    connections: BTreeMap<Sampled, ConnectionSeries>,
}

fn series(name: String) -> Series {
    Series { name, of: None, times: vec![], values: vec![], truncated: false }
}

fn push(series: &mut Series, max: usize, now: Time, value: f64) {
    if series.times.len() < max {
        series.times.push(now);
        series.values.push(value);
    } else {
        series.truncated = true;
    }
}

impl SeriesSampler {
    /// Creates the series requested by `spec`.
    ///
    /// # Errors
    /// Refuses links and hosts that the graph does not have.
    pub fn new(
        spec: &SeriesSpec,
        graph: &Graph,
        routes: &Routes,
    ) -> Result<SeriesSampler, UnknownPlace> {
        let mut links = Vec::with_capacity(spec.links.len());
        for name in &spec.links {
            links.push(LinkSeries {
                port: find_link(graph, name)?,
                at: Time::ZERO,
                busy_before: Time::ZERO,
                queue: series(format!("link {name} queue_packets")),
                utilisation: series(format!("link {name} utilisation")),
            });
        }
        let mut differentials = Vec::with_capacity(spec.differentials.len());
        for name in &spec.differentials {
            let (from, to) = find_hosts(graph, name)?;
            let differential = series(format!("paths {name} queue_differential_packets"));
            let mut paths = PathSeries { from, to, switches: vec![], differential };
            paths.reroute(graph, routes);
            differentials.push(paths);
        }
        let first = |&flow: &u64| Sampled { flow, copy: 0 };
        let connections =
            spec.flows.iter().map(first).map(|first| (first, ConnectionSeries::new(first)));
        Ok(SeriesSampler {
            interval: spec.interval,
            max_samples: spec.max_samples as usize,
            links,
            differentials,
            connections: connections.collect(),
        })
    }

    /// Recomputes the paths between hosts, because routing has settled on `routes`.
    pub fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        for pair in &mut self.differentials {
            pair.reroute(graph, routes);
        }
    }

    /// Returns the time between samples, or `None` if nothing is sampled.
    pub fn interval(&self) -> Option<Time> {
        let nothing =
            self.links.is_empty() && self.connections.is_empty() && self.differentials.is_empty();
        (!nothing).then_some(self.interval)
    }

    /// Samples the links at `now`, which is later than 0 and than the previous sample. Utilisation
    /// is the share of the time since then during which the link transmitted.
    pub fn sample_links(&mut self, now: Time, links: &mut impl LinkProbe) {
        for link in &mut self.links {
            let waiting = links.queue(now, link.port);
            push(&mut link.queue, self.max_samples, now, f64::from(waiting));
            let busy = links.busy(now, link.port);
            let share = busy.since(link.busy_before).0 as f64 / now.since(link.at).0 as f64;
            (link.at, link.busy_before) = (now, busy);
            push(&mut link.utilisation, self.max_samples, now, share);
        }
        for pair in &mut self.differentials {
            let differential = pair.differential(|port| u64::from(links.queue(now, port))) as f64;
            push(&mut pair.differential, self.max_samples, now, differential);
        }
    }

    /// Samples a connection if its flow was requested.
    pub fn sample_connection(&mut self, now: Time, sample: ConnectionSample) {
        let ConnectionSample { of, window, acknowledged } = sample;
        if !self.connections.contains_key(&Sampled { copy: 0, ..of }) {
            return;
        }
        let series = self.connections.entry(of).or_insert_with(|| ConnectionSeries::new(of));
        push(&mut series.window, self.max_samples, now, window as f64);
        let bits = (acknowledged.saturating_sub(series.acknowledged_before) * 8) as f64;
        series.acknowledged_before = acknowledged;
        push(&mut series.rate, self.max_samples, now, bits / self.interval.as_secs_f64());
    }

    /// Returns the collected series.
    pub fn into_series(self) -> Vec<Series> {
        let links = self.links.into_iter().flat_map(|l| [l.queue, l.utilisation]);
        let differentials = self.differentials.into_iter().map(|pair| pair.differential);
        let links = links.chain(differentials);
        links.chain(self.connections.into_values().flat_map(|c| [c.window, c.rate])).collect()
    }
}
