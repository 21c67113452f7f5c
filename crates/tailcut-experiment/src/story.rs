//! Explains flows of a run: simulates it again with a recorder, until these flows are over.

use std::ops::ControlFlow;

use serde::Serialize;
use tailcut_net::SimError;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::measure::story::{Story, StoryRecorder};
use tailcut_net::scenario::Progress;
use tailcut_net::simulate_watched;
use tailcut_net::topology::find::{link_name, node_name};
use tailcut_net::topology::{Graph, NodeId, PortId};
use tailcut_net::watch::{RunView, RunWatcher};

use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{RunError, to_scenario};

/// The number of events between two checks whether the flows are over.
const EVERY: u64 = 1 << 12;

/// The stories of flows, and the links that they refer to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The directed links of the network, indexed by their numbers.
    pub links: Vec<LinkName>,
    /// The flows, in the order of their numbers.
    pub flows: Vec<ExplainedFlow>,
}

/// A directed link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkName {
    /// The link's name, such as `h0>s0`.
    pub name: String,
    /// The name of the link's tier.
    pub tier: String,
    /// The rate in bits per second when the run began.
    pub rate_bps: u64,
    /// The propagation delay in picoseconds when the run began.
    pub propagation_ps: u64,
}

/// A flow with its story. Times are in picoseconds. The start and `until_ps` count from the
/// beginning of the run, all others from the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedFlow {
    /// The name of the sending host.
    pub from: String,
    /// The name of the receiving host.
    pub to: String,
    /// Application bytes.
    pub bytes: u64,
    /// The segment size: payload bytes of a full packet.
    pub segment: u64,
    /// The time of the start.
    pub start_ps: u64,
    /// The time until the first connection was established.
    pub connect_ps: Option<u64>,
    /// The time until the last byte was received.
    pub fct_ps: Option<u64>,
    /// The time until the sender had the acknowledgement of the last byte.
    pub fct_ack_ps: Option<u64>,
    /// The ideal time, with which `fct_ps` compares.
    pub ideal_fct_ps: u64,
    /// The connection that finished first, counted from 0.
    pub winner: Option<u8>,
    /// The time at which the simulation stopped, from the beginning of the run.
    pub until_ps: u64,
    /// The events of the flow.
    #[serde(flatten)]
    pub story: Story,
}

/// Stops the simulation when every flow's last byte is received and acknowledged.
struct Until<'a> {
    places: Vec<usize>,
    records: Vec<FlowRecord>,
    left_at: u64,
    on_progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    interrupted: bool,
    events: u64,
}

impl RunWatcher for Until<'_> {
    fn interval_events(&self) -> u64 {
        EVERY
    }

    fn on_interval(&mut self, progress: &Progress, run: &mut dyn RunView) -> ControlFlow<()> {
        self.events += EVERY;
        if self.events.is_multiple_of(1 << 20) && (self.on_progress)(progress).is_break() {
            self.interrupted = true;
            return ControlFlow::Break(());
        }
        self.records = self.places.iter().map(|&place| run.flow(place)).collect();
        self.left_at = progress.now.0;
        match self.records.iter().all(|record| record.fct_ack.is_some()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Explains the given flows of a run of a plan (an element of `runs`, as JSON), each with at most
/// `most_packets` packets.
///
/// # Errors
/// See [`RunError`].
pub fn explain(
    run_json: &str,
    flows: &[u64],
    most_packets: usize,
    read_table: &TableReader,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Explanation, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let scenario = to_scenario(&plan, read_table)?;
    let place = |id: &u64| {
        let found = scenario.flows.iter().position(|flow| flow.id == *id);
        found.ok_or(RunError::UnknownFlow(*id))
    };
    let places = flows.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let mut stories = StoryRecorder::new(&scenario.graph, flows, most_packets);
    let mut until =
        Until { places, records: vec![], left_at: 0, on_progress, interrupted: false, events: 0 };
    match simulate_watched(&scenario, &mut stories, &mut until) {
        Ok((outcome, _)) => {
            until.records =
                outcome.flows.into_iter().filter(|r| flows.contains(&r.flow.id)).collect();
            until.left_at = outcome.counters.end.0;
        }
        Err(SimError::Interrupted) if !until.interrupted => {}
        Err(error) => return Err(error.into()),
    }
    let transport = &scenario.scheme.transport;
    let carriers = transport.carriers();
    let mut explained = vec![];
    for story in stories.into_stories() {
        let record = until.records.iter().find(|record| record.flow.id == story.flow);
        let record = record.ok_or(RunError::UnknownFlow(story.flow))?;
        let carrier = carriers[transport.carrier_of(&record.flow, scenario.seed)];
        let segment = carrier.segment_spec().mss.0;
        explained.push(explained_flow(&scenario.graph, segment, record, until.left_at, story));
    }
    Ok(Explanation { links: links(&scenario.graph), flows: explained })
}

fn explained_flow(
    graph: &Graph,
    segment: u64,
    record: &FlowRecord,
    until_ps: u64,
    story: Story,
) -> ExplainedFlow {
    let flow = &record.flow;
    ExplainedFlow {
        from: node_name(graph, NodeId(flow.src.0)),
        to: node_name(graph, NodeId(flow.dst.0)),
        bytes: flow.bytes,
        segment,
        start_ps: flow.start.0,
        connect_ps: record.connect.map(|time| time.0),
        fct_ps: record.fct.map(|time| time.0),
        fct_ack_ps: record.fct_ack.map(|time| time.0),
        ideal_fct_ps: record.ideal_fct.0,
        winner: record.winner,
        until_ps,
        story,
    }
}

fn links(graph: &Graph) -> Vec<LinkName> {
    let both = graph.links.iter().enumerate().flat_map(|(number, link)| {
        PortId::both_directions(number).map(|port| LinkName {
            name: link_name(graph, port),
            tier: graph.tiers.get(usize::from(link.tier)).cloned().unwrap_or_default(),
            rate_bps: link.rate.0,
            propagation_ps: link.propagation.0,
        })
    });
    both.collect()
}
