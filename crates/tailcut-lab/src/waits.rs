//! Flows that wait for others. Each host starts its own, by what it sees itself: what it has received, and which of what it sent is
//! acknowledged.

use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
use tailcut_net::traffic::demand::{Jobs, Signal, Waiting, NONE};
use tailcut_net::traffic::driver::Driver;
use tailcut_net::traffic::{Flow, FlowIndex};

/// How many of a run's flows start at times of their own; they come first.
pub fn listed(scenario: &Scenario) -> usize {
    match scenario.jobs.is_empty() {
        true => scenario.flows.len(),
        false => scenario.jobs.listed,
    }
}

/// A flow that waits for what the host that sends it does not see, if there is one.
pub fn waits_elsewhere(flows: &[Flow], jobs: &Jobs) -> Option<FlowIndex> {
    let sees = |flow: &Flow, on| match on {
        Signal::Received => flow.dst,
        Signal::Acknowledged => flow.src,
    };
    // Of each pool the host that starts its flows.
    let mut starter: Vec<Option<u32>> = vec![None; jobs.pools.len()];
    for (at, rule) in jobs.rules.iter().enumerate().filter(|(_, rule)| rule.pool != NONE) {
        let flow = &flows[at];
        let on = jobs.pools[rule.pool as usize].on;
        if *starter[rule.pool as usize].get_or_insert(flow.src) != flow.src
            || sees(flow, on) != flow.src
        {
            return Some(FlowIndex::at(at));
        }
    }
    let elsewhere = jobs.edges.iter().find(|edge| {
        let starts = match edge.to {
            Waiting::Flow(flow) => Some(flows[flow.index()].src),
            Waiting::Pool(pool) => starter[pool as usize],
        };
        starts.is_some_and(|host| host != sees(&flows[edge.from.index()], edge.on))
    });
    elsewhere.map(|edge| edge.from)
}

/// What a host's flows wait for, and those that are due.
pub struct Waits {
    driver: Driver,
    begin_ns: u64,
}

impl Waits {
    /// None where no flow waits.
    pub fn new(scenario: &Scenario) -> Option<Waits> {
        let driver = Driver::new(&scenario.flows, &scenario.jobs)?;
        Some(Waits { driver, begin_ns: 0 })
    }

    /// Now it is known when the run begins.
    pub fn set(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// A flow of this run is over, as far as `signal` says, since this time of the monotonic clock.
    pub fn note(&mut self, flow: u64, signal: Signal, at_ns: u64) {
        let at = Time::from_ns(at_ns.saturating_sub(self.begin_ns));
        self.driver.on_finished(FlowIndex(flow as u32), signal, at);
    }

    /// When a flow is due next, by the monotonic clock; it may be another host's.
    pub fn next_ns(&self) -> Option<u64> {
        self.driver.next().map(|next| self.begin_ns + next.as_ns())
    }

    /// A flow that is due by now, and since when; it may be another host's.
    pub fn due(&mut self, now_ns: u64) -> Option<(FlowIndex, u64)> {
        let due_ns = self.next_ns()?;
        let now = Time::from_ns(now_ns.checked_sub(self.begin_ns)?);
        self.driver.take(now).map(|flow| (flow, due_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_net::traffic::demand::{Edge, Pool, Rule};

    fn flow(src: u32, dst: u32) -> Flow {
        Flow { src, dst, bytes: 10, start: Time::ZERO, id: 0 }
    }

    /// A flow from 0 to 1, and one that waits for it.
    fn two(second: Flow, on: Signal) -> ([Flow; 2], Jobs) {
        let rule = Rule { job: NONE, pool: NONE, delay: Time::from_us(3) };
        let edge = Edge { from: FlowIndex(0), on, to: Waiting::Flow(FlowIndex(1)) };
        let jobs = Jobs { rules: vec![rule; 2], edges: vec![edge], listed: 1, ..Jobs::default() };
        ([flow(0, 1), second], jobs)
    }

    #[test]
    fn a_sender_sees_what_it_has_received_and_what_of_its_own_is_acknowledged() {
        let elsewhere = |second, on| {
            let (flows, jobs) = two(second, on);
            waits_elsewhere(&flows, &jobs)
        };
        assert_eq!(elsewhere(flow(1, 0), Signal::Received), None, "a response");
        assert_eq!(elsewhere(flow(0, 2), Signal::Acknowledged), None, "a transfer's next flow");
        assert_eq!(elsewhere(flow(2, 1), Signal::Received), Some(FlowIndex(0)), "a fetch");
        assert_eq!(elsewhere(flow(1, 0), Signal::Acknowledged), Some(FlowIndex(0)));
    }

    #[test]
    fn flows_of_a_pool_start_at_one_host_that_sees_them_end() {
        let elsewhere = |second, on| {
            let opens = Time::ZERO;
            let pool = Pool { opens, at_once: 1, on };
            let rule = Rule { job: NONE, pool: 0, delay: Time::ZERO };
            let jobs = Jobs { rules: vec![rule; 2], pools: vec![pool], ..Jobs::default() };
            waits_elsewhere(&[flow(0, 1), second], &jobs)
        };
        assert_eq!(elsewhere(flow(0, 2), Signal::Acknowledged), None);
        assert_eq!(elsewhere(flow(3, 1), Signal::Acknowledged), Some(FlowIndex(1)));
        assert_eq!(elsewhere(flow(0, 2), Signal::Received), Some(FlowIndex(0)));
    }

    #[test]
    fn a_flow_is_due_its_delay_after_what_it_waits_for() {
        let (flows, jobs) = two(flow(1, 0), Signal::Received);
        let driver = Driver::new(&flows, &jobs).expect("one waits");
        let mut waits = Waits { driver, begin_ns: 0 };
        waits.set(1_000_000);
        assert_eq!(waits.next_ns(), None);
        waits.note(0, Signal::Acknowledged, 1_500_000);
        assert_eq!(waits.next_ns(), None, "it waits for the receipt");
        waits.note(0, Signal::Received, 1_600_000);
        assert_eq!(waits.next_ns(), Some(1_603_000));
        assert_eq!((waits.due(10), waits.due(1_602_999)), (None, None));
        assert_eq!(waits.due(1_700_000), Some((FlowIndex(1), 1_603_000)));
        assert_eq!((waits.due(1_700_000), waits.next_ns()), (None, None));
    }
}
