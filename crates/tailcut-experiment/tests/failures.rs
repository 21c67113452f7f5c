//! The papers' small experiments with known answers: RepFlow's Table I, the spraying paper's two
//! flows and TinyFlow's two examples.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use tailcut_experiment::{
    Changes, RunPlan, Variant, load, load_text, no_table_reader, to_scenario,
};
use tailcut_net::measure::records::Outcome;

fn plan(file: &str, overrides: &[(&str, &str)]) -> Vec<RunPlan> {
    changed(file, false, overrides)
}

fn changed(file: &str, small: bool, overrides: &[(&str, &str)]) -> Vec<RunPlan> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/papers").join(file);
    let overrides: Vec<_> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let plan = load(
        &path,
        Changes { variant: small.then_some(Variant::Small), set: &overrides },
        &no_table_reader,
    )
    .unwrap_or_else(|failure| panic!("{failure}"));
    plan.runs
}

fn outcome(run: &RunPlan) -> Outcome {
    let scenario = to_scenario(run, &no_table_reader).expect("the plan is fresh");
    tailcut_net::simulate(&scenario, &mut |_| ControlFlow::Continue(())).expect("it runs")
}

/// Returns the mean of a flow's sampled rate between two times, in Mbps.
fn mbps(outcome: &Outcome, flow: u64, from_ms: u64, to_ms: u64) -> f64 {
    let name = format!("flow {flow} rate_bps");
    let series = outcome.series.iter().find(|s| s.name == name).expect("it is sampled");
    let within: Vec<f64> = (series.times.iter().zip(&series.values))
        .filter(|(time, _)| (from_ms + 1..=to_ms).contains(&(time.as_ns() / 1_000_000)))
        .map(|(_, rate)| rate / 1e6)
        .collect();
    within.iter().sum::<f64>() / within.len() as f64
}

/// Returns the largest difference between the queues of F2's two kinds of paths.
fn differential(outcome: &Outcome) -> f64 {
    let queue = |link: &str| {
        let name = format!("link {link} queue_packets");
        outcome.series.iter().find(|s| s.name == name).expect("it is sampled").values.clone()
    };
    let pairs = queue("core0>agg4").into_iter().zip(queue("core2>agg5"));
    pairs.map(|(alone, shared)| shared - alone).fold(0.0, f64::max)
}

/// Returns the rates of F1 and of F2, the paper's measure, after both have settled.
fn rates(outcome: &Outcome) -> [f64; 2] {
    [1, 2].map(|flow| mbps(outcome, flow, 2_000, 10_000))
}

/// Figure 5. The paper: 407 Mbps each, and 155 Mbps for F2 after the failure. Means of 24 seeds,
/// because which flow is ahead over a few seconds is chance.
#[test]
fn a_failure_that_takes_paths_from_one_sprayed_flow_costs_the_other_half_its_rate() {
    let outcomes: Vec<_> =
        changed("rps/fig5.toml", true, &[("seeds", "24")]).iter().map(outcome).collect();
    let mean = |flow, from_ms, to_ms| {
        outcomes.iter().map(|o| mbps(o, flow, from_ms, to_ms)).sum::<f64>() / outcomes.len() as f64
    };
    let before = [1, 2].map(|flow| mean(flow, 300, 1_200));
    let after = [1, 2].map(|flow| mean(flow, 2_000, 3_500));
    assert!(before.iter().all(|rate| (370.0..440.0).contains(rate)), "{before:?}");
    assert!((before[0] / before[1] - 1.0).abs() < 0.1, "equal shares: {before:?}");
    assert!(after[1] < 0.6 * before[1], "{before:?} -> {after:?}");
    assert!(after[1] < 0.8 * after[0], "F1 takes more than its share: {after:?}");
}

/// Returns the means of each setting over two seeds, because chance decides by how much a flow is
/// ahead over a few seconds.
fn means<K: Ord>(
    runs: &[RunPlan],
    setting: impl Fn(&RunPlan) -> K,
    measure: impl Fn(&Outcome) -> [f64; 2],
) -> BTreeMap<K, [f64; 2]> {
    let mut all = BTreeMap::<K, Vec<[f64; 2]>>::new();
    for run in runs {
        all.entry(setting(run)).or_default().push(measure(&outcome(run)));
    }
    let mean = |measured: Vec<[f64; 2]>| {
        assert!(measured.len() >= 2, "one of each seed");
        [0, 1].map(|at| measured.iter().map(|one| one[at]).sum::<f64>() / measured.len() as f64)
    };
    all.into_iter().map(|(setting, measured)| (setting, mean(measured))).collect()
}

/// Figure 6. The paper: F2 has 17 % of the shared links with unlimited buffers, 35 % with 50
/// packets.
#[test]
fn larger_buffers_let_queues_of_one_flow_grow_further_apart() {
    // Shares of one seed differ by 0.02 from the next.
    let runs = plan("rps/fig6.toml", &[("seeds", "4")]);
    let packets = |run: &RunPlan| -> u32 {
        let limit = run.point["queue.limit"].as_str().expect("it is swept");
        limit.trim_end_matches("packets").parse().expect("it is in packets")
    };
    let share = |o: &Outcome| {
        let [f1, f2] = rates(o);
        // F1 has half of its rate on each of the two shared links, F2 a quarter.
        (f2 / 4.0) / (f1 / 2.0 + f2 / 4.0)
    };
    let measured = means(&runs, packets, |o| [differential(o), share(o)]);
    let apart: Vec<f64> = measured.values().map(|measured| measured[0]).collect();
    let shares: Vec<f64> = measured.values().map(|measured| measured[1]).collect();
    assert!(apart.windows(2).all(|two| two[0] < two[1]), "{apart:?}");
    assert!(apart[4] > 200.0, "{apart:?}");
    assert!(shares.iter().all(|share| *share < 0.5), "less than its half: {shares:?}");
    assert!(shares[4] < 0.25, "{shares:?}");
    assert!(shares[..3].iter().all(|share| *share > 1.5 * shares[4]), "{shares:?}");
}

/// Figure 7(a). The paper: 417 Mbps without the failure; below 200 drop-tail, 360 RED, near ideal
/// SRED.
#[test]
fn red_and_selective_red_give_back_most_of_what_the_failure_costs() {
    let runs = plan("rps/fig7a.toml", &[("seeds", "2")]);
    let setting = |run: &RunPlan| (run.scheme.clone(), run.point["faults.active"] == true);
    let rates = means(&runs, setting, rates);
    let of = |scheme: &str, broken| rates[&(scheme.to_owned(), broken)];
    let healthy = of("Drop-tail", false)[1];
    let drop_tail = of("Drop-tail", true);
    assert!(drop_tail[1] < 0.55 * healthy, "{rates:?}");
    let red = of("RED", true);
    assert!((0.8 * healthy..1.2 * healthy).contains(&red[1]), "{rates:?}");
    // F2 gets more than it lost: RED drops packets of F1 only, which has lost paths, and F2 fills
    // what F1 leaves.
    let [f1, f2] = of("SRED", true);
    assert!(f2 > 1.3 * drop_tail[1] && f2 < 1.9 * healthy, "{rates:?}");
    assert!(f1 < drop_tail[0] && f1 > 0.1 * healthy, "but F1 is not starved: {rates:?}");
    assert_eq!(of("SRED", false), of("Drop-tail", false), "without a failure it is drop-tail");
    assert_eq!(of("SRED, two queues", true), of("SRED", true), "nothing limits either queue");
}

/// TinyFlow, figure 1: the elephant no longer delays the mice.
#[test]
fn tinyflow_moves_an_elephant_out_of_the_way_of_mice() {
    let p99 = |run: &RunPlan| {
        let outcome = outcome(run);
        let mice = outcome.flows.iter().filter(|f| f.flow.bytes == 10_000);
        let mut times: Vec<_> = mice.map(|f| f.fct.expect("mice finish")).collect();
        times.sort_unstable();
        (times[494].as_secs_f64(), outcome.counters)
    };
    for seed in ["[1]", "[2]", "[3]"] {
        let runs = plan("tinyflow/fig1.toml", &[("seeds", seed)]);
        let ((ecmp, without), (tinyflow, with)) = (p99(&runs[0]), p99(&runs[1]));
        assert_eq!(without.scheme_counters, []);
        let number = |name| with.further(name).expect("TinyFlow counts");
        assert_eq!((number("elephants_found"), number("elephants_missed")), (1, 0));
        assert!(number("elephant_detection_ns") < 20_000_000, "{with:?}");
        assert!(tinyflow < 0.2 * ecmp, "{tinyflow} s against {ecmp} s");
    }
}

/// A sampler at exact intervals of bytes never sees two packets of an elephant within its window.
#[test]
fn elephants_missed_counts_elephants_that_depend_on_other_flows() {
    let text = r#"title = "pings of two megabytes"
[topology]
kind = "parallel-paths"
hosts_per_side = 1
paths = 2
[balance]
kind = "tinyflow"
detect = "exact-port"
[traffic]
kind = "pings"
from = 0
to = 1
count = 3
bytes = "2MB"
[horizon]
arrivals = "1ms"
"#;
    let plan = load_text("pings.toml", text, Path::new("."), Changes::default(), &no_table_reader)
        .unwrap_or_else(|failure| panic!("{failure}"));
    let counters = outcome(&plan.runs[0]).counters;
    let number = |name| counters.further(name).expect("TinyFlow counts");
    assert_eq!((number("elephants_found"), number("elephants_missed")), (0, 3));
}

/// TinyFlow, figure 2: from 500 Mbps to about 1 Gbps, of which 949 Mbps are payload.
#[test]
fn two_elephants_on_one_path_come_close_to_a_link_each_with_tinyflow() {
    let papers_hosts = |run: &RunPlan| run.scheme.ends_with("paper's hosts");
    for run in plan("tinyflow/fig2.toml", &[]).iter().filter(|run| !papers_hosts(run)) {
        let outcome = outcome(run);
        let rate = |flow| mbps(&outcome, flow, 50, 800);
        let rates = [rate(0), rate(1)];
        let number = |name| outcome.counters.further(name).expect("all are counted");
        match outcome.counters.further("elephants_found") {
            None if run.scheme == "In the application" => {
                // Each 10 KB cost a handshake and the ACK of a window: both paths are used, neither
                // is filled.
                assert!(rates.iter().all(|rate| (400.0..470.0).contains(rate)), "{rates:?}");
            }
            None => {
                assert!(rates.iter().all(|rate| (450.0..500.0).contains(rate)), "{rates:?}");
            }
            Some(found) => {
                assert_eq!((found, number("elephants_missed")), (2, 0), "{}", run.scheme);
                let mistaken = number("elephants_mistaken");
                assert_eq!(mistaken, 0, "there is nothing else: {}", run.scheme);
                let acks = number("elephant_ack_streams");
                assert!(acks <= 2, "{}: {:?}", run.scheme, outcome.counters);
                assert!(number("elephant_reroutes") > 10_000);
                assert!(rates.iter().all(|rate| *rate > 850.0), "{}: {rates:?}", run.scheme);
            }
        }
    }
}

/// The same with buffers of 25 packets and NewReno, which takes reordering for loss: both paths are
/// used, with many retransmissions.
#[test]
fn two_elephants_whose_hosts_take_reordering_for_loss_use_both_paths_and_send_much_again() {
    // The loss of two flows that always share one link depends on their order at one instant.
    let hasty = [
        ("queue.limit", "\"25packets\""),
        ("queue.ties", "\"departure\""),
        ("transport.dupack_threshold", "3"),
    ];
    for run in plan("tinyflow/fig2.toml", &hasty) {
        let outcome = outcome(&run);
        let together = mbps(&outcome, 0, 50, 800) + mbps(&outcome, 1, 50, 800);
        let resent: u64 = outcome.flows.iter().map(|flow| flow.retransmissions).sum();
        match run.scheme.as_str() {
            "ECMP" => assert!(together < 950.0 && resent < 100, "one link: {together} Mbps"),
            "TinyFlow" | "TinyFlow, five-tuple" => {
                assert!(together > 1.2 * 949.0, "{}: {together} Mbps", run.scheme);
                assert!(resent > 137_000 / 50, "{}: {resent} segments", run.scheme);
            }
            _ => {}
        }
    }
}

/// The same with the buffers and hosts of figure 3, which take reordering for loss: both paths are
/// used, but an elephant that has lost a retransmission waits for 200 ms.
#[test]
fn two_elephants_of_the_papers_hosts_use_both_paths_and_wait_for_timers() {
    let mut found = BTreeMap::<String, Vec<(f64, u64, u64)>>::new();
    // As in the test before.
    let settings = [("seeds", "[1, 2, 3, 4, 5]"), ("queue.ties", "\"departure\"")];
    for run in plan("tinyflow/fig2.toml", &settings) {
        if run.scheme.ends_with("paper's hosts") {
            let outcome = outcome(&run);
            let together = mbps(&outcome, 0, 50, 800) + mbps(&outcome, 1, 50, 800);
            let resent = outcome.flows.iter().map(|flow| flow.retransmissions).sum();
            let timeouts = outcome.flows.iter().map(|flow| u64::from(flow.timeouts)).sum();
            found.entry(run.scheme).or_default().push((together, resent, timeouts));
        }
    }
    for (scheme, runs) in &found {
        let mean = runs.iter().map(|run| run.0).sum::<f64>() / runs.len() as f64;
        if scheme.starts_with("ECMP") {
            let one_link = |run: &(f64, u64, u64)| run.0 < 950.0 && run.1 < 100;
            assert!(runs.iter().all(one_link), "{scheme}: {runs:?}");
        } else {
            assert!(
                runs.iter().all(|run| run.0 > 949.0 && run.1 > 137_000 / 200),
                "{scheme}: {runs:?}"
            );
            assert!(mean > 1.1 * 949.0, "{scheme}: {runs:?}");
            assert!(runs.iter().map(|run| run.2).sum::<u64>() > 0, "{scheme}: {runs:?}");
        }
    }
    assert_eq!(found.len(), 3);
}

/// RepFlow, Table I. The paper: 13.5 ms without an elephant, 175 ms with an elephant on one of two
/// paths, 105 ms replicated (p99 14.5, 490, 212 ms).
#[test]
fn replication_takes_half_of_what_an_elephant_on_one_of_two_paths_costs() {
    let short = |run: &RunPlan| {
        let outcome = outcome(run);
        let short = outcome.flows.iter().filter(|f| f.flow.bytes == 14_600);
        let mut times: Vec<f64> = short
            .map(|f| f.fct.expect("all but the elephant finish").as_secs_f64() * 1e3)
            .collect();
        assert_eq!(times.len(), 500);
        times.sort_unstable_by(f64::total_cmp);
        (times.iter().sum::<f64>() / 500.0, times[494])
    };
    let runs = plan("repflow/table1.toml", &[]);
    let of = |scheme: &str, bytes: &str| {
        let point = |run: &&RunPlan| run.point.values().any(|value| value == bytes);
        short(runs.iter().filter(point).find(|run| run.scheme == scheme).expect("it is planned"))
    };
    // One and a half round trips of 8 ms, ten full packets over one link, the last of them over
    // three more, and the bits of the handshake.
    let (alone, alone_p99) = of("TCP", "1B");
    assert!((15.0..15.5).contains(&alone) && alone_p99 < 15.5, "{alone} ms, {alone_p99} ms");
    let (behind, behind_p99) = of("TCP", "1GB");
    assert!(behind > 6.0 * alone, "{behind} ms");
    // A handshake and a window behind a full queue: twice 1,000 packets at 50 Mbps.
    assert!((430.0..530.0).contains(&behind_p99), "{behind_p99} ms");
    let (replicated, _) = of("RepFlow", "1GB");
    // Both copies meet the elephant one time in four, a single flow one time in two: half of the
    // delay. With 500 flows, two standard deviations of the count are 0.09.
    let left = (replicated - alone) / (behind - alone);
    assert!((0.41..0.59).contains(&left), "{left}: {replicated} ms against {behind} ms");
}
