//! The retransmission timer (RFC 6298, RFC 5681 3.1).

use crate::tcp::script::{ENDLESS, RTT, Script, again, newreno, sack};
use tailcut_engine::Time;
use tailcut_net::transport::tcp::{CongestionState, TcpSpec};

#[test]
fn the_timer_runs_while_something_is_outstanding() {
    let mut script = Script::established(newreno(2), 2);
    assert_eq!(script.timer(), Time::from_ms(10));
    script.ack(2);
    assert_eq!(script.sender.deadline(), Time::NEVER);
}

#[test]
fn every_ack_of_new_data_restarts_the_timer() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.pass(RTT);
    script.ack(1);
    assert_eq!(script.timer(), Time::from_ms(10));
}

#[test]
fn a_duplicate_ack_does_not_restart_the_timer() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.pass(RTT);
    script.ack(0);
    assert_eq!(script.timer(), Time::from_ms(9));
}

#[test]
fn a_timeout_leaves_a_window_of_one_segment_and_half_the_flight_as_threshold() {
    for spec in [newreno(8), sack(8)] {
        let mut script = Script::established(spec, ENDLESS);
        assert_eq!(script.expire(), [again(0)]);
        assert_eq!((script.window(), script.threshold()), (1, 4));
        assert_eq!(script.sender.state(), CongestionState::Loss);
    }
}

#[test]
fn without_sack_the_sender_goes_back_and_sends_everything_again() {
    let mut script = Script::timed_out(newreno(4));
    assert_eq!(script.ack(1), [again(1), again(2)]);
    assert_eq!(script.ack(2), [again(3)]);
}

#[test]
fn skips_segments_acknowledged_after_a_timeout() {
    let mut script = Script::timed_out(newreno(8));
    assert_eq!(script.ack(5), [again(5), again(6)]);
}

#[test]
fn the_timeout_doubles_while_nothing_arrives() {
    let mut script = Script::timed_out(newreno(4));
    for milliseconds in [20, 40, 80] {
        assert_eq!(script.timer(), Time::from_ms(milliseconds));
        assert_eq!(script.expire(), [again(0)]);
    }
}

/// RFC 6298 section 5: once new data has been sent and acknowledged.
#[test]
fn the_back_off_ends_with_the_next_measurement_and_not_before() {
    for spec in [newreno(4), sack(4)] {
        let mut script = Script::timed_out(spec);
        script.expire();
        for ack in 1..=4 {
            script.pass(RTT);
            script.ack(ack);
            assert_eq!(script.timer(), Time::from_ms(40), "what was sent again measures nothing");
        }
        script.pass(RTT);
        script.ack(5);
        assert_eq!(script.timer(), Time::from_ms(10));
    }
}

#[test]
fn the_timeout_stays_below_its_bound() {
    let max_rto = Time::from_ms(30);
    let mut script = Script::timed_out(TcpSpec { max_rto, ..newreno(4) });
    script.expire();
    assert_eq!(script.timer(), max_rto);
    script.expire();
    assert_eq!(script.timer(), max_rto);
}

/// RFC 5681 3.1 equation 4: held constant while the timer resends the same segment.
#[test]
fn repeated_timeouts_of_one_segment_reduce_the_threshold_once() {
    for spec in [newreno(20), sack(20)] {
        let mut script = Script::timed_out(spec);
        script.expire();
        script.expire();
        assert_eq!(script.threshold(), 10);
    }
}

#[test]
fn a_timeout_of_another_segment_reduces_the_threshold_again() {
    for spec in [newreno(20), sack(20)] {
        let mut script = Script::timed_out(spec);
        script.ack(1);
        script.expire();
        assert_eq!(script.threshold(), 2);
    }
}

/// Karn's algorithm, RFC 6298 section 3.
#[test]
fn a_segment_sent_twice_gives_no_measurement() {
    let mut script = Script::timed_out(newreno(4));
    let before = script.sender.rtt().smoothed();
    script.pass(RTT);
    script.ack(1);
    assert_eq!(script.sender.rtt().smoothed(), before);
}

#[test]
fn slow_start_follows_a_timeout_up_to_the_threshold() {
    let mut script = Script::timed_out(newreno(8));
    (1..=3).for_each(|ack| drop(script.ack(ack)));
    assert_eq!(script.window(), 4);
    script.ack(4);
    assert!(script.sender.cwnd() < 4_500, "congestion avoidance from the threshold on");
}
