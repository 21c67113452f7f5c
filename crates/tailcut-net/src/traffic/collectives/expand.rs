//! From the steps of a collective operation to the flows and computations of a run.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::steps::{Steps, Work};
use super::{Collective, Operation};
use crate::topology::HostId;
use crate::traffic::demand::{
    CollectiveJob, Computation, Demand, Dependent, NONE, Signal, StartRule,
};
use crate::traffic::{Flow, FlowIndex};

/// The processor of joins, which take no time: no computation delays them.
const JOINS: u32 = u32::MAX;

/// Adds the iterations of a job on `hosts`, one per rank. `bytes` are those of its bandwidth.
pub(super) fn expand(
    about: &Collective,
    demand: &mut Demand,
    hosts: &[HostId],
    steps: &Steps,
    bytes: u64,
) {
    let mut one = Expansion { about, demand, hosts, last: BTreeMap::new(), ready: vec![] };
    let mut group = None;
    for iteration in 0..about.repeat {
        let job = one.demand.job(about.operation.name());
        let group = *group.get_or_insert(job);
        let ranks = hosts.len() as u32;
        let bus_links = match about.operation {
            Operation::AllReduce => 2 * (ranks - 1),
            _ => ranks - 1,
        };
        let about = CollectiveJob { job, group, iteration, bytes, bus_links, ranks };
        one.demand.jobs.collectives.push(about);
        let received = one.iterate(job, steps);
        if iteration + 1 < one.about.repeat {
            one.compute(&received);
        }
    }
}

struct Expansion<'a> {
    about: &'a Collective,
    demand: &'a mut Demand,
    hosts: &'a [HostId],
    /// The last message of each pair and lane, with its job.
    last: BTreeMap<(u32, u32, u32), (FlowIndex, u32)>,
    /// The computation behind which each rank begins the iteration; empty for the first.
    ready: Vec<u32>,
}

impl Expansion<'_> {
    /// Adds one iteration. Returns the messages that each rank receives.
    fn iterate(&mut self, job: u32, steps: &Steps) -> Vec<Vec<FlowIndex>> {
        let mut received = vec![vec![]; self.hosts.len()];
        let mut places: Vec<Dependent> = Vec::with_capacity(steps.steps.len());
        for step in &steps.steps {
            let place = match &step.work {
                Work::Message { src, dst, bytes, lane, .. } => {
                    let size = bytes.end - bytes.start;
                    let flow = self.message(job, (*src, *dst, *lane), size);
                    received[*dst as usize].push(flow);
                    Dependent::Flow(flow)
                }
                Work::Join { rank } => {
                    let join = self.computation(job, *rank, JOINS, Time::ZERO);
                    Dependent::Computation(join)
                }
            };
            for &from in &step.after {
                match places[from as usize] {
                    Dependent::Flow(from) => self.demand.wait(place, from, Signal::Received),
                    Dependent::Computation(from) => self.demand.wait_computed(place, from),
                    Dependent::Pool(_) => unreachable!("collectives have no pools"),
                }
            }
            places.push(place);
        }
        received
    }

    /// Adds a message. It waits for the last one of its pair and lane to leave, or, as the first of
    /// an iteration, for the computation before.
    fn message(&mut self, job: u32, pair: (u32, u32, u32), bytes: u64) -> FlowIndex {
        let (src, dst, _) = pair;
        let rule = StartRule { job, pool: NONE, delay: Time::ZERO };
        let (from, to) = (self.hosts[src as usize], self.hosts[dst as usize]);
        let message = Flow { src: from, dst: to, bytes, start: self.about.start, id: 0 };
        let flow = self.demand.flow(rule, message);
        let before = self.last.insert(pair, (flow, job));
        if let Some((before, _)) = before {
            self.demand.wait(Dependent::Flow(flow), before, Signal::Sent);
        }
        if before.is_none_or(|(_, of)| of != job)
            && let Some(&ready) = self.ready.get(src as usize)
        {
            self.demand.wait_computed(Dependent::Flow(flow), ready);
        }
        flow
    }

    fn computation(&mut self, job: u32, rank: u32, processor: u32, duration: Time) -> u32 {
        let host = self.hosts[rank as usize];
        self.demand.computation(Computation { job, host, processor, duration })
    }

    /// Adds the computations between two iterations.
    fn compute(&mut self, received: &[Vec<FlowIndex>]) {
        let before = std::mem::take(&mut self.ready);
        for (rank, received) in received.iter().enumerate() {
            let next = self.computation(NONE, rank as u32, 0, self.about.compute);
            for &from in received {
                self.demand.wait(Dependent::Computation(next), from, Signal::Received);
            }
            if let Some(&before) = before.get(rank) {
                self.demand.wait_computed(Dependent::Computation(next), before);
            }
            self.ready.push(next);
        }
    }
}
