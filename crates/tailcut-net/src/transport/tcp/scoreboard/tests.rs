//! Losses, retransmissions and the pipe, by scripts and against a recount.

use super::*;
use proptest::prelude::*;

fn board(sent: u32) -> Scoreboard {
    let mut board = Scoreboard::default();
    for seq in 0..sent {
        board.on_send(seq, Time(u64::from(seq)));
    }
    board
}

fn blocks(ranges: &[(u32, u32)]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for &(start, end) in ranges {
        blocks.push(start, end);
    }
    blocks
}

#[test]
fn a_segment_is_lost_once_three_above_it_have_arrived() {
    let mut board = board(10);
    board.on_blocks(&blocks(&[(1, 3)]));
    board.mark_lost(3);
    assert_eq!((board.next_lost(), board.pipe()), (None, 8));
    board.on_blocks(&blocks(&[(4, 5), (1, 3)]));
    board.mark_lost(3);
    assert_eq!((board.next_lost(), board.pipe()), (Some(0), 6));
}

#[test]
fn a_resent_segment_counts_in_the_pipe_and_is_not_offered_again() {
    let mut board = board(5);
    board.on_blocks(&blocks(&[(1, 4)]));
    board.mark_lost(3);
    board.on_send(0, Time(100));
    assert_eq!((board.next_lost(), board.pipe()), (None, 2));
}

#[test]
fn a_resent_segment_gives_no_round_trip_sample() {
    let mut board = board(3);
    assert_eq!(board.on_cumulative(1, Time(50)).rtt, Some(Time(50)));
    board.on_send(1, Time(60));
    assert_eq!(board.on_cumulative(2, Time(70)).rtt, None);
}

/// The rescue of segment 9 arrives as it was sent first: its second sending, later than that of 0,
/// has overtaken nothing.
#[test]
fn a_segment_sent_again_in_doubt_says_nothing_of_what_it_overtook() {
    let mut board = board(10);
    board.on_blocks(&blocks(&[(1, 5)]));
    board.mark_lost(3);
    board.on_send(0, Time(100));
    board.on_send(9, Time(200));
    board.on_blocks(&blocks(&[(9, 10), (1, 5)]));
    assert_eq!(board.mark_overtaken(), 0);
}

#[test]
fn a_lost_segment_sent_again_later_that_arrives_has_overtaken_what_was_sent_again_before() {
    let mut board = board(10);
    board.on_blocks(&blocks(&[(2, 6)]));
    board.mark_lost(3);
    board.on_send(0, Time(100));
    board.on_send(1, Time(200));
    board.on_blocks(&blocks(&[(1, 6)]));
    assert_eq!(board.mark_overtaken(), 1);
}

#[test]
fn what_was_sent_again_before_this_recovery_is_overtaken_as_well() {
    let mut board = board(10);
    board.on_blocks(&blocks(&[(2, 6)]));
    board.mark_lost(3);
    board.on_send(0, Time(100));
    board.on_send(1, Time(200));
    board.begin_recovery();
    board.on_blocks(&blocks(&[(1, 6)]));
    assert_eq!(board.mark_overtaken(), 1);
}

/// Segment 5 is beyond all that is sacked when 1 arrives, and below it when 6 does.
#[test]
fn what_was_overtaken_is_lost_again_once_something_beyond_it_has_arrived() {
    let mut board = board(10);
    board.mark_all_lost();
    for (seq, at) in [(5, 100), (6, 150), (1, 200), (0, 300)] {
        board.on_send(seq, Time(at));
    }
    board.on_blocks(&blocks(&[(1, 2)]));
    assert_eq!(board.mark_overtaken(), 0);
    board.on_blocks(&blocks(&[(6, 7), (1, 2)]));
    assert_eq!(board.mark_overtaken(), 1);
}

/// Segments 0 to 3 are lost; 7 is sent again in doubt. What arrives as 3 was sent after all four.
#[test]
fn a_segment_sent_again_in_doubt_that_is_lost_is_offered_again() {
    let mut board = Scoreboard::default();
    (0..10).for_each(|seq| board.on_send(seq, Time(1)));
    board.on_blocks(&blocks(&[(4, 7)]));
    assert_eq!(board.mark_lost(3), 4);
    (0..3).for_each(|seq| board.on_send(seq, Time(2)));
    board.on_blocks(&blocks(&[(8, 9), (4, 7)]));
    board.on_send(7, Time(5));
    board.on_send(3, Time(6));
    board.on_blocks(&blocks(&[(3, 7), (8, 9)]));
    assert_eq!(board.mark_overtaken(), 4);
    let mut offered = vec![];
    while let Some(seq) = board.next_lost() {
        offered.push(seq);
        board.on_send(seq, Time(7));
    }
    assert_eq!(offered, [0, 1, 2, 7]);
}

/// Whether the first or the second transmission of 9 has arrived is in doubt; by ns-3 the second
/// has overtaken that of 0.
#[test]
fn what_is_newly_reported_has_overtaken_in_doubt_too() {
    let mut board = board(10);
    board.on_blocks(&blocks(&[(1, 5)]));
    board.mark_lost(3);
    board.on_send(0, Time(100));
    board.on_send(9, Time(200));
    board.on_blocks(&blocks(&[(9, 10), (1, 5)]));
    assert_eq!(board.mark_overtaken(), 0);
    assert_eq!(board.mark_overtaken_by_news(), 1);
}

proptest! {
    #[test]
    fn the_counters_agree_with_a_recount(steps in prop::collection::vec((0..8u8, 0..60u32, 1..8u32), 1..80)) {
        let mut board = board(20);
        for (kind, at, length) in steps {
            match kind {
                0 => board.on_send(board.end(), Time(1)),
                1 => { board.on_cumulative(at.min(board.end()), Time(9)); }
                2 => { let end = board.end(); board.on_blocks(&blocks(&[(at.max(board.base + 1).min(end), (at + length).min(end))])); board.mark_lost(3); }
                3 => if let Some(seq) = board.next_lost() { board.on_send(seq, Time(2)) },
                4 => board.mark_all_lost(),
                5 => { board.mark_lost_below(at); }
                6 => { board.lose_again(at); }
                _ => board.forget_losses(),
            }
            let count = |flag: u64| board.entries.iter().filter(|e| *e & flag != 0).count() as u32;
            prop_assert_eq!((board.sacked, board.lost, board.resent), (count(SACKED), count(LOST), count(RESENT)));
            let above = board.entries.iter().enumerate().filter(|(i, e)| *i as u32 + board.base >= board.lost_below && *e & SACKED != 0).count() as u32;
            prop_assert_eq!(board.sacked_above, above);
        }
    }
}
