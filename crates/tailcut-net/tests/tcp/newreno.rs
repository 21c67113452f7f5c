//! Fast retransmit and fast recovery without SACK (RFC 5681 3.2, RFC 6582, RFC 3042).

use crate::tcp::script::{ENDLESS, MSS, RTT, Script, again, new, newreno};
use tailcut_engine::{Bytes, Time};
use tailcut_net::transport::tcp::{CongestionState, TcpSpec};

/// RFC 3042: new segments keep the ACK clock going, and the window stays as it is.
#[test]
fn limited_transmit_sends_a_new_segment_on_each_of_two_duplicate_acks() {
    let mut script = Script::established(newreno(8), ENDLESS);
    assert_eq!(script.ack(0), [new(8)]);
    assert_eq!(script.ack(0), [new(9)]);
    assert_eq!(script.window(), 8);
    assert_eq!(script.sender.state(), CongestionState::Disorder);
}

#[test]
fn without_limited_transmit_two_duplicate_acks_are_borne_in_silence() {
    let mut script =
        Script::established(TcpSpec { limited_transmit: false, ..newreno(8) }, ENDLESS);
    assert_eq!((script.ack(0), script.ack(0)), (vec![], vec![]));
}

/// RFC 5681 3.2 steps 2 and 3; what limited transmit sent does not count as flight.
#[test]
fn the_third_duplicate_ack_resends_the_first_segment_and_halves_the_window() {
    let mut script = Script::established(newreno(8), ENDLESS);
    script.ack(0);
    script.ack(0);
    assert_eq!(script.ack(0), [again(0)]);
    assert_eq!((script.threshold(), script.window()), (4, 7));
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.sender.counters().fast_recoveries, 1);
}

#[test]
fn the_threshold_of_duplicate_acks_is_a_parameter() {
    let mut script = Script::established(TcpSpec { dupack_threshold: 2, ..newreno(8) }, ENDLESS);
    assert_eq!(script.ack(0), [new(8)]);
    assert_eq!(script.ack(0), [again(0)]);
}

/// RFC 5681 section 3.2 takes what limited transmit has sent off the flight: here the receiver's
/// window lets nothing out.
#[test]
fn limited_transmit_that_was_not_sent_is_part_of_the_flight() {
    let spec = TcpSpec { receive_window: Bytes(10 * MSS), ..newreno(10) };
    let mut script = Script::established(spec, ENDLESS);
    assert_eq!(script.ack(0), []);
    assert_eq!(script.ack(0), []);
    assert_eq!(script.ack(0), [again(0)]);
    assert_eq!(script.threshold(), 5);
}

#[test]
fn the_threshold_is_never_below_two_segments() {
    let mut script = Script::established(TcpSpec { limited_transmit: false, ..newreno(4) }, 4);
    (0..3).for_each(|_| drop(script.ack(0)));
    assert_eq!(script.threshold(), 2);
}

/// RFC 5681 3.2 step 4: ten segments are out and the window is 7, so the fourth further duplicate
/// lets one out.
#[test]
fn each_further_duplicate_ack_inflates_the_window() {
    let mut script = Script::recovering(8);
    for inflated in 8..=10 {
        assert_eq!(script.ack(0), []);
        assert_eq!(script.window(), inflated);
    }
    assert_eq!(script.ack(0), [new(10)]);
}

/// RFC 6582 3.2 step 3: min(ssthresh, max(FlightSize, SMSS) + SMSS).
#[test]
fn a_full_ack_ends_recovery_without_a_burst() {
    let mut script = Script::recovering(8);
    let sent = script.ack(10);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert_eq!(sent, [new(10), new(11)]);
    assert_eq!(script.window(), 2);
}

/// RFC 6582 3.2 step 3: deflate by what was acknowledged, add back one segment.
#[test]
fn a_partial_ack_resends_the_next_hole_and_deflates_the_window() {
    let mut script = Script::recovering(8);
    let before = script.window();
    assert_eq!(script.ack(2), [again(2)]);
    assert_eq!(script.window(), before - 2 + 1);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
}

/// RFC 6582 3.2 step 3 and section 4, the "impatient" variant.
#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    let mut script = Script::recovering(8);
    script.pass(RTT);
    script.ack(2);
    assert_eq!(script.timer(), Time::from_ms(10));
    script.pass(RTT);
    script.ack(4);
    assert_eq!(script.timer(), Time::from_ms(9));
}

#[test]
fn a_second_loss_after_recovery_is_recovered_too() {
    let mut script = Script::recovering(8);
    script.ack(10);
    script.ack(12);
    (0..3).for_each(|_| drop(script.ack(12)));
    assert_eq!(script.sender.counters().fast_recoveries, 2);
}

/// RFC 6582 3.2 step 1: they may answer what the timeout resent needlessly.
#[test]
fn duplicate_acks_of_what_was_sent_before_a_timeout_start_no_recovery() {
    let mut script = Script::timed_out(newreno(8));
    script.ack(4);
    for _ in 0..5 {
        script.ack(4);
    }
    assert_eq!(script.sender.counters().fast_recoveries, 0);
    assert_eq!(script.sender.state(), CongestionState::Loss);
}

#[test]
fn duplicates_of_the_ack_of_what_a_timeout_covered_start_no_recovery() {
    let mut script = Script::timed_out(newreno(8));
    script.ack(8);
    (0..5).for_each(|_| assert_eq!(script.ack(8), []));
    assert_eq!(script.sender.counters().fast_recoveries, 0);
}

/// RFC 6582 step 2.
#[test]
fn duplicates_of_the_ack_that_ended_a_recovery_start_no_other() {
    let mut script = Script::recovering(8);
    let end = script.sender.una() + 8 + 2;
    script.ack(end);
    assert_eq!(script.sender.state(), CongestionState::Open);
    let recovered = script.sender.counters().fast_recoveries;
    (0..5).for_each(|_| drop(script.ack(end)));
    assert_eq!(script.sender.counters().fast_recoveries, recovered);
}

#[test]
fn once_more_than_the_timeout_covered_is_acknowledged_recovery_may_start_again() {
    let mut script = Script::timed_out(newreno(8));
    script.ack(8);
    assert_eq!(script.sender.state(), CongestionState::Open);
    script.ack(9);
    (0..3).for_each(|_| drop(script.ack(9)));
    assert_eq!(script.sender.counters().fast_recoveries, 1);
}

#[test]
fn an_ack_of_everything_is_no_duplicate() {
    let mut script = Script::established(newreno(4), 4);
    script.ack(3);
    script.ack(3);
    assert_eq!(script.sender.counters().duplicate_acks, 1);
    script.ack(4);
    assert_eq!(script.sender.counters().duplicate_acks, 1);
}
