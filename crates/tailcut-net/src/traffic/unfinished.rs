//! Jobs whose messages wait for each other that the end of a run interrupts: a sentence on what waits for what.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tailcut_engine::Time;

use super::demand::{Dependent, Jobs, RowId, Signal};
use super::processors::Processors;
use super::{Flow, FlowIndex};

/// A job that had not ended with the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedJob {
    /// Number among the jobs of the run.
    pub id: u64,
    /// A sentence that names what waits for what.
    pub reason: String,
}

/// The state of a flow at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowState {
    /// Waits for its start.
    Waiting,
    /// It has started at this time, and its last byte has not been received.
    UnderWay(Time),
    /// The last byte has been received, and its acknowledgement has not.
    Received,
    /// The acknowledgement of the last byte has been received.
    Acknowledged,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Time at which the run ended.
    pub at: Time,
    /// Names of the links that are down at that time.
    pub links_down: Vec<String>,
}

/// Kinds of jobs whose members wait for each other in any order.
const GRAPHS: [&str; 6] =
    ["graph", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "mixture-of-experts"];

/// Most names in a list of a sentence.
const SHOWN: usize = 3;

/// A run at its end.
pub(super) struct Ended<'a> {
    pub jobs: &'a Jobs,
    pub flows: &'a [Flow],
    pub processors: Option<&'a Processors>,
    pub state: &'a dyn Fn(FlowIndex) -> FlowState,
    pub end: &'a RunEnd,
}

impl Ended<'_> {
    /// Returns a sentence on a job that has not ended, if its members wait for each other in any
    /// order.
    pub fn explain(&self, job: u32) -> Option<UnfinishedJob> {
        GRAPHS
            .contains(&self.jobs.kinds[job as usize])
            .then(|| UnfinishedJob { id: u64::from(job), reason: self.sentence(job) })
    }

    fn sentence(&self, job: u32) -> String {
        let mut text =
            format!("{} has not ended at {}: ", self.jobs.kinds[job as usize], self.end.at);
        let (mut causes, mut waiting) = self.own(job);
        // Messages that wait for an acknowledgement are causes too.
        for edge in self.jobs.edges.iter().filter(|edge| edge.on == Signal::Acknowledged) {
            let from = Dependent::Flow(edge.from);
            let is_owed = (self.state)(edge.from) == FlowState::Received;
            if is_owed && waiting.contains(&key(edge.to)) && !causes.contains(&from) {
                causes.push(from);
            }
        }
        let under_way: BTreeSet<(u8, u32)> = causes.iter().map(|cause| key(*cause)).collect();
        text += &match causes.is_empty() {
            true => "nothing is under way".to_owned(),
            false => self.list(&causes, "; ", &|cause| self.cause(cause)),
        };
        let mut direct: Vec<Dependent> = self
            .waits()
            .filter(|(from, to)| under_way.contains(&key(*from)) && waiting.remove(&key(*to)))
            .map(|(_, to)| to)
            .collect();
        direct.sort_by_key(|to| key(*to));
        if !direct.is_empty() {
            let verb = if direct.len() == 1 { "waits" } else { "wait" };
            let names = self.list(&direct, ", ", &|one| self.name(one));
            let _ = write!(text, "; {names} {verb} for that");
        }
        if !waiting.is_empty() {
            let (verb, count) = (if waiting.len() == 1 { "waits" } else { "wait" }, waiting.len());
            let _ = write!(text, "; {count} further {verb} in turn");
        }
        if !self.end.links_down.is_empty() {
            let shown = self.end.links_down.len().min(SHOWN);
            let more = self.end.links_down.len() - shown;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = self.end.links_down[..shown].join(", ");
            let _ = write!(text, "; links that are down: {names}{more}");
        }
        text
    }

    /// Returns what is under way of a job, and what has not started.
    fn own(&self, job: u32) -> (Vec<Dependent>, BTreeSet<(u8, u32)>) {
        let (mut causes, mut waiting) = (vec![], BTreeSet::new());
        for (at, _) in self.jobs.rules.iter().enumerate().filter(|(_, rule)| rule.job == job) {
            let flow = FlowIndex::at(at);
            match (self.state)(flow) {
                FlowState::Waiting => drop(waiting.insert(key(Dependent::Flow(flow)))),
                FlowState::UnderWay(_) => causes.push(Dependent::Flow(flow)),
                FlowState::Received | FlowState::Acknowledged => {}
            }
        }
        for (at, computation) in self.jobs.computations.iter().enumerate() {
            let Some(processors) = self.processors.filter(|_| computation.job == job) else {
                continue;
            };
            let computation = at as u32;
            if processors.waits(computation) {
                waiting.insert(key(Dependent::Computation(computation)));
            } else if processors.end_of(computation).is_some() {
                causes.push(Dependent::Computation(computation));
            }
        }
        (causes, waiting)
    }

    /// Returns the waits that are not over, from what to what.
    fn waits(&self) -> impl Iterator<Item = (Dependent, Dependent)> + '_ {
        let of_flows = self.jobs.edges.iter().filter(|edge| match (self.state)(edge.from) {
            FlowState::Acknowledged => false,
            FlowState::Received => edge.on == Signal::Acknowledged,
            FlowState::UnderWay(_) => edge.on != Signal::Sent,
            FlowState::Waiting => true,
        });
        let of_flows = of_flows.map(|edge| (Dependent::Flow(edge.from), edge.to));
        let computed = self.jobs.computed.iter();
        of_flows.chain(computed.map(|(from, to)| (Dependent::Computation(*from), *to)))
    }

    fn list(
        &self,
        all: &[Dependent],
        separator: &str,
        shown: &dyn Fn(Dependent) -> String,
    ) -> String {
        let mut names: Vec<String> = all.iter().take(SHOWN).map(|one| shown(*one)).collect();
        if all.len() > SHOWN {
            names.push(format!("{} more", all.len() - SHOWN));
        }
        names.join(separator)
    }

    fn cause(&self, one: Dependent) -> String {
        let name = self.name(one);
        match one {
            Dependent::Flow(flow) => match (self.state)(flow) {
                FlowState::UnderWay(start) => {
                    format!("{name} has started at {start} and is not received")
                }
                _ => format!("{name} is not acknowledged"),
            },
            Dependent::Computation(number) => {
                let end = self.processors.and_then(|all| all.end_of(number)).unwrap_or_default();
                format!("{name} runs until {end}")
            }
            Dependent::Pool(_) => name,
        }
    }

    fn name(&self, one: Dependent) -> String {
        match one {
            Dependent::Flow(flow) => {
                let Flow { id, src, dst, bytes, .. } = self.flows[flow.index()];
                let id = self.jobs.row_id(one).map_or_else(|| id.to_string(), RowId::to_string);
                format!("message {id} (host {src} to {dst}, {bytes} B)")
            }
            Dependent::Computation(number) => {
                let name = match self.jobs.row_id(one) {
                    Some(id) => format!("computation {id}"),
                    None => "a computation".to_owned(),
                };
                let one = self.jobs.computations[number as usize];
                let (host, processor, duration) = (one.host, one.processor, one.duration);
                format!("{name} of {duration} (host {host}, processor {processor})")
            }
            Dependent::Pool(number) => format!("pool {number}"),
        }
    }
}

/// Returns an order of the members of jobs: messages first.
fn key(one: Dependent) -> (u8, u32) {
    match one {
        Dependent::Flow(flow) => (0, flow.0),
        Dependent::Computation(number) => (1, number),
        Dependent::Pool(number) => (2, number),
    }
}
