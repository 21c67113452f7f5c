//! The traffic of a run: flows, some of which depend on others, and the jobs that they make up.
//!
//! Closed-loop traffic is a graph that is drawn as a whole before the run: the flows, their sizes
//! and hosts, and their dependencies. Only the start times of dependent flows depend on the scheme,
//! so that schemes are compared on the same flows, one by one.

use std::collections::BTreeSet;
use std::fmt;

use tailcut_engine::Time;

use super::{Flow, FlowIndex};
use crate::topology::HostId;

/// Stands for no job and no pool.
pub const NONE: u32 = u32::MAX;

/// The event by which a flow counts as finished for its dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The sender has handed the last byte to its interface for the first time: for dependents at
    /// the sender. At the latest, a flow that was received or acknowledged has been sent.
    Sent,
    /// The last byte has reached the receiver: for dependents at the receiver.
    Received,
    /// The sender has the acknowledgement of the last byte: for dependents at the sender.
    Acknowledged,
}

impl Signal {
    /// All of them.
    pub(super) const ALL: [Signal; 3] = [Signal::Sent, Signal::Received, Signal::Acknowledged];

    /// Returns the word of files for it.
    pub fn word(self) -> &'static str {
        match self {
            Signal::Sent => "sent",
            Signal::Received => "received",
            Signal::Acknowledged => "acknowledged",
        }
    }
}

/// Name of a kind of job in the job table.
pub type JobKind = &'static str;

/// The job and pool of a flow, and its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartRule {
    /// The job of the flow, or [`NONE`].
    pub job: u32,
    /// The pool that the flow starts from, or [`NONE`].
    pub pool: u32,
    /// Time from the flow's last met dependency to its start.
    pub delay: Time,
}

const FREE: StartRule = StartRule { job: NONE, pool: NONE, delay: Time::ZERO };

/// Flows with limited concurrency: they start in order, each when an earlier one has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPool {
    /// Start of its first flows, unless the pool depends on other flows itself.
    pub opens: Time,
    /// Maximum number of its flows that run at once.
    pub at_once: u32,
    /// Event by which its flows count as finished.
    pub on: Signal,
}

/// What depends on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependent {
    /// The start of another flow.
    Flow(FlowIndex),
    /// The opening of a pool.
    Pool(u32),
    /// The start of a computation.
    Computation(u32),
}

/// A computation at a host. The computations of a processor run one at a time, in the order in
/// which their dependencies are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Computation {
    /// The job of the computation, or [`NONE`].
    pub job: u32,
    /// The host that computes.
    pub host: HostId,
    /// The processor of the host.
    pub processor: u32,
    /// Time from its start to its end.
    pub duration: Time,
}

/// An iteration of a collective operation: a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveJob {
    /// The job.
    pub job: u32,
    /// The job of the first iteration.
    pub group: u32,
    /// The number of the iteration, from 0.
    pub iteration: u32,
    /// The bytes of the algorithm bandwidth.
    pub bytes: u64,
    /// The bus bandwidth is `bus_links / ranks` of the algorithm bandwidth (nccl-tests).
    pub bus_links: u32,
    /// The number of ranks.
    pub ranks: u32,
}

/// A dependency on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The flow that is depended on.
    pub from: FlowIndex,
    /// Event by which that flow counts as finished.
    pub on: Signal,
    /// What depends on the flow.
    pub to: Dependent,
}

/// The id that a graph file gives a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowId {
    /// A number, written in the shortest way.
    Number(u64),
    /// Any other text.
    Text(Box<str>),
}

impl fmt::Display for RowId {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RowId::Number(number) => number.fmt(to),
            RowId::Text(text) => text.fmt(to),
        }
    }
}

/// The dependencies of closed-loop traffic; empty for open-loop traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jobs {
    /// Kind of each job.
    pub kinds: Vec<JobKind>,
    /// One rule per flow; empty if no flow has dependencies or belongs to a job.
    pub rules: Vec<StartRule>,
    /// The dependencies.
    pub edges: Vec<Dependency>,
    /// The pools.
    pub pools: Vec<FlowPool>,
    /// The computations.
    pub computations: Vec<Computation>,
    /// Pairs of a computation and what depends on its end.
    pub computed: Vec<(u32, Dependent)>,
    /// The jobs that are collective operations, in order.
    pub collectives: Vec<CollectiveJob>,
    /// The ids of computations in their graph file, and of flows whose numbers are not these ids.
    pub row_ids: Vec<(Dependent, RowId)>,
    /// The job whose critical path the outcome of the run has.
    pub explained: Option<u32>,
    /// Number of flows without dependencies: they come first, in order of start.
    pub independent: usize,
}

impl Jobs {
    /// Returns the id of a row in its graph file, if it is not the number of a flow.
    pub fn row_id(&self, row: Dependent) -> Option<&RowId> {
        self.row_ids.iter().find(|(one, _)| *one == row).map(|(_, id)| id)
    }

    /// Returns the number of flows that depend on no others, of `flows` in all.
    pub fn listed(&self, flows: usize) -> usize {
        if self.is_empty() { flows } else { self.independent }
    }

    /// Returns the host of each pool, from which all its flows are sent; none for an empty one.
    pub fn pool_hosts(&self, flows: &[Flow]) -> Vec<Option<HostId>> {
        let mut hosts = vec![None; self.pools.len()];
        for (rule, flow) in self.rules.iter().zip(flows).filter(|(rule, _)| rule.pool != NONE) {
            hosts[rule.pool as usize].get_or_insert(flow.src);
        }
        hosts
    }

    /// Returns the pairs of different hosts of which one learns at once of what happens at the
    /// other: what waits there starts at the same instant.
    pub fn bound_hosts(&self, flows: &[Flow]) -> Vec<[HostId; 2]> {
        let of_pools = self.pool_hosts(flows);
        let waits_at = |waiting| match waiting {
            Dependent::Flow(flow) => Some(flows[flow.index()].src),
            Dependent::Computation(number) => Some(self.computations[number as usize].host),
            Dependent::Pool(pool) => of_pools[pool as usize],
        };
        let at = |flow: FlowIndex, signal| match signal {
            Signal::Received => flows[flow.index()].dst,
            Signal::Sent | Signal::Acknowledged => flows[flow.index()].src,
        };
        let edges = self.edges.iter().map(|edge| (at(edge.from, edge.on), waits_at(edge.to)));
        let computed = self
            .computed
            .iter()
            .map(|&(from, to)| (self.computations[from as usize].host, waits_at(to)));
        let pooled = self.rules.iter().enumerate().filter(|(_, rule)| rule.pool != NONE);
        let pooled = pooled.flat_map(|(flow, rule)| {
            let (flow, pool) = (FlowIndex::at(flow), rule.pool as usize);
            [Signal::Sent, self.pools[pool].on].map(|signal| (at(flow, signal), of_pools[pool]))
        });
        let mut bound: Vec<[HostId; 2]> = edges
            .chain(computed)
            .chain(pooled)
            .filter_map(|(host, other)| Some([host, other?]))
            .filter(|[host, other]| host != other)
            .collect();
        bound.sort_unstable();
        bound.dedup();
        bound
    }

    /// Returns whether anything waits for flows to be sent: others, or room in a pool.
    pub fn await_sending(&self) -> bool {
        self.edges.iter().any(|edge| edge.on == Signal::Sent)
            || self.pools.iter().any(|pool| pool.on == Signal::Sent)
    }

    /// Returns whether every flow starts at its own time and belongs to no job.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// The flows of a run and their jobs. The start of a dependent flow is the earliest possible one
/// until it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demand {
    /// The flows: those without dependencies in order of start, then the others.
    pub flows: Vec<Flow>,
    /// Their dependencies.
    pub jobs: Jobs,
    /// Whether the identifier of each flow was given by a trace; empty if none was.
    pub(super) named: Vec<bool>,
}

impl From<Vec<Flow>> for Demand {
    fn from(flows: Vec<Flow>) -> Demand {
        Demand { flows, ..Demand::default() }
    }
}

impl Demand {
    /// Adds a job of this kind and returns its number.
    pub(super) fn job(&mut self, kind: JobKind) -> u32 {
        self.jobs.kinds.push(kind);
        self.jobs.kinds.len() as u32 - 1
    }

    pub(super) fn pool(&mut self, pool: FlowPool) -> u32 {
        self.jobs.pools.push(pool);
        self.jobs.pools.len() as u32 - 1
    }

    /// Adds a flow of a job and returns its index.
    pub(crate) fn flow(&mut self, rule: StartRule, flow: Flow) -> FlowIndex {
        self.jobs.rules.resize(self.flows.len(), FREE);
        self.jobs.rules.push(rule);
        self.flows.push(flow);
        FlowIndex::at(self.flows.len() - 1)
    }

    /// Sets whether all flows keep the identifiers that they have.
    pub(super) fn set_named(&mut self, named: bool) {
        self.named = vec![named; self.flows.len()];
    }

    /// Sets the id of a row in its graph file.
    pub(super) fn name(&mut self, row: Dependent, id: RowId) {
        self.jobs.row_ids.push((row, id));
    }

    /// Adds a computation and returns its number.
    pub(super) fn computation(&mut self, computation: Computation) -> u32 {
        self.jobs.computations.push(computation);
        self.jobs.computations.len() as u32 - 1
    }

    /// Makes something wait for the end of a computation.
    pub(super) fn wait_computed(&mut self, to: Dependent, from: u32) {
        self.jobs.computed.push((from, to));
    }

    pub(crate) fn wait(&mut self, to: Dependent, from: FlowIndex, on: Signal) {
        self.jobs.edges.push(Dependency { from, on, to });
    }

    /// Adds the flows of another pattern.
    pub(super) fn append(&mut self, other: Demand) {
        let (flows, jobs, pools) =
            (self.flows.len() as u32, self.jobs.kinds.len() as u32, self.jobs.pools.len() as u32);
        let computations = self.jobs.computations.len() as u32;
        let shift = |index: u32, by: u32| if index == NONE { NONE } else { index + by };
        if !(self.jobs.is_empty() && other.jobs.is_empty()) {
            self.jobs.rules.resize(self.flows.len(), FREE);
            let of_other = other.jobs.rules.iter().copied();
            self.jobs.rules.extend(of_other.map(|rule| StartRule {
                job: shift(rule.job, jobs),
                pool: shift(rule.pool, pools),
                ..rule
            }));
            self.jobs.rules.resize(self.flows.len() + other.flows.len(), FREE);
        }
        if !(self.named.is_empty() && other.named.is_empty()) {
            self.named.resize(self.flows.len(), false);
            self.named.extend(other.named);
            self.named.resize(self.flows.len() + other.flows.len(), false);
        }
        self.flows.extend(other.flows);
        let collectives = other.jobs.collectives.into_iter();
        self.jobs.collectives.extend(collectives.map(|of_other| CollectiveJob {
            job: of_other.job + jobs,
            group: of_other.group + jobs,
            ..of_other
        }));
        self.jobs.kinds.extend(other.jobs.kinds);
        self.jobs.pools.extend(other.jobs.pools);
        let moved = |to| match to {
            Dependent::Flow(to) => Dependent::Flow(FlowIndex(to.0 + flows)),
            Dependent::Pool(to) => Dependent::Pool(to + pools),
            Dependent::Computation(to) => Dependent::Computation(to + computations),
        };
        self.jobs.edges.extend(other.jobs.edges.into_iter().map(|edge| Dependency {
            from: FlowIndex(edge.from.0 + flows),
            to: moved(edge.to),
            ..edge
        }));
        let row_ids = other.jobs.row_ids.into_iter();
        self.jobs.row_ids.extend(row_ids.map(|(row, id)| (moved(row), id)));
        let computed = other.jobs.computed.into_iter();
        self.jobs.computed.extend(computed.map(|(from, to)| (from + computations, moved(to))));
        let of_other = other.jobs.computations.into_iter();
        self.jobs.computations.extend(
            of_other.map(|computation| Computation {
                job: shift(computation.job, jobs),
                ..computation
            }),
        );
    }

    /// Puts the flows without dependencies first, by start (ties as generated). Numbers the flows
    /// from 0, skipping the identifiers that a trace has given.
    pub(crate) fn numbered(mut self) -> Demand {
        let mut waits = vec![false; self.flows.len()];
        if !self.jobs.is_empty() {
            self.jobs.rules.resize(self.flows.len(), FREE);
            waits = self.jobs.rules.iter().map(|r| r.pool != NONE).collect();
            let computed = self.jobs.computed.iter().map(|(_, to)| to);
            for to in self.jobs.edges.iter().map(|edge| &edge.to).chain(computed) {
                if let Dependent::Flow(to) = to {
                    waits[to.index()] = true;
                }
            }
        }
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&at| {
            let waits = waits[at];
            (waits, if waits { Time::ZERO } else { self.flows[at].start })
        });
        if !self.jobs.is_empty() {
            let mut place = vec![FlowIndex::at(0); order.len()];
            for (new, &old) in order.iter().enumerate() {
                place[old] = FlowIndex::at(new);
            }
            self.jobs.rules = order.iter().map(|&at| self.jobs.rules[at]).collect();
            for edge in &mut self.jobs.edges {
                edge.from = place[edge.from.index()];
            }
            let computed = self.jobs.computed.iter_mut().map(|(_, to)| to);
            let rows = self.jobs.row_ids.iter_mut().map(|(row, _)| row);
            let dependents = self.jobs.edges.iter_mut().map(|edge| &mut edge.to);
            for to in dependents.chain(computed).chain(rows) {
                if let Dependent::Flow(to) = to {
                    *to = place[to.index()];
                }
            }
            self.jobs.independent = waits.iter().filter(|waits| !**waits).count();
        }
        self.flows = order.iter().map(|&at| self.flows[at]).collect();
        self.named.resize(order.len(), false);
        self.named = order.iter().map(|&at| self.named[at]).collect();
        self.number();
        self
    }

    /// Returns the identifiers that files give flows.
    pub(super) fn given_ids(&self) -> impl Iterator<Item = u64> + '_ {
        let named = self.flows.iter().zip(&self.named).filter(|(_, named)| **named);
        named.map(|(flow, _)| flow.id)
    }

    /// Makes the identifiers that files give flows the names of rows, so that the flows get others.
    pub(super) fn number_anew(&mut self) {
        for at in (0..self.named.len()).filter(|at| self.named[*at]) {
            let row = Dependent::Flow(FlowIndex::at(at));
            self.jobs.row_ids.push((row, RowId::Number(self.flows[at].id)));
        }
        self.named.clear();
    }

    /// Numbers the flows without an identifier of their own, in order.
    fn number(&mut self) {
        let taken: BTreeSet<u64> = self.given_ids().collect();
        let mut free = (0..).filter(|id| !taken.contains(id));
        for (flow, _) in self.flows.iter_mut().zip(&self.named).filter(|(_, named)| !**named) {
            flow.id = free.next().expect("there are more numbers than flows");
        }
    }
}
