//! Ultra Ethernet's transport and NDP over hosts with several interfaces, against closed forms:
//! planes that are stars of 400 Gbps, 1 us a link. A full packet of 4,160 B takes 83.2 ns.

use serde_json::json;
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::interface::{ByFlow, ByPacket, ByRail, InterfaceSpec};
use tailcut_net::measure::job_links::JobLinks;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::trimming::{Marking, Trimming};
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{Graph, HostId};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::ndp::NdpSpec;
use tailcut_net::transport::uet::{UetControl, UetSpec};

use crate::fabric::topologies::build;
use crate::run::support::{flow, run, run_observed, scenario};

const BY_PACKET: InterfaceSpec = InterfaceSpec::ByPacket(ByPacket { detection: None });
const BY_FLOW: InterfaceSpec = InterfaceSpec::ByFlow(ByFlow { detection: None });
const BY_RAIL: InterfaceSpec = InterfaceSpec::ByRail(ByRail {});

/// A full packet on one interface, in ps.
const FULL: u64 = 83_200;

fn stars(planes: u32) -> Graph {
    build(json!({"kind": "multi-plane", "planes": planes, "leaves": 1, "hosts_per_leaf": 8,
        "spines": 0}))
    .expect("the parameters are valid")
}

fn rails() -> Graph {
    build(json!({"kind": "rail-optimised", "servers": 4, "rails": 2, "internal_rate": "3200Gbps",
        "internal_propagation": "500ns"}))
    .expect("the parameters are valid")
}

fn trimming(
    graph: Graph,
    interface: InterfaceSpec,
    transport: TransportSpec,
    flows: Vec<Flow>,
) -> Scenario {
    let mut scenario = scenario(graph, flows);
    scenario.host.framing_overhead = Bytes(24);
    scenario.scheme.interface = interface;
    let is_uet = matches!(transport, TransportSpec::Uet(_));
    scenario.scheme.queue = QueueSpec::Trimming(Trimming {
        limit: Limit::AtMost(Amount::Packets(if is_uet { 43 } else { 8 })),
        returns: !is_uet,
        marking: is_uet.then_some(Marking {
            low: Amount::Packets(9),
            high: Amount::Packets(35),
            last_hop: true,
        }),
        ..Trimming::default()
    });
    scenario.scheme.transport = transport;
    scenario
}

fn uet(control: UetControl) -> TransportSpec {
    TransportSpec::Uet(UetSpec { mss: Bytes(4096), control, ..UetSpec::default() })
}

/// NDP with a first window of more than a round trip of all interfaces.
fn ndp(interfaces: u32) -> TransportSpec {
    let initial_window = 60 * interfaces;
    TransportSpec::Ndp(NdpSpec { mss: Bytes(4096), initial_window, ..NdpSpec::default() })
}

fn took(record: &FlowRecord) -> Time {
    record.fct.expect("it ends")
}

/// Returns the last packet's arrival of a message of 1 MB, 245 packets the last of which takes 12.8
/// ns, over so many interfaces of two links of 1 us.
fn closed_form(interfaces: u64) -> u64 {
    let full = 244u64.div_ceil(interfaces) * FULL;
    // The last packet leaves an interface behind as many full ones as the longest line has, or one
    // fewer, and waits for a full one at the switch.
    let behind = 244 / interfaces * FULL + FULL.max(12_800) + 12_800;
    (full + FULL).max(behind) + 2_000_000
}

fn million(transport: TransportSpec, planes: u32, interface: InterfaceSpec) -> FlowRecord {
    let flows = vec![flow(0, 0, 1, 1_000_000, Time::ZERO)];
    let outcome = run(&trimming(stars(planes), interface, transport, flows));
    assert_eq!(outcome.counters.dropped, 0);
    outcome.flows[0].clone()
}

#[test]
fn a_lone_message_under_uet_takes_the_closed_form_of_its_interfaces() {
    for planes in [2, 3, 4, 8] {
        let one = million(uet(UetControl::Nscc), planes, BY_FLOW);
        // 22,396.8 ns, as by a host's only link.
        assert_eq!((took(&one).0, one.fct), (22_396_800, Some(one.ideal_fct)), "{planes}");
        let all = million(uet(UetControl::Nscc), planes, BY_PACKET);
        assert_eq!(took(&all).0, closed_form(planes.into()), "{planes} planes");
        assert!((took(&all).0 - FULL..=took(&all).0).contains(&all.ideal_fct.0), "{all:?}");
    }
    assert_eq!(closed_form(2), 12_246_400);
}

/// The SYN of 76 B leaves first, by the first interface.
#[test]
fn a_lone_message_under_ndp_takes_the_closed_form_of_its_interfaces() {
    for planes in [2, 3, 4, 8] {
        let one = million(ndp(1), planes, BY_FLOW);
        assert_eq!((took(&one).0, one.fct), (22_398_320, Some(one.ideal_fct)), "{planes}");
        let all = million(ndp(planes), planes, BY_PACKET);
        assert_eq!(took(&all).0, closed_form(planes.into()), "{planes} planes");
    }
}

/// The first windows need no grant; from then on credits come at 99 % of all interfaces.
#[test]
fn a_lone_message_under_rccc_has_the_rate_of_its_interfaces() {
    let bytes = 20_000_000u64;
    let wire = bytes + bytes.div_ceil(4_096) * 64;
    for control in [UetControl::Rccc, UetControl::Both] {
        for (planes, interface, interfaces) in
            [(2, BY_FLOW, 1), (2, BY_PACKET, 2), (4, BY_PACKET, 4), (8, BY_PACKET, 8)]
        {
            let flows = vec![flow(0, 0, 1, bytes, Time::ZERO)];
            let outcome = run(&trimming(stars(planes), interface, uet(control), flows));
            let record = &outcome.flows[0];
            let paced = Rate(396_000_000_000 * interfaces).transmission_time(wire);
            let most = paced + Time::from_us(5);
            assert!(took(record) >= record.ideal_fct && took(record) < most, "{record:?}");
            // 99 % of the rate, but for the first window.
            assert!(took(record) > Time(paced.0 * 99 / 100), "{record:?}");
            assert_eq!(record.retransmissions, 0);
        }
    }
}

/// Four hosts that send to one share its interfaces, by packet all of them, and by flow that of
/// their plane.
#[test]
fn receivers_share_their_interfaces_fairly() {
    let bytes = 4_000_000u64;
    let wire = bytes + bytes.div_ceil(4_096) * 64;
    let flows = || (0..4).map(|id| flow(id, 1 + id as u32, 0, bytes, Time::ZERO)).collect();
    for transport in [ndp(1), uet(UetControl::Rccc), uet(UetControl::Both)] {
        let outcome = run(&trimming(stars(2), BY_PACKET, transport.clone(), flows()));
        let needed = Rate(800_000_000_000).transmission_time(4 * wire);
        for record in &outcome.flows {
            let most = Time(needed.0 * 104 / 100) + Time::from_us(20);
            let least = Time(needed.0 * 90 / 100);
            assert!((least..most).contains(&took(record)), "{transport:?}: {record:?}");
        }
        let scenario = trimming(stars(2), BY_FLOW, transport.clone(), flows());
        let planes: Vec<u32> = (0..4).map(|id| plane_of(&scenario, id)).collect();
        assert!(planes.contains(&0) && planes.contains(&1), "{planes:?}");
        let outcome = run(&scenario);
        for (record, plane) in outcome.flows.iter().zip(&planes) {
            let together = planes.iter().filter(|other| *other == plane).count() as u64;
            let needed = Rate(400_000_000_000).transmission_time(together * wire);
            let most = Time(needed.0 * 104 / 100) + Time::from_us(20);
            let least = Time(needed.0 * 90 / 100);
            assert!((least..most).contains(&took(record)), "{transport:?}: {record:?}");
        }
    }
}

/// Returns the plane over which the sender of flow `id` sends.
fn plane_of(scenario: &Scenario, id: u64) -> u32 {
    let src = scenario.flows[id as usize].src;
    let (_, observer) = run_observed(scenario, JobLinks::new(&scenario.graph, vec![id]));
    let carries = |plane: &u32| {
        let port = scenario.graph.plane_port(2, src, *plane);
        observer.links()[port.index()].packets > 0
    };
    let used: Vec<u32> = (0..2).filter(carries).collect();
    assert_eq!(used.len(), 1, "a flow keeps to one plane");
    used[0]
}

/// Answers and pulls take the plane of the data, whatever entropy values packets carry.
#[test]
fn a_connection_keeps_to_one_plane_both_ways() {
    for transport in [ndp(1), uet(UetControl::Both)] {
        let flows = (0..16).map(|id| flow(id, 0, 1, 400_000, Time::from_us(100 * id))).collect();
        let scenario = trimming(stars(2), BY_FLOW, transport, flows);
        let planes: Vec<u32> = (0..16)
            .map(|id| {
                let (_, observer) =
                    run_observed(&scenario, JobLinks::new(&scenario.graph, vec![id]));
                let used = |host: u32| {
                    let packets = |plane: u32| {
                        let port = scenario.graph.plane_port(2, HostId(host), plane);
                        observer.links()[port.index()].packets > 0
                    };
                    [packets(0), packets(1)]
                };
                assert_eq!(used(0), used(1), "flow {id}");
                assert_ne!(used(0)[0], used(0)[1], "flow {id}");
                u32::from(used(0)[1])
            })
            .collect();
        assert!(planes.contains(&0) && planes.contains(&1), "{planes:?}");
    }
}

fn down(incident: Incident, known_at_start: bool) -> FaultsSpec {
    FaultsSpec { incidents: vec![incident], known_at_start, ..FaultsSpec::default() }
}

fn plane_down(at: Time, until: Option<Time>) -> Incident {
    Incident::PlaneDown { plane: 1, at, until }
}

#[test]
fn a_plane_that_is_known_to_be_down_leaves_the_rate_of_the_other() {
    for transport in [uet(UetControl::Nscc), ndp(2)] {
        for interface in [BY_FLOW, BY_PACKET] {
            let flows = vec![flow(0, 0, 1, 1_000_000, Time::from_us(1))];
            let mut scenario = trimming(stars(2), interface, transport.clone(), flows);
            scenario.faults = down(plane_down(Time::ZERO, None), true);
            let outcome = run(&scenario);
            let syn = if matches!(transport, TransportSpec::Ndp(_)) { 1_520 } else { 0 };
            assert_eq!(took(&outcome.flows[0]).0, 22_396_800 + syn);
            assert_eq!(outcome.counters.lost_on_links, 0);
        }
    }
}

/// Until its senders know of a failed plane, a host loses what it sends there at the rate of an
/// interface; what was lost is sent again.
#[test]
fn senders_leave_a_failed_plane_when_they_know_of_it() {
    let controls = [UetControl::Nscc, UetControl::Rccc, UetControl::Both].map(uet);
    // Longer than eight first windows wait for one interface.
    let rto = Some(Time::from_us(100));
    let patient = NdpSpec { mss: Bytes(4096), initial_window: 120, rto };
    for transport in controls.into_iter().chain([TransportSpec::Ndp(patient)]) {
        let soon = Some(Time::from_us(20));
        for interface in [
            InterfaceSpec::ByPacket(ByPacket { detection: soon }),
            InterfaceSpec::ByFlow(ByFlow { detection: soon }),
        ] {
            let flows = (0..8).map(|id| flow(id, 0, 1, 2_000_000, Time::ZERO)).collect();
            let mut scenario = trimming(stars(2), interface.clone(), transport.clone(), flows);
            scenario.faults = down(plane_down(Time::from_us(50), None), false);
            let outcome = run(&scenario);
            let lost = outcome.counters.lost_on_links;
            // 240 packets in 20 us of one interface; what was under way, or waited, is lost as well.
            assert!((1..2_000).contains(&lost), "{transport:?}, {interface:?}: {lost}");
            let last = outcome.flows.iter().map(took).max().expect("there are flows");
            // One interface for all 16 MB, and some timeouts.
            assert!(last < Time::from_us(330 + 400), "{transport:?}, {interface:?}: {last}");
        }
    }
}

#[test]
fn a_plane_that_comes_back_is_used_again() {
    for transport in [uet(UetControl::Nscc), uet(UetControl::Rccc), ndp(2)] {
        let flows = vec![flow(0, 0, 1, 40_000_000, Time::ZERO)];
        let mut scenario = trimming(stars(2), BY_PACKET, transport.clone(), flows);
        scenario.faults = FaultsSpec {
            reconvergence: Time::from_us(20),
            ..down(plane_down(Time::from_us(100), Some(Time::from_us(200))), false)
        };
        let outcome = run(&scenario);
        // 406.3 us by both, and 60 us of one interface; 812 us by one.
        let took = took(&outcome.flows[0]);
        assert!(outcome.counters.lost_on_links > 0 && took < Time::from_us(620), "{took}");
    }
}

#[test]
fn all_who_send_to_a_host_avoid_its_failed_interface() {
    for transport in [uet(UetControl::Nscc), uet(UetControl::Rccc), ndp(1)] {
        for interface in [BY_FLOW, BY_PACKET] {
            let flows = (0..32)
                .map(|id| flow(id, 0, 1 + (id % 2) as u32, 40_000, Time::from_us(1 + 100 * id)))
                .collect();
            let mut scenario = trimming(stars(2), interface, transport.clone(), flows);
            let (link, at) = ("h1>p0leaf0".to_owned(), Time::ZERO);
            scenario.faults = down(Incident::LinkDown { link, at, until: None }, true);
            let outcome = run(&scenario);
            assert_eq!(outcome.counters.lost_on_links, 0);
            assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
        }
    }
}

/// Hosts 0 and 1 are server 0, hosts 6 and 7 server 3.
#[test]
fn lone_messages_on_rails_take_their_ideal_times() {
    for transport in [uet(UetControl::Nscc), ndp(2)] {
        for (interface, dst, hops) in
            [(BY_FLOW, 6, 2), (BY_FLOW, 7, 4), (BY_RAIL, 6, 2), (BY_RAIL, 7, 3)]
        {
            let flows = vec![flow(0, 0, dst, 1_000_000, Time::ZERO)];
            let outcome = run(&trimming(rails(), interface.clone(), transport.clone(), flows));
            let record = &outcome.flows[0];
            // The short last packet may take another link of four to or from the spine.
            let slack = if hops == 4 { 12_800 } else { 0 };
            let over = took(record).0 - record.ideal_fct.0;
            assert!(over <= slack && record.hops == hops, "{interface:?} to {dst}: {record:?}");
        }
    }
}

/// Hosts 0 and 1 send to hosts 3 and 5, both on rail 1: host 0 by the interface of host 1.
#[test]
fn a_relayed_flow_and_the_owner_of_its_interface_share_it() {
    for transport in [uet(UetControl::Nscc), uet(UetControl::Rccc), ndp(1)] {
        let bytes = 10_000_000u64;
        let flows = vec![flow(0, 0, 3, bytes, Time::ZERO), flow(1, 1, 5, bytes, Time::ZERO)];
        let outcome = run(&trimming(rails(), BY_RAIL, transport.clone(), flows));
        let alone = Rate(400_000_000_000).transmission_time(bytes + bytes.div_ceil(4_096) * 64);
        let [first, second] = [0, 1].map(|id| took(&outcome.flows[id]).0);
        let last = first.max(second);
        assert!((2 * alone.0..2 * alone.0 * 105 / 100).contains(&last), "{transport:?}: {last}");
        assert!(first.min(second) > alone.0 * 3 / 2, "{transport:?}: {first} and {second}");
    }
}

#[test]
fn a_failed_rail_cuts_its_hosts_off_from_other_servers_only() {
    for transport in [uet(UetControl::Nscc), uet(UetControl::Rccc), ndp(1)] {
        let flows = vec![
            flow(0, 0, 2, 10_000, Time::ZERO),
            flow(1, 1, 3, 10_000, Time::ZERO),
            flow(2, 1, 0, 10_000, Time::ZERO),
        ];
        let mut scenario = trimming(rails(), BY_RAIL, transport, flows);
        let failed = Incident::RailDown { rail: 1, at: Time::ZERO, until: None };
        scenario.faults = down(failed, true);
        scenario.horizon.drain = Time::from_ms(20);
        let ended: Vec<bool> = run(&scenario).flows.iter().map(|flow| flow.fct.is_some()).collect();
        assert_eq!(ended, [true, false, true]);
    }
}
