//! Busy times of ports, from counters that are read every few milliseconds.

use std::collections::BTreeMap;

use tailcut_engine::{Rate, Time};
use tailcut_net::topology::PortId;

use super::queue_stats::QueueStats;

/// The last counters of each port, and its busy time until then.
pub struct BusyTimes {
    framing: u64,
    ports: BTreeMap<PortId, (QueueStats, Time)>,
}

impl BusyTimes {
    /// Starts from these counters. `framing`: bytes around each packet on the wire.
    pub fn new(before: &BTreeMap<PortId, QueueStats>, framing: u64) -> BusyTimes {
        let ports = before.iter().map(|(port, counts)| (*port, (*counts, Time::ZERO)));
        BusyTimes { framing, ports: ports.collect() }
    }

    /// Adds the counters of a port, whose rate has not changed since the last ones.
    pub fn add(&mut self, port: PortId, rate: Rate, now: QueueStats) {
        let (before, busy) = self.ports[&port];
        let sent = now.since(before).on_wire(self.framing);
        self.ports.insert(port, (now, busy + rate.transmission_time(sent)));
    }

    /// Returns the last counters of a port.
    pub fn counts(&self, port: PortId) -> QueueStats {
        self.ports[&port].0
    }

    /// Returns the busy time of a port up to its last counters.
    pub fn time(&self, port: PortId) -> Time {
        self.ports[&port].1
    }

    /// Returns the busy time of each port in the first `length_ns` after `begin_ns`. If the last
    /// counters are later than that, the busy time is reduced in proportion.
    pub fn within(&self, begin_ns: u64, length_ns: u64) -> BTreeMap<PortId, Time> {
        let within = |(port, (counts, busy)): (&PortId, &(QueueStats, Time))| {
            let asked_ns = counts.at_ns.saturating_sub(begin_ns).max(length_ns).max(1);
            let busy = u128::from(busy.0) * u128::from(length_ns) / u128::from(asked_ns);
            (*port, Time(busy as u64))
        };
        self.ports.iter().map(within).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ETHERNET;
    use super::*;

    const PORT: PortId = PortId(0);
    const FAST: Rate = Rate(100_000_000);
    const SLOW: Rate = Rate(10_000_000);

    fn counts(at_ns: u64, packets: u64) -> QueueStats {
        QueueStats { at_ns, packets, bytes: packets * 1_000, ..QueueStats::default() }
    }

    /// Returns the busy times of a port whose packets have 1,024 bytes on the wire, and which has
    /// sent 7.
    fn busy() -> BusyTimes {
        BusyTimes::new(&[(PORT, counts(1_000, 7))].into(), ETHERNET + 24)
    }

    #[test]
    fn busy_time_is_charged_at_the_rate_of_its_interval() {
        let mut busy = busy();
        busy.add(PORT, FAST, counts(2_000, 10));
        assert_eq!(busy.time(PORT), FAST.transmission_time(3 * 1_024));
        busy.add(PORT, SLOW, counts(3_000, 12));
        let both = FAST.transmission_time(3 * 1_024) + SLOW.transmission_time(2 * 1_024);
        assert_eq!((busy.time(PORT), busy.counts(PORT)), (both, counts(3_000, 12)));
        busy.add(PORT, FAST, counts(4_000, 12));
        assert_eq!(busy.time(PORT), both);
    }

    #[test]
    fn busy_time_after_the_end_is_removed_in_proportion() {
        let mut busy = busy();
        busy.add(PORT, FAST, counts(6_000, 107));
        let whole = FAST.transmission_time(100 * 1_024);
        let within = |length_ns| busy.within(1_000, length_ns)[&PORT];
        assert_eq!(within(5_000), whole);
        assert_eq!(within(4_000), Time(whole.0 * 4 / 5));
        assert_eq!(within(10_000), whole, "it is not over yet");
    }
}
