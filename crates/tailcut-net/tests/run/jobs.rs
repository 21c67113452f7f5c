//! Closed-loop traffic: waiting flows start in time, and jobs last until their last byte.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tailcut_engine::Time;
use tailcut_net::measure::records::{FlowRecord, Outcome};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::scenario::{Horizon, Scenario};
use tailcut_net::topology::star::Star;
use tailcut_net::topology::{Graph, HostId};
use tailcut_net::traffic::TrafficSpec;

use crate::run::ledger::Ledger;
use crate::run::support::{run, run_observed, scenario};

fn star(hosts: u32) -> Graph {
    Star { hosts, ..Star::default() }.build().expect("the parameters are valid")
}

fn of(traffic: Value, graph: Graph) -> Scenario {
    let horizon = Horizon { arrivals: Time::from_ms(20), drain: Time::from_ms(30_000) };
    let spec: TrafficSpec = serde_json::from_value(traffic).expect("well-formed traffic");
    let demand = spec.generate(&graph, &horizon, 3, &|path: &str| panic!("reads no file: {path}"));
    let demand = demand.expect("the traffic is valid");
    let scenario = scenario(graph, demand.flows);
    Scenario { jobs: demand.jobs, horizon, ..scenario }
}

fn end(flow: &FlowRecord) -> Time {
    flow.flow.start + flow.fct.expect("it has finished")
}

fn acknowledged(flow: &FlowRecord) -> Time {
    flow.flow.start + flow.fct_ack.expect("it has finished")
}

/// Returns the largest number of these flows that overlap.
fn most_at_once<'a>(flows: impl Iterator<Item = &'a FlowRecord>) -> i32 {
    let mut changes: Vec<(Time, i32)> =
        flows.flat_map(|flow| [(flow.flow.start, 1), (end(flow), -1)]).collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0, |running, change| {
        *running += change.1;
        Some(*running)
    });
    running.max().unwrap_or(0)
}

fn assert_all_finish(outcome: &Outcome, scenario: &Scenario) {
    assert_eq!(outcome.flows.len(), scenario.flows.len(), "every flow has started");
    assert!(outcome.flows.iter().all(|flow| flow.fct_ack.is_some()));
    assert!(outcome.jobs.iter().all(|job| job.completion.is_some()));
}

#[test]
fn a_query_of_one_worker_lasts_as_long_as_its_two_flows() {
    let spec = json!({"kind": "partition-aggregate", "workers": 1, "queries_per_second": 500.0,
        "request": "1KB", "response": "30KB", "compute": "70us"});
    let scenario = of(spec, star(4));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    let queries = outcome.jobs.len();
    assert!(queries >= 1 && outcome.flows.len() == 2 * queries);
    for (query, job) in outcome.jobs.iter().enumerate() {
        let (request, response) = (&outcome.flows[query], &outcome.flows[queries + query]);
        let computed = end(request) + Time::from_us(70);
        assert_eq!(response.flow.start, Time::from_ns(computed.0.div_ceil(1_000)));
        assert_eq!(job.start, request.flow.start);
        assert_eq!(job.completion, Some(end(response) - request.flow.start));
        assert_eq!((job.kind, job.flows, job.bytes), ("query", 2, 31_000));
    }
}

#[test]
fn a_query_waits_for_its_slowest_worker() {
    let spec = json!({"kind": "partition-aggregate", "workers": 5, "queries_per_second": 500.0,
        "response": {"kind": "uniform", "min": "1KB", "max": "90KB"}, "jitter": "100us"});
    let scenario = of(spec, star(8));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    let jobs = &scenario.jobs;
    for job in &outcome.jobs {
        let members =
            outcome.flows.iter().zip(&jobs.rules).filter(|(_, r)| u64::from(r.job) == job.id);
        let last = members.map(|(flow, _)| end(flow)).max();
        assert_eq!(Some(job.start + job.completion.expect("it has finished")), last);
    }
}

#[test]
fn a_client_sends_its_flows_one_after_another_and_exactly_its_bytes() {
    let spec = json!({"kind": "transfers", "clients_per_host": 2, "bytes": "1MB",
        "sizes": {"kind": "exponential", "mean": "80KB"}, "jitter": "1ms"});
    let scenario = of(spec, star(5));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    assert_eq!(outcome.jobs.len(), 10);
    let mut clients: BTreeMap<u32, Vec<&FlowRecord>> = BTreeMap::new();
    for (flow, rule) in outcome.flows.iter().zip(&scenario.jobs.rules) {
        clients.entry(rule.job).or_default().push(flow);
    }
    for flows in clients.values() {
        assert_eq!(flows.iter().map(|flow| flow.flow.bytes).sum::<u64>(), 1_000_000);
        for two in flows.windows(2) {
            let known = Time::from_ns(acknowledged(two[0]).0.div_ceil(1_000));
            assert_eq!(two[1].flow.start, known, "the next starts when the sender knows");
        }
    }
}

#[test]
fn every_scheme_carries_the_same_flows_in_a_closed_loop() {
    let spec = json!({"kind": "transfers", "bytes": "300KB",
        "sizes": {"kind": "exponential", "mean": "50KB"}});
    let plain = of(spec, star(4));
    let mut replicated = plain.clone();
    replicated.scheme.replicate = ReplicateSpec::Repflow(RepFlow::default());
    let identity = |outcome: &Outcome| -> Vec<_> {
        let of = |f: &FlowRecord| (f.flow.id, f.flow.src, f.flow.dst, f.flow.bytes);
        outcome.flows.iter().map(of).collect()
    };
    let (plain, replicated) = (run(&plain), run(&replicated));
    assert_eq!(identity(&plain), identity(&replicated));
    assert_ne!(plain.jobs, replicated.jobs, "only the times differ");
}

#[test]
fn a_reducer_fetches_a_limited_number_of_parts_at_once() {
    let spec = json!({"kind": "shuffle", "mappers": 6, "reducers": 2, "bytes": "6MB",
        "fetches_at_once": 3, "start": "2ms"});
    let scenario = of(spec, star(8));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    assert_eq!(outcome.flows.len(), 12);
    assert_eq!(outcome.flows.iter().map(|flow| flow.flow.bytes).sum::<u64>(), 6_000_000);
    let mut reducers: Vec<HostId> = outcome.flows.iter().map(|flow| flow.flow.dst).collect();
    reducers.sort_unstable();
    reducers.dedup();
    assert_eq!(reducers.len(), 2);
    for reducer in reducers {
        let fetches = || outcome.flows.iter().filter(|flow| flow.flow.dst == HostId(reducer.0));
        assert_eq!(most_at_once(fetches()), 3);
        assert_eq!(fetches().map(|flow| flow.flow.start).min(), Some(Time::from_ms(2)));
    }
    assert_eq!(outcome.jobs[0].start, Time::from_ms(2));
}

#[test]
fn a_slave_returns_its_bucket_when_it_has_all_batches() {
    let spec = json!({"kind": "bucket-sort", "numbers": 1_990, "batches_at_once": 4, "rounds": 2,
        "sort_time": "10us", "jitter": "1ms"});
    let scenario = of(spec, star(4));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    assert_eq!(outcome.jobs.len(), 8, "every host is the master of two jobs");
    for job in &outcome.jobs {
        let members = || {
            let all = outcome.flows.iter().zip(&scenario.jobs.rules);
            all.filter(|(_, rule)| u64::from(rule.job) == job.id).map(|(flow, _)| flow)
        };
        let master = members().next().expect("a job has flows").flow.src;
        let (batches, buckets): (Vec<_>, Vec<_>) = members().partition(|f| f.flow.src == master);
        assert_eq!(batches.len(), 100);
        assert_eq!(most_at_once(batches.iter().copied()), 4);
        assert_eq!(buckets.iter().map(|flow| flow.flow.bytes).sum::<u64>(), 6 * 1_990);
        for bucket in buckets {
            let dealt = batches.iter().filter(|batch| batch.flow.dst == bucket.flow.src);
            let last = dealt.map(|batch| end(batch)).max().expect("it has a batch");
            let sorted = last + Time::from_us(10);
            assert_eq!(bucket.flow.start, Time::from_ns(sorted.0.div_ceil(1_000)));
        }
    }
    for master in outcome.jobs.chunks(2) {
        let first_end = master[0].start + master[0].completion.expect("it has finished");
        assert_eq!(
            master[1].start,
            Time::from_ns(first_end.0.div_ceil(1_000)),
            "one after another"
        );
    }
}

#[test]
fn pings_follow_each_other() {
    let scenario =
        of(json!({"kind": "pings", "from": 0, "to": 2, "count": 20, "gap": "3us"}), star(3));
    let outcome = run(&scenario);
    assert_all_finish(&outcome, &scenario);
    for two in outcome.flows.windows(2) {
        let next = acknowledged(&two[0]) + Time::from_us(3);
        assert_eq!(two[1].flow.start, Time::from_ns(next.0.div_ceil(1_000)));
    }
    let first = outcome.flows[0].connect;
    assert!(
        first.is_some() && outcome.flows.iter().all(|flow| flow.connect == first),
        "an idle network"
    );
}

#[test]
fn reports_unfinished_jobs_at_the_horizon() {
    let spec = json!({"kind": "transfers", "bytes": "5MB", "sizes": "100KB"});
    let mut scenario = of(spec, star(3));
    scenario.horizon.drain = Time::from_ms(10);
    let outcome = run(&scenario);
    assert!(outcome.flows.len() < scenario.flows.len(), "flows that never start have no row");
    assert_eq!(outcome.jobs.len(), 6);
    assert!(outcome.jobs.iter().all(|job| job.completion.is_none() && job.bytes == 5_000_000));
}

#[test]
fn packets_are_conserved_for_jobs_beside_open_traffic() {
    let spec = json!({"kind": "mix", "parts": [
        {"kind": "poisson", "load": 0.3, "sizes": "20KB", "except": [0, 1]},
        {"kind": "partition-aggregate", "workers": 3, "queries_per_second": 300.0},
        {"kind": "bucket-sort", "numbers": 600, "jitter": "1ms"},
        {"kind": "shuffle", "bytes": "1MB"},
        {"kind": "pings", "from": 0, "to": 1, "count": 30},
    ]});
    let mut scenario = of(spec, star(6));
    crate::run::support::limit_queues(&mut scenario, "20packets".parse().expect("a limit"));
    let (outcome, ledger) = run_observed(&scenario, Ledger::new(&scenario));
    ledger.check(&outcome);
    assert_all_finish(&outcome, &scenario);
    let kinds: std::collections::BTreeSet<&str> = outcome.jobs.iter().map(|job| job.kind).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["pings", "query", "shuffle", "sort"]);
}
