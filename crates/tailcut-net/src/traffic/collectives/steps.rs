//! The steps of a collective operation among ranks: messages, and joins of several waits.

use std::ops::Range;

/// The effect of a message on the receiver's array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The receiver adds the bytes to its own.
    Reduce,
    /// The receiver takes the bytes as they are.
    Copy,
}

/// A message or a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// Rank `src` sends these bytes of the array to rank `dst`. Messages of a pair that have the
    /// same `lane` leave in order.
    Message { src: u32, dst: u32, bytes: Range<u64>, effect: Effect, lane: u32 },
    /// Rank `rank` has everything that the join waits for.
    Join { rank: u32 },
}

/// A step, and the earlier steps that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub work: Work,
    /// Indices of earlier steps.
    pub after: Vec<u32>,
}

/// The steps of one iteration, each behind those that it waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    pub steps: Vec<Step>,
}

impl Steps {
    fn push(&mut self, work: Work, after: Vec<u32>) -> u32 {
        self.steps.push(Step { work, after });
        self.steps.len() as u32 - 1
    }

    /// Adds a message from one rank to another and returns its index.
    pub fn send(
        &mut self,
        (src, dst): (u32, u32),
        bytes: Range<u64>,
        effect: Effect,
        after: Vec<u32>,
    ) -> u32 {
        self.send_in_lane(0, (src, dst), bytes, effect, after)
    }

    /// Adds a message of a lane and returns its index.
    pub fn send_in_lane(
        &mut self,
        lane: u32,
        (src, dst): (u32, u32),
        bytes: Range<u64>,
        effect: Effect,
        after: Vec<u32>,
    ) -> u32 {
        self.push(Work::Message { src, dst, bytes, effect, lane }, after)
    }

    /// Adds a join of a rank and returns its index.
    pub fn join(&mut self, rank: u32, after: Vec<u32>) -> u32 {
        self.push(Work::Join { rank }, after)
    }
}

/// Returns part `index` of `range`, cut into `parts`: the first ones have a byte more where the
/// bytes do not divide evenly.
pub(super) fn part(range: &Range<u64>, parts: u64, index: u64) -> Range<u64> {
    let bytes = range.end - range.start;
    let (each, more) = (bytes / parts, bytes % parts);
    let at = |index: u64| range.start + index * each + index.min(more);
    at(index)..at(index + 1)
}
