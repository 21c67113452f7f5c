//! Rings: every rank sends to the next one only (NCCL: `all_reduce.h`, `reduce_scatter.h`,
//! `all_gather.h`).

use super::Shape;
use super::steps::{Effect, Steps, part};

/// All-reduce: a reduce-scatter, then an all-gather of the sums.
pub(super) fn all_reduce(shape: Shape) -> Steps {
    steps(shape, 2 * (shape.ranks - 1), shape.ranks - 1, 1)
}

/// Reduce-scatter: rank i ends with the sum of part i.
pub(super) fn reduce_scatter(shape: Shape) -> Steps {
    steps(shape, shape.ranks - 1, shape.ranks - 1, 1)
}

/// All-gather: rank i begins with part i.
pub(super) fn all_gather(shape: Shape) -> Steps {
    steps(shape, shape.ranks - 1, 0, 0)
}

/// In step t, rank i sends part (i - `behind` - t) mod n to rank i + 1, once the message of step
/// t - 1 has come from rank i - 1. The first `reducing` steps reduce, the others copy. The slices
/// of a part are messages of their own.
fn steps(shape: Shape, count: u32, reducing: u32, behind: u32) -> Steps {
    let Shape { ranks, bytes, slices } = shape;
    let mut steps = Steps::default();
    let place = |t: u32, rank: u32, slice: u32| (t * ranks + rank) * slices + slice;
    for t in 0..count {
        let effect = if t < reducing { Effect::Reduce } else { Effect::Copy };
        for rank in 0..ranks {
            let number = (rank + 2 * ranks - behind - t) % ranks;
            let whole = part(&(0..bytes), ranks.into(), number.into());
            let before = (rank + ranks - 1) % ranks;
            for slice in 0..slices {
                let sent = part(&whole, slices.into(), slice.into());
                let after = if t == 0 { vec![] } else { vec![place(t - 1, before, slice)] };
                steps.send((rank, (rank + 1) % ranks), sent, effect, after);
            }
        }
    }
    steps
}
