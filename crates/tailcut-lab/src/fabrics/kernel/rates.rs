//! What each port sent while it was busy, against its rate, of counts that are taken every few milliseconds.

use std::collections::BTreeMap;

use tailcut_engine::Rate;
use tailcut_net::topology::PortId;

use super::counters::Counts;
use crate::fabric::pace::{Paces, WINDOW_NS, in_ns, keeps};

/// A stretch of time in which a port was busy without a break.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Counts,
    last: Counts,
}

/// What is known of every port.
pub struct Rates {
    framing: u64,
    packet: u64,
    stretches: BTreeMap<PortId, Stretch>,
    paces: Paces,
}

impl Rates {
    /// Of ports whose packets have at most so many bytes on the wire, `framing` of them around an IP packet.
    pub fn new(packet: u64, framing: u64) -> Rates {
        Rates { framing, packet, stretches: BTreeMap::new(), paces: Paces::default() }
    }

    /// What a port that sends at this rate has counted by now.
    ///
    /// It was busy since it was asked last if more waited then than it could send since. Whatever is longer than a window is judged,
    /// and the next begins.
    pub fn add(&mut self, port: PortId, rate: Rate, now: Counts) {
        let (framing, packet) = (self.framing, self.packet);
        let stretch = self.stretches.entry(port).or_insert(Stretch { from: now, last: now });
        let passed_ns = now.at_ns - stretch.last.at_ns;
        if (stretch.last.waiting_on_wire(framing) as f64) < in_ns(rate, passed_ns) {
            *stretch = Stretch { from: now, last: now };
            return;
        }
        stretch.last = now;
        let long_ns = now.at_ns - stretch.from.at_ns;
        if long_ns >= WINDOW_NS {
            let sent = now.since(stretch.from).on_wire(framing);
            self.paces.busy += 1;
            self.paces.off += u64::from(!keeps(rate, long_ns, packet, sent));
            stretch.from = now;
        }
    }

    /// Rates and links are others from now on.
    pub fn begin_again(&mut self) {
        self.stretches.clear();
    }

    /// How many windows there were, and how many of these were off their rate.
    pub fn judge(&self) -> Paces {
        self.paces
    }
}

#[cfg(test)]
mod tests {
    use super::super::ETHERNET;
    use super::*;

    const PORT: PortId = PortId(0);
    const RATE: Rate = Rate(100_000_000);

    /// Half a second, asked every 5 ms: a port that sends this share of its rate, in which so many packets of 1,000 bytes wait.
    fn judged(share: f64, waiting: u64) -> Paces {
        let mut rates = Rates::new(1_000, ETHERNET);
        for step in 0..=100_u64 {
            let at_ns = step * 5_000_000;
            let packets = (in_ns(RATE, at_ns) * share / 1_000.0) as u64;
            let waiting_bytes = waiting * 1_000;
            rates.add(
                PORT,
                RATE,
                Counts { at_ns, packets, bytes: packets * 1_000, waiting, waiting_bytes, drops: 0 },
            );
        }
        rates.judge()
    }

    #[test]
    fn a_busy_port_that_keeps_its_rate_is_silent() {
        assert_eq!(judged(1.0, 63), Paces { busy: 10, off: 0 });
        assert_eq!(judged(0.98, 63), Paces { busy: 10, off: 0 });
    }

    #[test]
    fn a_busy_port_that_is_slow_or_fast_is_off_its_rate() {
        assert_eq!(judged(0.97, 63), Paces { busy: 10, off: 10 });
        assert_eq!(judged(1.01, 63), Paces { busy: 10, off: 10 });
    }

    #[test]
    fn a_port_whose_queue_could_have_been_empty_meanwhile_has_no_rate_to_keep() {
        assert_eq!(judged(0.5, 62), Paces { busy: 0, off: 0 });
    }

    #[test]
    fn what_waits_is_counted_with_what_is_around_it_on_the_wire() {
        let mut rates = Rates::new(1_000, ETHERNET + 24);
        for step in 0..=20_u64 {
            let packets = step * 61;
            // 62 packets of 1,000 bytes are too few for 5 ms, and 24 bytes more each are enough.
            let counts = Counts {
                at_ns: step * 5_000_000,
                packets,
                bytes: packets * 1_000,
                ..Counts::default()
            };
            rates.add(PORT, RATE, Counts { waiting: 62, waiting_bytes: 62_000, ..counts });
        }
        assert_eq!(rates.judge(), Paces { busy: 2, off: 0 });
    }

    #[test]
    fn what_was_sent_before_a_change_is_not_held_against_the_rate_after_it() {
        let mut rates = Rates::new(1_000, ETHERNET);
        for step in 0..=20_u64 {
            if step == 8 {
                rates.begin_again();
            }
            let now_ns = step * 5_000_000;
            let packets =
                if step < 8 { 0 } else { (in_ns(RATE, now_ns - 35_000_000) / 1_000.0) as u64 };
            let counts =
                Counts { at_ns: now_ns, packets, bytes: packets * 1_000, ..Counts::default() };
            rates.add(PORT, RATE, Counts { waiting: 90, waiting_bytes: 90_000, ..counts });
        }
        assert_eq!(rates.judge(), Paces { busy: 1, off: 0 });
    }
}
