//! Checks the rates of the links to hosts while these are busy, in windows of 50 ms.

use serde::{Deserialize, Serialize};
use tailcut_engine::Rate;
use tailcut_net::faults::{Change, ChangeKind};
use tailcut_net::topology::{Graph, NodeId};

/// The length of a window in nanoseconds.
pub const WINDOW_NS: u64 = 50_000_000;
/// The lateness of frames that the check tolerates, in nanoseconds.
const LATE_NS: u64 = 300_000;
const LEAST: f64 = 0.98;

/// Returns the bytes that a rate sends in `ns`.
pub fn bytes_in(rate: Rate, ns: u64) -> f64 {
    rate.0 as f64 * ns as f64 / 8e9
}

/// Whether the bytes that a port sent while busy match its rate. Tolerance: one packet plus 300 us
/// of traffic either way, and 2 % below.
pub fn is_within_rate(rate: Rate, busy_ns: u64, packet: u64, sent: u64) -> bool {
    let (whole, sent) = (bytes_in(rate, busy_ns), sent as f64);
    let slack = packet as f64 + bytes_in(rate, LATE_NS);
    sent + slack >= LEAST * whole && sent <= whole + slack
}

/// Numbers of checked windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RateWindows {
    /// Windows in which a link was busy throughout.
    pub busy: u64,
    /// Busy windows in which the host received more or less than the link's rate.
    pub off: u64,
}

/// Bytes of a window: those due in it, and those handed over in it.
type WindowBytes = (u64, u64);

/// The rate of a host's last link from a time on, in nanoseconds after the start.
type RateFrom = (u64, Rate);

/// A check of the rate at which each host receives.
pub struct HostRateCheck {
    /// The rates of each host's last link, in order of time.
    rates: Vec<Vec<RateFrom>>,
    windows: Vec<Vec<WindowBytes>>,
    longest: u64,
}

impl HostRateCheck {
    /// Creates the check for a graph whose links change as listed, in order of time.
    pub fn new(graph: &Graph, changes: &[Change]) -> HostRateCheck {
        let built = |host| {
            let link = graph.links.iter().find(|link| link.a == host || link.b == host);
            link.map_or(Rate(1), |link| link.rate)
        };
        let rates = |host| {
            let later = changes.iter().filter_map(|change| match change.what {
                ChangeKind::Rate(port, rate) if graph.far_end(port) == host => {
                    Some((change.at.as_ns(), rate.unwrap_or(built(host))))
                }
                _ => None,
            });
            [(0, built(host))].into_iter().chain(later).collect()
        };
        let rates: Vec<Vec<RateFrom>> = (0..graph.hosts).map(NodeId).map(rates).collect();
        HostRateCheck { windows: vec![vec![]; rates.len()], rates, longest: 0 }
    }

    /// Records a packet by the times at which it was due and handed over, in nanoseconds after the
    /// start.
    pub fn add(&mut self, host: u32, bytes: u64, due_ns: u64, handed_ns: u64) {
        let windows = &mut self.windows[host as usize];
        let [due, handed] = [due_ns, handed_ns].map(|ns| (ns / WINDOW_NS) as usize);
        if windows.len() <= due.max(handed) {
            windows.resize(due.max(handed) + 1, (0, 0));
        }
        windows[due].0 += bytes;
        windows[handed].1 += bytes;
        self.longest = self.longest.max(bytes);
    }

    /// Counts the windows in which a host's last link was busy throughout, and those of them that
    /// missed its rate. Windows with a rate change are skipped.
    pub fn windows(&self) -> RateWindows {
        let mut paces = RateWindows::default();
        for (rates, windows) in self.rates.iter().zip(&self.windows) {
            for (begin_ns, &(due, handed)) in (0..).step_by(WINDOW_NS as usize).zip(windows) {
                let Some(rate) = constant_rate(rates, begin_ns) else { continue };
                if due as f64 + (self.longest as f64) < bytes_in(rate, WINDOW_NS) {
                    continue;
                }
                paces.busy += 1;
                paces.off += u64::from(!is_within_rate(rate, WINDOW_NS, self.longest, handed));
            }
        }
        paces
    }
}

/// Returns the rate of a link in the window that begins then; none if the rate changes within it.
fn constant_rate(rates: &[RateFrom], begin_ns: u64) -> Option<Rate> {
    let by = rates.partition_point(|(from_ns, _)| *from_ns <= begin_ns);
    let next = rates.get(by).is_none_or(|(from_ns, _)| *from_ns >= begin_ns + WINDOW_NS);
    next.then(|| rates[by - 1].1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tailcut_net::faults::FaultsSpec;
    use tailcut_net::topology::chain::Chain;

    use super::*;

    /// Returns the check of two hosts with links of 100 Mbps, apart from these incidents.
    fn pace(incidents: serde_json::Value) -> HostRateCheck {
        let chain = serde_json::from_value::<Chain>(json!({ "rate": "100Mbps" }));
        let graph = chain.expect("it is a chain").build().expect("it can be built");
        let faults = serde_json::from_value::<FaultsSpec>(json!({ "incidents": incidents }));
        let changes = faults.expect("they are faults").changes(&graph).expect("they suit it");
        HostRateCheck::new(&graph, &changes)
    }

    /// Returns the windows of a link of 100 Mbps, which carries 625 packets of 1,000 bytes in a
    /// window.
    fn judged(late_ns: impl Fn(u64) -> u64, every: u64) -> RateWindows {
        let mut pace = pace(json!([]));
        for packet in (0..6_250).step_by(every as usize) {
            let due_ns = packet * 80_000;
            pace.add(1, 1_000, due_ns, due_ns + late_ns(due_ns));
        }
        pace.windows()
    }

    #[test]
    fn a_busy_link_at_its_rate_is_never_off() {
        assert_eq!(judged(|_| 0, 1), RateWindows { busy: 10, off: 0 });
        assert_eq!(judged(|_| 300_000, 1), RateWindows { busy: 10, off: 0 });
    }

    #[test]
    fn a_delayed_link_is_off_while_delayed_and_while_catching_up() {
        // Packets due from 190 ms to 210 ms arrive at 210 ms.
        let held = |due: u64| 210_000_000_u64.saturating_sub(due).min(20_000_000);
        let held = |due: u64| if due >= 190_000_000 { held(due) } else { 0 };
        assert_eq!(judged(held, 1), RateWindows { busy: 10, off: 2 });
    }

    #[test]
    fn a_link_that_is_not_busy_is_not_judged() {
        assert_eq!(judged(|_| 20_000_000, 2), RateWindows { busy: 0, off: 0 });
    }
    /// Returns the windows of half a second, in which a link has 20 Mbps from 120 ms to 300 ms and
    /// sends at `mbps` meanwhile.
    fn judged_slow(link: &str, mbps: u64) -> RateWindows {
        let slow = json!({ "kind": "rate", "link": link, "one_way": true, "rate": "20Mbps", "at": "120ms", "until": "300ms" });
        let mut pace = pace(json!([slow]));
        let mut due_ns = 0;
        while due_ns < 500_000_000 {
            pace.add(1, 1_000, due_ns, due_ns);
            let is_slow = (120_000_000..300_000_000).contains(&due_ns);
            due_ns += 8_000_000 / if is_slow { mbps } else { 100 };
        }
        pace.windows()
    }

    #[test]
    fn a_link_is_judged_by_its_rate_at_the_time() {
        // The third of ten windows contains a change, and three are slow.
        assert_eq!(judged_slow("s1>h1", 20), RateWindows { busy: 9, off: 0 });
        assert_eq!(judged_slow("s1>h1", 40), RateWindows { busy: 9, off: 3 });
        assert_eq!(judged_slow("s1>h1", 10), RateWindows { busy: 6, off: 0 }, "it is not busy");
    }

    #[test]
    fn a_rate_change_of_another_link_changes_nothing() {
        for other in ["h1>s1", "s0>h0", "s0>s1"] {
            assert_eq!(judged_slow(other, 100), RateWindows { busy: 10, off: 0 }, "{other}");
        }
    }
}
