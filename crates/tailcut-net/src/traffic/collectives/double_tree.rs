//! Two binary trees, each for half of the array: an inner rank of one is a leaf of the other (NCCL:
//! `graph/trees.cc`).

use super::Shape;
use super::steps::{Effect, Steps, part};

/// All-reduce. A rank sends a chunk up when it has that of both children; the root sends the sums
/// down. The slices are the chunks of each tree.
pub(super) fn all_reduce(shape: Shape) -> Steps {
    let Shape { ranks, bytes, slices } = shape;
    let mut steps = Steps::default();
    for tree in 0..2u32 {
        let rank_of = |place: u32| match tree {
            0 => place,
            _ if ranks % 2 == 0 => ranks - 1 - place,
            _ => (place + 1) % ranks,
        };
        let half = part(&(0..bytes), 2, tree.into());
        let downward = downward(ranks);
        for chunk in 0..slices {
            let chunk = part(&half, slices.into(), chunk.into());
            let mut received: Vec<Vec<u32>> = vec![vec![]; ranks as usize];
            for &place in downward.iter().rev() {
                let Some(above) = parent(place, ranks) else { continue };
                let (pair, after) =
                    ((rank_of(place), rank_of(above)), received[place as usize].clone());
                let step = steps.send_in_lane(tree, pair, chunk.clone(), Effect::Reduce, after);
                received[above as usize].push(step);
            }
            for &place in &downward {
                let Some(above) = parent(place, ranks) else { continue };
                let (pair, after) =
                    ((rank_of(above), rank_of(place)), received[above as usize].clone());
                let step = steps.send_in_lane(tree, pair, chunk.clone(), Effect::Copy, after);
                received[place as usize] = vec![step];
            }
        }
    }
    steps
}

/// Returns the parent of a place of the first tree; `None` for the root, place 0.
pub(super) fn parent(place: u32, ranks: u32) -> Option<u32> {
    let lowest = place & place.wrapping_neg();
    (place > 0).then(|| match (place - lowest) | lowest << 1 {
        above if above < ranks => above,
        _ => place - lowest,
    })
}

/// Returns all places, every one behind its parent.
fn downward(ranks: u32) -> Vec<u32> {
    let depth = |place: u32| std::iter::successors(Some(place), |at| parent(*at, ranks)).count();
    let mut places: Vec<u32> = (0..ranks).collect();
    places.sort_by_key(|&place| (depth(place), place));
    places
}
