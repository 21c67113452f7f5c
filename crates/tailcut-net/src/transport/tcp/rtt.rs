//! Round-trip times and the retransmission timeout (RFC 6298).

use tailcut_engine::Time;

use super::TcpSpec;

/// Smoothed round-trip time, its variation and the timeout, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Rtt {
    srtt: u64,
    rttvar: u64,
    rto: u64,
}

impl Rtt {
    /// Before any measurement.
    pub fn new(spec: &TcpSpec) -> Rtt {
        Rtt { srtt: 0, rttvar: 0, rto: spec.initial_rto.0 }
    }

    /// Takes one measurement of a segment that was sent once (Karn's algorithm is the caller's duty).
    #[inline]
    pub fn sample(&mut self, spec: &TcpSpec, rtt: Time) {
        let r = rtt.0;
        if self.srtt == 0 {
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            let error = self.srtt.abs_diff(r);
            self.rttvar = self.rttvar - self.rttvar / 4 + error / 4;
            self.srtt = self.srtt - self.srtt / 8 + r / 8;
        }
        self.end_back_off(spec);
    }

    /// The timeout follows the estimate: with a new measurement and not before (section 5), but see [`DEPARTURES`](super::DEPARTURES).
    #[inline]
    pub fn end_back_off(&mut self, spec: &TcpSpec) {
        if self.srtt > 0 {
            let rto = self.srtt + (4 * self.rttvar).max(spec.clock_granularity.0);
            self.rto = rto.clamp(spec.min_rto.0, spec.max_rto.0.max(spec.min_rto.0));
        }
    }

    /// Doubles the timeout after it expired (5.5).
    pub fn back_off(&mut self, spec: &TcpSpec) {
        self.rto = (self.rto * 2).min(spec.max_rto.0.max(self.rto));
    }

    /// The handshake is over, but its SYN had to be repeated, so it gives no measurement: the first
    /// data gets three times the initial timeout, where that is less than the 3 s of section 5.7 (1 s becomes 3 s).
    /// Otherwise the back-off stays as it is until there is a measurement.
    pub fn established_late(&mut self, spec: &TcpSpec) {
        self.rto = self.rto.max((3 * spec.initial_rto.0).min(Time::from_ms(3_000).0));
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
        rtt.sample(&spec(), Time::from_ms(100));
        assert_eq!((rtt.smoothed(), rtt.rto()), (Time::from_ms(100), Time::from_ms(300)));
    }

    #[test]
    fn later_measurements_are_smoothed_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::new(&spec());
        rtt.sample(&spec(), Time::from_ms(100));
        rtt.sample(&spec(), Time::from_ms(180));
        // SRTT = 7/8 * 100 + 1/8 * 180 = 110; RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5.
        assert_eq!((rtt.smoothed(), rtt.rto()), (Time::from_ms(110), Time::from_ms(340)));
    }

    #[test]
    fn the_timeout_keeps_its_bounds() {
        let mut rtt = Rtt::new(&spec());
        rtt.sample(&spec(), Time::from_us(100));
        assert_eq!(rtt.rto(), Time::from_ms(10));
        for _ in 0..40 {
            rtt.back_off(&spec());
        }
        assert_eq!(rtt.rto(), spec().max_rto);
    }
}
