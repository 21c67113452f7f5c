//! BBR fills a link but not its buffer, shares it, and probes for the round trip every ten seconds
//! (draft-cardwell-iccrg-bbr-congestion-control-00, sections 1 and 4.3).

use std::collections::BTreeMap;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::Amount;
use tailcut_net::component::OneOrEach;
use tailcut_net::measure::Observer;
use tailcut_net::queue::{QueueSpec, drop_tail::DropTail};
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::transport::tcp::congestion::bbr::{BbrMode, BbrSpec};
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::{Congestion, CongestionSpec, Recovery, Sender};

use crate::run::support::{flow, row, run, run_observed, scenario, tcp};

const RATE: Rate = Rate(100_000_000);
const MSS: u64 = 1_460;
const FRAME: u64 = 1_538;
/// The round trip: 10.5 ms of propagation, a segment over one link of 100 Mbps and two of 1 Gbps,
/// and its ACK.
const ROUND_TRIP: Time = Time(10_500_000_000 + (FRAME + 78) * 80_000 * 12 / 10);
const SECOND: Time = Time::from_ms(1_000);

/// Observations of a flow.
#[derive(Debug, Default)]
struct FlowHistory {
    /// The first unacknowledged segment at the end of each second.
    una: Vec<u32>,
    /// Begin and end of each probe for the round trip, and the largest window of its second half.
    probes: Vec<(Time, Time, u64)>,
    min_rtts: Vec<Time>,
    modes: Vec<BbrMode>,
    /// The largest estimate of the bandwidth after the first second, in bytes per second.
    bandwidth: f64,
}

#[derive(Default)]
struct BbrObserver(BTreeMap<u64, FlowHistory>);

impl Observer for BbrObserver {
    fn tcp_sender_acted(&mut self, now: Time, flow: u64, _copy: u8, sender: &Sender) {
        let seen = self.0.entry(flow).or_default();
        while now >= Time(SECOND.0 * (seen.una.len() as u64 + 1)) {
            seen.una.push(sender.una());
        }
        let Congestion::Bbr(bbr) = sender.congestion() else { return };
        if seen.modes.last() != Some(&bbr.mode()) {
            if bbr.mode() == BbrMode::ProbeRtt {
                seen.probes.push((now, now, 0));
            }
            seen.modes.push(bbr.mode());
        }
        if bbr.mode() == BbrMode::ProbeRtt {
            let probe = seen.probes.last_mut().expect("one has begun");
            probe.1 = now;
            if now > probe.0 + Time::from_ms(100) {
                probe.2 = probe.2.max(sender.cwnd());
            }
        }
        if seen.min_rtts.last() != Some(&bbr.min_rtt()) {
            seen.min_rtts.push(bbr.min_rtt());
        }
        if now > SECOND {
            seen.bandwidth = seen.bandwidth.max(bbr.bandwidth());
        }
    }
}

struct BbrSteadyState {
    seen: Vec<FlowHistory>,
    /// The flows' shares of the link after the warm-up.
    shares: Vec<f64>,
    mean_queue: f64,
    drops: u64,
    packets: u64,
}

/// Runs endless flows over one link. Shares and queue count from `warm_up` to `end`, in seconds;
/// `buffer` is in packets.
fn steady(
    flows: u32,
    kind: &CongestionSpec,
    buffer: u32,
    (warm_up, end): (u64, u64),
    seed: u64,
) -> BbrSteadyState {
    let graph = Dumbbell {
        pairs: flows,
        rate: OneOrEach::Each(DumbbellValues { host: Rate(10 * RATE.0), bottleneck: RATE }),
        propagation: OneOrEach::One(Time::from_us(1_750)),
        bottleneck_queue: None,
    };
    let rows = (0..flows)
        .map(|id| flow(id.into(), id, flows + id, 1 << 30, Time::from_us(3_700 * u64::from(id))))
        .collect();
    let mut scenario = scenario(graph.build().unwrap(), rows);
    scenario.scheme.queue = QueueSpec::DropTail(DropTail {
        limit: format!("{buffer}packets").parse().unwrap(),
        ..DropTail::default()
    });
    let spec = tcp(&mut scenario);
    spec.congestion = kind.clone();
    spec.recovery = Recovery::SackPrr;
    spec.receive_window = Bytes(1 << 24);
    (spec.initial_rto, spec.min_rto) = (SECOND, Time::from_ms(200));
    scenario.seed = seed;
    scenario.horizon.arrivals = SECOND;
    // An event after the last second shows its end.
    scenario.horizon.drain = Time(SECOND.0 * (end - 1)) + Time::from_ms(20);
    scenario.series.links = vec!["s0>s1".into()];
    scenario.series.interval = Time::from_us(997);
    scenario.series.max_samples = 1 << 22;
    let (outcome, watch) = run_observed(&scenario, BbrObserver::default());
    let seen: Vec<FlowHistory> = watch.0.into_values().collect();
    let whole = RATE.0 as f64 * (end - warm_up) as f64 / 8.0 / FRAME as f64;
    let share = |seen: &FlowHistory| {
        let at = |second: u64| f64::from(seen.una[second as usize - 1]);
        (at(end) - at(warm_up)) / whole
    };
    let queue = outcome.series.iter().find(|series| series.name.ends_with("queue_packets"));
    let queue = queue.expect("it was asked for");
    let late = queue.times.iter().zip(&queue.values);
    let late: Vec<f64> =
        late.filter(|(time, _)| time.0 >= SECOND.0 * warm_up).map(|(_, value)| *value).collect();
    BbrSteadyState {
        shares: seen.iter().map(share).collect(),
        seen,
        mean_queue: late.iter().sum::<f64>() / late.len() as f64,
        drops: outcome.counters.dropped,
        packets: outcome.flows.iter().map(|flow| flow.data_packets).sum(),
    }
}

fn bbr() -> CongestionSpec {
    CongestionSpec::Bbr(BbrSpec::default())
}

/// Returns the bandwidth-delay product: 86.6 packets.
fn bdp() -> f64 {
    ROUND_TRIP.as_secs_f64() * RATE.0 as f64 / 8.0 / FRAME as f64
}

fn in_ms(time: Time) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Section 1: the whole link with hardly a queue, and correct estimates of both bandwidth and round
/// trip. The first shortest round trip is that of the handshake, which no segment reaches; after
/// ten seconds it is measured again.
#[test]
fn a_lone_bbr_flow_fills_the_link_without_its_buffer() {
    let alone = steady(1, &bbr(), 866, (2, 33), 1);
    let seen = &alone.seen[0];
    let goodput = RATE.0 as f64 / 8.0 * MSS as f64 / FRAME as f64;
    println!(
        "one flow: {:.4} used, {:.1} packets wait, bandwidth {:.4}, round trips {:?}",
        alone.shares[0],
        alone.mean_queue,
        seen.bandwidth / goodput,
        seen.min_rtts
    );
    println!("probes for the round trip: {:?}", seen.probes);
    assert!(alone.shares[0] > 0.95, "{:?}", alone.shares);
    assert!(alone.mean_queue < 0.1 * bdp(), "{}", alone.mean_queue);
    assert_eq!(alone.drops, 0);
    assert!((seen.bandwidth / goodput - 1.0).abs() < 0.001, "{}", seen.bandwidth / goodput);
    assert_eq!(seen.min_rtts.last(), Some(&ROUND_TRIP));
    assert_eq!(seen.modes[..2], [BbrMode::Startup, BbrMode::Drain]);
}

/// Section 4.3.5: four segments for 200 ms and a round, ten seconds after the shortest round trip
/// was last seen.
#[test]
fn two_bbr_flows_share_and_probe_for_the_round_trip_every_ten_seconds() {
    for seed in 1..=3 {
        let two = steady(2, &bbr(), 866, (10, 40), seed);
        let (low, high) = (two.shares[0].min(two.shares[1]), two.shares[0].max(two.shares[1]));
        println!(
            "two flows, seed {seed}: {low:.3} and {high:.3} used, {:.1} packets wait, {} dropped",
            two.mean_queue, two.drops
        );
        assert!(low + high > 0.95, "{:?}", two.shares);
        assert!(high / low < 1.2, "{:?}", two.shares);
        for seen in &two.seen {
            assert!((3..=4).contains(&seen.probes.len()), "{:?}", seen.probes);
            for pair in seen.probes.windows(2) {
                let apart = in_ms(pair[1].0) - in_ms(pair[0].0);
                assert!((10_000.0..10_600.0).contains(&apart), "{apart} ms");
            }
            for (from, to, window) in &seen.probes {
                let lasts = in_ms(*to) - in_ms(*from);
                assert!((200.0..300.0).contains(&lasts), "{lasts} ms");
                assert_eq!(*window, 4 * MSS);
            }
        }
    }
}

/// Section 1: losses at a shallow buffer do not slow BBR down.
#[test]
fn a_shallow_buffer_costs_bbr_less_than_loss_based_controls() {
    for buffer in [9, 43, 87] {
        let used = [bbr(), CongestionSpec::default(), CongestionSpec::Cubic(CubicSpec::default())]
            .map(|kind| {
                let alone = steady(1, &kind, buffer, (2, 22), 1);
                println!(
                    "buffer of {buffer}: {:.3} used, {} of {} dropped, {:.1} wait, {kind:?}",
                    alone.shares[0], alone.drops, alone.packets, alone.mean_queue
                );
                alone.shares[0]
            });
        assert!(used[0] > 0.8, "{used:?}");
        assert!(buffer > 9 || used[0] > used[1] && used[0] > used[2], "{used:?}");
    }
}

/// The first ten segments take their ideal time; after them pacing adds to it. No flow is faster
/// than its ideal time, which every run asserts, whatever the initial window (four segments replace
/// it).
#[test]
fn no_bbr_flow_is_faster_than_its_ideal_and_a_short_one_equals_it() {
    for window in [1, 2, 3, 4, 10, 30] {
        for segments in [1, 2, 4, 5, 10, 11, 40, 200] {
            let rows = vec![flow(0, 0, 1, segments * MSS - 7, Time::ZERO)];
            let mut scenario = scenario(row(&[(RATE, Time::from_us(100)); 3]), rows);
            let spec = tcp(&mut scenario);
            (spec.congestion, spec.initial_window) = (bbr(), Amount::Packets(window));
            let outcome = run(&scenario);
            let record = &outcome.flows[0];
            let slowdown = record.fct.expect("it ends").0 as f64 / record.ideal_fct.0 as f64;
            println!("{segments} segments, window {window}: {slowdown:.3} times the ideal");
            assert!(slowdown < 2.0, "{segments} segments, window {window}: {slowdown}");
            assert!(segments > 10 || window < 10 || slowdown == 1.0, "{slowdown}");
        }
    }
}
