//! DCTCP's steady state against the fluid analysis of Alizadeh et al., "Data Center TCP" (SIGCOMM 2010), section 3.3:
//! N long flows in step behind one marking queue.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::measure::Observer;
use tailcut_net::queue::{ecn::Ecn, QueueSpec};
use tailcut_net::topology::dumbbell::{Dumbbell, Parts};
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::{Congestion, CongestionSpec, Sender};

use crate::support::{flow, row, run, run_observed, scenario, tcp};

/// The paper's setting (section 3.3, figure 12): 10 Gbps, a round trip of 100 us, K = 40 packets.
const RATE: Rate = Rate(10_000_000_000);
const K: u32 = 40;
/// How many flows.
const ALL: [u32; 4] = [1, 2, 10, 40];
const FRAME: f64 = 1_538.0;

/// Round trip, K and time, all so many times the paper's: windows of more packets, the same queue in round trips.
#[derive(Debug, Clone, Copy)]
struct Scale(u64);

impl Scale {
    fn k(self) -> u32 {
        K * self.0 as u32
    }
    fn warm_up(self) -> Time {
        Time(Time::from_ms(60).0 * self.0)
    }
    fn end(self) -> Time {
        Time(Time::from_ms(120).0 * self.0)
    }
}

/// Looks at senders once they have warmed up.
struct Watch {
    warm_up: Time,
    alpha: (f64, u64),
    first: BTreeMap<u64, u32>,
    last: BTreeMap<u64, u32>,
}

impl Observer for Watch {
    fn sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
        if now < self.warm_up {
            return;
        }
        if let Congestion::Dctcp(state) = sender.congestion() {
            self.alpha.0 += state.alpha();
            self.alpha.1 += 1;
        }
        self.first.entry(flow).or_insert(sender.una());
        self.last.insert(flow, sender.una());
    }
}

struct Steady {
    mean_queue: f64,
    peak: f64,
    trough: f64,
    alpha: f64,
    fairness: f64,
    utilisation: f64,
    drops: u64,
}

/// The steady state of that many flows, simulated once for all tests.
fn steady(flows: u32) -> &'static Steady {
    static STEADY: LazyLock<Vec<Steady>> =
        LazyLock::new(|| ALL.map(|flows| simulated(flows, Scale(1))).into());
    &STEADY[ALL.iter().position(|&n| n == flows).unwrap()]
}

fn simulated(flows: u32, scale: Scale) -> Steady {
    let fast = Rate(4 * RATE.0);
    // A round trip: 97.8 us of propagation and 2 us of transmission.
    let graph = Dumbbell {
        pairs: flows,
        rate: OneOrEach::Each(Parts { host: fast, bottleneck: RATE }),
        propagation: OneOrEach::One(Time::from_ns(16_300 * scale.0)),
        bottleneck_queue: None,
    };
    let endless = 1 << 30;
    let rows = (0..flows)
        .map(|id| flow(id.into(), id, flows + id, endless, Time::from_us(7 * u64::from(id))))
        .collect();
    let mut scenario = scenario(graph.build().unwrap(), rows);
    scenario.scheme.queue = QueueSpec::Ecn(Ecn {
        limit: Limit::AtMost(Amount::Packets(1_000 * scale.0 as u32)),
        threshold: Amount::Packets(scale.k()),
        hosts: false,
    });
    let spec = tcp(&mut scenario);
    spec.congestion = CongestionSpec::Dctcp(DctcpSpec::default());
    spec.receive_window = Bytes(1 << 30);
    scenario.horizon.arrivals = Time::from_ms(1);
    scenario.horizon.drain = scale.end() - Time::from_ms(1);
    scenario.series.links = vec!["s0>s1".into()];
    scenario.series.interval = Time::from_ns(1_230 * scale.0);
    scenario.series.max_samples = 1 << 20;
    let (outcome, watch) = run_observed(
        &scenario,
        Watch {
            warm_up: scale.warm_up(),
            alpha: (0.0, 0),
            first: BTreeMap::new(),
            last: BTreeMap::new(),
        },
    );
    let series = |name: &str| {
        let found = outcome.series.iter().find(|series| series.name.ends_with(name)).unwrap();
        let late =
            found.times.iter().zip(&found.values).filter(|(time, _)| **time >= scale.warm_up());
        late.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let queue = series("queue_packets");
    let shares: Vec<f64> =
        watch.last.iter().map(|(id, last)| f64::from(last - watch.first[id])).collect();
    let total: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    Steady {
        mean_queue: queue.iter().sum::<f64>() / queue.len() as f64,
        peak: queue.iter().copied().fold(0.0, f64::max),
        trough: queue.iter().copied().fold(f64::MAX, f64::min),
        alpha: watch.alpha.0 / watch.alpha.1 as f64,
        fairness: total * total / (squares * f64::from(flows)),
        utilisation: total * FRAME * 8.0 / (RATE.0 as f64 * scale.warm_up().as_secs_f64()),
        drops: outcome.counters.dropped,
    }
}

/// What the analysis says, with the window at which marking begins.
struct Analysis {
    alpha: f64,
    amplitude: f64,
    peak: f64,
}

fn analysis(flows: u32, scale: Scale) -> Analysis {
    let n = f64::from(flows);
    let pipe = RATE.0 as f64 * 100e-6 * scale.0 as f64 / 8.0 / FRAME;
    let w = (pipe + f64::from(scale.k())) / n;
    // Equation 6, of which alpha = sqrt(2 / w) is the approximation for large windows.
    let mut alpha = (2.0 / w).sqrt();
    for _ in 0..100 {
        alpha = ((2.0 * w + 1.0) / (w + 1.0).powi(2) / (1.0 - alpha / 4.0)).sqrt();
    }
    Analysis { alpha, amplitude: n * (w + 1.0) * alpha / 2.0, peak: f64::from(scale.k()) + n }
}

#[track_caller]
fn within_15_percent(what: &str, flows: u32, measured: f64, expected: f64) {
    let error = measured / expected - 1.0;
    assert!(error.abs() < 0.15, "{flows} flows: {what} {measured:.3}, analysis {expected:.3}");
}

#[test]
fn alpha_settles_where_the_analysis_says() {
    for flows in ALL {
        within_15_percent("alpha", flows, steady(flows).alpha, analysis(flows, Scale(1)).alpha);
    }
}

#[test]
fn the_queue_peaks_at_k_and_one_packet_of_each_flow() {
    for flows in ALL {
        within_15_percent("peak", flows, steady(flows).peak, analysis(flows, Scale(1)).peak);
    }
}

/// Not with 40 flows of three packets each: see below.
#[test]
fn the_queue_swings_as_far_as_the_analysis_says_while_flows_are_in_step() {
    for flows in [1, 2, 10] {
        let steady = steady(flows);
        let swing = steady.peak - steady.trough;
        within_15_percent("amplitude", flows, swing, analysis(flows, Scale(1)).amplitude);
    }
}

/// Forty flows share 121 packets: a window of four that is cut by 36 % leaves two whole packets and a half that cannot be
/// sent, so that the queue falls by two packets of each flow, 80, where the analysis in fractions of packets says 59. With ten
/// times the round trip, and so windows of thirty packets, as many flows swing as the analysis says.
#[test]
fn forty_flows_of_large_windows_swing_as_the_analysis_says_and_of_three_packets_by_whole_ones() {
    let small = steady(40);
    let whole = |window: f64| window.floor();
    let peak = (small.peak + RATE.0 as f64 * 100e-6 / 8.0 / FRAME) / 40.0;
    let by_whole_packets = 40.0 * (whole(peak) - whole(peak * (1.0 - small.alpha / 2.0)));
    println!("{peak} {by_whole_packets} {}", small.peak - small.trough);
    within_15_percent("swing", 40, small.peak - small.trough, by_whole_packets);
    let (large, expected) = (simulated(40, Scale(10)), analysis(40, Scale(10)));
    println!(
        "{} {} {} {}",
        large.peak - large.trough,
        expected.amplitude,
        large.alpha,
        expected.alpha
    );
    within_15_percent("amplitude", 40, large.peak - large.trough, expected.amplitude);
    within_15_percent("alpha", 40, large.alpha, expected.alpha);
}

/// A sawtooth spends as long in its upper as in its lower half.
#[test]
fn the_mean_queue_lies_half_an_amplitude_below_the_peak() {
    for flows in ALL {
        let Analysis { amplitude, peak, .. } = analysis(flows, Scale(1));
        within_15_percent("mean", flows, steady(flows).mean_queue, peak - amplitude / 2.0);
    }
}

#[test]
fn flows_share_alike_lose_nothing_and_fill_the_link() {
    for flows in ALL {
        let steady = steady(flows);
        assert!(steady.fairness > 0.95, "{flows} flows: Jain's index {}", steady.fairness);
        assert!(steady.utilisation > 0.99, "{flows} flows: {}", steady.utilisation);
        assert_eq!(steady.drops, 0);
    }
}

/// Where a host's own link is the bottleneck, its interface holds what the window exceeds the path by, unless it marks
/// like a switch.
#[test]
fn an_interface_that_marks_keeps_its_own_queue_short() {
    let longest = |hosts: bool| {
        let link = (Rate(1_000_000_000), Time::from_us(5));
        let mut scenario = scenario(row(&[link; 3]), vec![flow(0, 0, 1, 4_000_000, Time::ZERO)]);
        scenario.scheme.queue = QueueSpec::Ecn(Ecn { hosts, ..Ecn::default() });
        tcp(&mut scenario).congestion = CongestionSpec::Dctcp(DctcpSpec::default());
        scenario.series.links = vec!["h0>s0".into()];
        scenario.series.interval = Time::from_us(10);
        let outcome = run(&scenario);
        assert_eq!(outcome.counters.dropped, 0);
        let waiting = outcome.series.iter().find(|series| series.name.ends_with("queue_packets"));
        let settled = waiting.expect("it was asked for").values.iter().skip(1_000);
        settled.copied().fold(0.0, f64::max)
    };
    // 44 packets of window, of which the path holds 4 and the transmitter 1; K = 5.
    let (unmarked, marked) = (longest(false), longest(true));
    assert!(unmarked > 35.0, "{unmarked}");
    assert!((5.0..10.0).contains(&marked), "{marked}");
}
