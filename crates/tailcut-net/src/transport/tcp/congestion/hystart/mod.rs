//! HyStart: slow start ends when the network fills, before packets are lost.

mod linux;
mod rfc_9406;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::{Acked, Window, newreno};
use linux::Linux;
use rfc_9406::{HystartPhase, Rfc9406};

/// Signals that end slow start before a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HystartSpec {
    /// No signal: slow start ends with a loss.
    None,
    /// Round trips longer by 4 ms slow the growth, then end it (RFC 9406).
    ///
    /// HyStart++. It has no effect where queues are shorter.
    #[serde(rename = "rfc-9406")]
    Rfc9406,
    /// Round trips longer by 4 ms, or trains of ACKs, end it at once, as in Linux.
    ///
    /// Ha and Rhee 2008. Trains of ACKs do so where queues are short, too.
    Linux,
}

/// The state of one connection.
#[derive(Debug, Clone)]
pub(super) enum HyStart {
    Rfc9406(Rfc9406),
    Linux(Linux),
}

impl HyStart {
    /// Returns the state of a new connection; `None` if slow start ends with a loss.
    pub fn start(spec: HystartSpec) -> Option<HyStart> {
        match spec {
            HystartSpec::None => None,
            HystartSpec::Rfc9406 => Some(HyStart::Rfc9406(Rfc9406::default())),
            HystartSpec::Linux => Some(HyStart::Linux(Linux::default())),
        }
    }

    /// Handles an ACK of new data before the window grows. `avoiding` is the start of congestion
    /// avoidance, if it has begun. If slow start ends, the threshold is set.
    pub fn look(&mut self, window: &mut Window, mss: u64, acked: &Acked, avoiding: Option<Time>) {
        if let HyStart::Linux(linux) = self
            && linux.ends(window, mss, acked, avoiding)
        {
            window.ssthresh = window.cwnd;
        }
    }

    /// Grows the window in slow start. Returns the acknowledged bytes left for congestion
    /// avoidance.
    pub fn grow(this: &mut Option<HyStart>, window: &mut Window, mss: u64, acked: &Acked) -> u64 {
        match this {
            None => newreno::grow(window, mss, acked),
            Some(HyStart::Rfc9406(hystart)) => {
                let phase = hystart.on_ack(acked);
                window.cwnd += hystart.increase(acked.bytes, mss);
                if phase == HystartPhase::Over {
                    window.ssthresh = window.cwnd;
                    *this = None;
                }
            }
            // `tcp_slow_start`.
            Some(HyStart::Linux(_)) => {
                let grown = acked.bytes.min(window.ssthresh - window.cwnd);
                window.cwnd += grown;
                return acked.bytes - grown;
            }
        }
        0
    }

    /// Handles a reduction. RFC 9406 covers the first slow start only (section 4.2); Linux starts
    /// anew after a timeout.
    pub fn reduced(this: &mut Option<HyStart>, timeout: bool) {
        match this {
            Some(HyStart::Linux(linux)) if timeout => *linux = Linux::default(),
            Some(HyStart::Linux(_)) => {}
            _ => *this = None,
        }
    }
}
