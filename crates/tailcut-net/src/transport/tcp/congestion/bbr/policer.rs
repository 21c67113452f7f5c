//! Detection of a policer: two intervals in a row with the same rate and at least a fifth of the
//! packets lost (long-term sampling of Linux's BBR; Flach et al., SIGCOMM 2016).

use tailcut_engine::Time;

/// Rounds that an interval lasts at least; it is given up after four times as many.
const LEAST_ROUNDS: u32 = 4;
/// Bytes lost per byte delivered that make an interval a lossy one.
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates are the same when they differ by no more than this part.
const ALIKE: f64 = 0.125;
/// Or by no more than this, in bytes per second.
const CLOSE: f64 = 500.0;
/// Rounds for which a detected rate is used.
const BELIEVED: u32 = 48;

/// The policer's input from one ACK.
#[derive(Debug, Clone, Copy)]
pub(super) struct PolicerSample {
    pub now: Time,
    /// Whether the ACK reports losses, or a timeout preceded it.
    pub lost: bool,
    /// Whether its rate was limited by a lack of data.
    pub app_limited: bool,
    /// A round ends.
    pub round: bool,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Bytes lost so far.
    pub total_lost: u64,
}

/// The estimate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Policer {
    /// An interval is being measured.
    sampling: bool,
    /// The rate is believed.
    policed: bool,
    /// The rate of the last interval in bytes per second; 0 if there is none.
    rate: f64,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The rate of the policer, in bytes per second, while one is thought to be there.
    pub fn rate(&self) -> Option<f64> {
        self.policed.then_some(self.rate)
    }

    /// Handles an ACK; `cycles` says whether the sender probes for bandwidth. Returns true when a
    /// detected rate expires.
    pub fn on_ack(&mut self, heard: &PolicerSample, cycles: bool) -> bool {
        self.rounds += u32::from(heard.round && (self.sampling || self.policed && cycles));
        if self.policed {
            let ends = self.rounds >= BELIEVED;
            if ends {
                *self = Policer::default();
            }
            return ends;
        }
        if !self.sampling {
            // Before the first loss a policer may have had tokens left.
            if heard.lost {
                self.begin(heard);
            }
        } else if heard.app_limited || self.rounds > 4 * LEAST_ROUNDS {
            *self = Policer::default();
        } else if heard.lost && self.rounds >= LEAST_ROUNDS {
            self.end(heard);
        }
        false
    }

    fn begin(&mut self, heard: &PolicerSample) {
        self.sampling = true;
        (self.rounds, self.since) = (0, heard.now);
        (self.delivered, self.lost) = (heard.delivered, heard.total_lost);
    }

    /// An interval ends with a loss, for then the tokens are used up.
    fn end(&mut self, heard: &PolicerSample) {
        let delivered = (heard.delivered - self.delivered) as f64;
        let lost = (heard.total_lost - self.lost) as f64;
        let time = heard.now.since(self.since);
        if lost < LOSSY * delivered || delivered == 0.0 || time < Time::from_ms(1) {
            return;
        }
        let rate = delivered / time.as_secs_f64();
        let apart = (rate - self.rate).abs();
        if self.rate > 0.0 && (apart <= ALIKE * self.rate || apart <= CLOSE) {
            (self.rate, self.policed) = ((rate + self.rate) / 2.0, true);
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.begin(heard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rates after each round of 10 ms at 1 MB/s, of which each loses `part` of what it
    /// delivers.
    fn rates(rounds: u64, part: f64, limited: bool) -> Vec<Option<f64>> {
        let mut policer = Policer::default();
        let after = (1..=rounds).map(|round| {
            let lost = (round as f64 * 10_000.0 * part) as u64;
            let heard = PolicerSample {
                now: Time::from_ms(10 * round),
                lost: part > 0.0,
                app_limited: limited,
                round: true,
                delivered: 10_000 * round,
                total_lost: lost,
            };
            policer.on_ack(&heard, true);
            policer.rate()
        });
        after.collect()
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer_for_48_rounds() {
        let rates = rates(58, 0.25, false);
        assert_eq!(rates[..8], [None; 8]);
        assert_eq!(rates[8], Some(1e6));
        assert_eq!(rates[55], Some(1e6));
        assert_eq!(rates[56..], [None; 2]);
    }

    #[test]
    fn few_losses_or_app_limited_samples_find_no_policer() {
        for (part, limited) in [(0.1, false), (0.0, false), (0.25, true)] {
            assert!(rates(100, part, limited).iter().all(Option::is_none));
        }
    }
}
