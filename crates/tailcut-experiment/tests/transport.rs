//! Senders in whole runs: their counters, the reductions they undo, and the ideal times of their
//! flows.

use std::ops::ControlFlow;

use tailcut_experiment::{Column, Plan, RunResult, Values, explain, no_table_reader, run};

use crate::common::plan;

fn results(plan: &Plan) -> Vec<RunResult> {
    let one = |run_plan| {
        let planned = serde_json::to_string(run_plan).expect("a plan is plain data");
        run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(())).expect("it runs")
    };
    plan.runs.iter().map(one).collect()
}

fn column<'a>(result: &'a RunResult, name: &str) -> &'a Column {
    result.flows.iter().find(|column| column.name == name).expect("the column exists")
}

fn counts(result: &RunResult, name: &str) -> u64 {
    match &column(result, name).values {
        Values::U32(values) => u64::from(values[0]),
        Values::U64(values) => values[0],
        other => panic!("{other:?} are no counts"),
    }
}

fn ns(result: &RunResult, name: &str) -> i64 {
    match &column(result, name).values {
        Values::I64(values) => values[0],
        other => panic!("{other:?} are no times"),
    }
}

/// A delay spike of 15 ms exceeds the timeout of 10 ms, without loss.
#[test]
fn a_needless_timeout_counts_as_no_recovery() {
    let plan = plan(
        r#"title = "a spike"
[topology]
kind = "star"
hosts = 3
[transport]
kind = "tcp"
receive_window = "1460B"
initial_window = "1packets"
reordering = { kind = "rack", tail_loss_probe = false }
[[faults.incidents]]
kind = "delay"
link = "s0>h1"
one_way = true
extra = "15ms"
at = "1ms"
until = "17ms"
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 1, bytes = "200KB" } ]
[horizon]
arrivals = "100ms"
drain = "900ms"
"#,
    );
    let result = &results(&plan)[0];
    let counted = ["timeouts", "fast_recoveries", "recoveries_undone"].map(|n| counts(result, n));
    assert_eq!(counted, [1, 0, 0]);
}

#[test]
fn marks_reduce_no_window_of_bbr_and_swift() {
    for kind in ["newreno", "bbr", "swift"] {
        let plan = plan(&format!(
            r#"title = "marks"
[topology]
kind = "star"
hosts = 3
[queue]
kind = "ecn"
threshold = "5packets"
[transport]
kind = "tcp"
ecn = true
congestion = {{ kind = "{kind}" }}
receive_window = "1MB"
[traffic]
kind = "trace"
flows = [ {{ src = 0, dst = 1, bytes = "1MB" }}, {{ src = 2, dst = 1, bytes = "1MB" }} ]
[horizon]
arrivals = "10ms"
drain = "1s"
"#
        ));
        let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
        let explained =
            explain(&planned, &[0], 10_000, &no_table_reader, &mut |_| ControlFlow::Continue(()));
        let explained =
            serde_json::to_string(&explained.expect("it runs")).expect("stories are plain data");
        let reduced = explained.contains("\"what\":\"heeded\"");
        assert_eq!(reduced, kind == "newreno", "{kind}");
    }
}

fn lone(hops: &str, schemes: &str, bytes: &str) -> String {
    format!(
        r#"title = "alone"
[topology]
kind = "chain"
switches = 2
{hops}
[queue]
limit = "unlimited"
[host]
nic_queue = "unlimited"
[transport]
kind = "tcp"
initial_window = "4packets"
receive_window = "1MB"
[traffic]
kind = "trace"
flows = [ {{ src = 0, dst = 1, bytes = "{bytes}" }} ]
[horizon]
arrivals = "1ms"
drain = "100s"
{schemes}
"#
    )
}

/// Without losses, RACK changes nothing.
#[test]
fn a_lone_flow_takes_its_ideal_time_with_rack() {
    let schemes =
        "[schemes.plain]\n[schemes.rack]\ntransport = { reordering = { kind = \"rack\" } }\n";
    for rate in ["100Mbps", "1Gbps", "10Gbps", "100Gbps"] {
        for propagation in ["10us", "100us", "1ms"] {
            for bytes in ["1B", "5KB", "100KB", "1001KB"] {
                let hops = format!("rate = \"{rate}\"\npropagation = \"{propagation}\"");
                let results = results(&plan(&lone(&hops, schemes, bytes)));
                let [plain, rack] = &results[..] else { panic!("two schemes") };
                let took = |result: &RunResult| (ns(result, "fct_ns"), ns(result, "ideal_fct_ns"));
                // Where a segment takes twice as long as the handshake, the tail is probed.
                if rate == "100Mbps" && propagation == "10us" {
                    continue;
                }
                assert_eq!(took(rack), took(plain), "{rate} {propagation} {bytes}");
                assert_eq!(took(rack).0, took(rack).1, "{rate} {propagation} {bytes}");
            }
        }
    }
}

/// The link is so slow that probes leave before the first ACK. The window held the flow back, not
/// the tail.
#[test]
fn a_probe_of_new_data_does_not_count_as_a_wait_for_the_tail() {
    let schemes = "[measure]\nattribution = true\n[schemes.rack]\ntransport = { reordering = { kind = \"rack\" } }\n";
    let result =
        &results(&plan(&lone("rate = \"10Mbps\"\npropagation = \"10us\"", schemes, "100KB")))[0];
    assert_eq!(ns(result, "part_probe_ns"), 0);
}

/// Sends 64 MB over two sprayed paths of 10 and 15 ms. If the window did not return, a flow would
/// have sent 5 MB after 10 s. A tenth of the reordered segments is still taken for lost, which
/// costs a recovery every few round trips; a higher `percentile` avoids it.
#[test]
fn rr_tcp_gets_its_window_back_under_persistent_reordering() {
    let plan = plan(
        r#"title = "two sprayed paths that differ by 5 ms"
seeds = 1
[topology]
kind = "node-link"
file = "two-unequal-paths.json"
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 1, bytes = "64MB" } ]
[horizon]
arrivals = "1us"
drain = "10s"
[balance]
kind = "spray"
[transport]
receive_window = "32MB"
initial_rto = "1s"
min_rto = "200ms"
[queue]
limit = "4000packets"
[schemes.adaptive]
transport = { reordering = { kind = "adaptive" } }
[schemes.rr-tcp]
transport = { reordering = { kind = "rr-tcp" } }
[schemes."rr-tcp all"]
transport = { reordering = { kind = "rr-tcp", percentile = 1.0, max = 5000 } }
[schemes."rr-tcp no undo"]
transport = { reordering = { kind = "rr-tcp", undo = false } }
"#,
    );
    let results = results(&plan);
    let [adaptive, default, all, alone] = [0, 1, 2, 3].map(|at| ns(&results[at], "fct_ns"));
    println!("adaptive {adaptive}, RR-TCP {default}, all {all}, without undo {alone} ns");
    assert!(adaptive > 0 && default > adaptive && default < 4 * adaptive, "{default} ns");
    assert!(all > 0 && all <= 2 * adaptive, "{all} against {adaptive} ns");
    assert_eq!(alone, 0, "it has not finished");
}

/// Returns the mean queue, in packets from 100 ms on, of twenty flows on one link that marks above
/// five packets.
fn fan_in(transport: &str) -> f64 {
    let start = |n: u64| (n * 7_919_317) % 1_900_000;
    let flows: Vec<_> = (0..20)
        .map(|n| {
            let at = start(n);
            format!("{{ src = {n}, dst = {}, bytes = \"10GB\", start = \"{at}ns\" }}", n + 20)
        })
        .collect();
    let plan = plan(&format!(
        r#"title = "fan-in"
[topology]
kind = "dumbbell"
pairs = 20
rate = {{ host = "10Gbps", bottleneck = "1Gbps" }}
propagation = "16670ns"
[queue]
kind = "ecn"
limit = "5000packets"
threshold = "5packets"
[transport]
receive_window = "4MB"
{transport}
[traffic]
kind = "trace"
flows = [{}]
[series]
links = ["s0>s1"]
interval = "20us"
max_samples = 100000
[horizon]
arrivals = "200ms"
drain = "0s"
"#,
        flows.join(", ")
    ));
    let result = &results(&plan)[0];
    let queue = result.series.iter().find(|series| series.name.ends_with("queue_packets"));
    let values = &queue.expect("it is sampled").values;
    let settled = &values[values.len() / 2..];
    settled.iter().sum::<f64>() / settled.len() as f64
}

/// Like classic ECN, DCTCP does not grow its window on an ACK with an echo. In the paper's analysis
/// it does, and queues are longer.
#[test]
fn dctcp_at_heavy_fan_in_has_no_longer_queue_than_classic_ecn() {
    let classic = fan_in("ecn = true");
    let dctcp = fan_in("congestion = { kind = \"dctcp\" }");
    let grows = fan_in("congestion = { kind = \"dctcp\", grows_under_echoes = true }");
    println!("mean queue: classic ECN {classic:.1}, DCTCP {dctcp:.1}, as analysed {grows:.1}");
    assert!(dctcp <= 1.05 * classic, "{dctcp} against {classic}");
    assert!(grows > 1.3 * classic, "{grows} against {classic}");
}
