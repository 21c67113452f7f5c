//! Events at which flows start or policies are woken, of which one thread has one for all partitions.

use tailcut_engine::Time;

use super::moment::Moment;

/// The events of this kind in one partition, but for those that begin with a flow's own start.
///
/// One thread has one such event for all that is due when its turn comes at an instant, and one
/// more for each later event of the instant by which something falls due.
#[derive(Debug, Clone, Default)]
pub(super) struct Wakings {
    /// The time of each event that other partitions may share, and how many of its instant came
    /// before it without a break.
    shared: Vec<(Time, u32)>,
    /// The events that no other partition shares.
    own: u64,
    /// The last event: its time, its number without a break, and whether others may share it.
    last: Option<(Time, u32, bool)>,
}

impl Wakings {
    /// Notes such an event, which comes at this moment, after one at another; `is_listed`: a flow
    /// starts by it at its own time.
    pub fn note(&mut self, moment: Moment, after: Moment, is_listed: bool) {
        let again = after == moment;
        let (number, shared) = match self.last.filter(|_| again) {
            Some((_, number, shared)) => (number + 1, shared),
            None => (0, after.time < moment.time || after.order < moment.order),
        };
        self.last = Some((moment.time, number, shared));
        match shared {
            true if is_listed && number == 0 => {}
            true => self.shared.push((moment.time, number)),
            false => self.own += 1,
        }
    }

    /// Returns the number of events in all partitions together. At each of `starts` there is one
    /// without their help.
    pub fn count<'w>(
        all: impl Iterator<Item = &'w Wakings>,
        starts: impl Iterator<Item = Time>,
    ) -> u64 {
        let mut shared: Vec<(Time, u32)> = starts.map(|start| (start, 0)).collect();
        let mut own = 0;
        for one in all {
            shared.extend(&one.shared);
            own += one.own;
        }
        shared.sort_unstable();
        shared.dedup();
        shared.len() as u64 + own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of these events, of what comes before, and of what comes after them.
    const ARRIVAL: u64 = 1;
    const OURS: u64 = 5;
    const TIMER: u64 = 9;

    fn at(time: u64, order: u64) -> Moment {
        Moment { time: Time(time), order }
    }

    /// Notes events at time 7, each behind one at the moment beside it.
    fn noted(after: &[Moment]) -> Wakings {
        let mut wakings = Wakings::default();
        after.iter().for_each(|after| wakings.note(at(7, OURS), *after, false));
        wakings
    }

    #[test]
    fn what_is_due_at_one_instant_is_one_event_in_all_partitions() {
        let (one, other) = (noted(&[at(6, TIMER)]), noted(&[at(7, ARRIVAL), at(7, OURS)]));
        let count = |starts: &[u64]| {
            Wakings::count([&one, &other].into_iter(), starts.iter().copied().map(Time))
        };
        assert_eq!(count(&[]), 2, "the second of the other one comes behind the first");
        assert_eq!(count(&[3, 3, 7]), 3, "a flow starts then, too");
    }

    #[test]
    fn what_falls_due_by_a_later_event_of_the_instant_is_an_event_of_one_partition() {
        let [one, other] = [(); 2].map(|()| noted(&[at(7, TIMER), at(7, OURS)]));
        assert_eq!(Wakings::count([&one, &other].into_iter(), [Time(7)].into_iter()), 5);
    }

    #[test]
    fn a_flow_that_starts_at_its_own_time_is_not_counted_twice() {
        let mut wakings = Wakings::default();
        wakings.note(at(7, OURS), at(6, TIMER), true);
        assert_eq!(Wakings::count([&wakings].into_iter(), [Time(7)].into_iter()), 1);
    }
}
