//! The largest value of the last rounds; older values do not count.

use std::collections::VecDeque;

/// A maximum over the last rounds.
#[derive(Debug, Clone)]
pub(super) struct WindowedMax {
    rounds: u64,
    /// Round and value, each value smaller than the one before: all others were exceeded later.
    kept: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Creates a maximum over `rounds` rounds before the current one.
    pub fn new(rounds: u64) -> WindowedMax {
        WindowedMax { rounds, kept: VecDeque::new() }
    }

    /// Returns the largest value; 0 before the first.
    pub fn get(&self) -> f64 {
        self.kept.front().map_or(0.0, |(_, value)| *value)
    }

    /// Adds a value of this round, and removes values that are too old.
    pub fn update(&mut self, round: u64, value: f64) {
        while self.kept.back().is_some_and(|(_, last)| *last <= value) {
            self.kept.pop_back();
        }
        if self.kept.back().is_none_or(|(last, _)| *last != round) {
            self.kept.push_back((round, value));
        }
        while self.kept.front().is_some_and(|(first, _)| first + self.rounds < round) {
            self.kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_stays_for_so_many_rounds_and_the_next_takes_its_place() {
        let mut largest = WindowedMax::new(3);
        let values = [5.0, 9.0, 2.0, 4.0, 3.0, 1.0, 1.0, 1.0];
        let seen = values.into_iter().zip(0..).map(|(value, round)| {
            largest.update(round, value);
            largest.get()
        });
        assert_eq!(seen.collect::<Vec<f64>>(), [5.0, 9.0, 9.0, 9.0, 9.0, 4.0, 4.0, 3.0]);
    }

    #[test]
    fn it_keeps_no_more_than_one_value_for_each_round() {
        let mut largest = WindowedMax::new(10);
        for step in 0..1_000 {
            largest.update(step / 10, -(step as f64));
        }
        assert_eq!(largest.kept.len(), 11);
    }
}
