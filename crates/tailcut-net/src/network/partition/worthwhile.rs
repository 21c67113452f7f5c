//! How many threads make a run quicker than one.

use tailcut_engine::Time;

/// Packet-hops below which a run is simulated by one thread: some second.
const LEAST_HOPS: u64 = 16_000_000;
/// Packet-hops for each host below which it is: every thread builds the whole network.
const LEAST_HOPS_PER_HOST: u64 = 1_000;
/// Packet-hops of each thread in a window for which it pays to meet.
const HOPS_PER_WINDOW: u64 = 64;

/// The expected size of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSize {
    pub packet_hops: u64,
    pub hosts: u64,
    /// The time in which most packets are sent.
    pub busy: Time,
    /// The length of a window.
    pub lookahead: Time,
}

/// Returns how many of `at_most` threads pay for a run; at least one.
pub(super) fn worthwhile_threads(size: &RunSize, at_most: usize) -> usize {
    let least = LEAST_HOPS.max(size.hosts.saturating_mul(LEAST_HOPS_PER_HOST));
    if at_most < 2 || size.packet_hops < least {
        return 1;
    }
    let windows = (size.busy.0 / size.lookahead.0.max(1)).max(1);
    let each_with_enough = size.packet_hops / windows / HOPS_PER_WINDOW;
    usize::try_from(each_with_enough).unwrap_or(usize::MAX).clamp(1, at_most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Web search at load 0.5 on a fat-tree of 1 Gbps links of 1 microsecond: a third of a
    /// packet-hop for each host in a window of 1.624 microseconds.
    fn fat_tree(hosts: u64, milliseconds: u64) -> RunSize {
        let packet_hops = hosts * milliseconds * 207;
        let [busy, lookahead] = [Time::from_ms(milliseconds), Time::from_ns(1_624)];
        RunSize { packet_hops, hosts, busy, lookahead }
    }

    #[test]
    fn threads_are_those_that_have_enough_to_do_in_a_window_and_no_more_than_there_are() {
        // k = 8: 43 packet-hops in a window; k = 16: 344, five times 64; k = 32: 2,753, 43 times.
        for (size, at_most, expected) in [
            (fat_tree(128, 1_000), 2, 1),
            (fat_tree(128, 1_000), 16, 1),
            (fat_tree(1_024, 100), 1, 1),
            (fat_tree(1_024, 100), 2, 2),
            (fat_tree(1_024, 100), 4, 4),
            (fat_tree(1_024, 100), 16, 5),
            (fat_tree(8_192, 20), 2, 2),
            (fat_tree(8_192, 20), 16, 16),
            (fat_tree(8_192, 20), 64, 43),
        ] {
            assert_eq!(worthwhile_threads(&size, at_most), expected, "{size:?} of {at_most}");
        }
    }

    #[test]
    fn a_thread_needs_64_packet_hops_in_a_window() {
        let size = |per_window: u64| RunSize {
            packet_hops: 1_000_000 * per_window,
            hosts: 16,
            busy: Time::from_ms(1_000),
            lookahead: Time::from_us(1),
        };
        let threads = [127, 128, 191, 192].map(|many| worthwhile_threads(&size(many), 16));
        assert_eq!(threads, [1, 2, 2, 3]);
    }

    #[test]
    fn a_short_run_has_one_thread() {
        let size = |packet_hops, hosts| RunSize {
            packet_hops,
            hosts,
            busy: Time::from_ms(1),
            lookahead: Time::from_us(1),
        };
        for (packet_hops, hosts, expected) in [
            (15_999_999, 16, 1),
            (16_000_000, 16, 4),
            (16_000_000, 16_000, 4),
            (16_000_000, 16_001, 1),
            (65_535_999, 65_536, 1),
            (65_536_000, 65_536, 4),
        ] {
            assert_eq!(worthwhile_threads(&size(packet_hops, hosts), 4), expected);
        }
    }

    #[test]
    fn windows_without_an_end_and_runs_of_no_time_are_one_window() {
        let size =
            |busy, lookahead| RunSize { packet_hops: 20_000_000, hosts: 16, busy, lookahead };
        for size in
            [size(Time::ZERO, Time(1)), size(Time(1), Time::NEVER), size(Time(1), Time::ZERO)]
        {
            assert_eq!(worthwhile_threads(&size, 3), 3);
        }
    }
}
