//! Closed-loop traffic: starts flows when the flows they depend on have finished. Sans-I/O: it is
//! fed events and returns which flows start when.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tailcut_engine::Time;

use super::critical_path::Cause;
use super::demand::{CollectiveJob, Dependent, JobKind, Jobs, NONE, Signal, StartRule};
use super::processors::Processors;
use super::unfinished::{Ended, FlowState, RunEnd, UnfinishedJob};
use super::{Flow, FlowIndex};
use crate::topology::HostId;

/// What happened to one job: one row of the job table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRecord {
    /// Number among the jobs of the run.
    pub id: u64,
    /// Kind of job: `"query"`, `"transfer"`.
    pub kind: JobKind,
    /// Start of its first flow or computation.
    pub start: Time,
    /// Time from `start` until the last byte of its last flow reached its receiver, and its last
    /// computation ended; `None` if that did not happen.
    pub completion: Option<Time>,
    /// Number of its flows.
    pub flows: u32,
    /// Application bytes of its flows.
    pub bytes: u64,
    /// The iteration of a collective operation that it is, if it is one.
    pub collective: Option<CollectiveJob>,
}

/// The state of closed-loop traffic during a run.
#[derive(Debug, Clone)]
pub struct ClosedLoop {
    jobs: Jobs,
    /// The dependencies on flow i are `edges[first_edge[i]..first_edge[i + 1]]` of `jobs`.
    first_edge: Vec<u32>,
    /// Number of unmet dependencies of each flow and of each pool.
    flow_needs: Vec<u32>,
    pool_needs: Vec<u32>,
    pools: Vec<PoolState>,
    /// Flows whose start is known and not reached yet.
    due: BinaryHeap<Reverse<(Time, FlowIndex)>>,
    /// The computations; none without any.
    processors: Option<Processors>,
    started: Vec<bool>,
    /// Flows that others wait for to be sent, and that have not been.
    unsent: Vec<bool>,
    /// The dependency that started each flow, and each computation; empty unless a job is to be
    /// explained.
    flow_causes: Vec<Cause>,
    computation_causes: Vec<Cause>,
    progress: Vec<JobProgress>,
}

#[derive(Debug, Clone, Default)]
struct PoolState {
    open: bool,
    running: u32,
    /// Flows that wait for nothing but their turn.
    ready: VecDeque<FlowIndex>,
}

#[derive(Debug, Clone, Copy)]
struct JobProgress {
    start: Option<Time>,
    /// The last end of a flow or computation, and which that was.
    last: Option<(Time, Dependent)>,
    /// The flows and computations that have not ended.
    left: u32,
    flows: u32,
    bytes: u64,
}

impl JobProgress {
    /// Returns the end of the job, and the flow or computation with which it ended.
    fn ended(&self) -> Option<(Time, Dependent)> {
        self.last.filter(|_| self.left == 0)
    }
}

impl ClosedLoop {
    /// Creates the state of closed-loop traffic at these hosts, `None` for all of them; none for
    /// open-loop traffic.
    pub fn new(flows: &[Flow], jobs: &Jobs, hosts: Option<&[bool]>) -> Option<ClosedLoop> {
        if jobs.is_empty() {
            return None;
        }
        let is_here = |host: HostId| hosts.is_none_or(|hosts| hosts[host.index()]);
        let pool_hosts = jobs.pool_hosts(flows);
        let mut unsent = unsent(flows.len(), jobs);
        for (unsent, flow) in unsent.iter_mut().zip(flows) {
            *unsent &= is_here(flow.src);
        }
        let processors = Processors::new(jobs, hosts);
        let mut jobs = jobs.clone();
        jobs.edges.sort_by_key(|edge| edge.from);
        let mut first_edge = vec![0u32; flows.len() + 1];
        let mut flow_needs = vec![0u32; flows.len()];
        let mut pool_needs = vec![0u32; jobs.pools.len()];
        for edge in &jobs.edges {
            first_edge[edge.from.index() + 1] += 1;
            match edge.to {
                Dependent::Flow(to) => flow_needs[to.index()] += 1,
                Dependent::Pool(to) => pool_needs[to as usize] += 1,
                Dependent::Computation(_) => {}
            }
        }
        for (_, to) in &jobs.computed {
            match to {
                Dependent::Flow(to) => flow_needs[to.index()] += 1,
                Dependent::Pool(to) => pool_needs[*to as usize] += 1,
                Dependent::Computation(_) => {}
            }
        }
        for at in 0..flows.len() {
            first_edge[at + 1] += first_edge[at];
        }
        let mut driver = ClosedLoop {
            first_edge,
            flow_needs,
            pool_needs,
            pools: vec![PoolState::default(); jobs.pools.len()],
            due: BinaryHeap::new(),
            processors,
            started: vec![false; flows.len()],
            unsent,
            flow_causes: explained(flows.len(), &jobs),
            computation_causes: explained(jobs.computations.len(), &jobs),
            progress: begin(flows, &jobs),
            jobs,
        };
        for at in driver.jobs.independent..flows.len() {
            let pool = driver.jobs.rules[at].pool;
            if driver.flow_needs[at] == 0 {
                debug_assert_ne!(pool, NONE, "a flow that waits for nothing is listed");
                driver.pools[pool as usize].ready.push_back(FlowIndex::at(at));
            }
        }
        for (pool, host) in pool_hosts.iter().enumerate() {
            if driver.pool_needs[pool] == 0 && host.is_some_and(is_here) {
                driver.open(pool, Cause::None, driver.jobs.pools[pool].opens);
            }
        }
        Some(driver)
    }

    /// Returns the start of the next flow, if one is known.
    pub fn next(&self) -> Option<Time> {
        let flow = self.due.peek().map(|Reverse((time, _))| *time);
        let computed = self.processors.as_ref().and_then(Processors::next_end);
        flow.into_iter().chain(computed).min()
    }

    /// Takes a flow whose start is reached, and ends the computations whose ends are reached.
    pub fn take(&mut self, now: Time) -> Option<FlowIndex> {
        while let Some(ended) = self.processors.as_mut().and_then(|all| all.take_end(now)) {
            self.on_computed(ended, now);
        }
        self.due.peek().filter(|Reverse((time, _))| *time <= now)?;
        self.due.pop().map(|Reverse((_, flow))| flow)
    }

    /// Notes that a flow starts.
    pub fn on_start(&mut self, flow: FlowIndex, now: Time) {
        self.started[flow.index()] = true;
        self.begin_job(self.jobs.rules[flow.index()].job, now);
    }

    /// Notes that a flow or a computation of a job has started at this time.
    fn begin_job(&mut self, job: u32, now: Time) {
        if job != NONE {
            let start = &mut self.progress[job as usize].start;
            *start = Some(start.map_or(now, |first| first.min(now)));
        }
    }

    /// Notes that a flow or a computation of a job is over.
    fn advance_job(&mut self, job: u32, over: Dependent, now: Time) {
        if job != NONE {
            let job = &mut self.progress[job as usize];
            job.left -= 1;
            job.last = Some((now, over));
        }
    }

    /// Notes that a computation has ended, and releases what waits for it.
    fn on_computed(&mut self, computation: u32, now: Time) {
        let about = self.jobs.computations[computation as usize];
        self.begin_job(about.job, now - about.duration);
        self.advance_job(about.job, Dependent::Computation(computation), now);
        for edge in self.processors.as_ref().map_or(0..0, |all| all.dependents(computation)) {
            let (_, to) = self.processors.as_ref().expect("one has ended").edge(edge);
            self.satisfy(to, Cause::Computation(computation), now);
        }
    }

    /// Notes that a flow has finished in the sense of `signal`.
    pub fn on_finished(&mut self, flow: FlowIndex, signal: Signal, now: Time) {
        if self.is_unsent(flow) {
            self.unsent[flow.index()] = false;
            self.conclude(flow, Signal::Sent, now);
        }
        if signal == Signal::Sent {
            return;
        }
        if signal == Signal::Received {
            let job = self.jobs.rules[flow.index()].job;
            self.advance_job(job, Dependent::Flow(flow), now);
        }
        self.conclude(flow, signal, now);
    }

    /// Makes room in a flow's pool and releases what waits for it, as far as `signal` says.
    fn conclude(&mut self, flow: FlowIndex, signal: Signal, now: Time) {
        let pool = self.jobs.rules[flow.index()].pool;
        if pool != NONE && self.jobs.pools[pool as usize].on == signal {
            self.pools[pool as usize].running -= 1;
            self.refill(pool as usize, Cause::Flow(flow, signal), now);
        }
        self.release_dependents(flow, signal, now);
    }

    /// Returns whether anything waits for a flow to be sent, or has waited.
    pub fn awaits_sending(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns whether something waits for a flow to be sent.
    pub fn is_unsent(&self, flow: FlowIndex) -> bool {
        self.unsent.get(flow.index()).is_some_and(|unsent| *unsent)
    }

    fn release_dependents(&mut self, flow: FlowIndex, signal: Signal, now: Time) {
        let at = flow.index();
        for edge in self.first_edge[at] as usize..self.first_edge[at + 1] as usize {
            let edge = self.jobs.edges[edge];
            if edge.on == signal {
                self.satisfy(edge.to, Cause::Flow(flow, signal), now);
            }
        }
    }

    fn satisfy(&mut self, waiting: Dependent, cause: Cause, now: Time) {
        match waiting {
            Dependent::Flow(flow) => {
                let needs = &mut self.flow_needs[flow.index()];
                *needs -= 1;
                if *needs > 0 {
                    return;
                }
                match self.jobs.rules[flow.index()].pool {
                    NONE => self.release(flow, cause, now),
                    pool => {
                        self.pools[pool as usize].ready.push_back(flow);
                        self.refill(pool as usize, cause, now);
                    }
                }
            }
            Dependent::Pool(pool) => {
                self.pool_needs[pool as usize] -= 1;
                if self.pool_needs[pool as usize] == 0 {
                    self.open(pool as usize, cause, now);
                }
            }
            Dependent::Computation(computation) => {
                // The last one stays.
                if let Some(noted) = self.computation_causes.get_mut(computation as usize) {
                    *noted = cause;
                }
                let processors = self.processors.as_mut();
                processors.expect("there are computations").satisfy(computation, now);
            }
        }
    }

    fn open(&mut self, pool: usize, cause: Cause, at: Time) {
        self.pools[pool].open = true;
        self.refill(pool, cause, at);
    }

    /// Starts flows of a pool that has room: `cause` was the last that they waited for.
    fn refill(&mut self, pool: usize, cause: Cause, now: Time) {
        let at_once = self.jobs.pools[pool].at_once;
        while self.pools[pool].open && self.pools[pool].running < at_once {
            let Some(flow) = self.pools[pool].ready.pop_front() else { break };
            self.pools[pool].running += 1;
            self.release(flow, cause, now);
        }
    }

    fn release(&mut self, flow: FlowIndex, cause: Cause, now: Time) {
        if let Some(noted) = self.flow_causes.get_mut(flow.index()) {
            *noted = cause;
        }
        let at = now + self.jobs.rules[flow.index()].delay;
        // Starts are rounded up to whole nanoseconds, so that the flow table holds them exactly.
        let at = Time::from_ns(at.0.div_ceil(1_000));
        self.due.push(Reverse((at, flow)));
    }

    /// Returns whether a flow has started; independent flows count as started.
    pub fn has_started(&self, flow: FlowIndex) -> bool {
        flow.index() < self.jobs.independent || self.started[flow.index()]
    }

    /// Returns the jobs given as graphs that have not ended, with what each waits for. Iterations
    /// that have not begun are left out.
    pub fn unfinished(
        &self,
        flows: &[Flow],
        state: &dyn Fn(FlowIndex) -> FlowState,
        end: &RunEnd,
    ) -> Vec<UnfinishedJob> {
        let (jobs, processors) = (&self.jobs, self.processors.as_ref());
        let is_unsent = &|flow| self.is_unsent(flow);
        let ended = Ended { jobs, flows, processors, is_unsent, state, end };
        let is_later = |number: usize| {
            let collectives = &self.jobs.collectives;
            let at = collectives.binary_search_by_key(&(number as u32), |about| about.job);
            self.progress[number].start.is_none()
                && at.is_ok_and(|at| collectives[at].iteration > 0)
        };
        let open = self.progress.iter().enumerate().filter(|(_, job)| job.left > 0);
        let open = open.filter(|(number, _)| !is_later(*number));
        open.filter_map(|(number, _)| ended.explain(number as u32)).collect()
    }

    /// Returns start and end of a job that has ended, and the flow or computation it ended with.
    pub(super) fn span(&self, job: u32) -> Option<(Time, Time, Dependent)> {
        let job = self.progress.get(job as usize)?;
        let (end, last) = job.ended()?;
        Some((job.start?, end, last))
    }

    /// Returns the dependencies.
    pub(super) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns the job of a flow or computation.
    pub(super) fn job_of(&self, what: Dependent) -> u32 {
        match what {
            Dependent::Flow(flow) => self.jobs.rules[flow.index()].job,
            Dependent::Computation(number) => self.jobs.computations[number as usize].job,
            Dependent::Pool(_) => NONE,
        }
    }

    /// Returns when a computation that has ended began.
    pub(super) fn computed_from(&self, computation: u32) -> Time {
        let processors = self.processors.as_ref();
        let end = processors.map_or(Time::ZERO, |all| all.ended_at(computation));
        end - self.jobs.computations[computation as usize].duration
    }

    /// Returns what a flow or computation waited for last. A computation that was ready waited for
    /// its processor.
    pub(super) fn cause(&self, what: Dependent) -> Cause {
        let noted = match what {
            Dependent::Flow(flow) => self.flow_causes.get(flow.index()),
            Dependent::Computation(number) => {
                let before = self.processors.as_ref().and_then(|all| all.behind(number));
                if let Some(before) = before {
                    return Cause::Computation(before);
                }
                self.computation_causes.get(number as usize)
            }
            Dependent::Pool(_) => None,
        };
        noted.copied().unwrap_or_default()
    }

    /// Takes over what happened at hosts of another part of the run, for which `is_there` holds.
    pub fn take_over(
        &mut self,
        other: &ClosedLoop,
        flows: &[Flow],
        is_there: &dyn Fn(HostId) -> bool,
    ) {
        let begun = begin(flows, &self.jobs);
        for ((own, other), idle) in self.progress.iter_mut().zip(&other.progress).zip(begun) {
            own.start = own.start.into_iter().chain(other.start).min();
            own.left -= idle.left - other.left;
            own.last = own.last.into_iter().chain(other.last).max_by_key(|(at, _)| *at);
        }
        for (at, _) in flows.iter().enumerate().filter(|(_, flow)| is_there(flow.src)) {
            self.started[at] = other.started[at];
            if let Some(unsent) = self.unsent.get_mut(at) {
                *unsent = other.unsent[at];
            }
        }
        if let (Some(own), Some(other)) = (&mut self.processors, &other.processors) {
            own.take_over(other, is_there);
        }
    }

    /// Returns a record of each job that has begun.
    pub fn records(&self) -> Vec<JobRecord> {
        records(&self.progress, &self.jobs)
    }
}

/// Returns the flows that others wait for to be sent; empty if nothing waits for that.
fn unsent(flows: usize, jobs: &Jobs) -> Vec<bool> {
    let edges = jobs.edges.iter().filter(|edge| edge.on == Signal::Sent);
    let makes_room =
        |rule: &StartRule| rule.pool != NONE && jobs.pools[rule.pool as usize].on == Signal::Sent;
    let pooled = jobs.rules.iter().enumerate().filter(|(_, rule)| makes_room(rule));
    let mut unsent = vec![];
    for at in edges.map(|edge| edge.from.index()).chain(pooled.map(|(at, _)| at)) {
        unsent.resize(flows, false);
        unsent[at] = true;
    }
    unsent
}

/// Returns room for the causes of flows or computations, if a job is to be explained.
fn explained(count: usize, jobs: &Jobs) -> Vec<Cause> {
    let count = if jobs.explained.is_some() { count } else { 0 };
    vec![Cause::None; count]
}

/// Returns the progress of all jobs before any has begun.
fn begin(flows: &[Flow], jobs: &Jobs) -> Vec<JobProgress> {
    let idle = JobProgress { start: None, last: None, left: 0, flows: 0, bytes: 0 };
    let mut progress = vec![idle; jobs.kinds.len()];
    for (rule, flow) in jobs.rules.iter().zip(flows).filter(|(rule, _)| rule.job != NONE) {
        let job = &mut progress[rule.job as usize];
        job.left += 1;
        job.flows += 1;
        job.bytes += flow.bytes;
    }
    for computation in jobs.computations.iter().filter(|computation| computation.job != NONE) {
        progress[computation.job as usize].left += 1;
    }
    progress
}

fn records(progress: &[JobProgress], jobs: &Jobs) -> Vec<JobRecord> {
    let collectives = &jobs.collectives;
    let jobs = progress.iter().zip(&jobs.kinds).enumerate();
    let begun = jobs.filter_map(|(id, (job, &kind))| {
        let start = job.start?;
        let completion = job.ended().map(|(end, _)| end - start);
        let (flows, bytes) = (job.flows, job.bytes);
        let collective = collectives.binary_search_by_key(&(id as u32), |about| about.job).ok();
        let collective = collective.map(|at| collectives[at]);
        Some(JobRecord { id: id as u64, kind, start, completion, flows, bytes, collective })
    });
    begun.collect()
}

/// Returns records of jobs carried out by something other than the simulator. `carried` has the
/// start of each started flow, and when its last byte was received.
pub fn measured_job_records(
    flows: &[Flow],
    jobs: &Jobs,
    carried: impl IntoIterator<Item = (FlowIndex, Time, Option<Time>)>,
) -> Vec<JobRecord> {
    let mut progress = begin(flows, jobs);
    for (flow, start, received) in carried {
        let Some(rule) = jobs.rules.get(flow.index()).filter(|rule| rule.job != NONE) else {
            continue;
        };
        let job = &mut progress[rule.job as usize];
        job.start = Some(job.start.map_or(start, |first| first.min(start)));
        if let Some(received) = received {
            job.left -= 1;
            let last = job.last.map_or(received, |(last, _)| last.max(received));
            job.last = Some((last, Dependent::Flow(flow)));
        }
    }
    records(&progress, jobs)
}

#[cfg(test)]
mod tests;
