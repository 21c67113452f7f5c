//! How busy a link is.

/// The estimate of a link's rate (discounting rate estimator, section 3.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    pub bytes: f64,
    /// Periods that have passed when it was looked at.
    periods: u64,
}

impl Estimate {
    /// Bytes now, in the period with this number.
    pub fn discounted(&mut self, periods: u64, decay: f64) -> &mut f64 {
        // A product of equal factors is the same everywhere; a power need not be.
        while self.periods < periods && self.bytes >= 1.0 {
            self.bytes *= 1.0 - decay;
            self.periods += 1;
        }
        // Less than a byte is nothing.
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
    fn a_share_is_given_up_each_period_and_less_than_a_byte_is_nothing() {
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
