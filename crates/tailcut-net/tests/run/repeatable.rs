//! The same scenario gives the same results: in every build, under every scheme's flows.

use tailcut_engine::Time;
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::replicate::repsyn::RepSyn;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Outcome, Scenario};
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::traffic::poisson::Poisson;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::tcp::Recovery;

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

fn schemes() -> [(&'static str, ReplicateSpec); 3] {
    [
        ("TCP", ReplicateSpec::None),
        ("RepFlow", ReplicateSpec::Repflow(RepFlow::default())),
        ("RepSYN", ReplicateSpec::Repsyn(RepSyn::default())),
    ]
}

/// FNV-1a over every integer of an outcome; rates and shares, which follow from them, stay out.
fn digest(outcome: &Outcome) -> u64 {
    let time = |time: Option<Time>| time.map_or(u64::MAX, |time| time.0);
    let mut words = vec![];
    for flow in &outcome.flows {
        words.extend([flow.flow.id, flow.flow.bytes, flow.flow.start.0, flow.ideal_fct.0]);
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
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// The stored digests hold in every build profile. Where behaviour changes on purpose, `INSTA_UPDATE=always`
/// stores the new ones.
#[test]
fn outcomes_are_the_same_in_every_build() {
    let mut lines = String::new();
    for (name, replicate) in schemes() {
        for recovery in [Recovery::Newreno, Recovery::SackPrr] {
            let mut scenario = web_search(replicate.clone());
            tcp(&mut scenario).recovery = recovery;
            let outcome = run(&scenario);
            let (hops, dropped) = (outcome.counters.packet_hops, outcome.counters.dropped);
            let digest = digest(&outcome);
            lines += &format!(
                "{name} {recovery:?}: {hops} hops, {dropped} drops, digest {digest:016x}\n"
            );
        }
    }
    insta::assert_snapshot!("outcomes", lines);
}

#[test]
fn every_scheme_carries_the_same_flows() {
    let flows = schemes().map(|(_, replicate)| {
        let outcome = run(&web_search(replicate));
        outcome
            .flows
            .iter()
            .map(|record| (record.flow, record.ideal_fct, record.hops))
            .collect::<Vec<_>>()
    });
    assert!(flows[0].len() > 20, "there is something to compare");
    assert_eq!(flows[0], flows[1]);
    assert_eq!(flows[0], flows[2]);
}
