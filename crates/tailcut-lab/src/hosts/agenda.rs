//! What a host does at given times: it begins its flows, and notes how far those of others are when the arrivals end.

use crate::hosts::host_flow::HostFlow;
use crate::messages::RunTimes;

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The flow at this place of the host's list begins.
    Begin(usize),
    /// The arrivals have ended.
    EndArrivals,
}

/// A host's flows in their order, and how far it is.
#[derive(Debug, Clone)]
pub struct FlowAgenda {
    flows: Vec<HostFlow>,
    begun: usize,
    arrivals_ended: bool,
    times: RunTimes,
    ahead_ns: u64,
}

impl FlowAgenda {
    /// Of these flows, in the order of their starts.
    pub fn new(flows: Vec<HostFlow>) -> FlowAgenda {
        let times = RunTimes { begin_ns: 0, arrivals_ns: 0 };
        FlowAgenda { flows, begun: 0, arrivals_ended: false, times, ahead_ns: 0 }
    }

    /// Flows are due so much before they begin, for whoever waits for the last of it himself; the end of the arrivals is not.
    pub fn ahead(self, ahead_ns: u64) -> FlowAgenda {
        FlowAgenda { ahead_ns, ..self }
    }

    /// Now it is known when the run begins.
    pub fn start(&mut self, times: RunTimes) {
        self.times = times;
    }

    /// The flow at a place of the list.
    pub fn flow(&self, at: usize) -> HostFlow {
        self.flows[at]
    }

    /// Whether the end of the arrivals has been due.
    pub fn arrivals_ended(&self) -> bool {
        self.arrivals_ended
    }

    /// When a flow begins, by the monotonic clock.
    pub fn begins_ns(&self, flow: HostFlow) -> u64 {
        self.times.begin_ns + flow.start_ns
    }

    /// When something is due next, by the monotonic clock.
    pub fn next_ns(&self) -> Option<u64> {
        self.next().map(|(next, _)| self.times.begin_ns + next)
    }

    /// The next that is due by now, if anything is.
    pub fn due(&mut self, now_ns: u64) -> Option<Due> {
        let (next, due) = self.next()?;
        if self.times.begin_ns + next > now_ns {
            return None;
        }
        match due {
            Due::Begin(_) => self.begun += 1,
            Due::EndArrivals => self.arrivals_ended = true,
        }
        Some(due)
    }

    /// What comes next, and when, since the run has begun.
    fn next(&self) -> Option<(u64, Due)> {
        let start = self.flows.get(self.begun).map(|flow| flow.start_ns);
        // What begins after the arrivals have ended does not hold up their end.
        match start.filter(|&start| self.arrivals_ended || start <= self.times.arrivals_ns) {
            Some(start) => Some((start.saturating_sub(self.ahead_ns), Due::Begin(self.begun))),
            None if self.arrivals_ended => None,
            None => Some((self.times.arrivals_ns, Due::EndArrivals)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_due_once_at_its_time_and_in_order() {
        let flow = |start_ns| HostFlow { start_ns, ..HostFlow::default() };
        let mut agenda = FlowAgenda::new(vec![flow(10), flow(20), flow(90)]);
        agenda.start(RunTimes { begin_ns: 1_000, arrivals_ns: 50 });
        assert_eq!((agenda.next_ns(), agenda.due(1_009)), (Some(1_010), None));
        assert_eq!(agenda.due(1_010), Some(Due::Begin(0)));
        assert_eq!((agenda.due(1_019), agenda.arrivals_ended()), (None, false));
        let rest: Vec<Due> = std::iter::from_fn(|| agenda.due(2_000)).collect();
        assert_eq!(rest, [Due::Begin(1), Due::EndArrivals, Due::Begin(2)]);
        assert_eq!((agenda.next_ns(), agenda.arrivals_ended()), (None, true));
    }

    #[test]
    fn flows_are_due_early_and_the_end_of_arrivals_is_not() {
        let flow = |start_ns| HostFlow { start_ns, ..HostFlow::default() };
        let mut agenda = FlowAgenda::new(vec![flow(3), flow(49), flow(51)]).ahead(10);
        agenda.start(RunTimes { begin_ns: 1_000, arrivals_ns: 50 });
        let mut told = vec![];
        for now_ns in 990..1_060 {
            told.extend(std::iter::from_fn(|| agenda.due(now_ns)).map(|due| (now_ns, due)));
        }
        let [first, second, note, third] = [
            (1_000, Due::Begin(0)),
            (1_039, Due::Begin(1)),
            (1_050, Due::EndArrivals),
            (1_050, Due::Begin(2)),
        ];
        assert_eq!(told, [first, second, note, third]);
        assert_eq!(agenda.begins_ns(flow(3)), 1_003);
    }
}
