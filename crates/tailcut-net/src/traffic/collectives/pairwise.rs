//! All-to-all round by round: in each round a rank sends to one other and receives from one other
//! (NCCL: `init.cc`).

use super::Shape;
use super::steps::{Effect, Steps, part};

/// All-to-all. In round r, rank i sends to rank i + d and receives from rank i - d, with
/// d = r(r + 1)/2 mod 2^⌈log₂ n⌉; rounds whose d is 0 or at least n are left out. A round of a rank
/// begins when the message of its last round has come.
pub(super) fn all_to_all(shape: Shape) -> Steps {
    let Shape { ranks, bytes, .. } = shape;
    let modulus = u64::from(ranks.next_power_of_two());
    let distances = (0..modulus).map(|r| (r * (r + 1) / 2 % modulus) as u32);
    let mut steps = Steps::default();
    let mut received: Vec<Option<u32>> = vec![None; ranks as usize];
    for distance in distances.filter(|distance| (1..ranks).contains(distance)) {
        let before = received.clone();
        for rank in 0..ranks {
            let other = (rank + distance) % ranks;
            let sent = part(&(0..bytes), ranks.into(), other.into());
            let after = before[rank as usize].into_iter().collect();
            received[other as usize] = Some(steps.send((rank, other), sent, Effect::Copy, after));
        }
    }
    steps
}
