//! The rate estimate of a link.

/// The estimate of a link's rate: its bytes, discounted over time (discounting rate estimator,
/// section 3.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    pub bytes: f64,
    /// Number of periods that had passed at the last update.
    periods: u64,
}

impl Estimate {
    /// Returns the discounted bytes in period number `periods`, for reading or adding to.
    pub fn discounted(&mut self, periods: u64, decay: f64) -> &mut f64 {
        // A repeated product gives the same result on every machine; a power need not.
        while self.periods < periods && self.bytes >= 1.0 {
            self.bytes *= 1.0 - decay;
            self.periods += 1;
        }
        // Less than a byte counts as nothing.
        if self.periods < periods {
            (self.bytes, self.periods) = (0.0, periods);
        }
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_decays_each_period_and_ends_below_one_byte() {
        let mut estimate = Estimate::default();
        *estimate.discounted(3, 0.5) += 8.0;
        assert_eq!(
            [4, 5, 5, 6].map(|period| *estimate.discounted(period, 0.5)),
            [4.0, 2.0, 2.0, 1.0]
        );
        assert_eq!(*estimate.discounted(100, 0.5), 0.0);
        *estimate.discounted(100, 0.5) += 2.0;
        assert_eq!(*estimate.discounted(101, 0.5), 1.0, "it counts from there");
    }
}
