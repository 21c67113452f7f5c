//! What a run of a plan has to carry, as the simulator would carry it: for backends that carry it by other means.

use serde::Serialize;
use tailcut_net::predict_flows;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{Graph, PortId};
use tailcut_net::traffic::demand::{Dependent, NONE, Signal};

use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{RunError, to_scenario};

/// The network and the flows of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDemand {
    /// The network. Directed link `2 n` is the n-th of `links` from `a` to `b`, `2 n + 1` the other way.
    pub graph: Graph,
    /// The flows: those that wait for nothing in order of start, then the others.
    pub flows: Vec<FlowDemand>,
    /// What waits for what; empty for open-loop traffic.
    pub waits: Vec<Wait>,
    /// Flows of which only so many run at once.
    pub pools: Vec<PoolDemand>,
    /// What each job is called.
    pub jobs: Vec<&'static str>,
}

/// A flow of a run. Times are in picoseconds of simulated time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDemand {
    /// Its number.
    pub id: u64,
    /// The host that sends.
    pub src: u32,
    /// The host that receives.
    pub dst: u32,
    /// Application bytes.
    pub bytes: u64,
    /// When it starts; of one that waits, the earliest possible.
    pub start_ps: u64,
    /// Source port of its first connection.
    pub source_port: u16,
    /// Destination port of its first connection.
    pub destination_port: u16,
    /// Directed links from source to destination on a shortest path.
    pub hops: u8,
    /// The directed links that the first connection's data crosses; none where its packets take several paths.
    pub forward: Vec<PortId>,
    /// Those that its acknowledgements cross.
    pub backward: Vec<PortId>,
    /// Its best possible completion time.
    pub ideal_ps: u64,
    /// The same until its last byte is acknowledged.
    pub ideal_ack_ps: u64,
    /// The job that it is part of, by its place in `jobs`.
    pub job: Option<u32>,
    /// The pool that it starts from, by its place in `pools`.
    pub pool: Option<u32>,
    /// From the last thing it waits for to its start.
    pub delay_ps: u64,
}

/// One wait: something starts after a flow is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The flow that is waited for, by its place.
    pub after: u32,
    /// When it is over: at its receiver's last byte, or when its sender knows.
    pub on: &'static str,
    /// The flow that waits, by its place.
    pub flow: Option<u32>,
    /// The pool that waits, by its place.
    pub pool: Option<u32>,
}

/// Flows of which only so many run at once, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PoolDemand {
    /// When its first flows start.
    pub opens_ps: u64,
    /// How many run at once.
    pub at_once: u32,
    /// When one is over.
    pub on: &'static str,
}

fn signal(on: Signal) -> &'static str {
    match on {
        Signal::Received => "received",
        Signal::Acknowledged => "acknowledged",
    }
}

/// The demand of one run of a plan (an element of `runs`, as JSON), by the code that the simulator has it from.
///
/// # Errors
/// See [`RunError`].
pub fn run_demand(run_json: &str, read_table: &TableReader) -> Result<RunDemand, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    Ok(of_scenario(&to_scenario(&plan, read_table)?)?)
}

fn of_scenario(scenario: &Scenario) -> Result<RunDemand, tailcut_net::SimError> {
    let jobs = &scenario.jobs;
    let named = |index: u32| (index != NONE).then_some(index);
    let flows = predict_flows(scenario)?.into_iter().enumerate().map(|(index, foretold)| {
        let rule = jobs.rules.get(index);
        let flow = foretold.record.flow;
        FlowDemand {
            id: flow.id,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes,
            start_ps: flow.start.0,
            source_port: foretold.key.sport(),
            destination_port: foretold.key.dport(),
            hops: foretold.record.hops,
            forward: foretold.forward,
            backward: foretold.backward,
            ideal_ps: foretold.record.ideal_fct.0,
            ideal_ack_ps: foretold.record.ideal_fct_ack.0,
            job: rule.and_then(|rule| named(rule.job)),
            pool: rule.and_then(|rule| named(rule.pool)),
            delay_ps: rule.map_or(0, |rule| rule.delay.0),
        }
    });
    let waits = jobs.edges.iter().map(|edge| Wait {
        after: edge.from.0,
        on: signal(edge.on),
        flow: if let Dependent::Flow(flow) = edge.to { Some(flow.0) } else { None },
        pool: if let Dependent::Pool(pool) = edge.to { Some(pool) } else { None },
    });
    let pools = jobs.pools.iter().map(|pool| PoolDemand {
        opens_ps: pool.opens.0,
        at_once: pool.at_once,
        on: signal(pool.on),
    });
    Ok(RunDemand {
        flows: flows.collect(),
        waits: waits.collect(),
        pools: pools.collect(),
        jobs: jobs.kinds.clone(),
        graph: scenario.graph.clone(),
    })
}
