//! Hosts with several interfaces: planes by flow and by packet, rails, and what fails of them.

use serde_json::{Value, json};
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::interface::{ByFlow, ByPacket, ByRail, InterfaceSpec};
use tailcut_net::measure::job_links::JobLinks;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::scenario::{Scenario, Scheme};
use tailcut_net::topology::{Graph, HostId};
use tailcut_net::traffic::Flow;

use crate::fabric::topologies::build;
use crate::run::support::{flow, run, run_observed, scenario, tcp};

const BY_PACKET: InterfaceSpec = InterfaceSpec::ByPacket(ByPacket { detection: None });
const BY_FLOW: InterfaceSpec = InterfaceSpec::ByFlow(ByFlow { detection: None });
const BY_RAIL: InterfaceSpec = InterfaceSpec::ByRail(ByRail {});

fn graph(spec: Value) -> Graph {
    build(spec).expect("the parameters are valid")
}

/// Returns planes that are stars of 400 Gbps, 1 us per link.
fn stars(planes: u32) -> Graph {
    graph(json!({"kind": "multi-plane", "planes": planes, "leaves": 1, "hosts_per_leaf": 4,
        "spines": 0}))
}

/// Returns TCP without loss: 4,096 B of payload and 64 B of headers in a packet.
fn plain(graph: Graph, flows: Vec<Flow>, interface: InterfaceSpec) -> Scenario {
    let mut scenario = scenario(graph, flows);
    scenario.host.framing_overhead = Bytes(24);
    scenario.scheme.interface = interface;
    let tcp = tcp(&mut scenario);
    (tcp.mss, tcp.receive_window) = (Bytes(4096), Bytes(1 << 30));
    scenario
}

fn large(src: u32, dst: u32) -> Flow {
    flow(0, src, dst, 10_000_000, Time::ZERO)
}

fn lone(scenario: &Scenario) -> FlowRecord {
    let outcome = run(scenario);
    assert_eq!(outcome.counters.dropped + outcome.counters.lost_on_links, 0);
    outcome.flows[0].clone()
}

fn took(record: &FlowRecord) -> Time {
    record.fct.expect("it ends")
}

#[test]
fn a_lone_flow_by_flow_takes_its_ideal_time() {
    for planes in [2, 3, 8] {
        let record = lone(&plain(stars(planes), vec![large(0, 1)], BY_FLOW));
        assert_eq!((record.fct, record.hops), (Some(record.ideal_fct), 2), "{planes} planes");
    }
}

/// 2,442 packets leave by both interfaces in turn: half of them one after another.
#[test]
fn a_lone_flow_by_packet_has_the_rate_of_all_planes() {
    let by_flow = took(&lone(&plain(stars(2), vec![large(0, 1)], BY_FLOW)));
    for planes in [2, 4] {
        let mut scenario = plain(stars(planes), vec![large(0, 1)], BY_PACKET);
        // Far more than the bandwidth-delay product, so that nothing waits for the window.
        tcp(&mut scenario).initial_window = tailcut_net::amount::Amount::Packets(4_000);
        let record = lone(&scenario);
        // A handshake of two packets of 76 B over two links, then the packets of one plane.
        let packets = 10_000_000u64.div_ceil(4_096).div_ceil(u64::from(planes));
        let full = Rate(400_000_000_000).transmission_time(4_160).0;
        let below = Time(packets * full);
        assert!(took(&record) >= record.ideal_fct && record.ideal_fct > below, "{record:?}");
        assert!(took(&record) < record.ideal_fct + Time(full), "{record:?}");
        // Handshake and delays, and a round trip after the first 64 KB: a SYN scales no window.
        let most = Time(4_006_080 + 2_083_200 + 4_170_000);
        assert!(took(&record) < below + most, "{record:?}");
        assert!(took(&record) < by_flow);
    }
}

/// Returns the planes over which host 0 sends packets of flow `id`.
fn sent_over(scenario: &Scenario, planes: u32, id: u64) -> Vec<u32> {
    let observer = JobLinks::new(&scenario.graph, vec![id]);
    let (_, observer) = run_observed(scenario, observer);
    let port = |plane: &u32| scenario.graph.plane_port(planes, HostId(0), *plane).index();
    let used = (0..planes).filter(|plane| observer.links()[port(plane)].packets > 0);
    used.collect()
}

#[test]
fn by_flow_both_planes_carry_flows_and_each_flow_one() {
    let flows: Vec<Flow> =
        (0..64).map(|id| flow(id, 0, 1, 40_000, Time::from_us(100 * id))).collect();
    let scenario = plain(stars(2), flows, BY_FLOW);
    let planes: Vec<Vec<u32>> = (0..64).map(|id| sent_over(&scenario, 2, id)).collect();
    assert!(planes.iter().all(|planes| planes.len() == 1), "{planes:?}");
    let first = planes.iter().filter(|planes| planes[0] == 0).count();
    assert!((16..=48).contains(&first), "{first} of 64 take plane 0");
    let outcome = run(&scenario);
    let (fastest, slowest) = outcome
        .flows
        .iter()
        .fold((Time::NEVER, Time::ZERO), |(a, b), f| (a.min(took(f)), b.max(took(f))));
    assert_eq!(fastest, slowest, "planes are alike");
    assert!(outcome.flows.iter().all(|f| f.fct == Some(f.ideal_fct)));
}

fn down(incident: Incident) -> FaultsSpec {
    FaultsSpec { incidents: vec![incident], known_at_start: false, ..FaultsSpec::default() }
}

/// A plane that is known to be down leaves half of the rate; until it is known, every second
/// packet is lost.
#[test]
fn senders_leave_a_failed_plane_when_they_know_of_it() {
    let carry = |known_at_start, detection| {
        let mut scenario =
            plain(stars(2), vec![large(0, 1)], InterfaceSpec::ByPacket(ByPacket { detection }));
        let at = Time::ZERO;
        let failed = Incident::PlaneDown { plane: 1, at, until: None };
        scenario.faults = FaultsSpec { known_at_start, ..down(failed) };
        let outcome = run(&scenario);
        (took(&outcome.flows[0]), outcome.counters.lost_on_links)
    };
    let one_plane = took(&lone(&plain(stars(2), vec![large(0, 1)], BY_FLOW)));
    assert_eq!(carry(true, None), (one_plane, 0), "as by one interface");
    let (sooner, few) = carry(false, Some(Time::from_us(500)));
    let (later, many) = carry(false, Some(Time::from_ms(500)));
    assert!(0 < few && few < many, "{few} and {many} packets are lost");
    assert!(one_plane < sooner && sooner < later);
}

/// Every sender leaves plane 0 for the host that lost its port there, and for no other.
#[test]
fn a_failed_interface_is_avoided_by_all_who_send_to_its_host() {
    let flows =
        || (0..32).map(|id| flow(id, 0, 1 + (id % 2) as u32, 40_000, Time::from_us(100 * id)));
    let mut scenario = plain(stars(2), flows().collect(), BY_FLOW);
    let (link, at) = ("h1>p0leaf0".to_owned(), Time::ZERO);
    scenario.faults =
        FaultsSpec { known_at_start: true, ..down(Incident::LinkDown { link, at, until: None }) };
    let outcome = run(&scenario);
    assert_eq!(outcome.counters.lost_on_links, 0);
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    // Not known before the end of the run: flows by plane 0 never end.
    scenario.scheme.interface =
        InterfaceSpec::ByFlow(ByFlow { detection: Some(Time::from_ms(10_000)) });
    scenario.faults.known_at_start = false;
    scenario.horizon.drain = Time::from_ms(500);
    let outcome = run(&scenario);
    let ended =
        |dst| outcome.flows.iter().filter(|f| f.flow.dst.0 == dst && f.fct.is_some()).count();
    assert_eq!(ended(2), 16);
    assert!((1..16).contains(&ended(1)), "{} of 16", ended(1));
}

#[test]
fn planes_come_back() {
    let mut scenario = plain(stars(2), vec![flow(0, 0, 1, 100_000_000, Time::ZERO)], BY_PACKET);
    let (at, until) = (Time::from_us(100), Some(Time::from_us(300)));
    scenario.faults = FaultsSpec {
        reconvergence: Time::from_us(50),
        ..down(Incident::PlaneDown { plane: 0, at, until })
    };
    let outcome = run(&scenario);
    assert!(outcome.counters.lost_on_links > 0 && outcome.flows[0].fct.is_some());
}

fn rails() -> Graph {
    graph(json!({"kind": "rail-optimised", "servers": 4, "rails": 2, "internal_rate": "3200Gbps",
        "internal_propagation": "500ns"}))
}

/// Links crossed by each kind of flow: hosts 0 and 1 are server 0, hosts 6 and 7 server 3.
#[test]
fn rails_change_at_the_spine_or_inside_the_server() {
    for (interface, dst, hops) in [
        (BY_FLOW, 6, 2),
        (BY_FLOW, 7, 4),
        (BY_FLOW, 1, 2),
        (BY_RAIL, 6, 2),
        (BY_RAIL, 7, 3),
        (BY_RAIL, 1, 2),
    ] {
        let record = lone(&plain(rails(), vec![large(0, dst)], interface.clone()));
        let found = (record.fct, record.hops);
        assert_eq!(found, (Some(record.ideal_fct), hops), "{interface:?} to {dst}");
    }
}

/// An internal link adds a hop, but saves two of the fabric, so that the spine carries nothing.
#[test]
fn by_rail_the_spine_carries_nothing() {
    let flows =
        || (0..8).map(|id| flow(id, id as u32, 7 - id as u32, 100_000, Time::ZERO)).collect();
    let spine = |interface| {
        let outcome = run(&plain(rails(), flows(), interface));
        assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
        let tiers = outcome.tiers.iter().filter(|tier| tier.tier == "spine");
        tiers.map(|tier| tier.packets).sum::<u64>()
    };
    assert!(spine(BY_FLOW) > 0);
    assert_eq!(spine(BY_RAIL), 0);
}

/// A relayed flow shares the interface of the accelerator on the receiver's rail.
#[test]
fn a_relayed_flow_shares_an_interface_with_its_owner() {
    // Hosts 0 and 1 send to hosts 3 and 5, both on rail 1.
    let both = vec![flow(0, 0, 3, 10_000_000, Time::ZERO), flow(1, 1, 5, 10_000_000, Time::ZERO)];
    let outcome = run(&plain(rails(), both, BY_RAIL));
    let last = outcome.flows.iter().map(took).max().expect("there are flows");
    // 2,441 full packets of each, of 83.2 ns.
    assert!(last > Time(2 * 2_441 * 83_200), "{last}");
}

#[test]
fn a_failed_rail_cuts_its_hosts_off_from_other_servers_only() {
    let flows = vec![
        flow(0, 0, 2, 10_000, Time::ZERO),
        flow(1, 1, 3, 10_000, Time::ZERO),
        flow(2, 1, 0, 10_000, Time::ZERO),
    ];
    let mut scenario = plain(rails(), flows, BY_RAIL);
    let failed = Incident::RailDown { rail: 1, at: Time::ZERO, until: None };
    scenario.faults = FaultsSpec { known_at_start: true, ..down(failed) };
    scenario.horizon.drain = Time::from_ms(500);
    let ended: Vec<bool> = run(&scenario).flows.iter().map(|flow| flow.fct.is_some()).collect();
    assert_eq!(ended, [true, false, true]);
}

#[test]
fn refuses_choices_and_failures_that_a_topology_does_not_have() {
    let star = || graph(json!({"kind": "star"}));
    for (graph, interface) in [
        (star(), BY_PACKET),
        (star(), BY_RAIL),
        (stars(2), BY_RAIL),
        (rails(), BY_PACKET),
        (rails(), InterfaceSpec::ByFlow(ByFlow { detection: Some(Time::from_us(1)) })),
    ] {
        let error = interface.check_topology(&graph).expect_err("no host has that choice");
        assert_eq!(error.code, "interface-topology", "{interface:?}");
    }
    for (graph, interface) in
        [(star(), BY_FLOW), (stars(2), BY_FLOW), (stars(2), BY_PACKET), (rails(), BY_RAIL)]
    {
        assert_eq!(interface.check_topology(&graph), Ok(()));
    }
    let late = InterfaceSpec::ByPacket(ByPacket { detection: Some(Time::from_ms(10_001)) });
    assert_eq!(late.check().expect_err("it is too late").code, "interface-detection");
    let at = Time::ZERO;
    let plane = |plane| down(Incident::PlaneDown { plane, at, until: None });
    let rail = |rail| down(Incident::RailDown { rail, at, until: None });
    let code = |faults: FaultsSpec, graph: &Graph| {
        faults.check_topology(graph).err().map(|error| error.code)
    };
    assert_eq!(code(plane(1), &stars(2)), None);
    assert_eq!(code(plane(2), &stars(2)), Some("fault-plane"));
    assert_eq!(code(plane(0), &rails()), Some("fault-plane"));
    assert_eq!(code(rail(1), &rails()), None);
    assert_eq!(code(rail(2), &rails()), Some("fault-rail"));
}

#[test]
fn refuses_balancers_that_need_one_link_per_host() {
    for (section, key, value) in [
        ("balance", "balance", "conga"),
        ("balance", "balance", "drill"),
        ("balance", "balance", "tinyflow"),
        ("balance", "balance", "by-tier"),
    ] {
        let scheme = json!({ key: { "kind": value } });
        let scheme: Scheme = serde_json::from_value(scheme).expect("it is a scheme");
        let (place, error) = scheme.check_interfaces(&stars(2)).expect_err("it is refused");
        assert_eq!((place, error.code), (section, "interface-single"), "{value}");
        assert_eq!(scheme.check_interfaces(&graph(json!({"kind": "star"}))), Ok(()));
    }
}
