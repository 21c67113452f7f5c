//! Multipath TCP and MMPTCP: the subflows of a flow together.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::find::link_name;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::topology::{Graph, HostId, Link, NodeId, PortId, Routes};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::mixed::{Lot, MixedTransport, TransportPart};
use tailcut_net::transport::mmptcp::{MmptcpSpec, ScatterThreshold, SwitchTrigger};
use tailcut_net::transport::mptcp::MptcpSpec;
use tailcut_net::transport::tcp::reordering::{ReorderingSpec, rr_tcp::RrTcpSpec};
use tailcut_net::transport::tcp::{Recovery, Sender, TcpSpec};

use crate::run::coupling::{progress, side_by_side};
use crate::run::support::{flow, limit_queues, row, run, run_observed, scenario};

const FAST: Rate = Rate(1_000_000_000);

/// Packets that hosts send, and state of their senders.
#[derive(Default)]
struct HostPackets {
    /// Data packets of each flow and subflow.
    data: BTreeMap<(u64, u8), u64>,
    /// Source ports of data and of acknowledgements, by flow and subflow.
    ports: BTreeMap<(u64, u8, bool), BTreeSet<u16>>,
    /// SYNs: flow, subflow, time.
    opened: Vec<(u64, u8, Time)>,
    thresholds: BTreeMap<u64, u32>,
    /// New data of the first subflow of flow 0, with times.
    first: Vec<Time>,
}

impl Observer for HostPackets {
    fn host_sends(&mut self, now: Time, _: HostId, packet: &PacketView) {
        let subflow = (packet.flow, packet.copy);
        let data = packet.flags.has(Flags::DATA);
        if data {
            *self.data.entry(subflow).or_default() += 1;
            if subflow == (0, 0) && !packet.flags.has(Flags::RETRANSMISSION) {
                self.first.push(now);
            }
        }
        if packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::TO_SENDER) {
            self.opened.push((packet.flow, packet.copy, now));
        }
        if data {
            self.ports.entry((packet.flow, packet.copy, true)).or_default().insert(packet.sport);
        } else if packet.flags.has(Flags::TO_SENDER) {
            self.ports.entry((packet.flow, packet.copy, false)).or_default().insert(packet.dport);
        }
    }
    fn tcp_sender_acted(&mut self, _: Time, flow: u64, copy: u8, sender: &Sender) {
        if copy == 0 {
            self.thresholds.insert(flow, sender.dupack_threshold());
        }
    }
}

fn mptcp(subflows: u32) -> TransportSpec {
    TransportSpec::Mptcp(MptcpSpec { subflows, ..MptcpSpec::default() })
}

pub fn with(graph: Graph, flows: Vec<Flow>, transport: TransportSpec) -> Scenario {
    let mut scenario = scenario(graph, flows);
    scenario.scheme.transport = transport;
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(100)));
    scenario
}

fn parallel(path_rates: Vec<Rate>, hosts_per_side: u32) -> Graph {
    let paths = path_rates.len() as u32;
    let paths = ParallelPaths { hosts_per_side, paths, path_rates, ..ParallelPaths::default() };
    paths.build().expect("the parameters are valid")
}

pub fn fat_tree(k: u32) -> Graph {
    FatTree { k, ..FatTree::default() }.build().expect("k is even")
}

#[test]
fn one_subflow_alone_takes_the_time_of_tcp() {
    let links = [(FAST, Time::from_ns(2_667)); 6];
    for bytes in [1, 1_460, 10_000, 12_000, 100_000, 1_000_000] {
        let flows = vec![flow(0, 0, 1, bytes, Time::ZERO)];
        let plain = run(&with(row(&links), flows.clone(), TransportSpec::default()));
        let multi = run(&with(row(&links), flows, mptcp(1)));
        let (plain, multi) = (&plain.flows[0], &multi.flows[0]);
        assert_eq!((multi.fct, multi.ideal_fct), (plain.fct, plain.ideal_fct), "{bytes} bytes");
        assert_eq!((multi.fct_ack, multi.data_packets), (plain.fct_ack, plain.data_packets));
    }
}

#[test]
fn subflows_join_once_the_first_is_established_each_from_a_port_of_its_own() {
    let graph = parallel(vec![FAST; 4], 1);
    let scenario = with(graph, vec![flow(0, 0, 1, 2_000_000, Time::ZERO)], mptcp(4));
    let (outcome, seen) = run_observed(&scenario, HostPackets::default());
    let record = &outcome.flows[0];
    assert_eq!(record.copies, 4);
    let connect = record.connect.expect("it is established");
    assert!(seen.opened[1..].iter().all(|opened| opened.2 == connect), "{:?}", seen.opened);
    let ports: BTreeSet<u16> =
        (0..4).flat_map(|copy| seen.ports[&(0, copy, true)].iter().copied()).collect();
    assert_eq!(ports.len(), 4);
    assert!((0..4).all(|copy| seen.data[&(0, copy)] > 50), "{:?}", seen.data);
}

/// Over four paths of a quarter of the host's rate, one TCP gets a quarter and four subflows nearly
/// all.
#[test]
fn four_subflows_use_the_capacity_of_four_paths() {
    let quarter = Rate(FAST.0 / 4);
    let on_all_paths = |id: &u64| {
        let probe = with(
            parallel(vec![quarter; 4], 1),
            vec![flow(*id, 0, 1, 4_000_000, Time::ZERO)],
            mptcp(4),
        );
        run(&probe).flows[0].fct < Some(Time::from_ms(55))
    };
    let id = (0..200).find(on_all_paths).expect("some flow's subflows take all four paths");
    let alone = with(
        parallel(vec![quarter; 4], 1),
        vec![flow(id, 0, 1, 4_000_000, Time::ZERO)],
        TransportSpec::default(),
    );
    let fct = run(&alone).flows[0].fct.expect("it finishes");
    assert!(fct > Time::from_ms(130), "one path carries 4 MB in {fct}");
}

/// Two paths of 100 Mbps; on one of them two TCPs compete.
#[test]
fn subflows_shift_to_the_better_path() {
    let graph = || parallel(vec![Rate(100_000_000); 2], 3);
    let recovery = Recovery::SackPrr;
    let tcp = TcpSpec { receive_window: Bytes(1 << 20), recovery, ..TcpSpec::default() };
    let multi = MptcpSpec { subflows: 2, receive_window: Bytes(2 << 20), tcp: tcp.clone() };
    // A flow's path shows by competing with a flow on a known one.
    let shares_path = |a: u64, b: u64, (src, dst): (u32, u32)| {
        let flows =
            vec![flow(a, 0, 3, 2_000_000, Time::ZERO), flow(b, src, dst, 2_000_000, Time::ZERO)];
        let outcome = run(&with(graph(), flows, TransportSpec::Tcp(tcp.clone())));
        outcome.flows[0].fct > Some(Time::from_ms(220))
    };
    let first =
        (1..50).find(|&id| shares_path(0, id, (1, 4))).expect("one shares the path of flow 0");
    let second =
        (50..99).find(|&id| shares_path(0, id, (2, 5))).expect("one shares the path of flow 0");
    // A flow whose first subflow shares that path, and whose second does not.
    let apart = |id: &u64| {
        let flows = vec![flow(*id, 0, 3, 4_000_000, Time::ZERO)];
        run(&with(graph(), flows, TransportSpec::Mptcp(multi.clone()))).flows[0].fct
            < Some(Time::from_ms(200))
            && shares_path(*id, first, (1, 4))
    };
    let id = (100..300).find(apart).expect("some flow's subflows take both paths");
    let flows = vec![
        flow(id, 0, 3, 1_000_000_000, Time::ZERO),
        flow(first, 1, 4, 2_000_000_000, Time::from_us(130)),
        flow(second, 2, 5, 2_000_000_000, Time::from_us(310)),
    ];
    let mut scenario = with(graph(), flows, side_by_side(&multi, &tcp));
    scenario.horizon.drain = Time::from_ms(20_000);
    let (outcome, seen) = run_observed(&scenario, HostPackets::default());
    let (crowded, free) = (seen.data[&(id, 0)] as f64, seen.data[&(id, 1)] as f64);
    assert!(free > 4.0 * crowded, "{free} packets on the free path, {crowded} on the crowded one");
    let alone = 20.0 * 100e6 / 8.0 / 1_538.0;
    assert!(free > 0.85 * alone, "the free path is used: {free} of {alone}");
    assert!(progress(&outcome.flows[1]) > 0.3 * alone, "the crowded path is left to the others");
}

/// Runs a flow with a second path on which a packet takes more than a second.
fn with_a_dead_path(transport: TransportSpec) -> (FlowRecord, HostPackets) {
    let graph = || parallel(vec![FAST, Rate(10_000)], 1);
    let id = (0..100)
        .find(|id| {
            let flows = vec![flow(*id, 0, 1, 20_000_000, Time::ZERO)];
            let (outcome, seen) =
                run_observed(&with(graph(), flows, transport.clone()), HostPackets::default());
            outcome.flows[0].connect < Some(Time::from_ms(1))
                && seen.data.get(&(*id, 1)).is_some_and(|sent| *sent < 50)
        })
        .expect("the first subflow of some flow takes the good path, the second the other");
    let flows = vec![flow(id, 0, 1, 20_000_000, Time::ZERO)];
    let (outcome, seen) = run_observed(&with(graph(), flows, transport), HostPackets::default());
    (outcome.flows[0].clone(), seen)
}

#[test]
fn data_on_a_dead_path_is_carried_by_another_subflow() {
    let (record, seen) = with_a_dead_path(mptcp(2));
    let fct = record.fct.expect("it finishes");
    assert!(fct < Time::from_ms(1_000), "no packet of the slow path was awaited: {fct}");
    assert!(seen.data[&(record.flow.id, 1)] >= 1, "the slow path held something");
    assert!(record.timeouts >= 1);
    assert!(record.fct_ack.expect("the sender knows") < Time::from_ms(1_000));
}

fn scattering(switch: SwitchTrigger) -> MmptcpSpec {
    MmptcpSpec { switch, ..MmptcpSpec::default() }
}

#[test]
fn scattered_packets_have_random_source_ports_and_their_acks_one_port_pair() {
    let spec = scattering(SwitchTrigger::Congestion {});
    let flows = vec![flow(0, 0, 12, 70_000, Time::ZERO)];
    let scenario = with(fat_tree(4), flows, TransportSpec::Mmptcp(spec));
    let (outcome, seen) = run_observed(&scenario, HostPackets::default());
    assert_eq!((outcome.flows[0].copies, outcome.flows[0].data_packets), (1, 48));
    assert!(seen.ports[&(0, 0, true)].len() >= 45, "48 packets have their own ports");
    assert_eq!(seen.ports[&(0, 0, false)].len(), 1);
    assert_eq!(outcome.flows[0].timeouts, 0);
}

#[test]
fn the_threshold_follows_the_number_of_paths() {
    let flows = vec![
        flow(0, 0, 1, 10_000, Time::ZERO),
        flow(1, 0, 4, 10_000, Time::ZERO),
        flow(2, 0, 100, 10_000, Time::ZERO),
    ];
    let of = |dupack_threshold| {
        let spec = MmptcpSpec { dupack_threshold, ..MmptcpSpec::default() };
        let scenario = with(fat_tree(8), flows.clone(), TransportSpec::Mmptcp(spec));
        run_observed(&scenario, HostPackets::default())
            .1
            .thresholds
            .into_values()
            .collect::<Vec<_>>()
    };
    assert_eq!(of(ScatterThreshold::Topology), [3, 3 + 4, 3 + 16]);
    assert_eq!(of(ScatterThreshold::Tcp), [3, 3, 3]);
}

/// Two hosts with 30 layers of two switches between them.
fn layered() -> Graph {
    let (hosts, layers) = (2, 30);
    let switch = |layer: u32, side: u32| hosts + 2 + 2 * layer + side;
    let mut links = vec![(0, hosts), (1, hosts + 1)];
    for side in 0..2 {
        links.extend([(hosts, switch(0, side)), (switch(layers - 1, side), hosts + 1)]);
        let sides = (1..layers).flat_map(|layer| [(layer, 0), (layer, 1)]);
        links.extend(sides.map(|(layer, next)| (switch(layer - 1, side), switch(layer, next))));
    }
    let link = |(a, b)| {
        let (a, b, propagation) = (NodeId(a), NodeId(b), Time(1));
        Link::new(a, b, FAST, propagation, 0)
    };
    Graph {
        hosts,
        switches: 2 + 2 * layers,
        tiers: vec!["layer".into()],
        links: links.into_iter().map(link).collect(),
        ..Graph::default()
    }
}

/// The graph has a billion paths, which are counted without walking them.
#[test]
fn paths_are_counted_and_compared_however_many_there_are() {
    let flows = (0..4).map(|id| flow(id, 0, 1, 400_000, Time::ZERO)).collect();
    let mut scenario = with(layered(), flows, TransportSpec::Mmptcp(MmptcpSpec::default()));
    scenario.series.differentials = vec!["h0>h1".into()];
    let (outcome, seen) = run_observed(&scenario, HostPackets::default());
    assert!(seen.thresholds.values().all(|threshold| *threshold == 3 + (1 << 30)));
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    assert!(outcome.series[0].values.iter().any(|packets| *packets > 0.0), "flows meet somewhere");
}

#[test]
fn a_flow_switches_when_it_has_sent_the_volume_and_not_before() {
    let spec = scattering(SwitchTrigger::Volume { bytes: Bytes(100_000) });
    for (bytes, copies) in [(70_000, 1), (100_000, 1), (2_000_000, 8)] {
        let flows = vec![flow(0, 0, 12, bytes, Time::ZERO)];
        let scenario = with(fat_tree(4), flows, TransportSpec::Mmptcp(spec.clone()));
        let (outcome, seen) = run_observed(&scenario, HostPackets::default());
        assert_eq!(outcome.flows[0].copies, copies, "{bytes} bytes");
        if copies == 8 {
            let first = seen.data[&(0, 0)];
            assert!((69..400).contains(&first), "the first subflow stops: {first} packets");
            assert!((1..8).all(|copy| seen.data[&(0, copy)] > 20), "{:?}", seen.data);
        }
    }
}

/// Nothing is lost, so every retransmission mistakes reordering for loss.
#[test]
fn both_thresholds_spare_scattered_flows_needless_retransmissions() {
    let of_run = |seed, dupack_threshold, reordering: ReorderingSpec| {
        let tcp = TcpSpec { recovery: Recovery::SackPrr, reordering, ..TcpSpec::default() };
        let switch = SwitchTrigger::Volume { bytes: Bytes(1 << 40) };
        let spec = MmptcpSpec { switch, dupack_threshold, tcp, ..MmptcpSpec::default() };
        let flows =
            (0..16).map(|id| flow(id, id as u32, (id as u32 + 5) % 16, 2_000_000, Time::ZERO));
        let mut scenario = with(fat_tree(4), flows.collect(), TransportSpec::Mmptcp(spec));
        limit_queues(&mut scenario, Limit::Unlimited);
        scenario.seed = seed;
        let outcome = run(&scenario);
        assert_eq!(outcome.counters.dropped, 0);
        assert!(outcome.flows.iter().all(|f| f.fct.is_some()));
        outcome.flows.iter().map(|f| f.retransmissions).sum::<u64>()
    };
    let resent = |threshold: ScatterThreshold, reordering: ReorderingSpec| -> u64 {
        (1..=4).map(|seed| of_run(seed, threshold, reordering.clone())).sum()
    };
    let plain = resent(ScatterThreshold::Tcp, ReorderingSpec::None {});
    let topology = resent(ScatterThreshold::Topology, ReorderingSpec::None {});
    // Only the threshold: a restored window has more packets in flight that may be overtaken.
    let robust = RrTcpSpec { undo: false, ..RrTcpSpec::default() };
    let robust = resent(ScatterThreshold::Tcp, ReorderingSpec::RrTcp(robust));
    assert!(plain > 400, "three duplicate ACKs are no loss here: {plain}");
    // Over sixteen seeds 0.51 and 0.80 of the plain ones; over four seeds each varies by 0.03.
    assert!(topology * 5 < plain * 3, "{topology} against {plain}");
    assert!(robust * 10 < plain * 9, "{robust} against {plain}");
}

#[test]
fn flows_of_all_three_kinds_share_a_fabric_and_finish() {
    let part = |transport| TransportPart { transport, weight: 1, above: Bytes(0), up_to: None };
    let mixed = MixedTransport {
        parts: vec![
            part(TransportSpec::default()),
            part(mptcp(8)),
            part(TransportSpec::Mmptcp(MmptcpSpec::default())),
        ],
        by: Lot::Hosts,
    };
    let flows =
        (0..48).map(|id| flow(id, id as u32 % 16, (id as u32 * 5 + 3) % 16, 300_000, Time::ZERO));
    let flows = flows.filter(|f| f.src != f.dst).collect();
    let mut scenario = with(fat_tree(4), flows, TransportSpec::Mixed(mixed));
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(30)));
    let outcome = run(&scenario);
    assert!(outcome.flows.iter().all(|f| f.fct.is_some()));
    let kinds: BTreeSet<u8> = outcome.flows.iter().map(|f| f.copies).collect();
    assert!(kinds.contains(&1) && kinds.contains(&8), "{kinds:?}");
}

/// Loses exactly one packet of a lone 70 KB flow, each in turn. Returns the number of such losses,
/// and the number of those after which a timer expired.
fn losses_that_wait_for_the_timer(transport: &TransportSpec) -> (usize, usize) {
    let (mut losses, mut waits) = (0, 0);
    let graph = fat_tree(4);
    let edge = Routes::new(&graph).expect("it is connected").edge_switch(HostId(12));
    for step in 0..80u64 {
        let flows = vec![flow(0, 0, 12, 70_000, Time::ZERO)];
        let mut scenario = with(fat_tree(4), flows, transport.clone());
        let at = Time::from_ns(80_000 + 12_304 * step);
        scenario.faults.incidents.push(Incident::Loss {
            link: format!("s{edge}>h12"),
            one_way: true,
            probability: 1.0,
            at,
            until: Some(at + Time::from_ns(12_304)),
        });
        let outcome = run(&scenario);
        let record = &outcome.flows[0];
        assert!(record.fct.is_some());
        if outcome.counters.lost_on_links == 1 && record.retransmissions > 0 {
            losses += 1;
            waits += usize::from(record.timeouts > 0);
            let waited = record.fct >= Some(Time::from_ms(200));
            assert_eq!(waited, record.timeouts > 0, "{record:?}");
        }
    }
    (losses, waits)
}

/// MMPTCP's argument (section 1): eight windows of a short flow are too small for three duplicate
/// ACKs, so a single loss waits for the timer; one window over all paths is large enough.
#[test]
fn a_single_loss_costs_a_short_flow_a_timeout_over_eight_windows_and_rarely_over_one() {
    let tcp = TcpSpec {
        initial_window: Amount::Packets(1),
        min_rto: Time::from_ms(200),
        initial_rto: Time::from_ms(200),
        ..TcpSpec::default()
    };
    let eight = MptcpSpec { tcp: tcp.clone(), ..MptcpSpec::default() };
    let scattered = MmptcpSpec { tcp, ..MmptcpSpec::default() };
    let (losses, waits) = losses_that_wait_for_the_timer(&TransportSpec::Mptcp(eight));
    let over_eight = waits as f64 / losses as f64;
    let (losses, waits) = losses_that_wait_for_the_timer(&TransportSpec::Mmptcp(scattered));
    let over_one = waits as f64 / losses as f64;
    assert!(over_eight > 0.6, "{over_eight}");
    assert!(over_one < 0.5 * over_eight, "{over_one} against {over_eight}");
}

/// A link fails during a flow and routing never learns of it.
#[test]
fn a_flow_survives_the_failure_of_a_subflows_link() {
    let bytes = 20_000_000;
    let broken = |transport: TransportSpec, link: &str| {
        let mut scenario = with(fat_tree(4), vec![flow(0, 0, 12, bytes, Time::ZERO)], transport);
        scenario.faults.reconvergence = Time::from_ms(100_000);
        let (link, at) = (link.to_owned(), Time::from_ms(20));
        scenario.faults.incidents.push(Incident::LinkDown { link, at, until: None });
        scenario.horizon.drain = Time::from_ms(2_000);
        run(&scenario).flows[0].clone()
    };
    // The uplinks of the first edge switch, in a k = 4 fabric of 16 hosts and 20 switches.
    let graph = fat_tree(4);
    let edge = graph.links.iter().find(|l| l.a == NodeId(0)).expect("host 0 has a link").b;
    let ports = (0..graph.links.len()).map(|link| PortId::both_directions(link)[0]);
    let uplinks: Vec<String> = ports
        .filter(|&port| graph.far_end(port.reversed()) == edge)
        .map(|port| link_name(&graph, port))
        .collect();
    assert_eq!(uplinks.len(), 2);
    let tcp = uplinks.iter().filter(|l| broken(TransportSpec::default(), l).fct.is_some()).count();
    assert_eq!(tcp, 1, "TCP outlives the failure of the link that it does not use");
    for uplink in &uplinks {
        let record = broken(mptcp(8), uplink);
        assert!(record.fct.is_some() && record.timeouts > 0, "{uplink}: {record:?}");
    }
}
