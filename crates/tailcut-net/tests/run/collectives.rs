//! Collective operations on a star: iterations lie between their bounds.
//!
//! 100 MB on 8 hosts of 400 Gbps, 1 us per link, payload 4096 B, 64 B of headers and framing, no
//! handshake, and a window above the bandwidth-delay product. The upper bound adds an
//! acknowledgement of 64 B per packet.

use serde_json::{Value, json};
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::measure::records::{CriticalPath, Outcome, PathWork};
use tailcut_net::scenario::{Horizon, Scenario};
use tailcut_net::topology::star::Star;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::uet::UetSpec;

use crate::run::support::{run, scenario};

fn carried(spec: Value) -> Outcome {
    explained(spec, None)
}

fn explained(mut spec: Value, job: Option<u32>) -> Outcome {
    let star = Star { hosts: 8, rate: Rate(400_000_000_000), propagation: Time::from_us(1) };
    let graph = star.build().expect("the parameters are valid");
    let horizon = Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(100) };
    spec["kind"] = json!("collective");
    let spec: TrafficSpec = serde_json::from_value(spec).expect("well-formed traffic");
    let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let demand = spec.generate(&graph, &horizon, 1, &read).expect("a valid collective");
    let mut scenario = Scenario { jobs: demand.jobs, horizon, ..scenario(graph, demand.flows) };
    scenario.host.framing_overhead = Bytes(24);
    let uet = UetSpec { mss: Bytes(4096), ..UetSpec::default() };
    scenario.scheme.transport = TransportSpec::Uet(uet);
    scenario.jobs.explained = job;
    run(&scenario)
}

fn iteration_ps(operation: &str, algorithm: &str, slices: u32) -> u64 {
    let outcome = carried(json!({
        "operation": operation, "algorithm": algorithm, "bytes": "100MB", "slices": slices,
    }));
    assert_eq!(outcome.jobs.len(), 1);
    outcome.jobs[0].completion.expect("it ends").0
}

/// Bounds of jobs of 100 MB in picoseconds; 499.2 ns more per phase where all begin with one host.
#[test]
fn all_reduce_of_100_mb_lies_between_its_bounds() {
    let ring = iteration_ps("all-reduce", "ring", 1);
    assert!((3_583_856_640..=3_638_997_200).contains(&ring), "ring {ring}");
    let halving = iteration_ps("all-reduce", "halving-doubling", 1);
    assert!((3_567_191_040..=3_622_075_190).contains(&halving), "halving {halving}");
    let direct = iteration_ps("all-reduce", "direct", 1);
    assert!((3_558_858_240..=3_613_614_180).contains(&direct), "direct {direct}");
    assert!(direct < ring, "direct {direct} beats whole parts {ring}");
    let sliced = iteration_ps("all-reduce", "ring", 2);
    assert!(sliced >= 3_556_775_040 && sliced < direct, "two slices {sliced} beat direct {direct}");
}

#[test]
fn halves_of_an_all_reduce_take_half_of_its_time() {
    let gather = iteration_ps("all-gather", "ring", 1);
    assert!((1_791_928_320..=1_819_498_600).contains(&gather), "all-gather {gather}");
    for (operation, algorithm) in
        [("all-gather", "direct"), ("reduce-scatter", "direct"), ("all-to-all", "direct")]
    {
        let took = iteration_ps(operation, algorithm, 1);
        assert!((1_779_429_120..=1_806_807_090).contains(&took), "{operation} {took}");
    }
}

/// Tokens go to the most popular expert at the rate of its link, and come back at that rate:
/// 2((n-1)·8W/R + f + 2 us) for messages of W bytes on the wire. Shares fall with k^-skew. Without
/// skew it is a direct all-reduce, with its bound; with skew no upper bound is known, since ranks
/// send their answers while they still send tokens.
#[test]
fn a_mixture_of_experts_waits_for_the_most_popular_one() {
    let phase = |bytes: u64, control: u64| {
        let packets = bytes.div_ceil(4096);
        7 * 20 * (bytes + (64 + control) * packets) + 2_083_200
    };
    for skew in [0.0, 0.5, 1.0, 2.0] {
        let outcome = carried(json!({
            "operation": "mixture-of-experts", "algorithm": "direct", "bytes": "100MB", "skew": skew,
        }));
        let took = outcome.jobs[0].completion.expect("it ends").0;
        let mut shares: Vec<u64> = outcome.flows.iter().map(|record| record.flow.bytes).collect();
        shares.sort_unstable();
        shares.dedup();
        let first = shares[shares.len() - 1];
        let sum: f64 = (1..=8).map(|k| f64::from(k).powf(-skew)).sum();
        assert!((first as f64 - 1e8 / sum).abs() <= 8.0, "{first} of skew {skew}");
        let least = 2 * phase(first, 0);
        let most = if skew == 0.0 { 2 * (phase(first, 64) + 499_200) } else { u64::MAX };
        assert!((least..=most).contains(&took), "skew {skew}: {least} <= {took} <= {most}");
    }
}

#[test]
fn a_pipelined_double_tree_takes_at_least_twice_the_array() {
    let took = iteration_ps("all-reduce", "double-tree", 96);
    assert!((4_060_000_000..=5_200_000_000).contains(&took), "{took}");
}

#[test]
fn iterations_follow_each_other_with_a_computation_between() {
    let outcome = carried(json!({
        "operation": "all-reduce", "bytes": "1MB", "repeat": 3, "compute": "7us",
    }));
    let jobs = &outcome.jobs;
    assert_eq!(jobs.len(), 3);
    for two in jobs.windows(2) {
        let end = two[0].start + two[0].completion.expect("it ends");
        let gap = two[1].start - end;
        assert!(gap >= Time::from_us(7) && gap < Time::from_us(8), "{gap}");
    }
}

fn critical_path(spec: Value, job: u32) -> CriticalPath {
    let path = explained(spec, Some(job)).critical_path.expect("the job has ended");
    let mut at = path.start;
    for part in &path.parts {
        assert_eq!(part.from, at, "parts follow each other: {path:?}");
        assert!(part.to > part.from);
        at = part.to;
    }
    assert_eq!(at, path.start + path.completion, "the parts add up");
    path
}

#[test]
fn the_critical_path_of_a_ring_has_a_message_per_step() {
    let path = critical_path(json!({"operation": "all-reduce", "bytes": "100MB"}), 0);
    assert_eq!(path.parts.len(), 14);
    for (part, next) in path.parts.iter().zip(&path.parts[1..]) {
        let (PathWork::Message { flow: one, .. }, PathWork::Message { flow: two, .. }) =
            (part.work, next.work)
        else {
            panic!("a message");
        };
        assert_eq!(one.dst, two.src, "the next host passes it on");
    }
    let direct = json!({"operation": "all-reduce", "algorithm": "direct", "bytes": "100MB"});
    assert_eq!(critical_path(direct, 0).parts.len(), 2, "latency counts twice, not 14 times");
}

#[test]
fn critical_paths_of_all_algorithms_add_up() {
    for (algorithm, slices) in [("ring", 2), ("halving-doubling", 1), ("double-tree", 8)] {
        let spec = json!({
            "operation": "all-reduce", "algorithm": algorithm, "bytes": "2MB", "slices": slices,
            "repeat": 3, "compute": "3us",
        });
        for job in 0..3 {
            let path = critical_path(spec.clone(), job);
            assert!(path.parts.len() > 2, "{path:?}");
        }
    }
}
