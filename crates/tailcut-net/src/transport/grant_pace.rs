//! The pace of grants where hosts together may send more than the fabric carries: a receiver slows
//! its grants by what its own arrivals have met before their last link.

use tailcut_engine::{RandomStream, Time};

use crate::packet::Flags;

/// Share of marked packets, as a moving mean, above which grants slow down, and by how much of the
/// excess.
const MARKED: f64 = 0.3;
const DECREASE: f64 = 0.5;
/// Growth of the share in a quiet period; without marks it doubles with each period in a row.
const INCREASE: f64 = 0.01;
const MOST_DOUBLINGS: i32 = 10;
/// A period lasts 1.5 round trips, give or take a quarter.
const PERIOD: f64 = 1.5;
const JITTER: f64 = 0.25;
/// Share of its fair part of the fabric that a host's grants always have.
const LEAST: f64 = 0.9;

/// The share of its link's rate that a host grants.
#[derive(Debug, Clone)]
pub(crate) struct GrantPace {
    share: f64,
    least: f64,
    round_trip: Time,
    /// The end of the period in which arrivals are counted.
    end: Time,
    arrived: u32,
    marked: u32,
    /// Packets trimmed before their last link, and on it.
    trimmed: u32,
    trimmed_last: u32,
    marks: f64,
    quiet_periods: i32,
    stream: RandomStream,
}

impl GrantPace {
    /// The pace of a host in a fabric that carries `1 / ratio` of what all hosts can send.
    pub fn new(ratio: f64, round_trip: Time, stream: RandomStream) -> GrantPace {
        let mut pace = GrantPace {
            share: 1.0,
            least: LEAST / ratio,
            round_trip,
            end: Time::ZERO,
            arrived: 0,
            marked: 0,
            trimmed: 0,
            trimmed_last: 0,
            marks: 0.0,
            quiet_periods: 0,
            stream,
        };
        pace.begin(Time::ZERO);
        pace
    }

    /// Stretches the pause after a grant.
    pub fn stretched(&self, pause: Time) -> Time {
        Time((pause.0 as f64 / self.share) as u64)
    }

    /// A data packet, or its header, has arrived with these flags.
    pub fn on_arrival(&mut self, now: Time, flags: Flags) {
        if now >= self.end {
            self.close();
            self.begin(now);
        }
        match (flags.is_trimmed(), flags.has(Flags::LAST_HOP)) {
            (true, false) => self.trimmed += 1,
            (true, true) => self.trimmed_last += 1,
            (false, _) => {
                self.arrived += 1;
                self.marked += u32::from(flags.has(Flags::CONGESTION_EXPERIENCED));
            }
        }
    }

    fn begin(&mut self, now: Time) {
        let length = PERIOD * (1.0 + JITTER * (2.0 * self.stream.unit() - 1.0));
        self.end = now + Time((self.round_trip.0 as f64 * length) as u64);
        (self.arrived, self.marked, self.trimmed, self.trimmed_last) = (0, 0, 0, 0);
    }

    fn close(&mut self) {
        let all = self.arrived + self.trimmed + self.trimmed_last;
        if all == 0 {
            return;
        }
        let lost = f64::from(self.trimmed) / f64::from(all);
        let marked = f64::from(self.marked) / f64::from(self.arrived.max(1));
        self.marks = (self.marks + marked) / 2.0;
        self.share -= lost;
        if self.marks > MARKED {
            self.share *= 1.0 - DECREASE * (self.marks - MARKED);
        }
        if lost == 0.0 && self.marks <= MARKED {
            let doubled = if self.marked == 0 { f64::from(1 << self.quiet_periods) } else { 1.0 };
            self.share += INCREASE * doubled;
            self.quiet_periods = (self.quiet_periods + 1).min(MOST_DOUBLINGS);
        } else {
            self.quiet_periods = 0;
        }
        self.share = self.share.clamp(self.least, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Flags = Flags::DATA;

    fn pace() -> GrantPace {
        GrantPace::new(4.0, Time::from_us(10), RandomStream::new(1, 2, "pace"))
    }

    /// Lets a period of arrivals with these flags pass, one each.
    fn period(pace: &mut GrantPace, flags: &[Flags]) -> f64 {
        for &flags in flags {
            pace.on_arrival(Time::ZERO, flags);
        }
        pace.close();
        pace.begin(Time::ZERO);
        pace.share
    }

    #[test]
    fn packets_trimmed_in_the_fabric_lower_the_share_by_theirs_of_all() {
        let mut pace = pace();
        let header = Flags::CONGESTION_EXPERIENCED;
        assert_eq!(period(&mut pace, &[DATA, DATA, DATA, header]), 0.75);
        let last = header | Flags::LAST_HOP;
        assert!(period(&mut pace, &[DATA, last, last]) > 0.75, "the last link is the host's own");
    }

    #[test]
    fn the_share_stays_above_nine_tenths_of_the_fair_one() {
        let mut pace = pace();
        for _ in 0..9 {
            period(&mut pace, &[Flags::CONGESTION_EXPERIENCED; 3]);
        }
        assert_eq!(pace.share, 0.9 / 4.0);
        assert_eq!(pace.stretched(Time(9_000)), Time(40_000));
    }

    #[test]
    fn quiet_periods_in_a_row_raise_the_share_twice_as_much_each() {
        let mut pace = pace();
        pace.share = 0.5;
        let shares: Vec<_> = (0..3).map(|_| period(&mut pace, &[DATA; 4])).collect();
        let expected = [0.51, 0.53, 0.57];
        assert!(shares.iter().zip(expected).all(|(share, wanted)| (share - wanted).abs() < 1e-9));
    }

    #[test]
    fn a_period_ends_with_the_first_arrival_after_its_length() {
        let mut pace = pace();
        let (end, trimmed) = (pace.end, Flags::CONGESTION_EXPERIENCED);
        pace.on_arrival(Time::ZERO, trimmed);
        pace.on_arrival(end + Time(1), DATA);
        assert!(pace.share < 1.0 && pace.end > end);
    }

    #[test]
    fn many_marks_lower_the_share_by_half_of_their_excess() {
        let mut pace = pace();
        let marked = DATA | Flags::CONGESTION_EXPERIENCED;
        let share = period(&mut pace, &[marked; 5]);
        assert!((share - (1.0 - 0.5 * (0.5 - 0.3))).abs() < 1e-9);
    }
}
