//! Recovery with selective acknowledgements (RFC 6675) and proportional rate reduction (RFC 9937).

use crate::tcp::script::{ENDLESS, MSS, Script, again, new, news, sack};
use tailcut_engine::Time;
use tailcut_net::transport::Transmit;
use tailcut_net::transport::tcp::{CongestionState, ReductionBase, TcpSpec};

/// Of an initial window of ten, the first segment is lost and the next three have arrived.
fn recovering() -> Script {
    let mut script = Script::established(sack(10), ENDLESS);
    script.sack(0, &[(1, 4)]);
    script
}

#[test]
fn each_segment_beyond_a_gap_lets_a_new_one_out() {
    let mut script = Script::established(sack(10), ENDLESS);
    assert_eq!(script.sack(0, &[(1, 2)]), [new(10)]);
    assert_eq!(script.sack(0, &[(1, 3)]), [new(11)]);
    assert_eq!(script.window(), 10);
}

#[test]
fn without_limited_transmit_the_first_two_let_nothing_out() {
    let mut script = Script::established(TcpSpec { limited_transmit: false, ..sack(10) }, ENDLESS);
    assert_eq!((script.sack(0, &[(1, 2)]), script.sack(0, &[(1, 3)])), (vec![], vec![]));
}

#[test]
fn the_third_duplicate_ack_starts_recovery_by_resending_the_first_segment() {
    let mut script = Script::established(sack(10), 10);
    script.sack(0, &[(1, 2)]);
    script.sack(0, &[(1, 3)]);
    assert_eq!(script.sack(0, &[(1, 4)]), [again(0)]);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
}

/// Section 5 step 2: three segments beyond the gap are enough, however few ACKs tell of them.
#[test]
fn one_ack_that_tells_of_three_arrivals_starts_recovery() {
    let script = recovering();
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.sender.counters().fast_recoveries, 1);
}

/// Section 5 step 4.2: half of what is outstanding, whatever has arrived of it.
#[test]
fn recovery_halves_what_is_outstanding() {
    assert_eq!(recovering().threshold(), 5);
}

/// Six of ten are still in the network when the loss is noticed.
#[test]
fn recovery_can_be_told_to_halve_what_is_in_the_network() {
    let spec = TcpSpec { reduction_base: ReductionBase::Pipe, ..sack(10) };
    let mut script = Script::established(spec, ENDLESS);
    script.sack(0, &[(1, 4)]);
    assert_eq!(script.threshold(), 3);
}

/// RFC 5681 section 3.2: segments sent by limited transmit do not count.
#[test]
fn what_limited_transmit_has_sent_is_not_halved() {
    let mut script = Script::established(sack(10), ENDLESS);
    (2..=4).for_each(|end| drop(script.sack(0, &[(1, end)])));
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.threshold(), 5, "of ten outstanding before the first duplicate ACK");
}

#[test]
fn what_is_sent_after_an_ack_that_advances_counts() {
    let mut script = Script::established(sack(10), ENDLESS);
    (1..=4).for_each(|ack| drop(script.ack(ack)));
    // Fourteen are outstanding; the next is lost.
    (6..=8).for_each(|end| drop(script.sack(4, &[(5, end)])));
    assert_eq!(script.threshold(), 7);
}

#[test]
fn an_ack_without_news_is_no_duplicate() {
    let mut script = Script::established(sack(10), ENDLESS);
    for _ in 0..5 {
        script.sack(0, &[(1, 2)]);
    }
    assert_eq!(script.sender.counters().duplicate_acks, 1);
    assert_eq!(script.sender.state(), CongestionState::Disorder);
}

/// Section 5: "regardless of its status as a cumulative acknowledgment".
#[test]
fn an_ack_that_advances_and_tells_of_a_new_gap_counts_as_the_first_duplicate() {
    let mut script = Script::established(sack(10), 10);
    script.sack(0, &[(1, 2)]);
    script.sack(2, &[(4, 5)]);
    script.sack(2, &[(4, 6)]);
    assert_eq!(script.sender.state(), CongestionState::Disorder);
    assert_eq!(script.sack(2, &[(4, 7)]), [again(2)]);
}

/// NextSeg: what is lost (1), new data (2), what is in doubt (3), the last segment once (4).
#[test]
fn what_is_lost_goes_before_new_data() {
    let mut script = Script::established(sack(20), ENDLESS);
    assert_eq!(script.sack(0, &[(1, 2), (3, 6)]), [again(0), again(2)]);
    let sent = script.sack(0, &[(1, 2), (3, 16)]);
    assert_eq!(sent, news(20..20 + sent.len() as u32));
    assert!(!sent.is_empty());
}

#[test]
fn without_new_data_what_is_in_doubt_is_resent_once() {
    let mut script = Script::established(sack(30), 30);
    // 5 has one segment above it, which is no proof of loss.
    assert_eq!(script.sack(0, &[(1, 5), (6, 7)]), [again(0), again(5)]);
    assert!((8..20).all(|end| !script.sack(0, &[(1, 5), (6, end)]).contains(&again(5))));
}

#[test]
fn a_rescue_resends_the_last_segment_once() {
    let mut script = Script::established(sack(20), 20);
    assert_eq!(script.sack(0, &[(1, 4)]), [again(0)]);
    // 18 and 19 are lost, and nothing says so.
    let sent: Vec<_> = (5..=18).flat_map(|end| script.sack(0, &[(1, end)])).collect();
    assert_eq!(sent, [again(19)]);
    assert_eq!(script.sack(18, &[]), []);
}

/// Rule 4: HighRxt is not updated, so that what precedes the rescued segment stays eligible under
/// rule 3.
#[test]
fn a_rescue_leaves_what_precedes_it_in_doubt() {
    let mut script = Script::established(sack(20), 20);
    script.sack(0, &[(1, 4)]);
    let sent: Vec<_> = (5..=14).flat_map(|end| script.sack(0, &[(1, end)])).collect();
    assert_eq!(sent, [again(19)], "14 to 18 are not sacked, nor is anything beyond them");
    // 18 arrives: one segment beyond 14 to 17 is no proof that they are lost.
    let sent: Vec<_> =
        [(18, 19), (17, 19)].iter().flat_map(|&late| script.sack(0, &[late, (1, 14)])).collect();
    assert!(sent.contains(&again(14)), "{sent:?}");
}

#[test]
fn recovery_ends_at_the_recovery_point_with_the_threshold_as_window() {
    let mut script = recovering();
    let end = 10 + script.sender.counters().data_packets as u32 - 11;
    script.sack(9, &[]);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    script.sack(end.max(10), &[]);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert_eq!(
        script.sender.cwnd(),
        5 * MSS + MSS / 5,
        "and the ACK that ends it counts in congestion avoidance"
    );
}

/// RFC 9937: from twenty segments to a threshold of ten, so that about every second arrival lets
/// one out.
#[test]
fn the_rate_falls_in_proportion_to_what_arrives() {
    let mut script = Script::established(sack(20), ENDLESS);
    script.sack(0, &[(1, 4)]);
    let sent: usize = (5..=10).map(|end| script.sack(0, &[(1, end)]).len()).sum();
    assert_eq!(sent, 3, "for six arrivals");
}

#[test]
fn a_resent_segment_that_a_later_one_overtakes_is_lost_again() {
    let mut script = recovering();
    script.pass(Time::from_us(10));
    let mut later = vec![];
    for end in 5..=10 {
        later.extend(script.sack(0, &[(1, end)]));
    }
    assert_eq!(later, news(10..10 + later.len() as u32), "new data after the retransmission");
    assert!(
        script.sack(0, &[(1, 11)]).contains(&again(0)),
        "10 left after the retransmission of 0"
    );
}

#[test]
fn a_timeout_resends_what_was_not_selectively_acknowledged_and_nothing_else() {
    let mut script = Script::established(sack(6), 6);
    script.sack(0, &[(1, 2), (4, 5)]);
    assert_eq!(script.expire(), [again(0)]);
    assert_eq!(script.ack(2), [again(2), again(3)]);
    assert_eq!(script.ack(5), [again(5)]);
}

/// Section 5.1: not before everything sent until the timeout is acknowledged.
#[test]
fn a_timeout_starts_no_new_recovery() {
    let mut script = Script::established(sack(10), ENDLESS);
    script.expire();
    script.sack(1, &[(2, 9)]);
    assert_eq!(script.sender.state(), CongestionState::Loss);
    assert_eq!(script.sender.counters().fast_recoveries, 0);
    script.ack(10);
    assert_eq!(script.sender.state(), CongestionState::Open);
}

/// Section 5 step 2: the losses that recovery did not cover are a new event of congestion.
#[test]
fn losses_beyond_the_recovery_point_start_a_second_recovery() {
    let mut script = recovering();
    let point = script.sender.counters().data_packets as u32 - 1;
    script.ack(point);
    script.sack(point, &[(point + 1, point + 2)]);
    script.sack(point, &[(point + 1, point + 3)]);
    script.sack(point, &[(point + 1, point + 4)]);
    assert_eq!(script.sender.counters().fast_recoveries, 2);
}

/// RFC 5681 section 4.3. No later acknowledgement would tell of them.
#[test]
fn losses_beyond_the_recovery_point_that_are_known_as_the_recovery_ends_start_a_second_one() {
    let mut script = recovering();
    assert_eq!(script.sack(0, &[(1, 10)]), news(10..14));
    // The first segment that was sent in the recovery is lost as well, and is sent again in it.
    assert!(script.sack(0, &[(1, 10), (11, 14)]).contains(&again(10)));
    script.sack(10, &[(11, 14)]);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.sender.counters().fast_recoveries, 2);
    assert_eq!(script.threshold(), 3);
}

#[test]
fn the_receive_window_bounds_new_data_in_recovery_too() {
    let spec = TcpSpec { receive_window: tailcut_engine::Bytes(10 * MSS), ..sack(10) };
    let mut script = Script::established(spec, ENDLESS);
    let sent: Vec<_> = (2..=10).flat_map(|end| script.sack(0, &[(1, end)])).collect();
    assert_eq!(sent[0], again(0));
    assert!(
        sent.iter().all(|sent| matches!(sent, Transmit::Segment { retransmission: true, .. })),
        "{sent:?}"
    );
}
