//! Parts of completion times: cases computed by hand, and their sum.

use std::collections::BTreeMap;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::flowlet::Flowlet;
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::measure::attribution::{Attribution, Part};
use tailcut_net::measure::records::Outcome;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::trimming::Trimming;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::star::Star;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::ndp::NdpSpec;

use crate::run::support::{flow, row, run, run_observed, scenario, tcp};

/// Checks that every finished flow is split into parts that add up to its completion time, and no
/// other flow is split.
pub fn check(outcome: &Outcome, attribution: &Attribution) {
    for record in &outcome.flows {
        let parts = attribution.parts_of(record.flow.id);
        assert_eq!(parts.map(|parts| parts.total()), record.fct, "flow {}", record.flow.id);
        if let (Some(parts), Some(fct)) = (parts, record.fct) {
            assert_eq!(parts.in_ns().iter().sum::<u64>(), fct.as_ns());
        }
    }
}

const RATE: Rate = Rate(1_000_000_000);
const WIRE: Time = Time::from_us(3);
/// The transmission time of a full packet on these links.
const FULL: Time = Time(1_538 * 8_000);

fn star(flows: Vec<Flow>) -> Scenario {
    let star = Star { hosts: 4, rate: RATE, propagation: WIRE };
    let mut scenario = scenario(star.build().expect("it is valid"), flows);
    tcp(&mut scenario).initial_window = Amount::Packets(2);
    tcp(&mut scenario).min_rto = Time::from_ms(10);
    scenario
}

/// Returns the parts of a flow that are not zero.
fn split(scenario: &Scenario, flow: u64) -> BTreeMap<Part, Time> {
    let (outcome, attribution) = run_observed(scenario, Attribution::new(&scenario.graph));
    check(&outcome, &attribution);
    let parts = attribution.parts_of(flow).expect("it finishes");
    Part::ALL.iter().map(|&part| (part, parts.of(part))).filter(|p| p.1 > Time::ZERO).collect()
}

#[test]
fn a_flow_of_one_packet_has_transmission_and_propagation_only() {
    let scenario = star(vec![flow(0, 0, 1, 1_460, Time::ZERO)]);
    let parts = split(&scenario, 0);
    assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [Part::Transmission, Part::Propagation]);
    // There, back, and there again, over two links each.
    assert_eq!(parts[&Part::Propagation], Time(6 * WIRE.0));
}

#[test]
fn a_flow_that_is_alone_has_transmission_propagation_and_window_whatever_its_size() {
    for bytes in [1, 1_460, 3_000, 40_001, 1_000_000] {
        for slow in [RATE, Rate(100_000_000)] {
            let links = [(RATE, WIRE), (slow, WIRE), (RATE, WIRE)];
            let mut scenario = scenario(row(&links), vec![flow(0, 0, 1, bytes, Time::ZERO)]);
            tcp(&mut scenario).initial_window = Amount::Packets(2);
            let parts = split(&scenario, 0);
            let alone = [Part::Transmission, Part::Propagation, Part::SlowStart];
            assert!(parts.keys().all(|part| alone.contains(part)), "{bytes} at {slow}: {parts:?}");
            // A slow link is full with two packets.
            let waits = slow == RATE && bytes > 2 * 1_460;
            assert!(parts.contains_key(&Part::SlowStart) || !waits, "{bytes} at {slow}: {parts:?}");
        }
    }
}

#[test]
fn a_flow_waits_for_its_window_until_the_wire_is_full() {
    // Windows of two, four and eight packets: the wire of 12 us and a round trip of less than four
    // packets is full from then on.
    let [short, long] =
        [100_000, 1_000_000].map(|bytes| split(&star(vec![flow(0, 0, 1, bytes, Time::ZERO)]), 0));
    assert_eq!(short[&Part::SlowStart], long[&Part::SlowStart]);
    let more = (1_000_000u64.div_ceil(1_460) - 100_000u64.div_ceil(1_460)) * FULL.0;
    let longer = long[&Part::Transmission].0 - short[&Part::Transmission].0;
    assert!(longer.abs_diff(more) < 2 * FULL.0, "the rest is transmitted back to back");
}

#[test]
fn names_the_window_that_limits_the_sender() {
    // A wire that holds forty packets.
    let links = [(RATE, Time::from_us(120)), (RATE, Time::from_us(120))];
    let windows = [Part::SlowStart, Part::CongestionWindow, Part::ReceiveWindow];
    let held = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = scenario(row(&links), vec![flow(0, 0, 1, 200_000, Time::ZERO)]);
        tcp(&mut scenario).initial_window = Amount::Packets(2);
        change(&mut scenario);
        let parts = split(&scenario, 0);
        windows.map(|window| parts.get(&window).map_or(0, |time| time.0))
    };
    // A round trip: a full packet there and an acknowledgement back.
    let round_trip = held(&|scenario| {
        tcp(scenario).receive_window = tcp(scenario).mss;
        scenario.flows[0].bytes = 2 * 1_460;
    });
    assert_eq!(round_trip[..2], [0; 2]);
    // Two packets per round trip, of 137.
    let [slow_start, congestion, receiver] = held(&|scenario| {
        tcp(scenario).receive_window = Bytes(2 * 1_460);
        tcp(scenario).initial_window = Amount::Packets(4);
    });
    assert_eq!((slow_start, congestion), (0, 0));
    assert!((60 * round_trip[2]..=69 * round_trip[2]).contains(&receiver), "{receiver}");
    // The window doubles until forty packets are in flight.
    let [slow_start, congestion, receiver] =
        held(&|scenario| tcp(scenario).receive_window = Bytes(10_000_000));
    assert!(slow_start > 0 && congestion == 0 && receiver == 0);
    // The window doubles up to four, and then grows by one per round trip.
    let [slow_start, congestion, receiver] = held(&|scenario| {
        tcp(scenario).receive_window = Bytes(10_000_000);
        tcp(scenario).initial_ssthresh = Limit::AtMost(Amount::Packets(4));
    });
    assert!(slow_start > 0 && congestion > slow_start && receiver == 0);
}

#[test]
fn waits_behind_other_flows_are_exact() {
    // Both hosts send a packet to host 2 at the same time: the handshakes collide, and so does the
    // data.
    let flows = vec![flow(0, 0, 2, 1_460, Time::ZERO), flow(1, 1, 2, 1_460, Time::ZERO)];
    let scenario = star(flows);
    let [first, second] = [0, 1].map(|id| split(&scenario, id));
    let sum = |parts: &BTreeMap<Part, Time>| parts.values().map(|time| time.0).sum::<u64>();
    let alone = split(&star(vec![flow(0, 0, 2, 1_460, Time::ZERO)]), 0);
    for parts in [&first, &second] {
        let waited: u64 = [Part::Down1Others, Part::InterfaceOthers]
            .iter()
            .filter_map(|part| parts.get(part))
            .map(|time| time.0)
            .sum();
        assert_eq!(sum(parts) - sum(&alone), waited, "what it takes longer it has waited for");
        assert_eq!(parts[&Part::Transmission], alone[&Part::Transmission]);
        assert_eq!(parts[&Part::Propagation], alone[&Part::Propagation]);
    }
    assert!(second.contains_key(&Part::Down1Others), "{second:?}");
}

/// Takes the link of host 0 down from one time to another.
fn cut(scenario: &mut Scenario, from: Time, until: Time) {
    let link = "h0>s0".to_owned();
    let down = Incident::LinkDown { link, at: from, until: Some(until) };
    scenario.faults = FaultsSpec { incidents: vec![down], ..FaultsSpec::default() };
}

#[test]
fn a_lost_packet_costs_exactly_its_timer() {
    let mut scenario = star(vec![flow(0, 0, 1, 1_460, Time::ZERO)]);
    let alone = split(&scenario, 0);
    // The SYN-ACK arrives before, and the data is on the wire.
    cut(&mut scenario, Time::from_us(20), Time::from_us(100));
    let cut = split(&scenario, 0);
    assert_eq!(cut[&Part::Timeout], Time::from_ms(10));
    assert_eq!((cut.len(), cut[&Part::Propagation]), (3, alone[&Part::Propagation]));
    // The second time it leaves alone, the first time behind the ACK of the handshake.
    assert_eq!(cut[&Part::Transmission] + Time(78 * 8_000), alone[&Part::Transmission]);
}

#[test]
fn a_lost_syn_costs_its_own_timer() {
    let mut scenario = star(vec![flow(0, 0, 1, 1_460, Time::ZERO)]);
    let (alone, timer) = (split(&scenario, 0), tcp(&mut scenario).initial_rto);
    cut(&mut scenario, Time(1), Time::from_us(100));
    let cut = split(&scenario, 0);
    assert_eq!(cut[&Part::SynTimeout], timer);
    assert_eq!((cut.len(), cut[&Part::Propagation]), (3, alone[&Part::Propagation]));
}

#[test]
fn a_winning_copy_that_started_later_includes_its_delay() {
    let mut scenario = star(vec![flow(0, 0, 1, 1_460, Time::ZERO)]);
    let alone = split(&scenario, 0);
    let copy_delay = Time::from_us(200);
    scenario.scheme.replicate =
        ReplicateSpec::Repflow(RepFlow { copy_delay, ..RepFlow::default() });
    // The first copy's data is lost, and its timer runs longer than the delay.
    cut(&mut scenario, Time::from_us(20), Time::from_us(100));
    let copied = split(&scenario, 0);
    assert_eq!(copied[&Part::CopyDelay], copy_delay);
    assert_eq!((copied.len(), copied[&Part::Transmission]), (3, alone[&Part::Transmission]));
}

#[test]
fn queueing_time_equals_the_queue_in_the_series() {
    // Host 1's long flow fills the queue before host 2's; host 0's packet comes behind both.
    let mut flows = vec![flow(0, 1, 2, 200_000, Time::ZERO), flow(1, 3, 2, 200_000, Time::ZERO)];
    flows.push(flow(2, 0, 2, 1_460, Time::from_us(600)));
    let mut scenario = star(flows);
    tcp(&mut scenario).initial_window = Amount::Packets(60);
    let sampled = |scenario: &Scenario, at: Time| {
        let mut scenario = scenario.clone();
        scenario.series.links = vec!["s0>h2".into()];
        scenario.series.interval = at;
        let series = run(&scenario).series;
        let queue = series.iter().find(|series| series.name.ends_with("queue_packets"));
        queue.expect("the link is sampled").values[0]
    };
    let parts = split(&scenario, 2);
    let connect = run(&scenario).flows[2].connect.expect("it is established");
    // The times at which the SYN and the data reach the switch; the data leaves behind the ACK of
    // the handshake.
    let (start, control) = (Time::from_us(600), Time(78 * 8_000));
    let arrivals = [start + control, start + connect + control + FULL];
    let met: f64 = arrivals.iter().map(|&at| sampled(&scenario, at + WIRE)).sum();
    let waited = parts[&Part::Down1Others].0 as f64 / FULL.0 as f64;
    assert!(
        met > 20.0 && (waited - met).abs() < 2.0,
        "{waited} full packets, of {met} that it met"
    );
}

/// A randomly found case: headers overtake data, and one without room returns to its sender.
#[test]
fn parts_of_ndp_flows_add_up_where_headers_have_little_room() {
    let flows = [
        (2, 0, 30_440, 481_365),
        (0, 1, 10_000, 487_999),
        (1, 0, 27_732, 707_374),
        (2, 3, 219_648, 753_282),
        (3, 0, 21_210, 776_924),
        (4, 0, 12, 889_041),
    ];
    let flows = (0..)
        .zip(flows)
        .map(|(id, (src, dst, bytes, start))| flow(id, src, dst, bytes, Time::from_ns(start)));
    let graph = Star { hosts: 5, ..Star::default() }.build().expect("it is valid");
    let mut scenario = scenario(graph, flows.collect());
    let at_most = |bytes| Limit::AtMost(Amount::Bytes(bytes));
    scenario.host.nic_queue = at_most(39_958);
    let rto = Some(Time::from_us(5_630));
    scenario.scheme.transport =
        TransportSpec::Ndp(NdpSpec { initial_window: 26, rto, ..NdpSpec::default() });
    scenario.scheme.queue = QueueSpec::Trimming(Trimming {
        limit: at_most(18_537),
        header_limit: Some(at_most(168)),
        hosts: true,
        ..Trimming::default()
    });
    let gap = Time::from_us(71);
    scenario.scheme.balance = BalanceSpec::Flowlet(Flowlet { gap, ..Flowlet::default() });
    let (outcome, attribution) = run_observed(&scenario, Attribution::new(&scenario.graph));
    check(&outcome, &attribution);
}
