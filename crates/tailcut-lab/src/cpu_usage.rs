//! CPU contention and steal during a run, from `/proc/pressure/cpu` and `/proc/stat`.

use std::fs;

use crate::sys::monotonic_ns;

/// Counters of CPU usage at one instant, since boot.
pub struct CpuUsage {
    at_ns: u64,
    /// Microseconds in which some process waited for a CPU; none if the kernel does not report it.
    waited_us: Option<u64>,
    ticks: Option<CpuTicks>,
}

impl CpuUsage {
    /// Reads the counters.
    pub fn now() -> Self {
        Self {
            at_ns: monotonic_ns(),
            waited_us: fs::read_to_string("/proc/pressure/cpu").ok().as_deref().and_then(waited_us),
            ticks: fs::read_to_string("/proc/stat").ok().as_deref().and_then(CpuTicks::read),
        }
    }

    /// Returns the share of the time until `later` in which some process waited for a CPU.
    pub fn pressure_until(&self, later: &Self) -> Option<f64> {
        let waited = later.waited_us? - self.waited_us?;
        Some(waited as f64 / (later.at_ns - self.at_ns).div_ceil(1_000) as f64)
    }

    /// Returns the share of CPU time until `later` that the hypervisor took (steal).
    pub fn steal_until(&self, later: &Self) -> Option<f64> {
        later.ticks.as_ref()?.stolen_since(self.ticks.as_ref()?)
    }
}

/// Parses the total of the `some` line of `/proc/pressure/cpu`.
fn waited_us(text: &str) -> Option<u64> {
    let total = text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1;
    total.trim().parse().ok()
}

/// CPU time of all CPUs together, in ticks.
#[derive(Debug, PartialEq)]
struct CpuTicks {
    all: u64,
    stolen: u64,
}

impl CpuTicks {
    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and
    /// steal. User includes the time of guests.
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let kinds: Vec<u64> =
            line.split_whitespace().take(8).map_while(|ticks| ticks.parse().ok()).collect();
        Some(Self { all: kinds.iter().sum(), stolen: *kinds.get(7)? })
    }

    fn stolen_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|ticks| *ticks > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 20 30 1000 5 0 15 30 90 7\ncpu0 50 10 15 500 2 0 8 15 45 3\nintr 5\n";

    #[test]
    fn stolen_ticks_are_a_share_of_all_and_guests_are_not_counted_twice() {
        let before = CpuTicks::read(STAT).expect("it is one");
        assert_eq!(before, CpuTicks { all: 1_200, stolen: 30 });
        let after = CpuTicks { all: 1_400, stolen: 37 };
        assert_eq!(after.stolen_since(&before), Some(0.035));
        assert_eq!(before.stolen_since(&before), None, "nothing went by");
    }

    #[test]
    fn without_a_steal_column_ticks_are_unknown() {
        assert_eq!(CpuTicks::read("cpu  100 20 30 1000 5 0 15\n"), None);
        assert_eq!(CpuTicks::read(""), None);
    }

    #[test]
    fn pressure_is_the_total_of_the_some_line() {
        let text = "some avg10=1.50 avg60=0.40 avg300=0.10 total=123456\nfull avg10=0.00 total=7\n";
        assert_eq!(waited_us(text), Some(123_456));
        assert_eq!(waited_us("full avg10=0.00 total=7\n"), None);
    }

    #[test]
    fn shares_relate_to_the_time_between_two_readings() {
        let at = |at_ns, waited_us, stolen| CpuUsage {
            at_ns,
            waited_us,
            ticks: Some(CpuTicks { all: 100 + at_ns / 10_000_000, stolen }),
        };
        let (before, after) = (at(0, Some(500), 2), at(1_000_000_000, Some(250_500), 6));
        assert_eq!(before.pressure_until(&after), Some(0.25));
        assert_eq!(before.steal_until(&after), Some(0.04));
        assert_eq!(before.pressure_until(&at(1, None, 2)), None);
    }
}
