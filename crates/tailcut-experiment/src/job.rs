//! Explains a job of a run: simulates the run again and returns the critical path of the job, and
//! its traffic on every link.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use tailcut_net::measure::job_links::{JobLinks, LinkTraffic};
use tailcut_net::measure::records::{CriticalPath, PathPart, PathWork};
use tailcut_net::scenario::{Progress, Scenario};
use tailcut_net::simulate_watched;
use tailcut_net::topology::NodeId;
use tailcut_net::topology::find::node_name;

use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{RunError, to_scenario};

/// The critical path of a job. Times are in picoseconds from the beginning of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedJob {
    /// The number of the job.
    pub job: u64,
    /// The kind of job.
    pub kind: &'static str,
    /// Start of the job.
    pub start_ps: u64,
    /// Time from the start to the end of the job; `None` if it has not ended.
    pub completion_ps: Option<u64>,
    /// Why a job given as a graph or a collective has not ended.
    pub unfinished: Option<String>,
    /// The parts, without gaps from start to end; empty if the job has not ended.
    pub parts: Vec<ExplainedPart>,
    /// The directed links that carried packets of the job, those that were busy longest first.
    pub links: Vec<ExplainedLink>,
}

/// The packets of a job on a directed link, acknowledgements and packets sent again included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedLink {
    /// The name of the node that sends.
    pub from: String,
    /// The name of the node that receives.
    pub to: String,
    /// The number of packets.
    pub packets: u64,
    /// Their bytes, framing included.
    pub wire_bytes: u64,
    /// The time that the link transmitted them.
    pub busy_ps: u64,
}

/// A part of the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedPart {
    /// Begin of the part.
    pub from_ps: u64,
    /// End of the part.
    pub to_ps: u64,
    /// The id of the work in its graph file, if that is not the number of a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// The work that took the time.
    #[serde(flatten)]
    pub work: ExplainedWork,
}

/// The work of a part of the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum ExplainedWork {
    /// A message.
    Message {
        /// The flow's number.
        id: u64,
        /// The name of the sending host.
        src: String,
        /// The name of the receiving host.
        dst: String,
        /// Application bytes.
        bytes: u64,
        /// The event for which the next part waited: `sent`, `received`, `acknowledged`.
        until: &'static str,
        /// The ideal time until its last byte is received.
        ideal_ps: u64,
    },
    /// A computation.
    Computation {
        /// The name of the host that computes.
        host: String,
        /// The processor of the host.
        processor: u32,
    },
    /// The job had begun elsewhere, and this rank waited for other jobs.
    OtherJobs,
}

/// Explains a job of a run of a plan (an element of `runs`, as JSON).
///
/// # Errors
/// See [`RunError`].
pub fn explain_job(
    run_json: &str,
    job: u32,
    read_table: &TableReader,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<ExplainedJob, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let mut scenario = to_scenario(&plan, read_table)?;
    scenario.jobs.explained = Some(job);
    let observer = JobLinks::new(&scenario.graph, flows_of(&scenario, job));
    let watch = &mut |progress: &Progress| on_progress(progress);
    let (outcome, observer) = simulate_watched(&scenario, observer, watch)?;
    let record = outcome.jobs.iter().find(|record| record.id == u64::from(job));
    let record = record.ok_or(RunError::UnknownJob(job))?;
    let unfinished = outcome.unfinished.into_iter().find(|one| one.id == record.id);
    Ok(ExplainedJob {
        job: record.id,
        kind: record.kind,
        start_ps: record.start.0,
        completion_ps: record.completion.map(|took| took.0),
        unfinished: unfinished.map(|one| one.reason),
        parts: outcome.critical_path.map_or_else(Vec::new, |path| parts(&scenario, &path)),
        links: links(&scenario, observer.links()),
    })
}

/// Returns the identifiers of the flows of a job.
fn flows_of(scenario: &Scenario, job: u32) -> Vec<u64> {
    let flows = scenario.flows.iter().zip(&scenario.jobs.rules);
    flows.filter(|(_, rule)| rule.job == job).map(|(flow, _)| flow.id).collect()
}

fn links(scenario: &Scenario, traffic: &[LinkTraffic]) -> Vec<ExplainedLink> {
    let name = |node: NodeId| node_name(&scenario.graph, node);
    let ends = scenario.graph.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let used = ends.zip(traffic).filter(|(_, one)| one.packets > 0);
    let mut links: Vec<ExplainedLink> = used
        .map(|((from, to), one)| ExplainedLink {
            from: name(from),
            to: name(to),
            packets: one.packets,
            wire_bytes: one.wire_bytes,
            busy_ps: one.busy.0,
        })
        .collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.busy_ps));
    links
}

fn parts(scenario: &Scenario, path: &CriticalPath) -> Vec<ExplainedPart> {
    let name = |host: u32| node_name(&scenario.graph, NodeId(host));
    let ids: BTreeMap<_, _> = scenario.jobs.row_ids.iter().map(|(row, id)| (*row, id)).collect();
    let part = |part: &PathPart| ExplainedPart {
        row: part.row.and_then(|row| ids.get(&row).map(ToString::to_string)),
        from_ps: part.from.0,
        to_ps: part.to.0,
        work: match part.work {
            PathWork::Message { flow, until, ideal } => ExplainedWork::Message {
                id: flow.id,
                src: name(flow.src.0),
                dst: name(flow.dst.0),
                bytes: flow.bytes,
                until: until.word(),
                ideal_ps: ideal.0,
            },
            PathWork::Computation { host, processor } => {
                ExplainedWork::Computation { host: name(host.0), processor }
            }
            PathWork::OtherJobs => ExplainedWork::OtherJobs,
        },
    };
    path.parts.iter().map(part).collect()
}
