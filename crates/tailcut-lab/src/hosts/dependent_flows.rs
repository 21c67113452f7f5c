//! The flows of a run that wait for others, as a host sees them: what it sees, whose turn it is then, and what other hosts have seen.

use std::io;
use std::os::fd::AsRawFd;

use tailcut_net::scenario::Scenario;
use tailcut_net::topology::HostId;
use tailcut_net::traffic::demand::Signal;

use super::release_pipes::ReleasePipes;
use crate::dependencies::{Dependencies, scheduled_flows};
use crate::hosts::host_flow::HostFlow;

/// Those flows, at one host.
pub struct DependentFlows<'a> {
    host: u32,
    /// None where no flow waits for others.
    waits: Option<Dependencies>,
    /// What hosts tell each other; none where no flow waits.
    turns: Option<&'a ReleasePipes>,
    /// In the order of their places among the flows of the run.
    flows: Vec<HostFlow>,
}

impl<'a> DependentFlows<'a> {
    /// Of all flows of a run, those that wait.
    pub fn new(
        host: u32,
        flows: &[HostFlow],
        scenario: &Scenario,
        turns: Option<&'a ReleasePipes>,
    ) -> DependentFlows<'a> {
        let waits = Dependencies::new(HostId(host), &scenario.flows, &scenario.jobs);
        DependentFlows { host, waits, turns, flows: flows[scheduled_flows(scenario)..].to_vec() }
    }

    /// Now it is known when the run begins.
    pub fn start(&mut self, begin_ns: u64) {
        if let Some(waits) = &mut self.waits {
            waits.start(begin_ns);
        }
    }

    /// Where there is something to read once other hosts have told of turns.
    pub fn releases(&self) -> Option<&'a impl AsRawFd> {
        self.turns.map(|turns| turns.read_end(self.host))
    }

    /// When it is a flow's turn next, as far as that is known here.
    pub fn next_ns(&self) -> Option<u64> {
        self.waits.as_ref().and_then(Dependencies::next_ns)
    }

    /// A flow is over since this time, as far as this host sees. True when others may have waited for that.
    pub fn on_finished(&mut self, flow: u64, signal: Signal, at_ns: u64) -> bool {
        let Some(waits) = &mut self.waits else { return false };
        waits.on_finished(flow, signal, at_ns);
        true
    }

    /// A flow whose turn this host sees and that is due by now, and since when. It may be another host's, which is to be told.
    pub fn due(&mut self, now_ns: u64) -> Option<(HostFlow, u64)> {
        let (flow, due_ns) = self.waits.as_mut()?.due(now_ns)?;
        Some((self.at(u64::from(flow.0))?, due_ns))
    }

    /// Tells the host that sends it that it is a flow's turn.
    ///
    /// # Errors
    /// The kernel's.
    pub fn release(&self, flow: HostFlow, due_ns: u64) -> io::Result<()> {
        self.turns.map_or(Ok(()), |turns| turns.send(flow.src, flow.index, due_ns))
    }

    /// Flows of this host whose turn others have seen, and since when.
    ///
    /// # Errors
    /// The kernel's.
    pub fn released(&self) -> io::Result<Vec<(HostFlow, u64)>> {
        let Some(turns) = self.turns else { return Ok(vec![]) };
        let heard = turns.receive(self.host)?.into_iter();
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

    /// Host 1 fetches from host 2 when it has had everything from host 0.
    fn at<'a>(host: u32, turns: &'a ReleasePipes) -> DependentFlows<'a> {
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
        DependentFlows { host, waits, turns: Some(turns), flows: vec![FETCH] }
    }

    #[test]
    fn the_deciding_host_releases_a_flow_at_its_sender() {
        let turns = ReleasePipes::new(3).expect("there are pipes");
        let (mut sees, sends) = (at(1, &turns), at(2, &turns));
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
        let mut none = DependentFlows { host: 0, waits: None, turns: None, flows: vec![] };
        assert!(!none.on_finished(0, Signal::Received, 5));
        assert_eq!((none.next_ns(), none.due(1_000_000_000)), (None, None));
        assert_eq!(none.released().expect("there is nothing to read"), []);
    }
}
