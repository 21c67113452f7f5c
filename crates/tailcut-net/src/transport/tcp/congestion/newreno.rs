//! NewReno's window (RFC 5681 section 3.1): the defaults of [`CongestionControl`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Acked, CongestionAlgorithm, CongestionControl, Window};

/// NewReno has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewrenoSpec {}

impl CongestionAlgorithm for NewrenoSpec {
    type State = Newreno;
    fn respects_ssthresh(&self) -> bool {
        true
    }
    fn new_state(&self) -> Newreno {
        Newreno
    }
}

/// NewReno's state: empty, as the window is all it needs.
#[derive(Debug, Clone, Copy)]
pub struct Newreno;

impl CongestionControl for Newreno {
    fn grows_twice_in_ns3(&self) -> bool {
        true
    }
}

/// Slow start or congestion avoidance.
#[inline]
pub(super) fn grow(window: &mut Window, mss: u64, acked: &Acked) {
    if acked.by_delivery {
        return grow_by_delivery(window, mss, acked.bytes);
    }
    let cwnd = window.cwnd;
    window.cwnd += if cwnd < window.ssthresh { mss } else { (mss * mss / cwnd).max(1) };
}

/// Grows the window in slow start up to the threshold, and by the remainder in congestion avoidance
/// (Linux: `tcp_reno_cong_avoid`).
fn grow_by_delivery(window: &mut Window, mss: u64, bytes: u64) {
    let slowly = bytes.min(window.ssthresh.saturating_sub(window.cwnd));
    window.cwnd += slowly;
    if bytes > slowly {
        window.cwnd += (mss * (bytes - slowly) / window.cwnd).max(1);
    }
}

/// Half of `bytes`, at least two segments (equation 4).
#[inline]
pub(super) fn halved(bytes: u64, mss: u64) -> u64 {
    (bytes / 2).max(2 * mss)
}
