//! How the window grows, and what bounds it (RFC 5681, RFC 9293).

use crate::tcp::script::{ENDLESS, MSS, RTT, Script, new, newreno, news};
use tailcut_engine::Bytes;
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::tcp::TcpSpec;

#[test]
fn slow_start_sends_two_segments_for_each_acknowledged() {
    let mut script = Script::established(newreno(2), ENDLESS);
    script.pass(RTT);
    assert_eq!(script.ack(1), news(2..4));
    assert_eq!(script.ack(2), news(4..6));
    assert_eq!(script.window(), 4);
}

/// RFC 5681 3.1: by at most one segment for each ACK.
#[test]
fn an_ack_of_two_segments_opens_the_window_by_one() {
    let mut script = Script::established(newreno(4), ENDLESS);
    assert_eq!(script.ack(2), news(4..7));
    assert_eq!(script.window(), 5);
}

#[test]
fn congestion_avoidance_adds_about_one_segment_for_a_window_of_acks() {
    let ssthresh = Limit::AtMost(Amount::Packets(10));
    let mut script =
        Script::established(TcpSpec { initial_ssthresh: ssthresh, ..newreno(10) }, ENDLESS);
    (1..=10).for_each(|ack| drop(script.ack(ack)));
    let gained = script.sender.cwnd() - 10 * MSS;
    assert!((900..=MSS).contains(&gained), "gained {gained} bytes");
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let ssthresh = Limit::AtMost(Amount::Packets(4));
    let mut script =
        Script::established(TcpSpec { initial_ssthresh: ssthresh, ..newreno(2) }, ENDLESS);
    script.ack(1);
    script.ack(2);
    assert_eq!(script.window(), 4);
    script.ack(3);
    assert_eq!(script.sender.cwnd(), 4 * MSS + MSS * MSS / (4 * MSS));
}

#[test]
fn a_full_receive_window_lets_out_one_segment_for_each_acknowledged() {
    let mut script =
        Script::established(TcpSpec { receive_window: Bytes(4_999), ..newreno(8) }, ENDLESS);
    assert_eq!(script.sender.una(), 0);
    assert_eq!(script.ack(1), [new(4)]);
    assert_eq!(script.ack(3), news(5..7));
}

#[test]
fn a_window_in_bytes_sends_whole_segments() {
    let initial_window = Amount::Bytes(3_999);
    let mut script = Script::opening(TcpSpec { initial_window, ..newreno(1) }, ENDLESS);
    script.pass(RTT);
    assert_eq!(script.syn_ack()[1..], news(0..3));
}

#[test]
fn nothing_is_sent_beyond_the_end_of_the_flow() {
    let mut script = Script::established(newreno(4), 5);
    assert_eq!(script.ack(2), [new(4)]);
    assert_eq!(script.ack(3), []);
}
