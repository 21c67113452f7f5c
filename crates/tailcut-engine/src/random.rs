//! Random streams: one per (seed, entity, purpose).
//!
//! Because each consumer draws from a stream of its own, switching a scheme or
//! an observer on never shifts anybody else's draws: schemes are compared on
//! the same flows.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The splitmix64 finaliser (Steele, Lea, Flood 2014): a bijection of 64 bits
/// whose output bits all depend on all input bits.
#[inline]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An independent stream of random numbers.
#[derive(Debug, Clone)]
pub struct RandomStream(Pcg64Mcg);

impl RandomStream {
    /// The stream of `purpose` (a short constant text) of `entity` under `seed`.
    pub fn new(seed: u64, entity: u64, purpose: &str) -> RandomStream {
        let mut state = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        for word in [entity].into_iter().chain(purpose.bytes().map(u64::from)) {
            state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ word);
        }
        RandomStream(Pcg64Mcg::seed_from_u64(state))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound`, without modulo bias (Lemire 2019).
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no elements");
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Exponentially distributed with the given mean, in the mean's unit. The logarithm is
    /// computed in software: the platform's own may differ in the last bit between machines.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.unit())
    }

    /// Shuffles in place (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_stream() {
        let draw = |entity, purpose| RandomStream::new(7, entity, purpose).bits();
        assert_eq!(draw(1, "arrivals"), draw(1, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(2, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(1, "sizes"));
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = RandomStream::new(1, 0, "test");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 22.46, "chi-squared {chi2} exceeds the 0.1 % point of 6 degrees of freedom");
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut stream = RandomStream::new(1, 0, "test");
        let n = 200_000;
        let mean = (0..n).map(|_| stream.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 3.0).abs() < 4.0 * 3.0 / f64::from(n).sqrt(), "mean {mean}");
    }
}
