//! Classic explicit congestion notification (RFC 3168): both halves of a connection.

use crate::tcp::script::{ENDLESS, Script, newreno, news};
use tailcut_engine::Time;
use tailcut_net::transport::tcp::{CongestionState, Receiver, TcpSpec};

fn ecn(initial_window: u32) -> TcpSpec {
    TcpSpec { ecn: true, ..newreno(initial_window) }
}

/// Section 6.1.2: as after a loss, but with nothing to send again.
#[test]
fn an_echo_halves_the_window() {
    let mut script = Script::established(ecn(10), ENDLESS);
    assert_eq!(script.echo(1), []);
    assert_eq!((script.window(), script.threshold()), (5, 5));
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert_eq!(script.sender.counters().echo_reductions, 1);
}

#[test]
fn further_echoes_of_the_same_window_of_data_change_nothing() {
    let mut script = Script::established(ecn(10), ENDLESS);
    (1..=10).for_each(|ack| drop(script.echo(ack)));
    assert_eq!(script.window(), 5);
    assert_eq!(script.sender.counters().echo_reductions, 1);
}

#[test]
fn an_echo_of_the_next_window_halves_it_again() {
    let mut script = Script::established(ecn(10), ENDLESS);
    (1..=10).for_each(|ack| drop(script.echo(ack)));
    script.echo(11);
    assert_eq!(script.sender.counters().echo_reductions, 2);
    assert_eq!(script.sender.cwnd(), 2_500);
}

/// Section 6.1.2: no increase in response to an ACK with an echo.
#[test]
fn an_acknowledgement_with_an_echo_opens_no_window() {
    let mut script = Script::established(ecn(10), ENDLESS);
    script.echo(1);
    script.echo(2);
    assert_eq!(script.window(), 5);
    script.ack(3);
    assert_eq!(script.sender.cwnd(), 5_200);
}

#[test]
fn the_window_keeps_two_segments() {
    let mut script = Script::established(ecn(2), ENDLESS);
    script.echo(1);
    assert_eq!(script.window(), 2);
}

/// Section 6.1.2: one reduction for what one window of data met, be it marks or losses.
#[test]
fn a_loss_in_the_window_of_data_of_an_echo_does_not_halve_again() {
    let mut script = Script::established(ecn(10), ENDLESS);
    script.echo(1);
    (0..3).for_each(|_| drop(script.ack(1)));
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.threshold(), 5);
}

#[test]
fn an_echo_in_the_window_of_data_of_a_loss_does_not_halve_again() {
    let mut script = Script::established(ecn(8), ENDLESS);
    (0..3).for_each(|_| drop(script.ack(0)));
    script.echo(10);
    assert_eq!((script.threshold(), script.sender.counters().echo_reductions), (4, 0));
}

#[test]
fn the_next_new_segment_says_once_that_the_window_was_reduced() {
    let mut script = Script::established(ecn(10), ENDLESS);
    assert!(!script.sender.take_cwr());
    script.echo(1);
    assert!(script.sender.take_cwr());
    assert!(!script.sender.take_cwr());
}

/// Section 6.1.2: "for any reason (because of a retransmit timeout, a Fast Retransmit, or in
/// response to an ECN Notification)".
#[test]
fn sets_cwr_after_a_fast_retransmit_or_a_timeout() {
    let mut lost = Script::established(ecn(8), ENDLESS);
    (0..3).for_each(|_| drop(lost.ack(0)));
    assert!(lost.sender.take_cwr());
    let mut late = Script::established(ecn(8), ENDLESS);
    late.expire();
    assert!(late.sender.take_cwr());
    assert!(!late.sender.take_cwr());
}

#[test]
fn without_ecn_nothing_is_said_of_a_reduction() {
    let mut script = Script::established(newreno(8), ENDLESS);
    (0..3).for_each(|_| drop(script.ack(0)));
    assert!(!script.sender.take_cwr());
}

#[test]
fn without_ecn_an_echo_means_nothing() {
    let mut script = Script::established(newreno(4), ENDLESS);
    assert_eq!(script.echo(1), news(4..6));
}

fn receiver_after(segments: &[(bool, bool)]) -> Receiver {
    let (spec, mut receiver) = (ecn(10), Receiver::new(100));
    for (seq, &(experienced, reduced)) in (0..).zip(segments) {
        receiver.note_congestion(&spec, experienced, reduced);
        receiver.on_segment(&spec, Time::ZERO, seq);
    }
    receiver
}

/// Section 6.1.3.
#[test]
fn the_receiver_echoes_a_mark_until_the_sender_says_that_it_has_reduced() {
    assert!(receiver_after(&[(true, false)]).echoes());
    assert!(receiver_after(&[(true, false), (false, false), (false, false)]).echoes());
    assert!(!receiver_after(&[(true, false), (false, true)]).echoes());
}

#[test]
fn echoes_a_marked_segment_that_carries_cwr() {
    assert!(receiver_after(&[(true, false), (true, true)]).echoes());
}
