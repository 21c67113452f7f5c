//! A stopwatch for the threads of a run. No result depends on it.

use std::time::{Duration, Instant};

/// The wall time of one thread of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// The time in which it built its network and handled events.
    pub work: Duration,
    /// The time in which it waited for the other threads.
    pub waiting: Duration,
    /// The time in which it handed packets over and took them over, and searched for connections
    /// that are over.
    pub exchange: Duration,
}

/// Divides the time of a thread among what it does. Windows are timed, not events.
#[derive(Debug)]
pub(super) struct Stopwatch {
    began: Instant,
    lap: Instant,
    looked: Instant,
    times: ThreadTimes,
}

impl Stopwatch {
    /// Starts with the thread.
    pub fn start() -> Stopwatch {
        let now = now();
        Stopwatch { began: now, lap: now, looked: now, times: ThreadTimes::default() }
    }

    /// Ends a lap of work.
    pub fn worked(&mut self) {
        let lap = self.end_lap();
        self.times.work += lap;
    }

    /// Ends a lap of waiting.
    pub fn waited(&mut self) {
        let lap = self.end_lap();
        self.times.waiting += lap;
    }

    /// Ends a lap of exchange.
    pub fn exchanged(&mut self) {
        let lap = self.end_lap();
        self.times.exchange += lap;
    }

    fn end_lap(&mut self) -> Duration {
        let last = std::mem::replace(&mut self.lap, now());
        self.lap - last
    }

    /// Returns the time of the current lap's beginning, counted from the last look at the progress.
    pub fn since_look(&self) -> Duration {
        self.lap - self.looked
    }

    /// Notes a look at the progress.
    pub fn note_look(&mut self) {
        self.looked = self.lap;
    }

    /// Returns the times of the laps that have ended.
    pub fn times(&self) -> ThreadTimes {
        debug_assert_eq!(
            self.times.work + self.times.waiting + self.times.exchange,
            self.lap - self.began
        );
        self.times
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures threads, and reaches no result")]
fn now() -> Instant {
    Instant::now()
}
