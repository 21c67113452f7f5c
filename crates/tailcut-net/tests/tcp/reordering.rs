//! Telling reordering from loss: D-SACK (RFC 2883), adaptive thresholds with undo, RR-TCP, NCR (RFC
//! 4653).

use crate::tcp::script::{ENDLESS, MSS, Script, again, new, news, sack};
use tailcut_engine::Time;
use tailcut_net::transport::Transmit;
use tailcut_net::transport::tcp::reordering::{adaptive, ncr, rr_tcp};
use tailcut_net::transport::tcp::{CongestionState, Receiver, ReorderingSpec, TcpSpec};

fn with(reordering: ReorderingSpec, window: u32) -> Script {
    Script::established(TcpSpec { reordering, ..sack(window) }, ENDLESS)
}

fn adaptive(window: u32) -> Script {
    with(ReorderingSpec::Adaptive(adaptive::AdaptiveSpec::default()), window)
}

fn rr_tcp(window: u32) -> Script {
    with(ReorderingSpec::RrTcp(rr_tcp::RrTcpSpec::default()), window)
}

fn ncr(variant: ncr::NcrVariant, window: u32) -> Script {
    with(ReorderingSpec::Ncr(ncr::NcrSpec { variant }), window)
}

fn receiver_after(arrivals: &[u32]) -> Receiver {
    let reordering = ReorderingSpec::Adaptive(adaptive::AdaptiveSpec::default());
    let (spec, mut receiver) = (TcpSpec { reordering, ..sack(10) }, Receiver::new(100));
    for &seq in arrivals {
        receiver.take_blocks();
        receiver.on_segment(&spec, Time::ZERO, seq);
    }
    receiver
}

/// RFC 2883 section 4.1: the first block is the duplicate, below the cumulative acknowledgement.
#[test]
fn a_duplicate_is_reported_once_in_the_first_block() {
    let mut receiver = receiver_after(&[0, 1, 2, 1]);
    assert_eq!(receiver.take_blocks().as_slice(), [(1, 2)]);
    assert!(!receiver.has_blocks());
}

/// Section 4.2: beyond a gap the second block is the larger one around it.
#[test]
fn a_duplicate_beyond_a_gap_is_reported_before_the_block_that_holds_it() {
    let receiver = receiver_after(&[0, 3, 4, 8, 3]);
    assert_eq!(receiver.sack_blocks().as_slice(), [(3, 4), (3, 5), (8, 9)]);
}

#[test]
fn without_dsack_duplicates_are_counted_not_reported() {
    let mut receiver = Receiver::new(100);
    for seq in [0, 1, 1] {
        receiver.on_segment(&sack(10), Time::ZERO, seq);
    }
    assert_eq!((receiver.has_blocks(), receiver.duplicates()), (false, 1));
}

/// Of ten segments the first is late: nine arrive before it.
fn first_is_late(script: &mut Script) {
    (2..=10).for_each(|end| drop(script.sack(0, &[(1, end)])));
    script.ack(10);
}

#[test]
fn a_hole_that_fills_in_time_raises_nothing() {
    let mut script = adaptive(10);
    script.sack(0, &[(1, 3)]);
    script.ack(3);
    assert_eq!(script.sender.dupack_threshold(), 3);
    assert_eq!(script.sender.counters().fast_recoveries, 0);
}

#[test]
fn a_spurious_recovery_is_taken_back_when_the_duplicate_is_reported() {
    let mut script = adaptive(10);
    first_is_late(&mut script);
    assert_eq!(script.sender.counters().fast_recoveries, 1);
    assert!(script.window() < 10);
    let una = script.sender.una();
    // The retransmission of 0 arrives as well.
    script.sack(una, &[(0, 1)]);
    assert!(script.window() >= 10);
    assert_eq!(script.sender.counters().recoveries_undone, 1);
    assert_eq!(script.sender.counters().duplicates_reported, 1);
    assert!(script.sender.ssthresh() > 100 * MSS, "the threshold is as before");
}

/// With the threshold that the first reordering taught, the same one again starts no recovery.
#[test]
fn the_same_reordering_again_is_tolerated() {
    let mut script = adaptive(10);
    first_is_late(&mut script);
    let una = script.sender.una();
    script.sack(una, &[(0, 1)]);
    assert_eq!(script.sender.dupack_threshold(), 10);
    (2..=9).for_each(|end| drop(script.sack(una, &[(una + 1, una + end)])));
    script.ack(una + 9);
    assert_eq!(script.sender.counters().fast_recoveries, 1);
}

#[test]
fn a_recovery_that_repaired_a_loss_is_not_taken_back() {
    let mut script = adaptive(10);
    // 0 and 4 are late or lost; only one of both retransmissions was needless.
    let sent: Vec<_> = (6..=10).flat_map(|end| script.sack(0, &[(1, 4), (5, end)])).collect();
    assert!(sent.contains(&again(0)) && sent.contains(&again(4)), "{sent:?}");
    script.ack(10);
    script.sack(10, &[(0, 1)]);
    assert_eq!(script.sender.counters().recoveries_undone, 0);
    assert!(script.sender.cwnd() < 10 * MSS);
}

#[test]
fn an_undo_during_recovery_ends_it() {
    let mut script = adaptive(10);
    (2..=6).for_each(|end| drop(script.sack(0, &[(1, end)])));
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    script.sack(6, &[(0, 1)]);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert!(script.window() >= 10);
}

#[test]
fn undo_can_be_switched_off() {
    let spec = adaptive::AdaptiveSpec { undo: false, ..Default::default() };
    let mut script = with(ReorderingSpec::Adaptive(spec), 10);
    first_is_late(&mut script);
    let una = script.sender.una();
    script.sack(una, &[(0, 1)]);
    assert_eq!(script.sender.counters().recoveries_undone, 0);
}

#[test]
fn the_adaptive_threshold_is_bounded() {
    let spec = adaptive::AdaptiveSpec { max: 5, ..Default::default() };
    let mut script = with(ReorderingSpec::Adaptive(spec), 10);
    first_is_late(&mut script);
    let una = script.sender.una();
    script.sack(una, &[(0, 1)]);
    assert_eq!(script.sender.dupack_threshold(), 5);
}

/// RFC 3522: an ACK that advances and echoes a time before the retransmission answers the original.
#[test]
fn an_eifel_echo_undoes_the_recovery() {
    for (echoed, undone) in [(0, 1), (3, 0)] {
        let mut script = adaptive(10);
        script.pass(Time::from_ms(2));
        (2..=6).for_each(|end| drop(script.sack(0, &[(1, end)])));
        script.sender.note_timestamp(&script.spec, script.now, echoed);
        script.sack(6, &[]);
        assert_eq!(script.sender.counters().recoveries_undone, undone, "echo of {echoed} ms");
    }
}

/// Where the flow ends, as many duplicate ACKs as the threshold wants may never come.
#[test]
fn at_the_end_of_a_flow_half_of_what_is_out_is_enough() {
    let reordering = ReorderingSpec::Adaptive(adaptive::AdaptiveSpec::default());
    let mut script = Script::established(TcpSpec { reordering, ..sack(10) }, 10);
    script.sender.set_dupack_threshold(100);
    assert_eq!(script.sack(0, &[(1, 5)]), []);
    assert_eq!(script.sack(0, &[(1, 6)]), [again(0)]);
}

#[test]
fn rr_tcp_learns_from_a_spurious_recovery_and_restores_the_window() {
    let mut script = rr_tcp(10);
    first_is_late(&mut script);
    let una = script.sender.una();
    script.sack(una, &[(0, 1)]);
    assert_eq!(script.sender.dupack_threshold(), 10);
    assert_eq!(script.sender.counters().recoveries_undone, 1);
    // The recovery ends, and slow start goes on.
    while script.sender.state() == CongestionState::Recovery {
        let next = script.sender.una() + 1;
        script.ack(next);
    }
    let next = script.sender.una() + 1;
    script.ack(next);
    assert!(script.sender.cwnd() >= 10 * MSS);
    assert_eq!(script.sender.ssthresh(), u64::MAX);
}

/// How many duplicate ACKs it takes to start recovery, and what has been sent by then, the first
/// segment again last.
fn duplicate_acks_until_recovery(script: &mut Script) -> (u32, Vec<Transmit>) {
    let mut sent = vec![];
    for count in 1.. {
        sent.extend(script.sack(0, &[(1, 1 + count)]));
        if script.sender.state() == CongestionState::Recovery {
            sent.retain(|transmit| *transmit != again(0));
            return (count, sent);
        }
    }
    unreachable!()
}

/// RFC 4653 section 3: two thirds (half) of what is in flight, limited transmit included, is what
/// was in flight before, so that about a window has left the network: with 26 (34) segments
/// outstanding, 18 (17) duplicate ACKs.
#[test]
fn ncr_waits_until_about_a_window_has_arrived() {
    for (variant, first, acks) in
        [(ncr::NcrVariant::Careful, 12, 18), (ncr::NcrVariant::Aggressive, 9, 17)]
    {
        let mut script = ncr(variant, 18);
        script.sack(0, &[(1, 2)]);
        assert_eq!(script.sender.dupack_threshold(), first, "18 in flight");
        let mut script = ncr(variant, 18);
        assert_eq!(duplicate_acks_until_recovery(&mut script).0, acks);
    }
}

/// Section 3.4: recovery halves what was in flight before limited transmit, whichever variant.
#[test]
fn ncr_halves_the_flight_before_the_first_duplicate_ack() {
    for variant in [ncr::NcrVariant::Careful, ncr::NcrVariant::Aggressive] {
        let mut script = ncr(variant, 18);
        duplicate_acks_until_recovery(&mut script);
        assert_eq!(script.threshold(), 9);
    }
}

/// Nothing more to send: the share of what is outstanding stands, as nothing is to be expected
/// beyond it.
#[test]
fn at_the_end_of_a_flow_ncr_waits_for_its_share_of_what_is_out() {
    for (variant, acks) in [(ncr::NcrVariant::Careful, 12), (ncr::NcrVariant::Aggressive, 9)] {
        let reordering = ReorderingSpec::Ncr(ncr::NcrSpec { variant });
        let mut script = Script::established(TcpSpec { reordering, ..sack(18) }, 18);
        assert_eq!(duplicate_acks_until_recovery(&mut script), (acks, vec![]));
    }
}

#[test]
fn ncr_waits_for_three_at_least() {
    let mut script = ncr(ncr::NcrVariant::Aggressive, 4);
    script.sack(0, &[(1, 2)]);
    assert_eq!(script.sender.dupack_threshold(), 3);
}

/// Section 3.3: extended limited transmit, from the first duplicate ACK on.
#[test]
fn careful_ncr_sends_a_segment_for_every_two_that_arrive_aggressive_for_each() {
    let mut careful = ncr(ncr::NcrVariant::Careful, 18);
    let sent: Vec<_> = (2..=7).map(|end| careful.sack(0, &[(1, end)]).len()).collect();
    assert_eq!(sent, [1, 0, 1, 0, 1, 0]);
    let mut aggressive = ncr(ncr::NcrVariant::Aggressive, 18);
    let sent: Vec<_> = (2..=7).flat_map(|end| aggressive.sack(0, &[(1, end)])).collect();
    assert_eq!(sent, news(18..24));
}

/// A gap that is still there when a timeout's recovery ends is reordering that begins: its end goes
/// back to the flight of then.
#[test]
fn ncr_knows_the_flight_before_reordering_that_a_timeout_leaves_behind() {
    let mut script = ncr(ncr::NcrVariant::Careful, 8);
    script.expire();
    script.ack(1);
    script.ack(7);
    script.sack(8, &[(9, 10)]);
    assert_eq!(script.sender.state(), CongestionState::Disorder);
    script.ack(10);
    assert!(script.window() >= 1, "a window of {}", script.window());
}

/// Section 3.2 steps T.2 and T.3: back to at most the former flight, without a burst.
#[test]
fn when_the_hole_fills_ncr_goes_on_as_before() {
    let mut script = ncr(ncr::NcrVariant::Aggressive, 18);
    (2..=7).for_each(|end| drop(script.sack(0, &[(1, end)])));
    let sent = script.ack(7);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert_eq!((script.window(), script.threshold()), (18, 18));
    assert_eq!(sent, [new(24)]);
}

/// Section 3.2 step T.4: with another hole left, limited transmit goes on under the former flight,
/// without a burst.
#[test]
fn when_one_of_two_holes_fills_ncr_goes_on_waiting_for_the_other() {
    let mut script = ncr(ncr::NcrVariant::Aggressive, 18);
    (2..=8).for_each(|end| drop(script.sack(0, &[(1, end)])));
    assert_eq!(script.sack(0, &[(9, 10), (1, 8)]), [new(25)]);
    assert_eq!(script.sack(8, &[(9, 10)]), [new(26)], "one for the segment that arrived");
    assert_eq!(script.sender.state(), CongestionState::Disorder);
    assert_eq!((script.window(), script.threshold()), (18, 18));
    assert_eq!(script.sender.dupack_threshold(), 9, "half of the 18 in flight");
}
