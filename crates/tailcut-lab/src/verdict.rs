//! Whether the machine could carry a run: only then do its numbers say something about the plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fabric::lateness::Lateness;
use crate::fabric::rate_check::RateWindows;
use crate::idle_check::IdleCheck;

/// What the verdict goes by.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VerdictFacts {
    /// By how much flows started late.
    pub starts: Lateness,
    /// By how much the fabric handed frames over late.
    pub released: Lateness,
    /// How long after its time each change to the network was carried out, where kernels carry it out.
    #[serde(default)]
    pub changed: Lateness,
    /// Frames that found no room on their way into the fabric.
    pub ring_drops: u64,
    /// Frames that could not be handed to a host.
    pub refused: u64,
    /// Frames that no flow is known for.
    pub strange: u64,
    /// The share of the run's time in which something waited for a processor (`/proc/pressure/cpu`); none where the kernel
    /// does not say.
    pub pressure: Option<f64>,
    /// The share of the processors' time that the host of a virtual machine took meanwhile ("steal"); none where the kernel does
    /// not say. It is no reason by itself, and may be the reason of others.
    #[serde(default)]
    pub stolen: Option<f64>,
    /// What hosts were handed while the links to them were busy.
    pub paces: RateWindows,
    /// What kernels have thrown away, by the names of their counters.
    pub thrown_away: BTreeMap<String, u64>,
    /// Flows alone before the run.
    pub before: IdleCheck,
    /// And after it; none where what the run has left behind still crosses the fabric.
    pub after: IdleCheck,
}

/// Flows start within this of their time, but for one in a hundred.
pub const MAX_START_NS: u64 = 1_000_000;
/// Frames are handed over within this of their time, but for one in a hundred.
pub const MAX_RELEASE_NS: u64 = 300_000;
/// Links fail and are repaired, and routes changed, within this of their time.
pub const MAX_CHANGE_NS: u64 = 50_000_000;
/// Something may wait for a processor for this share of the run's time.
pub const MAX_PRESSURE: f64 = 0.5;
/// A host that takes so much from a virtual machine is told of, where a run is not in time.
pub const REPORTED_STEAL: f64 = 0.005;
const QUANTILE: f64 = 0.99;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Why a run is not faithful; nothing if it is.
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
            "something waited for a processor for {:.0} % of the time",
            100.0 * share
        ));
    }
    if facts.paces.off as f64 > (1.0 - QUANTILE) * facts.paces.busy as f64 {
        reasons.push(format!(
            "in {} of {} windows of 50 ms a busy link handed over more or less than its rate",
            facts.paces.off, facts.paces.busy
        ));
    }
    reasons.extend(facts.before.reason("before"));
    reasons.extend(facts.after.reason("after"));
    if let Some(share) =
        facts.stolen.filter(|share| *share >= REPORTED_STEAL && !reasons.is_empty())
    {
        reasons.push(format!(
            "meanwhile the host of this virtual machine took {:.1} % of its processors",
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
        (facts.refused, "frames could not be handed to a host"),
        (facts.strange, "frames belong to no flow of the plan"),
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
            "meanwhile the host of this virtual machine took 3.6 % of its processors"
        );
    }

    #[test]
    fn each_other_reason_makes_a_run_unfaithful() {
        assert!(
            only(VerdictFacts { pressure: Some(0.75), ..VerdictFacts::default() }).contains("75 %")
        );
        let more = only(VerdictFacts { pressure: Some(0.5 + 1e-9), ..VerdictFacts::default() });
        assert!(more.starts_with("something waited for a processor"));
        let changed = late(51_000_000, 1);
        assert!(
            only(VerdictFacts { changed, ..VerdictFacts::default() })
                .contains("carried out 51.00 ms late")
        );
        let paces = RateWindows { busy: 100, off: 2 };
        assert!(
            only(VerdictFacts { paces, ..VerdictFacts::default() })
                .starts_with("in 2 of 100 windows")
        );
        let late = IdleCheck { late_ns: vec![Some(300_001)], allowed_ns: 300_000 };
        let before = VerdictFacts { before: late.clone(), ..VerdictFacts::default() };
        assert!(only(before).starts_with("before the run a flow alone"));
        let after = VerdictFacts { after: late, ..VerdictFacts::default() };
        assert!(only(after).starts_with("after the run a flow alone"));
        let thrown_away = [("Tcp InCsumErrors".to_owned(), 2)].into();
        let dropped = only(VerdictFacts { thrown_away, ..VerdictFacts::default() });
        assert_eq!(dropped, "2 packets were dropped by kernels (Tcp InCsumErrors)");
        assert!(
            only(VerdictFacts { ring_drops: 3, ..VerdictFacts::default() })
                .starts_with("3 frames found")
        );
        assert!(
            only(VerdictFacts { refused: 1, ..VerdictFacts::default() })
                .contains("handed to a host")
        );
        assert!(only(VerdictFacts { strange: 2, ..VerdictFacts::default() }).contains("no flow"));
    }
}
