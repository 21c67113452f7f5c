//! Runs in which one link, queue, switch or flow changes or differs from the others.

use std::ops::ControlFlow;

use tailcut_experiment::{Column, RunResult, Values, explain, no_table_reader, run};

use crate::common::{load, plan, replaced};

fn result(text: &str) -> RunResult {
    let planned = serde_json::to_string(&plan(text).runs[0]).expect("a plan is plain data");
    run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(())).expect("it runs")
}

fn column<'a>(columns: &'a [Column], name: &str) -> &'a Values {
    &columns.iter().find(|column| column.name == name).expect("the column exists").values
}

fn fct_ms(result: &RunResult) -> Vec<i64> {
    let Values::I64(ns) = column(&result.flows, "fct_ns") else { panic!("times are integers") };
    ns.iter().map(|ns| ns / 1_000_000).collect()
}

fn further(result: &RunResult, name: &str) -> u64 {
    result.counters.further(name).expect("it is counted")
}

fn fact(result: &RunResult, name: &str) -> f64 {
    result.facts.iter().find(|(known, _)| *known == name).expect("it is known").1
}

/// Returns the completion time in ms of an NDP flow whose last link is built with one rate and has
/// another from 1 ns on; an empty `then` keeps the first.
fn ndp(built: &str, then: &str) -> i64 {
    let incidents = match then {
        "" => String::new(),
        rate => format!("{{ kind = \"rate\", link = \"s0>h1\", rate = \"{rate}\", at = \"1ns\" }}"),
    };
    fct_ms(&result(&format!(
        r#"title = "pulls"
[topology]
kind = "chain"
switches = 1
rate = ["1Gbps", "{built}"]
[queue]
kind = "trimming"
[transport]
kind = "ndp"
[traffic]
kind = "trace"
flows = [ {{ src = 0, dst = 1, bytes = "5MB" }} ]
[faults]
incidents = [{incidents}]
[horizon]
arrivals = "10ms"
drain = "2s"
"#
    )))[0]
}

#[test]
fn ndp_pulls_are_paced_by_the_current_rate_of_the_link() {
    // 5 MB in segments of 1,460 B at 100 Mbps and at 1 Gbps.
    let took = [ndp("100Mbps", ""), ndp("1Gbps", "100Mbps"), ndp("100Mbps", "1Gbps")];
    assert_eq!(took, [421, 421, 42]);
}

const CONGA: &str = r#"title = "a path that was congested once"
seeds = 1
[topology]
kind = "leaf-spine"
racks = 2
hosts_per_rack = 4
spines = 2
rate = { host = "10Gbps", spine = "10Gbps" }
[queue]
kind = "drop-tail"
limit = "500packets"
[transport]
kind = "tcp"
initial_window = "10packets"
[traffic]
kind = "mix"
parts = [
  { kind = "trace", flows = [
    { src = 0, dst = 4, bytes = "6MB" },
    { src = 1, dst = 5, bytes = "6MB" },
    { src = 2, dst = 6, bytes = "6MB" },
    { src = 3, dst = 7, bytes = "6MB" },
  ] },
  { kind = "poisson", sizes = "20KB", load = 0.05, pairs = "inter-rack" },
]
[balance]
kind = "conga"
[horizon]
arrivals = "300ms"
drain = "1s"
[series]
links = ["leaf0>spine0", "leaf0>spine1"]
interval = "20ms"
"#;

/// At first both uplinks are full. Later they carry a fifth of one link's rate together, and each
/// gets its part.
#[test]
fn conga_returns_to_a_path_that_was_congested() {
    let result = result(CONGA);
    let shares = ["leaf0>spine0", "leaf0>spine1"].map(|link| {
        let name = format!("link {link} utilisation");
        let series =
            result.series.iter().find(|series| series.name == name).expect("it is sampled");
        let later = series.times.iter().zip(&series.values);
        let later: Vec<f64> = later
            .filter(|(at, _)| (100..=300).contains(&(at.as_ns() / 1_000_000)))
            .map(|(_, v)| *v)
            .collect();
        later.iter().sum::<f64>() / later.len() as f64
    });
    assert!(shares.iter().all(|share| (0.08..0.14).contains(share)), "{shares:?}");
}

/// Runs a slow link that carries data of some hosts and many acknowledgements: queues of large and
/// of small packets.
fn drr(limit: &str, drain: &str) -> RunResult {
    let flow = |(src, dst, bytes): (u32, u32, &str)| {
        format!("{{ src = {src}, dst = {dst}, bytes = \"{bytes}\" }}")
    };
    let there = (0..4).map(|n| (n, n + 7, "2MB"));
    let back = (0..4).map(|n| (n + 7, n, "2MB"));
    let others = [(4, 6, "50MB"), (5, 6, "50MB")];
    let once: Vec<_> = there.chain(back).chain(others).map(flow).collect();
    let flows = [once.clone(), once].concat().join(", ");
    result(&format!(
        r#"title = "lines"
[topology]
kind = "dumbbell"
pairs = 7
[faults]
incidents = [ {{ kind = "rate", link = "s0>s1", rate = "10Mbps", at = "0s", one_way = true }} ]
[queue]
kind = "drr"
limit = "{limit}"
[transport]
kind = "tcp"
receive_window = "400KB"
[traffic]
kind = "trace"
flows = [{flows}]
[horizon]
arrivals = "1ms"
drain = "{drain}"
"#
    ))
}

#[test]
fn deficit_round_robin_with_a_limit_in_bytes_accounts_for_every_packet() {
    for (limit, drain) in [("10KB", "455.192081ms"), ("4700B", "300ms"), ("36KB", "300ms")] {
        let RunResult { counters, tiers, .. } = drr(limit, drain);
        let found =
            counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
        assert_eq!(counters.sent, found, "{limit}");
        let Values::U64(drops) = column(&tiers, "drops") else { panic!("drops are counted") };
        assert_eq!(drops.iter().sum::<u64>(), counters.dropped, "{limit}");
        assert!(counters.dropped > 1_000, "{limit}: {} drops", counters.dropped);
    }
}

const MIXED: &str = r#"title = "segments of two sizes"
[topology]
kind = "dumbbell"
pairs = 2
[transport]
kind = "mixed"
parts = [
  { transport = { kind = "tcp", mss = "1460B", receive_window = "1MB" }, up_to = "50MB" },
  { transport = { kind = "tcp", mss = "8960B", receive_window = "1MB" }, above = "50MB" },
]
[queue]
kind = "drop-tail"
limit = "unlimited"
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 2, bytes = "40MB" } ]
[measure]
throughput = true
[horizon]
arrivals = "300ms"
drain = "1s"
"#;

#[test]
fn a_flow_of_a_mixture_has_the_segment_size_of_its_part() {
    let planned = plan(MIXED);
    let once = 40_000_000_u64.div_ceil(1_460);
    let expected = planned.runs[0].facts.expected_packets;
    assert!((2 * once..2 * once + 10).contains(&expected), "{expected}");
    let json = serde_json::to_string(&planned.runs[0]).expect("a plan is plain data");
    let explained = explain(&json, &[0], 10, &no_table_reader, &mut |_| ControlFlow::Continue(()));
    assert_eq!(explained.expect("it runs").flows[0].segment, 1_460);
}

/// The fair share is 1 Gbps, of which 1,460 of every 1,538 bytes are payload.
#[test]
fn ideal_throughput_in_a_mixture_uses_each_flows_segment_size() {
    let result = result(MIXED);
    let (_, columns) = result
        .extra_tables
        .iter()
        .find(|(name, _)| *name == "throughput")
        .expect("it is asked for");
    let Values::F64(ideal) = column(columns, "ideal_bps") else { panic!("rates are numbers") };
    assert_eq!(ideal.len(), 1);
    assert!((ideal[0] - 1e9 * 1_460.0 / 1_538.0).abs() < 1.0, "{ideal:?}");
}

#[test]
fn a_part_of_a_mixture_is_checked_against_its_own_flows_only() {
    let tiny = MIXED
        .replace(
            "mss = \"1460B\", receive_window = \"1MB\" }, up_to = \"50MB\"",
            "mss = \"1B\", initial_window = \"4packets\" }, up_to = \"1KB\"",
        )
        .replace("above = \"50MB\"", "above = \"1KB\"")
        .replace("bytes = \"40MB\"", "bytes = \"3GB\"");
    assert_eq!(plan(&tiny).runs.len(), 1);
    let refused = tiny.replace("up_to = \"1KB\"", "up_to = \"2.5GB\"");
    let refused = refused.replace("above = \"1KB\"", "above = \"2.5GB\"");
    assert_eq!(plan(&refused).runs.len(), 1, "the flow is larger than that");
    let refused = replaced(&refused, "bytes = \"3GB\"", "bytes = \"2.4GB\"");
    let failure = load(&refused, &[]).expect_err("1 B each are too many segments");
    assert_eq!(failure.diagnostics[0].code, "TC-E100/transport-segments");
}

#[test]
fn a_queue_differential_ignores_paths_without_a_route() {
    let result = result(
        r#"title = "one path is left"
[topology]
kind = "leaf-spine"
racks = 2
hosts_per_rack = 3
spines = 2
[traffic]
kind = "trace"
flows = [
  { src = 0, dst = 3, bytes = "20MB", start = "10ms" },
  { src = 1, dst = 4, bytes = "20MB", start = "10ms" },
  { src = 2, dst = 5, bytes = "20MB", start = "10ms" },
]
[faults]
reconvergence = "0s"
incidents = [ { kind = "link-down", link = "leaf0>spine1", at = "1ms", until = "100ms" } ]
[series]
differentials = ["h0>h3"]
interval = "5ms"
[horizon]
arrivals = "200ms"
drain = "1s"
"#,
    );
    let series = &result.series[0];
    let sum = |from: u64, to: u64| {
        let samples = series.times.iter().zip(&series.values);
        let within = samples.filter(|(at, _)| (from..to).contains(&(at.as_ns() / 1_000_000)));
        within.map(|(_, value)| *value).sum::<f64>()
    };
    assert_eq!(sum(1, 100), 0.0, "a single path differs from no other");
    assert!(sum(105, 200) > 0.0, "both are there again");
}

#[test]
fn carried_load_counts_host_links_of_every_tier() {
    let text = |src, dst| {
        format!(
            r#"title = "two tiers of host links"
[topology]
kind = "node-link"
file = "two-host-tiers.json"
[traffic]
kind = "trace"
flows = [ {{ src = {src}, dst = {dst}, bytes = "10MB" }} ]
[horizon]
arrivals = "100ms"
drain = "1s"
"#
        )
    };
    for (src, dst) in [(0, 1), (2, 3)] {
        let carried = fact(&result(&text(src, dst)), "carried_load");
        assert!((0.219..0.223).contains(&carried), "{src} to {dst}: {carried}");
    }
}

#[test]
fn the_memory_estimate_includes_the_table_of_round_robin() {
    let text = r#"title = "a table"
[topology]
kind = "fat-tree"
k = 16
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 600, bytes = "10KB" } ]
[horizon]
arrivals = "1ms"
"#;
    let estimate = |kind: &str| {
        plan(&format!("{text}[balance]\nkind = \"{kind}\"\n")).runs[0].facts.estimated_memory_bytes
    };
    assert_eq!(estimate("round-robin") - estimate("ecmp"), 2 * 320 * 1_024);
}

/// Two hosts send at the same rate, so for a while every 64th packet of a switch is of the same
/// host, twice within 500 us. The 64th packet of one host alone comes too late.
#[test]
fn tinyflow_samples_also_count_packets_that_stay_in_the_rack() {
    let found = |[first, second]: [u32; 2]| {
        let result = result(&format!(
            r#"title = "samples"
[topology]
kind = "leaf-spine"
racks = 2
hosts_per_rack = 3
spines = 2
[balance]
kind = "tinyflow"
detect = "exact-switch"
sample_every = "98432B"
[traffic]
kind = "trace"
flows = [ {{ src = 0, dst = {first}, bytes = "25MB" }}, {{ src = 1, dst = {second}, bytes = "25MB" }} ]
[horizon]
arrivals = "10ms"
drain = "1s"
"#
        ));
        ["elephants_found", "elephants_missed"].map(|name| further(&result, name))
    };
    assert_eq!(found([3, 4]), [2, 0]);
    assert_eq!([found([3, 2]), found([2, 4])], [[1, 0]; 2], "whoever leaves the rack");
}

#[test]
fn flows_of_a_trace_in_a_mix_keep_their_identifiers() {
    let mix = |parts: &str| {
        format!(
            "title = \"ids\"\n[topology]\nkind = \"star\"\nhosts = 4\n[traffic]\nkind = \"mix\"\nparts = [{parts}]\n[horizon]\narrivals = \"1ms\"\n[series]\nflows = [77]\n"
        )
    };
    let named = "{ kind = \"trace\", flows = [ { src = 0, dst = 1, bytes = \"10KB\", id = 77, start = \"5us\" }, { src = 1, dst = 2, bytes = \"10KB\", id = 1 } ] }";
    let others = "{ kind = \"trace\", flows = [ { src = 2, dst = 1, bytes = \"10KB\", start = \"3us\" }, { src = 3, dst = 2, bytes = \"10KB\", start = \"7us\" } ] }";
    let ids = |parts: &str| match column(&result(&mix(parts)).flows, "id") {
        Values::U64(ids) => ids.clone(),
        other => panic!("{other:?} are no identifiers"),
    };
    assert_eq!(ids(named), [1, 77]);
    assert_eq!(ids(&format!("{others}, {named}")), [1, 0, 77, 2]);
    let failure = load(&mix(&format!("{named}, {named}")), &[]).expect_err("two flows are one");
    assert_eq!(failure.diagnostics[0].code, "TC-E100/trace-id");
}

/// A network of rails alone is one whose spine no packet reaches.
#[test]
fn by_rail_no_packet_crosses_the_spine_of_one_unit() {
    let lost = |kind: &str| {
        let result = result(&format!(
            r#"title = "rails alone"
[topology]
kind = "rail-optimised"
servers = 4
rails = 4
[interface]
kind = "{kind}"
[traffic]
kind = "poisson"
load = 0.3
sizes = "100KB"
[horizon]
arrivals = "50us"
drain = "20ms"
[faults]
known_at_start = false
incidents = [{{ kind = "switch-down", switch = "spine0", at = "0s" }}]
"#
        ));
        (result.counters.lost_on_links, result.counters.delivered)
    };
    let (of_rails, of_own) = (lost("by-rail"), lost("by-flow"));
    assert!(of_rails.0 == 0 && of_rails.1 > 10_000, "{of_rails:?}");
    assert!(of_own.0 > 100, "{of_own:?}");
}
