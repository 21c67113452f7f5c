//! Round-trip times and the retransmission timeout (RFC 6298).

use tailcut_engine::Time;

use super::{RtoVariation, TcpSpec};

/// Smoothed round-trip time, its variation and the timeout, in picoseconds.
#[derive(Debug, Clone)]
pub struct Rtt {
    srtt: u64,
    rttvar: u64,
    rto: u64,
    /// Linux's substitute for four variations.
    largest: Option<Box<Largest>>,
}

/// Linux's variation of round trips: four mean deviations, and the largest that they were in a
/// window of data.
#[derive(Debug, Clone)]
struct Largest {
    deviations: u64,
    of_window: u64,
    kept: u64,
    /// The window ends when this segment is acknowledged.
    until: u32,
}

impl Largest {
    fn first(rtt: u64, floor: u64, next: u32) -> Largest {
        let kept = (2 * rtt).max(floor);
        Largest { deviations: 2 * rtt, of_window: kept, kept, until: next }
    }

    /// `error` is how far the measurement lies from the smoothed one, which it may be `below`.
    fn sample(&mut self, error: u64, below: bool, floor: u64, una: u32, next: u32) {
        let mean = self.deviations / 4;
        self.deviations = match error.checked_sub(mean) {
            // What becomes shorter is no reason to wait longer.
            Some(more) if below => self.deviations + more / 8,
            _ => self.deviations - mean + error,
        };
        self.of_window = self.of_window.max(self.deviations);
        self.kept = self.kept.max(self.of_window);
        if una > self.until {
            self.kept -= (self.kept - self.of_window) / 4;
            self.of_window = floor;
            self.until = next;
        }
    }
}

impl Rtt {
    /// Before any measurement.
    pub fn new(spec: &TcpSpec) -> Rtt {
        Rtt { srtt: 0, rttvar: 0, rto: spec.initial_rto.0, largest: None }
    }

    /// Takes one measurement of a segment that was sent once (Karn's algorithm is the caller's
    /// duty). Segments below `una` are acknowledged, those below `next` sent.
    #[inline]
    pub fn sample(&mut self, spec: &TcpSpec, rtt: Time, una: u32, next: u32) {
        let r = rtt.0;
        if spec.rto_variation == RtoVariation::Linux {
            self.note_largest(spec, r, una, next);
        }
        if self.srtt == 0 {
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            let error = self.srtt.abs_diff(r);
            if spec.imitate.rtt_rounds_once {
                self.rttvar = (3 * self.rttvar + error) / 4;
                self.srtt = (7 * self.srtt + r) / 8;
            } else {
                self.rttvar = self.rttvar - self.rttvar / 4 + error / 4;
                self.srtt = self.srtt - self.srtt / 8 + r / 8;
            }
        }
        self.recompute_rto(spec);
    }

    #[cold]
    fn note_largest(&mut self, spec: &TcpSpec, r: u64, una: u32, next: u32) {
        let floor = spec.clock_granularity.0;
        match &mut self.largest {
            Some(largest) => {
                largest.sample(self.srtt.abs_diff(r), r < self.srtt, floor, una, next);
            }
            None => self.largest = Some(Box::new(Largest::first(r, floor, next))),
        }
    }

    /// The timeout follows the estimate: with a new measurement and not before (section 5), but see
    /// [`DEPARTURES`](super::DEPARTURES).
    #[inline]
    pub fn recompute_rto(&mut self, spec: &TcpSpec) {
        if self.srtt > 0 {
            let variation = match &self.largest {
                Some(largest) => largest.kept,
                None => (4 * self.rttvar).max(spec.clock_granularity.0),
            };
            let rto = self.srtt + variation;
            self.rto = rto.clamp(spec.min_rto.0, spec.max_rto.0.max(spec.min_rto.0));
        }
    }

    /// Doubles the timeout after it expired (5.5).
    pub fn back_off(&mut self, spec: &TcpSpec) {
        self.rto = (self.rto * 2).min(spec.max_rto.0.max(self.rto));
    }

    /// The handshake is over, but its SYN had to be repeated, so it gives no measurement: the first
    /// data gets three times the initial timeout, where that is less than the 3 s of section 5.7 (1
    /// s becomes 3 s). Otherwise the back-off stays as it is until there is a measurement. No
    /// timeout is longer than `max_rto`.
    pub fn established_late(&mut self, spec: &TcpSpec) {
        let first = spec.initial_rto.0.saturating_mul(3).min(Time::from_ms(3_000).0);
        self.rto = self.rto.max(first.min(spec.max_rto.0));
    }

    /// Sets the timeout of the first data to `spec.first_data_rto`: the handshake gives no
    /// measurement then.
    pub fn await_data(&mut self, timeout: Time) {
        self.rto = timeout.0;
    }

    /// The current timeout.
    #[inline]
    pub fn rto(&self) -> Time {
        Time(self.rto)
    }

    /// The smoothed round-trip time; zero before the first measurement.
    pub fn smoothed(&self) -> Time {
        Time(self.srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TcpSpec {
        TcpSpec {
            min_rto: Time::from_ms(10),
            initial_rto: Time::from_ms(1000),
            ..TcpSpec::default()
        }
    }

    #[test]
    fn the_first_measurement_sets_the_estimate() {
        let mut rtt = Rtt::new(&spec());
        assert_eq!(rtt.rto(), Time::from_ms(1000));
        rtt.sample(&spec(), Time::from_ms(100), 0, 0);
        assert_eq!((rtt.smoothed(), rtt.rto()), (Time::from_ms(100), Time::from_ms(300)));
    }

    #[test]
    fn later_measurements_are_smoothed_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::new(&spec());
        rtt.sample(&spec(), Time::from_ms(100), 0, 0);
        rtt.sample(&spec(), Time::from_ms(180), 0, 0);
        // SRTT = 7/8 * 100 + 1/8 * 180 = 110; RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5.
        assert_eq!((rtt.smoothed(), rtt.rto()), (Time::from_ms(110), Time::from_ms(340)));
    }

    #[test]
    fn ns3_rounds_once_per_sample() {
        let smoothed = |names: &[&str]| {
            let imitate = crate::transport::tcp::Imitation::of(names).expect("they are departures");
            let spec = TcpSpec { imitate, ..spec() };
            let mut rtt = Rtt::new(&spec);
            [1_007, 1_003].iter().for_each(|&ps| rtt.sample(&spec, Time(ps), 0, 0));
            (rtt.smoothed(), rtt.rttvar)
        };
        // (7 * 1,007 + 1,003) / 8 = 1,006.5, and (3 * 503 + 4) / 4 = 378.25.
        assert_eq!(smoothed(&[]), (Time(1_007), 379));
        assert_eq!(smoothed(&["rtt-rounds-once"]), (Time(1_006), 378));
    }

    #[test]
    fn the_timeout_keeps_its_bounds() {
        let mut rtt = Rtt::new(&spec());
        rtt.sample(&spec(), Time::from_us(100), 0, 0);
        assert_eq!(rtt.rto(), Time::from_ms(10));
        for _ in 0..40 {
            rtt.back_off(&spec());
        }
        assert_eq!(rtt.rto(), spec().max_rto);
    }

    #[test]
    fn the_first_data_waits_no_longer_than_any_other() {
        let bounded = |initial_ms, max_ms| {
            let (initial_rto, max_rto) = (Time::from_ms(initial_ms), Time::from_ms(max_ms));
            let spec = TcpSpec { initial_rto, max_rto, ..spec() };
            let mut rtt = Rtt::new(&spec);
            rtt.back_off(&spec);
            rtt.established_late(&spec);
            rtt.rto()
        };
        assert_eq!(bounded(20, 20), Time::from_ms(20));
        assert_eq!(bounded(20, 50), Time::from_ms(50));
        assert_eq!(bounded(20, 100), Time::from_ms(60));
        assert_eq!(bounded(1_000, 60_000), Time::from_ms(3_000));
    }

    /// Segments below `una` of `next` are acknowledged by each of these round trips, in
    /// milliseconds.
    fn linux(samples: &[(u64, u32, u32)]) -> Time {
        let spec = TcpSpec {
            clock_granularity: Time::from_ms(10),
            rto_variation: RtoVariation::Linux,
            ..spec()
        };
        let mut rtt = Rtt::new(&spec);
        for &(ms, una, next) in samples {
            rtt.sample(&spec, Time::from_ms(ms), una, next);
        }
        rtt.rto()
    }

    #[test]
    fn linux_begins_as_the_rfc_does() {
        assert_eq!(linux(&[(100, 0, 0)]), Time::from_ms(300));
    }

    #[test]
    fn linux_keeps_the_largest_variation_of_a_window() {
        // After the first four deviations are 200 ms; round trips without any take them to 150,
        // 112.5 and 84.375.
        let window = [(100, 0, 9), (100, 1, 9), (100, 2, 9), (100, 3, 9)];
        assert_eq!(linux(&window), Time::from_ms(300));
    }

    #[test]
    fn linux_takes_a_quarter_of_the_difference_back_when_a_window_ends() {
        // The first window ends with 200 ms, which it began with, the second with the 112.5 that it
        // had at most.
        let windows = [(100, 0, 4), (100, 5, 9), (100, 10, 19)];
        assert_eq!(linux(&windows[..2]), Time::from_ms(300));
        assert_eq!(linux(&windows), Time::from_us(300_000 - (200_000 - 112_500) / 4));
    }

    #[test]
    fn linux_counts_a_shorter_round_trip_an_eighth() {
        // 40 ms for 100: SRTT is 92.5. The error, 60, is 10 more than the mean deviation, 50, of
        // which four are 200.
        let rto = linux(&[(100, 0, 9), (40, 1, 9)]);
        assert_eq!(rto, Time::from_us(92_500 + 201_250));
        // 160 ms: SRTT is 107.5, and all of the 10 count.
        assert_eq!(linux(&[(100, 0, 9), (160, 1, 9)]), Time::from_us(107_500 + 210_000));
    }

    #[test]
    fn linux_bounds_the_variation_from_below() {
        // A quarter of what is too much stays each time, and at last less than four picoseconds.
        let quiet: Vec<_> = (0..200).map(|n| (100, 2 * n + 1, 2 * n + 2)).collect();
        assert_eq!(linux(&quiet).as_ns(), 110_000_000);
    }
}
