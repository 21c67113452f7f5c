//! RACK-TLP (RFC 8985) and F-RTO (RFC 5682). A round trip takes 1 ms, a timeout 10 ms.

use crate::tcp::pair::{Pair, Sent, What};
use crate::tcp::script::{newreno, sack};
use What::{Ack, Data};
use proptest::prelude::*;
use tailcut_engine::Time;
use tailcut_net::transport::tcp::reordering::rack::RackSpec;
use tailcut_net::transport::tcp::{ReorderingSpec, TcpSpec};

/// A probe timeout does not wait for delayed ACKs: there are none.
fn rack(initial_window: u32) -> TcpSpec {
    with(initial_window, |_| {})
}

fn with(initial_window: u32, change: impl FnOnce(&mut RackSpec)) -> TcpSpec {
    let mut spec = RackSpec { max_ack_delay: Time::ZERO, ..RackSpec::default() };
    change(&mut spec);
    TcpSpec { reordering: ReorderingSpec::Rack(spec), ..sack(initial_window) }
}

fn without_probes(initial_window: u32) -> TcpSpec {
    with(initial_window, |spec| spec.tail_loss_probe = false)
}

#[test]
fn rack_without_losses_takes_as_long_as_sack() {
    let [with, without] = [rack(4), sack(4)].map(|spec| Pair::new(spec, 60).run());
    assert_eq!((with.finished(), with.data()), (without.finished(), without.data()));
}

#[test]
fn three_duplicates_begin_a_recovery_at_once() {
    let pair = Pair::new(rack(8), 40).spaced(Time::from_us(1)).lose(Data(0)).run();
    assert_eq!((pair.times(Data(0)), pair.counters().fast_recoveries), (vec![1_000, 2_004], 1));
}

/// Section 6.2: fewer wait for a quarter of the shortest round trip.
#[test]
fn fewer_than_three_duplicates_wait_for_the_reordering_window() {
    let pair = Pair::new(rack(8), 8).lose(Data(6)).run();
    assert_eq!(pair.times(Data(6)), [1_000, 2_250]);
    assert_eq!(pair.counters().timeouts, 0);
}

/// Step 1: the shortest is of all round trips that RFC 6298 measures, and the handshake's is one.
#[test]
fn minimum_round_trip_includes_the_handshake() {
    let slow = |pair: Pair, seq| pair.delay(Data(seq), Time::from_ms(1));
    let pair = [0, 1, 2, 3, 4, 5, 7].into_iter().fold(Pair::new(rack(8), 8), slow);
    let pair = pair.lose(Data(6)).run();
    assert_eq!(pair.times(Data(6)), [1_000, 3_250]);
}

#[test]
fn does_not_retransmit_within_the_reordering_window() {
    let pair = Pair::new(rack(8), 8).delay(Data(6), Time::from_us(200)).run();
    assert_eq!((pair.finished(), pair.counters().retransmissions), (1_700, 0));
}

#[test]
fn retransmits_a_segment_late_by_more_than_the_reordering_window() {
    let pair = Pair::new(rack(8), 8).delay(Data(6), Time::from_us(300)).run();
    assert_eq!(pair.times(Data(6)), [1_000, 2_250]);
}

/// Step 3: once a segment has been late without having been sent again, duplicates say nothing,
/// only time does.
#[test]
fn a_path_that_reorders_is_borne_from_then_on() {
    let late = Time::from_us(200);
    for (first, sendings) in [(6, 1), (2, 2)] {
        let pair = Pair::new(rack(8), 100).delay(Data(first), late).delay(Data(40), late).run();
        assert_eq!(pair.times(Data(40)).len(), sendings, "{first}");
    }
}

#[test]
fn a_recovery_that_duplicates_prove_needless_is_taken_back() {
    let late = Time::from_us(200);
    for (undo, undone) in [(true, 1), (false, 0)] {
        let spec = with(8, |spec| spec.undo = undo);
        let pair = Pair::new(spec, 100).delay(Data(2), late).run();
        assert_eq!(pair.counters().recoveries_undone, undone);
    }
}

/// Sprayed ACKs overtake each other, and a duplicate is reported once.
#[test]
fn a_report_that_later_acks_have_overtaken_counts() {
    let late = Time::from_us(200);
    let pair = || Pair::new(rack(8), 100).delay(Data(2), late);
    let reports = |sent: &&Sent| matches!((sent.what, sent.blocks.as_slice()), (Ack(ack), [first, ..]) if first.1 <= ack);
    let in_order = pair().run();
    let reported: Vec<What> = in_order.log.iter().filter(reports).map(|sent| sent.what).collect();
    assert_eq!(reported.len(), 1);
    // The ACK of that number that came first is late, too.
    let much = Time::from_ms(2);
    let overtaken = pair().delay(reported[0], much).delay(reported[0], much).run();
    assert_eq!(overtaken.counters().recoveries_undone, 1);
}

/// Step 5 looks at retransmissions, too.
#[test]
fn a_lost_retransmission_is_told_by_what_left_later() {
    let pair = Pair::new(rack(10), 60).lose(Data(0)).lose(Data(0)).run();
    assert_eq!((pair.times(Data(0)).len(), pair.counters().timeouts), (3, 0));
}

mod probes {
    use super::*;

    /// Section 7.2: twice the round trip after the last ACK.
    #[test]
    fn the_last_segment_is_probed_after_two_round_trips() {
        let pair = Pair::new(rack(8), 8).lose(Data(7)).run();
        assert_eq!((pair.times(Data(7)), pair.finished()), (vec![1_000, 4_000], 4_500));
        assert_eq!(pair.counters().timeouts, 0);
    }

    #[test]
    fn each_of_the_last_three_is_repaired_without_a_timeout() {
        for lost in 5..8 {
            let pair = Pair::new(rack(8), 8).lose(Data(lost)).run();
            assert_eq!(pair.counters().timeouts, 0, "{lost}");
            assert!(pair.finished() <= 4_500, "{lost}");
        }
    }

    #[test]
    fn a_lost_tail_of_several_is_found_by_the_probe_of_its_end() {
        let pair = Pair::new(rack(8), 8).lose(Data(6)).lose(Data(7)).run();
        assert_eq!(
            (pair.times(Data(7)), pair.times(Data(6))),
            (vec![1_000, 4_000], vec![1_000, 5_000])
        );
        assert_eq!(pair.counters().timeouts, 0);
    }

    #[test]
    fn without_probes_the_tail_takes_the_timer() {
        let pair = Pair::new(without_probes(8), 8).lose(Data(7)).run();
        assert_eq!((pair.times(Data(7)), pair.counters().timeouts), (vec![1_000, 12_000], 1));
    }

    /// A lone segment's ACK may be delayed.
    #[test]
    fn a_segment_alone_waits_for_its_delayed_ack() {
        let spec = with(8, |spec| spec.max_ack_delay = Time::from_ms(5));
        let pair = Pair::new(spec, 8).lose(Data(7)).run();
        assert_eq!(pair.times(Data(7)), [1_000, 9_000]);
    }

    #[test]
    fn a_probe_is_new_data_if_there_is_any() {
        let mut pair = Pair::new(rack(4), 8);
        for seq in 0..4 {
            pair = pair.lose(Data(seq));
        }
        let pair = pair.run();
        assert_eq!(pair.times(Data(4))[0], 3_000);
        assert_eq!(pair.counters().timeouts, 0);
    }

    #[test]
    fn a_probe_that_is_lost_leaves_the_timer() {
        let pair = Pair::new(rack(8), 8).lose(Data(7)).lose(Data(7)).run();
        assert_eq!(
            (pair.times(Data(7))[..2].to_vec(), pair.counters().timeouts),
            (vec![1_000, 4_000], 1)
        );
    }

    #[test]
    fn an_ack_that_was_lost_costs_one_needless_probe() {
        let pair = Pair::new(rack(8), 8).lose(Ack(8)).run();
        assert_eq!((pair.counters().retransmissions, pair.counters().timeouts), (1, 0));
        assert!(pair.done());
    }
}

mod f_rto {
    use super::*;

    /// A window stands still for longer than the timeout, and so does what the timeout sends again.
    fn stalled(spec: TcpSpec) -> Pair {
        let mut pair = Pair::new(spec, 40);
        for seq in 0..8 {
            pair = pair.delay(Data(seq), Time::from_ms(15));
        }
        pair.delay(Data(0), Time::from_ms(6)).run()
    }

    #[test]
    fn a_needless_timeout_is_taken_back_by_the_second_ack() {
        let pair = stalled(without_probes(8));
        assert_eq!((pair.counters().timeouts, pair.counters().timeouts_undone), (1, 1));
        assert_eq!(pair.counters().retransmissions, 1);
    }

    /// The first segment arrives after its copy and the next three, whose ACKs are lost: the ACK
    /// that F-RTO has waited for reports a duplicate, which proves the timeout needless at once.
    /// What leaves is the window's room (nine segments by then, four of which are under way), and
    /// not step 3's two.
    #[test]
    fn a_timeout_that_a_duplicate_proves_needless_is_no_longer_doubted() {
        let mut pair = Pair::new(without_probes(8), 40).delay(Data(0), Time::from_us(10_100));
        for seq in 1..8 {
            let late = if seq < 4 { 10_050 } else { 15_000 };
            pair = pair.delay(Data(seq), Time::from_us(late));
        }
        let pair = (1..5).fold(pair, |pair, ack| pair.lose(Ack(ack))).run();
        assert_eq!((pair.counters().timeouts, pair.counters().timeouts_undone), (1, 1));
        let left_at = |us: u64| -> Vec<u32> {
            (0..40).filter(|seq| pair.times(Data(*seq)).contains(&us)).collect()
        };
        assert_eq!((left_at(11_000), left_at(12_100)), (vec![0], vec![8, 9, 10, 11, 12]));
    }

    #[test]
    fn without_f_rto_a_spurious_timeout_resends_the_window() {
        let spec = with(8, |spec| {
            (spec.tail_loss_probe, spec.f_rto, spec.undo) = (false, false, false);
        });
        let pair = stalled(spec);
        assert_eq!(pair.counters().timeouts_undone, 0);
        assert!(pair.counters().retransmissions > 1);
    }

    #[test]
    fn a_timeout_for_a_loss_is_believed() {
        let mut pair = Pair::new(without_probes(8), 40);
        for seq in 0..8 {
            pair = pair.lose(Data(seq));
        }
        let pair = pair.run();
        assert_eq!((pair.counters().timeouts, pair.counters().timeouts_undone), (1, 0));
        assert!(pair.done());
    }

    /// Step 2b: two new segments show whether the rest has arrived.
    #[test]
    fn the_first_ack_after_a_timeout_draws_two_new_segments() {
        let mut pair = Pair::new(without_probes(8), 40);
        for seq in 0..8 {
            pair = pair.lose(Data(seq));
        }
        let data = pair.run().data();
        assert_eq!(data[8..11], [0, 8, 9]);
    }
}

#[test]
fn every_place_is_repaired_without_a_timeout() {
    for lost in 0..40 {
        let pair = Pair::new(rack(4), 40).lose(Data(lost)).run();
        assert!(pair.done(), "{lost}");
        assert_eq!(pair.counters().timeouts, 0, "{lost}");
    }
}

#[test]
fn every_two_places_are_repaired() {
    for first in 0..12 {
        for second in first..12 {
            let pair = Pair::new(rack(4), 12).lose(Data(first)).lose(Data(second)).run();
            assert!(pair.done(), "{first}, {second}");
        }
    }
}

#[derive(Debug, Clone)]
enum Mishap {
    Lost(u32),
    Late(u32, u64),
    Twice(u32),
    AckLost(u32),
}

fn mishap() -> impl Strategy<Value = Mishap> {
    let seq = 0..30u32;
    prop_oneof![
        seq.clone().prop_map(Mishap::Lost),
        (seq.clone(), 1..20_000u64).prop_map(|(seq, us)| Mishap::Late(seq, us)),
        seq.clone().prop_map(Mishap::Twice),
        seq.prop_map(Mishap::AckLost),
    ]
}

proptest! {
    /// Whatever happens to single packets, all data arrives, the sender knows, and both ends fall
    /// silent.
    #[test]
    fn completes_despite_random_loss_delay_and_duplication(
        mishaps in prop::collection::vec(mishap(), 0..25),
        initial_window in 1..12u32,
        method in 0..4,
        ack_every in 1..3u32,
        timestamps: bool,
    ) {
        let mut spec = match method {
            0 => newreno(initial_window),
            1 => sack(initial_window),
            2 => rack(initial_window),
            _ => with(initial_window, |spec| (spec.f_rto, spec.undo) = (false, false)),
        };
        (spec.ack_every, spec.timestamps) = (ack_every, timestamps);
        let mut pair = Pair::new(spec, 30);
        for mishap in mishaps {
            pair = match mishap {
                Mishap::Lost(seq) => pair.lose(Data(seq)),
                Mishap::Late(seq, us) => pair.delay(Data(seq), Time::from_us(us)),
                Mishap::Twice(seq) => pair.duplicate(Data(seq)),
                Mishap::AckLost(seq) => pair.lose(Ack(seq)),
            };
        }
        let pair = pair.run_loosely();
        prop_assert!(pair.done());
        prop_assert_eq!(pair.receiver.next_expected(), 30);
    }
}
