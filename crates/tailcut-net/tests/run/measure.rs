//! Measurements on whole runs with known results.

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::segments::SegmentObserver;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::topology::star::Star;
use tailcut_net::transport::tcp::reordering::adaptive::AdaptiveSpec;
use tailcut_net::transport::tcp::{Recovery, ReorderingSpec};

use crate::run::support::{flow, limit_queues, row, run, run_observed, scenario, tcp};

/// Returns a fat-tree in which every host sends to the host half the fabric away.
fn across() -> Scenario {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let pair = |id: u64| flow(id, id as u32, (id as u32 + 8) % 16, 400_000, Time::ZERO);
    scenario(graph, (0..16).map(pair).collect())
}

#[test]
fn nothing_is_out_of_order_on_single_paths_without_loss() {
    let scenario = across();
    let (outcome, segments) = run_observed(&scenario, SegmentObserver::default());
    assert_eq!(outcome.counters.dropped, 0);
    let all = 16 * 400_000u64.div_ceil(1_460);
    assert_eq!(segments.duplicate_acks.into_iter().collect::<Vec<_>>(), [(0, all)]);
    assert_eq!(segments.reordering.into_iter().collect::<Vec<_>>(), [(0, all)]);
    assert!(segments.duplicates.is_empty());
}

#[test]
fn sprayed_segments_overtake_each_other_and_cause_needless_retransmissions() {
    let mut scenario = across();
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    tcp(&mut scenario).dupack_threshold = 1;
    let (outcome, segments) = run_observed(&scenario, SegmentObserver::default());
    assert_eq!(outcome.counters.dropped, 0);
    let all: u64 = segments.reordering.values().sum();
    let late = all - segments.reordering[&0];
    assert!(late * 50 > all, "{late} of {all} segments are overtaken");
    // Nothing was lost, so every retransmission was needless.
    let retransmitted: u64 = outcome.flows.iter().map(|flow| flow.retransmissions).sum();
    assert!(retransmitted > 0);
    assert_eq!(segments.duplicates.values().sum::<u64>(), retransmitted);
    for flow in &outcome.flows {
        assert_eq!(flow.needless_retransmissions, flow.retransmissions, "flow {}", flow.flow.id);
        let worst = segments.worst_of(flow.flow.id);
        assert_eq!(worst.duplicate_acks > 0, worst.reordering > 0, "nothing else causes them");
    }
}

/// An undone recovery counts for its flow, and the run's counter is the sum.
#[test]
fn flows_know_their_needless_transmissions_and_undone_recoveries() {
    let mut scenario = across();
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    let spec = tcp(&mut scenario);
    spec.recovery = Recovery::SackPrr;
    spec.reordering = ReorderingSpec::Adaptive(AdaptiveSpec::default());
    let outcome = run(&scenario);
    let undone: u64 = outcome.flows.iter().map(|flow| u64::from(flow.recoveries_undone)).sum();
    assert!(undone > 0);
    assert_eq!(undone, outcome.counters.recoveries_undone);
    assert!(outcome.flows.iter().all(|flow| flow.recoveries_undone <= flow.fast_recoveries));
    let needless: u64 = outcome.flows.iter().map(|flow| flow.needless_retransmissions).sum();
    assert_eq!(needless, outcome.counters.needless_retransmissions);
}

#[test]
fn loss_on_a_single_path_gives_duplicate_acks_but_no_reordering() {
    let flows = (0..4).map(|id| flow(id, id as u32, 4, 300_000, Time::ZERO)).collect();
    let mut scenario = scenario(Star { hosts: 5, ..Star::default() }.build().unwrap(), flows);
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(20)));
    let (outcome, segments) = run_observed(&scenario, SegmentObserver::default());
    assert!(outcome.counters.dropped > 0);
    assert_eq!(segments.reordering.keys().collect::<Vec<_>>(), [&0]);
    assert!(segments.duplicate_acks.keys().any(|run| *run >= 3));
    let acknowledged: u64 = segments.duplicate_acks.values().sum();
    assert_eq!(acknowledged, 4 * 300_000u64.div_ceil(1_460), "each segment is counted once");
}

#[test]
fn the_differential_compares_the_queues_along_the_paths() {
    let graph = ParallelPaths::default().build().expect("the parameters are valid");
    let flows = (0..12).map(|id| flow(id, id as u32 % 2, 2 + id as u32 % 2, 300_000, Time::ZERO));
    let mut scenario = scenario(graph, flows.collect());
    scenario.series.interval = Time::from_us(20);
    scenario.series.differentials = vec!["h0>h2".into()];
    let inner = ["s0>s2", "s2>s1", "s0>s3", "s3>s1"];
    scenario.series.links = inner.map(String::from).to_vec();
    let outcome = run(&scenario);
    let values = |name: String| {
        let series = outcome.series.iter().find(|series| series.name == name);
        &series.expect("the series is recorded").values
    };
    let queues = inner.map(|link| values(format!("link {link} queue_packets")));
    let differential = values("paths h0>h2 queue_differential_packets".into());
    assert!(differential.iter().any(|packets| *packets > 5.0), "one path is longer at times");
    for (at, packets) in differential.iter().enumerate() {
        let [a, b, c, d] = queues.map(|queue| queue[at]);
        assert_eq!(*packets, (a + b - c - d).abs());
    }
}

#[test]
fn bytes_delivered_during_arrivals_are_counted_once() {
    let flows = vec![flow(0, 0, 1, 50_000, Time::ZERO), flow(1, 2, 3, 50_000_000, Time::ZERO)];
    let mut scenario = scenario(Star { hosts: 4, ..Star::default() }.build().unwrap(), flows);
    scenario.horizon.arrivals = Time::from_ms(20);
    scenario.horizon.drain = Time::from_ms(500);
    let delivered: Vec<u64> =
        run(&scenario).flows.iter().map(|flow| flow.delivered_in_arrivals).collect();
    assert_eq!(delivered[0], 50_000);
    let wire = 20_000_000 / 8 * 1_460 / 1_538;
    assert!(delivered[1] < wire && delivered[1] > wire * 9 / 10, "{} of {wire}", delivered[1]);
}

/// A trace may number its flows in any way.
#[test]
fn the_links_of_a_flow_are_noted_whatever_its_identifier() {
    let link = (Rate(1_000_000_000), Time::from_us(5));
    let id = 100_000_000_000_000_000;
    let scenario = scenario(row(&[link; 3]), vec![flow(id, 0, 1, 30_000, Time::ZERO)]);
    let (_, paths) = run_observed(&scenario, FlowPaths::default());
    assert_eq!(paths.links_of(id).len(), 3);
    assert_eq!(paths.links_of(0), []);
}
