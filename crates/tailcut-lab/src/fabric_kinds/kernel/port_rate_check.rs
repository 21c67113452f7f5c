//! Checks the rate of each port while it is busy, from counters that are read every few
//! milliseconds.

use std::collections::BTreeMap;

use tailcut_engine::Rate;
use tailcut_net::topology::PortId;

use super::queue_stats::QueueStats;
use crate::fabric::rate_check::{RateWindows, WINDOW_NS, bytes_in, is_within_rate};

/// A stretch of time in which a port was busy throughout.
#[derive(Debug, Clone, Copy)]
struct BusyStretch {
    from: QueueStats,
    last: QueueStats,
}

/// A check of every port's rate.
pub struct PortRateCheck {
    framing: u64,
    packet: u64,
    stretches: BTreeMap<PortId, BusyStretch>,
    paces: RateWindows,
}

impl PortRateCheck {
    /// Creates the check. `packet`: the largest packet on the wire, in bytes; `framing`: the part
    /// of it around an IP packet.
    pub fn new(packet: u64, framing: u64) -> PortRateCheck {
        PortRateCheck { framing, packet, stretches: BTreeMap::new(), paces: RateWindows::default() }
    }

    /// Adds the counters of a port, and its current rate.
    ///
    /// The port was busy since the last counters if more bytes waited then than it could send until
    /// now. A busy stretch longer than a window is checked, and the next one begins.
    pub fn add(&mut self, port: PortId, rate: Rate, now: QueueStats) {
        let (framing, packet) = (self.framing, self.packet);
        let stretch = self.stretches.entry(port).or_insert(BusyStretch { from: now, last: now });
        let passed_ns = now.at_ns - stretch.last.at_ns;
        if (stretch.last.waiting_on_wire(framing) as f64) < bytes_in(rate, passed_ns) {
            *stretch = BusyStretch { from: now, last: now };
            return;
        }
        stretch.last = now;
        let long_ns = now.at_ns - stretch.from.at_ns;
        if long_ns >= WINDOW_NS {
            let sent = now.since(stretch.from).on_wire(framing);
            self.paces.busy += 1;
            self.paces.off += u64::from(!is_within_rate(rate, long_ns, packet, sent));
            stretch.from = now;
        }
    }

    /// Discards the current stretches, after a change of rates or links.
    pub fn restart(&mut self) {
        self.stretches.clear();
    }

    /// Returns the number of windows checked, and of those off their rate.
    pub fn windows(&self) -> RateWindows {
        self.paces
    }
}

#[cfg(test)]
mod tests {
    use super::super::ETHERNET;
    use super::*;

    const PORT: PortId = PortId(0);
    const RATE: Rate = Rate(100_000_000);

    /// Returns the windows of a port over half a second, read every 5 ms, that sends this share of
    /// its rate while `waiting` packets of 1,000 bytes are queued.
    fn judged(share: f64, waiting: u64) -> RateWindows {
        let mut rates = PortRateCheck::new(1_000, ETHERNET);
        for step in 0..=100_u64 {
            let at_ns = step * 5_000_000;
            let packets = (bytes_in(RATE, at_ns) * share / 1_000.0) as u64;
            let waiting_bytes = waiting * 1_000;
            rates.add(
                PORT,
                RATE,
                QueueStats {
                    at_ns,
                    packets,
                    bytes: packets * 1_000,
                    waiting,
                    waiting_bytes,
                    drops: 0,
                },
            );
        }
        rates.windows()
    }

    #[test]
    fn a_busy_port_at_its_rate_is_never_off() {
        assert_eq!(judged(1.0, 63), RateWindows { busy: 10, off: 0 });
        assert_eq!(judged(0.98, 63), RateWindows { busy: 10, off: 0 });
    }

    #[test]
    fn a_busy_port_that_is_slow_or_fast_is_off_its_rate() {
        assert_eq!(judged(0.97, 63), RateWindows { busy: 10, off: 10 });
        assert_eq!(judged(1.01, 63), RateWindows { busy: 10, off: 10 });
    }

    #[test]
    fn a_port_whose_queue_may_have_run_empty_is_not_judged() {
        assert_eq!(judged(0.5, 62), RateWindows { busy: 0, off: 0 });
    }

    #[test]
    fn queued_bytes_include_the_framing() {
        let mut rates = PortRateCheck::new(1_000, ETHERNET + 24);
        for step in 0..=20_u64 {
            let packets = step * 61;
            // 62 packets of 1,000 bytes are less than 5 ms of traffic; with 24 bytes more each they
            // are enough.
            let counts = QueueStats {
                at_ns: step * 5_000_000,
                packets,
                bytes: packets * 1_000,
                ..QueueStats::default()
            };
            rates.add(PORT, RATE, QueueStats { waiting: 62, waiting_bytes: 62_000, ..counts });
        }
        assert_eq!(rates.windows(), RateWindows { busy: 2, off: 0 });
    }

    #[test]
    fn traffic_before_a_restart_is_not_judged() {
        let mut rates = PortRateCheck::new(1_000, ETHERNET);
        for step in 0..=20_u64 {
            if step == 8 {
                rates.restart();
            }
            let now_ns = step * 5_000_000;
            let packets =
                if step < 8 { 0 } else { (bytes_in(RATE, now_ns - 35_000_000) / 1_000.0) as u64 };
            let counts = QueueStats {
                at_ns: now_ns,
                packets,
                bytes: packets * 1_000,
                ..QueueStats::default()
            };
            rates.add(PORT, RATE, QueueStats { waiting: 90, waiting_bytes: 90_000, ..counts });
        }
        assert_eq!(rates.windows(), RateWindows { busy: 1, off: 0 });
    }
}
