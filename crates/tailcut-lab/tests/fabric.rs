//! The lab's fabric, in which the caller advances the time, compared with the simulator: the same
//! packets at the same times.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use tailcut_engine::Time;
use tailcut_lab::fabric::engine::{DepartedPacket, FabricEngine, Fate};
use tailcut_net::host::HostSpec;
use tailcut_net::measure::Observer;
use tailcut_net::measure::records::{Outcome, TierRecord};
use tailcut_net::network::tier_records;
use tailcut_net::packet::{ConnectionId, Packet, PacketId};
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::simulate_observed;
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::leaf_spine::LeafSpine;
use tailcut_net::topology::{HostId, PortId};
use tailcut_net::traffic::demand::Jobs;
use tailcut_net::traffic::{Flow, FlowIndex};

/// The end of a packet's path, and when it was reached.
type End = (Time, Fate);

/// The packets that hosts send in the simulator, and the end of each.
#[derive(Default)]
struct Crossings {
    sent: Vec<(Time, Packet)>,
    ends: Vec<Option<End>>,
    /// The packet that a ticket currently represents.
    under_way: BTreeMap<u32, usize>,
}

impl Crossings {
    fn ended(&mut self, ticket: PacketId, end: End) {
        if let Some(number) = self.under_way.remove(&ticket.0) {
            self.ends[number] = Some(end);
        }
    }
}

impl Observer for Crossings {
    const WANTS_VIEWS: bool = false;
    const TRACES_PACKETS: bool = true;

    fn packet_sent(&mut self, now: Time, _: FlowIndex, ticket: PacketId, packet: &Packet) {
        self.under_way.insert(ticket.0, self.sent.len());
        self.sent.push((now, *packet));
        self.ends.push(None);
    }

    fn packet_delivered(&mut self, now: Time, ticket: PacketId, packet: &Packet) {
        self.ended(ticket, (now, Fate::Delivered(packet.key.dst())));
    }

    fn packet_ends(&mut self, now: Time, ticket: PacketId, _: &Packet) {
        self.ended(ticket, (now, Fate::Dropped));
    }
}

/// Returns an incast: three hosts of each of two racks send to the fourth host of the other rack,
/// so that the ports to these hosts and to the spines fill up.
fn incast(scheme: Value) -> Scenario {
    let flow = |number: u32| Flow {
        src: HostId([0, 1, 2, 4, 5, 6][number as usize % 6]),
        dst: HostId(if number % 6 < 3 { 7 } else { 3 }),
        bytes: 150_000 + u64::from(number) * 977,
        start: Time(u64::from(number) * 1_234_567_891),
        id: u64::from(number),
    };
    scenario(scheme, (0..18).map(flow).collect())
}

/// Returns these flows over two racks of four hosts and two spines.
fn scenario(scheme: Value, flows: Vec<Flow>) -> Scenario {
    let shape = json!({ "racks": 2, "hosts_per_rack": 4, "spines": 2, "rate": "100Mbps" });
    let shape: LeafSpine = serde_json::from_value(shape).expect("it is a leaf-spine");
    Scenario {
        graph: shape.build().expect("it can be built"),
        host: HostSpec::default(),
        switch: SwitchSpec::default(),
        faults: serde_json::from_value(json!({})).expect("nothing fails"),
        scheme: serde_json::from_value::<Scheme>(scheme).expect("it is a scheme"),
        flows,
        jobs: Jobs::default(),
        horizon: Horizon::default(),
        seed: 1,
        series: SeriesSpec::default(),
        max_port_samples: 0,
    }
}

/// Sends the same packets through the lab's fabric; returns the end of each, and the counters of
/// its ports by `end`.
fn through_engine(
    scenario: &Scenario,
    sent: &[(Time, Packet)],
    end: Time,
) -> (Vec<Option<End>>, Vec<TierRecord>) {
    let mut engine = FabricEngine::new(scenario).expect("it can be built");
    let mut left: Vec<DepartedPacket> = vec![];
    for (number, &(at, packet)) in sent.iter().enumerate() {
        engine.run(at, &mut left).expect("routes fit");
        let packet = Packet { connection: ConnectionId(number as u32), ..packet };
        engine.send(at, packet.key.src(), packet, 1, &mut left);
    }
    engine.run(end, &mut left).expect("routes fit");
    let mut ends = vec![None; sent.len()];
    for one in left {
        ends[one.packet.connection.0 as usize] = Some((one.at, one.fate));
    }
    let (graph, fabric) = (&scenario.graph, engine.fabric());
    let busy: Vec<Time> =
        (0..fabric.port_count()).map(|port| fabric.busy_time(end, PortId(port))).collect();
    let tiers = tier_records(graph, end, &busy, |port| fabric.counters(port));
    (ends, tiers)
}

fn counted(tiers: &[TierRecord]) -> Vec<(u64, u64, u64, u32)> {
    tiers.iter().map(|tier| (tier.packets, tier.wire_bytes, tier.drops, tier.max_queue)).collect()
}

/// Simulates a scenario; returns its outcome, and the packets that hosts sent.
fn recorded(scenario: &Scenario) -> (Outcome, Crossings) {
    simulate_observed(scenario, Crossings::default(), &mut |_| ControlFlow::Continue(()))
        .expect("it runs")
}

/// Asserts what [`assert_same_crossings`] does of an incast, in which ports drop packets.
fn assert_like_the_simulator(scheme: Value) {
    let dropped = assert_same_crossings(&incast(scheme));
    assert!(dropped > 100, "{dropped}");
}

/// Asserts that every packet arrives or is dropped as in the simulator and at the same time, and
/// that ports have the same counters and longest queues; returns the number of dropped packets.
fn assert_same_crossings(scenario: &Scenario) -> u64 {
    let (outcome, crossings) = recorded(scenario);
    let (ends, tiers) = through_engine(scenario, &crossings.sent, outcome.counters.end);
    assert_eq!(crossings.sent.len() as u64, outcome.counters.sent);
    let differs = ends.iter().zip(&crossings.ends).position(|(lab, simulator)| lab != simulator);
    let where_to = differs.map(|at| (crossings.sent[at], ends[at], crossings.ends[at]));
    assert_eq!(where_to, None, "packet {differs:?} of {}", ends.len());
    assert_eq!(counted(&tiers), counted(&outcome.tiers));
    let sent = crossings.sent.len() as u64;
    let fates = |wanted: fn(&Fate) -> bool| {
        ends.iter().flatten().filter(|(_, fate)| wanted(fate)).count() as u64
    };
    let (delivered, dropped) =
        (fates(|fate| matches!(fate, Fate::Delivered(_))), fates(|fate| *fate == Fate::Dropped));
    let under_way = ends.iter().filter(|end| end.is_none()).count() as u64;
    assert_eq!(sent, delivered + dropped + under_way);
    assert_eq!(dropped, tiers.iter().map(|tier| tier.drops).sum::<u64>());
    dropped
}

#[test]
fn full_queues_delay_and_drop_as_in_the_simulator() {
    assert_like_the_simulator(json!({ "queue": { "kind": "drop-tail", "limit": "12packets" } }));
}

#[test]
fn ecn_marking_and_spraying_are_as_in_the_simulator() {
    let queue = json!({ "kind": "ecn", "limit": "12packets", "threshold": "5packets" });
    assert_like_the_simulator(json!({ "queue": queue, "balance": { "kind": "spray" } }));
}

#[test]
fn red_drops_as_in_the_simulator() {
    assert_like_the_simulator(json!({ "queue": { "kind": "red", "limit": "30packets" } }));
}

#[test]
fn copies_of_repflow_take_the_simulators_paths() {
    let queue = json!({ "kind": "drop-tail", "limit": "12packets" });
    assert_like_the_simulator(json!({ "queue": queue, "replicate": { "kind": "repflow" } }));
}

#[test]
fn subflows_of_multipath_tcp_take_the_simulators_paths() {
    let queue = json!({ "kind": "drop-tail", "limit": "12packets" });
    assert_like_the_simulator(json!({ "queue": queue, "transport": { "kind": "mptcp" } }));
}

#[test]
fn a_permutation_over_queues_without_a_limit_crosses_as_in_the_simulator() {
    let flow = |number: u32| Flow {
        src: HostId(number),
        dst: HostId((number + 5) % 8),
        bytes: 1_000_000,
        start: Time::ZERO,
        id: u64::from(number),
    };
    let unlimited = json!({ "queue": { "kind": "drop-tail", "limit": "unlimited" } });
    assert_eq!(assert_same_crossings(&scenario(unlimited, (0..8).map(flow).collect())), 0);
}

/// Sizes from a byte to a megabyte; each flow is over before the next starts.
#[test]
fn the_last_packet_of_a_flow_alone_arrives_at_its_ideal_time() {
    let apart = 100_000_000_000;
    let flow = |(number, bytes): (u64, u64)| Flow {
        src: HostId(0),
        dst: HostId(if number % 2 == 0 { 1 } else { 5 }),
        bytes,
        start: Time(number * apart),
        id: number,
    };
    let sizes = [1, 1, 1_460, 1_461, 14_600, 100_000, 1_000_000, 1_000_000];
    let flows: Vec<Flow> = (0..).zip(sizes).map(flow).collect();
    let scenario = scenario(json!({ "transport": { "kind": "tcp", "close": "none" } }), flows);
    let (outcome, crossings) = recorded(&scenario);
    let (ends, _) = through_engine(&scenario, &crossings.sent, outcome.counters.end);
    for flow in &outcome.flows {
        let arrives = flow.flow.start + flow.ideal_fct;
        let of_flow = |at: Time| at >= flow.flow.start && at < Time(flow.flow.start.0 + apart);
        let last = ends.iter().flatten().filter_map(|&(at, fate)| {
            (fate == Fate::Delivered(flow.flow.dst) && of_flow(at)).then_some(at)
        });
        assert_eq!(last.max(), Some(arrives), "{} bytes", flow.flow.bytes);
    }
}
