//! DCTCP's steady state compared with the fluid analysis of Alizadeh et al., "Data Center TCP"
//! (SIGCOMM 2010), section 3.3: N long flows in step behind one marking queue.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tailcut_engine::{Bytes, RandomStream, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::Incident;
use tailcut_net::measure::Observer;
use tailcut_net::queue::{QueueSpec, ecn::Ecn};
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::{Congestion, CongestionSpec, Recovery, Sender};

use crate::run::support::{flow, row, run, run_observed, scenario, tcp};

/// The paper's setting (section 3.3, figure 12): 10 Gbps, a round trip of 100 us, K = 40 packets.
const RATE: Rate = Rate(10_000_000_000);
const K: u32 = 40;
/// The numbers of flows.
const ALL: [u32; 4] = [1, 2, 10, 40];
const FRAME: f64 = 1_538.0;

/// Returns parameters as in the analysis, where windows grow by a segment per round trip even if
/// marked.
fn analysed() -> DctcpSpec {
    DctcpSpec { grows_under_echoes: true, ..DctcpSpec::default() }
}

/// A factor for round trip, K and time relative to the paper's: windows of more packets, the same
/// queue in round trips.
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

/// Samples senders after the warm-up.
struct SenderSampler {
    warm_up: Time,
    alpha: (f64, u64),
    first: BTreeMap<u64, u32>,
    last: BTreeMap<u64, u32>,
}

impl Observer for SenderSampler {
    fn tcp_sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
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

struct DctcpSteadyState {
    mean_queue: f64,
    peak: f64,
    trough: f64,
    alpha: f64,
    fairness: f64,
    utilisation: f64,
    drops: u64,
}

/// Returns the steady state of `flows` flows, simulated once for all tests.
fn steady(flows: u32) -> &'static DctcpSteadyState {
    static STEADY: LazyLock<Vec<DctcpSteadyState>> =
        LazyLock::new(|| ALL.map(|flows| simulated(flows, Scale(1))).into());
    &STEADY[ALL.iter().position(|&n| n == flows).unwrap()]
}

fn simulated(flows: u32, scale: Scale) -> DctcpSteadyState {
    let fast = Rate(4 * RATE.0);
    // A round trip: 97.8 us of propagation and 2 us of transmission.
    let graph = Dumbbell {
        pairs: flows,
        rate: OneOrEach::Each(DumbbellValues { host: fast, bottleneck: RATE }),
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
        threshold: OneOrEach::One(Amount::Packets(scale.k())),
        hosts: false,
        ..Ecn::default()
    });
    let spec = tcp(&mut scenario);
    spec.congestion = CongestionSpec::Dctcp(analysed());
    spec.receive_window = Bytes(1 << 30);
    scenario.horizon.arrivals = Time::from_ms(1);
    scenario.horizon.drain = scale.end() - Time::from_ms(1);
    scenario.series.links = vec!["s0>s1".into()];
    scenario.series.interval = Time::from_ns(1_230 * scale.0);
    scenario.series.max_samples = 1 << 20;
    let (outcome, watch) = run_observed(
        &scenario,
        SenderSampler {
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
    DctcpSteadyState {
        mean_queue: queue.iter().sum::<f64>() / queue.len() as f64,
        peak: queue.iter().copied().fold(0.0, f64::max),
        trough: queue.iter().copied().fold(f64::MAX, f64::min),
        alpha: watch.alpha.0 / watch.alpha.1 as f64,
        fairness: total * total / (squares * f64::from(flows)),
        utilisation: total * FRAME * 8.0 / (RATE.0 as f64 * scale.warm_up().as_secs_f64()),
        drops: outcome.counters.dropped,
    }
}

/// The results of the analysis, and the window at which marking begins.
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

/// Forty flows of three packets each are left out: see the next test.
#[test]
fn the_queue_swings_as_far_as_the_analysis_says_while_flows_are_in_step() {
    for flows in [1, 2, 10] {
        let steady = steady(flows);
        let swing = steady.peak - steady.trough;
        within_15_percent("amplitude", flows, swing, analysis(flows, Scale(1)).amplitude);
    }
}

/// Forty flows share 121 packets. A window of four that is cut by 36 % leaves two whole packets and
/// a half that cannot be sent, so the queue falls by two packets of each flow, 80; the analysis in
/// fractions of packets predicts 59. With ten times the round trip, and so windows of thirty
/// packets, as many flows swing as the analysis predicts.
#[test]
fn forty_flows_swing_as_analysed_with_large_windows_and_by_whole_packets_with_small_ones() {
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

/// A sawtooth spends as much time in its upper as in its lower half.
#[test]
fn the_mean_queue_lies_half_an_amplitude_below_the_peak() {
    for flows in ALL {
        let Analysis { amplitude, peak, .. } = analysis(flows, Scale(1));
        within_15_percent("mean", flows, steady(flows).mean_queue, peak - amplitude / 2.0);
    }
}

#[test]
fn dctcp_flows_share_equally_lose_nothing_and_fill_the_link() {
    for flows in ALL {
        let steady = steady(flows);
        assert!(steady.fairness > 0.95, "{flows} flows: Jain's index {}", steady.fairness);
        assert!(steady.utilisation > 0.99, "{flows} flows: {}", steady.utilisation);
        assert_eq!(steady.drops, 0);
    }
}

/// If a host's own link is the bottleneck, its interface holds the part of the window that exceeds
/// the path, unless it marks like a switch.
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
    // The window has 44 packets, of which the path holds 4 and the transmitter 1; K = 5.
    let (unmarked, marked) = (longest(false), longest(true));
    assert!(unmarked > 35.0, "{unmarked}");
    assert!((5.0..10.0).contains(&marked), "{marked}");
}

/// Two flows through one port of 1 Gbps that marks from 5 packets on, and disturbances of them.
#[derive(Clone, Copy)]
struct TwoFlows {
    /// The excess of the senders' link rates over the bottleneck, in millionths.
    ppm: [u64; 2],
    /// The additional propagation delay of the senders' links.
    longer: [Time; 2],
    /// The interval at which the second link gets another random delay below a packet's
    /// transmission time; `None` for no such change.
    redrawn: Option<Time>,
    seed: u64,
}

const IN_STEP: TwoFlows = TwoFlows { ppm: [0; 2], longer: [Time::ZERO; 2], redrawn: None, seed: 1 };

impl TwoFlows {
    /// Returns each flow's rate between 0.2 and 1.2 s, in Mbps, and its mean alpha.
    fn shares(self) -> [(f64, f64); 2] {
        let gigabit = Rate(1_000_000_000);
        let graph = Dumbbell {
            pairs: 2,
            rate: OneOrEach::One(gigabit),
            propagation: OneOrEach::One(Time::from_ns(2_667)),
            bottleneck_queue: None,
        };
        let mut graph = graph.build().expect("the parameters are valid");
        for ((link, ppm), longer) in graph.links.iter_mut().zip(self.ppm).zip(self.longer) {
            link.rate = Rate(gigabit.0 + gigabit.0 / 1_000_000 * ppm);
            link.propagation += longer;
        }
        let flows = [0, 1].map(|id| flow(id, id as u32, 2 + id as u32, 1 << 40, Time::ZERO));
        let mut draw = RandomStream::new(self.seed, 0, "phases");
        let mut scenario = scenario(graph, flows.to_vec());
        scenario.scheme.queue = QueueSpec::Ecn(Ecn {
            limit: Limit::AtMost(Amount::Packets(100)),
            threshold: OneOrEach::One(Amount::Packets(5)),
            hosts: false,
            ..Ecn::default()
        });
        tcp(&mut scenario).congestion = CongestionSpec::Dctcp(analysed());
        tcp(&mut scenario).recovery = Recovery::Newreno;
        if let Some(every) = self.redrawn {
            let slot = gigabit.transmission_time(1_538).0;
            let incident = |number: u64| Incident::Delay {
                link: "h1>s0".into(),
                one_way: true,
                extra: Time(draw.below(slot)),
                at: Time(number * every.0),
                until: Some(Time((number + 1) * every.0)),
            };
            let times = Time::from_ms(1_200).0 / every.0;
            scenario.faults.incidents = (0..times).map(incident).collect();
        }
        scenario.horizon.arrivals = Time::from_ms(1_100);
        scenario.horizon.drain = Time::from_ms(100);
        let (_, watch) = run_observed(&scenario, Both::default());
        watch.0.map(|seen| {
            let segments = f64::from(seen.last - seen.first.unwrap_or(0));
            (segments * 1_460.0 * 8.0 / 1e6, seen.alpha / f64::from(seen.looks))
        })
    }
}

#[derive(Default, Clone, Copy)]
struct SenderSamples {
    first: Option<u32>,
    last: u32,
    alpha: f64,
    looks: u32,
}

/// Observes the senders of flows 0 and 1 from 0.2 s on.
#[derive(Default)]
struct Both([SenderSamples; 2]);

impl Observer for Both {
    fn tcp_sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
        let Some(seen) = self.0.get_mut(flow as usize).filter(|_| now > Time::from_ms(200)) else {
            return;
        };
        let Congestion::Dctcp(state) = sender.congestion() else { return };
        seen.first.get_or_insert(sender.una());
        (seen.last, seen.looks) = (sender.una(), seen.looks + 1);
        seen.alpha += state.alpha();
    }
}

/// The ACKs of both flows arrive in the time slots of one link, and so do the packets that they
/// release. The first packet in a slot always finds one packet less in the queue, if nothing shifts
/// the two flows. A picosecond decides which one is first.
#[test]
fn of_two_flows_in_step_the_first_in_each_slot_gets_most_of_the_link() {
    let [(first, alpha), (second, marked_more)] = IN_STEP.shares();
    assert!(first > 2.0 * second && first + second > 940.0, "{first} and {second} Mbps");
    assert!(marked_more > 1.3 * alpha, "{alpha} and {marked_more}");
    let later = TwoFlows { longer: [Time(1), Time::ZERO], ..IN_STEP };
    let [(turned, _), (round, _)] = later.shares();
    assert!((turned - second).abs() < 5.0 && (round - first).abs() < 5.0, "{turned} and {round}");
}

#[test]
fn hosts_with_slightly_different_rates_share_the_bottleneck_equally() {
    for ppm in [[100, 237], [1_000, 2_370], [23_700, 10_000]] {
        let [(first, _), (second, _)] = TwoFlows { ppm, ..IN_STEP }.shares();
        assert!((first / second - 1.0).abs() < 0.05, "{ppm:?}: {first} and {second} Mbps");
    }
}

/// The second flow's packets are shifted within their slots again and again, so neither flow is
/// first for long.
#[test]
fn flows_with_changing_phases_share_about_equally() {
    let shares = [1, 2, 5, 20].map(|ms| {
        let pair = TwoFlows { redrawn: Some(Time::from_ms(ms)), seed: ms, ..IN_STEP };
        let [(first, _), (second, _)] = pair.shares();
        assert!(first.max(second) < 1.6 * first.min(second), "{ms} ms: {first} and {second} Mbps");
        first / (first + second)
    });
    let mean = shares.iter().sum::<f64>() / 4.0;
    assert!((0.4..0.6).contains(&mean), "the first has {mean} on average");
}

#[test]
fn a_link_marks_beyond_its_own_threshold() {
    let longest = |threshold: Option<u32>| {
        let rates = [10, 1, 10].map(|gbps| (Rate(gbps * 1_000_000_000), Time::from_us(5)));
        let mut graph = row(&rates);
        graph.links[1].threshold = threshold.map(Amount::Packets);
        let mut scenario = scenario(graph, vec![flow(0, 0, 1, 10_000_000, Time::ZERO)]);
        scenario.scheme.queue = QueueSpec::Ecn(Ecn {
            limit: Limit::Unlimited,
            threshold: OneOrEach::One(Amount::Packets(60)),
            hosts: false,
            ..Ecn::default()
        });
        let tcp = tcp(&mut scenario);
        tcp.congestion = CongestionSpec::Dctcp(DctcpSpec::default());
        tcp.receive_window = Bytes(1 << 20);
        // Past slow start.
        scenario.series.links = vec!["s0>s1".into()];
        let outcome = run(&scenario);
        let queue = outcome.series.iter().find(|one| one.name.ends_with("queue_packets"));
        let values = &queue.expect("the link is sampled").values;
        values[values.len() / 2..].iter().copied().fold(0.0, f64::max)
    };
    let (of_queue, low, high) = (longest(None), longest(Some(10)), longest(Some(120)));
    assert!(low < 0.5 * of_queue && of_queue < 0.7 * high, "{low}, {of_queue}, {high}");
}
