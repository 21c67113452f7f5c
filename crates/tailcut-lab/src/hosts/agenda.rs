//! What a host does at given times: it begins its flows, and notes how far those of others are when the arrivals end.

use super::driver::{HostFlow, Times};

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The flow at this place of the host's list begins.
    Begin(usize),
    /// The arrivals have ended.
    Note,
}

/// A host's flows in their order, and how far it is.
#[derive(Debug, Clone)]
pub struct Agenda {
    flows: Vec<HostFlow>,
    begun: usize,
    noted: bool,
    times: Times,
}

impl Agenda {
    /// Of these flows, in the order of their starts.
    pub fn new(flows: Vec<HostFlow>) -> Agenda {
        Agenda { flows, begun: 0, noted: false, times: Times { begin_ns: 0, arrivals_ns: 0 } }
    }

    /// Now it is known when the run begins.
    pub fn set(&mut self, times: Times) {
        self.times = times;
    }

    /// The flow at a place of the list.
    pub fn flow(&self, at: usize) -> HostFlow {
        self.flows[at]
    }

    /// Whether the end of the arrivals has been due.
    pub fn noted(&self) -> bool {
        self.noted
    }

    /// When something is due next, by the monotonic clock.
    pub fn next_ns(&self) -> Option<u64> {
        let start = self.flows.get(self.begun).map(|flow| flow.start_ns);
        let note = (!self.noted).then_some(self.times.arrivals_ns);
        start.into_iter().chain(note).min().map(|next| self.times.begin_ns + next)
    }

    /// The next that is due by now, if anything is.
    pub fn due(&mut self, now_ns: u64) -> Option<Due> {
        if self.next_ns().is_none_or(|next| next > now_ns) {
            return None;
        }
        let start = self.flows.get(self.begun).map(|flow| flow.start_ns);
        if start.is_some_and(|start| self.noted || start <= self.times.arrivals_ns) {
            self.begun += 1;
            return Some(Due::Begin(self.begun - 1));
        }
        self.noted = true;
        Some(Due::Note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_due_once_at_its_time_and_in_its_order() {
        let flow = |start_ns| HostFlow { start_ns, ..HostFlow::default() };
        let mut agenda = Agenda::new(vec![flow(10), flow(20), flow(90)]);
        agenda.set(Times { begin_ns: 1_000, arrivals_ns: 50 });
        assert_eq!((agenda.next_ns(), agenda.due(1_009)), (Some(1_010), None));
        assert_eq!(agenda.due(1_010), Some(Due::Begin(0)));
        assert_eq!((agenda.due(1_019), agenda.noted()), (None, false));
        let rest: Vec<Due> = std::iter::from_fn(|| agenda.due(2_000)).collect();
        assert_eq!(rest, [Due::Begin(1), Due::Note, Due::Begin(2)]);
        assert_eq!((agenda.next_ns(), agenda.noted()), (None, true));
    }
}
