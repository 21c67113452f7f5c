//! Scripts of samples: one ACK for each round trip of 100 ms, unless a script says otherwise.

use super::super::{CongestionAlgorithm, RateSample};
use super::*;

const MSS: u64 = 1_000;
const RTT: Time = Time::from_ms(100);

/// A connection over a path of 100 ms, whose ACKs come in no heaps.
struct Script {
    bbr: Bbr,
    window: Window,
    /// The next ACK, changed by steps.
    next: AckSample,
    pacing: Option<Pacing>,
}

impl Script {
    fn new(spec: BbrSpec) -> Script {
        let mut bbr = Bbr::new(&BbrSpec { aggregation: false, ..spec });
        let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX };
        let pacing = bbr.on_open(&window, MSS, Time::ZERO, Some(RTT));
        let next = AckSample {
            now: Time::ZERO,
            delivered: 0,
            marked: 0,
            rtt: Some(RTT),
            min_rtt: RTT,
            smoothed: RTT,
            one_way: None,
            rate: None,
            total_delivered: 0,
            lost: 0,
            total_lost: 0,
            flight: 100 * MSS,
            pipe: 100 * MSS,
            una: 0,
            end: 100,
            state: CongestionState::Open,
        };
        Script { bbr, window, next, pacing }
    }

    /// Delivers an ACK of `segments` after some time; `rate` is in segments per round trip.
    fn ack(&mut self, after: Time, segments: u64, rate: u64, limited: bool) {
        let next = &mut self.next;
        next.now += after;
        next.delivered = segments * MSS;
        let prior = next.total_delivered;
        next.total_delivered += next.delivered;
        next.rate =
            Some(RateSample { delivered: rate * MSS, prior, interval: RTT, app_limited: limited });
        self.pacing = self.bbr.on_sample(&mut self.window, MSS, next);
    }

    /// A round in which so many segments arrive.
    fn round(&mut self, segments: u64) {
        self.ack(RTT, segments, segments, false);
    }

    /// Returns a path of 100 segments per round trip, found and drained, in this phase of the gain
    /// cycle.
    fn steady(phase: u64) -> Script {
        let mut script = Script::new(BbrSpec::default());
        (0..8).for_each(|_| script.round(100));
        assert!(matches!(script.bbr.mode, BbrMode::ProbeBandwidth(_)), "{:?}", script.bbr.mode);
        script.bbr.mode = BbrMode::ProbeBandwidth(phase);
        script.bbr.phase_at = script.next.now;
        script
    }

    fn segments(&self) -> u64 {
        self.window.cwnd / MSS
    }

    /// The rate that it is paced at, in segments for each round trip, 1 % taken off.
    fn paced(&self) -> f64 {
        match self.pacing {
            Some(Pacing::Rate(rate)) => (rate as f64 / 0.99 / 1e4).round(),
            other => panic!("{other:?} is no rate"),
        }
    }
}

/// Ten segments in 100 ms times 2.885, less 1 %, are 285,615 bytes per second, once ten segments
/// have left.
#[test]
fn the_first_rate_is_the_window_over_the_handshake() {
    let script = Script::new(BbrSpec::default());
    assert_eq!(script.pacing, Some(Pacing::Later { segments: 10, rate: 285_615 }));
    let mut repeated = Bbr::new(&BbrSpec { unpaced: 0, ..BbrSpec::default() });
    // A repeated SYN has no round trip: one of a millisecond stands in.
    let pacing = repeated.on_open(&script.window, MSS, Time::ZERO, None);
    assert_eq!(pacing, Some(Pacing::Rate(28_561_500)));
}

#[test]
fn startup_doubles_and_ends_after_three_rounds_without_a_quarter_more() {
    let mut script = Script::new(BbrSpec::default());
    for segments in [10, 20, 40, 80, 100] {
        script.round(segments);
        assert_eq!(script.bbr.mode, BbrMode::Startup);
    }
    // All of it came by ACKs: the window grows by what has arrived.
    assert_eq!(script.segments(), 10 + 10 + 20 + 40 + 80 + 100);
    script.round(110);
    script.round(120);
    assert_eq!(script.bbr.mode, BbrMode::Startup);
    script.next.pipe = 200 * MSS;
    script.round(124);
    assert_eq!(script.bbr.mode, BbrMode::Drain);
    // 124 / 2.885
    assert!((script.paced() - 43.0).abs() < 1.0, "{}", script.paced());
    script.next.pipe = 128 * MSS;
    script.round(124);
    assert!(matches!(script.bbr.mode, BbrMode::ProbeBandwidth(_)), "{:?}", script.bbr.mode);
}

#[test]
fn a_lack_of_data_neither_fills_the_pipe_nor_shrinks_the_estimate() {
    let mut script = Script::new(BbrSpec::default());
    script.round(50);
    (0..20).for_each(|_| script.ack(RTT, 5, 5, true));
    assert_eq!((script.bbr.mode, script.bbr.bandwidth()), (BbrMode::Startup, 5e5));
    script.ack(RTT, 60, 60, true);
    assert_eq!(script.bbr.bandwidth(), 6e5);
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds() {
    let mut script = Script::steady(2);
    for round in 1..=11 {
        script.round(60);
        let known = if round <= 10 { 1e6 } else { 6e5 };
        assert_eq!(script.bbr.bandwidth(), known, "{round}");
    }
}

/// ACKs of data that was sent before the round began end none.
#[test]
fn a_round_is_what_was_sent_after_it_began() {
    let mut script = Script::steady(2);
    let round = script.bbr.round;
    script.next.rate = None;
    for sample in 0..4 {
        let mut next = script.next;
        next.delivered = MSS;
        next.total_delivered += sample * MSS;
        let prior = next.total_delivered - 100 * MSS;
        next.rate =
            Some(RateSample { delivered: 100 * MSS, prior, interval: RTT, app_limited: false });
        script.bbr.on_sample(&mut script.window, MSS, &next);
    }
    assert_eq!(script.bbr.round, round);
}

/// 2 BDP of 100 segments, three more, and an even number: 204; in the phase that probes two more.
#[test]
fn the_window_is_twice_the_bdp_and_what_ends_need() {
    let mut script = Script::steady(3);
    script.round(100);
    assert_eq!(script.segments(), 204);
    let mut script = Script::steady(0);
    (0..2).for_each(|_| script.ack(Time::from_ms(1), 100, 100, false));
    assert_eq!(script.segments(), 206);
}

#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut script = Script::steady(0);
    let step = Time::from_ms(101);
    // It probes on until a quarter more than the BDP is in the network: 125 + 3, two more.
    script.next.flight = 129 * MSS;
    script.ack(step, 100, 100, false);
    assert_eq!((script.bbr.mode, script.paced()), (BbrMode::ProbeBandwidth(0), 125.0));
    script.next.flight = 130 * MSS;
    script.ack(step, 100, 100, false);
    assert_eq!((script.bbr.mode, script.paced()), (BbrMode::ProbeBandwidth(1), 75.0));
    // It drains until no more than the BDP is left.
    script.next.flight = 105 * MSS;
    script.ack(Time::from_ms(50), 50, 100, false);
    assert_eq!(script.bbr.mode, BbrMode::ProbeBandwidth(1));
    script.next.flight = 104 * MSS;
    script.ack(Time::from_ms(10), 50, 100, false);
    for phase in 2..PHASES {
        assert_eq!((script.bbr.mode, script.paced()), (BbrMode::ProbeBandwidth(phase), 100.0));
        script.ack(RTT, 100, 100, false);
        assert_eq!(script.bbr.mode, BbrMode::ProbeBandwidth(phase));
        script.ack(Time::from_ms(1), 1, 100, false);
    }
    assert_eq!(script.bbr.mode, BbrMode::ProbeBandwidth(0));
}

#[test]
fn a_loss_ends_the_probe_once_a_round_trip_has_passed() {
    let mut script = Script::steady(0);
    script.next.lost = MSS;
    script.ack(Time::from_ms(99), 99, 100, false);
    assert_eq!(script.bbr.mode, BbrMode::ProbeBandwidth(0));
    script.ack(Time::from_ms(2), 2, 100, false);
    assert_eq!(script.bbr.mode, BbrMode::ProbeBandwidth(1));
}

#[test]
fn connections_begin_the_cycle_in_phases_of_their_own_and_none_by_draining() {
    let phases = (0..70).map(|entity| {
        let mut bbr = Bbr::new(&BbrSpec::default());
        bbr.draw_from(1, entity);
        bbr.probe_bandwidth(Time::ZERO);
        bbr.mode
    });
    let mut count = [0; PHASES as usize];
    for mode in phases {
        let BbrMode::ProbeBandwidth(phase) = mode else { panic!("{mode:?}") };
        count[phase as usize] += 1;
    }
    assert_eq!(count[1], 0);
    assert!(count.iter().enumerate().all(|(phase, count)| phase == 1 || *count > 2), "{count:?}");
}

/// After ten seconds of longer round trips the window is four segments for 200 ms and a round, then
/// as before.
#[test]
fn an_old_round_trip_is_measured_anew_with_four_segments() {
    let mut script = Script::steady(2);
    script.round(100);
    let before = script.segments();
    script.next.rtt = Some(Time::from_ms(120));
    let since = script.bbr.min_rtt_at;
    while script.next.now.since(since) <= Time::from_ms(10_000) {
        assert_ne!(script.bbr.mode, BbrMode::ProbeRtt);
        script.round(100);
    }
    assert_eq!((script.bbr.mode, script.segments()), (BbrMode::ProbeRtt, 4));
    assert!(script.bbr.is_self_limited());
    // The network empties first.
    script.round(100);
    script.next.pipe = 4 * MSS;
    script.next.rtt = Some(Time::from_ms(90));
    let emptied = script.next.now + RTT;
    while script.bbr.mode == BbrMode::ProbeRtt {
        script.ack(RTT, 4, 4, true);
    }
    assert_eq!(script.next.now.since(emptied), Time::from_ms(300));
    assert_eq!((script.bbr.min_rtt(), script.bbr.bandwidth()), (Time::from_ms(90), 1e6));
    assert!(script.segments() >= before - 25, "{} of {before}", script.segments());
    assert!(!script.bbr.is_self_limited());
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut script = Script::steady(3);
    script.round(100);
    assert_eq!(script.segments(), 204);
    script.bbr.on_loss(&script.window, 0, MSS);
    script.next.state = CongestionState::Recovery;
    (script.next.lost, script.next.pipe) = (10 * MSS, 80 * MSS);
    script.ack(Time::from_ms(1), 2, 100, false);
    assert_eq!(script.segments(), 82);
    // Data of before the recovery: still the first round.
    script.next.lost = 0;
    script.next.pipe = 81 * MSS;
    let mut next = script.next;
    next.delivered = MSS;
    next.rate = None;
    script.bbr.on_sample(&mut script.window, MSS, &next);
    assert_eq!(script.segments(), 82);
    script.ack(RTT, 20, 100, false);
    assert_eq!(script.segments(), 102);
    script.next.state = CongestionState::Open;
    script.ack(RTT, 1, 100, false);
    assert_eq!(script.segments(), 204);
}

#[test]
fn a_timeout_leaves_one_segment_and_what_arrives_opens_the_window() {
    let mut script = Script::steady(3);
    script.round(100);
    script.bbr.on_timeout(&script.window, 0, MSS);
    script.window.cwnd = MSS;
    script.bbr.after_timeout(&mut script.window, MSS, script.next.now);
    assert_eq!(script.segments(), 1);
    script.next.state = CongestionState::Loss;
    script.ack(RTT, 1, 1, false);
    assert_eq!(script.segments(), 4);
    script.ack(RTT, 4, 4, false);
    assert_eq!((script.segments(), script.bbr.bandwidth()), (8, 1e6));
    script.next.state = CongestionState::Open;
    script.ack(RTT, 4, 4, false);
    assert_eq!(script.segments(), 204);
}

/// The path is idle for more than ten seconds.
#[test]
fn data_after_a_silence_go_at_the_bandwidth_and_no_probe_for_the_round_trip_is_made() {
    let mut script = Script::steady(0);
    script.next.now += Time::from_ms(20_000);
    assert_eq!(script.bbr.after_idle(script.next.now), Some(Pacing::Rate(990_000)));
    script.next.rtt = Some(Time::from_ms(110));
    script.round(100);
    assert!(matches!(script.bbr.mode, BbrMode::ProbeBandwidth(_)), "{:?}", script.bbr.mode);
    assert_eq!(script.bbr.min_rtt(), Time::from_ms(110));
}

#[test]
fn a_policer_s_rate_takes_the_place_of_the_bandwidth() {
    let mut script = Script::steady(0);
    script.next.lost = 30 * MSS;
    let mut policed = || {
        script.next.total_lost += 30 * MSS;
        script.ack(RTT, 100, 120, false);
        (script.bbr.bandwidth() - 1e6).abs() < 1.0 && script.paced() == 100.0
    };
    assert!((0..10).any(|_| policed()));
    assert!((0..10).all(|_| policed()));
}

#[test]
fn parameters_that_mean_nothing_are_refused() {
    let plain = BbrSpec::default;
    let wrong = [
        BbrSpec { startup_gain: 1.0, ..plain() },
        BbrSpec { cwnd_gain: f64::NAN, ..plain() },
        BbrSpec { probe_up: 0.9, ..plain() },
        BbrSpec { probe_down: 0.0, ..plain() },
        BbrSpec { pacing_margin: 1.0, ..plain() },
        BbrSpec { bandwidth_rounds: 0, ..plain() },
        BbrSpec { min_window: 0, ..plain() },
        BbrSpec { min_rtt_window: Time::ZERO, ..plain() },
        BbrSpec { probe_rtt: Time::from_ms(20_000), ..plain() },
    ];
    assert!(wrong.iter().all(|spec| spec.check().is_err()));
    assert_eq!(plain().check(), Ok(()));
}
