//! NDP over trimming queues: only headers are ever dropped, and pulls keep the receiver's link
//! busy.

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::{FlowRecord, Outcome};
use tailcut_net::measure::segments::SegmentObserver;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::trimming::Trimming;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::Graph;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::star::Star;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::ndp::NdpSpec;

use crate::run::support::{flow, limit_queues, row, run, run_observed, scenario};

fn ndp(graph: Graph, flows: Vec<Flow>) -> Scenario {
    let mut scenario = scenario(graph, flows);
    scenario.scheme.transport = TransportSpec::Ndp(NdpSpec::default());
    scenario.scheme.queue = QueueSpec::Trimming(Trimming::default());
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    scenario
}

/// Only observers need events for transmitters that fall idle; links without propagation delay have
/// them anyway.
#[test]
fn departures_are_the_same_with_and_without_events_of_their_own() {
    let queues = [
        (QueueSpec::Trimming(Trimming::default()), TransportSpec::Ndp(NdpSpec::default())),
        (QueueSpec::Pfabric(Default::default()), TransportSpec::Pfabric(Default::default())),
        (QueueSpec::Drr(Default::default()), TransportSpec::default()),
    ];
    for length in [Time::ZERO, Time::from_ns(300), Time::from_us(50)] {
        for (queue, transport) in queues.clone() {
            let propagation = OneOrEach::One(length);
            let graph =
                FatTree { k: 4, propagation, ..FatTree::default() }.build().expect("k is even");
            let flows =
                (0..30).map(|id| flow(id, id as u32 % 7, 8 + id as u32 % 3, 90_000, Time::ZERO));
            let mut scenario = ndp(graph, flows.collect());
            (scenario.scheme.queue, scenario.scheme.transport) = (queue, transport);
            let deferred = run(&scenario);
            let (mut told, _) = run_observed(&scenario, SegmentObserver::default());
            let fewer = deferred.counters.events < told.counters.events;
            assert_eq!(fewer, length > Time::ZERO, "{:?}", scenario.scheme);
            assert!(deferred.tiers.iter().any(|tier| tier.max_queue > 5), "{:?}", scenario.scheme);
            told.counters.events = deferred.counters.events;
            assert_eq!(deferred, told);
        }
    }
}

fn star(hosts: u32) -> Graph {
    Star { hosts, ..Star::default() }.build().expect("hosts are enough")
}

/// Lost packets are sent again without a pull and may be pulled as well. More than the first window
/// may therefore be in flight, so the lower bound ignores it.
#[test]
fn the_ideal_time_does_not_depend_on_the_first_window() {
    let far = [(Rate(1_000_000_000), Time::from_us(100)); 3];
    let ideal = |initial_window| {
        let mut scenario = ndp(row(&far), vec![flow(0, 0, 1, 100_000, Time::ZERO)]);
        let spec = NdpSpec { initial_window, ..NdpSpec::default() };
        scenario.scheme.transport = TransportSpec::Ndp(spec);
        run(&scenario).flows[0].ideal_fct
    };
    assert_eq!(ideal(1), ideal(1_000));
}

/// Runs `fan_in` hosts that each send `bytes` to host 0 at once.
fn incast_in(graph: Graph, fan_in: u32, bytes: u64) -> Outcome {
    let flows = (1..=fan_in).map(|src| flow(u64::from(src), src, 0, bytes, Time::ZERO)).collect();
    run(&ndp(graph, flows))
}

fn incast(fan_in: u32, bytes: u64) -> Outcome {
    incast_in(star(fan_in + 1), fan_in, bytes)
}

/// Returns the last completion time over the time that the receiver's link needs for all packets.
fn in_link_times(outcome: &Outcome, rate: Rate) -> f64 {
    let wire = |bytes: u64| bytes + 78 * bytes.div_ceil(1_460);
    let bytes: u64 = outcome.flows.iter().map(|record| wire(record.flow.bytes)).sum();
    last(outcome).0 as f64 / rate.transmission_time(bytes).0 as f64
}

fn last(outcome: &Outcome) -> Time {
    outcome.flows.iter().map(|flow| flow.fct.expect("it finishes")).max().expect("there are flows")
}

fn timeouts(outcome: &Outcome) -> u32 {
    outcome.flows.iter().map(|flow| flow.timeouts).sum()
}

#[test]
fn a_lone_ndp_flow_takes_its_ideal_time_without_a_handshake() {
    let wire = [(Rate(1_000_000_000), Time::from_us(5)); 3];
    for bytes in [1, 1_460, 17_520, 100_000, 2_000_000] {
        let outcome = run(&ndp(row(&wire), vec![flow(0, 0, 1, bytes, Time::ZERO)]));
        let record = &outcome.flows[0];
        assert_eq!(record.fct, Some(record.ideal_fct), "{bytes} B");
        // The SYN's answer comes before that of a small segment.
        let exact = record.fct_ack == Some(record.ideal_fct_ack);
        assert!(exact || bytes == 1, "{bytes} B");
        assert!(bytes > 1 || record.fct < record.connect);
    }
}

#[test]
fn an_ndp_incast_is_trimmed_and_keeps_the_receivers_link_busy() {
    for fan_in in [4, 20] {
        let outcome = incast(fan_in, 90_000);
        assert_eq!(timeouts(&outcome), 0);
        let again: u64 = outcome.flows.iter().map(|flow| flow.retransmissions).sum();
        assert!(again > 10, "something is trimmed: {again}");
        // 62 segments each, back to back, and the headers of trimmed packets without the returned
        // ones.
        let returned = outcome.counters.further("headers_returned").expect("it is counted");
        let bytes = u64::from(fan_in) * (61 * 1_538 + 940 + 78) + 84 * (again - returned);
        let (took, busy) = (last(&outcome), Time(bytes * 8_000));
        assert!(took > busy && took < busy + Time::from_us(60), "{took:?} {busy:?}");
    }
}

/// More headers arrive than their queue holds: they are returned, and no flow waits for a timer.
/// Without the return, nothing would tell of a flow whose only packet's header finds no room.
#[test]
fn headers_without_room_are_returned_and_the_receivers_link_stays_busy() {
    let gbps = |gbps: u64| Rate(gbps * 1_000_000_000);
    let star =
        |hosts, rate| Star { hosts, rate, ..Star::default() }.build().expect("hosts are enough");
    let tree = |k| FatTree { k, ..FatTree::default() }.build().expect("k is even");
    for (graph, fan_in, bytes) in [
        (star(256, gbps(25)), 255, 4_000),
        (star(256, gbps(25)), 255, 1_460),
        (star(256, gbps(100)), 255, 10_000),
        (tree(8), 100, 90_000),
        (star(51, gbps(10)), 50, 1_000_000),
    ] {
        let rate = graph.links[0].rate;
        let outcome = incast_in(graph, fan_in, bytes);
        let returned = outcome.counters.further("headers_returned").expect("it is counted");
        let name = format!("{fan_in} of {bytes} B at {rate}");
        let times = in_link_times(&outcome, rate);
        println!(
            "{name}: {times:.3} link times, {returned} returned, {:?}",
            outcome.counters.scheme_counters
        );
        assert!(returned > 0, "{name}: there is no room for some headers");
        assert_eq!(timeouts(&outcome), 0, "{name}: {:?}", outcome.counters.scheme_counters);
        assert!(times < 1.2, "{name}: {times} link times");
    }
}

/// Pulls are paced by the current rate of the link.
#[test]
fn pulls_follow_a_change_of_the_links_rate() {
    let chain = |built: u64, changed: u64| {
        let links = [(Rate(1_000_000_000), Time::from_us(1)), (Rate(built), Time::from_us(1))];
        let mut scenario = ndp(row(&links), vec![flow(0, 0, 1, 1_000_000, Time::ZERO)]);
        let (link, at) = ("s0>h1".into(), Time::from_ns(1));
        let rate = Rate(changed);
        scenario.faults.incidents =
            vec![Incident::Rate { link, one_way: false, rate, at, until: None }];
        last(&run(&scenario)).0 as f64
    };
    let (slow, fast) = (100_000_000, 1_000_000_000);
    for (built, now) in [(slow, fast), (fast, slow)] {
        let ratio = chain(built, now) / chain(now, now);
        assert!((ratio - 1.0).abs() < 0.01, "{built} to {now}: {ratio}");
    }
}

/// A host pulls from its senders in turn.
#[test]
fn flows_that_end_at_one_host_share_its_link() {
    let outcome = incast(8, 1_000_000);
    let first = outcome.flows.iter().filter_map(|flow| flow.fct).min().expect("all finish");
    assert!(first.0 * 100 > last(&outcome).0 * 97, "{first:?} {:?}", last(&outcome));
}

/// Every host sends to another over sprayed paths.
#[test]
fn sprayed_flows_fill_a_fat_tree() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let flows = (0..16).map(|src| flow(src.into(), src, (src + 5) % 16, 3_000_000, Time::ZERO));
    let outcome = run(&ndp(graph, flows.collect()));
    assert_eq!((outcome.counters.dropped, timeouts(&outcome)), (0, 0));
    let slowdown =
        |flow: &FlowRecord| flow.fct.expect("it finishes").0 as f64 / flow.ideal_fct.0 as f64;
    let slowest = outcome.flows.iter().map(slowdown).fold(0.0, f64::max);
    println!("slowest {slowest}");
    assert!(slowest < 1.25, "{slowest}");
}

/// Packets, answers and pulls are all lost with equal probability.
#[test]
fn ndp_recovers_from_losses_of_data_answers_and_pulls() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let flows = (0..16).map(|src| flow(src.into(), src, (src + 5) % 16, 200_000, Time::ZERO));
    let mut scenario = ndp(graph, flows.collect());
    for (at, host) in (0..16).enumerate() {
        let link = format!("h{host}>s{}", at / 2);
        let at = Time::ZERO;
        let loss = Incident::Loss { link, one_way: false, probability: 0.05, at, until: None };
        scenario.faults.incidents.push(loss);
    }
    let outcome = run(&scenario);
    assert!(outcome.counters.lost_on_links > 100 && timeouts(&outcome) > 0);
    assert!(outcome.flows.iter().all(|flow| flow.fct_ack.is_some()));
}

/// On a dropping queue the timeout repairs losses.
#[test]
fn completes_by_timeouts_on_a_dropping_queue() {
    let mut scenario =
        ndp(star(9), (1..9).map(|src| flow(src.into(), src, 0, 90_000, Time::ZERO)).collect());
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(8)));
    let outcome = run(&scenario);
    assert!(outcome.counters.dropped > 50 && timeouts(&outcome) > 0);
    assert!(outcome.flows.iter().all(|flow| flow.fct_ack.is_some()));
}
