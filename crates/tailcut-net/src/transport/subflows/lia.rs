//! The linked increases algorithm (RFC 6356 section 3; Raiciu et al., NSDI 2011).

/// A subflow's input to the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SubflowWindow {
    /// Congestion window in bytes; of a subflow in fast recovery its slow-start threshold; 0 of one
    /// that does not count.
    pub cwnd: u64,
    /// Smoothed round-trip time in picoseconds; 0 before the first measurement.
    pub rtt: u64,
}

/// Returns the increase of every subflow in congestion avoidance, in bytes of window per byte
/// acknowledged (RFC 6356): `alpha * MSS / total` with
/// `alpha = total * max(w_i / rtt_i^2) / (sum of w_i / rtt_i)^2`, so that the total cancels.
pub fn increase(windows: &[SubflowWindow], mss: u64) -> f64 {
    let (mut best, mut sum) = (0.0f64, 0.0f64);
    for window in windows.iter().filter(|window| window.cwnd > 0 && window.rtt > 0) {
        let (cwnd, rtt) = (window.cwnd as f64, window.rtt as f64);
        let rate = cwnd / rtt;
        best = best.max(rate / rtt);
        sum += rate;
    }
    if sum > 0.0 { mss as f64 * best / (sum * sum) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u64, rtt: u64) -> SubflowWindow {
        SubflowWindow { cwnd, rtt }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b, "{a} against {b}");
    }

    #[test]
    fn one_subflow_grows_as_tcp_does() {
        close(increase(&[window(20_000, 7)], 1_000), 1_000.0 / 20_000.0);
    }

    /// n equal subflows: alpha = 1/n, so that all together add what one TCP would (RFC 6356 section
    /// 3).
    #[test]
    fn equal_subflows_together_grow_as_one() {
        let four = [window(10_000, 100); 4];
        close(increase(&four, 1_000), 1_000.0 * (1.0 / 4.0) / 40_000.0);
    }

    /// Worked out by hand: w/rtt^2 = 10 / 1 and 40 / 16, w/rtt = 10 and 10; alpha = 50 * 10 / 400.
    #[test]
    fn unequal_round_trips_are_weighed() {
        let alpha = 50_000.0 * 10_000.0 / 400_000_000.0;
        close(increase(&[window(10_000, 1), window(40_000, 4)], 1_000), alpha * 1_000.0 / 50_000.0);
    }

    #[test]
    fn a_subflow_that_does_not_count_changes_nothing() {
        let with = increase(&[window(10_000, 100), window(0, 50)], 1_000);
        close(with, increase(&[window(10_000, 100)], 1_000));
    }
}
