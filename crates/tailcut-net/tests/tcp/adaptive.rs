//! Recovery under the adaptive threshold once a path has been seen to reorder: one hole after the
//! other, and undo by timestamps and duplicate reports.

use std::collections::BTreeMap;

use crate::tcp::script::{ENDLESS, MSS, Script, again, sack};
use tailcut_engine::{Bytes, Time};
use tailcut_net::transport::Transmit;
use tailcut_net::transport::tcp::reordering::adaptive::AdaptiveSpec;
use tailcut_net::transport::tcp::{CongestionState, Receiver, ReorderingSpec, TcpSpec};

/// The threshold that a sender has learned when a script begins.
const THRESHOLD: u32 = 5;

fn spec(window: u32) -> TcpSpec {
    let reordering = ReorderingSpec::Adaptive(AdaptiveSpec::default());
    TcpSpec { reordering, ..sack(window) }
}

/// A sender that has once taken a late segment for lost and sent it again needlessly. Nothing is
/// sacked, the window is as it was before, and what is outstanding left some time ago. Returns the
/// first outstanding segment as well.
fn experienced(window: u32) -> (Script, u32) {
    experienced_with(spec(window))
}

fn experienced_with(spec: TcpSpec) -> (Script, u32) {
    let mut script = Script::established(spec, ENDLESS);
    (2..=THRESHOLD).for_each(|end| drop(script.sack(0, &[(1, end)])));
    script.ack(THRESHOLD);
    let una = script.sender.una();
    script.sack(una, &[(0, 1)]);
    assert_eq!(script.sender.dupack_threshold(), THRESHOLD);
    assert_eq!(script.sender.counters().recoveries_undone, 1);
    script.pass(Time::from_ms(3));
    (script, una)
}

/// So many segments from `first` on arrive, with the holes before them.
fn arrive(script: &mut Script, una: u32, first: u32, segments: u32) -> Vec<Transmit> {
    (first + 1..=first + segments).flat_map(|end| script.sack(una, &[(first, end)])).collect()
}

fn resent(sent: Vec<Transmit>) -> Vec<Transmit> {
    let is_again =
        |transmit: &Transmit| matches!(transmit, Transmit::Segment { retransmission: true, .. });
    sent.into_iter().filter(is_again).collect()
}

/// A loss has no reduction of its own where an ECN echo in the same window had one; a recovery that
/// was taken back had none.
#[test]
fn a_loss_after_a_recovery_that_was_taken_back_halves_the_window_of_an_ecn_connection() {
    let (mut script, una) = experienced_with(TcpSpec { ecn: true, ..spec(20) });
    arrive(&mut script, una, una + 2, 12);
    assert_eq!(script.sender.counters().fast_recoveries, 2);
    assert!(script.threshold() < 20 * MSS, "{}", script.threshold());
}

/// As in Linux: how late a segment was is measured over holes and all, what speaks for a loss is
/// what has arrived.
#[test]
fn the_threshold_counts_what_has_arrived_and_learns_from_holes_too() {
    let (mut script, una) = experienced(20);
    assert_eq!(resent(arrive(&mut script, una, una + 2, THRESHOLD - 1)), []);
    script.sack(una + 1, &[(una + 2, una + 2 + THRESHOLD - 1)]);
    assert_eq!(script.sender.dupack_threshold(), THRESHOLD + 1);
    assert_eq!(script.sender.counters().fast_recoveries, 1);
}

/// RFC 6675 would send the second again at once, for as much has arrived beyond it.
#[test]
fn one_hole_is_repaired_at_a_time() {
    let (mut script, una) = experienced(20);
    assert_eq!(resent(arrive(&mut script, una, una + 2, 12)), [again(una)]);
    let mut sent = script.sack(una + 1, &[(una + 2, una + 14)]);
    sent.extend(script.sack(una + 1, &[(una + 2, una + 15)]));
    assert_eq!(resent(sent), [again(una + 1)]);
}

#[test]
fn a_hole_that_the_threshold_does_not_condemn_is_spared_in_recovery() {
    let (mut script, una) = experienced(20);
    arrive(&mut script, una, una + 1, THRESHOLD - 1);
    let hole = una + THRESHOLD;
    let beyond = [(hole + 1, hole + 2), (una + 1, hole)];
    assert_eq!(resent(script.sack(una, &beyond)), [again(una)]);
    assert_eq!(resent(script.sack(hole, &[(hole + 1, hole + 3)])), []);
    assert_eq!(resent(script.sack(hole, &[(hole + 1, hole + 4)])), []);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
}

/// Heuristic B of Linux's scoreboard.
#[test]
fn holes_that_what_was_sent_in_recovery_has_passed_are_lost_together() {
    let (mut script, una) = experienced(20);
    let mut recover = 0;
    for end in una + 4..una + 20 {
        if script.sender.state() != CongestionState::Recovery {
            recover = una + script.sender.outstanding();
        }
        script.sack(una, &[(una + 3, end)]);
    }
    assert_eq!(resent(script.sack(una, &[(una + 3, recover)])), []);
    let sent = script.sack(una, &[(una + 3, recover + 1)]);
    assert_eq!(resent(sent), [again(una + 1), again(una + 2)]);
}

/// Heuristic C: as many segments as the threshold, first sent after it, have arrived before the
/// retransmission.
#[test]
fn a_retransmission_that_the_threshold_has_passed_is_lost_too() {
    let (mut script, una) = experienced(20);
    let mut sent = arrive(&mut script, una, una + 1, 10);
    assert_eq!(resent(sent.clone()), [again(una)]);
    let at = sent.iter().position(|transmit| *transmit == again(una)).unwrap();
    let Some(Transmit::Segment { seq: next, .. }) = sent.split_off(at).into_iter().nth(1) else {
        panic!("new segments follow the retransmission")
    };
    assert_eq!(resent(script.sack(una, &[(una + 1, next + THRESHOLD - 1)])), []);
    assert_eq!(resent(script.sack(una, &[(una + 1, next + THRESHOLD)])), [again(una)]);
}

/// While holes are left recovery goes on, for it would begin anew at the next ACK; but nothing more
/// is sent again, and one segment leaves for each that arrives.
#[test]
fn a_late_segment_among_others_holds_recovery_back() {
    let (mut script, una) = experienced(20);
    arrive(&mut script, una, una + 2, 10);
    script.sender.note_timestamp(&script.spec, script.now, 0);
    let sent = script.sack(una + 1, &[(una + 2, una + 12)]);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(resent(sent), []);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
    assert_eq!(script.sender.dupack_threshold(), 12, "so late was the first");
}

#[test]
fn the_end_of_a_recovery_whose_last_hole_was_late_takes_it_back() {
    let (mut script, una) = experienced(20);
    let before = script.window();
    arrive(&mut script, una, una + 2, 10);
    script.sender.note_timestamp(&script.spec, script.now, 0);
    script.sack(una + 1, &[(una + 2, una + 12)]);
    script.ack(una + 12);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert_eq!(script.sender.counters().recoveries_undone, 2);
    assert!(script.window() >= before);
}

/// The ACK of the retransmission echoes the time at which that left.
#[test]
fn a_recovery_that_its_retransmission_ended_is_not_taken_back() {
    let (mut script, una) = experienced(20);
    arrive(&mut script, una, una + 1, 10);
    let stamp = (script.now.as_ns() / 1_000_000) as u32;
    script.sender.note_timestamp(&script.spec, script.now, stamp);
    script.ack(una + 11);
    assert_eq!(script.sender.counters().recoveries_undone, 1);
    assert_eq!(script.sender.state(), CongestionState::Recovery);
}

#[test]
fn a_timeout_is_taken_back_when_the_original_is_acknowledged() {
    let mut script = Script::established(spec(10), ENDLESS);
    assert_eq!(script.expire(), [again(0)]);
    assert_eq!(script.window(), 1);
    script.sender.note_timestamp(&script.spec, script.now, 1);
    assert_eq!(resent(script.ack(1)), []);
    assert_eq!(script.sender.state(), CongestionState::Open);
    assert!(script.window() >= 10);
    assert!(script.sender.ssthresh() > 100 * MSS, "the threshold is as before");
    assert_eq!(script.sender.counters().timeouts_undone, 1);
    assert_eq!(script.sender.counters().recoveries_undone, 0);
}

#[test]
fn a_timeout_stands_when_the_retransmission_is_acknowledged() {
    let mut script = Script::established(spec(10), ENDLESS);
    script.expire();
    script.sender.note_timestamp(&script.spec, script.now, (script.now.as_ns() / 1_000_000) as u32);
    assert_eq!(resent(script.ack(1)), [again(1), again(2)]);
    assert_eq!(script.sender.counters().timeouts_undone, 0);
}

/// What fills the hole may be what was sent again before the timeout.
#[test]
fn a_timeout_after_a_retransmission_stands() {
    let (mut script, una) = experienced(20);
    arrive(&mut script, una, una + 1, 10);
    script.expire();
    script.sender.note_timestamp(&script.spec, script.now, 0);
    script.ack(una + 1);
    assert_eq!(script.sender.counters().timeouts_undone, 0);
}

#[test]
fn a_timeout_begins_with_the_first_threshold_again() {
    let (mut script, _) = experienced(20);
    script.expire();
    assert_eq!(script.sender.dupack_threshold(), spec(20).dupack_threshold);
}

/// `segments` leave one after the other, every other one by a path that is `late` longer. How many are sent again?
fn sent_again_over_two_paths(mut spec: TcpSpec, segments: u64, late: Time) -> u64 {
    spec.timestamps = true;
    let mut script = Script::opening(spec, segments);
    script.pass(Time::from_ms(1));
    let mut receiver = Receiver::new(segments as u32);
    // By their arrival, and by when they left among those that arrive at once.
    let mut on_the_way = BTreeMap::new();
    let (mut recent, mut free) = (0, Time::ZERO);
    let mut sent = script.syn_ack();
    while !receiver.is_complete() {
        for transmit in sent.drain(..) {
            let Transmit::Segment { seq, .. } = transmit else { continue };
            free = free.max(script.now) + Time::from_us(80);
            let delay = Time::from_ms(2) + if seq % 2 == 0 { late } else { Time::ZERO };
            on_the_way.insert((free + delay, free), (seq, script.now));
        }
        let ((now, _), (seq, left)) = on_the_way.pop_first().expect("something is on its way");
        script.now = now;
        // RFC 7323: the echo is that of the last segment at or before what the last ACK asked for.
        if seq <= receiver.last_acknowledged() {
            recent = (left.as_ns() / 1_000_000) as u32;
        }
        receiver.on_segment(&script.spec, now, seq);
        receiver.on_ack_sent();
        let blocks = receiver.take_blocks().first(3);
        script.sender.note_timestamp(&script.spec, script.now, recent);
        script.sender.on_ack(&script.spec, now, receiver.next_expected(), &blocks, false);
        sent = script.sent();
    }
    script.sender.counters().retransmissions
}

/// Nothing is lost, but one path is so much longer that the largest threshold never suffices. Were
/// each recovery ended at the first late segment, it would begin anew at the next ACK, after
/// everything that the threshold condemns has left again.
#[test]
fn beyond_the_largest_threshold_late_segments_are_not_sent_again_and_again() {
    let reordering = ReorderingSpec::Adaptive(AdaptiveSpec { max: 20, undo: true });
    let spec = TcpSpec { reordering, receive_window: Bytes(100 * MSS), ..sack(100) };
    for late in [Time::from_ms(4), Time::from_ms(8)] {
        let resent = sent_again_over_two_paths(spec.clone(), 10_000, late);
        assert!(resent < 10_000 / 8, "{resent} of 10,000 segments");
    }
}
