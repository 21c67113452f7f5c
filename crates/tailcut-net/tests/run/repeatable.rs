//! The same scenario gives the same results in every build, and the same flows under every scheme.

pub mod asked;
mod choices;
pub mod rows;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use schemars::schema_for;
use tailcut_engine::Time;
use tailcut_net::measure::Unobserved;
use tailcut_net::measure::records::Outcome;
use tailcut_net::scenario::Progress;
use tailcut_net::simulate_watched;
use tailcut_net::topology::PortId;
use tailcut_net::watch::{RunView, RunWatcher};

use crate::run::support::run;
use asked::Asked;
use rows::{Row, networks, schemes};

/// Returns the FNV-1a hash.
fn digest(words: &[u64]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the ideal times, on which no event depends.
fn ideals(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().flat_map(|flow| [flow.ideal_fct.0, flow.ideal_fct_ack.0]).collect()
}

/// Returns every other integer of an outcome. Rates and shares are left out, because they follow
/// from these.
fn integers(outcome: &Outcome) -> Vec<u64> {
    let time = |time: Option<Time>| time.map_or(u64::MAX, |time| time.0);
    let mut words = vec![];
    for flow in &outcome.flows {
        words.extend([flow.flow.id, flow.flow.bytes, flow.flow.start.0]);
        words.extend([time(flow.connect), time(flow.fct), time(flow.fct_ack)]);
        words.extend([flow.data_packets, flow.retransmissions]);
        words.extend([flow.timeouts, flow.fast_recoveries].map(u64::from));
        words.push(flow.winner.map_or(u64::MAX, u64::from));
        words.push(flow.shared_hops.map_or(u64::MAX, u64::from));
    }
    for tier in &outcome.tiers {
        words.extend([tier.packets, tier.wire_bytes, tier.drops, u64::from(tier.max_queue)]);
    }
    let counters = &outcome.counters;
    words.extend([
        counters.events,
        counters.packet_hops,
        counters.sent,
        counters.delivered,
        counters.dropped,
    ]);
    words
}

/// Returns the digests of rows. Each row must finish a flow and differ from all others.
fn digests(rows: &[Row]) -> String {
    let (mut lines, mut others) = (String::new(), BTreeMap::new());
    for (name, asked) in rows {
        let outcome = run(&asked.scenario());
        assert!(outcome.flows.iter().any(|flow| flow.fct.is_some()), "{name}: nothing arrives");
        let (hops, dropped) = (outcome.counters.packet_hops, outcome.counters.dropped);
        let (digest, ideal) = (digest(&integers(&outcome)), digest(&ideals(&outcome)));
        let same = others.insert(digest, name);
        assert_eq!(same, None, "{name}: what sets it apart is never seen");
        lines += &format!(
            "{name}: {hops} hops, {dropped} drops, digest {digest:016x}, of ideal times {ideal:016x}\n"
        );
    }
    lines
}

/// The stored digests hold in every build profile. After an intended change, `INSTA_UPDATE=always`
/// stores the new ones.
#[test]
fn outcomes_are_the_same_in_every_build() {
    insta::assert_snapshot!("outcomes", digests(&schemes()));
    insta::assert_snapshot!("networks", digests(&networks()));
}

/// Choices that the schema offers and no row can show: `"ns-3"` is written as the list that it
/// stands for, the checks refuse marks and entropy for subflows, whose windows are coupled and
/// whose ports are their own, and some defaults are not written, so that identifiers of earlier
/// runs stay.
const UNSEEN: [&str; 7] = [
    "Imitation ns-3",
    "MessageEnd received",
    "Paws off",
    "QueueSpec trimming.follows_rate false",
    "QueueSpec trimming.returns true",
    "TcpSpec.ecn true",
    "TcpSpec.entropy given",
];

/// Returns the choices of an experiment that none of these rows makes.
fn unasked<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
    let schema = schema_for!(Asked);
    let mut left = choices::offered(schema.as_value());
    assert!(left.len() > 150, "{left:#?}");
    for (_, asked) in rows {
        let written = serde_json::to_value(asked).expect("it is plain data");
        let made = choices::made(schema.as_value(), &written);
        left.retain(|choice| !made.contains(choice));
    }
    left.into_iter().collect()
}

/// Every kind has a digest, so that a change of its behaviour shows. A new kind fails here until it
/// has a row.
#[test]
fn every_kind_that_an_experiment_can_name_has_a_digest() {
    let (schemes, networks) = (schemes(), networks());
    let missing = unasked(schemes.iter().chain(&networks));
    assert_eq!(missing, UNSEEN, "what no row asks for");
}

#[test]
fn removing_a_row_leaves_its_kind_without_a_digest() {
    let (schemes, networks) = (schemes(), networks());
    for (row, alone) in [
        ("Swift", "CongestionSpec swift"),
        ("DRR", "QueueSpec drr.hosts false"),
        ("PFC", "SwitchSpec.pfc given"),
        ("shared memory", "SwitchSpec.shared_buffer given"),
        ("hosts as Linux", "HostDefaults linux"),
        ("classic ECN", "TransportSpec tcp.ecn true"),
        ("TinyFlow by exact samples", "Detect exact-port"),
        ("bucket sort", "TrafficSpec bucket-sort"),
    ] {
        let others = schemes.iter().chain(&networks).filter(|(name, _)| name != row);
        let missing = unasked(others);
        assert!(missing.contains(&alone.to_owned()), "{row}: {missing:?}");
    }
}

/// Reads everything every 50 events.
#[derive(Default)]
struct Close {
    looks: u64,
    longest: u32,
    finished: u64,
}

impl RunWatcher for Close {
    fn interval_events(&self) -> u64 {
        50
    }

    fn on_interval(&mut self, progress: &Progress, run: &mut dyn RunView) -> ControlFlow<()> {
        self.looks += 1;
        assert_eq!(progress.events, 50 * self.looks);
        self.longest = (0..PORTS).map(|port| run.queue(PortId(port))).fold(self.longest, u32::max);
        let over = (0..run.flows()).filter(|&index| run.flow(index).fct.is_some()).count() as u64;
        assert_eq!(over, progress.finished_flows);
        assert!(over >= self.finished, "a flow stays finished");
        self.finished = over;
        ControlFlow::Continue(())
    }
}

/// The number of directed links of a fat-tree of 4-port switches.
const PORTS: u32 = 96;

#[test]
fn a_watcher_does_not_change_the_results() {
    for (name, asked) in schemes() {
        let scenario = asked.scenario();
        let mut close = Close::default();
        let watched = simulate_watched(&scenario, Unobserved, &mut close).expect("it is valid").0;
        assert_eq!(watched, run(&scenario), "{name}");
        assert_eq!(close.looks, watched.counters.events / 50);
        assert!(close.longest > 10 && close.finished > 20, "{name}: there was something to see");
    }
}

#[test]
fn every_scheme_carries_the_same_flows() {
    let outcomes: Vec<(String, Outcome)> =
        schemes().into_iter().map(|(name, asked)| (name, run(&asked.scenario()))).collect();
    let carried = |outcome: &Outcome| -> Vec<_> {
        outcome.flows.iter().map(|record| (record.flow, record.hops)).collect()
    };
    let plain = carried(&outcomes[0].1);
    assert!(plain.len() > 20, "there is something to compare");
    for (name, outcome) in &outcomes[1..] {
        assert_eq!(carried(outcome), plain, "{name}");
    }
    // The ideal time depends on the transport only, not on replication.
    let ideal = |at: usize| -> Vec<_> {
        outcomes[at].1.flows.iter().map(|record| record.ideal_fct).collect()
    };
    assert!([2, 4].into_iter().all(|replicated| ideal(replicated) == ideal(0)));
}
