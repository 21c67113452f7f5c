//! The verdict: whether the machine carried a run in time. Only then do its numbers describe the
//! plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fabric::lateness::Lateness;
use crate::fabric::rate_check::RateWindows;
use crate::idle_check::IdleCheck;

/// Measurements on which the verdict is based.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VerdictFacts {
    /// How late flows started.
    pub starts: Lateness,
    /// How late the fabric handed over frames.
    pub released: Lateness,
    /// How late each change of the network was carried out, where kernels carry it out.
    #[serde(default)]
    pub changed: Lateness,
    /// Frames dropped for lack of room on their way into the fabric.
    pub ring_drops: u64,
    /// Frames that the host's interface refused.
    pub refused: u64,
    /// Frames that match no flow.
    pub strange: u64,
    /// The share of the run's time in which some process waited for a CPU (`/proc/pressure/cpu`);
    /// none if the kernel does not report it.
    pub pressure: Option<f64>,
    /// The share of CPU time that the hypervisor took ("steal"); none if the kernel does not report
    /// it. Steal alone is no reason, but may explain others.
    #[serde(default)]
    pub stolen: Option<f64>,
    /// Windows in which links to hosts were busy, and those that missed the rate.
    pub paces: RateWindows,
    /// Packets dropped by kernels, by the names of their counters.
    pub thrown_away: BTreeMap<String, u64>,
    /// The idle flows before the run.
    pub before: IdleCheck,
    /// The idle flows after the run; empty if leftovers of the run may still cross the fabric.
    pub after: IdleCheck,
}

/// The lateness up to which 99 % of flows must start, in nanoseconds.
pub const MAX_START_NS: u64 = 1_000_000;
/// The lateness up to which 99 % of frames must be handed over, in nanoseconds.
pub const MAX_RELEASE_NS: u64 = 300_000;
/// The lateness up to which failures, repairs and reroutes must be carried out, in nanoseconds.
pub const MAX_CHANGE_NS: u64 = 50_000_000;
/// The largest share of the run's time in which some process may wait for a CPU.
pub const MAX_PRESSURE: f64 = 0.5;
/// The smallest steal that is reported beside other reasons.
pub const REPORTED_STEAL: f64 = 0.005;
const QUANTILE: f64 = 0.99;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Returns the reasons why a run is not faithful; none if it is faithful.
pub fn reasons(facts: &VerdictFacts) -> Vec<String> {
    let mut reasons = vec![];
    let late = facts.starts.quantile_ns(QUANTILE);
    if late > MAX_START_NS {
        reasons.push(format!("one flow in a hundred started more than {:.2} ms late", ms(late)));
    }
    let late = facts.released.quantile_ns(QUANTILE);
    if late > MAX_RELEASE_NS {
        reasons.push(format!(
            "the fabric handed over one frame in a hundred more than {:.2} ms late",
            ms(late)
        ));
    }
    let late = facts.changed.longest_ns();
    if late > MAX_CHANGE_NS {
        reasons.push(format!("a failure or repair was carried out {:.2} ms late", ms(late)));
    }
    if let Some(share) = facts.pressure.filter(|share| *share > MAX_PRESSURE) {
        reasons.push(format!(
            "processes waited for a CPU {:.0} % of the time (PSI cpu some)",
            100.0 * share
        ));
    }
    if facts.paces.off as f64 > (1.0 - QUANTILE) * facts.paces.busy as f64 {
        reasons.push(format!(
            "a busy link missed its rate in {} of {} windows of 50 ms",
            facts.paces.off, facts.paces.busy
        ));
    }
    reasons.extend(facts.before.reason("before"));
    reasons.extend(facts.after.reason("after"));
    if let Some(share) =
        facts.stolen.filter(|share| *share >= REPORTED_STEAL && !reasons.is_empty())
    {
        reasons.push(format!(
            "the hypervisor took {:.1} % of this virtual machine's CPU time (steal) during the run",
            100.0 * share
        ));
    }
    if !facts.thrown_away.is_empty() {
        let count: u64 = facts.thrown_away.values().sum();
        let names: Vec<&str> = facts.thrown_away.keys().map(String::as_str).collect();
        reasons.push(format!("{count} packets were dropped by kernels ({})", names.join(", ")));
    }
    for (count, what) in [
        (facts.ring_drops, "frames found no room on their way into the fabric"),
        (facts.refused, "frames were refused by a host's interface"),
        (facts.strange, "frames match no flow of the plan: other programs sent into the fabric"),
    ] {
        if count > 0 {
            reasons.push(format!("{count} {what}"));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(ns: u64, count: usize) -> Lateness {
        let mut lateness = Lateness::default();
        for _ in 0..1_000 {
            lateness.add(20_000);
        }
        for _ in 0..count {
            lateness.add(ns);
        }
        lateness
    }

    fn only(facts: VerdictFacts) -> String {
        let found = reasons(&facts);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().expect("there is one")
    }

    #[test]
    fn a_quiet_run_is_faithful() {
        let calm = VerdictFacts {
            starts: late(1_000_000, 100),
            released: late(300_000, 100),
            changed: late(50_000_000, 1),
            pressure: Some(MAX_PRESSURE),
            stolen: Some(0.5),
            paces: RateWindows { busy: 100, off: 1 },
            before: IdleCheck { late_ns: vec![Some(300_000)], allowed_ns: 300_000 },
            after: IdleCheck { late_ns: vec![Some(0)], allowed_ns: 300_000 },
            ..VerdictFacts::default()
        };
        assert_eq!(reasons(&calm), [""; 0]);
        assert_eq!(reasons(&VerdictFacts::default()), [""; 0]);
    }

    #[test]
    fn a_few_late_starts_or_frames_are_tolerated_and_many_are_not() {
        let starts =
            |count| VerdictFacts { starts: late(5_000_000, count), ..VerdictFacts::default() };
        assert_eq!(reasons(&starts(9)), [""; 0]);
        assert!(only(starts(30)).contains("started more than 5.00 ms late"));
        let released =
            |count| VerdictFacts { released: late(2_000_000, count), ..VerdictFacts::default() };
        assert_eq!(reasons(&released(9)), [""; 0]);
        assert!(only(released(30)).contains("more than 2.00 ms late"));
    }

    #[test]
    fn steal_is_reported_only_beside_another_reason() {
        let late = VerdictFacts { released: late(2_000_000, 30), ..VerdictFacts::default() };
        assert_eq!(reasons(&VerdictFacts { stolen: Some(0.0049), ..late.clone() }).len(), 1);
        let told = reasons(&VerdictFacts { stolen: Some(0.036), ..late });
        assert_eq!(told.len(), 2);
        assert_eq!(
            told[1],
            "the hypervisor took 3.6 % of this virtual machine's CPU time (steal) during the run"
        );
    }

    #[test]
    fn each_other_reason_makes_a_run_unfaithful() {
        assert!(
            only(VerdictFacts { pressure: Some(0.75), ..VerdictFacts::default() }).contains("75 %")
        );
        let more = only(VerdictFacts { pressure: Some(0.5 + 1e-9), ..VerdictFacts::default() });
        assert!(more.starts_with("processes waited for a CPU"));
        let changed = late(51_000_000, 1);
        assert!(
            only(VerdictFacts { changed, ..VerdictFacts::default() })
                .contains("carried out 51.00 ms late")
        );
        let paces = RateWindows { busy: 100, off: 2 };
        assert!(
            only(VerdictFacts { paces, ..VerdictFacts::default() })
                .ends_with("in 2 of 100 windows of 50 ms")
        );
        let late = IdleCheck { late_ns: vec![Some(300_001)], allowed_ns: 300_000 };
        let before = VerdictFacts { before: late.clone(), ..VerdictFacts::default() };
        assert!(only(before).starts_with("before the run test flows"));
        let after = VerdictFacts { after: late, ..VerdictFacts::default() };
        assert!(only(after).starts_with("after the run test flows"));
        let thrown_away = [("Tcp InCsumErrors".to_owned(), 2)].into();
        let dropped = only(VerdictFacts { thrown_away, ..VerdictFacts::default() });
        assert_eq!(dropped, "2 packets were dropped by kernels (Tcp InCsumErrors)");
        assert!(
            only(VerdictFacts { ring_drops: 3, ..VerdictFacts::default() })
                .starts_with("3 frames found")
        );
        assert!(
            only(VerdictFacts { refused: 1, ..VerdictFacts::default() })
                .contains("refused by a host")
        );
        assert!(only(VerdictFacts { strange: 2, ..VerdictFacts::default() }).contains("no flow"));
    }
}
