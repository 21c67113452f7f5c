//! Dependent flows of a run at one host: those about which it decides, and those that other hosts
//! release.

use std::io;
use std::os::fd::AsRawFd;

use tailcut_net::scenario::Scenario;
use tailcut_net::topology::HostId;
use tailcut_net::traffic::demand::Signal;

use super::release_pipes::ReleasePipes;
use crate::dependencies::{Dependencies, scheduled_flows};
use crate::hosts::host_flow::HostFlow;

/// The dependent flows of a run, as one host handles them.
pub struct DependentFlows<'a> {
    host: u32,
    /// The dependencies; none if no flow depends on another.
    dependencies: Option<Dependencies>,
    /// The pipes between hosts; none if no flow depends on another.
    pipes: Option<&'a ReleasePipes>,
    /// The dependent flows, in the order of their indices.
    flows: Vec<HostFlow>,
}

impl<'a> DependentFlows<'a> {
    /// Selects the dependent flows among all flows of a run.
    pub fn new(
        host: u32,
        flows: &[HostFlow],
        scenario: &Scenario,
        pipes: Option<&'a ReleasePipes>,
    ) -> DependentFlows<'a> {
        let waits = Dependencies::new(HostId(host), &scenario.flows, &scenario.jobs);
        DependentFlows {
            host,
            dependencies: waits,
            pipes,
            flows: flows[scheduled_flows(scenario)..].to_vec(),
        }
    }

    /// Sets the start of the run, on the monotonic clock.
    pub fn start(&mut self, begin_ns: u64) {
        if let Some(waits) = &mut self.dependencies {
            waits.start(begin_ns);
        }
    }

    /// Returns the descriptor that is readable when other hosts have released flows, if any can.
    pub fn releases(&self) -> Option<&'a impl AsRawFd> {
        self.pipes.map(|pipes| pipes.read_end(self.host))
    }

    /// Returns when the next flow is due (monotonic), as far as this host knows.
    pub fn next_ns(&self) -> Option<u64> {
        self.dependencies.as_ref().and_then(Dependencies::next_ns)
    }

    /// Records that a flow finished at `at_ns`, as this host observes. Returns true if other flows
    /// may depend on it.
    pub fn on_finished(&mut self, flow: u64, signal: Signal, at_ns: u64) -> bool {
        let Some(waits) = &mut self.dependencies else { return false };
        waits.on_finished(flow, signal, at_ns);
        true
    }

    /// Returns a flow that is due by now and about which this host decides, and when it was due. If
    /// another host sends the flow, it must be released there.
    pub fn due(&mut self, now_ns: u64) -> Option<(HostFlow, u64)> {
        let (flow, due_ns) = self.dependencies.as_mut()?.due(now_ns)?;
        Some((self.at(u64::from(flow.0))?, due_ns))
    }

    /// Releases a flow at the host that sends it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn release(&self, flow: HostFlow, due_ns: u64) -> io::Result<()> {
        self.pipes.map_or(Ok(()), |pipes| pipes.send(flow.src, flow.index, due_ns))
    }

    /// Returns the flows of this host that others have released, and when each was due.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn released(&self) -> io::Result<Vec<(HostFlow, u64)>> {
        let Some(pipes) = self.pipes else { return Ok(vec![]) };
        let heard = pipes.receive(self.host)?.into_iter();
        Ok(heard.filter_map(|(index, due_ns)| Some((self.at(index)?, due_ns))).collect())
    }

    fn at(&self, index: u64) -> Option<HostFlow> {
        let place = index.checked_sub(self.flows.first()?.index)?;
        self.flows.get(place as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_engine::Time;
    use tailcut_net::traffic::demand::{Dependency, Dependent, Jobs, NONE, StartRule};
    use tailcut_net::traffic::{Flow, FlowIndex};

    const FETCH: HostFlow =
        HostFlow { index: 1, src: 2, dst: 1, bytes: 10, start_ns: 0, source_port: 1_025 };

    /// Returns the flows of a host in a run in which host 1 fetches from host 2 once it has
    /// received everything from host 0.
    fn at<'a>(host: u32, pipes: &'a ReleasePipes) -> DependentFlows<'a> {
        let flow =
            |src| Flow { src: HostId(src), dst: HostId(1), bytes: 10, start: Time::ZERO, id: 0 };
        let rule = StartRule { job: NONE, pool: NONE, delay: Time::from_us(3) };
        let edge = Dependency {
            from: FlowIndex(0),
            on: Signal::Received,
            to: Dependent::Flow(FlowIndex(FETCH.index as u32)),
        };
        let jobs =
            Jobs { rules: vec![rule; 2], edges: vec![edge], independent: 1, ..Jobs::default() };
        let waits = Dependencies::new(HostId(host), &[flow(0), flow(2)], &jobs);
        DependentFlows { host, dependencies: waits, pipes: Some(pipes), flows: vec![FETCH] }
    }

    #[test]
    fn the_deciding_host_releases_a_flow_at_its_sender() {
        let pipes = ReleasePipes::new(3).expect("there are pipes");
        let (mut sees, sends) = (at(1, &pipes), at(2, &pipes));
        sees.start(1_000);
        assert_eq!((sees.next_ns(), sees.due(1_000_000_000)), (None, None));
        assert!(sees.on_finished(0, Signal::Received, 5_000), "others may wait");
        assert_eq!((sees.next_ns(), sees.due(7_999)), (Some(8_000), None));
        let (flow, due_ns) = sees.due(8_500).expect("it is its turn");
        assert_eq!((flow, due_ns), (FETCH, 8_000));
        sees.release(flow, due_ns).expect("there is room");
        assert_eq!(sends.released().expect("it is told"), [(FETCH, 8_000)]);
    }

    #[test]
    fn without_dependent_flows_nothing_is_due() {
        let mut none = DependentFlows { host: 0, dependencies: None, pipes: None, flows: vec![] };
        assert!(!none.on_finished(0, Signal::Received, 5));
        assert_eq!((none.next_ns(), none.due(1_000_000_000)), (None, None));
        assert_eq!(none.released().expect("there is nothing to read"), []);
    }
}
