//! Swift's round trip for 1 to 100 flows, beside its target (Kumar et al. 2020, sections 3.2, 3.5 and 3.6), and what keeps
//! them apart.

use std::collections::BTreeMap;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::Limit;
use tailcut_net::component::OneOrEach;
use tailcut_net::measure::Observer;
use tailcut_net::topology::dumbbell::{Dumbbell, Parts};
use tailcut_net::transport::tcp::congestion::swift::SwiftSpec;
use tailcut_net::transport::tcp::{CongestionSpec, Sender};

use crate::support::{flow, run_observed, scenario, tcp};

const RATE: Rate = Rate(1_000_000_000);
const FRAME: f64 = 1_538.0;
/// 6 us of propagation, a segment over one link of 1 Gbps and two of 4 Gbps, and its ACK back.
const ROUND_TRIP: f64 = 6.0 + 12.304 * 1.5 + 0.624 * 1.5;
const WARM_UP: Time = Time::from_ms(50);
const END: Time = Time::from_ms(150);

/// The first unacknowledged segment of each flow once it has warmed up, and at the end.
#[derive(Default)]
struct Watch(BTreeMap<u64, (u32, u32)>);

impl Observer for Watch {
    fn sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
        if now >= WARM_UP {
            self.0.entry(flow).or_insert((sender.una(), 0)).1 = sender.una();
        }
    }
}

struct Steady {
    /// The mean round trip, in microseconds: without queues, and what waits.
    round_trip: f64,
    peak: f64,
    utilisation: f64,
    fairness: f64,
    drops: u64,
}

fn steady(flows: u32, swift: &SwiftSpec) -> Steady {
    let graph = Dumbbell {
        pairs: flows,
        rate: OneOrEach::Each(Parts { host: Rate(4 * RATE.0), bottleneck: RATE }),
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
        });
    let spec = tcp(&mut scenario);
    spec.congestion = CongestionSpec::Swift(swift.clone());
    spec.receive_window = Bytes(1 << 24);
    scenario.horizon.arrivals = Time::from_ms(1);
    scenario.horizon.drain = END - Time::from_ms(1);
    scenario.series.links = vec!["s0>s1".into()];
    scenario.series.interval = Time::from_us(13);
    scenario.series.max_samples = 1 << 22;
    let (outcome, watch) = run_observed(&scenario, Watch::default());
    let shares: Vec<f64> = watch.0.values().map(|(first, last)| f64::from(last - first)).collect();
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
    let packet = FRAME * 8.0 / RATE.0 as f64 * 1e6;
    Steady {
        round_trip: ROUND_TRIP + mean * packet,
        peak: ROUND_TRIP + peak * packet,
        utilisation: total * FRAME * 8.0 / (RATE.0 as f64 * (END - WARM_UP).as_secs_f64()),
        fairness: total * total / (squares * f64::from(flows)),
        drops: outcome.counters.dropped,
    }
}

/// The target of the window that the mean round trip gives each flow, in microseconds: two switches, the defaults of
/// Swift's parameters, worked out from the paper's algorithm 2.
fn target(flows: u32, round_trip: f64) -> f64 {
    let window = RATE.0 as f64 / 8.0 / FRAME * round_trip * 1e-6 / f64::from(flows);
    let root = |window: f64| 1.0 / f64::sqrt(window);
    let share = (root(window) - root(100.0)) / (root(0.1) - root(100.0));
    50.0 + 2.0 * 25.0 + 250.0 * share.clamp(0.0, 1.0)
}

/// Above it by so much because all flows add segments at a time: [`what_is_added_at_a_time_is_what_lies_above_the_target`].
#[test]
fn the_round_trip_lies_above_its_target_by_1_to_35_percent_for_1_to_100_flows() {
    for (flows, beyond) in
        [(1, 1.02), (2, 1.08), (5, 1.08), (10, 1.18), (20, 1.18), (50, 1.36), (100, 1.33)]
    {
        let steady = steady(flows, &SwiftSpec::default());
        let (mean, target) = (steady.round_trip, target(flows, steady.round_trip));
        println!(
            "{flows} flows: {mean:.0} us, target {target:.0} us, peak {:.0} us, {:.4} used, fairness {:.3}",
            steady.peak, steady.utilisation, steady.fairness
        );
        assert!(mean > 1.005 * target && mean < beyond * target, "{flows}: {mean} of {target}");
        assert!(steady.utilisation > 0.995, "{flows}: {}", steady.utilisation);
        assert!(steady.fairness > 0.85, "{flows}: {}", steady.fairness);
        assert_eq!(steady.drops, 0);
    }
}

/// With a target that does not depend on the window, 100 us. A tenth of the increase leaves less than an eighth of the excess.
#[test]
fn what_is_added_at_a_time_is_what_lies_above_the_target() {
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

/// Fifty flows have windows below a segment. The paper's whole segment for an ACK fills the link, at the price of the excess; a
/// tenth of it does not, and the excess cannot be had away in this way.
#[test]
fn windows_below_a_segment_need_the_whole_increase_to_fill_the_link() {
    let [tenth, whole] = [0.1, 1.0].map(|additive_increase| {
        steady(50, &SwiftSpec { additive_increase, ..SwiftSpec::default() }).utilisation
    });
    assert!(tenth < 0.75 && whole > 0.995, "{tenth}, {whole}");
}

/// The window of a hundred flows is a quarter of a segment: without windows below one the queue would hold a hundred.
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
fn the_target_follows_the_base() {
    let swift = SwiftSpec { base_target: Time::from_us(150), ..SwiftSpec::default() };
    let [near, far] = [SwiftSpec::default(), swift].map(|swift| steady(2, &swift).round_trip);
    assert!((far - near - 100.0).abs() < 20.0, "{near}, {far}");
}
