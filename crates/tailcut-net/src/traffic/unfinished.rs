//! Jobs whose messages wait for each other that the end of a run interrupts: a sentence on what waits for what.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tailcut_engine::Time;

use super::demand::{Dependent, Jobs, NONE, RowId, Signal};
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
    /// Returns whether something waits for a flow to be sent.
    pub is_unsent: &'a dyn Fn(FlowIndex) -> bool,
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
        let mut waits: Vec<(Dependent, Dependent)> = self.waits().collect();
        waits.extend(self.waits_for_room(&waits));
        // Messages that wait for an acknowledgement are causes too.
        for &(from, to) in &waits {
            let Dependent::Flow(flow) = from else { continue };
            let is_owed = (self.state)(flow) == FlowState::Received;
            if is_owed && waiting.contains(&key(to)) && !causes.contains(&from) {
                causes.push(from);
            }
        }
        let under_way: BTreeSet<(u8, u32)> = causes.iter().map(|cause| key(*cause)).collect();
        text += &match causes.is_empty() {
            true => "nothing is under way".to_owned(),
            false => self.list(&causes, "; ", &|cause| self.cause(cause)),
        };
        let mut direct: Vec<Dependent> = waits
            .into_iter()
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
        let open = self.processors.map(Processors::open).unwrap_or_default();
        for (at, _) in open.iter().enumerate().filter(|(_, is_open)| **is_open) {
            let computation = Dependent::Computation(at as u32);
            if self.jobs.computations[at].job != job {
                continue;
            }
            match self.processors.and_then(|all| all.end_of(at as u32)) {
                Some(_) => causes.push(computation),
                None => drop(waiting.insert(key(computation))),
            }
        }
        (causes, waiting)
    }

    /// Returns the waits that are not over, from what to what.
    fn waits(&self) -> impl Iterator<Item = (Dependent, Dependent)> + '_ {
        let of_flows = self.jobs.edges.iter().filter(|edge| match (self.state)(edge.from) {
            FlowState::Acknowledged => false,
            FlowState::Received => edge.on == Signal::Acknowledged,
            FlowState::UnderWay(_) => edge.on != Signal::Sent || (self.is_unsent)(edge.from),
            FlowState::Waiting => true,
        });
        let of_flows = of_flows.map(|edge| (Dependent::Flow(edge.from), edge.to));
        let open = self.processors.map(Processors::open).unwrap_or_default();
        let computed = self.jobs.computed.iter().filter(move |(from, _)| open[*from as usize]);
        let computed = computed.map(|(from, to)| (Dependent::Computation(*from), *to));
        let in_line = self.processors.into_iter().flat_map(Processors::in_line);
        let both = |(from, to)| (Dependent::Computation(from), Dependent::Computation(to));
        of_flows.chain(computed).chain(in_line.map(both))
    }

    /// Returns the waits of messages for room in their pools alone, from a message that takes a
    /// place there; `waits` are the other waits that are not over.
    fn waits_for_room(&self, waits: &[(Dependent, Dependent)]) -> Vec<(Dependent, Dependent)> {
        let takes_place = |flow: FlowIndex, on: Signal| match (self.state)(flow) {
            FlowState::Waiting | FlowState::Acknowledged => false,
            FlowState::UnderWay(_) => on != Signal::Sent || (self.is_unsent)(flow),
            FlowState::Received => on == Signal::Acknowledged,
        };
        let mut first = vec![None; self.jobs.pools.len()];
        let mut waiting = vec![];
        for (at, rule) in self.jobs.rules.iter().enumerate().filter(|(_, rule)| rule.pool != NONE) {
            let (flow, pool) = (FlowIndex::at(at), rule.pool as usize);
            if (self.state)(flow) == FlowState::Waiting {
                waiting.push((pool, Dependent::Flow(flow)));
            } else if takes_place(flow, self.jobs.pools[pool].on) {
                first[pool].get_or_insert(Dependent::Flow(flow));
            }
        }
        let held: BTreeSet<(u8, u32)> = waits.iter().map(|(_, to)| key(*to)).collect();
        let in_turn = waiting.into_iter().filter(|(_, flow)| !held.contains(&key(*flow)));
        in_turn.filter_map(|(pool, flow)| Some((first[pool]?, flow))).collect()
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
