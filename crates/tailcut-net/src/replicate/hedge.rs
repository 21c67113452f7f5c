//! Hedged flows ("The Tail at Scale", Dean and Barroso, CACM 2013): a flow that has taken longer
//! than most is sent once more over another path, and the first to end wins. Each host decides by
//! its own flows' times, and a budget keeps copies rare where everything is slow.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time, UnitError};

use super::machine::{
    PolicyAction, PolicyEvent, ReceiverAction, Receiving, Replicate, ReplicationPlan, Sending,
};
use super::{OFF, Policy, check_delay, check_threshold};
use crate::component::SpecError;

/// Parameters of hedging.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hedge {
    /// Flows of at most this size may be copied.
    pub threshold: Bytes,
    /// Time after which a flow is copied: a time, or a percentile ("p95") of the times that this
    /// host's flows up to the threshold have taken so far.
    pub delay: HedgeDelay,
    /// The delay until a host has seen `observations` flows end, where `delay` is a percentile.
    pub first_delay: Time,
    /// Flows that a percentile needs.
    pub observations: u32,
    /// Copies per flow up to the threshold, at most, on the average over a host's flows.
    pub budget: f64,
    /// Copies that a host may save up.
    pub burst: u32,
}

impl Default for Hedge {
    fn default() -> Self {
        Hedge {
            threshold: Bytes(100_000),
            delay: HedgeDelay::Percentile(95.0),
            first_delay: Time::from_ms(10),
            observations: 20,
            budget: 0.1,
            burst: 10,
        }
    }
}

/// The time after which a flow is copied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HedgeDelay {
    /// A fixed time after its start.
    After(Time),
    /// A percentile of the times of its host's earlier flows.
    Percentile(f64),
}

impl FromStr for HedgeDelay {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim().strip_prefix('p').map(str::parse) {
            None => text.parse().map(HedgeDelay::After),
            Some(Ok(percent)) => Ok(HedgeDelay::Percentile(percent)),
            Some(Err(_)) => {
                Err(UnitError::NotANumber { text: text.to_owned(), example: "p95".into() })
            }
        }
    }
}

impl fmt::Display for HedgeDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HedgeDelay::After(time) => time.fmt(f),
            HedgeDelay::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

tailcut_engine::text_serde!(
    HedgeDelay,
    "a time such as \"2ms\" or a percentile such as \"p95\"",
    json_schema!({
        "type": "string",
        "description": "A time (\"2ms\"), or a percentile of the times seen so far (\"p95\").",
        "pattern": r"^(p[0-9]+(\.[0-9]+)?|[0-9][0-9_]*(\.[0-9]+)? ?(ns|us|ms|s))$",
    })
);

impl Policy for Hedge {
    fn check(&self) -> Result<(), SpecError> {
        check_threshold(self.threshold)?;
        check_delay("first_delay", self.first_delay)?;
        match self.delay {
            HedgeDelay::After(delay) => check_delay("delay", delay)?,
            HedgeDelay::Percentile(percent) if !(percent > 0.0 && percent < 100.0) => {
                let message =
                    format!("delay = \"p{percent}\": a percentile is above 0 and below 100");
                return Err(SpecError::new("hedge-percentile", "delay", message)
                    .hint("\"p95\" copies about one flow in twenty"));
            }
            HedgeDelay::Percentile(_) => {}
        }
        if !(self.budget > 0.0 && self.budget <= 1.0) {
            let message =
                format!("budget = {}: copies per flow, above 0 and at most 1", self.budget);
            return Err(SpecError::new("hedge-budget", "budget", message).hint(OFF));
        }
        for (field, value) in [("burst", self.burst), ("observations", self.observations)] {
            if value == 0 {
                let message = format!("{field} = 0: at least 1");
                return Err(SpecError::new("hedge-count", field, message));
            }
        }
        Ok(())
    }

    fn replication_plan(&self, bytes: u64) -> ReplicationPlan {
        if bytes > self.threshold.0 {
            return ReplicationPlan::SINGLE;
        }
        let delay = match self.delay {
            HedgeDelay::After(delay) => delay,
            HedgeDelay::Percentile(_) => Time::ZERO,
        };
        ReplicationPlan { expected_extra_copies: self.budget, ..ReplicationPlan::copied(2, delay) }
    }

    fn instantiate(&self, hosts: u32) -> Box<dyn Replicate> {
        let host = Host { seen: Percentiles::default(), allowance: f64::from(self.burst) };
        Box::new(Hedging { spec: self.clone(), hosts: vec![host; hosts as usize] })
    }
}

/// The state of a host.
#[derive(Debug, Clone)]
struct Host {
    seen: Percentiles,
    /// Copies that it may send.
    allowance: f64,
}

/// Hedging at work on all hosts.
#[derive(Debug)]
struct Hedging {
    spec: Hedge,
    hosts: Vec<Host>,
}

impl Replicate for Hedging {
    fn on_event(
        &mut self,
        event: PolicyEvent,
        mut view: Sending<'_>,
        actions: &mut Vec<PolicyAction>,
    ) {
        let Hedging { spec, hosts } = self;
        let hedged = view.flow.bytes <= spec.threshold.0;
        let host = &mut hosts[view.flow.src.index()];
        match event {
            PolicyEvent::Started => {
                view.open_whole(0, view.now, actions);
                if hedged {
                    host.allowance = (host.allowance + spec.budget).min(f64::from(spec.burst));
                    actions.push(PolicyAction::WakeAt(view.now + host.patience(spec)));
                }
            }
            PolicyEvent::Timer => {
                // The sender knows of an end only by its acknowledgement.
                if !view.sent.confirmed && host.allowance >= 1.0 {
                    host.allowance -= 1.0;
                    view.open_whole(1, view.now, actions);
                }
            }
            event => {
                if view.first_wins_and_abandons(event, actions) && hedged {
                    host.seen.add(view.now - view.flow.start);
                }
            }
        }
    }

    fn received(&self, copy: u8, mut view: Receiving<'_>, answers: &mut Vec<ReceiverAction>) {
        view.first_wins_and_resets(copy, answers);
    }
}

impl Host {
    /// Returns the time after which a flow is copied.
    fn patience(&self, spec: &Hedge) -> Time {
        match spec.delay {
            HedgeDelay::After(delay) => delay,
            HedgeDelay::Percentile(_) if self.seen.count < u64::from(spec.observations) => {
                spec.first_delay
            }
            HedgeDelay::Percentile(percent) => self.seen.percentile(percent),
        }
    }
}

/// Times by the logarithm, to one part in 64: a percentile is at most 1.6 % above what was seen.
#[derive(Debug, Clone, Default)]
struct Percentiles {
    buckets: BTreeMap<u32, u64>,
    count: u64,
}

impl Percentiles {
    /// Bits behind the leading one that tell buckets apart.
    const BITS: u32 = 6;

    fn add(&mut self, time: Time) {
        // Each of the smallest times has a bucket of its own.
        let shift = time.0.max(1).ilog2().saturating_sub(Self::BITS);
        let bucket = (shift << (Self::BITS + 1)) + (time.0 >> shift) as u32;
        *self.buckets.entry(bucket).or_default() += 1;
        self.count += 1;
    }

    /// A time that `percent` of those seen did not exceed.
    fn percentile(&self, percent: f64) -> Time {
        let rank = ((self.count as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut below = 0;
        for (&bucket, &count) in &self.buckets {
            below += count;
            if below >= rank {
                let (shift, lead) = (bucket >> (Self::BITS + 1), bucket & ((2 << Self::BITS) - 1));
                return Time(((u64::from(lead) + 1) << shift) - 1);
            }
        }
        Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicate::machine::Script;
    use PolicyAction::{AbandonOthers, Confirm, WakeAt};
    use PolicyEvent::{Acknowledged, Started, Timer};
    use ReceiverAction::{Finish, ResetOthers};
    use proptest::prelude::*;

    fn after(us: u64) -> Hedge {
        Hedge { delay: HedgeDelay::After(Time::from_us(us)), ..Hedge::default() }
    }

    /// A flow that ends after so long, without a copy.
    fn quick(script: &mut Script, from: u64, takes: u64) {
        script.next_flow(from, 1_000);
        script.at(from, Started);
        script.received(0);
        script.at(from + takes, Acknowledged { copy: 0, first: true });
        assert_eq!(script.at(from + 1_000_000, Timer), [], "it is over");
    }

    #[test]
    fn a_flow_that_is_late_is_copied_and_the_first_to_end_wins() {
        let mut script = Script::new(&after(300), 5_000);
        let wake = WakeAt(Time::from_us(310));
        assert_eq!(script.at(10, Started), [script.open(0, 10), wake]);
        assert_eq!(script.at(310, Timer), [script.open(1, 310)]);
        let won = [Finish { copy: 1 }, ResetOthers { but: 1 }];
        assert_eq!(script.received(1), won);
        let known = [Confirm, AbandonOthers { but: 1 }];
        assert_eq!(script.at(420, Acknowledged { copy: 1, first: true }), known);
    }

    #[test]
    fn a_flow_whose_end_the_sender_knows_is_not_copied() {
        let mut script = Script::new(&after(300), 5_000);
        script.at(0, Started);
        script.received(0);
        script.at(290, Acknowledged { copy: 0, first: true });
        assert_eq!(script.at(300, Timer), []);
    }

    #[test]
    fn a_flow_that_has_arrived_unknown_to_its_sender_is_copied() {
        let mut script = Script::new(&after(300), 5_000);
        script.at(0, Started);
        script.received(0);
        assert_eq!(script.at(300, Timer), [script.open(1, 300)]);
    }

    #[test]
    fn a_flow_above_the_threshold_has_no_timer() {
        let mut script = Script::new(&after(300), 100_001);
        assert_eq!(script.at(0, Started), [script.open(0, 0)]);
    }

    #[test]
    fn the_percentile_counts_from_the_first_flows_that_are_enough() {
        let spec = Hedge { observations: 4, ..Hedge::default() };
        let mut script = Script::new(&spec, 1_000);
        for (n, takes) in [100, 200, 300, 400].into_iter().enumerate() {
            let from = n as u64 * 2_000_000;
            quick(&mut script, from, takes);
        }
        script.next_flow(9_000_000, 1_000);
        let [_, WakeAt(wake)] = script.at(9_000_000, Started)[..] else { panic!("it wakes") };
        let patience = wake - Time::from_us(9_000_000);
        let within_a_bucket = Time::from_us(400)..=Time::from_us(407);
        assert!(within_a_bucket.contains(&patience), "{patience}");
    }

    #[test]
    fn uses_first_delay_until_there_are_enough_observations() {
        let mut script = Script::new(&Hedge::default(), 1_000);
        quick(&mut script, 0, 100);
        script.next_flow(2_000_000, 1_000);
        let wake = WakeAt(Time::from_us(2_010_000));
        assert_eq!(script.at(2_000_000, Started)[1], wake);
    }

    #[test]
    fn copies_stay_within_the_budget() {
        let spec = Hedge { budget: 0.25, burst: 3, ..after(10) };
        let mut script = Script::new(&spec, 1_000);
        let mut copied = vec![];
        for n in 0..20 {
            script.next_flow(n * 100, 1_000);
            script.at(n * 100, Started);
            copied.push(!script.at(n * 100 + 10, Timer).is_empty());
        }
        // Three saved up, then one for every four flows.
        let copies = copied.iter().filter(|&&copied| copied).count();
        assert_eq!((&copied[..3], copies), (&[true; 3][..], 7));
    }

    #[test]
    fn refuses_values_out_of_range() {
        let refused = |spec: Hedge| spec.check().expect_err("it is refused").field;
        let percentile = |percent| HedgeDelay::Percentile(percent);
        assert_eq!(Hedge::default().check(), Ok(()));
        assert_eq!(refused(Hedge { delay: percentile(100.0), ..Hedge::default() }), "delay");
        assert_eq!(refused(Hedge { budget: 0.0, ..Hedge::default() }), "budget");
        assert_eq!(refused(Hedge { budget: f64::NAN, ..Hedge::default() }), "budget");
        assert_eq!(refused(Hedge { burst: 0, ..Hedge::default() }), "burst");
        assert_eq!(refused(Hedge { threshold: Bytes(0), ..Hedge::default() }), "threshold");
    }

    #[test]
    fn delays_are_read_as_they_are_written() {
        for text in ["p95", "p99.9", "2ms"] {
            let delay: HedgeDelay = text.parse().expect("it is a delay");
            assert_eq!(delay.to_string(), text);
        }
        assert!("pace".parse::<HedgeDelay>().is_err());
    }

    proptest! {
        /// Compares with the sorted list, to the width of a bucket.
        #[test]
        fn percentiles_are_those_of_what_was_seen(
            mut times in prop::collection::vec(0_u64..1 << 40, 1..200),
            percent in 0.1_f64..99.9,
        ) {
            let mut seen = Percentiles::default();
            times.iter().for_each(|&time| seen.add(Time(time)));
            times.sort_unstable();
            let rank = ((times.len() as f64 * percent / 100.0).ceil() as usize).max(1);
            let (exact, found) = (times[rank - 1], seen.percentile(percent).0);
            prop_assert!(found >= exact && found <= exact + exact / 64, "{found} for {exact}");
        }
    }
}
