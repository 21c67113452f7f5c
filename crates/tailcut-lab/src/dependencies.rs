//! Flows that start when other flows finish. A host starts its own by what it observes itself:
//! bytes received, and its own bytes acknowledged.

use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::HostId;
use tailcut_net::traffic::closed_loop::ClosedLoop;
use tailcut_net::traffic::demand::{Dependent, Jobs, NONE, Signal};
use tailcut_net::traffic::{Flow, FlowIndex};

/// Returns the number of flows that start at scheduled times; they come first in the list.
pub fn scheduled_flows(scenario: &Scenario) -> usize {
    match scenario.jobs.is_empty() {
        true => scenario.flows.len(),
        false => scenario.jobs.independent,
    }
}

/// Returns, for each dependent flow, the host that can decide when it may start: the one that
/// observes the end of its predecessors, as receiver or as sender, and the size of its pool. That
/// host starts the flow, or notifies the sender's host.
///
/// # Errors
/// The first flow whose end only another host than the decider can observe.
pub fn deciders(flows: &[Flow], jobs: &Jobs) -> Result<Vec<Option<HostId>>, FlowIndex> {
    let sees = |flow: &Flow, on| match on {
        Signal::Received => flow.dst,
        Signal::Sent | Signal::Acknowledged => flow.src,
    };
    let mut of_flows: Vec<Option<HostId>> = vec![None; flows.len()];
    let mut of_pools: Vec<Option<HostId>> = vec![None; jobs.pools.len()];
    let pool_of = |flow: FlowIndex| jobs.rules.get(flow.index()).map_or(NONE, |rule| rule.pool);
    let mut note = |to: Dependent, host: HostId| {
        let known = match to {
            Dependent::Flow(flow) if pool_of(flow) == NONE => &mut of_flows[flow.index()],
            Dependent::Flow(flow) => &mut of_pools[pool_of(flow) as usize],
            Dependent::Pool(pool) => &mut of_pools[pool as usize],
            Dependent::Computation(_) => return true,
        };
        *known.get_or_insert(host) == host
    };
    for edge in &jobs.edges {
        if !note(edge.to, sees(&flows[edge.from.index()], edge.on)) {
            return Err(edge.from);
        }
    }
    for (at, rule) in jobs.rules.iter().enumerate().filter(|(_, rule)| rule.pool != NONE) {
        let host = sees(&flows[at], jobs.pools[rule.pool as usize].on);
        if !note(Dependent::Pool(rule.pool), host) {
            return Err(FlowIndex::at(at));
        }
    }
    for (at, rule) in jobs.rules.iter().enumerate().filter(|(_, rule)| rule.pool != NONE) {
        of_flows[at] = of_pools[rule.pool as usize];
    }
    Ok(of_flows)
}

/// Dependencies between the flows of a run, as one host observes them.
pub struct Dependencies {
    host: HostId,
    driver: ClosedLoop,
    deciders: Vec<Option<HostId>>,
    begin_ns: u64,
}

impl Dependencies {
    /// Creates the dependencies; none if no flow depends on another, or if some flow depends on
    /// events at two hosts.
    pub fn new(host: HostId, flows: &[Flow], jobs: &Jobs) -> Option<Dependencies> {
        let driver = ClosedLoop::new(flows, jobs, None)?;
        let deciders = deciders(flows, jobs).ok()?;
        Some(Dependencies { host, driver, deciders, begin_ns: 0 })
    }

    /// Sets the start of the run, on the monotonic clock.
    pub fn start(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// Records that a flow finished at `at_ns` (monotonic), in the sense of `signal`.
    pub fn on_finished(&mut self, flow: u64, signal: Signal, at_ns: u64) {
        let at = Time::from_ns(at_ns.saturating_sub(self.begin_ns));
        self.driver.on_finished(FlowIndex(flow as u32), signal, at);
    }

    /// Returns when the next flow is due (monotonic), whichever host decides about it.
    pub fn next_ns(&self) -> Option<u64> {
        self.driver.next().map(|next| self.begin_ns + next.as_ns())
    }

    /// Returns a flow that is due by now and about which this host decides, and when it was due.
    pub fn due(&mut self, now_ns: u64) -> Option<(FlowIndex, u64)> {
        let now = Time::from_ns(now_ns.checked_sub(self.begin_ns)?);
        loop {
            let due_ns = self.next_ns()?;
            let flow = self.driver.take(now)?;
            if self.deciders[flow.index()] == Some(self.host) {
                return Some((flow, due_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_net::traffic::demand::{Dependency, FlowPool, StartRule};

    fn flow(src: u32, dst: u32) -> Flow {
        Flow { src: HostId(src), dst: HostId(dst), bytes: 10, start: Time::ZERO, id: 0 }
    }

    /// Returns a flow from host 0 to host 1, and one that depends on it.
    fn two(second: Flow, on: Signal) -> ([Flow; 2], Jobs) {
        let rule = StartRule { job: NONE, pool: NONE, delay: Time::from_us(3) };
        let edge = Dependency { from: FlowIndex(0), on, to: Dependent::Flow(FlowIndex(1)) };
        let jobs =
            Jobs { rules: vec![rule; 2], edges: vec![edge], independent: 1, ..Jobs::default() };
        ([flow(0, 1), second], jobs)
    }

    #[test]
    fn the_host_that_observes_the_end_of_a_flow_decides_about_its_dependents() {
        let decider = |second, on| {
            let (flows, jobs) = two(second, on);
            deciders(&flows, &jobs).map(|of| of[1].map(|host| host.0))
        };
        assert_eq!(decider(flow(1, 0), Signal::Received), Ok(Some(1)), "a response");
        assert_eq!(
            decider(flow(0, 2), Signal::Acknowledged),
            Ok(Some(0)),
            "a transfer's next flow"
        );
        assert_eq!(decider(flow(2, 1), Signal::Received), Ok(Some(1)), "a fetch");
        let (flows, mut jobs) = two(flow(2, 1), Signal::Received);
        let both = Dependency { on: Signal::Acknowledged, ..jobs.edges[0] };
        jobs.edges.push(both);
        assert_eq!(deciders(&flows, &jobs), Err(FlowIndex(0)), "two hosts see one half each");
    }

    #[test]
    fn the_host_at_which_all_flows_of_a_pool_end_decides_about_it() {
        let decider = |second, on| {
            let pool = FlowPool { opens: Time::ZERO, at_once: 1, on };
            let rule = StartRule { job: NONE, pool: 0, delay: Time::ZERO };
            let jobs = Jobs { rules: vec![rule; 2], pools: vec![pool], ..Jobs::default() };
            deciders(&[flow(0, 1), second], &jobs).map(|of| of[1].map(|host| host.0))
        };
        assert_eq!(decider(flow(0, 2), Signal::Acknowledged), Ok(Some(0)));
        assert_eq!(decider(flow(3, 1), Signal::Received), Ok(Some(1)), "fetches of one host");
        assert_eq!(decider(flow(3, 1), Signal::Acknowledged), Err(FlowIndex(1)));
        assert_eq!(decider(flow(0, 2), Signal::Received), Err(FlowIndex(1)));
    }

    #[test]
    fn a_flow_is_due_its_delay_after_its_predecessor_finished() {
        let (flows, jobs) = two(flow(1, 0), Signal::Received);
        let waits = |host| {
            let mut waits = Dependencies::new(HostId(host), &flows, &jobs).expect("one waits");
            waits.start(1_000_000);
            waits
        };
        let mut own = waits(1);
        assert_eq!(own.next_ns(), None);
        own.on_finished(0, Signal::Acknowledged, 1_500_000);
        assert_eq!(own.next_ns(), None, "it waits for the receipt");
        own.on_finished(0, Signal::Received, 1_600_000);
        assert_eq!(own.next_ns(), Some(1_603_000));
        assert_eq!((own.due(10), own.due(1_602_999)), (None, None));
        assert_eq!(own.due(1_700_000), Some((FlowIndex(1), 1_603_000)));
        assert_eq!((own.due(1_700_000), own.next_ns()), (None, None));
        let mut other = waits(0);
        other.on_finished(0, Signal::Received, 1_600_000);
        assert_eq!(other.due(1_700_000), None, "another host decides");
    }
}
