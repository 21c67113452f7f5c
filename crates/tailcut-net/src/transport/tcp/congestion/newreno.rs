//! NewReno's window (RFC 5681 section 3.1): what [`CongestionControl`] does where an algorithm says nothing else.

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

/// It remembers nothing but the window.
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

/// Slow start up to the threshold, and congestion avoidance by what is left (Linux: `tcp_reno_cong_avoid`).
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
