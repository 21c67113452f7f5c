//! The frame rate that a run asks of the machine in its busiest 50 ms.

use std::collections::BTreeMap;

use tailcut_engine::{Rate, Time};
use tailcut_net::network::full_packet;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::NodeId;
use tailcut_net::traffic::Flow;

/// The interval over which frames are counted: the verdict's window.
const STEP: Time = Time::from_ms(50);
/// Frames of a connection without data: two to open it, two to close it, and their
/// acknowledgements.
const CONTROL_FRAMES: f64 = 6.0;

/// Frames and bytes that a host has to send or to receive.
#[derive(Debug, Clone, Copy, Default)]
struct FrameLoad {
    frames: f64,
    bytes: f64,
}

/// Returns an upper bound of the frame rate (data and ACKs, in frames/s) over the busiest 50 ms.
/// Each host sends at link rate until it is done, and none receives above its link rate. Dependent
/// flows count from time 0.
pub(crate) fn peak_frame_rate(scenario: &Scenario) -> f64 {
    let sent = frames_by_step(scenario, |flow| flow.src.node());
    let received = frames_by_step(scenario, |flow| flow.dst.node());
    sent.into_iter().zip(received).map(|(sent, received)| sent.min(received)).fold(0.0, f64::max)
        / STEP.as_secs_f64()
}

/// Returns the frames of each interval, limited by the links of the senders or of the receivers, as
/// `end` selects.
fn frames_by_step(scenario: &Scenario, end: impl Fn(&Flow) -> NodeId) -> Vec<f64> {
    let rates = host_rates(scenario);
    let steps = scenario.end().0.div_ceil(STEP.0).max(1) as usize;
    let mut begin: BTreeMap<(NodeId, usize), FrameLoad> = BTreeMap::new();
    let mut ends: BTreeMap<NodeId, FrameLoad> = BTreeMap::new();
    for flow in &scenario.flows {
        let step = if scenario.jobs.is_empty() { flow.start.0 / STEP.0 } else { 0 };
        let work = flow_load(scenario, flow);
        let there = begin.entry((end(flow), (step as usize).min(steps - 1))).or_default();
        there.frames += work.frames;
        there.bytes += work.bytes;
        ends.entry(end(flow)).or_default();
    }
    let mut frames = vec![0.0; steps];
    for (node, mut waiting) in ends {
        let room =
            rates.get(&node).map_or(f64::INFINITY, |rate| rate.0 as f64 / 8.0 * STEP.as_secs_f64());
        for (step, frames) in frames.iter_mut().enumerate() {
            if let Some(more) = begin.get(&(node, step)) {
                waiting.frames += more.frames;
                waiting.bytes += more.bytes;
            }
            let share = if waiting.bytes > room { room / waiting.bytes } else { 1.0 };
            *frames += share * waiting.frames;
            waiting.frames *= 1.0 - share;
            waiting.bytes *= 1.0 - share;
        }
    }
    frames
}

/// Returns the total rate of each host's links.
fn host_rates(scenario: &Scenario) -> BTreeMap<NodeId, Rate> {
    let graph = &scenario.graph;
    let mut rates = BTreeMap::new();
    for link in &graph.links {
        for node in [link.a, link.b].into_iter().filter(|node| graph.host(*node).is_some()) {
            rates.entry(node).or_insert(Rate(0)).0 += link.rate.0;
        }
    }
    rates
}

/// Returns the frames and bytes of a flow, with its copies.
fn flow_load(scenario: &Scenario, flow: &Flow) -> FrameLoad {
    let transport = &scenario.scheme.transport;
    let tcp = transport.carriers()[transport.carrier_of(flow, scenario.seed)].segment_spec();
    let packets = flow.bytes.div_ceil(tcp.mss.0) as f64;
    let around = full_packet(&tcp, &scenario.host) - tcp.mss.0;
    let carriage = scenario.scheme.replicate.replication_plan(flow.bytes);
    let connections = 1.0 + carriage.expected_extra_copies;
    let copies = if carriage.all_send { connections } else { 1.0 };
    let acknowledged = 1.0 + 1.0 / f64::from(tcp.ack_every.max(1));
    FrameLoad {
        frames: copies * packets * acknowledged + connections * CONTROL_FRAMES,
        bytes: copies * (flow.bytes as f64 + packets * around as f64),
    }
}
