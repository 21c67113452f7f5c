//! NewReno's window (RFC 5681 section 3.1).

use super::Window;

/// Slow start or congestion avoidance.
#[inline]
pub(super) fn grow(window: &mut Window, mss: u64) {
    let cwnd = window.cwnd;
    window.cwnd += if cwnd < window.ssthresh { mss } else { (mss * mss / cwnd).max(1) };
}

/// Half of `bytes`, at least two segments (equation 4).
#[inline]
pub(super) fn halved(bytes: u64, mss: u64) -> u64 {
    (bytes / 2).max(2 * mss)
}
