//! A window whose increase is computed from several senders together (RFC 6356 section 3).

use super::{Acked, CongestionControl, Window, newreno};

/// The increase that the group of senders allows this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coupled {
    /// Bytes of window per byte acknowledged in congestion avoidance: alpha * MSS / total window of
    /// RFC 6356. NewReno's increase bounds it.
    pub increase: f64,
    /// The fraction of a byte left over from earlier increases.
    carry: f64,
}

impl Coupled {
    /// A group that allows that many bytes of window per byte acknowledged.
    pub fn new(increase: f64) -> Coupled {
        Coupled { increase, carry: 0.0 }
    }
}

impl CongestionControl for Coupled {
    fn grow(&mut self, window: &mut Window, mss: u64, acked: &Acked) {
        // An unused window neither grows nor counts among the windows of the group (RFC 7661
        // section 4.4).
        if acked.flight + mss <= window.cwnd {
            return;
        }
        if window.cwnd < window.ssthresh {
            return newreno::grow(window, mss, acked);
        }
        let alone = mss as f64 / window.cwnd as f64;
        // NewReno's increase is per ACK: appropriate byte counting with L = 1 (RFC 3465).
        let bytes = if acked.by_delivery { acked.bytes } else { acked.bytes.min(mss) };
        self.carry += bytes as f64 * self.increase.min(alone);
        let whole = self.carry.floor();
        window.cwnd += whole as u64;
        self.carry -= whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_engine::Time;

    const MSS: u64 = 1_000;

    fn after(increase: f64, window: Window, acks: u32) -> u64 {
        after_acks_of(MSS, increase, window, acks)
    }

    fn after_acks_of(bytes: u64, increase: f64, window: Window, acks: u32) -> u64 {
        after_acks_in_flight(None, bytes, increase, window, acks)
    }

    fn acked(bytes: u64, by_delivery: bool, flight: u64) -> Acked {
        let (now, smoothed) = (Time::ZERO, Time::ZERO);
        Acked { now, bytes, by_delivery, flight, rtt: None, smoothed, una: 1, end: 2 }
    }

    fn after_acks_in_flight(
        flight: Option<u64>,
        bytes: u64,
        increase: f64,
        mut window: Window,
        acks: u32,
    ) -> u64 {
        let mut coupled = Coupled::new(increase);
        for _ in 0..acks {
            let acked = acked(bytes, false, flight.unwrap_or(window.cwnd));
            coupled.grow(&mut window, MSS, &acked);
        }
        window.cwnd
    }

    #[test]
    fn the_group_s_increase_adds_up_below_a_byte() {
        let window = Window { cwnd: 10 * MSS, ssthresh: 2 * MSS };
        assert_eq!(after(0.000_25, window, 10), 10 * MSS + 2);
    }

    #[test]
    fn no_window_of_the_group_grows_faster_than_alone() {
        let window = Window { cwnd: 10 * MSS, ssthresh: 2 * MSS };
        assert_eq!(after(0.5, window, 1), 10 * MSS + MSS / 10);
    }

    /// Delayed ACKs, and the one that ends a recovery.
    #[test]
    fn an_ack_of_many_segments_adds_what_it_adds_to_a_window_alone() {
        let window = Window { cwnd: 10 * MSS, ssthresh: 2 * MSS };
        for bytes in [2 * MSS, 30 * MSS] {
            assert_eq!(after_acks_of(bytes, 0.5, window, 1), 10 * MSS + MSS / 10);
        }
    }

    #[test]
    fn by_delivery_an_ack_of_many_segments_adds_for_each() {
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 2 * MSS };
        Coupled::new(0.5).grow(&mut window, MSS, &acked(3 * MSS, true, 10 * MSS));
        assert_eq!(window.cwnd, 10 * MSS + 3 * MSS / 10);
    }

    #[test]
    fn a_window_that_is_not_in_use_does_not_grow() {
        let congestion_avoidance = Window { cwnd: 10 * MSS, ssthresh: 2 * MSS };
        let slow_start = Window { cwnd: 10 * MSS, ssthresh: 100 * MSS };
        for window in [congestion_avoidance, slow_start] {
            assert_eq!(after_acks_in_flight(Some(9 * MSS), MSS, 0.5, window, 100), 10 * MSS);
        }
    }

    #[test]
    fn slow_start_is_not_coupled() {
        let window = Window { cwnd: 2 * MSS, ssthresh: 10 * MSS };
        assert_eq!(after(0.0, window, 3), 5 * MSS);
    }
}
