//! The rows that have a digest: every kind that an experiment can name is in some row, each of
//! which takes a tenth of a second.

mod interfaces;
mod older;

use serde_json::{Value, json};
use tailcut_net::transport::tcp::DEPARTURES;
use tailcut_net::workload::BUILTIN;

use super::asked::{Asked, asked};

/// A name and a run.
pub type Row = (String, Asked);

fn kind(kind: &str) -> Value {
    json!({ "kind": kind })
}

fn tcp(parameters: Value) -> Value {
    with(kind("tcp"), parameters)
}

fn uet(parameters: Value) -> Value {
    with(kind("uet"), parameters)
}

/// Returns a table with further entries.
fn with(mut table: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("it is a table") {
        table[key] = value.clone();
    }
    table
}

fn congestion(kind: &str) -> Value {
    tcp(json!({ "congestion": { "kind": kind } }))
}

/// Returns TCP that distinguishes reordering from loss, with timestamps.
fn robust(reordering: Value) -> Value {
    tcp(json!({ "recovery": "sack-prr", "timestamps": true, "reordering": reordering }))
}

/// Returns every second of ns-3's departures from the RFCs.
fn half_of_ns3(from: usize) -> Value {
    let names: Vec<&str> = DEPARTURES.iter().skip(from).step_by(2).map(|one| one.name).collect();
    tcp(json!({ "recovery": "newreno", "imitate": names }))
}

/// Returns web search under every scheme.
pub fn schemes() -> Vec<Row> {
    let uplink = json!({ "incidents": [
        { "kind": "link-down", "link": "s0>s8", "at": "20ms", "until": "50ms" },
    ]});
    let mut rows = replicated();
    let under = [
        first(),
        multipath(),
        balanced(),
        detected(),
        senders(),
        entropies(),
        queues(),
        broken(),
        older::older(),
    ];
    for (name, sections) in under.into_iter().flatten() {
        // One uplink is down for a while, unless the row has faults of its own.
        rows.push((name.to_owned(), asked(&with(json!({ "faults": uplink }), sections))));
    }
    rows
}

/// Returns rows with replication and short queues.
fn replicated() -> Vec<Row> {
    let mut rows = vec![];
    for (name, replicate) in [("TCP", "none"), ("RepFlow", "repflow"), ("RepSYN", "repsyn")] {
        for (called, recovery) in [("Newreno", "newreno"), ("SackPrr", "sack-prr")] {
            let sections = json!({
                "queue": { "kind": "drop-tail", "limit": "40packets" },
                "transport": tcp(json!({ "recovery": recovery })),
                "replicate": kind(replicate),
            });
            rows.push((format!("{name} {called}"), asked(&sections)));
        }
    }
    for ties in ["departure", "arrival"] {
        let queue = json!({ "kind": "drop-tail", "limit": "40packets", "ties": ties });
        rows.push((format!("TCP, {ties} first"), asked(&json!({ "queue": queue }))));
    }
    rows
}

type Sections = Vec<(&'static str, Value)>;

fn first() -> Sections {
    let red = json!({ "kind": "red", "mark": true, "weight": 0.02 });
    let [adaptive, rr, ncr] = ["adaptive", "rr-tcp", "ncr"].map(|method| robust(kind(method)));
    vec![
        ("CUBIC", json!({ "transport": congestion("cubic") })),
        ("BBR", json!({ "transport": congestion("bbr") })),
        (
            "RR-TCP, no undo",
            json!({ "transport": robust(json!({ "kind": "rr-tcp", "undo": false })),
                "balance": kind("spray") }),
        ),
        (
            "DCTCP, growing",
            json!({ "queue": kind("ecn"),
                "transport": { "kind": "tcp",
                    "congestion": { "kind": "dctcp", "grows_under_echoes": true } } }),
        ),
        ("DCTCP", json!({ "transport": congestion("dctcp"), "queue": kind("ecn") })),
        (
            "DCTCP, thresholds by tier",
            json!({ "transport": congestion("dctcp"), "queue": { "kind": "ecn",
                "threshold": { "host": "5packets", "aggregation": "9packets", "core": "9packets" } } }),
        ),
        (
            "RepFlow on DCTCP",
            json!({ "transport": congestion("dctcp"), "queue": red, "replicate": kind("repflow") }),
        ),
        ("adaptive, sprayed", json!({ "transport": adaptive, "balance": kind("spray") })),
        ("RR-TCP, sprayed", json!({ "transport": rr, "balance": kind("spray") })),
        ("NCR, round robin", json!({ "transport": ncr, "balance": kind("round-robin") })),
        ("pFabric", json!({ "transport": kind("pfabric"), "queue": kind("pfabric") })),
        (
            "NDP, sprayed",
            json!({ "transport": kind("ndp"), "queue": kind("trimming"), "balance": kind("spray") }),
        ),
    ]
}

fn multipath() -> Sections {
    let by_congestion = json!({ "kind": "mmptcp", "switch": { "kind": "congestion" } });
    let parts = json!([
        { "transport": { "kind": "tcp" } },
        { "transport": { "kind": "mptcp" } },
        { "transport": { "kind": "mmptcp" } },
    ]);
    vec![
        ("MPTCP", json!({ "transport": kind("mptcp") })),
        ("MMPTCP by volume", json!({ "transport": kind("mmptcp") })),
        ("MMPTCP by congestion", json!({ "transport": by_congestion })),
        ("mixed", json!({ "transport": { "kind": "mixed", "parts": parts } })),
    ]
}

fn balanced() -> Sections {
    let selective = json!({ "kind": "selective-red", "form": "two-queues", "weight": 0.02 });
    let eager =
        |detect: &str| json!({ "kind": "tinyflow", "detect": detect, "sample_every": "20KB" });
    let adaptive = || robust(kind("adaptive"));
    let ecmp = |parameters| json!({ "balance": with(kind("ecmp"), parameters) });
    vec![
        ("SRED, sprayed", json!({ "queue": selective, "balance": kind("spray") })),
        ("flowlets, split", json!({ "balance": kind("flowlet"), "replicate": kind("split") })),
        ("DRILL", json!({ "transport": adaptive(), "balance": kind("drill") })),
        (
            "DRILL, undivided",
            json!({ "transport": adaptive(), "balance": { "kind": "drill", "components": false } }),
        ),
        (
            "DRILL on pFabric",
            json!({ "transport": kind("pfabric"), "queue": kind("pfabric"), "balance": kind("drill") }),
        ),
        ("CONGA", json!({ "transport": adaptive(), "balance": kind("conga") })),
        (
            "CONGA on pFabric",
            json!({ "transport": kind("pfabric"), "queue": kind("pfabric"), "balance": kind("conga") }),
        ),
        (
            "CONGA on NDP",
            json!({ "transport": kind("ndp"), "queue": kind("trimming"), "balance": kind("conga") }),
        ),
        ("hedged", json!({ "replicate": kind("hedge") })),
        ("ECMP by remainders", ecmp(json!({ "spread": "modulo" }))),
        ("ECMP with fixed salts", ecmp(json!({ "salt": "fixed" }))),
        ("ECMP without salts", ecmp(json!({ "salt": "none" }))),
        ("ECMP by buckets", ecmp(json!({ "spread": "resilient", "buckets": 64 }))),
        (
            "ECMP by buckets that return",
            ecmp(json!({ "spread": "resilient", "idle_timer": "1ms" })),
        ),
        ("TinyFlow by samples", json!({ "balance": eager("random-skip") })),
        ("TinyFlow by polling", json!({ "balance": eager("polled-counters") })),
        ("by tier", json!({ "balance": kind("by-tier") })),
    ]
}

/// TinyFlow's other ways to find elephants, and parameters of balancers and replication besides
/// kinds.
fn detected() -> Sections {
    let eager = |detect: &str, sample: &str| json!({ "balance": { "kind": "tinyflow", "detect": detect, "sample_every": sample } });
    let tuple = json!({ "kind": "tinyflow", "sample_every": "20KB", "reroute": "five-tuple" });
    let mixed = json!({
        "kind": "by-tier", "core": kind("drill"), "switches": { "edge0": kind("round-robin") },
    });
    vec![
        ("TinyFlow by samples of switches", eager("random-skip-switch", "20KB")),
        ("TinyFlow by exact samples", eager("exact-port", "20KB")),
        ("TinyFlow by exact samples of switches", eager("exact-switch", "20KB")),
        ("TinyFlow by hosts", eager("host-marked", "100KB")),
        ("TinyFlow of five-tuples", json!({ "balance": tuple })),
        ("by tier, one switch apart", json!({ "balance": mixed })),
        (
            "RepFlow, losers finish",
            json!({ "replicate": { "kind": "repflow", "loser": "finish" } }),
        ),
        ("hedged after 2 ms", json!({ "replicate": { "kind": "hedge", "delay": "2ms" } })),
    ]
}

/// TCP's kinds and words, one by one.
fn senders() -> Sections {
    let short = json!({ "kind": "drop-tail", "limit": "40packets" });
    let unprobed =
        json!({ "kind": "rack", "tail_loss_probe": false, "f_rto": false, "undo": false });
    let kept = json!({ "kind": "adaptive", "undo": false });
    let aggressive = json!({ "kind": "ncr", "variant": "aggressive" });
    let other_cubic = |hystart: &str| {
        let cubic = json!({
            "kind": "cubic", "fast_convergence": false, "tcp_friendly": false, "hystart": hystart,
        });
        // A window that ends slow start before HyStart acts would show nothing of it.
        tcp(json!({ "congestion": cubic, "receive_window": "1MB" }))
    };
    let plain_bbr = json!({ "kind": "bbr", "aggregation": false, "policers": false });
    let otherwise =
        json!({ "limited_transmit": false, "mss_option": false, "initial_ssthresh": "20packets" });
    let of_its_own =
        json!({ "reduction_base": "pipe", "window_growth": "delivered", "close": "none" });
    let subflows = with(otherwise.clone(), json!({ "timestamps": true }));
    let by_rr_tcp = json!({ "recovery": "sack-prr", "reordering": { "kind": "rr-tcp" } });
    let parts = json!([
        { "transport": { "kind": "tcp" }, "up_to": "100KB" },
        { "transport": { "kind": "mptcp" }, "above": "100KB" },
        { "transport": { "kind": "tcp", "congestion": { "kind": "cubic" } }, "above": "100KB" },
    ]);
    vec![
        ("Swift", json!({ "transport": congestion("swift") })),
        ("RACK-TLP", json!({ "transport": robust(kind("rack")), "queue": short })),
        (
            "RACK-TLP, sprayed",
            json!({ "transport": robust(kind("rack")), "balance": kind("spray") }),
        ),
        ("RACK alone, sprayed", json!({ "transport": robust(unprobed), "balance": kind("spray") })),
        (
            "adaptive without undo, sprayed",
            json!({ "transport": robust(kept), "balance": kind("spray") }),
        ),
        (
            "NCR that sends more, sprayed",
            json!({ "transport": robust(aggressive), "balance": kind("spray") }),
        ),
        (
            "hosts as Linux",
            json!({ "transport": tcp(json!({ "hosts": "linux" })), "queue": short }),
        ),
        ("delayed ACKs", json!({ "transport": tcp(json!({ "ack_every": 2, "quick_acks": 4 })) })),
        ("CUBIC otherwise", json!({ "transport": other_cubic("none") })),
        ("CUBIC with Linux's HyStart", json!({ "transport": other_cubic("linux") })),
        ("BBR otherwise", json!({ "transport": tcp(json!({ "congestion": plain_bbr })) })),
        ("TCP otherwise", json!({ "transport": tcp(with(otherwise, of_its_own)), "queue": short })),
        (
            "TCP as in ns-3",
            json!({ "transport": tcp(json!({ "recovery": "newreno", "imitate": "ns-3" })), "queue": short }),
        ),
        ("half as in ns-3", json!({ "transport": half_of_ns3(0), "queue": short })),
        ("as in ns-3 by the other half", json!({ "transport": half_of_ns3(1), "queue": short })),
        ("MPTCP otherwise", json!({ "transport": { "kind": "mptcp", "tcp": subflows } })),
        (
            "MMPTCP by RR-TCP",
            json!({ "transport": { "kind": "mmptcp", "dupack_threshold": "tcp", "tcp": by_rr_tcp } }),
        ),
        (
            "mixed by hosts",
            json!({ "transport": { "kind": "mixed", "by": "hosts", "parts": parts } }),
        ),
    ]
}

/// Policies by which hosts choose paths, while a link loses half of its packets.
fn entropies() -> Sections {
    let faulty = json!({ "incidents": [
        { "kind": "loss", "link": "s0>s8", "probability": 0.5, "at": "5ms", "until": "50ms" },
    ]});
    let dctcp = |entropy: Value| {
        let robust = robust(kind("rack"));
        let entropy = json!({ "congestion": { "kind": "dctcp" }, "entropy": entropy });
        json!({ "transport": with(robust, entropy), "queue": kind("ecn"), "faults": faulty })
    };
    let reps = |more: Value| dctcp(with(kind("reps"), more));
    let public_simulator = json!({
        "values": 64, "frozen": "in-turn", "thaw": { "kind": "clear" },
        "failure": { "kind": "timeout" }, "freeze": "2ms",
    });
    let never = json!({ "thaw": { "kind": "explore", "packets": 20 }, "failure": kind("never"), "uses": 2 });
    let quiet =
        json!({ "kind": "quiet-timeout", "most": 100.0, "within": "20ms", "base_rtt": "300us" });
    let penalties = json!({ "kind": "bitmap", "penalties": { "unknown": "first" } });
    let clock = |more: Value| {
        let rounds = with(kind("clock"), more);
        dctcp(json!({ "kind": "plb", "rounds": rounds, "rehash_rounds": 2, "cong_thresh": 64 }))
    };
    vec![
        ("random ports", dctcp(kind("random"))),
        ("oblivious", dctcp(kind("oblivious"))),
        ("bitmap", dctcp(kind("bitmap"))),
        ("bitmap that punishes the first value", dctcp(penalties)),
        ("REPS", reps(json!({}))),
        ("REPS as in the public simulator", reps(public_simulator)),
        ("REPS that never freezes", reps(never)),
        (
            "REPS after low round-trip times",
            reps(json!({ "failure": kind("quiet-timeout"), "ring": 4 })),
        ),
        ("REPS after low round-trip times, given", reps(json!({ "failure": quiet }))),
        ("mixed ports", dctcp(kind("mixed"))),
        ("PLB", dctcp(with(kind("plb"), json!({ "rehash_rounds": 2 })))),
        ("PLB by the clock", clock(json!({}))),
        ("PLB by a given clock", clock(json!({ "length": "500us", "timeout_gap": "1ms" }))),
    ]
}

/// Queues, and the buffers of switches and hosts.
fn queues() -> Sections {
    let ecn = || tcp(json!({ "ecn": true }));
    let at_hosts = |kind: &str, hosts: bool| json!({ "kind": kind, "hosts": hosts });
    let red = json!({ "kind": "red", "weight": 0.02 });
    let selective = json!({ "kind": "selective-red", "weight": 0.02, "mark_acks": false });
    let roomy = json!({ "kind": "drop-tail", "limit": "200KB" });
    let trims = json!({
        "kind": "trimming", "limit": "20packets", "returns": false,
        "marking": { "low": "4packets", "high": "15packets" },
    });
    let spraying =
        |entropy: Value| json!({ "transport": uet(json!({ "entropy": entropy })), "queue": trims });
    vec![
        ("classic ECN", json!({ "transport": ecn(), "queue": kind("ecn") })),
        (
            "DCTCP, marked by hosts too",
            json!({ "transport": congestion("dctcp"), "queue": at_hosts("ecn", true) }),
        ),
        ("RED that drops", json!({ "queue": red })),
        ("SRED in one queue, sprayed", json!({ "queue": selective, "balance": kind("spray") })),
        ("DRR", json!({ "queue": kind("drr") })),
        ("DRR at hosts too", json!({ "queue": at_hosts("drr", true) })),
        (
            "pFabric in switches alone",
            json!({ "transport": kind("pfabric"), "queue": at_hosts("pfabric", false) }),
        ),
        (
            "NDP, trimmed by switches alone",
            json!({
                "transport": with(kind("ndp"), json!({ "rto": "2ms" })),
                "queue": with(at_hosts("trimming", false), json!({ "header_limit": "1KB" })),
            }),
        ),
        (
            "NDP, followed by marks and rates",
            json!({
                "transport": kind("ndp"),
                "queue": with(kind("trimming"), json!({
                    "host_ratio": 3, "returns": false, "follows_rate": true,
                    "marking": { "low": "2packets", "high": "6packets", "last_hop": false },
                })),
            }),
        ),
        ("UET, NSCC", json!({ "transport": uet(json!({})), "queue": trims })),
        (
            "UET, RCCC",
            json!({
                "transport": uet(json!({ "control": "rccc", "max_window": "60KB" })),
                "queue": trims,
            }),
        ),
        (
            "UET, RCCC, oversubscribed",
            json!({
                "transport": uet(json!({
                    "control": "rccc", "max_window": "60KB", "oversubscription": 2.0,
                })),
                "queue": trims,
            }),
        ),
        (
            "UET, both",
            json!({
                "transport": uet(json!({
                    "control": "both", "initial_window": "30KB", "target_delay": "50us",
                    "rto": "1ms", "ack_threshold": "1B",
                    "entropy": with(kind("oblivious"), json!({ "values": 32 })),
                })),
                "queue": trims,
            }),
        ),
        ("UET, random", spraying(kind("random"))),
        (
            "UET, bitmap",
            spraying(with(kind("bitmap"), json!({ "penalties": { "unknown": "first" } }))),
        ),
        ("UET, REPS", spraying(kind("reps"))),
        (
            "UET, REPS as the public simulator",
            spraying(with(
                kind("reps"),
                json!({
                    "values": 64, "frozen": "in-turn", "thaw": kind("clear"), "failure": kind("timeout"),
                }),
            )),
        ),
        (
            "UET, REPS that never freezes",
            spraying(with(
                kind("reps"),
                json!({
                    "ring": 3, "thaw": { "kind": "explore", "packets": 9 }, "failure": kind("never"),
                }),
            )),
        ),
        (
            "UET, REPS over quiet timeouts",
            spraying(with(kind("reps"), json!({ "values": 16, "failure": kind("quiet-timeout") }))),
        ),
        (
            "UET, REPS over timeouts as quiet as said",
            spraying(with(
                kind("reps"),
                json!({
                    "values": 8,
                    "failure": { "kind": "quiet-timeout", "within": "3ms", "base_rtt": "80us" },
                }),
            )),
        ),
        ("UET, PLB", spraying(kind("plb"))),
        (
            "UET, PLB by the clock",
            spraying(with(kind("plb"), json!({ "rehash_rounds": 2, "rounds": kind("clock") }))),
        ),
        (
            "UET, PLB by a clock as long as said",
            spraying(with(
                kind("plb"),
                json!({
                    "rehash_rounds": 1, "cong_thresh": 20,
                    "rounds": { "kind": "clock", "length": "150us", "timeout_gap": "900us" },
                }),
            )),
        ),
        ("PFC", json!({ "queue": roomy, "switch": { "pfc": {} } })),
        ("shared memory", json!({ "queue": roomy, "switch": { "shared_buffer": "100KB" } })),
        ("hosts that drop", json!({ "host": { "nic_queue": "20packets" } })),
    ]
}

/// Failures of every kind: temporary, permanent, and inactive.
fn broken() -> Sections {
    let all = [
        json!({ "kind": "link-down", "link": "s0>s8", "at": "20ms" }),
        json!({ "kind": "switch-down", "switch": "s11", "at": "10ms" }),
        json!({ "kind": "rate", "link": "s4>s12", "rate": "100Mbps", "at": "15ms" }),
        json!({ "kind": "loss", "link": "s13>s18", "probability": 0.01, "at": "0ms" }),
        json!({ "kind": "delay", "link": "s14>s16", "extra": "200us", "at": "5ms" }),
    ];
    let one_way = |incident: &Value| match incident["kind"].as_str() {
        Some("link-down" | "switch-down") => incident.clone(),
        _ => with(incident.clone(), json!({ "one_way": true })),
    };
    let passing: Vec<Value> =
        all.iter().map(|one| with(one_way(one), json!({ "until": "45ms" }))).collect();
    let early = [with(all[0].clone(), json!({ "at": "0ms" }))];
    let called_off = json!({ "active": false, "incidents": [passing[0]] });
    vec![
        ("failures for a while", json!({ "faults": { "incidents": passing } })),
        ("failures for good", json!({ "faults": { "incidents": all } })),
        (
            "failures that routing learns of late",
            json!({ "faults": { "known_at_start": false, "reconvergence": "5ms", "incidents": early } }),
        ),
        ("a failure called off", json!({ "faults": called_off })),
    ]
}

/// Returns every network and every traffic pattern, with TCP.
pub fn networks() -> Vec<Row> {
    let horizon = json!({ "arrivals": "20ms", "drain": "20ms" });
    let rows = [open(), closed(), sizes(), interfaces::several()];
    let row = |(name, sections): (&str, Value)| {
        (name.to_owned(), asked(&with(json!({ "horizon": horizon }), sections)))
    };
    rows.into_iter().flatten().map(row).collect()
}

/// Traffic whose flows start at given times.
fn open() -> Sections {
    let mix = |parts: Value| json!({ "kind": "mix", "parts": parts });
    let permuted = json!([
        { "kind": "permutation", "sizes": "endless" },
        { "kind": "permutation", "sizes": "200KB" },
    ]);
    let paired = json!([
        { "kind": "poisson", "load": 0.1, "sizes": "100KB", "pairs": "inter-rack", "gaps": "uniform" },
        { "kind": "poisson", "load": 0.1, "sizes": "100KB", "pairs": "inter-pod", "gaps": "constant" },
        { "kind": "poisson", "load": 0.1, "sizes": "100KB", "pairs": "permutation", "load_of": "bisection" },
    ]);
    let incasts = json!([
        { "kind": "incast", "receiver": 3, "rounds": 2, "fan_in": 5 },
        { "kind": "incast", "jitter": "100us", "fan_in": 5 },
    ]);
    let pings = json!([
        { "kind": "pings", "count": 20 },
        { "kind": "pings", "from": 0, "to": 1, "count": 20, "gap": "50us" },
    ]);
    let written = json!({ "kind": "trace", "flows": [
        { "src": 0, "dst": 9, "bytes": "200KB", "id": 40 },
        { "src": 1, "dst": 9, "bytes": "30KB", "start": "1ms" },
    ]});
    let read = |file: &str| json!({ "kind": "trace", "file": file });
    let columns = json!({ "columns": ["src", "dst", "bytes", "start_ms"] });
    let spots = json!({ "kind": "hot-spots", "hot": 2, "share": 0.3, "sizes": "100KB" });
    let long = json!({ "kind": "long-and-short", "long": "2MB", "short_flows_per_second": 2000.0 });
    vec![
        (
            "dumbbell, permutation",
            json!({ "topology": { "kind": "dumbbell", "bottleneck_queue": "20packets" }, "traffic": mix(permuted.clone()) }),
        ),
        ("dumbbell, hot spots", json!({ "topology": kind("dumbbell"), "traffic": spots })),
        ("fat-tree, pairs and gaps", json!({ "traffic": mix(paired) })),
        ("star, incast", json!({ "topology": kind("star"), "traffic": mix(incasts) })),
        ("chain, pings", json!({ "topology": kind("chain"), "traffic": mix(pings) })),
        (
            "chain, a short trunk queue",
            json!({ "topology": { "kind": "chain", "trunk_queue": "5packets" }, "traffic": mix(permuted) }),
        ),
        (
            "graph from a file, trace",
            json!({ "topology": { "kind": "node-link", "file": "fabric.json" }, "traffic": written }),
        ),
        ("trace from a file", json!({ "traffic": read("flows.csv") })),
        ("trace with columns named", json!({ "traffic": with(read("named.csv"), columns) })),
        (
            "parallel paths, long and short",
            json!({ "topology": kind("parallel-paths"), "traffic": long }),
        ),
        (
            "paths of two rates, shares by rate",
            json!({ "topology": { "kind": "parallel-paths", "path_rates": ["1Gbps", "200Mbps"] }, "traffic": long,
                "balance": { "kind": "ecmp", "weights": "rate" } }),
        ),
    ]
}

/// Traffic whose flows wait for others.
fn closed() -> Sections {
    let asks = json!({ "kind": "mix", "parts": [
        { "kind": "partition-aggregate", "queries_per_second": 500.0 },
        { "kind": "partition-aggregate", "queries_per_second": 500.0, "aggregator": 2 },
    ]});
    let transfers = |destinations: &str| {
        json!({
            "kind": "transfers", "bytes": "1MB", "sizes": "300KB", "destinations": destinations,
        })
    };
    let shuffle = json!({ "kind": "shuffle", "bytes": "8MB" });
    let sort = json!({ "kind": "bucket-sort", "numbers": 2000, "hosts": [0, 1, 5, 9] });
    vec![
        ("leaf-spine, queries", json!({ "topology": kind("leaf-spine"), "traffic": asks })),
        ("transfers of flows", json!({ "traffic": transfers("per-flow") })),
        ("transfers of clients", json!({ "traffic": transfers("per-client") })),
        ("shuffle", json!({ "traffic": shuffle })),
        ("bucket sort", json!({ "traffic": sort })),
        ("graph", json!({ "traffic": { "kind": "graph", "file": "job.csv" } })),
        (
            "graph, acknowledged",
            json!({ "traffic": { "kind": "graph", "file": "job.csv", "over": "acknowledged" } }),
        ),
        ("graph, in order", json!({ "traffic": { "kind": "graph", "file": "ordered.csv" } })),
        ("ring", json!({ "traffic": collective("all-reduce", "ring", json!({"slices": 2})) })),
        (
            "ring, gathered and scattered",
            json!({ "traffic": { "kind": "mix", "parts": [
                collective("all-gather", "ring", json!({"hosts": [0, 5, 2, 9]})),
                collective("reduce-scatter", "ring", json!({"jobs": 2, "placement": "scattered"})),
            ]}}),
        ),
        (
            "halving and doubling",
            json!({ "traffic": collective("all-reduce", "halving-doubling", json!({"ranks": 6})) }),
        ),
        (
            "two trees, in turn",
            json!({ "traffic": collective("all-reduce", "double-tree", json!({
                "slices": 4, "jobs": 2, "placement": "round-robin", "repeat": 2, "compute": "10us",
            }))}),
        ),
        (
            "all to all, pairwise",
            json!({ "traffic": collective("all-to-all", "pairwise", json!({"start": "20us"})) }),
        ),
        (
            "experts",
            json!({ "traffic": collective("mixture-of-experts", "direct", json!({"skew": 1.1})) }),
        ),
    ]
}

fn collective(operation: &str, algorithm: &str, more: Value) -> Value {
    let whole = json!({
        "kind": "collective", "operation": operation, "algorithm": algorithm, "bytes": "400KB",
    });
    with(whole, more)
}

/// Every way to specify flow sizes.
fn sizes() -> Sections {
    let several = |sizes: Vec<Value>| {
        let load = 0.6 / sizes.len() as f64;
        let one = |sizes: Value| json!({ "kind": "poisson", "sizes": sizes, "load": load });
        let parts: Vec<Value> = sizes.into_iter().map(one).collect();
        json!({ "traffic": { "kind": "mix", "parts": parts } })
    };
    let file = |unit: &str| json!({ "kind": "file", "file": "sizes.txt", "unit": unit });
    let described = vec![
        json!({ "kind": "uniform", "min": "1KB", "max": "100KB" }),
        json!({ "kind": "exponential", "mean": "50KB" }),
        json!({ "kind": "bounded-pareto", "min": "1KB", "max": "1MB", "shape": 1.2 }),
        file("KB"),
        file("packets"),
    ];
    let bytes = vec![file("bytes")];
    let few = json!({ "horizon": { "arrivals": "20us", "drain": "5ms" } });
    vec![
        ("every workload", several(BUILTIN.iter().map(|table| table.name.into()).collect())),
        ("sizes described", several(described)),
        ("sizes of a few bytes", with(several(bytes), few)),
    ]
}
