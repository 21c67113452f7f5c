//! Lateness of events: a histogram in steps of 10 us.

use serde::{Deserialize, Serialize};

const STEP_NS: u64 = 10_000;
const STEPS: usize = 10_000;

/// A histogram of lateness; values beyond 100 ms count as 100 ms.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// The number of events late by n to n + 1 steps of 10 us, up to the latest.
    counts: Vec<u64>,
    /// The longest lateness in nanoseconds.
    longest_ns: u64,
}

impl FromIterator<u64> for Lateness {
    fn from_iter<T: IntoIterator<Item = u64>>(all_ns: T) -> Lateness {
        let mut lateness = Lateness::default();
        all_ns.into_iter().for_each(|ns| lateness.add(ns));
        lateness
    }
}

impl Lateness {
    /// Adds the lateness of one event in nanoseconds.
    pub fn add(&mut self, ns: u64) {
        let step = ((ns / STEP_NS) as usize).min(STEPS - 1);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// The number of events.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest lateness in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Returns the lateness that a share of the events does not exceed, in nanoseconds, rounded up
    /// to the next step.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut sum = 0;
        for (step, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum >= wanted && sum > 0 {
                return ((step as u64 + 1) * STEP_NS).min(self.longest_ns);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_rounded_up_to_the_next_step() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.quantile_ns(0.5), lateness.count()), (0, 0));
        for us in 1..=100 {
            lateness.add(us * 1_000);
        }
        assert_eq!(lateness.quantile_ns(0.5), 60_000); // 50 us lies in the step that ends at 60 us
        assert_eq!(lateness.quantile_ns(1.0), 100_000);
        lateness.add(10_000_000_000);
        assert_eq!((lateness.longest_ns(), lateness.count()), (10_000_000_000, 101));
    }
}
