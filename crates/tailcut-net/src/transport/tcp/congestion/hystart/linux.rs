//! Linux's HyStart (Ha and Rhee, "Hybrid slow start for high-bandwidth and long-distance networks",
//! 2008; Linux 6.14, `hystart_update` and `cubictcp_acked` of `net/ipv4/tcp_cubic.c`). Parameters
//! are those of the module `tcp_cubic`.

use tailcut_engine::Time;

use super::super::{Acked, Window};

/// `hystart_low_window`: smaller windows, in segments, never end slow start.
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`: ACKs further apart belong to no train.
const ACK_DELTA: Time = Time::from_us(2_000);
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`: between them, an eighth of the shortest round trip.
const LEAST_INCREASE: u64 = Time::from_ms(4).0;
const LARGEST_INCREASE: u64 = Time::from_ms(16).0;
/// Most bytes that senders and receivers merge (`sk_gso_max_size`).
const BURST: u128 = 65_536;
/// Upper bound of the assumed ACK delay by merging.
const LARGEST_CUSHION: Time = Time::from_ms(1);
/// Round trips of the first second of congestion avoidance are not looked at.
const SETTLES: Time = Time::from_ms(1_000);

/// State of the current round, and the shortest round trip so far.
#[derive(Debug, Clone)]
pub struct Linux {
    /// A sign was found: there is nothing more to look for.
    found: bool,
    delay_min: Time,
    /// The round ends when more than this is acknowledged; none before the first ACK.
    round_end: Option<u32>,
    round_start: Time,
    /// The last ACK of the round's train.
    last_ack: Time,
    /// The shortest round trip of the round.
    current_min: Time,
    samples: u32,
}

impl Default for Linux {
    fn default() -> Self {
        Linux {
            found: false,
            delay_min: Time::NEVER,
            round_end: None,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            current_min: Time::NEVER,
            samples: 0,
        }
    }
}

impl Linux {
    /// Returns whether slow start ends with this ACK. `avoiding` is the start of congestion
    /// avoidance, if it has begun.
    pub fn ends(
        &mut self,
        window: &Window,
        mss: u64,
        acked: &Acked,
        avoiding: Option<Time>,
    ) -> bool {
        let Some(delay) = acked.rtt else { return false };
        if avoiding.is_some_and(|since| acked.now.since(since) < SETTLES) {
            return false;
        }
        self.delay_min = self.delay_min.min(delay);
        if self.found || window.cwnd >= window.ssthresh {
            return false;
        }
        if self.round_end.is_none_or(|end| acked.una > end) {
            self.round_end = Some(acked.end);
            (self.round_start, self.last_ack) = (acked.now, acked.now);
            (self.current_min, self.samples) = (Time::NEVER, 0);
        }
        if window.cwnd < LOW_WINDOW * mss {
            return false;
        }
        let train = self.train(window, acked);
        self.found = self.lengthened(delay) || train;
        self.found
    }

    /// Returns whether closely spaced ACKs have lasted for half of the shortest round trip, the
    /// time that the network takes to deliver what was sent in one.
    fn train(&mut self, window: &Window, acked: &Acked) -> bool {
        if acked.now - self.last_ack > ACK_DELTA {
            return false;
        }
        self.last_ack = acked.now;
        let threshold = (self.delay_min + cushion(window, acked.smoothed)).0 / 2;
        (acked.now - self.round_start).0 > threshold
    }

    /// Returns whether this and eight earlier round trips of the round were all longer than the
    /// shortest so far.
    fn lengthened(&mut self, delay: Time) -> bool {
        self.current_min = self.current_min.min(delay);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let increase = (self.delay_min.0 / 8).clamp(LEAST_INCREASE, LARGEST_INCREASE);
        self.current_min.0 > self.delay_min.0 + increase
    }
}

/// Returns `hystart_ack_delay`: the time of four bursts at Linux's pacing rate, twice the window
/// per round trip below half of the threshold and six fifths of it above
/// (`tcp_update_pacing_rate`).
fn cushion(window: &Window, smoothed: Time) -> Time {
    let (num, den) = if window.cwnd < window.ssthresh / 2 { (2, 1) } else { (6, 5) };
    let time = 4 * BURST * u128::from(smoothed.0) * den / (num * u128::from(window.cwnd.max(1)));
    LARGEST_CUSHION.min(Time(u64::try_from(time).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::super::HyStart;
    use super::*;

    const MSS: u64 = 1_000;

    /// A sender whose segments are acknowledged one by one.
    struct Stage {
        linux: Linux,
        window: Window,
        now: Time,
        una: u32,
        avoiding: Option<Time>,
    }

    impl Stage {
        /// Creates a sender with a window of `segments`.
        fn at(segments: u64) -> Stage {
            let window = Window { cwnd: segments * MSS, ssthresh: u64::MAX };
            Stage { linux: Linux::default(), window, now: Time::ZERO, una: 0, avoiding: None }
        }

        /// An ACK `after` the last one, of a segment that took `rtt`.
        fn ack(&mut self, after: Time, rtt: Time) -> bool {
            self.now += after;
            self.una += 1;
            let acked = Acked {
                now: self.now,
                bytes: MSS,
                by_delivery: false,
                flight: self.window.cwnd,
                rtt: Some(rtt),
                smoothed: rtt,
                una: self.una,
                // The window sent before the first ACK ends here; the next begins beyond it.
                end: self.una + (self.window.cwnd / MSS) as u32,
            };
            self.linux.ends(&self.window, MSS, &acked, self.avoiding)
        }

        /// Returns the number of the ACK, each `apart` from the one before, that ends slow start.
        fn ends_at(&mut self, acks: u32, apart: Time, rtt: Time) -> Option<u32> {
            (1..=acks).find(|_| self.ack(apart, rtt))
        }
    }

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// 100 ms, and the cushion of 1 ms, is twice 50.5 ms: the first ACK begins the round.
    #[test]
    fn a_train_of_half_a_round_trip_and_half_a_cushion_ends_slow_start() {
        let mut stage = Stage::at(100);
        assert_eq!(stage.ends_at(100, us(1_000), Time::from_ms(100)), Some(52));
    }

    /// The cushion of a window of 100 segments and 100 us is 131 us, and half of both 115.5 us.
    #[test]
    fn short_round_trips_include_the_aggregation_cushion() {
        let mut stage = Stage::at(100);
        assert_eq!(stage.ends_at(100, us(2), us(100)), Some(59));
    }

    #[test]
    fn acks_more_than_2_ms_apart_are_no_train() {
        let mut stage = Stage::at(100);
        assert_eq!(stage.ends_at(100, us(2_001), Time::from_ms(100)), None);
    }

    #[test]
    fn an_ack_that_comes_late_ends_the_train_for_its_round() {
        let mut stage = Stage::at(100);
        stage.ends_at(10, us(1_000), Time::from_ms(100));
        stage.ack(us(2_001), Time::from_ms(100));
        assert_eq!(stage.ends_at(80, us(1_000), Time::from_ms(100)), None);
    }

    #[test]
    fn a_new_round_begins_a_new_train() {
        let mut stage = Stage::at(20);
        // 20 ACKs of a round take 20 ms, which is no half of 100.
        assert_eq!(stage.ends_at(400, us(1_000), Time::from_ms(100)), None);
    }

    #[test]
    fn nine_round_trips_longer_by_4_ms_end_slow_start() {
        let mut stage = Stage::at(100);
        stage.ack(Time::ZERO, Time::from_ms(20));
        stage.una += 101;
        assert_eq!(stage.ends_at(30, us(3_000), us(24_001)), Some(9));
    }

    #[test]
    fn a_smaller_round_trip_increase_keeps_slow_start() {
        let mut stage = Stage::at(100);
        stage.ack(Time::ZERO, Time::from_ms(20));
        stage.una += 101;
        assert_eq!(stage.ends_at(90, us(3_000), us(24_000)), None);
    }

    /// An eighth of 80 ms.
    #[test]
    fn long_round_trips_may_lengthen_by_an_eighth() {
        for (delay, ends) in [(90_000, None), (90_001, Some(9))] {
            let mut stage = Stage::at(100);
            stage.ack(Time::ZERO, Time::from_ms(80));
            stage.una += 101;
            assert_eq!(stage.ends_at(90, us(3_000), us(delay)), ends);
        }
    }

    #[test]
    fn windows_below_16_segments_stay_in_slow_start() {
        assert_eq!(Stage::at(15).ends_at(1_000, us(1), us(2)), None);
        assert!(Stage::at(16).ends_at(1_000, us(1), us(2)).is_some());
    }

    #[test]
    fn finds_the_exit_only_once() {
        let mut stage = Stage::at(100);
        assert!(stage.ends_at(100, us(1_000), Time::from_ms(100)).is_some());
        assert_eq!(stage.ends_at(1_000, us(1_000), Time::from_ms(100)), None);
    }

    #[test]
    fn a_timeout_begins_the_search_anew_and_another_loss_does_not() {
        let mut stage = Stage::at(100);
        assert!(stage.ends_at(100, us(1_000), Time::from_ms(100)).is_some());
        for (timeout, ends) in [(false, None), (true, Some(52))] {
            let mut hystart = Some(HyStart::Linux(stage.linux.clone()));
            HyStart::reduced(&mut hystart, timeout);
            let Some(HyStart::Linux(linux)) = hystart else { panic!("it goes on") };
            let mut after = Stage { linux, ..Stage::at(100) };
            assert_eq!(after.ends_at(100, us(1_000), Time::from_ms(100)), ends);
        }
    }

    #[test]
    fn ignores_acks_in_the_first_second_of_congestion_avoidance() {
        let mut stage = Stage::at(100);
        stage.avoiding = Some(Time::ZERO);
        assert_eq!(stage.ends_at(999, us(1_000), Time::from_ms(100)), None);
        assert!(stage.ends_at(100, us(1_000), Time::from_ms(100)).is_some());
    }
}
