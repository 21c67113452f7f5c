//! Aggregation of acknowledgements: the bytes delivered beyond what the bandwidth explains (Linux's
//! BBR since 5.1).

use tailcut_engine::Time;

use super::windowed::WindowedMax;

/// Rounds for which an excess is remembered.
const ROUNDS: u64 = 10;
/// The allowance is no more than the bandwidth brings in this time.
const AT_MOST: f64 = 0.1;

/// The excess of an epoch, which begins anew whenever there is none.
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    since: Time,
    delivered: u64,
    excess: WindowedMax,
}

impl Aggregation {
    pub fn new() -> Aggregation {
        Aggregation { since: Time::ZERO, delivered: 0, excess: WindowedMax::new(ROUNDS) }
    }

    /// An epoch begins.
    pub fn begin(&mut self, now: Time) {
        (self.since, self.delivered) = (now, 0);
    }

    /// Counts `delivered` bytes of an ACK in this round, at a bandwidth in bytes per second.
    /// `window` bounds the excess.
    pub fn on_ack(&mut self, now: Time, round: u64, delivered: u64, bandwidth: f64, window: u64) {
        let mut expected = bandwidth * now.since(self.since).as_secs_f64();
        if self.delivered as f64 <= expected {
            self.begin(now);
            expected = 0.0;
        }
        self.delivered += delivered;
        self.excess.update(round, (self.delivered as f64 - expected).min(window as f64));
    }

    /// Returns the bytes to add to the window so that it bridges the silence between aggregated
    /// ACKs.
    pub fn allowance(&self, bandwidth: f64) -> f64 {
        self.excess.get().min(bandwidth * AT_MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB/s in ACKs of so many bytes, at the rate.
    fn allowed(bytes: u64) -> f64 {
        let mut aggregation = Aggregation::new();
        for ack in 1..=100 {
            aggregation.on_ack(Time::from_us(ack * bytes), ack, bytes, 1e6, 100_000);
        }
        aggregation.allowance(1e6)
    }

    #[test]
    fn the_allowance_is_what_one_ack_brings_where_they_come_at_the_rate() {
        assert_eq!([1_000, 2_000].map(allowed), [1_000.0, 2_000.0]);
    }

    #[test]
    fn acks_in_a_heap_add_up_and_are_forgotten_after_ten_rounds() {
        let mut aggregation = Aggregation::new();
        let mut after = vec![];
        for round in 1..30 {
            let acks = if round == 10 { 8 } else { 1 };
            for _ in 0..acks {
                // The heap is of what the silence after it would have brought.
                let silence = if round > 10 { 8 } else { 0 };
                let now = Time::from_ms(round + silence);
                aggregation.on_ack(now, round, 1_000, 1e6, 100_000);
            }
            after.push(aggregation.allowance(1e6));
        }
        assert!(after[..9].iter().all(|bytes| *bytes == 1_000.0), "{after:?}");
        assert!(after[9..=19].iter().all(|bytes| *bytes >= 8_000.0), "{after:?}");
        assert!(after[20..].iter().all(|bytes| *bytes == 1_000.0), "{after:?}");
    }
}
