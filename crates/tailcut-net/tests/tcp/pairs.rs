//! Whole connections without a network: what both ends make of single losses, delays, marks and
//! duplicates. A round trip takes 1 ms, a timeout 10 ms, a segment 1,000 bytes.

use crate::tcp::pair::{DELAY, Pair, What};
use crate::tcp::script::{newreno, sack};
use What::{Ack, Data, Last, Reset, Syn, SynAck};
use tailcut_engine::Time;
use tailcut_net::amount::Amount;
use tailcut_net::packet::Flags;
use tailcut_net::transport::ConnectionState;
use tailcut_net::transport::tcp::{Close, Imitation, TcpSpec};

const MS: Time = Time::from_ms(1);

fn both() -> [TcpSpec; 2] {
    [newreno(4), sack(4)]
}

fn delayed() -> TcpSpec {
    TcpSpec { ack_every: 2, delayed_ack_timeout: Time::from_ms(4), ..sack(4) }
}

fn ecn() -> TcpSpec {
    TcpSpec { ecn: true, ..sack(4) }
}

fn stamped() -> TcpSpec {
    TcpSpec { timestamps: true, ..sack(4) }
}

mod handshake {
    use super::*;

    #[test]
    fn data_arrives_a_round_trip_and_a_half_after_the_syn() {
        let pair = Pair::new(sack(4), 4).run();
        assert_eq!(pair.finished(), 1_500);
        assert!(pair.done());
    }

    #[test]
    fn the_ack_of_the_handshake_precedes_the_data() {
        let pair = Pair::new(sack(4), 1).run();
        let order: Vec<What> = pair.log.iter().map(|sent| sent.what).collect();
        assert_eq!(order, [Syn, SynAck, Last, Data(0), Ack(1), Last]);
    }

    #[test]
    fn a_lost_syn_is_repeated_after_the_first_timeout() {
        let pair = Pair::new(sack(4), 4).lose(Syn).run();
        assert_eq!(pair.times(Syn), [0, 10_000]);
        assert_eq!(pair.finished(), 11_500);
    }

    #[test]
    fn syns_back_off() {
        let pair = Pair::new(sack(4), 1).lose(Syn).lose(Syn).lose(Syn).run();
        assert_eq!(pair.times(Syn), [0, 10_000, 30_000, 70_000]);
    }

    #[test]
    fn a_repeated_syn_says_so() {
        let pair = Pair::new(sack(4), 1).lose(Syn).run();
        let again: Vec<bool> = pair.of(Syn).map(|s| s.flags.has(Flags::RETRANSMISSION)).collect();
        assert_eq!(again, [false, true]);
    }

    #[test]
    fn without_an_answer_the_connection_is_given_up() {
        let mut pair = Pair::new(TcpSpec { syn_retries: 2, ..sack(4) }, 1);
        pair = pair.lose(Syn).lose(Syn).lose(Syn).run();
        assert_eq!((pair.sender.phase(), pair.times(Syn).len()), (ConnectionState::Aborted, 3));
    }

    #[test]
    fn a_lost_syn_ack_is_repeated_by_the_receiver_s_own_timer() {
        let pair = Pair::new(sack(4), 1).lose(SynAck).run();
        assert_eq!(pair.times(SynAck)[..2], [500, 10_500]);
        assert!(pair.done());
    }

    #[test]
    fn a_lost_last_ack_of_the_handshake_is_covered_by_the_data() {
        let pair = Pair::new(sack(4), 4).lose(Last).run();
        assert_eq!((pair.times(SynAck), pair.finished()), (vec![500], 1_500));
    }

    #[test]
    fn a_late_duplicate_of_the_syn_draws_an_ack_and_no_syn_ack() {
        let pair = Pair::new(sack(1), 20).lose(SynAck).delay(Syn, MS).run();
        assert!(pair.done());
        assert!(pair.times(SynAck).len() <= 2);
    }

    #[test]
    fn two_syns_that_both_arrive_make_one_connection() {
        let pair = Pair::new(sack(4), 4).duplicate(Syn).run();
        assert_eq!((pair.times(SynAck), pair.finished()), (vec![500, 500], 1_500));
    }

    #[test]
    fn a_syn_that_was_sent_once_measures_the_round_trip() {
        let pair = Pair::new(sack(4), 8).run_until(MS);
        assert_eq!(pair.sender.rtt().smoothed(), MS);
    }

    #[test]
    fn a_syn_that_was_repeated_measures_nothing() {
        let pair = Pair::new(sack(4), 8).lose(Syn).run_until(Time::from_ms(11));
        assert_eq!(pair.sender.rtt().smoothed(), Time::ZERO);
    }

    #[test]
    fn the_second_repetition_leaves_a_window_of_one_segment() {
        let pair = Pair::new(sack(4), 8).lose(Syn).lose(Syn).run_until(Time::from_ms(31));
        assert_eq!(pair.data(), [0]);
    }
}

mod loss {
    use super::*;

    #[test]
    fn slow_start_doubles_the_window() {
        for spec in both() {
            let pair = Pair::new(spec, 28).run();
            assert_eq!(pair.finished(), 3_500);
            assert_eq!(pair.times(Data(4)), [2_000]);
            assert_eq!(pair.times(Data(27)), [3_000]);
        }
    }

    #[test]
    fn the_first_of_a_window_is_repaired_by_three_duplicates() {
        for spec in [newreno(8), sack(8)] {
            let pair = Pair::new(spec, 8).lose(Data(0)).run();
            assert_eq!(pair.times(Data(0)), [1_000, 2_000]);
            assert_eq!((pair.finished(), pair.counters().timeouts), (2_500, 0));
        }
    }

    #[test]
    fn each_place_but_the_last_three_is_repaired_within_a_round_trip() {
        for lost in 0..5 {
            let pair = Pair::new(sack(8), 8).lose(Data(lost)).run();
            assert_eq!((pair.finished(), pair.counters().timeouts), (2_500, 0), "{lost}");
        }
    }

    #[test]
    fn a_loss_in_the_last_three_segments_needs_a_timeout() {
        for lost in 5..8 {
            let pair = Pair::new(sack(8), 8).lose(Data(lost)).run();
            assert_eq!(
                (pair.counters().timeouts, pair.counters().retransmissions),
                (1, 1),
                "{lost}"
            );
        }
    }

    #[test]
    fn limited_transmit_lets_two_duplicates_draw_the_third() {
        let pair = Pair::new(sack(3), 20).lose(Data(0)).run();
        assert_eq!((pair.counters().timeouts, pair.counters().fast_recoveries), (0, 1));
    }

    #[test]
    fn without_limited_transmit_a_window_of_three_takes_the_timer() {
        let spec = TcpSpec { limited_transmit: false, ..sack(3) };
        assert_eq!(Pair::new(spec, 20).lose(Data(0)).run().counters().timeouts, 1);
    }

    #[test]
    fn newreno_repairs_a_hole_per_round_trip() {
        let pair = Pair::new(newreno(8), 8).lose(Data(0)).lose(Data(2)).lose(Data(4)).run();
        assert_eq!([0, 2, 4].map(|seq| pair.times(Data(seq))[1]), [2_000, 3_000, 4_000]);
    }

    #[test]
    fn sack_repairs_all_holes_in_one_round_trip() {
        let pair = Pair::new(sack(12), 12).lose(Data(0)).lose(Data(2)).lose(Data(4)).run();
        assert_eq!([0, 2, 4].map(|seq| pair.times(Data(seq))[1]), [2_000; 3]);
    }

    #[test]
    fn a_lost_retransmission_is_noticed_by_what_was_sent_later() {
        let pair = Pair::new(sack(10), 40).lose(Data(0)).lose(Data(0)).run();
        assert_eq!((pair.times(Data(0)).len(), pair.counters().timeouts), (3, 0));
    }

    #[test]
    fn a_lost_retransmission_takes_newreno_the_timer() {
        let pair = Pair::new(newreno(10), 40).lose(Data(0)).lose(Data(0)).run();
        assert_eq!(pair.counters().timeouts, 1);
    }

    #[test]
    fn a_whole_window_lost_takes_the_timer_once() {
        let mut pair = Pair::new(sack(4), 4);
        for seq in 0..4 {
            pair = pair.lose(Data(seq));
        }
        let pair = pair.run();
        assert_eq!((pair.counters().timeouts, pair.counters().retransmissions), (1, 4));
    }

    #[test]
    fn timeouts_in_a_row_back_off() {
        let pair = Pair::new(sack(1), 1).lose(Data(0)).lose(Data(0)).lose(Data(0)).run();
        assert_eq!(pair.times(Data(0)), [1_000, 11_000, 31_000, 71_000]);
    }

    #[test]
    fn a_lost_ack_is_covered_by_the_next() {
        for ack in 1..8 {
            let pair = Pair::new(sack(8), 8).lose(Ack(ack)).run();
            assert_eq!((pair.counters().retransmissions, pair.finished()), (0, 1_500), "{ack}");
        }
    }

    #[test]
    fn the_last_ack_lost_draws_a_needless_retransmission_after_a_timeout() {
        let pair = Pair::new(sack(8), 8).lose(Ack(8)).run();
        assert_eq!((pair.counters().retransmissions, pair.receiver.duplicates()), (1, 1));
        assert!(pair.done());
    }

    #[test]
    fn every_place_in_a_longer_flow_is_repaired() {
        for lost in 0..40 {
            for spec in both() {
                let pair = Pair::new(spec, 40).lose(Data(lost)).run();
                assert!(pair.done(), "{lost}");
                assert!(pair.counters().retransmissions >= 1, "{lost}");
            }
        }
    }

    #[test]
    fn every_two_places_are_repaired() {
        for first in 0..12 {
            for second in first..12 {
                for spec in both() {
                    let pair = Pair::new(spec, 12).lose(Data(first)).lose(Data(second)).run();
                    assert!(pair.done(), "{first}, {second}");
                }
            }
        }
    }
}

mod selective {
    use super::*;

    fn blocks(pair: &Pair, at: usize) -> Vec<(u32, u32)> {
        let acks: Vec<_> = pair.log.iter().filter(|s| matches!(s.what, Ack(_))).collect();
        acks[at].blocks.as_slice().to_vec()
    }

    #[test]
    fn what_lies_beyond_a_gap_is_reported() {
        let pair = Pair::new(sack(8), 8).lose(Data(1)).run();
        assert_eq!((blocks(&pair, 0), blocks(&pair, 1)), (vec![], vec![(2, 3)]));
    }

    #[test]
    fn the_latest_block_comes_first() {
        let pair = Pair::new(sack(8), 8).lose(Data(1)).lose(Data(3)).run();
        assert_eq!(blocks(&pair, 2), [(4, 5), (2, 3)]);
    }

    #[test]
    fn blocks_weigh_what_they_weigh() {
        let pair = Pair::new(sack(8), 8).lose(Data(1)).lose(Data(3)).run();
        let sizes: Vec<u16> = pair.of(Ack(1)).map(|sent| sent.wire_bytes).collect();
        assert_eq!(sizes[..3], [40, 52, 60]);
    }

    #[test]
    fn beside_timestamps_there_is_room_for_three_blocks() {
        let mut pair = Pair::new(TcpSpec { timestamps: true, ..sack(12) }, 12);
        for seq in [1, 3, 5, 7] {
            pair = pair.lose(Data(seq));
        }
        let most = pair.run().log.iter().map(|sent| sent.blocks.as_slice().len()).max();
        assert_eq!(most, Some(3));
    }

    #[test]
    fn newreno_sends_no_sack_blocks() {
        let pair = Pair::new(newreno(8), 8).lose(Data(1)).run();
        assert!(pair.log.iter().all(|sent| sent.blocks.is_empty()));
    }

    #[test]
    fn two_neighbours_out_of_order_are_no_loss() {
        let pair = Pair::new(sack(8), 8).delay(Data(6), Time::from_us(1)).run();
        assert_eq!((pair.counters().retransmissions, pair.finished()), (0, 1_501));
    }

    #[test]
    fn one_segment_behind_three_is_taken_for_lost() {
        let pair = Pair::new(sack(8), 100).delay(Data(2), Time::from_ms(2)).run();
        assert_eq!((pair.counters().fast_recoveries, pair.times(Data(2)).len()), (1, 2));
    }

    #[test]
    fn what_arrives_twice_is_counted() {
        let pair = Pair::new(sack(8), 8).duplicate(Data(2)).run();
        assert_eq!((pair.receiver.duplicates(), pair.counters().retransmissions), (1, 0));
    }
}

mod delayed_acks {
    use super::*;

    #[test]
    fn every_second_segment_is_acknowledged() {
        assert_eq!(Pair::new(delayed(), 4).run().acks(), [2, 4]);
    }

    #[test]
    fn the_last_segment_is_acknowledged_at_once() {
        let pair = Pair::new(delayed(), 3).run();
        assert_eq!((pair.acks(), pair.times(Ack(3))), (vec![2, 3], vec![1_500]));
    }

    #[test]
    fn a_segment_alone_waits_for_the_timer() {
        let pair = Pair::new(TcpSpec { initial_window: Amount::Packets(1), ..delayed() }, 8).run();
        assert_eq!(pair.times(Ack(1)), [1_500 + 4_000]);
    }

    #[test]
    fn a_gap_is_acknowledged_at_once() {
        let pair = Pair::new(delayed(), 4).lose(Data(0)).run();
        assert_eq!(pair.times(Ack(0)), [1_500, 1_500, 1_500]);
    }

    #[test]
    fn what_fills_a_gap_is_acknowledged_at_once() {
        let pair = Pair::new(delayed(), 4).delay(Data(0), Time::from_us(100)).run();
        assert_eq!(pair.times(Ack(4))[0], 1_600);
    }

    #[test]
    fn a_delayed_ack_covers_segments_received_meanwhile() {
        let pair = Pair::new(TcpSpec { ack_every: 4, ..delayed() }, 20).run();
        assert!(pair.done());
        assert_eq!(pair.acks()[0], 4);
    }
}

mod marks {
    use super::*;

    #[test]
    fn the_setup_is_answered() {
        let pair = Pair::new(ecn(), 4).run();
        assert!(pair.first(Syn).flags.has(Flags::ECN_ECHO | Flags::WINDOW_REDUCED));
        let answer = pair.first(SynAck).flags;
        assert!(answer.has(Flags::ECN_ECHO) && !answer.has(Flags::WINDOW_REDUCED));
    }

    #[test]
    fn only_new_data_may_be_marked() {
        let pair = Pair::new(ecn(), 8).lose(Data(0)).run();
        let capable = |sent: &crate::tcp::pair::Sent| sent.flags.has(Flags::ECN_CAPABLE);
        assert_eq!(pair.of(Data(0)).map(capable).collect::<Vec<_>>(), [true, false]);
        assert!(!pair.log.iter().any(|s| !matches!(s.what, Data(_)) && capable(s)));
    }

    #[test]
    fn a_mark_reduces_the_window_once() {
        let pair = Pair::new(ecn(), 40).mark(Data(4)).mark(Data(5)).run();
        assert_eq!((pair.counters().echo_reductions, pair.counters().retransmissions), (1, 0));
    }

    #[test]
    fn the_echo_goes_on_until_the_sender_has_reduced() {
        let pair = Pair::new(ecn(), 40).mark(Data(4)).run();
        let echo = |ack| pair.first(Ack(ack)).flags.has(Flags::ECN_ECHO);
        assert!(!echo(4) && echo(5) && echo(6));
        assert!(!echo(40));
    }

    #[test]
    fn the_next_new_segment_says_that_the_window_is_reduced() {
        let pair = Pair::new(ecn(), 40).mark(Data(4)).run();
        let says = pair.log.iter().filter(|sent| sent.flags.has(Flags::WINDOW_REDUCED));
        assert_eq!(says.filter(|sent| matches!(sent.what, Data(_))).count(), 1);
    }

    #[test]
    fn marks_two_windows_apart_reduce_twice() {
        let pair = Pair::new(ecn(), 60).mark(Data(4)).mark(Data(30)).run();
        assert_eq!(pair.counters().echo_reductions, 2);
    }

    #[test]
    fn without_ecn_nothing_is_capable() {
        let pair = Pair::new(sack(4), 8).mark(Data(4)).run();
        assert_eq!(pair.counters().echo_reductions, 0);
    }

    #[test]
    fn a_lost_echo_is_repeated_by_the_next_ack() {
        let pair = Pair::new(ecn(), 40).mark(Data(4)).lose(Ack(5)).run();
        assert_eq!(pair.counters().echo_reductions, 1);
    }
}

mod timestamps {
    use super::*;

    #[test]
    fn every_packet_carries_timestamps() {
        let pair = Pair::new(stamped(), 2).run();
        assert_eq!(pair.first(Data(0)).wire_bytes, 40 + 12 + 1_000);
        assert_eq!(pair.first(Ack(1)).wire_bytes, 40 + 12);
    }

    #[test]
    fn an_ack_echoes_when_its_segment_was_sent() {
        let pair = Pair::new(stamped(), 12).run();
        assert_eq!(pair.first(Data(4)).timestamps.value, 2);
        assert_eq!(pair.first(Ack(5)).timestamps.echo, 2);
    }

    #[test]
    fn a_segment_beyond_a_gap_does_not_move_the_echo() {
        let pair = Pair::new(stamped(), 12).lose(Data(4)).run();
        assert!(pair.of(Ack(4)).all(|sent| sent.timestamps.echo == 1));
    }

    #[test]
    fn the_sender_echoes_the_receiver() {
        let pair = Pair::new(stamped(), 12).run();
        let (ack, data) = (pair.first(Ack(1)), pair.first(Data(4)));
        assert_eq!(data.timestamps.echo, ack.timestamps.value);
    }
}

mod closing {
    use super::*;

    #[test]
    fn the_fin_rides_on_the_last_segment_and_its_ack() {
        let pair = Pair::new(sack(4), 3).run();
        let fins: Vec<What> =
            pair.log.iter().filter(|s| s.flags.has(Flags::FIN)).map(|s| s.what).collect();
        assert_eq!(fins, [Data(2), Ack(3)]);
        assert_eq!(pair.log.last().map(|sent| sent.what), Some(Last));
    }

    #[test]
    fn without_closing_nothing_follows_the_last_ack() {
        let pair = Pair::new(TcpSpec { close: Close::None, ..sack(4) }, 3).run();
        assert_eq!(pair.log.last().map(|sent| sent.what), Some(Ack(3)));
        assert!(!pair.log.iter().any(|sent| sent.flags.has(Flags::FIN)));
    }

    #[test]
    fn ns_3_ends_with_three_packets() {
        let imitate = Imitation::of(&["three-packet-close"]).unwrap();
        let pair = Pair::new(TcpSpec { imitate, ..sack(4) }, 3).run();
        let fins: Vec<bool> = pair.of(Ack(3)).map(|sent| sent.flags.has(Flags::FIN)).collect();
        assert_eq!(fins, [false, true, false]);
    }

    #[test]
    fn a_receiver_s_reset_ends_the_sender() {
        let mut pair = Pair::new(sack(4), 100).run_until(Time::from_ms(2));
        pair.receiver.reset();
        pair.poll();
        let pair = pair.run();
        assert_eq!(pair.sender.phase(), ConnectionState::Aborted);
        assert!(!pair.times(Reset).is_empty());
    }

    #[test]
    fn data_for_an_application_that_has_gone_draws_a_reset() {
        let mut pair = Pair::new(sack(4), 4).run_until(MS);
        pair.receiver.closed = true;
        let pair = pair.run();
        assert_eq!(pair.times(Reset)[0], 1_500);
        assert_eq!(pair.sender.phase(), ConnectionState::Aborted);
    }

    #[test]
    fn a_sender_that_gives_up_resets_the_receiver() {
        let mut pair = Pair::new(sack(4), 100).run_until(MS);
        pair.sender.abort();
        pair.poll();
        let pair = pair.run();
        assert!(pair.receiver.closed);
        assert_eq!(pair.times(Reset)[0], 1_000);
    }

    #[test]
    fn a_sender_that_gives_up_before_the_handshake_answers_the_syn_ack_by_a_reset() {
        let mut pair = Pair::new(sack(4), 4).run_until(DELAY);
        pair.sender.abort();
        assert_eq!(pair.run().times(Reset), [1_000]);
    }

    #[test]
    fn a_segment_shorter_than_others_is_the_last() {
        let pair = Pair::of_bytes(sack(4), 2_500).run();
        assert_eq!(pair.first(Data(2)).wire_bytes, 540);
        assert!(pair.done());
    }
}
