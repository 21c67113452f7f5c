//! Estimates the peak memory of a run. The constants below come from counted allocations
//! (`tests/memory.rs`).

use std::sync::Arc;

use tailcut_engine::Time;
use tailcut_net::FlowSpan;
use tailcut_net::topology::Graph;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::spread::MultipathSpec;
use tailcut_net::transport::tcp::TcpSpec;

use super::facts::RunFlows;
use crate::sections::Config;

/// Bytes of any run: its agenda, and room that grows with nothing below.
const PER_RUN: u64 = 100_000;
/// Bytes per link, both directions: its ports, routes and names.
const PER_LINK: u64 = 1_200;
/// Bytes per flow: its entry, its record and its rows of the tables.
const PER_FLOW: u64 = 500;
/// Bytes per open connection, both ends.
const PER_CONNECTION: u64 = 1_400;
/// Bytes per segment of a window: in the sender's scoreboard, and in a queue or on a wire.
const PER_SEGMENT: u64 = 32;
/// Bytes per port and instant of `measure.fabric`: the sample and its row of the table.
const PER_SAMPLE: u64 = 52;
/// Bytes per flow for the links that carried it (`measure.fabric`), and their rows.
const PER_PATH: u64 = 300;
/// Additional bytes with `measure.attribution`: per link, per flow (its parts and their columns),
/// per connection (the causes of its timers) and per segment (the causes of a packet).
const ATTRIBUTED: [u64; 4] = [20, 1_000, 700, 200];
/// Additional bytes with `measure.attribution` per port that keeps its packets until departure.
const PER_QUEUE: u64 = 700;
/// Bytes per dependency between flows and computations.
const PER_DEPENDENCY: u64 = 60;
/// Bytes per computation: itself, its state and its name.
const PER_COMPUTATION: u64 = 150;
/// The load beyond which flows are assumed to pile up until the arrivals end.
const SATURATED: f64 = 0.95;
/// The number of instants, between the first start and the last, at which open flows are counted.
const LOOKS: u64 = 32;

/// Returns the estimated bytes of a run of these flows on `graph` with this seed.
pub(super) fn estimate(config: &Config, graph: &Graph, run: &RunFlows, seed: u64) -> u64 {
    let links = graph.links.len() as u64;
    let RunFlows { flows, spans, jobs, .. } = run;
    let tables = config.scheme.balance.state_bytes(graph);
    let [link, flow, ..] = attributed(config);
    let fixed = PER_RUN + (PER_LINK + link) * links + (PER_FLOW + flow) * flows.len() as u64;
    let samples = u64::from(config.labels.instants.unwrap_or(0)) * 2 * links * PER_SAMPLE;
    let paths = if samples > 0 { PER_PATH * flows.len() as u64 } else { 0 };
    let jobs = PER_DEPENDENCY * jobs.dependencies + PER_COMPUTATION * jobs.computations;
    let fixed = fixed.saturating_add(samples).saturating_add(paths).saturating_add(jobs);
    let mut carried = carried_flows(config, graph, flows, seed);
    let open = match spans {
        Some(spans) => {
            for (carried, span) in carried.iter_mut().zip(spans).filter(|(one, _)| one.shares) {
                carried.window /= u64::from(span.sharers);
            }
            most_spanned(config, spans, &carried)
        }
        None => most_open(config, graph, flows, &carried),
    };
    fixed.saturating_add(tables).saturating_add(open)
}

/// Returns what each flow occupies.
fn carried_flows(config: &Config, graph: &Graph, flows: &[Flow], seed: u64) -> Vec<Carried> {
    let transport = &config.scheme.transport;
    let interfaces = config.scheme.interface.width(graph);
    let carrier = |one: &TransportSpec| Carrier {
        tcp: one.segment_spec(),
        window: one.largest_window(graph, interfaces, config.host.framing_overhead),
        shares: one.shares_window(),
        spread: one.multipath(),
    };
    let carriers: Vec<Carrier> = transport.carriers().into_iter().map(carrier).collect();
    let of = |flow: &Flow| &carriers[transport.carrier_of(flow, seed)];
    flows.iter().map(|flow| carried(config, of(flow), flow)).collect()
}

/// Returns the peak bytes held by flows that are under way at the estimated times.
fn most_spanned(config: &Config, spans: &[FlowSpan], carried: &[Carried]) -> u64 {
    let changes = spans.iter().zip(carried).filter(|(span, _)| span.from < span.until);
    let mut changes: Vec<(Time, i64)> = changes
        .flat_map(|(span, carried)| {
            let bytes = i64::try_from(carried.bytes(config)).unwrap_or(i64::MAX);
            [(span.from, bytes), (span.until, -bytes)]
        })
        .collect();
    // What ends makes room for what begins.
    changes.sort_unstable();
    let held = changes.iter().scan(0i64, |held, (_, change)| {
        *held = held.saturating_add(*change);
        Some(*held)
    });
    held.max().unwrap_or(0) as u64
}

/// Returns the additional bytes of attribution per link, flow, connection and segment; zeros
/// without it.
fn attributed(config: &Config) -> [u64; 4] {
    if !config.labels.attribution {
        return [0; 4];
    }
    let keeps =
        config.scheme.queue.schedules_departures() || config.switch.flow_control().is_some();
    let queues = if keeps { 2 * PER_QUEUE } else { 0 };
    let [link, flow, connection, segment] = ATTRIBUTED;
    [link + queues, flow, connection, segment]
}

/// A transport that carries flows.
struct Carrier {
    tcp: TcpSpec,
    /// The most bytes that a flow has in flight on one path.
    window: u64,
    /// Whether flows of a host share that.
    shares: bool,
    spread: Option<Arc<dyn MultipathSpec>>,
}

/// Upper bounds of what a flow occupies.
struct Carried {
    connections: u64,
    /// The bytes that all its connections may have in flight.
    window: u64,
    /// Whether flows of a host share the window.
    shares: bool,
    /// The bytes of a segment.
    mss: u64,
    /// The bytes that the sender's link carries for the flow.
    on_wire: u64,
}

impl Carried {
    /// Returns the bytes of memory that the flow holds while it is under way.
    fn bytes(&self, config: &Config) -> u64 {
        let [.., connection, segment] = attributed(config);
        let segments = (self.window / self.mss).saturating_add(1);
        (self.connections * (PER_CONNECTION + connection))
            .saturating_add(segments.saturating_mul(PER_SEGMENT + segment))
    }
}

/// Returns what a flow occupies with a transport.
fn carried(config: &Config, carrier: &Carrier, flow: &Flow) -> Carried {
    /// Control packets per connection: SYN, ACK and the like.
    const CONTROL: u64 = 3;
    let Carrier { tcp, window, shares, spread } = carrier;
    let headers = 40 + config.host.framing_overhead.0;
    let segments = flow.bytes.div_ceil(tcp.mss.0);
    let (connections, window) = match spread {
        // The flow is over before further subflows open.
        Some(spread) if segments <= spread.segments_before_join() => (1, spread.receive_window().0),
        Some(spread) => (u64::from(spread.subflows()), spread.receive_window().0),
        None => (1, *window),
    };
    let copies = u64::from(config.scheme.replicate.replication_plan(flow.bytes).copies);
    let data = flow.bytes.saturating_add(segments.saturating_mul(headers));
    Carried {
        connections: connections * copies,
        shares: *shares,
        window: window.min(flow.bytes).saturating_mul(copies),
        mss: tcp.mss.0,
        on_wire: data.saturating_add(connections * CONTROL * headers).saturating_mul(copies),
    }
}

/// Estimates the peak bytes held by flows that wait for nothing, if each lasts as long as on a
/// link shared equally at the mean load.
fn most_open(config: &Config, graph: &Graph, flows: &[Flow], carried: &[Carried]) -> u64 {
    let rates = graph.host_rates();
    let capacity: f64 = rates.iter().map(|rate| rate.0 as f64 / 8.0).sum();
    let offered: f64 = carried.iter().map(|carried| carried.on_wire as f64).sum();
    let load = offered / (capacity * config.horizon.arrivals.as_secs_f64()).max(1.0);
    let free = 1.0 - load.min(SATURATED);
    let starts = || flows.iter().map(|flow| flow.start.0);
    let Some((first, last)) = starts().min().zip(starts().max()) else { return 0 };
    let step = (last - first).div_ceil(LOOKS).max(1);
    let mut held = vec![0u64; LOOKS as usize + 2];
    for (flow, carried) in flows.iter().zip(carried) {
        let rate = rates[flow.src.index()].min(rates[flow.dst.index()]);
        let alone = rate.transmission_time(carried.on_wire.min(u64::from(u32::MAX)));
        let takes = if load > 1.0 { Time::NEVER.0 as f64 } else { alone.0 as f64 / free };
        let bytes = carried.bytes(config);
        let from = (flow.start.0 - first).div_ceil(step);
        let until = ((flow.start.0 - first) as f64 + takes) / step as f64;
        for look in &mut held[from as usize..=(until as usize).min(LOOKS as usize + 1)] {
            *look = look.saturating_add(bytes);
        }
    }
    held.into_iter().max().unwrap_or(0)
}
