//! RepFlow and RepSYN: the winning copy, the end of the others, and the columns about them.

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::queue::{QueueSpec, ecn::Ecn};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::hedge::{Hedge, HedgeDelay};
use tailcut_net::replicate::repflow::{Loser, RepFlow};
use tailcut_net::replicate::repsyn::RepSyn;
use tailcut_net::replicate::split::Split;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::transport::tcp::CongestionSpec;

use crate::run::ledger::Ledger;
use crate::run::support::{flow, run, run_observed, scenario, tcp};
use tailcut_net::topology::HostId;

const FAST: Rate = Rate(1_000_000_000);

/// The packets that hosts send, in order: time, sending host, copy, flags.
#[derive(Default)]
struct Sent(Vec<(Time, u32, u8, Flags)>);

impl Observer for Sent {
    fn host_sends(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.0.push((now, host.0, packet.copy, packet.flags));
    }
}

impl Sent {
    fn all(&self, flags: Flags) -> impl Iterator<Item = &(Time, u32, u8, Flags)> {
        self.0.iter().filter(move |sent| sent.3.has(flags))
    }
    fn data_of(&self, copy: u8) -> usize {
        self.all(Flags::DATA).filter(|sent| sent.2 == copy).count()
    }
}

/// Returns one flow between two hosts with a fast and a slow path, whose first copy takes the slow
/// one.
fn slow_and_fast(bytes: u64, slow: Rate, replicate: ReplicateSpec) -> Scenario {
    let on_paths = |id: u64, bytes: u64, slow: Rate, replicate: &ReplicateSpec| {
        let paths = ParallelPaths {
            hosts_per_side: 1,
            path_rates: vec![slow, FAST],
            ..ParallelPaths::default()
        };
        let graph = paths.build().expect("the parameters are valid");
        let mut scenario = scenario(graph, vec![flow(id, 0, 1, bytes, Time::ZERO)]);
        scenario.scheme.replicate = replicate.clone();
        scenario
    };
    // ECMP hashes port numbers, which follow from the flow's id: about one in four has its copies
    // so.
    let first_is_slow = |id: &u64| {
        let copies = ReplicateSpec::Repflow(RepFlow::default());
        run(&on_paths(*id, 1, Rate(100_000_000), &copies)).flows[0].winner == Some(1)
    };
    let id = (0..100).find(first_is_slow).expect("about every fourth flow is such");
    on_paths(id, bytes, slow, &replicate)
}

fn repflow(parameters: RepFlow) -> ReplicateSpec {
    ReplicateSpec::Repflow(parameters)
}

fn record(scenario: &Scenario) -> FlowRecord {
    run(scenario).flows[0].clone()
}

#[test]
fn the_first_copy_to_finish_wins_and_the_flow_takes_its_time() {
    let slow = Rate(100_000_000);
    let alone = record(&slow_and_fast(50_000, slow, ReplicateSpec::None));
    let replicated = record(&slow_and_fast(50_000, slow, repflow(RepFlow::default())));
    assert_eq!((replicated.winner, replicated.copies), (Some(1), 2));
    assert!(replicated.fct < alone.fct, "{:?} < {:?}", replicated.fct, alone.fct);
    assert_eq!(alone.winner, Some(0));
}

#[test]
fn the_receiver_resets_the_loser_by_a_packet() {
    let scenario = slow_and_fast(50_000, Rate(100_000_000), repflow(RepFlow::default()));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    let finished = outcome.flows[0].fct.expect("the flow finishes");
    let resets: Vec<_> = sent.all(Flags::RST).filter(|reset| reset.1 == 1).collect();
    assert_eq!((resets[0].0, resets[0].2), (finished, 0));
    // Packets that arrive later are answered by a reset, too (RFC 9293 3.10.7.1).
    assert!(resets.iter().all(|reset| reset.2 == 0));
    assert!(sent.data_of(0) < sent.data_of(1), "the loser stops before its end");
}

#[test]
fn a_loser_that_may_finish_sends_everything_and_is_never_reset() {
    let parameters = RepFlow { loser: Loser::Finish, ..RepFlow::default() };
    let scenario = slow_and_fast(50_000, Rate(100_000_000), repflow(parameters));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    assert_eq!(sent.all(Flags::RST).count(), 0);
    assert_eq!((sent.data_of(0), sent.data_of(1)), (35, 35));
    assert_eq!((outcome.flows[0].winner, outcome.flows[0].data_packets), (Some(1), 70));
}

#[test]
fn further_copies_start_after_the_copy_delay() {
    let parameters = RepFlow { copies: 3, copy_delay: Time::from_us(30), ..RepFlow::default() };
    let scenario = slow_and_fast(50_000, FAST, repflow(parameters));
    let (_, sent) = run_observed(&scenario, Sent::default());
    let syns: Vec<_> =
        sent.all(Flags::SYN).filter(|syn| syn.1 == 0).map(|syn| (syn.0, syn.2)).collect();
    assert_eq!(syns, [(Time::ZERO, 0), (Time::from_us(30), 1), (Time::from_us(60), 2)]);
}

#[test]
fn a_flow_that_ends_before_the_copy_delay_opens_no_copy() {
    let parameters = RepFlow { copy_delay: Time::from_ms(5), ..RepFlow::default() };
    let scenario = slow_and_fast(1_000, FAST, repflow(parameters));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    assert_eq!((outcome.flows[0].copies, outcome.flows[0].winner), (1, Some(0)));
    assert_eq!(sent.all(Flags::SYN).filter(|syn| syn.1 == 0).count(), 1);
}

/// The path is so slow that its SYN arrives after the end of the flow.
#[test]
fn a_syn_that_arrives_after_the_flow_has_ended_is_answered_by_a_reset() {
    let scenario = slow_and_fast(1_000, Rate(1_000_000), repflow(RepFlow::default()));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    let finished = outcome.flows[0].fct.expect("the flow finishes");
    let resets: Vec<_> =
        sent.all(Flags::RST).filter(|reset| reset.1 == 1 && reset.2 == 0).collect();
    assert_eq!(resets.len(), 1);
    assert!(resets[0].0 > finished);
    assert_eq!(sent.data_of(0), 0);
}

#[test]
fn the_threshold_is_inclusive() {
    for (bytes, copies, shared) in [(100_000, 2, Some(0)), (100_001, 1, None)] {
        let flow = record(&slow_and_fast(bytes, FAST, repflow(RepFlow::default())));
        assert_eq!((flow.copies, flow.shared_hops), (copies, shared), "{bytes} bytes");
    }
}

#[test]
fn repsyn_sends_data_on_the_connection_that_is_established_first_and_resets_the_other() {
    let scenario = slow_and_fast(50_000, Rate(1_000_000), ReplicateSpec::Repsyn(RepSyn::default()));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    let flow = &outcome.flows[0];
    assert_eq!((flow.winner, flow.copies), (Some(1), 2));
    assert_eq!((sent.data_of(0), sent.data_of(1)), (0, 35));
    // The other connection is still opening; its SYN-ACK finds no connection (RFC 9293).
    let resets: Vec<_> = sent.all(Flags::RST).map(|reset| (reset.1, reset.2)).collect();
    assert!(!resets.is_empty() && resets.iter().all(|reset| reset.1 == 0), "{resets:?}");
    assert!(flow.connect < flow.fct);
}

#[test]
fn repsyn_takes_no_longer_than_the_faster_path_alone() {
    let slow = Rate(1_000_000);
    let with = record(&slow_and_fast(50_000, slow, ReplicateSpec::Repsyn(RepSyn::default())));
    let without = record(&slow_and_fast(50_000, slow, ReplicateSpec::None));
    assert!(with.fct < without.fct);
    assert_eq!(with.data_packets, 35);
}

/// Two copies take the same first uplink with probability 2/k and the same whole path with (2/k)^2.
/// Between pods a path has four links between the edge switches; copies below the same core share
/// all of them, copies below the same aggregation switches two.
#[test]
fn copies_share_hops_as_often_as_ecmp_predicts() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let count = 4_000;
    let one =
        |id: u64| flow(id, (id % 4) as u32, 4 + (id / 4 % 12) as u32, 1, Time::from_us(50 * id));
    let mut scenario = scenario(graph, (0..count).map(one).collect());
    scenario.horizon.arrivals = Time::from_us(50 * count);
    scenario.scheme.replicate = repflow(RepFlow::default());
    let outcome = run(&scenario);
    let share = |hops: u8| {
        let sharing = outcome.flows.iter().filter(|flow| flow.shared_hops == Some(hops)).count();
        sharing as f64 / count as f64
    };
    // Four standard deviations of 4,000 draws at 1/4.
    let error = 4.0 * (0.25 * 0.75 / count as f64).sqrt();
    assert!((share(4) - 0.25).abs() < error, "whole path: {}", share(4));
    assert!((share(2) - 0.25).abs() < error, "aggregation switches only: {}", share(2));
    assert!((share(0) + share(2) + share(4) - 1.0).abs() < 1e-9);
}

#[test]
fn counters_of_a_flow_include_all_copies() {
    let flow = record(&slow_and_fast(50_000, FAST, repflow(RepFlow::default())));
    assert!(
        (36..=70).contains(&flow.data_packets),
        "{} packets on two connections",
        flow.data_packets
    );
    assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
}

/// Copies of a flow compete like any connections, with every congestion control.
#[test]
fn repflow_and_repsyn_replicate_any_congestion_control() {
    let congestions = [
        CongestionSpec::default(),
        CongestionSpec::Cubic(Default::default()),
        CongestionSpec::Dctcp(Default::default()),
    ];
    let methods =
        [ReplicateSpec::Repflow(RepFlow::default()), ReplicateSpec::Repsyn(RepSyn::default())];
    for congestion in congestions {
        for replicate in &methods {
            let graph = FatTree { k: 4, ..FatTree::default() }.build().unwrap();
            let flows = (0..40u64)
                .map(|id| {
                    let bytes = if id % 8 == 0 { 1_000_000 } else { 30_000 };
                    flow(id, id as u32 % 15, 15, bytes, Time::from_us(20 * id))
                })
                .collect();
            let mut scenario = scenario(graph, flows);
            scenario.scheme.replicate = replicate.clone();
            scenario.scheme.queue = QueueSpec::Ecn(Ecn::default());
            let tcp = tcp(&mut scenario);
            (tcp.ecn, tcp.congestion) = (true, congestion.clone());
            let (outcome, ledger) = run_observed(&scenario, Ledger::new(&scenario));
            ledger.check(&outcome);
            let copies = |short: bool| {
                let of = move |flow: &&FlowRecord| (flow.flow.bytes < 100_000) == short;
                outcome.flows.iter().filter(of).map(|flow| flow.copies).max()
            };
            assert_eq!((copies(true), copies(false)), (Some(2), Some(1)));
            assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()), "{congestion:?}");
        }
    }
}

/// One piece follows another, each from a port of its own, and together they have the flow's bytes.
#[test]
fn a_split_flow_is_a_sequence_of_small_connections() {
    let split = ReplicateSpec::Split(Split { threshold: Bytes(20_000), piece: Bytes(10_000) });
    let scenario = slow_and_fast(95_000, FAST, split);
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    let split_flow = &outcome.flows[0];
    // Nine pieces of seven segments and one of four, with a handshake for each.
    assert_eq!((split_flow.copies, split_flow.data_packets, split_flow.winner), (10, 67, Some(0)));
    let syns: Vec<_> =
        sent.0.iter().filter(|s| s.3.has(Flags::SYN) && s.1 == 0).map(|s| s.0).collect();
    assert_eq!(syns.len(), 10);
    assert!(split_flow.fct < split_flow.fct_ack && split_flow.fct > syns.last().copied());
    let whole = record(&slow_and_fast(20_000, FAST, ReplicateSpec::None));
    let short = Split { threshold: Bytes(20_000), piece: Bytes(10_000) };
    let short = record(&slow_and_fast(20_000, FAST, ReplicateSpec::Split(short)));
    assert_eq!((short.copies, short.fct), (1, whole.fct), "short flows stay whole");
}

fn hedge(delay: Time) -> ReplicateSpec {
    ReplicateSpec::Hedge(Hedge { delay: HedgeDelay::After(delay), ..Hedge::default() })
}

#[test]
fn a_hedged_flow_that_is_late_is_sent_once_more_and_the_copy_overtakes() {
    let slow = Rate(10_000_000);
    let scenario = slow_and_fast(50_000, slow, hedge(Time::from_ms(2)));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    let syns: Vec<_> =
        sent.all(Flags::SYN).filter(|syn| syn.1 == 0).map(|syn| (syn.0, syn.2)).collect();
    assert_eq!(syns, [(Time::ZERO, 0), (Time::from_ms(2), 1)]);
    assert_eq!((outcome.flows[0].winner, outcome.flows[0].copies), (Some(1), 2));
    assert!(sent.all(Flags::RST).any(|reset| (reset.1, reset.2) == (1, 0)), "the loser is reset");
}

#[test]
fn a_hedged_flow_that_ends_in_time_is_sent_once() {
    let flow = record(&slow_and_fast(1_000, FAST, hedge(Time::from_ms(5))));
    assert_eq!((flow.copies, flow.winner), (1, Some(0)));
}

/// The flow has arrived, but its sender does not know yet.
#[test]
fn a_hedge_that_comes_after_the_end_is_answered_by_a_reset() {
    let alone = record(&slow_and_fast(1_000, FAST, ReplicateSpec::None));
    let received = alone.fct.expect("it finishes");
    let scenario = slow_and_fast(1_000, FAST, hedge(received + Time(1)));
    let (outcome, sent) = run_observed(&scenario, Sent::default());
    assert_eq!((outcome.flows[0].copies, outcome.flows[0].winner), (2, Some(0)));
    assert_eq!(outcome.flows[0].fct, alone.fct);
    let answers: Vec<_> =
        sent.all(Flags::RST).filter(|reset| reset.1 == 1).map(|reset| reset.2).collect();
    assert_eq!((answers, sent.data_of(1)), (vec![1], 0));
}
