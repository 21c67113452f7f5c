//! HyStart++ (RFC 9406): the first slow start ends when round trips lengthen, before packets are
//! lost.

use tailcut_engine::Time;

use super::super::Acked;

/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: u64 = Time::from_ms(4).0;
const MAX_RTT_THRESH: u64 = Time::from_ms(16).0;
const MIN_RTT_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments by which one ACK may open the window of a sender that does not pace.
const BURST: u64 = 8;

/// The phase after the last acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HystartPhase {
    SlowStart,
    /// Conservative slow start: the round trips have lengthened, but that may pass.
    Conservative,
    /// Round trips stayed long: congestion avoidance.
    Over,
}

/// Round-trip times of this round and the one before, in picoseconds.
#[derive(Debug, Clone)]
pub struct Rfc9406 {
    round_end: u32,
    last_min: u64,
    current_min: u64,
    samples: u32,
    /// The round-trip time that conservative slow start began with, and its rounds so far.
    conservative: Option<(u64, u32)>,
}

impl Default for Rfc9406 {
    fn default() -> Self {
        let none = u64::MAX;
        Rfc9406 { round_end: 0, last_min: none, current_min: none, samples: 0, conservative: None }
    }
}

impl Rfc9406 {
    pub fn on_ack(&mut self, acked: &Acked) -> HystartPhase {
        if let Some(rtt) = acked.rtt {
            self.current_min = self.current_min.min(rtt.0);
            self.samples += 1;
        }
        let phase = self.judge();
        // A round ends when what had been sent at its beginning is acknowledged.
        if self.round_end == 0 {
            self.round_end = acked.end;
        } else if acked.una >= self.round_end {
            self.round_end = acked.end;
            (self.last_min, self.current_min, self.samples) = (self.current_min, u64::MAX, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return HystartPhase::Over;
                }
            }
        }
        phase
    }

    fn judge(&mut self) -> HystartPhase {
        let known = self.samples >= SAMPLES && self.current_min != u64::MAX;
        match self.conservative {
            None if known && self.last_min != u64::MAX => {
                let threshold =
                    (self.last_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_min >= self.last_min + threshold {
                    self.conservative = Some((self.current_min, 0));
                }
            }
            Some((baseline, _)) if known && self.current_min < baseline => {
                self.conservative = None;
            }
            _ => {}
        }
        if self.conservative.is_some() {
            HystartPhase::Conservative
        } else {
            HystartPhase::SlowStart
        }
    }

    /// Bytes by which the window grows when `bytes` are acknowledged.
    pub fn increase(&self, bytes: u64, mss: u64) -> u64 {
        let increase = bytes.min(BURST * mss);
        if self.conservative.is_some() { increase / CSS_GROWTH_DIVISOR } else { increase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ten segments with these round-trip times; the phase after its last ACK.
    fn round(hystart: &mut Rfc9406, number: u32, ms: u64) -> HystartPhase {
        let mut phase = HystartPhase::SlowStart;
        for segment in 1..=10 {
            let una = number * 10 + segment;
            phase = hystart.on_ack(&Acked {
                now: Time::ZERO,
                bytes: 1_000,
                by_delivery: false,
                flight: 10_000,
                rtt: Some(Time::from_ms(ms)),
                smoothed: Time::from_ms(ms),
                una,
                end: (una + 10) / 10 * 10,
            });
        }
        phase
    }

    #[test]
    fn steady_round_trips_leave_slow_start_alone() {
        let mut hystart = Rfc9406::default();
        assert!((0..20).all(|number| round(&mut hystart, number, 20) == HystartPhase::SlowStart));
        assert_eq!(hystart.increase(20_000, 1_000), 8_000);
    }

    #[test]
    fn round_trips_longer_by_an_eighth_and_4_ms_slow_the_growth_to_a_quarter() {
        let mut hystart = Rfc9406::default();
        round(&mut hystart, 0, 20);
        assert_eq!(round(&mut hystart, 1, 23), HystartPhase::SlowStart);
        assert_eq!(round(&mut hystart, 2, 27), HystartPhase::Conservative);
        assert_eq!(hystart.increase(1_000, 1_000), 250);
    }

    #[test]
    fn round_trips_that_shorten_again_resume_slow_start() {
        let mut hystart = Rfc9406::default();
        round(&mut hystart, 0, 20);
        round(&mut hystart, 1, 30);
        assert_eq!(round(&mut hystart, 2, 20), HystartPhase::SlowStart);
    }

    #[test]
    fn five_rounds_of_long_round_trips_end_it() {
        let mut hystart = Rfc9406::default();
        round(&mut hystart, 0, 20);
        let over = (1..10).find(|&number| round(&mut hystart, number, 30) == HystartPhase::Over);
        assert_eq!(over, Some(5));
    }
}
