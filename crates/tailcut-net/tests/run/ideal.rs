//! The ideal completion time is a lower bound for every scheme, and exact for a lone flow on one
//! path. Every run of these tests asserts the bound (`network/outcome.rs`); the cases here show why
//! it holds.

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::round_robin::RoundRobin;
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::queue::{QueueSpec, drr::Drr, red::Red};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::Graph;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::leaf_spine::LeafSpine;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::topology::star::Star;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::mmptcp::MmptcpSpec;
use tailcut_net::transport::mptcp::MptcpSpec;
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::{CongestionSpec, HostDefaults, Recovery, TcpSpec};

use crate::run::support::{flow, row, run, scenario, tcp};

const FAST: Rate = Rate(1_000_000_000);

fn alone(graph: &Graph, id: u64, dst: u32, bytes: u64) -> Scenario {
    scenario(graph.clone(), vec![flow(id, 0, dst, bytes, Time::ZERO)])
}

fn record(scenario: &Scenario) -> FlowRecord {
    run(scenario).flows[0].clone()
}

fn parallel(path_rates: &[Rate]) -> Graph {
    let (paths, path_rates) = (path_rates.len() as u32, path_rates.to_vec());
    ParallelPaths { paths, path_rates, ..ParallelPaths::default() }.build().expect("it is valid")
}

/// Returns a flow's completion time over its ideal time.
fn slowdown(record: &FlowRecord) -> f64 {
    record.fct.expect("it finishes").as_secs_f64() / record.ideal_fct.as_secs_f64()
}

/// The last segment of 320 B fits into a window of 12,000 B without room for a ninth full one.
#[test]
fn a_short_last_segment_leaves_with_the_window_that_has_room_for_it() {
    let graph = row(&[(Rate(10_000_000_000), Time::from_us(50)); 3]);
    let record = record(&alone(&graph, 0, 1, 12_000));
    assert_eq!(record.fct, Some(Time(463_116_800)));
    assert_eq!(record.ideal_fct, Time(463_116_800));
}

/// After its first ACKs Linux acknowledges every second segment, so the ACK of a short last segment
/// waits behind no other.
#[test]
fn with_delayed_acks_the_ideal_ack_time_is_a_bound_for_short_last_segments() {
    let graph = row(&[(FAST, Time::from_us(1)); 3]);
    for segments in 20..24 {
        let mut scenario = alone(&graph, 0, 1, segments * 1_448 + 56);
        *tcp(&mut scenario) = HostDefaults::Linux.defaults();
        let record = record(&scenario);
        assert!(record.fct_ack.expect("it ends") >= record.ideal_fct_ack, "{segments} segments");
    }
}

/// Initial and receive windows, in whole segments and not.
const WINDOWS: [(u64, u64); 4] =
    [(12_000, 64_000), (4 * 1_460, 20 * 1_460), (2_000, 5_000), (30_001, 1 << 20)];

/// Sizes around multiples of the segment, the initial and the receive window.
fn sizes((initial, receive): (u64, u64)) -> Vec<u64> {
    let around =
        [1_460, 2 * 1_460, initial, 2 * initial, 3 * initial, receive, 2 * receive, 300_000];
    around.into_iter().flat_map(|size| [size - 1, size, size + 1, size + 319, size + 320]).collect()
}

#[test]
fn a_lone_flow_takes_its_ideal_time_whatever_its_size_and_windows() {
    let host = |graph: Graph| (graph.hosts - 1, graph);
    let far = Time::from_us(50);
    let graphs = [
        host(row(&[(Rate(10_000_000_000), far); 3])),
        host(row(&[(FAST, far), (Rate(100_000_000), Time::from_us(5)), (FAST, far)])),
        host(FatTree { k: 4, ..FatTree::default() }.build().expect("k is even")),
        host(
            FatTree { k: 4, rate: OneOrEach::One(Rate(10_000_000_000)), ..FatTree::default() }
                .build()
                .expect("k is even"),
        ),
        host(LeafSpine::default().build().expect("the defaults are valid")),
        host(Star { hosts: 3, ..Star::default() }.build().expect("it is valid")),
    ];
    for (number, (dst, graph)) in graphs.iter().enumerate() {
        for windows in WINDOWS {
            for bytes in sizes(windows) {
                for recovery in [Recovery::Newreno, Recovery::SackPrr] {
                    let mut scenario = alone(graph, bytes, *dst, bytes);
                    let spec = tcp(&mut scenario);
                    spec.initial_window = Amount::Bytes(windows.0);
                    spec.receive_window = Bytes(windows.1);
                    (spec.recovery, spec.min_rto) = (recovery, Time::from_ms(1_000));
                    let record = record(&scenario);
                    let what = format!("graph {number}, windows {windows:?}, {bytes} bytes");
                    assert_eq!(record.fct, Some(record.ideal_fct), "{what}");
                    assert_eq!(record.fct_ack, Some(record.ideal_fct_ack), "{what}");
                }
            }
        }
    }
}

/// Acknowledgements are hashed by themselves and may return on the faster path.
#[test]
fn the_ideal_time_follows_the_paths_of_data_and_of_acks() {
    let graph = parallel(&[FAST, Rate(200_000_000)]);
    let ideals = (0..40).map(|id| {
        let record = record(&alone(&graph, id, 2, 40_000));
        assert_eq!(record.fct, Some(record.ideal_fct), "flow {id}");
        record.ideal_fct
    });
    let mut ideals: Vec<Time> = ideals.collect();
    ideals.sort_unstable();
    ideals.dedup();
    assert_eq!(ideals.len(), 4, "each way on one of two paths: {ideals:?}");
}

/// Four paths of a quarter of the host's rate carry four times as much as one.
#[test]
fn the_packets_of_a_sprayed_flow_share_all_paths() {
    let graph = parallel(&[Rate(FAST.0 / 4); 4]);
    let one_path = record(&alone(&graph, 0, 2, 1_000_000));
    let mut sprayed = alone(&graph, 0, 2, 1_000_000);
    sprayed.scheme.balance = BalanceSpec::RoundRobin(RoundRobin {});
    let sprayed = record(&sprayed);
    assert!(one_path.ideal_fct.0 > 3 * sprayed.ideal_fct.0, "{one_path:?} {sprayed:?}");
    assert!((1.0..1.1).contains(&slowdown(&sprayed)), "{sprayed:?}");
}

#[test]
fn subflows_share_the_paths_that_they_have() {
    let graph = parallel(&[Rate(FAST.0 / 4); 4]);
    for id in 0..20 {
        let mut several = alone(&graph, id, 2, 1_000_000);
        several.scheme.transport = TransportSpec::Mptcp(MptcpSpec {
            subflows: 4,
            tcp: TcpSpec { receive_window: Bytes(1 << 20), ..TcpSpec::default() },
            receive_window: Bytes(1 << 20),
        });
        let record = record(&several);
        assert!((1.0..1.4).contains(&slowdown(&record)), "{record:?}");
    }
}

/// Deficit round robin serves the last 9 bytes, which have their own ports, before the first 1,460.
/// A slow link carries them while the full segment is still arriving.
#[test]
fn a_short_last_segment_overtakes_a_full_one_that_is_served_in_turn() {
    let graph = row(&[(FAST, Time::from_us(1)), (Rate(100_000_000), Time::from_us(1))]);
    let mut scattered = alone(&graph, 0, 1, 1_469);
    scattered.scheme.transport = TransportSpec::Mmptcp(MmptcpSpec::default());
    scattered.scheme.queue =
        QueueSpec::Drr(Drr { quantum: Bytes(366), hosts: true, ..Drr::default() });
    let record = record(&scattered);
    assert!(record.fct.expect("it finishes") >= record.ideal_fct, "{record:?}");
}

#[test]
fn the_ideal_time_of_two_copies_is_that_of_the_faster_path() {
    let graph = parallel(&[FAST, Rate(50_000_000)]);
    let both = |id: u64, replicate: ReplicateSpec| {
        let mut scenario = alone(&graph, id, 2, 40_000);
        scenario.scheme.replicate = replicate;
        record(&scenario)
    };
    let better = (0..40).filter(|id| {
        let one = both(*id, ReplicateSpec::None);
        let two = both(*id, ReplicateSpec::Repflow(RepFlow::default()));
        assert!(two.ideal_fct <= one.ideal_fct, "flow {id}");
        assert!((1.0..2.3).contains(&slowdown(&two)), "flow {id}: {two:?}");
        two.ideal_fct < one.ideal_fct
    });
    assert!(better.count() > 4, "one in four has the first copy on the slow path, the second not");
}

/// The links have their built rate for the first half of the flow, then ten times that.
#[test]
fn the_ideal_time_counts_raised_link_rates() {
    let slow = Rate(100_000_000);
    let mut scenario =
        alone(&row(&[(FAST, Time::from_us(5)), (slow, Time::from_us(5))]), 0, 1, 2_000_000);
    let as_built = record(&scenario);
    scenario.faults.incidents = vec![Incident::Rate {
        link: "s0>h1".into(),
        one_way: false,
        rate: FAST,
        at: Time::from_ms(80),
        until: None,
    }];
    let faster = record(&scenario);
    assert!(faster.fct < Some(as_built.ideal_fct), "{faster:?}");
    assert!(faster.fct >= Some(faster.ideal_fct), "{faster:?}");
}

/// In congestion avoidance CUBIC keeps fractions of a byte that NewReno drops.
#[test]
fn cubic_from_a_low_threshold_is_no_faster_than_slow_start() {
    for bytes in [30_000, 100_000, 1_000_000] {
        let mut scenario = alone(&row(&[(FAST, Time::from_us(500)); 2]), 0, 1, bytes);
        let spec = tcp(&mut scenario);
        spec.congestion = CongestionSpec::Cubic(CubicSpec { c: 1e12, ..CubicSpec::default() });
        spec.initial_ssthresh = Limit::AtMost(Amount::Packets(2));
        spec.receive_window = Bytes(1 << 30);
        let record = record(&scenario);
        assert!(record.fct >= Some(record.ideal_fct), "{record:?}");
    }
}

/// Random early detection may drop the handshake's ACK at a link that is idle again when the first
/// segment arrives.
#[test]
fn with_early_drops_the_ideal_time_waits_for_no_handshake_ack() {
    let links = [(Rate(100_000_000_000), Time::from_us(1)), (Rate(10_000_000), Time::from_us(1))];
    let ideal = |queue: Option<QueueSpec>| {
        let mut scenario = alone(&row(&links), 0, 1, 1);
        if let Some(queue) = queue {
            scenario.scheme.queue = queue;
        }
        record(&scenario).ideal_fct
    };
    let ack = Time(links[1].0.transmission_time(78).0);
    let apart = ideal(None) - ideal(Some(QueueSpec::Red(Red::default())));
    assert!(apart > Time(ack.0 * 9 / 10) && apart <= ack, "{apart} of {ack}");
}
