//! The schedule of a host: when its flows start, and when the arrivals end.

use crate::hosts::host_flow::HostFlow;
use crate::messages::RunTimes;

/// An entry of the schedule that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The flow at this place of the host's list starts.
    Begin(usize),
    /// The arrivals end: receivers count the bytes read by then.
    EndArrivals,
}

/// A host's flows in order of their starts, and the next one.
#[derive(Debug, Clone)]
pub struct FlowAgenda {
    flows: Vec<HostFlow>,
    begun: usize,
    arrivals_ended: bool,
    times: RunTimes,
    ahead_ns: u64,
}

impl FlowAgenda {
    /// Creates the schedule of these flows, which are in order of their starts.
    pub fn new(flows: Vec<HostFlow>) -> FlowAgenda {
        let times = RunTimes { begin_ns: 0, arrivals_ns: 0 };
        FlowAgenda { flows, begun: 0, arrivals_ended: false, times, ahead_ns: 0 }
    }

    /// Makes flows due `ahead_ns` early, for a caller that does the final precise wait itself. The
    /// end of arrivals is not shifted.
    pub fn ahead(self, ahead_ns: u64) -> FlowAgenda {
        FlowAgenda { ahead_ns, ..self }
    }

    /// Sets the start of the run and the end of arrivals.
    pub fn start(&mut self, times: RunTimes) {
        self.times = times;
    }

    /// Returns the flow at a place of the list.
    pub fn flow(&self, at: usize) -> HostFlow {
        self.flows[at]
    }

    /// Whether the end of arrivals has been due.
    pub fn arrivals_ended(&self) -> bool {
        self.arrivals_ended
    }

    /// Returns when a flow starts, on the monotonic clock.
    pub fn begins_ns(&self, flow: HostFlow) -> u64 {
        self.times.begin_ns + flow.start_ns
    }

    /// Returns when the next entry is due, on the monotonic clock.
    pub fn next_ns(&self) -> Option<u64> {
        self.next().map(|(next, _)| self.times.begin_ns + next)
    }

    /// Returns the next entry that is due by now, if any, and removes it.
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

    /// Returns the next entry, and when it is due after the start of the run.
    fn next(&self) -> Option<(u64, Due)> {
        let start = self.flows.get(self.begun).map(|flow| flow.start_ns);
        // Flows that start after the end of arrivals do not delay it.
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
