//! Computations of jobs: each processor of a host runs one at a time. Sans-I/O.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use tailcut_engine::Time;

use super::demand::{Computation, Dependent, Jobs, NONE};
use crate::topology::HostId;

/// The processors of all hosts during a run.
#[derive(Debug, Clone)]
pub(super) struct Processors {
    computations: Vec<Computation>,
    /// Computations with their dependents, ordered by computation.
    edges: Vec<(u32, Dependent)>,
    /// The dependents of computation i are `edges[first_edge[i]..first_edge[i + 1]]`.
    first_edge: Vec<u32>,
    /// Number of unmet dependencies of each computation.
    needs: Vec<u32>,
    /// The processor of each computation.
    places: Vec<u32>,
    /// The computations that wait for each processor; the first one runs.
    waiting: Vec<VecDeque<u32>>,
    /// The end of each computation, once it has ended.
    ended: Vec<Time>,
    /// The computation that each one waited for on its processor, or [`NONE`].
    behind: Vec<u32>,
    /// Ends of running computations.
    running: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Processors {
    /// Creates the processors, and starts the computations without dependencies at time 0 at these
    /// hosts, `None` for all of them; none without computations.
    pub fn new(jobs: &Jobs, hosts: Option<&[bool]>) -> Option<Processors> {
        if jobs.computations.is_empty() {
            return None;
        }
        let count = jobs.computations.len();
        let mut edges = jobs.computed.clone();
        edges.sort_by_key(|(from, _)| *from);
        let (mut first_edge, mut needs) = (vec![0u32; count + 1], vec![0u32; count]);
        for (from, _) in &edges {
            first_edge[*from as usize + 1] += 1;
        }
        for at in 0..count {
            first_edge[at + 1] += first_edge[at];
        }
        let computed = edges.iter().map(|(_, to)| to);
        for to in jobs.edges.iter().map(|edge| &edge.to).chain(computed) {
            if let Dependent::Computation(to) = to {
                needs[*to as usize] += 1;
            }
        }
        let mut numbers = BTreeMap::new();
        let place = |one: &Computation| {
            let next = numbers.len() as u32;
            *numbers.entry((one.host, one.processor)).or_insert(next)
        };
        let places: Vec<u32> = jobs.computations.iter().map(place).collect();
        let mut processors = Processors {
            computations: jobs.computations.clone(),
            edges,
            first_edge,
            waiting: vec![VecDeque::new(); numbers.len()],
            places,
            running: BinaryHeap::new(),
            ended: vec![Time::ZERO; count],
            behind: vec![NONE; count],
            needs,
        };
        for at in 0..count as u32 {
            let host = processors.computations[at as usize].host;
            let is_here = hosts.is_none_or(|hosts| hosts[host.index()]);
            if processors.needs[at as usize] == 0 && is_here {
                processors.queue(at, Time::ZERO);
            }
        }
        Some(processors)
    }

    /// Returns pairs of a running computation and one that is ready and waits for its processor.
    pub fn in_line(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.waiting.iter().flat_map(|queue| queue.iter().skip(1).map(|one| (queue[0], *one)))
    }

    /// Returns for each computation whether it has not ended.
    pub fn open(&self) -> Vec<bool> {
        let mut open: Vec<bool> = self.needs.iter().map(|needs| *needs > 0).collect();
        for &computation in self.waiting.iter().flatten() {
            open[computation as usize] = true;
        }
        open
    }

    /// Returns the end of a computation, if it is running.
    pub fn end_of(&self, computation: u32) -> Option<Time> {
        let front = self.waiting[self.places[computation as usize] as usize].front();
        front.filter(|first| **first == computation)?;
        let mut running = self.running.iter();
        running.find_map(|Reverse((end, number))| (*number == computation).then_some(*end))
    }

    /// Returns the end of a computation that has ended.
    pub fn ended_at(&self, computation: u32) -> Time {
        self.ended[computation as usize]
    }

    /// Returns the computation that a ready one waited for on its processor.
    pub fn behind(&self, computation: u32) -> Option<u32> {
        Some(self.behind[computation as usize]).filter(|before| *before != NONE)
    }

    /// Returns the next end of a computation, if one is running.
    pub fn next_end(&self) -> Option<Time> {
        self.running.peek().map(|Reverse((time, _))| *time)
    }

    /// Takes a computation whose end is reached, and starts the next one of its processor.
    pub fn take_end(&mut self, now: Time) -> Option<u32> {
        self.running.peek().filter(|Reverse((time, _))| *time <= now)?;
        let Reverse((end, ended)) = self.running.pop()?;
        self.ended[ended as usize] = end;
        let waiting = &mut self.waiting[self.places[ended as usize] as usize];
        waiting.pop_front();
        if let Some(&next) = waiting.front() {
            self.run(next, end);
        }
        Some(ended)
    }

    /// Notes that a dependency of a computation is met.
    pub fn satisfy(&mut self, computation: u32, now: Time) {
        let needs = &mut self.needs[computation as usize];
        *needs -= 1;
        if *needs == 0 {
            self.queue(computation, now);
        }
    }

    /// Returns the indices of the dependents of a computation, for [`Processors::edge`].
    pub fn dependents(&self, computation: u32) -> Range<usize> {
        let at = computation as usize;
        self.first_edge[at] as usize..self.first_edge[at + 1] as usize
    }

    /// Returns a computation and a dependent of it.
    pub fn edge(&self, at: usize) -> (u32, Dependent) {
        self.edges[at]
    }

    /// Takes over what happened at hosts of another part of the run, for which `is_there` holds.
    pub fn take_over(&mut self, other: &Processors, is_there: &dyn Fn(HostId) -> bool) {
        let computations = self.computations.iter().enumerate();
        for (at, _) in computations.filter(|(_, computation)| is_there(computation.host)) {
            self.needs[at] = other.needs[at];
            self.ended[at] = other.ended[at];
            self.behind[at] = other.behind[at];
            let place = self.places[at] as usize;
            self.waiting[place].clone_from(&other.waiting[place]);
        }
        self.running.extend(&other.running);
    }

    fn queue(&mut self, computation: u32, now: Time) {
        let waiting = &mut self.waiting[self.places[computation as usize] as usize];
        if let Some(&last) = waiting.back() {
            self.behind[computation as usize] = last;
        }
        waiting.push_back(computation);
        if waiting.len() == 1 {
            self.run(computation, now);
        }
    }

    fn run(&mut self, computation: u32, now: Time) {
        let end = now + self.computations[computation as usize].duration;
        self.running.push(Reverse((end, computation)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::demand::NONE;

    fn jobs(computations: &[(u32, u32, u64)]) -> Jobs {
        let one = |&(host, processor, us): &(u32, u32, u64)| Computation {
            job: NONE,
            host: HostId(host),
            processor,
            duration: Time::from_us(us),
        };
        Jobs { computations: computations.iter().map(one).collect(), ..Jobs::default() }
    }

    #[test]
    fn a_processor_runs_its_computations_one_after_another() {
        let mut all =
            Processors::new(&jobs(&[(0, 0, 5), (0, 0, 2), (0, 1, 6), (1, 0, 4)]), None).unwrap();
        let ends: Vec<(Time, u32)> = std::iter::from_fn(|| {
            let next = all.next_end()?;
            Some((next, all.take_end(next)?))
        })
        .collect();
        let us = Time::from_us;
        assert_eq!(ends, [(us(4), 3), (us(5), 0), (us(6), 2), (us(7), 1)]);
    }

    #[test]
    fn a_computation_starts_when_its_last_dependency_is_met() {
        let mut graph = jobs(&[(0, 0, 5), (1, 0, 1), (2, 0, 10)]);
        graph.computed = vec![(1, Dependent::Computation(2)), (0, Dependent::Computation(2))];
        let mut all = Processors::new(&graph, None).unwrap();
        for expected in [1, 0] {
            let now = all.next_end().unwrap();
            assert_eq!(all.take_end(now), Some(expected));
            for at in all.dependents(expected) {
                assert_eq!(all.edge(at).1, Dependent::Computation(2));
                all.satisfy(2, now);
            }
        }
        assert_eq!(all.next_end(), Some(Time::from_us(15)));
    }
}
