//! A run on several threads gives the results of one thread, to the last bit.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tailcut_engine::Time;
use tailcut_net::faults::Incident;
use tailcut_net::scenario::{Horizon, Scenario};
use tailcut_net::topology::HostId;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
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

/// Holds every row that can be cut against itself in each of these numbers of partitions.
fn assert_cut_changes_nothing(numbers: &[usize]) {
    let mut cut = 0;
    for (name, scenario) in rows().filter(|(_, scenario)| one_thread_reason(scenario).is_none()) {
        let alone = run(&scenario);
        for &parts in numbers {
            let together = simulate_in_turns(parts, &scenario).expect("it is valid");
            assert_eq!(together.outcome, alone, "{name} in {parts}");
            assert_eq!(together.reason, None, "{name} in {parts}");
            cut += usize::from(together.threads > 1);
        }
    }
    assert!(cut > 110 * numbers.len(), "{cut} rows show something");
}

#[test]
fn every_scheme_that_can_be_cut_gives_the_same_outcome_in_three_partitions() {
    assert_cut_changes_nothing(&[3]);
}

#[test]
#[ignore = "a minute for the other numbers of partitions"]
fn every_scheme_that_can_be_cut_gives_the_same_outcome_in_any_number_of_partitions() {
    assert_cut_changes_nothing(&[2, 7, 16]);
}

#[test]
fn links_without_propagation_delay_are_not_cut() {
    let mut scenario = row("pFabric");
    scenario.faults.incidents.clear();
    scenario.graph.links.iter_mut().for_each(|link| link.propagation = Time::ZERO);
    let together = simulate_in_turns(3, &scenario).expect("it is valid");
    assert_eq!(together.outcome, run(&scenario));
    assert_eq!(together.reason, Some("links between switches have no propagation delay"));
}

#[test]
fn incidents_befall_a_network_without_flows_as_on_one_thread() {
    let mut scenario = row("TCP Newreno");
    scenario.flows.clear();
    let down = |us| Incident::LinkDown {
        link: "s0>h0".into(),
        at: Time::from_us(us),
        until: Some(Time::from_us(us + 1)),
    };
    let after_the_end = 1 + scenario.end().0 / 1_000_000;
    for first in [0, after_the_end] {
        scenario.faults.incidents = vec![down(first), down(first + 5)];
        let together = simulate_in_turns(3, &scenario).expect("it is valid");
        assert_eq!(
            together,
            OnThreads { outcome: run(&scenario), threads: 3, reason: None, times: vec![] }
        );
    }
}

/// A receiver repeats its SYN-ACK after the sender has given up, which one thread does not see.
#[test]
fn a_run_in_doubt_is_repeated_on_one_thread() {
    let mut scenario = row("TCP Newreno");
    let TransportSpec::Tcp(tcp) = &mut scenario.scheme.transport else { panic!("it is TCP") };
    tcp.syn_retries = 0;
    scenario.flows.truncate(1);
    let Flow { src, dst, .. } = &mut scenario.flows[0];
    (*src, *dst) = (HostId(0), HostId(15));
    let incident = Incident::Loss {
        link: "s0>h0".into(),
        one_way: true,
        probability: 1.0,
        at: Time::ZERO,
        until: None,
    };
    scenario.faults.incidents = vec![incident];
    scenario.horizon.drain = Time::from_ms(10_000);
    let together = simulate_in_turns(2, &scenario).expect("it is valid");
    let reason = Some("a host acted for a connection that may have been over");
    assert_eq!(together, OnThreads { outcome: run(&scenario), threads: 1, reason, times: vec![] });
}

#[test]
fn a_job_that_cannot_go_on_says_what_waits_for_what_as_on_one_thread() {
    let mut scenario = row("two trees, in turn");
    let incident = Incident::LinkDown { link: "s0>h0".into(), at: Time::from_us(50), until: None };
    scenario.faults.incidents = vec![incident];
    let together = simulate_in_turns(4, &scenario).expect("it is valid");
    assert_eq!((together.threads, together.reason), (4, None));
    assert!(!together.outcome.unfinished.is_empty(), "a rank is cut off");
    assert_eq!(together.outcome, run(&scenario));
}

#[test]
fn threads_give_the_same_outcome_as_partitions_in_turns() {
    for (name, threads) in [("TCP Newreno", 2), ("RepFlow SackPrr", 3), ("DCTCP", 7), ("ring", 2)] {
        let scenario = Scenario { horizon: short(), ..row(name) };
        let on_threads = simulate_on(threads, &scenario, &mut |_| ControlFlow::Continue(()));
        let OnThreads { outcome, threads: used, reason, times } = on_threads.expect("it is valid");
        assert_eq!((outcome, used, reason), (run(&scenario), threads, None), "{name}");
        assert_eq!(times.len(), threads);
        assert!(
            times.iter().all(|one| !one.work.is_zero() && !one.exchange.is_zero()),
            "{times:?}"
        );
    }
}

fn short() -> Horizon {
    Horizon { arrivals: Time::from_ms(8), drain: Time::from_ms(12) }
}

#[test]
fn what_cannot_be_cut_runs_on_one_thread_and_says_why() {
    let reasons: BTreeSet<_> = rows().filter_map(|(_, row)| one_thread_reason(&row)).collect();
    let expected = [
        "all hosts are at one switch",
        "all hosts are joined by the switches that they are at",
        "events of one instant come in the order of ns-3",
        "receivers grant credits to senders that may have finished",
        "senders give up connections that their receivers still open",
        "subflows are closed that their receivers still open",
        "switches pause links",
        "switches write headers on packets",
        "switches' guesses about flows are checked",
    ];
    assert_eq!(reasons, BTreeSet::from(expected));
    let scenario = row("star, incast");
    let on_threads = simulate_on(3, &scenario, &mut |_| ControlFlow::Continue(()));
    let alone =
        OnThreads { outcome: run(&scenario), threads: 1, reason: Some(expected[0]), times: vec![] };
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

/// Without the looks that follow from the time, the run would end by itself.
#[test]
fn breaking_off_does_not_need_events_of_the_first_partition() {
    let mut scenario = row("TCP Newreno");
    scenario.flows.truncate(1);
    let Flow { src, dst, bytes, .. } = &mut scenario.flows[0];
    (*src, *dst, *bytes) = (HostId(12), HostId(15), 2_000_000_000);
    scenario.horizon.drain = Time::from_ms(30_000);
    let mut looks = 0;
    let stops = &mut |_: &_| {
        looks += 1;
        if looks < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    assert_eq!(simulate_on(2, &scenario, stops), Err(SimError::Interrupted));
    assert_eq!(looks, 3);
}

#[test]
fn a_thread_that_panics_ends_the_run() {
    let panics = &mut |_: &_| -> ControlFlow<()> { panic!("somebody looks") };
    let on_threads = || simulate_on(3, &row("TCP Newreno"), panics);
    let message = catch_unwind(AssertUnwindSafe(on_threads)).expect_err("it panics");
    assert_eq!(message.downcast_ref(), Some(&"somebody looks"));
}
