//! Traffic patterns that depend on their network, and invalid ones.

use serde_json::{Value, json};
use tailcut_engine::Time;
use tailcut_net::component::SpecError;
use tailcut_net::scenario::Horizon;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::traffic::demand::Demand;

use crate::fabric::topologies;
use tailcut_net::topology::HostId;

fn demand(spec: Value) -> Result<Demand, SpecError> {
    let graph = topologies::build(json!({"kind": "fat-tree", "k": 4})).unwrap();
    let horizon = Horizon { arrivals: Time::from_ms(500), drain: Time::ZERO };
    let spec: TrafficSpec = serde_json::from_value(spec).expect("well-formed traffic");
    spec.generate(&graph, &horizon, 5, &|path: &str| panic!("{path} is not needed"))
}

#[test]
fn long_flows_come_from_a_third_of_the_hosts_and_short_ones_from_the_rest() {
    let spec = json!({"kind": "long-and-short", "short_flows_per_second": 20_000.0});
    let flows = demand(spec).unwrap().flows;
    let (long, short): (Vec<_>, Vec<_>) = flows.iter().partition(|flow| flow.bytes > 1_000_000);
    assert_eq!(long.len(), 5, "a third of 16");
    let senders = |flows: &[&tailcut_net::traffic::Flow]| {
        flows.iter().map(|flow| (flow.src, flow.dst)).collect::<std::collections::BTreeSet<_>>()
    };
    let (long, pairs) = (senders(&long), senders(&short));
    assert_eq!(pairs.len(), 11, "each with one partner");
    assert!(long.iter().all(|(src, _)| pairs.iter().all(|(other, _)| src != other)));
    let expected = 10_000.0;
    assert!((short.len() as f64 - expected).abs() < 4.0 * f64::sqrt(expected));
    assert!(short.iter().all(|flow| flow.bytes == 70_000));
}

#[test]
fn hot_spots_draw_their_share_of_the_flows() {
    let spec = json!({"kind": "hot-spots", "hot": 2, "share": 0.5, "load": 0.2, "sizes": "10KB"});
    let flows = demand(spec).unwrap().flows;
    let mut to = [0u32; 16];
    for flow in &flows {
        assert_ne!(flow.src, flow.dst);
        to[flow.dst.index()] += 1;
    }
    to.sort_unstable();
    let n = flows.len() as f64;
    let expected = n * (0.25 + 0.5 / 16.0);
    for hot in &to[14..] {
        let deviation = (n * 0.28 * 0.72).sqrt();
        assert!((f64::from(*hot) - expected).abs() < 4.0 * deviation, "{hot} of {n}");
    }
    let offered: f64 = flows.iter().map(|flow| flow.bytes as f64).sum();
    assert!((offered * 8.0 / 0.5 / 16e9 - 0.2).abs() < 0.01, "the load is what was asked for");
}

#[test]
fn poisson_leaves_out_excluded_hosts() {
    let spec = json!({"kind": "poisson", "sizes": "10KB", "except": [0, 15]});
    let flows = demand(spec).unwrap().flows;
    assert!(flows.len() > 1_000);
    assert!(
        flows.iter().all(|flow| ![0, 15].contains(&flow.src.0) && ![0, 15].contains(&flow.dst.0))
    );
}

#[test]
fn fan_in_makes_an_incast_of_each_short_flow() {
    let plain = json!({"kind": "poisson", "sizes": "web-search", "load": 0.2});
    let mut joined = plain.clone();
    joined["fan_in"] = 11.into();
    let (plain, joined) = (demand(plain).unwrap().flows, demand(joined).unwrap().flows);
    for flow in &plain {
        let same = |other: &&tailcut_net::traffic::Flow| {
            (other.start, other.dst, other.bytes) == (flow.start, flow.dst, flow.bytes)
        };
        let together: Vec<HostId> = joined.iter().filter(same).map(|flow| flow.src).collect();
        assert!(together.contains(&flow.src), "the flows of the load stay as they are");
        assert_eq!(together.len(), if flow.bytes <= 100_000 { 11 } else { 1 });
        let different: std::collections::BTreeSet<_> = together.iter().collect();
        assert_eq!(different.len(), together.len(), "from different hosts");
    }
}

#[test]
fn waiting_flows_come_after_those_that_start_by_themselves() {
    let spec = json!({"kind": "mix", "parts": [
        {"kind": "transfers", "bytes": "1MB", "sizes": "100KB"},
        {"kind": "poisson", "sizes": "100KB", "load": 0.1},
    ]});
    let Demand { flows, jobs, .. } = demand(spec).unwrap();
    assert_eq!(jobs.independent, flows.len() - 16 * 2 * 10);
    assert!(flows[..jobs.independent].windows(2).all(|two| two[0].start <= two[1].start));
    assert!(jobs.rules[..jobs.independent].iter().all(|rule| rule.pool == u32::MAX));
    assert!(flows.iter().enumerate().all(|(index, flow)| flow.id == index as u64));
}

#[test]
fn another_seed_draws_other_jobs_and_the_same_seed_the_same() {
    let spec = json!({"kind": "transfers", "bytes": "1GB"});
    assert_eq!(demand(spec.clone()).unwrap(), demand(spec.clone()).unwrap());
    let clients = |more: Value| {
        let mut spec = spec.clone();
        spec["clients_per_host"] = more;
        demand(spec).unwrap().flows
    };
    assert_ne!(clients(1.into()).len(), clients(2.into()).len());
}

#[test]
fn refuses_impossible_jobs_and_names_the_field() {
    let cases = [
        (json!({"kind": "partition-aggregate", "workers": 16}), "workers"),
        (json!({"kind": "partition-aggregate", "aggregator": 16}), "aggregator"),
        (json!({"kind": "partition-aggregate", "queries_per_second": 0.0}), "queries_per_second"),
        (json!({"kind": "partition-aggregate", "queries_per_second": 1e12}), "queries_per_second"),
        (json!({"kind": "partition-aggregate", "request": "0B"}), "request"),
        (json!({"kind": "transfers", "bytes": "0B"}), "bytes"),
        (json!({"kind": "transfers", "sizes": "1B"}), "bytes"),
        (json!({"kind": "transfers", "hosts": [3]}), "hosts"),
        (json!({"kind": "transfers", "hosts": [3, 3]}), "hosts"),
        (json!({"kind": "transfers", "hosts": [3, 16]}), "hosts"),
        (json!({"kind": "transfers", "clients_per_host": 0}), "clients_per_host"),
        (json!({"kind": "transfers", "jitter": "1s"}), "jitter"),
        (json!({"kind": "shuffle", "mappers": 0}), "mappers"),
        (json!({"kind": "shuffle", "bytes": "3B"}), "bytes"),
        (json!({"kind": "shuffle", "start": "1s"}), "start"),
        (json!({"kind": "bucket-sort", "batch": 0}), "batch"),
        (json!({"kind": "bucket-sort", "rounds": 1000000}), "numbers"),
        (json!({"kind": "pings", "from": 1}), "from"),
        (json!({"kind": "pings", "from": 1, "to": 1}), "from"),
        (json!({"kind": "pings", "count": 0}), "count"),
        (json!({"kind": "long-and-short", "long_share": 1.0}), "long_share"),
        (
            json!({"kind": "long-and-short", "short_flows_per_second": -1.0}),
            "short_flows_per_second",
        ),
        (json!({"kind": "hot-spots", "hot": 16}), "hot"),
        (json!({"kind": "hot-spots", "share": 1.5}), "share"),
        (json!({"kind": "hot-spots", "load": 0.0}), "load"),
        (json!({"kind": "poisson", "except": [16]}), "except[0]"),
        (json!({"kind": "poisson", "except": [1], "load_of": "bisection"}), "except"),
        (json!({"kind": "poisson", "fan_in": 16}), "fan_in"),
        (json!({"kind": "mix", "parts": [{"kind": "pings", "count": 0}]}), "parts[0].count"),
    ];
    for (spec, field) in cases {
        let error = demand(spec.clone()).expect_err("it cannot be");
        assert_eq!(error.field, field, "{spec}: {error}");
    }
}
