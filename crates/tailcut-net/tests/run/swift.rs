//! Swift's round trip for 1 to 100 flows compared with its target (Kumar et al. 2020, sections 3.2,
//! 3.5 and 3.6), and the reasons of the difference.

use std::collections::BTreeMap;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::Limit;
use tailcut_net::component::OneOrEach;
use tailcut_net::measure::Observer;
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::transport::tcp::congestion::Congestion;
use tailcut_net::transport::tcp::congestion::swift::SwiftSpec;
use tailcut_net::transport::tcp::{CongestionSpec, Sender};

use crate::run::support::{flow, run_observed, scenario, tcp};

const RATE: Rate = Rate(1_000_000_000);
const FRAME: f64 = 1_538.0;
/// The transmission time of a frame, in microseconds.
const PACKET: f64 = FRAME * 8e6 / RATE.0 as f64;
/// The round trip without queues: 6 us of propagation, a segment over one link of 1 Gbps and two of
/// 4 Gbps, and its ACK.
const ROUND_TRIP: f64 = 6.0 + 12.304 * 1.5 + 0.624 * 1.5;
const WARM_UP: Time = Time::from_ms(50);
const END: Time = Time::from_ms(250);

/// Observations of a flow after the warm-up.
#[derive(Default, Clone, Copy)]
struct FlowAverages {
    /// The first unacknowledged segment at the end of the warm-up, and at the end.
    una: (u32, u32),
    /// The current target in microseconds, which holds from `since` on.
    target: f64,
    since: Time,
    /// The integral of the target over `time`.
    area: f64,
    time: f64,
    /// The window, and its total growth, in segments.
    window: f64,
    grown: f64,
}

#[derive(Default)]
struct TargetObserver(BTreeMap<u64, FlowAverages>);

impl Observer for TargetObserver {
    fn tcp_sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
        let Congestion::Swift(swift) = sender.congestion() else { panic!("not Swift") };
        let Some(window) = swift.window().filter(|_| now >= WARM_UP) else { return };
        let una = sender.una();
        let seen = self.0.entry(flow).or_insert(FlowAverages {
            una: (una, una),
            since: now,
            ..FlowAverages::default()
        });
        let time = now.since(seen.since).as_secs_f64();
        seen.area += seen.target * time;
        seen.time += time;
        seen.una.1 = una;
        if seen.window > 0.0 {
            seen.grown += (window - seen.window).max(0.0);
        }
        seen.window = window;
        (seen.since, seen.target) = (now, swift.target(window).as_secs_f64() * 1e6);
    }
}

struct SwiftSteadyState {
    /// The mean round trip in microseconds: propagation, transmission and queueing.
    round_trip: f64,
    peak: f64,
    /// The mean target in microseconds over flows and time, by the flows' windows (algorithm 2).
    target: f64,
    utilisation: f64,
    fairness: f64,
    drops: u64,
    /// The mean growth of a window per round trip, in segments, over flows and time.
    growth: f64,
}

impl SwiftSteadyState {
    fn excess(&self) -> f64 {
        self.round_trip / self.target
    }
}

fn steady(flows: u32, swift: &SwiftSpec) -> SwiftSteadyState {
    let graph = Dumbbell {
        pairs: flows,
        rate: OneOrEach::Each(DumbbellValues { host: Rate(4 * RATE.0), bottleneck: RATE }),
        propagation: OneOrEach::One(Time::from_us(1)),
        bottleneck_queue: None,
    };
    let rows = (0..flows)
        .map(|id| flow(id.into(), id, flows + id, 1 << 30, Time::from_us(37 * u64::from(id))))
        .collect();
    let mut scenario = scenario(graph.build().unwrap(), rows);
    scenario.scheme.queue =
        tailcut_net::queue::QueueSpec::DropTail(tailcut_net::queue::drop_tail::DropTail {
            limit: Limit::Unlimited,
            ..Default::default()
        });
    let spec = tcp(&mut scenario);
    spec.congestion = CongestionSpec::Swift(swift.clone());
    spec.receive_window = Bytes(1 << 24);
    scenario.horizon.arrivals = Time::from_ms(1);
    scenario.horizon.drain = END - Time::from_ms(1);
    scenario.series.links = vec!["s0>s1".into()];
    scenario.series.interval = Time::from_us(13);
    scenario.series.max_samples = 1 << 22;
    let (outcome, watch) = run_observed(&scenario, TargetObserver::default());
    let share = |seen: &FlowAverages| f64::from(seen.una.1 - seen.una.0);
    let shares: Vec<f64> = watch.0.values().map(share).collect();
    let total: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let late = |name: &str| {
        let found = outcome.series.iter().find(|series| series.name.ends_with(name)).unwrap();
        let late = found.times.iter().zip(&found.values).filter(|(time, _)| **time >= WARM_UP);
        late.map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let queue = late("queue_packets");
    let mean = queue.iter().sum::<f64>() / queue.len() as f64;
    let peak = queue.iter().copied().fold(0.0, f64::max);
    let round_trip = ROUND_TRIP + mean * PACKET;
    let rounds = (END - WARM_UP).as_secs_f64() * 1e6 / round_trip;
    SwiftSteadyState {
        round_trip,
        peak: ROUND_TRIP + peak * PACKET,
        target: watch.0.values().map(|seen| seen.area / seen.time).sum::<f64>() / f64::from(flows),
        utilisation: total * FRAME * 8.0 / (RATE.0 as f64 * (END - WARM_UP).as_secs_f64()),
        fairness: total * total / (squares * f64::from(flows)),
        drops: outcome.counters.dropped,
        growth: watch.0.values().map(|seen| seen.grown).sum::<f64>() / (f64::from(flows) * rounds),
    }
}

/// A number of flows, and the ranges of round trip over target and of utilisation.
type Wanted = [(u32, f64, f64, f64); 7];

fn assert_about_the_target(swift: &SwiftSpec, wanted: Wanted) {
    println!(
        "| flows | target, us | round trip, us | beyond, % | longest, us | link used, % | Jain's index |"
    );
    for (flows, least, most, used) in wanted {
        let steady = steady(flows, swift);
        println!(
            "| {flows} | {:.0} | {:.0} | {:+.1} | {:.0} | {:.2} | {:.3} |",
            steady.target,
            steady.round_trip,
            100.0 * (steady.excess() - 1.0),
            steady.peak,
            100.0 * steady.utilisation,
            steady.fairness
        );
        let excess = steady.excess();
        assert!(excess > least && excess < most, "{flows}: {excess}");
        assert!(steady.utilisation > used, "{flows}: {}", steady.utilisation);
        assert!(steady.fairness > 0.93, "{flows}: {}", steady.fairness);
        assert_eq!(steady.drops, 0);
    }
}

/// A segment per round trip, or per ACK below a window of one, is much for a window of a few
/// segments or less: [`the_additive_increase_sets_the_excess_above_the_target`] and
/// [`windows_below_a_segment_shrink_the_excess_with_the_increase`].
#[test]
fn the_round_trip_lies_above_its_target_by_1_to_25_percent_for_1_to_100_flows() {
    let wanted = [
        (1, 1.01, 1.03, 0.999),
        (2, 1.05, 1.10, 0.999),
        (5, 1.08, 1.14, 0.999),
        (10, 1.17, 1.27, 0.998),
        (20, 1.10, 1.20, 0.997),
        (50, 1.17, 1.32, 0.997),
        (100, 1.13, 1.28, 0.997),
    ];
    assert_about_the_target(&SwiftSpec::default(), wanted);
}

/// Only whole segments are sent. With ten flows, whose windows are of one to almost two segments,
/// nearly half a segment each is unused, and the queue stays below.
#[test]
fn a_tenth_of_the_increase_keeps_the_round_trip_at_its_target() {
    let swift = SwiftSpec { additive_increase: 0.1, ..SwiftSpec::default() };
    let wanted = [
        (1, 0.94, 0.98, 0.999),
        (2, 0.98, 1.01, 0.999),
        (5, 0.95, 1.00, 0.999),
        (10, 0.89, 0.96, 0.998),
        (20, 1.01, 1.06, 0.997),
        (50, 1.04, 1.11, 0.997),
        (100, 0.97, 1.07, 0.97),
    ];
    assert_about_the_target(&swift, wanted);
}

/// With a target of 100 us that does not depend on the window, a tenth of the increase leaves less
/// than an eighth of the excess.
#[test]
fn the_additive_increase_sets_the_excess_above_the_target() {
    let mut before = 0.0;
    for flows in [1, 2, 5, 10] {
        let [tenth, whole] = [0.1, 1.0].map(|additive_increase| {
            let flow_scaling = Time::ZERO;
            let swift = SwiftSpec { additive_increase, flow_scaling, ..SwiftSpec::default() };
            steady(flows, &swift).round_trip - 100.0
        });
        println!(
            "{flows} flows: {tenth:.1} us above the target, {whole:.1} us with whole segments"
        );
        assert!(tenth > -1.0 && tenth < 4.0, "{flows}: {tenth}");
        assert!(whole > 1.5 * before && whole > 8.0 * tenth, "{flows}: {whole}, {tenth}");
        before = whole;
    }
}

/// With twenty flows and more, windows are below a segment and follow each ACK at once. A third and
/// a tenth of the increase leave less and less of the excess, without loss of utilisation.
#[test]
fn windows_below_a_segment_shrink_the_excess_with_the_increase() {
    for flows in [20, 50, 100] {
        let runs = [1.0, 0.3, 0.1].map(|additive_increase| {
            steady(flows, &SwiftSpec { additive_increase, ..SwiftSpec::default() })
        });
        let [whole, third, tenth] = runs.each_ref().map(|run| run.excess() - 1.0);
        println!("{flows} flows: {whole:.3}, {third:.3}, {tenth:.3}");
        assert!(third < whole && tenth < 0.4 * whole, "{flows}: {whole}, {third}, {tenth}");
        assert!(runs.iter().all(|run| run.utilisation > 0.97), "{flows}");
    }
}

/// The windows of a hundred flows are a quarter of a segment: without windows below one, the queue
/// would hold a hundred segments.
#[test]
fn windows_below_a_segment_keep_the_queue_short() {
    let swift = SwiftSpec::default();
    let [below, whole] =
        [swift.min_window, 1.0].map(|min_window| SwiftSpec { min_window, ..swift.clone() });
    let [below, whole] = [below, whole].map(|swift| steady(100, &swift).round_trip);
    assert!(3.0 * below < whole, "{below}, {whole}");
}

/// Section 3.2: every switch adds its share to the target, and so to the round trip.
#[test]
fn the_round_trip_follows_base_target() {
    let swift = SwiftSpec { base_target: Time::from_us(150), ..SwiftSpec::default() };
    let [near, far] = [SwiftSpec::default(), swift].map(|swift| steady(2, &swift).round_trip);
    assert!((far - near - 100.0).abs() < 20.0, "{near}, {far}");
}

/// In balance, a round trip removes what it adds. At a delay d windows shrink by `beta` times (d -
/// target) / d of the d microseconds that they hold, so by `beta` times the excess. The excess is
/// therefore what all flows add in a round trip, over `beta`.
fn by_the_balance(flows: u32, swift: &SwiftSpec, steady: &SwiftSteadyState) -> f64 {
    f64::from(flows) * steady.growth * PACKET / swift.beta
}

/// Returns the excess above the target, measured and by the balance, in microseconds.
fn both(flows: u32, swift: &SwiftSpec) -> (f64, f64) {
    let steady = steady(flows, swift);
    let measured = steady.round_trip - steady.target;
    let balance = by_the_balance(flows, swift, &steady);
    let SwiftSpec { additive_increase, .. } = swift;
    println!(
        "| {flows} | {additive_increase} | {:.3} | {measured:.1} | {balance:.1} |",
        steady.growth / additive_increase
    );
    (measured, balance)
}

/// The target does not depend on the window. Windows are from eight segments down to a twelfth.
#[test]
fn the_excess_is_what_all_flows_add_in_a_round_trip_over_beta() {
    let swift = SwiftSpec { flow_scaling: Time::ZERO, ..SwiftSpec::default() };
    for flows in [1, 2, 5, 10, 20, 50, 100] {
        let (measured, balance) = both(flows, &swift);
        let part = measured / balance;
        assert!(part > 0.8 && part < 1.3, "{flows}: {part}");
    }
}

/// If the target rises as a window shrinks, a tenth to a third of the predicted excess is missing.
/// With a tenth of the increase, the rest is of the size of segments: windows above one are rounded
/// down, by half a segment on average; below one, the balance holds to within the time of one
/// segment.
#[test]
fn flow_scaling_keeps_the_excess_within_a_third_of_the_balance() {
    let swift = SwiftSpec::default();
    for flows in [2, 5, 10, 20, 50, 100] {
        let (measured, balance) = both(flows, &swift);
        let part = measured / balance;
        assert!(part > 0.65 && part < 0.95, "{flows}: {part}");
    }
    let tenth = SwiftSpec { additive_increase: 0.1, ..SwiftSpec::default() };
    let half = |flows| f64::from(flows) * PACKET / 2.0;
    for (flows, swift) in [(1, &swift), (1, &tenth), (2, &tenth), (5, &tenth), (10, &tenth)] {
        let (measured, balance) = both(flows, swift);
        assert!(measured < balance && measured > balance - half(flows), "{flows}");
    }
    for flows in [20, 50, 100] {
        let (measured, balance) = both(flows, &tenth);
        assert!(measured > 0.0 && (measured - balance).abs() < PACKET, "{flows}");
    }
}
