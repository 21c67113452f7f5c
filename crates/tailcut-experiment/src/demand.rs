//! The network and flows of a run, as the simulator would carry them: for the other backends.

use serde::Serialize;
use tailcut_net::predict_flows;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{Graph, PortId};
use tailcut_net::traffic::demand::{Dependent, NONE};

use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{RunError, to_scenario};

/// The network and the flows of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDemand {
    /// The network. Directed link `2 n` is the n-th of `links` from `a` to `b`, `2 n + 1` from `b`
    /// to `a`.
    pub graph: Graph,
    /// The flows: first those that start by themselves, in order of start, then those that wait for
    /// others.
    pub flows: Vec<FlowDemand>,
    /// The dependencies among flows; empty for open-loop traffic.
    pub waits: Vec<Wait>,
    /// The pools of flows that start in order, with a limited number at a time.
    pub pools: Vec<PoolDemand>,
    /// The kind of each job.
    pub jobs: Vec<&'static str>,
}

/// A flow of a run. Times are in picoseconds of simulated time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDemand {
    /// The flow's identifier.
    pub id: u64,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Application bytes.
    pub bytes: u64,
    /// The start time; for a flow that waits, the earliest possible start.
    pub start_ps: u64,
    /// The source port of the first connection.
    pub source_port: u16,
    /// The destination port of the first connection.
    pub destination_port: u16,
    /// The number of directed links from source to destination on a shortest path.
    pub hops: u8,
    /// The directed links that data of the first connection cross; empty if its packets take
    /// several paths.
    pub forward: Vec<PortId>,
    /// The directed links that its acknowledgements cross; empty if they take several paths.
    pub backward: Vec<PortId>,
    /// The ideal time until the last byte is received.
    pub ideal_ps: u64,
    /// The ideal time until the last byte is acknowledged.
    pub ideal_ack_ps: u64,
    /// The flow's job, as an index into `jobs`.
    pub job: Option<u32>,
    /// The flow's pool, as an index into `pools`.
    pub pool: Option<u32>,
    /// The delay from the end of the last flow that it waits for until it starts.
    pub delay_ps: u64,
}

/// A dependency: a flow or a pool starts after another flow is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The flow that is waited for, as an index into `flows`.
    pub after: u32,
    /// The end of the flow: `sent`, its last byte at the sender's interface, `received`, that byte
    /// at the receiver, or `acknowledged`, its acknowledgement at the sender.
    pub on: &'static str,
    /// The flow that waits, as an index into `flows`.
    pub flow: Option<u32>,
    /// The pool that waits, as an index into `pools`.
    pub pool: Option<u32>,
}

/// A pool of flows that start in order, at most `at_once` of them at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PoolDemand {
    /// The time at which its first flows start.
    pub opens_ps: u64,
    /// The number of flows that run at the same time.
    pub at_once: u32,
    /// The end of a flow, as in [`Wait::on`].
    pub on: &'static str,
}

/// Returns the demand of one run of a plan (an element of `runs`, as JSON), by the simulator's own
/// code.
///
/// # Errors
/// See [`RunError`].
pub fn run_demand(run_json: &str, read_table: &TableReader) -> Result<RunDemand, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let scenario = to_scenario(&plan, read_table)?;
    if !scenario.jobs.computations.is_empty() {
        let message = "computations of a graph: other backends carry messages only".into();
        return Err(RunError::Section("traffic", message));
    }
    Ok(of_scenario(&scenario)?)
}

fn of_scenario(scenario: &Scenario) -> Result<RunDemand, tailcut_net::SimError> {
    let jobs = &scenario.jobs;
    let named = |index: u32| (index != NONE).then_some(index);
    let flows = predict_flows(scenario)?.into_iter().enumerate().map(|(index, predicted)| {
        let rule = jobs.rules.get(index);
        let flow = predicted.record.flow;
        FlowDemand {
            id: flow.id,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes,
            start_ps: flow.start.0,
            source_port: predicted.key.sport(),
            destination_port: predicted.key.dport(),
            hops: predicted.record.hops,
            forward: predicted.forward,
            backward: predicted.backward,
            ideal_ps: predicted.record.ideal_fct.0,
            ideal_ack_ps: predicted.record.ideal_fct_ack.0,
            job: rule.and_then(|rule| named(rule.job)),
            pool: rule.and_then(|rule| named(rule.pool)),
            delay_ps: rule.map_or(0, |rule| rule.delay.0),
        }
    });
    let waits = jobs.edges.iter().map(|edge| Wait {
        after: edge.from.0,
        on: edge.on.word(),
        flow: if let Dependent::Flow(flow) = edge.to { Some(flow.0) } else { None },
        pool: if let Dependent::Pool(pool) = edge.to { Some(pool) } else { None },
    });
    let pools = jobs.pools.iter().map(|pool| PoolDemand {
        opens_ps: pool.opens.0,
        at_once: pool.at_once,
        on: pool.on.word(),
    });
    Ok(RunDemand {
        flows: flows.collect(),
        waits: waits.collect(),
        pools: pools.collect(),
        jobs: jobs.kinds.clone(),
        graph: scenario.graph.clone(),
    })
}
