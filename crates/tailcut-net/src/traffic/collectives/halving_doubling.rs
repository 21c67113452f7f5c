//! Recursive halving and doubling (MPICH: `allreduce_intra_reduce_scatter_allgather.c`).

use std::ops::Range;

use super::Shape;
use super::steps::{Effect, Steps, part};

/// All-reduce: a reduce-scatter by halving, then an all-gather by doubling, among the largest power
/// of two of the ranks. Of n = p + r ranks, each even one below 2r hands its array to the next
/// rank first, and has the sums back last.
pub(super) fn all_reduce(shape: Shape) -> Steps {
    let Shape { ranks, bytes, .. } = shape;
    let rounds = ranks.ilog2();
    let core = 1 << rounds;
    let spare = ranks - core;
    let rank_of = |place: u32| if place < spare { 2 * place + 1 } else { place + spare };
    let mut steps = Steps::default();
    let mut received: Vec<Vec<u32>> = vec![vec![]; core as usize];
    for place in 0..spare {
        let pair = (2 * place, 2 * place + 1);
        received[place as usize].push(steps.send(pair, 0..bytes, Effect::Reduce, vec![]));
    }
    // The parts, counted of `core`, that each place still reduces, or has complete.
    let mut held: Vec<Range<u64>> = vec![0..u64::from(core); core as usize];
    let range = |held: &Range<u64>| {
        let at = |parts: u64| match parts {
            0 => 0,
            parts => part(&(0..bytes), core.into(), parts - 1).end,
        };
        at(held.start)..at(held.end)
    };
    let phases = (0..rounds).map(|t| (t, Effect::Reduce));
    for (t, effect) in phases.chain((0..rounds).rev().map(|t| (t, Effect::Copy))) {
        let before = received.clone();
        let sent = held.clone();
        for place in 0..core {
            let (at, partner) = (place as usize, place ^ 1 << t);
            let middle = sent[at].start.midpoint(sent[at].end);
            let (lower, upper) = (sent[at].start..middle, middle..sent[at].end);
            let given = match effect {
                Effect::Copy => sent[at].clone(),
                Effect::Reduce if place >> t & 1 == 0 => upper.clone(),
                Effect::Reduce => lower.clone(),
            };
            held[at] = match effect {
                Effect::Reduce if place >> t & 1 == 0 => lower,
                Effect::Reduce => upper,
                Effect::Copy => {
                    let other = &sent[partner as usize];
                    sent[at].start.min(other.start)..sent[at].end.max(other.end)
                }
            };
            let pair = (rank_of(place), rank_of(partner));
            let step = steps.send(pair, range(&given), effect, before[at].clone());
            received[partner as usize].push(step);
        }
    }
    for place in 0..spare {
        let pair = (2 * place + 1, 2 * place);
        steps.send(pair, 0..bytes, Effect::Copy, received[place as usize].clone());
    }
    steps
}
