//! The skewed all-to-all of a mixture of experts: tokens go to popular experts, and come back.

use tailcut_engine::RandomStream;

use super::direct::others;
use super::steps::{Effect, Steps};

/// Returns the bytes that every rank sends to each rank, its own included: they add up to `bytes`,
/// and the k-th most popular rank has a share proportional to k^-skew. Every rank has at least
/// one byte.
pub(super) fn shares(ranks: u32, bytes: u64, skew: f64, stream: &mut RandomStream) -> Vec<u64> {
    let weights: Vec<f64> = (1..=ranks).map(|k| f64::from(k).powf(-skew)).collect();
    let sum: f64 = weights.iter().sum();
    let spare = bytes - u64::from(ranks);
    let mut shares: Vec<u64> =
        weights.iter().map(|weight| 1 + (spare as f64 * weight / sum) as u64).collect();
    let given: u64 = shares.iter().sum();
    shares[0] = (shares[0] + bytes).saturating_sub(given).max(1);
    stream.shuffle(&mut shares);
    shares
}

/// Every rank sends each other the share of its expert; an expert that has all tokens sends each
/// rank as many bytes back.
pub(super) fn steps(shares: &[u64]) -> Steps {
    let ranks = shares.len() as u32;
    let mut steps = Steps::default();
    let mut received = vec![vec![]; shares.len()];
    for rank in 0..ranks {
        for other in others(rank, ranks) {
            let share = 0..shares[other as usize];
            let step = steps.send((rank, other), share, Effect::Copy, vec![]);
            received[other as usize].push(step);
        }
    }
    for (rank, received) in (0..ranks).zip(received) {
        let join = steps.join(rank, received);
        for other in others(rank, ranks) {
            steps.send((rank, other), 0..shares[rank as usize], Effect::Copy, vec![join]);
        }
    }
    steps
}
