//! Direct exchange: every rank sends to every other at once, the next rank first (ASTRA-sim:
//! `AllToAll.cc`).

use super::Shape;
use super::steps::{Effect, Steps, part};

/// Returns the other ranks, in the order in which a rank sends to them.
pub(super) fn others(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
    (1..ranks).map(move |distance| (rank + distance) % ranks)
}

/// All-reduce: a reduce-scatter; a rank that has its sum sends it to all others.
pub(super) fn all_reduce(shape: Shape) -> Steps {
    let Shape { ranks, bytes, .. } = shape;
    let mut steps = reduce_scatter(shape);
    let mut received = vec![vec![]; ranks as usize];
    for rank in 0..ranks {
        for (at, other) in others(rank, ranks).enumerate() {
            received[other as usize].push(rank * (ranks - 1) + at as u32);
        }
    }
    for (rank, received) in (0..ranks).zip(received) {
        let join = steps.join(rank, received);
        let own = part(&(0..bytes), ranks.into(), rank.into());
        for other in others(rank, ranks) {
            steps.send((rank, other), own.clone(), Effect::Copy, vec![join]);
        }
    }
    steps
}

/// Reduce-scatter: part j goes to rank j.
pub(super) fn reduce_scatter(shape: Shape) -> Steps {
    exchange(shape, Effect::Reduce, |_, other| other)
}

/// All-gather: rank i sends part i to all others.
pub(super) fn all_gather(shape: Shape) -> Steps {
    exchange(shape, Effect::Copy, |rank, _| rank)
}

/// All-to-all: every rank sends an equal part to every other.
pub(super) fn all_to_all(shape: Shape) -> Steps {
    exchange(shape, Effect::Copy, |_, other| other)
}

fn exchange(shape: Shape, effect: Effect, number: fn(u32, u32) -> u32) -> Steps {
    let Shape { ranks, bytes, .. } = shape;
    let mut steps = Steps::default();
    for rank in 0..ranks {
        for other in others(rank, ranks) {
            let sent = part(&(0..bytes), ranks.into(), number(rank, other).into());
            steps.send((rank, other), sent, effect, vec![]);
        }
    }
    steps
}
