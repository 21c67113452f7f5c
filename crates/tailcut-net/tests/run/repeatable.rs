//! The same scenario gives the same results: in every build, under every scheme's flows.

use std::ops::ControlFlow;

use serde_json::{json, Value};
use tailcut_engine::Time;
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::Unobserved;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::replicate::repsyn::RepSyn;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Progress, Scenario};
use tailcut_net::simulate_watched;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::PortId;
use tailcut_net::traffic::poisson::Poisson;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::tcp::Recovery;
use tailcut_net::watch::{Sight, Watch};

use crate::support::{limit_queues, run, scenario, tcp};

/// Web search on a small fat-tree, with losses.
fn web_search(replicate: ReplicateSpec) -> Scenario {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let horizon = Horizon { arrivals: Time::from_ms(60), drain: Time::from_ms(100) };
    let traffic = TrafficSpec::Poisson(Poisson { load: 0.6, ..Poisson::default() });
    let no_files = |path: &str| -> std::io::Result<Vec<u8>> { panic!("reads no file: {path}") };
    let demand = traffic.generate(&graph, &horizon, 7, &no_files).expect("the traffic is valid");
    let flows = demand.flows;
    let mut scenario = scenario(graph, flows);
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(40)));
    (scenario.horizon, scenario.scheme.replicate) = (horizon, replicate);
    scenario
}

/// Web search under a scheme, written as in an experiment, with one uplink down for a while.
fn under(scheme: Value) -> Scenario {
    let mut scenario = web_search(ReplicateSpec::None);
    scenario.scheme = serde_json::from_value(scheme).expect("it is a scheme");
    let checks = [
        scenario.scheme.check_marks(),
        scenario.scheme.check_priorities(),
        scenario.scheme.check_replication(),
    ];
    assert!(checks.iter().all(Result::is_ok), "{checks:?}");
    scenario.faults.incidents.push(Incident::LinkDown {
        link: "s0>s8".into(),
        at: Time::from_ms(20),
        until: Some(Time::from_ms(50)),
    });
    scenario
}

fn schemes() -> Vec<(String, Scenario)> {
    let replicated = [
        ("TCP", ReplicateSpec::None),
        ("RepFlow", ReplicateSpec::Repflow(RepFlow::default())),
        ("RepSYN", ReplicateSpec::Repsyn(RepSyn::default())),
    ];
    let mut all = vec![];
    for (name, replicate) in replicated {
        for recovery in [Recovery::Newreno, Recovery::SackPrr] {
            let mut scenario = web_search(replicate.clone());
            tcp(&mut scenario).recovery = recovery;
            all.push((format!("{name} {recovery:?}"), scenario));
        }
    }
    let kind = |kind: &str| json!({ "kind": kind });
    let congestion = |kind: &str| json!({ "kind": "tcp", "congestion": { "kind": kind } });
    let robust = |kind: &str| json!({ "kind": "tcp", "recovery": "sack-prr", "timestamps": true, "reordering": { "kind": kind } });
    let by_congestion = json!({ "kind": "mmptcp", "switch": { "kind": "congestion" } });
    let parts = json!([
        { "transport": { "kind": "tcp" } },
        { "transport": { "kind": "mptcp" } },
        { "transport": { "kind": "mmptcp" } },
    ]);
    let red = json!({ "kind": "red", "mark": true, "weight": 0.02 });
    let selective = json!({ "kind": "selective-red", "form": "two-queues", "weight": 0.02 });
    let eager =
        |detect: &str| json!({ "kind": "tinyflow", "detect": detect, "sample_every": "20KB" });
    let copied = json!({ "kind": "repflow" });
    let others = [
        ("CUBIC", json!({ "transport": congestion("cubic") })),
        ("BBR", json!({ "transport": congestion("bbr") })),
        ("DCTCP", json!({ "transport": congestion("dctcp"), "queue": kind("ecn") })),
        (
            "RepFlow on DCTCP",
            json!({ "transport": congestion("dctcp"), "queue": red, "replicate": copied }),
        ),
        ("adaptive, sprayed", json!({ "transport": robust("adaptive"), "balance": kind("spray") })),
        ("RR-TCP, sprayed", json!({ "transport": robust("rr-tcp"), "balance": kind("spray") })),
        ("NCR, round robin", json!({ "transport": robust("ncr"), "balance": kind("round-robin") })),
        ("pFabric", json!({ "transport": kind("pfabric"), "queue": kind("pfabric") })),
        (
            "NDP, sprayed",
            json!({ "transport": kind("ndp"), "queue": kind("trimming"), "balance": kind("spray") }),
        ),
        ("MPTCP", json!({ "transport": kind("mptcp") })),
        ("MMPTCP by volume", json!({ "transport": kind("mmptcp") })),
        ("MMPTCP by congestion", json!({ "transport": by_congestion })),
        ("mixed", json!({ "transport": { "kind": "mixed", "parts": parts } })),
        ("SRED, sprayed", json!({ "queue": selective, "balance": kind("spray") })),
        ("flowlets, split", json!({ "balance": kind("flowlet"), "replicate": kind("split") })),
        ("DRILL", json!({ "transport": robust("adaptive"), "balance": kind("drill") })),
        (
            "DRILL, undivided",
            json!({ "transport": robust("adaptive"), "balance": { "kind": "drill", "components": false } }),
        ),
        (
            "DRILL on pFabric",
            json!({ "transport": kind("pfabric"), "queue": kind("pfabric"), "balance": kind("drill") }),
        ),
        ("CONGA", json!({ "transport": robust("adaptive"), "balance": kind("conga") })),
        (
            "CONGA on pFabric",
            json!({ "transport": kind("pfabric"), "queue": kind("pfabric"), "balance": kind("conga") }),
        ),
        (
            "CONGA on NDP",
            json!({ "transport": kind("ndp"), "queue": kind("trimming"), "balance": kind("conga") }),
        ),
        ("hedged", json!({ "replicate": kind("hedge") })),
        ("TinyFlow by samples", json!({ "balance": eager("random-skip") })),
        ("TinyFlow by polling", json!({ "balance": eager("polled-counters") })),
        ("by tier", json!({ "balance": kind("by-tier") })),
    ];
    all.extend(others.map(|(name, scheme)| (name.to_owned(), under(scheme))));
    all
}

/// FNV-1a.
fn digest(words: &[u64]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// The ideal times, which nothing that happens depends on.
fn ideals(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().flat_map(|flow| [flow.ideal_fct.0, flow.ideal_fct_ack.0]).collect()
}

/// Every other integer of an outcome; rates and shares, which follow from them, stay out.
fn integers(outcome: &Outcome) -> Vec<u64> {
    let time = |time: Option<Time>| time.map_or(u64::MAX, |time| time.0);
    let mut words = vec![];
    for flow in &outcome.flows {
        words.extend([flow.flow.id, flow.flow.bytes, flow.flow.start.0]);
        words.extend([time(flow.connect), time(flow.fct), time(flow.fct_ack)]);
        words.extend([flow.data_packets, flow.retransmissions]);
        words.extend([flow.timeouts, flow.fast_recoveries].map(u64::from));
        words.push(flow.winner.map_or(u64::MAX, u64::from));
        words.push(flow.shared_hops.map_or(u64::MAX, u64::from));
    }
    for tier in &outcome.tiers {
        words.extend([tier.packets, tier.wire_bytes, tier.drops, u64::from(tier.max_queue)]);
    }
    let counters = &outcome.counters;
    words.extend([
        counters.events,
        counters.packet_hops,
        counters.sent,
        counters.delivered,
        counters.dropped,
    ]);
    words
}

/// The stored digests hold in every build profile. Where behaviour changes on purpose, `INSTA_UPDATE=always`
/// stores the new ones.
#[test]
fn outcomes_are_the_same_in_every_build() {
    let mut lines = String::new();
    for (name, scenario) in schemes() {
        let outcome = run(&scenario);
        let (hops, dropped) = (outcome.counters.packet_hops, outcome.counters.dropped);
        let (digest, ideal) = (digest(&integers(&outcome)), digest(&ideals(&outcome)));
        lines += &format!(
            "{name}: {hops} hops, {dropped} drops, digest {digest:016x}, of ideal times {ideal:016x}\n"
        );
    }
    insta::assert_snapshot!("outcomes", lines);
}

/// Looks at everything every 50 events.
#[derive(Default)]
struct Close {
    looks: u64,
    longest: u32,
    finished: u64,
}

impl Watch for Close {
    fn every(&self) -> u64 {
        50
    }

    fn look(&mut self, progress: &Progress, run: &mut dyn Sight) -> ControlFlow<()> {
        self.looks += 1;
        assert_eq!(progress.events, 50 * self.looks);
        self.longest = (0..PORTS).map(|port| run.queue(PortId(port))).fold(self.longest, u32::max);
        let over = (0..run.flows()).filter(|&index| run.flow(index).fct.is_some()).count() as u64;
        assert_eq!(over, progress.finished_flows);
        assert!(over >= self.finished, "a flow stays finished");
        self.finished = over;
        ControlFlow::Continue(())
    }
}

/// Directed links of a fat-tree of 4-port switches.
const PORTS: u32 = 96;

#[test]
fn a_run_that_is_watched_closely_yields_the_same() {
    for (name, scenario) in schemes() {
        let mut close = Close::default();
        let watched = simulate_watched(&scenario, Unobserved, &mut close).expect("it is valid").0;
        assert_eq!(watched, run(&scenario), "{name}");
        assert_eq!(close.looks, watched.counters.events / 50);
        assert!(close.longest > 10 && close.finished > 20, "{name}: there was something to see");
    }
}

#[test]
fn every_scheme_carries_the_same_flows() {
    let carried = |scenario: &Scenario| -> Vec<_> {
        let outcome = run(scenario);
        outcome.flows.iter().map(|record| (record.flow, record.hops)).collect()
    };
    let schemes = schemes();
    let plain = carried(&schemes[0].1);
    assert!(plain.len() > 20, "there is something to compare");
    for (name, scenario) in &schemes[1..] {
        assert_eq!(carried(scenario), plain, "{name}");
    }
    // What a lone flow would take is a matter of its transport, and of nothing that copies.
    let ideal = |scenario: &Scenario| -> Vec<_> {
        run(scenario).flows.iter().map(|record| record.ideal_fct).collect()
    };
    let tcp = ideal(&schemes[0].1);
    assert!([2, 4].iter().all(|&replicated: &usize| ideal(&schemes[replicated].1) == tcp));
}
