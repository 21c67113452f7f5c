//! A run on several threads gives the results of one thread, to the last bit.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
use tailcut_net::{OnThreads, SimError, one_thread_reason, simulate_in_turns, simulate_on};

use crate::run::repeatable::rows::{Row, networks, schemes};
use crate::run::support::run;

/// Returns all rows that have a digest.
fn rows() -> impl Iterator<Item = (String, Scenario)> {
    schemes().into_iter().chain(networks()).map(|(name, asked): Row| (name, asked.scenario()))
}

fn row(name: &str) -> Scenario {
    rows().find(|(row, _)| row == name).expect("there is such a row").1
}

#[test]
fn every_scheme_that_can_be_cut_gives_the_same_outcome_in_three_partitions() {
    let mut cut = 0;
    for (name, scenario) in rows().filter(|(_, scenario)| one_thread_reason(scenario).is_none()) {
        let together = simulate_in_turns(3, &scenario).expect("it is valid");
        assert_eq!(together.outcome, run(&scenario), "{name}");
        assert_eq!(together.reason, None, "{name}");
        cut += usize::from(together.threads > 1);
    }
    assert!(cut > 70, "{cut} rows show something");
}

#[test]
fn threads_give_the_same_outcome_as_partitions_in_turns() {
    for (name, threads) in [("TCP Newreno", 2), ("RepFlow SackPrr", 3), ("DCTCP", 7)] {
        let scenario = Scenario { horizon: short(), ..row(name) };
        let on_threads = simulate_on(threads, &scenario, &mut |_| ControlFlow::Continue(()));
        let OnThreads { outcome, threads: used, reason } = on_threads.expect("it is valid");
        assert_eq!((outcome, used, reason), (run(&scenario), threads, None), "{name}");
    }
}

fn short() -> tailcut_net::scenario::Horizon {
    tailcut_net::scenario::Horizon { arrivals: Time::from_ms(8), drain: Time::from_ms(12) }
}

#[test]
fn what_cannot_be_cut_runs_on_one_thread_and_says_why() {
    let reasons: BTreeSet<_> = rows().filter_map(|(_, row)| one_thread_reason(&row)).collect();
    let expected = [
        "all hosts are at one switch",
        "flows wait for the ends of others",
        "senders give up connections that their receivers still open",
        "subflows are closed that their receivers still open",
        "switches keep more than the queues of their ports",
        "the transport decides about packets as they leave",
    ];
    assert_eq!(reasons, BTreeSet::from(expected));
    let scenario = row("star, incast");
    let on_threads = simulate_on(3, &scenario, &mut |_| ControlFlow::Continue(()));
    let alone = OnThreads { outcome: run(&scenario), threads: 1, reason: Some(expected[0]) };
    assert_eq!(on_threads, Ok(alone));
}

#[test]
fn one_thread_needs_no_reason() {
    let scenario = row("star, incast");
    let on_one = simulate_on(1, &scenario, &mut |_| ControlFlow::Continue(()));
    assert_eq!(on_one.map(|run| (run.threads, run.reason)), Ok((1, None)));
}

#[test]
fn breaking_off_stops_all_threads() {
    let stopped = simulate_on(3, &row("TCP Newreno"), &mut |_| ControlFlow::Break(()));
    assert_eq!(stopped, Err(SimError::Interrupted));
}

#[test]
fn a_thread_that_panics_ends_the_run() {
    let panics = &mut |_: &_| -> ControlFlow<()> { panic!("somebody looks") };
    let on_threads = || simulate_on(3, &row("TCP Newreno"), panics);
    let message = catch_unwind(AssertUnwindSafe(on_threads)).expect_err("it panics");
    assert_eq!(message.downcast_ref(), Some(&"somebody looks"));
}
