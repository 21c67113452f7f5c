//! Carries out one run: from its entry in the plan to tables.

use std::ops::ControlFlow;

use tailcut_net::capture::{Capture, CaptureError, CaptureSpec, CaptureSummary};
use tailcut_net::measure::Unobserved;
use tailcut_net::measure::attribution::Attribution;
use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::records::{Outcome, RunCounters, Series, TierRecord, UnfinishedJob};
use tailcut_net::measure::segments::SegmentObserver;
use tailcut_net::network::full_packet;
use tailcut_net::scenario::{Progress, Scenario};
use tailcut_net::topology::Graph;
use tailcut_net::traffic::Flow;
use tailcut_net::traffic::demand::Demand;
use tailcut_net::transport::TransportSpec;
use tailcut_net::watch::{RunView, RunWatcher};
use tailcut_net::{SimError, ThreadTimes, simulate_on, simulate_watched, threads_that_pay};

use crate::capture::CaptureRequest;
use crate::column::{
    Column, flow_columns, job_columns, segment_columns, throughput_columns, tier_columns,
};
use crate::config::SectionError;
use crate::fabric_tables::fabric_tables;
use crate::load::{PlannedFiles, TableReader, no_table_reader};
use crate::plan::{RunPlan, run_id};
use crate::sections::Config;

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunResult {
    /// The flow table.
    pub flows: Vec<Column>,
    /// The tables that only some runs have, by name: jobs, segments, throughput, fabric, ports,
    /// paths.
    pub extra_tables: Vec<(&'static str, Vec<Column>)>,
    /// The link table, one row per tier and direction.
    pub tiers: Vec<Column>,
    /// The totals of the run.
    pub counters: RunCounters,
    /// The time series that were requested.
    pub series: Vec<Series>,
    /// Further numbers about the whole run, by name.
    pub facts: Vec<(&'static str, f64)>,
    /// The jobs given as graphs that had not ended with the run.
    pub unfinished_jobs: Vec<UnfinishedJob>,
    /// A summary of the capture, if one was requested.
    pub captured: Option<CaptureSummary>,
    /// The threads that simulated the run; 0 where another backend carried it out.
    pub threads: usize,
    /// Why there was one thread, where more were asked for.
    pub one_thread: Option<&'static str>,
    /// The times of each thread, where there were several.
    pub thread_times: Vec<ThreadTimes>,
}

/// The reason why a run did not start or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The caller's progress callback returned `Break`.
    #[error("the run was interrupted")]
    Interrupted,
    /// The text is not a run of a plan.
    #[error("this is not a run of a plan: {0}")]
    NotARun(#[from] serde_json::Error),
    /// The run's identifier does not fit its content.
    #[error(
        "the run's id is {found}, but its content gives {expected}: another version planned it, or it was changed; plan again"
    )]
    OtherPlan {
        /// The identifier in the text.
        found: String,
        /// The identifier that fits the content.
        expected: String,
    },
    /// A section that cannot be built, with the reason: in practice a file that is missing or has
    /// changed.
    #[error("{0}: {1}")]
    Section(&'static str, String),
    /// A measurement of a flow that the run does not have, or a second one of the same flow.
    #[error("flow {0} was measured twice, or the run has no such flow")]
    BadMeasurement(u64),
    /// A story was requested of a flow that the run does not have, or that did not start in it.
    #[error("the run has no flow {0}, or ended before the flow started")]
    UnknownFlow(u64),
    /// An explanation was requested of a job that the run does not have, or that did not begin.
    #[error("the run has no job {0}, or ended before the job began")]
    UnknownJob(u32),
    /// The simulator reported an error.
    #[error(transparent)]
    Simulation(SimError),
    /// The capture failed. The run then has no result, so that none is stored without its capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl From<SimError> for RunError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Interrupted => RunError::Interrupted,
            other => RunError::Simulation(other),
        }
    }
}

impl From<SectionError> for RunError {
    fn from((section, error): SectionError) -> Self {
        RunError::Section(section, error.to_string())
    }
}

/// Carries out one run of a plan (an element of `runs`, as JSON), and captures packets if `capture`
/// is given. `read_table` reads the tables that the run names.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    run_json: &str,
    capture: Option<&CaptureRequest>,
    read_table: &TableReader,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<RunResult, RunError> {
    run_on(Threads::Given(1), run_json, capture, read_table, on_progress)
}

/// How many threads a run may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// At most so many.
    Given(usize),
    /// The number that makes the run quickest, at most so many.
    ThatPay(usize),
}

/// Carries out one run as [`run`] does, with the same result, on several threads.
///
/// # Errors
/// See [`RunError`].
pub fn run_on(
    threads: Threads,
    run_json: &str,
    capture: Option<&CaptureRequest>,
    read_table: &TableReader,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<RunResult, RunError> {
    carry_out(run_json, capture, read_table, Watch::Progress(threads, on_progress))
}

/// The watcher of a run in progress.
enum Watch<'w> {
    /// Sees the running simulation, which is on one thread.
    Simulation(&'w mut dyn RunWatcher),
    /// Sees the progress alone: the simulation may be on several threads.
    Progress(Threads, &'w mut dyn FnMut(&Progress) -> ControlFlow<()>),
}

impl RunWatcher for Watch<'_> {
    fn interval_events(&self) -> u64 {
        match self {
            Watch::Simulation(watch) => watch.interval_events(),
            Watch::Progress(_, on_progress) => on_progress.interval_events(),
        }
    }

    fn on_interval(&mut self, progress: &Progress, run: &mut dyn RunView) -> ControlFlow<()> {
        match self {
            Watch::Simulation(watch) => watch.on_interval(progress, run),
            Watch::Progress(_, on_progress) => on_progress(progress),
        }
    }
}

/// The reason why a run with observers is simulated by one thread.
const OBSERVED: &str = "every packet is observed (capture, attribution, segments or paths)";

/// Carries out one run as [`run`] does, with a watcher that sees the running simulation.
///
/// # Errors
/// See [`RunError`].
pub fn run_watched(
    run_json: &str,
    capture: Option<&CaptureRequest>,
    read_table: &TableReader,
    watch: &mut dyn RunWatcher,
) -> Result<RunResult, RunError> {
    carry_out(run_json, capture, read_table, Watch::Simulation(watch))
}

fn carry_out(
    run_json: &str,
    capture: Option<&CaptureRequest>,
    read_table: &TableReader,
    mut watch: Watch<'_>,
) -> Result<RunResult, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let scenario = to_scenario(&plan, read_table)?;
    let tap = capture.map(|request| request.open(&scenario.graph)).transpose()?;
    let labels = &plan.config.labels;
    let segments = labels.segments.then(SegmentObserver::default);
    let attribution = labels.attribution.then(|| Attribution::new(&scenario.graph));
    let paths = labels.instants.map(|_| FlowPaths::default());
    // Runs without observers, and with attribution only, have code of their own; other combinations
    // share theirs.
    let more = tap.is_some() || segments.is_some() || paths.is_some();
    let (mut threads, mut one_thread, mut thread_times) = (1, None, vec![]);
    if let Watch::Progress(Threads::Given(2..), _) = watch {
        one_thread = (more || attribution.is_some()).then_some(OBSERVED);
    }
    let (outcome, (attribution, ((tap, segments), paths))) = match (attribution, more) {
        (None, false) => {
            let outcome = match &mut watch {
                Watch::Simulation(watch) => simulate_watched(&scenario, Unobserved, *watch)?.0,
                Watch::Progress(asked, on_progress) => {
                    let most = match *asked {
                        Threads::Given(threads) => threads,
                        Threads::ThatPay(threads) => {
                            threads_that_pay(&scenario, plan.facts.expected_packet_hops, threads)
                        }
                    };
                    let run = simulate_on(most, &scenario, on_progress)?;
                    // Nobody asked for more in particular.
                    one_thread = run.reason.filter(|_| matches!(asked, Threads::Given(_)));
                    (threads, thread_times) = (run.threads, run.times);
                    run.outcome
                }
            };
            (outcome, (None, ((None, None), None)))
        }
        (Some(alone), false) => {
            let (outcome, alone) = simulate_watched(&scenario, alone, &mut watch)?;
            (outcome, (Some(alone), ((None, None), None)))
        }
        (attribution, true) => {
            simulate_watched(&scenario, (attribution, ((tap, segments), paths)), &mut watch)?
        }
    };
    let captured = tap.map(|tap| tap.finish(outcome.counters.end)).transpose()?;
    let observed = Observed { segments: segments.as_ref(), attribution: attribution.as_ref() };
    let mut tables = tables(&outcome, &plan.config, &scenario, observed);
    tables.extra_tables.extend(fabric_tables(
        &scenario.graph,
        outcome.port_samples.as_ref(),
        &paths.unwrap_or_default(),
        &outcome.flows,
        labels.clock,
    ));
    let (counters, series) = (outcome.counters, outcome.series);
    Ok(RunResult { counters, captured, series, threads, one_thread, thread_times, ..tables })
}

/// The observers of a run, after it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Observed<'a> {
    segments: Option<&'a SegmentObserver>,
    attribution: Option<&'a Attribution>,
}

/// Makes the tables from the outcome of a run, whichever backend carried it out.
pub(crate) fn tables(
    outcome: &Outcome,
    config: &Config,
    scenario: &Scenario,
    observed: Observed<'_>,
) -> RunResult {
    let Observed { segments, attribution } = observed;
    let labels = &config.labels;
    let further = [
        ("jobs", job_columns(&outcome.jobs)),
        ("segments", segments.map_or_else(Vec::new, |s| segment_columns(s, &outcome.flows))),
        (
            "throughput",
            match labels.throughput {
                true => {
                    let arrivals = scenario.horizon.arrivals;
                    let shares = payload_shares(scenario);
                    let transport = &scenario.scheme.transport;
                    let share = |flow: &Flow| shares[transport.carrier_of(flow, scenario.seed)];
                    throughput_columns(&outcome.flows, &scenario.graph, arrivals, &share, labels)
                }
                false => vec![],
            },
        ),
    ];
    RunResult {
        flows: flow_columns(&outcome.flows, labels, segments, attribution),
        extra_tables: further.into_iter().filter(|(_, columns)| !columns.is_empty()).collect(),
        tiers: tier_columns(&outcome.tiers),
        facts: facts(config, &scenario.graph, outcome),
        unfinished_jobs: outcome.unfinished.clone(),
        ..RunResult::default()
    }
}

/// Returns the payload's share of a full packet on the wire, for each transport that carries flows.
fn payload_shares(scenario: &Scenario) -> Vec<f64> {
    let share = |carrier: &TransportSpec| {
        let tcp = carrier.segment_spec();
        tcp.mss.0 as f64 / full_packet(&tcp, &scenario.host) as f64
    };
    scenario.scheme.transport.carriers().into_iter().map(share).collect()
}

/// Builds the network and generates the flows of a run.
///
/// # Errors
/// If the run was planned by another version, or a file that it names is missing or has changed.
pub fn to_scenario(plan: &RunPlan, read_table: &TableReader) -> Result<Scenario, RunError> {
    let Config { host, switch, faults, scheme, horizon, series, labels, .. } = plan.config.clone();
    let expected = run_id(&plan.config, plan.seed, &plan.files);
    if expected != plan.id {
        return Err(RunError::OtherPlan { found: plan.id.clone(), expected });
    }
    let files = PlannedFiles { plan, read_table };
    let graph = plan.config.graph(&files)?;
    let Demand { flows, jobs, .. } = plan.config.demand(&graph, plan.seed, &files)?;
    let (seed, instants) = (plan.seed, labels.instants.unwrap_or(0));
    Ok(Scenario {
        graph,
        host,
        switch,
        faults,
        scheme,
        flows,
        jobs,
        horizon,
        seed,
        series,
        max_port_samples: instants,
    })
}

/// Checks that a capture can be taken of a run of a plan (an element of `runs`, as JSON), without
/// running it.
///
/// # Errors
/// If a capture point is not in the run's network, or the network cannot be built.
pub fn check_capture(run_json: &str, spec: &CaptureSpec) -> Result<(), RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let graph = plan.config.graph(&PlannedFiles { plan: &plan, read_table: &no_table_reader })?;
    Capture::new(spec, &graph, std::io::sink())?;
    Ok(())
}

/// Adds up bytes. The sum saturates, because millions of flows of terabytes exceed 64 bits.
fn total(bytes: &mut dyn Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// Returns the numbers about the whole run that no table has.
fn facts(config: &Config, graph: &Graph, outcome: &Outcome) -> Vec<(&'static str, f64)> {
    let capacity: f64 = graph.host_rates().iter().map(|rate| rate.0 as f64 / 8.0).sum();
    let window = config.horizon.arrivals.as_secs_f64();
    let offered: u64 = total(&mut outcome.flows.iter().map(|f| f.flow.bytes));
    let delivered: u64 = total(&mut outcome.flows.iter().map(|f| f.delivered_in_arrivals));
    let finished = || outcome.flows.iter().filter(|f| f.fct.is_some());
    // A graph file may put host links into any tier.
    let host_links: u32 = outcome.tiers.iter().map(|tier| tier.host_links).sum();
    let busy = |tier: &TierRecord| tier.host_utilisation * f64::from(tier.host_links);
    let carried = outcome.tiers.iter().map(busy).sum::<f64>() / f64::from(host_links.max(1));
    vec![
        ("flows", outcome.flows.len() as f64),
        ("unfinished_flows", (outcome.flows.len() - finished().count()) as f64),
        ("offered_bytes", offered as f64),
        ("finished_bytes", total(&mut finished().map(|f| f.flow.bytes)) as f64),
        // Application bytes over the capacity of all host links while flows arrive.
        ("offered_load", offered as f64 / (capacity * window)),
        // The share of that capacity in use: headers, replicas and retransmissions included.
        ("carried_load", carried),
        // Bytes that reached applications by the end of the arrivals, in order and each counted
        // once.
        ("delivered_bytes", delivered as f64),
        ("goodput", delivered as f64 / (capacity * window)),
    ]
}
