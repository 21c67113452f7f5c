//! Departures from the RFCs that are switched on to compare with ns-3.

use crate::tcp::script::{ENDLESS, MSS, RTT, Script, again, new, newreno, news, sack};
use tailcut_engine::Time;
use tailcut_net::transport::Transmit;
use tailcut_net::transport::tcp::{CongestionState, Imitation, TcpSpec};

fn both(initial_window: u32) -> [TcpSpec; 2] {
    [Imitation::NONE, Imitation::NS3].map(|imitate| TcpSpec { imitate, ..sack(initial_window) })
}

fn both_newreno(initial_window: u32) -> [TcpSpec; 2] {
    [Imitation::NONE, Imitation::NS3].map(|imitate| TcpSpec { imitate, ..newreno(initial_window) })
}

/// Segments 0 and 10 of twenty are lost; 0 has just been repaired.
fn partially_acknowledged(spec: TcpSpec) -> Vec<Transmit> {
    let mut script = Script::established(spec, ENDLESS);
    script.sack(0, &[(1, 10)]);
    script.ack(10)
}

#[test]
fn a_partial_ack_sends_a_segment_though_the_window_is_closed() {
    let [rfc, ns3] = both(20).map(partially_acknowledged);
    assert_eq!((rfc, ns3), (vec![], vec![new(21)]));
}

/// Three of ten have arrived, one is lost.
#[test]
fn recovery_halves_what_is_thought_to_be_in_the_network() {
    let [rfc, ns3] = both(10).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        script.sack(0, &[(1, 4)]);
        script.threshold()
    });
    assert_eq!((rfc, ns3), (5, 3));
}

#[test]
fn a_repeated_syn_ack_resets_the_window() {
    let [rfc, ns3] = both(4).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        script.ack(2);
        script.syn_ack();
        script.sender.cwnd() / MSS
    });
    assert_eq!((rfc, ns3), (5, 4));
}

#[test]
fn a_repeated_syn_gives_a_round_trip_sample() {
    let [rfc, ns3] = both(4).map(|spec| {
        let mut script = Script::opening(spec, ENDLESS);
        script.expire();
        script.syn_ack();
        script.sender.rtt().smoothed().as_ns()
    });
    assert_eq!((rfc, ns3), (0, 10_000_000));
}

#[test]
fn an_ack_of_what_was_sent_again_ends_the_back_off() {
    let [rfc, ns3] = both(4).map(|spec| {
        let mut script = Script::timed_out(spec);
        script.ack(1);
        script.timer().as_ns() / 1_000_000
    });
    assert_eq!((rfc, ns3), (20, 10));
}

#[test]
fn there_is_no_rescue_of_the_last_segment() {
    let [rfc, ns3] = both(20).map(|spec| {
        let mut script = Script::established(spec, 20);
        script.sack(0, &[(1, 4)]);
        (5..=18).flat_map(|end| script.sack(0, &[(1, end)])).collect::<Vec<_>>()
    });
    assert_eq!((rfc, ns3), (vec![again(19)], vec![]));
}

#[test]
fn each_timeout_halves_what_was_in_the_network_anew() {
    let [rfc, ns3] = both(20).map(|spec| {
        let mut script = Script::timed_out(spec);
        script.expire();
        script.threshold()
    });
    assert_eq!((rfc, ns3), (10, 2));
}

/// The ACK covers what the timeout made sent again and the first segment sent since.
#[test]
fn a_timeout_forgets_what_was_sent_before_it() {
    let [rfc, ns3] = both(2).map(|spec| {
        let mut script = Script::timed_out(spec);
        script.pass(RTT);
        assert_eq!(script.ack(1), [again(1), new(2)]);
        let before = script.sender.rtt().smoothed();
        script.pass(RTT + RTT);
        script.ack(3);
        script.sender.rtt().smoothed() > before
    });
    assert_eq!((rfc, ns3), (false, true));
}

/// Eight segments and two by limited transmit are out: RFC 5681 halves eight and adds three, ns-3
/// halves what its guesses leave, and neither adds nor inflates.
#[test]
fn without_sack_the_window_is_compared_with_guesses_and_not_inflated() {
    let [rfc, ns3] = both_newreno(8).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        (0..3).for_each(|_| drop(script.ack(0)));
        let entered = script.sender.cwnd();
        script.ack(0);
        (entered, script.sender.cwnd())
    });
    assert_eq!((rfc, ns3), ((7_000, 8_000), (3_500, 3_500)));
}

/// Two late segments had been guessed to have arrived. Nothing is lost, but each ACK stops at one
/// of the guesses.
#[test]
fn without_sack_guesses_outlive_reordering_and_each_ack_sends_a_segment_again() {
    let [rfc, ns3] = both_newreno(8).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        script.ack(0);
        script.ack(0);
        let sent = [1, 2, 3].map(|ack| script.ack(ack));
        sent.concat()
            .into_iter()
            .filter(|sent| *sent == again(1) || *sent == again(2) || *sent == again(3))
            .count()
    });
    assert_eq!((rfc, ns3), (0, 3));
}

/// And the next duplicate ACK, which the needless retransmissions cause, begins a recovery.
#[test]
fn without_sack_one_duplicate_ack_after_a_wrong_guess_begins_a_recovery() {
    let [rfc, ns3] = both_newreno(8).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        script.ack(0);
        script.ack(0);
        script.ack(1);
        script.ack(1);
        script.sender.state()
    });
    assert_eq!((rfc, ns3), (CongestionState::Disorder, CongestionState::Recovery));
}

/// RFC 6582 step 2 leaves them out.
#[test]
fn without_sack_duplicates_of_where_a_timeout_ended_begin_a_recovery() {
    let [rfc, ns3] = both_newreno(4).map(|spec| {
        let mut script = Script::timed_out(spec);
        script.ack(4);
        (0..3).for_each(|_| drop(script.ack(4)));
        script.sender.counters().fast_recoveries
    });
    assert_eq!((rfc, ns3), (0, 1));
}

/// What it takes for lost it sends in recovery only.
#[test]
fn without_sack_a_sender_whose_fin_has_left_sends_nothing_for_a_wrong_guess() {
    let [_, ns3] = both_newreno(8);
    let mut script = Script::established(ns3, 8);
    script.ack(0);
    script.ack(0);
    assert_eq!(script.ack(1), []);
}

/// Only what was sent since the timeout counts.
#[test]
fn without_sack_the_ack_that_ends_a_loss_opens_no_window_for_what_was_lost() {
    let [rfc, ns3] = both_newreno(4).map(|spec| {
        let mut script = Script::timed_out(spec);
        assert_eq!(script.ack(4), news(4..6)[..script.window() as usize].to_vec());
        script.window()
    });
    assert_eq!((rfc, ns3), (2, 1));
}

/// By the RFCs but for the first names, and with the last as well.
fn with_and_without(spec: TcpSpec, names: &[&str]) -> [TcpSpec; 2] {
    let (without, with) = (&names[..names.len() - 1], names);
    [without, with].map(|names| {
        let imitate = Imitation::of(names).expect("they are departures");
        TcpSpec { imitate, ..spec.clone() }
    })
}

#[test]
fn a_repeated_syn_ack_lets_nothing_out_before_the_next_ack() {
    let names = ["repeated-syn-ack-resets", "repeated-syn-ack-is-silent"];
    let [loud, silent] = with_and_without(sack(4), &names).map(|spec| {
        let mut script = Script::timed_out(spec);
        let answer = script.syn_ack();
        assert_eq!(script.sent(), [], "asked once more, as when the receiver's timer fires");
        (answer, script.ack(1).is_empty())
    });
    let resent = vec![Transmit::Ack, again(1), again(2), again(3)];
    assert_eq!((loud.0, silent), (resent, (vec![Transmit::Ack], false)));
}

#[test]
fn an_ack_that_advances_and_reports_a_gap_neither_opens_the_window_nor_restarts_the_timer() {
    let [rfc, ns3] = with_and_without(sack(10), &["advancing-sack-waits"]).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        script.pass(RTT);
        script.sack(1, &[(2, 3)]);
        (script.window(), script.timer())
    });
    let whole = Time::from_ms(10);
    assert_eq!((rfc, ns3), ((11, whole), (10, whole - RTT)));
}

/// The threshold is 2 after a timeout with four segments under way.
#[test]
fn the_ack_of_three_segments_that_ends_slow_start_opens_the_window_twice() {
    let [rfc, ns3] = with_and_without(sack(4), &["slow-start-grows-twice"]).map(|spec| {
        let mut script = Script::timed_out(spec);
        assert_eq!((script.window(), script.threshold()), (1, 2));
        script.ack(3);
        script.sender.cwnd()
    });
    assert_eq!((rfc, ns3), (2 * MSS, 2 * MSS + MSS / 2));
}

/// A recovery whose first 60 segments are lost; three are sent again.
fn deep_recovery(spec: TcpSpec) -> Script {
    let mut script = Script::established(spec, ENDLESS);
    assert_eq!(script.sack(0, &[(60, 63)]), [again(0), again(1), again(2)]);
    script
}

/// Two segments are delivered, and five have been with three sent; an ACK that is safe may send one
/// more.
#[test]
fn an_ack_that_advances_and_reports_goes_through_prr_twice() {
    let [rfc, ns3] = with_and_without(sack(100), &["prr-twice"])
        .map(|spec| deep_recovery(spec).sack(1, &[(63, 64), (60, 63)]).len());
    assert_eq!((rfc, ns3), (3, 5));
}

/// The first 30 of 60 segments are lost. Four are delivered, of which one had been sent again, and
/// 33 is lost besides.
#[test]
fn an_ack_of_a_retransmission_is_safe_though_it_tells_of_a_loss() {
    let [rfc, ns3] = with_and_without(sack(60), &["repair-is-safe"]).map(|spec| {
        let mut script = Script::established(spec, ENDLESS);
        assert_eq!(script.sack(0, &[(30, 33)]), [again(0), again(1), again(2)]);
        script.sack(1, &[(34, 37), (30, 33)]).len()
    });
    assert_eq!((rfc, ns3), (4, 5));
}

/// All is sent, nothing is lost and no block lies above the first outstanding segment; the window
/// has room for one.
#[test]
fn without_blocks_a_recovery_sends_again_what_is_in_doubt() {
    let [rfc, ns3] = with_and_without(sack(10), &["no-rescue", "doubt-without-sack"]).map(|spec| {
        let mut script = Script::established(spec, 10);
        script.sack(0, &[(1, 4)]);
        script.ack(4)
    });
    assert_eq!((rfc, ns3), (vec![], vec![again(4)]));
}

/// Only the last segment, of half a full one, is outstanding, and has just been sent again.
#[test]
fn a_partial_ack_sends_a_short_last_segment_again() {
    let [rfc, ns3] = with_and_without(sack(10), &["short-last-again"]).map(|spec| {
        let mut script = Script::established(spec.clone(), 10);
        script.sender = tailcut_net::transport::tcp::Sender::new(&spec, 9 * MSS + 500, Time::ZERO);
        script.sender.on_timer(&spec, Time::ZERO);
        script.syn_ack();
        assert_eq!(script.sack(0, &[(1, 4)]), [again(0), again(9)], "the second to the rescue");
        script.sack(0, &[(1, 9)]);
        script.ack(9)
    });
    assert_eq!((rfc, ns3), (vec![], vec![again(9)]));
}

/// A recovery of twelve segments has ended, 12 and 13 of nineteen are known to be lost, and the FIN
/// has left.
#[test]
fn a_sender_whose_fin_has_left_sends_nothing_in_open() {
    let names = ["timeout-ends-in-open", "fin-ends-open"];
    let [without, with] = with_and_without(sack(12), &names).map(|spec| {
        let mut script = Script::established(spec, 19);
        script.sack(0, &[(1, 4)]);
        script.sack(0, &[(1, 12)]);
        script.sack(0, &[(14, 15), (1, 12)]);
        assert_eq!(script.sack(0, &[(14, 16), (1, 12)]), [new(18)]);
        script.sack(12, &[(14, 17)])
    });
    assert_eq!((without, with), (vec![again(12), again(13)], vec![]));
}

/// The second sending of 9, in doubt, has overtaken that of 0 when 9 is reported.
#[test]
fn what_is_reported_in_doubt_tells_of_what_it_overtook() {
    let [rfc, ns3] = with_and_without(sack(10), &["doubt-overtakes"]).map(|spec| {
        let mut script = Script::established(spec, 10);
        script.sack(0, &[(1, 4)]);
        script.pass(RTT);
        assert_eq!(script.sack(0, &[(1, 9)]), [again(9)], "a rescue");
        script.sack(0, &[(1, 10)])
    });
    assert_eq!((rfc, ns3), (vec![], vec![again(0)]));
}

/// RFC 6582 step 1: until what the timeout lost is acknowledged, duplicates tell nothing new.
#[test]
fn ns3_10_retransmits_fast_on_duplicates_between_a_timeout_and_its_repair() {
    let [rfc, ns3_10] = [&[][..], &["duplicates-after-timeout"]].map(|names| {
        let imitate = Imitation::of(names).expect("it is known");
        let mut script = Script::timed_out(TcpSpec { imitate, ..newreno(8) });
        script.ack(2);
        let sent: Vec<Transmit> = (0..3).flat_map(|_| script.ack(2)).collect();
        (sent, script.sender.state(), script.sender.counters().fast_recoveries)
    });
    assert_eq!(rfc, (vec![], CongestionState::Loss, 0));
    assert_eq!((ns3_10.0[0], ns3_10.1, ns3_10.2), (again(2), CongestionState::Recovery, 1));
}

/// RFC 6582 step 2: needless retransmissions of what the timeout covered cause such duplicates.
#[test]
fn ns3_10_retransmits_fast_on_duplicates_of_where_a_timeout_ended() {
    let recoveries = [&[][..], &["duplicates-after-timeout"]].map(|names| {
        let imitate = Imitation::of(names).expect("it is known");
        let mut script = Script::timed_out(TcpSpec { imitate, ..newreno(4) });
        script.ack(4);
        (0..3).for_each(|_| drop(script.ack(4)));
        script.sender.counters().fast_recoveries
    });
    assert_eq!(recoveries, [0, 1]);
}

/// Of ten segments 1, 2 and 6 to 8 have arrived, and the timer expires. The window has room for two
/// segments when the fifth is acknowledged.
#[test]
fn ns3_10_goes_back_and_sends_again_what_sack_had_reported() {
    let sent_again = [&[][..], &["go-back-n"]].map(|names| {
        let imitate = Imitation::of(names).expect("it is known");
        let mut script = Script::established(TcpSpec { imitate, ..sack(10) }, 10);
        script.sack(0, &[(1, 3)]);
        script.sack(0, &[(6, 9), (1, 3)]);
        let mut sent = script.expire();
        sent.extend(script.sack(3, &[(6, 9)]));
        sent.extend(script.sack(5, &[(6, 9)]));
        sent.extend(script.sack(9, &[]));
        sent
    });
    let selective = vec![again(0), again(3), again(4), again(5), again(9)];
    assert_eq!(sent_again, [selective, [0, 3, 4, 5, 6, 9].map(again).to_vec()]);
}

/// A sender without SACK has no reports to forget.
#[test]
fn without_sack_a_timeout_goes_back_whether_ns3_10_is_imitated_or_not() {
    let sent = [&[][..], &["go-back-n"]].map(|names| {
        let imitate = Imitation::of(names).expect("it is known");
        let mut script = Script::established(TcpSpec { imitate, ..newreno(8) }, ENDLESS);
        let mut sent = script.expire();
        (1..4).for_each(|ack| sent.extend(script.ack(ack)));
        sent
    });
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[0], (0..7).map(again).collect::<Vec<_>>());
}
