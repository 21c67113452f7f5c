//! Moments: the order of events in a run on one thread.

use tailcut_engine::Time;

/// The place of an event among all events of a run: its time, then its order at that instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub time: Time,
    pub order: u64,
}

impl Moment {
    /// Before anything happens.
    pub const START: Moment = Moment { time: Time::ZERO, order: 0 };
}
