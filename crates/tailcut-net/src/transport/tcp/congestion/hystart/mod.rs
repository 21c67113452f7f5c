//! HyStart: slow start ends when the network fills, before packets are lost.

mod linux;
mod rfc_9406;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::{Acked, Window, newreno};
use linux::Linux;
use rfc_9406::{HystartPhase, Rfc9406};

/// Which signs end slow start before a loss does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HystartSpec {
    /// None: it ends with a loss.
    None,
    /// Round trips that lengthen by 4 ms at least first slow the growth, and then end it (HyStart++, RFC 9406). It does
    /// nothing where queues are shorter.
    #[serde(rename = "rfc-9406")]
    Rfc9406,
    /// Round trips that lengthen by 4 ms at least, and trains of ACKs, end it at once (Ha and Rhee 2008, as in Linux): trains do so
    /// where queues are short, too.
    Linux,
}

/// The state of one connection.
#[derive(Debug, Clone)]
pub(super) enum HyStart {
    Rfc9406(Rfc9406),
    Linux(Linux),
}

impl HyStart {
    /// That of a new connection, if it has any.
    pub fn start(spec: HystartSpec) -> Option<HyStart> {
        match spec {
            HystartSpec::None => None,
            HystartSpec::Rfc9406 => Some(HyStart::Rfc9406(Rfc9406::default())),
            HystartSpec::Linux => Some(HyStart::Linux(Linux::default())),
        }
    }

    /// An ACK of new data, before anything else is made of it; `avoiding` is when congestion avoidance began, if it has. Slow
    /// start may end with it: the threshold is in place then.
    pub fn look(&mut self, window: &mut Window, mss: u64, acked: &Acked, avoiding: Option<Time>) {
        if let HyStart::Linux(linux) = self
            && linux.ends(window, mss, acked, avoiding)
        {
            window.ssthresh = window.cwnd;
        }
    }

    /// The window grows in slow start. Returns what is left of the acknowledged bytes for congestion avoidance.
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

    /// The window was reduced, by a timeout or otherwise. RFC 9406 is for the first slow start alone (section 4.2); Linux begins
    /// anew with a timeout.
    pub fn reduced(this: &mut Option<HyStart>, timeout: bool) {
        match this {
            Some(HyStart::Linux(linux)) if timeout => *linux = Linux::default(),
            Some(HyStart::Linux(_)) => {}
            _ => *this = None,
        }
    }
}
