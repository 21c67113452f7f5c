//! Flow control by pause frames: nothing is dropped if buffers have room beyond the thresholds, and
//! other flows pay for it.

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::measure::records::Outcome;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::ecn::Ecn;
use tailcut_net::scenario::Scenario;
use tailcut_net::switch::pfc::Pfc;
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::topology::star::Star;
use tailcut_net::topology::{Graph, Link, NodeId};
use tailcut_net::transport::tcp::CongestionSpec;
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;

use crate::run::support::{flow, limit_queues, run, scenario, tcp};

fn limit(scenario: &mut Scenario, bytes: u64) {
    limit_queues(scenario, Limit::AtMost(Amount::Bytes(bytes)));
}

fn pause(scenario: &mut Scenario) {
    scenario.switch.pfc = Some(Pfc::default());
}

fn further(outcome: &Outcome, name: &str) -> u64 {
    outcome.counters.further(name).expect("flow control tells")
}

/// Returns 16 hosts that send 300 KB each to one, by TCP with a window for all of it.
fn incast() -> Scenario {
    let graph = Star { hosts: 17, ..Star::default() }.build().expect("hosts are enough");
    let flows = (0..16).map(|src| flow(src.into(), src, 16, 300_000, Time::ZERO)).collect();
    let mut scenario = scenario(graph, flows);
    tcp(&mut scenario).receive_window = Bytes(1_000_000);
    scenario
}

#[test]
fn with_headroom_for_packets_in_flight_pfc_drops_nothing() {
    // The threshold and the headroom of sixteen links.
    let room = 16 * (20_000 + 5_300);
    let mut plain = incast();
    limit(&mut plain, room);
    let dropped = run(&plain).counters.dropped;
    pause(&mut plain);
    let outcome = run(&plain);
    assert!(dropped > 100, "{dropped}");
    assert_eq!(outcome.counters.dropped, 0);
    assert!(further(&outcome, "pauses") > 16 && further(&outcome, "deadlocked_links") == 0);
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some() && flow.retransmissions == 0));
    // The link to the receiver never falls idle.
    let last = outcome.flows.iter().filter_map(|flow| flow.fct).max().expect("all finish");
    let busy = Time(16 * (205 * 1_538 + 778) * 8_000);
    assert!(last < busy + Time::from_us(200), "{last:?} {busy:?}");
}

#[test]
fn without_headroom_pfc_drops_packets_in_flight() {
    let mut scenario = incast();
    limit(&mut scenario, 16 * 20_000);
    pause(&mut scenario);
    let outcome = run(&scenario);
    assert!(further(&outcome, "pauses") > 0 && outcome.counters.dropped > 0);
}

/// Marks keep the queue below the thresholds once senders have reacted.
#[test]
fn senders_that_react_to_marks_are_paused_less() {
    let mut scenario = incast();
    scenario.switch.pfc = Some(Pfc::default());
    let paused = |scenario: &Scenario| {
        let outcome = run(scenario);
        assert_eq!(outcome.counters.dropped, 0);
        further(&outcome, "pauses")
    };
    let blind = paused(&scenario);
    tcp(&mut scenario).congestion = CongestionSpec::Dctcp(DctcpSpec::default());
    scenario.scheme.queue = QueueSpec::Ecn(Ecn { limit: Limit::Unlimited, ..Ecn::default() });
    let marked = paused(&scenario);
    assert!(2 * marked < blind, "{marked} and {blind}");
}

/// Four hosts overload a fifth behind a link that could carry them all; a flow beside them goes
/// elsewhere.
#[test]
fn pause_frames_delay_a_flow_that_meets_no_congestion() {
    let rate = OneOrEach::Each(DumbbellValues {
        host: Rate(1_000_000_000),
        bottleneck: Rate(10_000_000_000),
    });
    let graph = Dumbbell { pairs: 5, rate, ..Dumbbell::default() }.build().expect("it is one");
    let mut flows: Vec<_> =
        (0..4).map(|src| flow(src.into(), src, 5, 2_000_000, Time::ZERO)).collect();
    flows.push(flow(4, 4, 9, 500_000, Time::from_ms(5)));
    let mut scenario = scenario(graph, flows);
    tcp(&mut scenario).receive_window = Bytes(1_000_000);
    let victim = |scenario: &Scenario| {
        let record = &run(scenario).flows[4];
        record.fct.expect("it finishes").0 as f64 / record.ideal_fct.0 as f64
    };
    let alone = victim(&scenario);
    pause(&mut scenario);
    let beside = victim(&scenario);
    assert!(alone < 1.01 && beside > 2.0, "{alone} and {beside}");
}

/// Returns a ring of switches, each with a host that sends to the host two switches further, all in
/// one direction.
fn ring(switches: u32) -> Scenario {
    let link = |a, b| {
        let (a, b) = (NodeId(a), NodeId(b));
        let (rate, propagation) = (Rate(1_000_000_000), Time::from_us(2));
        Link::new(a, b, rate, propagation, 0)
    };
    let hosts = (0..switches).map(|at| link(at, switches + at));
    let around = (0..switches).map(|at| link(switches + at, switches + (at + 1) % switches));
    let graph = Graph {
        hosts: switches,
        switches,
        tiers: vec!["ring".into()],
        links: hosts.chain(around).collect(),
        ..Graph::default()
    };
    let flows = (0..switches)
        .map(|src| flow(src.into(), src, (src + 2) % switches, 3_000_000, Time::ZERO))
        .collect();
    let mut scenario = scenario(graph, flows);
    tcp(&mut scenario).receive_window = Bytes(1_000_000);
    scenario.horizon.drain = Time::from_ms(500);
    scenario
}

#[test]
fn counts_deadlocked_links() {
    let mut scenario = ring(5);
    assert!(run(&scenario).flows.iter().all(|flow| flow.fct.is_some()));
    pause(&mut scenario);
    let outcome = run(&scenario);
    assert!(further(&outcome, "deadlocked_links") >= 5, "{:?}", outcome.counters);
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_none()), "nobody gets on");
}
