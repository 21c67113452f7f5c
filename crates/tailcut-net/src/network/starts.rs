//! Starts of flows, and the timers of their replication policies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tailcut_engine::Time;

use crate::measure::records::{CriticalPath, JobRecord, UnfinishedJob};
use crate::traffic::closed_loop::ClosedLoop;
use crate::traffic::demand::{Jobs, Signal};
use crate::traffic::unfinished::{FlowState, RunEnd};
use crate::traffic::{Flow, FlowIndex};

/// The flows to start and the policies to ask.
pub(super) struct FlowStarts<'a> {
    /// The hosts whose flows are started here, by number; `None` for all.
    hosts: Option<Box<[bool]>>,
    /// All flows of the run: first those that start at times of their own, in that order.
    flows: &'a [Flow],
    /// The number of flows that depend on nothing.
    listed: usize,
    /// The next of them.
    next: usize,
    /// Starts the others; none for open-loop traffic.
    driver: Option<Box<ClosedLoop>>,
    timers: BinaryHeap<Reverse<(Time, FlowIndex)>>,
}

impl<'a> FlowStarts<'a> {
    /// The flows of a run that start at these hosts, `None` for all.
    pub fn new(flows: &'a [Flow], jobs: &Jobs, hosts: Option<Box<[bool]>>) -> FlowStarts<'a> {
        let mut starts = FlowStarts {
            flows,
            listed: jobs.listed(flows.len()),
            next: 0,
            driver: ClosedLoop::new(flows, jobs, hosts.as_deref()).map(Box::new),
            timers: BinaryHeap::new(),
            hosts,
        };
        starts.skip_others();
        starts
    }

    /// Passes over flows that start at other hosts.
    fn skip_others(&mut self) {
        let Some(hosts) = &self.hosts else { return };
        let listed = &self.flows[..self.listed];
        while listed.get(self.next).is_some_and(|flow| !hosts[flow.src.index()]) {
            self.next += 1;
        }
    }

    /// A flow whose own time has come.
    pub fn take_listed(&mut self, now: Time) -> Option<FlowIndex> {
        self.flows[..self.listed].get(self.next).filter(|flow| flow.start <= now)?;
        let flow = FlowIndex::at(self.next);
        self.next += 1;
        self.skip_others();
        Some(flow)
    }

    /// A flow whose time has come because of others.
    pub fn take_driven(&mut self, now: Time) -> Option<FlowIndex> {
        self.driver.as_mut()?.take(now)
    }

    /// A flow that wants to be asked.
    pub fn take_timer(&mut self, now: Time) -> Option<FlowIndex> {
        self.timers.peek().filter(|Reverse((time, _))| *time <= now)?;
        self.timers.pop().map(|Reverse((_, flow))| flow)
    }

    /// A flow wants to be asked at this time.
    pub fn ask_at(&mut self, time: Time, flow: FlowIndex) {
        self.timers.push(Reverse((time, flow)));
    }

    /// A flow starts.
    pub fn note_start(&mut self, flow: FlowIndex, now: Time) {
        if let Some(driver) = &mut self.driver {
            driver.on_start(flow, now);
        }
    }

    /// A flow is over, as far as `signal` says. True when others may have waited for that.
    pub fn note_over(&mut self, flow: FlowIndex, signal: Signal, now: Time) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        driver.on_finished(flow, signal, now);
        true
    }

    /// Returns whether anything in the run waits for a flow to be sent.
    #[inline]
    pub fn await_sending(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.awaits_sending())
    }

    /// Returns whether something waits for a flow to be sent.
    #[inline]
    pub fn awaits_sending(&self, flow: FlowIndex) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.is_unsent(flow))
    }

    /// Returns the start of the next flow that depends on nothing.
    pub fn next_listed(&self) -> Option<Time> {
        self.flows[..self.listed].get(self.next).map(|flow| flow.start)
    }

    /// Returns the start of the next flow, as far as it is known.
    pub fn next_start(&self) -> Option<Time> {
        let listed = self.next_listed();
        let driven = self.driver.as_ref().and_then(|driver| driver.next());
        listed.into_iter().chain(driven).min()
    }

    /// Returns the time of the next start or policy timer.
    pub fn next(&self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((time, _))| *time);
        self.next_start().into_iter().chain(timer).min()
    }

    /// Whether a flow has started.
    pub fn has_started(&self, flow: FlowIndex) -> bool {
        match flow.index() < self.listed {
            true => flow.index() < self.next,
            false => self.driver.as_ref().is_some_and(|driver| driver.has_started(flow)),
        }
    }

    /// Whether a flow belongs into the results: unless it waits for others, and has not started.
    pub fn counts(&self, flow: FlowIndex) -> bool {
        flow.index() < self.listed || self.has_started(flow)
    }

    /// Returns what is known of closed-loop traffic; none for open-loop traffic.
    pub fn into_driver(self) -> Option<Box<ClosedLoop>> {
        self.driver
    }

    /// Returns the records of the jobs that have begun.
    pub fn jobs(&self) -> Vec<JobRecord> {
        self.driver.as_ref().map_or_else(Vec::new, |driver| driver.records())
    }

    /// Returns the critical path of a job that has ended.
    pub fn critical_path(
        &self,
        job: Option<u32>,
        flow: &dyn Fn(FlowIndex) -> (Flow, Time),
    ) -> Option<CriticalPath> {
        self.driver.as_ref()?.critical_path(job?, flow)
    }

    /// Returns the jobs given as graphs that have not ended.
    pub fn unfinished(
        &self,
        state: &dyn Fn(FlowIndex) -> FlowState,
        end: &RunEnd,
    ) -> Vec<UnfinishedJob> {
        let driver = self.driver.as_ref();
        driver.map_or_else(Vec::new, |driver| driver.unfinished(self.flows, state, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;

    fn flows(starts: &[u64]) -> Vec<Flow> {
        let flow = |(id, us): (usize, &u64)| Flow {
            src: HostId(0),
            dst: HostId(1),
            bytes: 10,
            start: Time::from_us(*us),
            id: id as u64,
        };
        starts.iter().enumerate().map(flow).collect()
    }

    #[test]
    fn flows_start_in_order_when_their_times_come() {
        let flows = flows(&[5, 5, 8]);
        let mut starts = FlowStarts::new(&flows, &Jobs::default(), None);
        assert_eq!(
            (starts.next(), starts.take_listed(Time::from_us(4))),
            (Some(flows[0].start), None)
        );
        let due: Vec<_> = std::iter::from_fn(|| starts.take_listed(Time::from_us(5))).collect();
        assert_eq!(due, [FlowIndex(0), FlowIndex(1)]);
        assert_eq!(
            (starts.next(), starts.has_started(FlowIndex(2))),
            (Some(flows[2].start), false)
        );
        assert_eq!(starts.take_listed(Time::from_us(9)), Some(FlowIndex(2)));
        assert_eq!((starts.next(), starts.has_started(FlowIndex(2))), (None, true));
    }

    #[test]
    fn policy_timers_fire_in_order_of_time_then_flow() {
        let flows = flows(&[1]);
        let mut starts = FlowStarts::new(&flows, &Jobs::default(), None);
        starts.take_listed(Time::from_us(1));
        starts.ask_at(Time::from_us(7), FlowIndex(2));
        starts.ask_at(Time::from_us(7), FlowIndex(1));
        starts.ask_at(Time::from_us(3), FlowIndex(4));
        assert_eq!(starts.next(), Some(Time::from_us(3)));
        let due: Vec<_> = std::iter::from_fn(|| starts.take_timer(Time::from_us(7))).collect();
        assert_eq!(due, [FlowIndex(4), FlowIndex(1), FlowIndex(2)]);
        // Nothing starts by that.
        assert_eq!((starts.next(), starts.next_start()), (None, None));
    }

    #[test]
    fn open_loop_flows_have_no_dependents() {
        let flows = flows(&[1, 2]);
        let mut starts = FlowStarts::new(&flows, &Jobs::default(), None);
        starts.note_start(FlowIndex(0), Time::from_us(1));
        assert!(!starts.note_over(FlowIndex(0), Signal::Received, Time::from_us(2)));
        assert!(starts.counts(FlowIndex(1)) && starts.jobs().is_empty());
    }
}
