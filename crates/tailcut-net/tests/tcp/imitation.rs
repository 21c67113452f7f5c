//! Departures from the RFCs that are switched on to compare with ns-3.

use crate::script::{again, new, sack, Script, ENDLESS, MSS};
use tailcut_net::transport::tcp::{Imitation, TcpSpec};
use tailcut_net::transport::Transmit;

fn both(initial_window: u32) -> [TcpSpec; 2] {
    [Imitation::None, Imitation::Ns3].map(|imitate| TcpSpec { imitate, ..sack(initial_window) })
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
