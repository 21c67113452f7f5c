//! What a run needs of memory at its peak, measured by what it allocates (`tests/memory.rs`).

use std::sync::Arc;

use tailcut_engine::Time;
use tailcut_net::topology::Graph;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::spread::MultipathSpec;
use tailcut_net::transport::tcp::TcpSpec;

use crate::sections::Config;

/// A link in both directions: its ports, routes and names.
const PER_LINK: u64 = 1_200;
/// A flow: its entry, its record, its rows of the columns.
const PER_FLOW: u64 = 500;
/// Both ends of a connection that is open.
const PER_CONNECTION: u64 = 1_400;
/// A segment of its window: in the sender's scoreboard, and in a queue or on a wire.
const PER_SEGMENT: u64 = 32;
/// A port at an instant of `measure.fabric`: what is sampled, and its row of the table.
const PER_SAMPLE: u64 = 52;
/// The links that carried a flow, as `measure.fabric` notes them, and their rows.
const PER_PATH: u64 = 300;
/// With `measure.attribution`: what is known of a link, its parts and their columns of a flow, what the timers of a connection go on from,
/// and what has led to a packet.
const ATTRIBUTED: [u64; 4] = [20, 1_000, 700, 200];
/// With it, a port whose order is decided at departure: who waits there.
const PER_QUEUE: u64 = 700;
/// Beyond this load flows queue up until the arrivals end.
const SATURATED: f64 = 0.95;
/// At so many instants between the first start and the last the open flows are counted.
const LOOKS: u64 = 32;

/// Estimated bytes of a run of `flows`, in order of start, on `graph` with this seed.
pub(super) fn estimate(config: &Config, graph: &Graph, flows: &[Flow], seed: u64) -> u64 {
    let links = graph.links.len() as u64;
    let tables = config.scheme.balance.state_bytes(graph);
    let [link, flow, ..] = attributed(config);
    let fixed = (PER_LINK + link) * links + (PER_FLOW + flow) * flows.len() as u64;
    let samples = u64::from(config.labels.instants.unwrap_or(0)) * 2 * links * PER_SAMPLE;
    let paths = if samples > 0 { PER_PATH * flows.len() as u64 } else { 0 };
    let fixed = fixed.saturating_add(samples).saturating_add(paths);
    fixed.saturating_add(tables).saturating_add(most_open(config, graph, flows, seed))
}

/// What attribution holds beside the rest, if it is asked for.
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
    spread: Option<Arc<dyn MultipathSpec>>,
}

/// What carries a flow, at the most.
struct Carried {
    connections: u64,
    /// Bytes that all of them may have in flight.
    window: u64,
    /// Bytes of a segment.
    mss: u64,
    /// Bytes that the sender's link carries for it.
    on_wire: u64,
}

/// Returns the needs of a transport for a flow.
fn carried(config: &Config, carrier: &Carrier, flow: &Flow) -> Carried {
    /// SYN, ACK and the like.
    const CONTROL: u64 = 3;
    let Carrier { tcp, spread } = carrier;
    let headers = 40 + config.host.framing_overhead.0;
    let segments = flow.bytes.div_ceil(tcp.mss.0);
    let (connections, window) = match spread {
        // It is over before the others are opened.
        Some(spread) if segments <= spread.segments_before_join() => (1, spread.receive_window().0),
        Some(spread) => (u64::from(spread.subflows()), spread.receive_window().0),
        None => (1, tcp.receive_window.0),
    };
    let copies = u64::from(config.scheme.replicate.policy().replication_plan(flow.bytes).copies);
    let data = flow.bytes.saturating_add(segments.saturating_mul(headers));
    Carried {
        connections: connections * copies,
        window: window.min(flow.bytes).saturating_mul(copies),
        mss: tcp.mss.0,
        on_wire: data.saturating_add(connections * CONTROL * headers).saturating_mul(copies),
    }
}

/// What the open flows hold when they hold most, if each takes as long as on a link that all share alike.
fn most_open(config: &Config, graph: &Graph, flows: &[Flow], seed: u64) -> u64 {
    let transport = &config.scheme.transport;
    let carrier =
        |one: &TransportSpec| Carrier { tcp: one.segment_spec(), spread: one.multipath() };
    let carriers: Vec<Carrier> = transport.carriers().into_iter().map(carrier).collect();
    let of = |flow: &Flow| &carriers[transport.carrier_of(flow, seed)];
    let rates = graph.host_rates();
    let carried: Vec<Carried> = flows.iter().map(|flow| carried(config, of(flow), flow)).collect();
    let capacity: f64 = rates.iter().map(|rate| rate.0 as f64 / 8.0).sum();
    let offered: f64 = carried.iter().map(|carried| carried.on_wire as f64).sum();
    let load = offered / (capacity * config.horizon.arrivals.as_secs_f64()).max(1.0);
    let free = 1.0 - load.min(SATURATED);
    let (first, last) = match flows {
        [first, .., last] => (first.start.0, last.start.0),
        [only] => (only.start.0, only.start.0),
        [] => return 0,
    };
    let [.., connection, segment] = attributed(config);
    let step = (last - first).div_ceil(LOOKS).max(1);
    let mut held = vec![0u64; LOOKS as usize + 2];
    for (flow, carried) in flows.iter().zip(&carried) {
        let rate = rates[flow.src.index()].min(rates[flow.dst.index()]);
        let alone = rate.transmission_time(carried.on_wire.min(u64::from(u32::MAX)));
        let takes = if load > 1.0 { Time::NEVER.0 as f64 } else { alone.0 as f64 / free };
        let segments = (carried.window / carried.mss).saturating_add(1);
        let bytes = (carried.connections * (PER_CONNECTION + connection))
            .saturating_add(segments.saturating_mul(PER_SEGMENT + segment));
        let from = (flow.start.0 - first).div_ceil(step);
        let until = ((flow.start.0 - first) as f64 + takes) / step as f64;
        for look in &mut held[from as usize..=(until as usize).min(LOOKS as usize + 1)] {
            *look = look.saturating_add(bytes);
        }
    }
    held.into_iter().max().unwrap_or(0)
}
