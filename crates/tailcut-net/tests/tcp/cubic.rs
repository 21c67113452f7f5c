//! CUBIC (RFC 9438): windows after each event, against the equations written anew.

use crate::tcp::script::{ENDLESS, MSS, Script, newreno, sack};
use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;
use tailcut_net::transport::tcp::{CongestionSpec, TcpSpec};

const C: f64 = 0.4;
const BETA: f64 = 0.7;

fn cubic(window: u32, spec: CubicSpec) -> TcpSpec {
    TcpSpec {
        congestion: CongestionSpec::Cubic(spec),
        initial_ssthresh: Limit::AtMost(Amount::Packets(window)),
        min_rto: Time::from_ms(50_000),
        receive_window: Bytes(100_000 * MSS),
        ..newreno(window)
    }
}

/// The cubic function alone.
fn pure() -> CubicSpec {
    CubicSpec { tcp_friendly: false, ..CubicSpec::default() }
}

fn window(script: &Script) -> f64 {
    script.sender.cwnd() as f64 / MSS as f64
}

/// A window of data is acknowledged segment by segment, `round` after it was sent.
fn round_trip(script: &mut Script, round: Time) {
    script.pass(round);
    let (una, window) = (script.sender.una(), script.sender.cwnd() / MSS);
    (1..=window as u32).for_each(|n| drop(script.ack(una + n)));
}

/// One loss of a window of `window` segments, recovered.
fn after_loss(window: u32, spec: CubicSpec) -> Script {
    let mut script = Script::established(cubic(window, spec), 1_000_000);
    (0..3).for_each(|_| drop(script.ack(0)));
    script.ack(window + 2);
    script
}

/// Section 4.6.
#[test]
fn a_loss_leaves_seven_tenths_of_the_flight() {
    assert_eq!(after_loss(60, pure()).threshold(), 42);
}

/// Section 4.6, for ECN.
#[test]
fn an_echo_leaves_seven_tenths_of_the_window() {
    let mut script = Script::established(TcpSpec { ecn: true, ..cubic(100, pure()) }, ENDLESS);
    script.echo(1);
    assert_eq!((script.window(), script.threshold()), (70, 70));
}

/// Equations 1 and 2: back at the old window after K = cbrt(W_max * (1 - beta) / C) seconds,
/// whatever the round trip.
#[test]
fn the_window_is_back_where_it_was_after_k_seconds() {
    for round in [20, 50, 100].map(Time::from_ms) {
        let mut script = after_loss(100, pure());
        // What the full ACK left open is filled first, by slow start up to the threshold.
        while window(&script) < 70.0 {
            round_trip(&mut script, round);
        }
        let (start, plateau) = (script.now, 100.0);
        let k = ((plateau - window(&script)) / C).cbrt();
        let w_cubic = |t: f64| C * (t - k).powi(3) + plateau;
        while window(&script) < 0.98 * plateau {
            round_trip(&mut script, round);
            let t = (script.now - start).0 as f64 * 1e-12;
            // The window runs for the target of one round trip ahead, and reaches it one later.
            let (low, high) = (w_cubic(t - 0.1), w_cubic(t + 0.1));
            let now = window(&script);
            assert!(now > 0.97 * low && now < 1.03 * high, "{now} at {t} s: {low} to {high}");
        }
        let took = (script.now - start).0 as f64 * 1e-12;
        assert!(took < k && took > 0.5 * k, "{took} s of K = {k} s");
    }
}

/// Section 4.3: alpha = 3 (1 - beta) / (1 + beta) segments per round trip while the cubic function
/// is slower.
#[test]
fn over_short_round_trips_it_grows_as_newreno_would() {
    let mut script = after_loss(100, CubicSpec::default());
    while window(&script) < 70.0 {
        round_trip(&mut script, Time::from_us(100));
    }
    let before = window(&script);
    (0..10).for_each(|_| round_trip(&mut script, Time::from_us(100)));
    let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
    let grown = window(&script) - before;
    assert!((grown / (10.0 * alpha) - 1.0).abs() < 0.05, "grew by {grown} segments");
}

#[test]
fn past_its_former_window_the_friendly_window_grows_by_a_segment_per_round_trip() {
    let mut script = after_loss(20, CubicSpec::default());
    while window(&script) < 20.5 {
        round_trip(&mut script, Time::from_us(100));
    }
    let before = window(&script);
    (0..10).for_each(|_| round_trip(&mut script, Time::from_us(100)));
    let grown = window(&script) - before;
    assert!((grown - 10.0).abs() < 0.5, "grew by {grown} segments");
}

#[test]
fn without_friendliness_short_round_trips_hardly_grow() {
    let mut script = after_loss(100, pure());
    while window(&script) < 70.0 {
        round_trip(&mut script, Time::from_us(100));
    }
    let before = window(&script);
    (0..10).for_each(|_| round_trip(&mut script, Time::from_us(100)));
    assert!(window(&script) - before < 0.1);
}

/// Equation 1 beyond the plateau, bounded by 1.5 windows per round trip (section 4.2).
#[test]
fn far_beyond_the_plateau_it_grows_by_at_most_half_a_window_per_round_trip() {
    let mut script = after_loss(10, pure());
    let mut largest: f64 = 0.0;
    for _ in 0..100 {
        let before = window(&script);
        round_trip(&mut script, Time::from_ms(500));
        if before >= 7.0 {
            largest = largest.max(window(&script) / before);
        }
        if window(&script) > 5_000.0 {
            break;
        }
    }
    // 1.5 on the first ACK of a round, and a little more as the window grows within it.
    assert!(largest < 1.66, "{largest}");
    assert!(window(&script) > 1_000.0);
}

/// Section 4.7: W_max = 70 (1 + 0.7) / 2 instead of 70, so that the plateau is found lower.
#[test]
fn a_window_that_fell_short_of_the_last_one_gives_way() {
    let plateau = |fast_convergence| {
        let mut script = after_loss(100, CubicSpec { fast_convergence, ..pure() });
        while window(&script) < 70.0 {
            round_trip(&mut script, Time::from_ms(1));
        }
        let una = script.sender.una();
        (0..3).for_each(|_| drop(script.ack(una)));
        let end = una + (script.sender.cwnd() / MSS) as u32;
        script.ack(end - 3);
        (0..200).for_each(|_| round_trip(&mut script, Time::from_ms(20)));
        // The plateau is where the window stays longest: 3.2 s after the loss.
        window(&script)
    };
    let (gives, keeps) = (plateau(true), plateau(false));
    assert!(gives < keeps - 5.0, "{gives} against {keeps}");
}

/// Section 4.8: the plateau is then the threshold itself.
#[test]
fn a_timeout_leaves_one_segment_and_a_threshold_of_seven_tenths() {
    let mut script = Script::established(cubic(60, pure()), ENDLESS);
    script.expire();
    assert_eq!((script.window(), script.threshold()), (1, 42));
}

#[test]
fn what_the_receive_window_bounds_does_not_grow() {
    let spec = TcpSpec { receive_window: Bytes(10 * MSS), ..cubic(20, CubicSpec::default()) };
    let mut script = Script::established(spec, ENDLESS);
    (1..=40).for_each(|ack| drop(script.ack(ack)));
    assert_eq!(script.window(), 20);
}

/// Data that arrived during a recovery opens no window, and does not all at once with the ACK that
/// ends it.
#[test]
fn the_ack_that_ends_a_recovery_opens_the_window_by_what_it_newly_tells_of() {
    let cubic =
        CubicSpec { tcp_friendly: false, hystart: HystartSpec::None, ..CubicSpec::default() };
    let spec = TcpSpec { congestion: CongestionSpec::Cubic(cubic), ..sack(200) };
    let mut script = Script::established(spec, ENDLESS);
    script.pass(Time::from_us(900));
    (2..=300).for_each(|end| drop(script.sack(0, &[(1, end)])));
    assert_eq!(script.sender.counters().fast_recoveries, 1);
    script.ack(300);
    let grown = script.sender.cwnd() - script.sender.ssthresh();
    // 34 segments a second at this point of the curve, of which a round trip of 1 ms has 34 bytes:
    // of 140 segments one.
    assert!(grown <= 1, "{grown} bytes at once");
}
