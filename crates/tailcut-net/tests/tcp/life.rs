//! From the SYN to the end (RFC 9293, RFC 6298).

use crate::tcp::script::{ENDLESS, RTT, Script, new, newreno, news, sack};
use tailcut_engine::Time;
use tailcut_net::transport::tcp::{Sender, TcpSpec};
use tailcut_net::transport::{ConnectionState, Transmit};

#[test]
fn nothing_is_sent_before_the_opening_time() {
    let spec = newreno(4);
    let mut sender = Sender::new(&spec, 1, Time::from_us(7));
    assert_eq!(sender.poll_transmit(&spec, Time::ZERO), None);
    assert_eq!((sender.phase(), sender.deadline()), (ConnectionState::Closed, Time::from_us(7)));
}

#[test]
fn the_handshake_ends_with_an_ack_and_the_initial_window() {
    let mut script = Script::opening(newreno(4), ENDLESS);
    script.pass(RTT);
    let sent = script.syn_ack();
    assert_eq!(sent[0], Transmit::Ack);
    assert_eq!(sent[1..], news(0..4));
    assert_eq!(script.sender.phase(), ConnectionState::Established);
}

#[test]
fn the_handshake_measures_the_round_trip() {
    let script = Script::established(newreno(4), ENDLESS);
    assert_eq!(script.sender.rtt().smoothed(), RTT);
}

#[test]
fn a_lost_syn_is_repeated_at_doubled_intervals() {
    let mut script = Script::opening(newreno(4), ENDLESS);
    for milliseconds in [10, 20, 40, 80] {
        assert_eq!(script.timer(), Time::from_ms(milliseconds));
        assert_eq!(script.expire(), [Transmit::Syn { retry: true }]);
    }
    assert_eq!(script.sender.counters().timeouts, 4);
}

#[test]
fn the_last_retry_of_the_syn_is_the_last() {
    let mut script = Script::opening(TcpSpec { syn_retries: 2, ..newreno(4) }, ENDLESS);
    assert_eq!(script.expire(), [Transmit::Syn { retry: true }]);
    assert_eq!(script.expire(), [Transmit::Syn { retry: true }]);
    assert_eq!(script.expire(), []);
    assert_eq!(
        (script.sender.phase(), script.sender.deadline()),
        (ConnectionState::Aborted, Time::NEVER)
    );
}

/// RFC 6298 5.7, with Karn's algorithm: which SYN was answered is not known.
#[test]
fn a_repeated_syn_gives_no_measurement_but_more_time_for_the_first_data() {
    let mut script = Script::opening(newreno(4), ENDLESS);
    script.expire();
    script.pass(RTT);
    script.syn_ack();
    assert_eq!(script.sender.rtt().smoothed(), Time::ZERO);
    assert_eq!(script.timer(), Time::from_ms(30));
}

/// RFC 6298 5.7 wants three seconds of hosts that begin with less. Who begins with three goes on
/// with what Karn's back-off has made of them.
#[test]
fn after_a_repeated_syn_data_waits_for_three_seconds_or_what_the_back_off_says() {
    for (initial_s, losses, data_s) in [(1, 1, 3), (1, 2, 4), (2, 1, 4), (3, 1, 6), (3, 2, 12)] {
        let initial_rto = Time::from_ms(1_000 * initial_s);
        let mut script = Script::opening(TcpSpec { initial_rto, ..newreno(4) }, ENDLESS);
        (0..losses).for_each(|_| drop(script.expire()));
        script.pass(RTT);
        script.syn_ack();
        assert_eq!(script.timer(), Time::from_ms(1_000 * data_s), "{initial_s} s, {losses} lost");
    }
}

/// As MMPTCP's authors have it: 1.5 s, then 3 s, until data has given a sample.
#[test]
fn a_first_data_timeout_replaces_the_handshakes_sample() {
    for lost_syns in [0, 1] {
        let first_data_rto = Some(Time::from_ms(1_500));
        let mut script = Script::opening(TcpSpec { first_data_rto, ..newreno(4) }, ENDLESS);
        (0..lost_syns).for_each(|_| drop(script.expire()));
        script.pass(RTT);
        script.syn_ack();
        assert_eq!(script.sender.rtt().smoothed(), Time::ZERO);
        assert_eq!(script.timer(), Time::from_ms(1_500));
        script.expire();
        assert_eq!(script.timer(), Time::from_ms(3_000));
    }
}

#[test]
fn the_first_round_trip_of_data_ends_the_first_data_timeout() {
    let first_data_rto = Some(Time::from_ms(1_500));
    let mut script = Script::opening(TcpSpec { first_data_rto, ..newreno(4) }, ENDLESS);
    script.pass(RTT);
    script.syn_ack();
    script.pass(RTT);
    script.ack(2);
    assert_eq!((script.sender.rtt().smoothed(), script.timer()), (RTT, Time::from_ms(10)));
}

/// RFC 6928 section 2.
#[test]
fn a_syn_repeated_once_leaves_the_initial_window_and_one_repeated_twice_a_segment() {
    for (losses, sent) in [(1, news(0..4)), (2, news(0..1)), (3, news(0..1))] {
        let mut script = Script::opening(newreno(4), ENDLESS);
        (0..losses).for_each(|_| drop(script.expire()));
        script.pass(RTT);
        assert_eq!(script.syn_ack()[1..], sent, "{losses}");
    }
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_and_changes_nothing() {
    let mut script = Script::established(newreno(4), ENDLESS);
    let before = script.sender.cwnd();
    assert_eq!(script.syn_ack(), [Transmit::Ack]);
    assert_eq!(script.sender.cwnd(), before);
}

#[test]
fn a_connection_is_done_when_all_is_acknowledged() {
    let mut script = Script::established(newreno(4), 3);
    script.ack(2);
    assert_eq!(script.sender.phase(), ConnectionState::Established);
    script.ack(3);
    assert_eq!(
        (script.sender.phase(), script.sender.deadline()),
        (ConnectionState::Done, Time::NEVER)
    );
}

#[test]
fn the_receivers_fin_is_acknowledged() {
    let mut script = Script::established(newreno(4), 1);
    script.ack(1);
    script.sender.on_fin(&script.spec);
    assert_eq!(script.sent(), [Transmit::Ack]);
}

#[test]
fn the_last_segment_carries_what_is_left() {
    let spec = newreno(4);
    let sender = Sender::new(&spec, 2_001, Time::ZERO);
    let sizes: Vec<u64> = (0..sender.segments()).map(|seq| sender.payload(&spec, seq)).collect();
    assert_eq!(sizes, [1_000, 1_000, 1]);
}

#[test]
fn acks_of_what_was_never_sent_or_is_long_acknowledged_change_nothing() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.ack(2);
    let before = (script.sender.cwnd(), script.sender.una(), script.sender.counters());
    for ack in [0, 1, 99] {
        assert_eq!(script.ack(ack), []);
    }
    assert_eq!((script.sender.cwnd(), script.sender.una(), script.sender.counters()), before);
}

#[test]
fn a_reset_ends_the_connection_in_silence() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.sender.on_reset();
    assert_eq!(script.sent(), []);
    assert_eq!(
        (script.sender.phase(), script.sender.deadline()),
        (ConnectionState::Aborted, Time::NEVER)
    );
}

#[test]
fn aborting_an_established_connection_sends_a_reset_and_nothing_after_it() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.sender.abort();
    assert_eq!(script.sent(), [Transmit::Reset]);
    assert_eq!(
        (script.sender.phase(), script.sender.deadline()),
        (ConnectionState::Aborted, Time::NEVER)
    );
}

/// RFC 9293 3.10.7.1: a segment for a connection that does not exist is answered by a reset.
#[test]
fn what_arrives_after_aborting_is_answered_by_a_reset() {
    let mut script = Script::established(newreno(4), ENDLESS);
    script.sender.abort();
    script.sent();
    assert_eq!(script.ack(2), [Transmit::Reset]);
}

#[test]
fn aborting_before_the_handshake_ends_is_silent_and_a_late_syn_ack_is_reset() {
    let mut script = Script::opening(newreno(4), ENDLESS);
    script.sender.abort();
    assert_eq!(script.sent(), []);
    assert_eq!(script.syn_ack(), [Transmit::Reset]);
}

#[test]
fn a_reset_after_the_last_ack_leaves_the_connection_done() {
    let mut script = Script::established(newreno(4), 1);
    script.ack(1);
    script.sender.on_reset();
    assert_eq!(script.sender.phase(), ConnectionState::Done);
}

/// RFC 7323 2.2: the window of a SYN-ACK is not scaled.
#[test]
fn the_window_of_the_syn_ack_bounds_what_leaves_before_the_first_acknowledgement() {
    for spec in [newreno(100), sack(100)] {
        let mut script = Script::opening(spec, ENDLESS);
        script.pass(RTT);
        let mut sent = vec![Transmit::Ack];
        sent.extend(news(0..65));
        assert_eq!(script.syn_ack(), sent);
        script.pass(RTT);
        assert_eq!(script.ack(1), news(65..102), "an acknowledgement has the scaled window");
    }
    let mut script = Script::established(newreno(100), ENDLESS);
    script.pass(RTT);
    assert_eq!(script.ack(0), news(65..101), "a duplicate has it, too");
}

#[test]
fn a_flow_of_one_byte_is_one_segment() {
    let spec = newreno(4);
    let mut script = Script::opening(spec, 1);
    script.pass(RTT);
    assert_eq!(script.syn_ack(), [Transmit::Ack, new(0)]);
}
