//! DCTCP (RFC 8257): the estimate, the reduction, and the receiver's two states.

use crate::tcp::script::{ENDLESS, MSS, Script, newreno};
use tailcut_engine::Time;
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::{AckTiming, Congestion, CongestionSpec, Receiver, TcpSpec};

/// In congestion avoidance, so that the window grows by little.
fn dctcp(window: u32, spec: DctcpSpec) -> TcpSpec {
    TcpSpec {
        congestion: CongestionSpec::Dctcp(spec),
        initial_ssthresh: Limit::AtMost(Amount::Packets(window)),
        ..newreno(window)
    }
}

fn established(window: u32, initial_alpha: f64) -> Script {
    let spec = DctcpSpec { initial_alpha, ..DctcpSpec::default() };
    Script::established(dctcp(window, spec), ENDLESS)
}

fn alpha(script: &Script) -> f64 {
    let Congestion::Dctcp(state) = script.sender.congestion() else { panic!("not DCTCP") };
    state.alpha()
}

/// Section 3.3 step 9 with alpha = 1 (section 4.2's initial value).
#[test]
fn the_first_mark_of_a_connection_halves_its_window() {
    let mut script = established(10, 1.0);
    script.echo(1);
    assert_eq!((script.threshold(), script.window()), (5, 5));
}

/// RFC 3168 section 6.1.2, of which RFC 8257 replaces the reduction alone.
#[test]
fn an_ack_with_an_echo_opens_no_window_unless_that_is_asked_for() {
    let grown = |grows_under_echoes| {
        let spec = DctcpSpec { initial_alpha: 1.0, grows_under_echoes, ..DctcpSpec::default() };
        let mut script = Script::established(dctcp(10, spec), ENDLESS);
        script.echo(1);
        let reduced = script.sender.ssthresh();
        (2..=5).for_each(|ack| drop(script.echo(ack)));
        let echoed = script.sender.cwnd() - reduced;
        script.ack(6);
        (echoed, script.sender.cwnd() > reduced + echoed)
    };
    assert_eq!(grown(false), (0, true));
    assert!(grown(true).0 > 4 * MSS / 6);
}

/// The first window of data ends at once, with its first ACK: alpha = 15/16 * 0.5 + 1/16.
#[test]
fn a_mark_reduces_the_window_by_half_of_alpha() {
    let mut script = established(100, 0.5);
    script.echo(1);
    assert_eq!(alpha(&script), 0.531_25);
    assert_eq!(script.sender.ssthresh(), 73_437);
}

#[test]
fn the_share_of_marked_bytes_enters_the_estimate_once_per_window_of_data() {
    let mut script = established(10, 0.0);
    // Ten segments are out when the first observation window ends.
    script.ack(1);
    let end = 10;
    for ack in 2..=end {
        if ack <= 4 {
            script.echo(ack)
        } else {
            script.ack(ack)
        };
        assert_eq!(alpha(&script), 0.0, "the window of data is not over");
    }
    // Of these ten segments three were marked.
    script.ack(end + 1);
    assert!((alpha(&script) - 3.0 / 10.0 / 16.0).abs() < 1e-12);
}

#[test]
fn without_marks_the_estimate_decays_by_a_sixteenth_per_window_of_data() {
    let mut script = established(10, 1.0);
    script.ack(1);
    assert_eq!(alpha(&script), 15.0 / 16.0);
    (2..=12).for_each(|ack| drop(script.ack(ack)));
    assert_eq!(alpha(&script), 15.0 * 15.0 / 256.0);
}

#[test]
fn one_window_of_data_is_reduced_once() {
    let mut script = established(10, 1.0);
    (1..=10).for_each(|ack| drop(script.echo(ack)));
    assert_eq!(script.sender.counters().echo_reductions, 1);
    script.echo(11);
    assert_eq!(script.sender.counters().echo_reductions, 2);
}

/// Section 3.5: a loss is answered as by any TCP, whatever alpha is.
#[test]
fn a_loss_halves_the_flight() {
    let mut script = established(8, 0.0);
    (0..3).for_each(|_| drop(script.ack(0)));
    assert_eq!(script.threshold(), 4);
}

#[test]
fn a_loss_after_a_mark_in_the_same_window_of_data_halves_all_the_same() {
    let mut script = established(20, 0.0);
    script.echo(1);
    let marked = script.sender.ssthresh();
    (0..3).for_each(|_| drop(script.ack(1)));
    assert!(script.sender.ssthresh() <= marked * 6 / 10);
}

fn delayed() -> TcpSpec {
    TcpSpec { ack_every: 2, ..dctcp(10, DctcpSpec::default()) }
}

/// Section 3.2, figure 1: (segment marked?) -> (ACK before it, echoing; then the ACK of it, or a
/// delay).
fn acknowledgements(marks: &[bool]) -> Vec<String> {
    let (spec, mut receiver, mut said) = (delayed(), Receiver::new(100), vec![]);
    for (seq, &marked) in (0..).zip(marks) {
        if receiver.owes_ack_before(&spec, marked) {
            said.push(format!("{} {}", receiver.next_expected(), receiver.echoes()));
            receiver.on_ack_sent();
        }
        receiver.note_congestion(&spec, marked, false);
        if receiver.on_segment(&spec, Time::ZERO, seq) == AckTiming::Now {
            said.push(format!("{} {}", receiver.next_expected(), receiver.echoes()));
            receiver.on_ack_sent();
        }
    }
    said
}

#[test]
fn while_nothing_changes_acknowledgements_are_delayed() {
    assert_eq!(acknowledgements(&[false; 4]), ["2 false", "4 false"]);
    assert_eq!(acknowledgements(&[true; 5]), ["1 true", "3 true", "5 true"]);
}

#[test]
fn a_change_acknowledges_what_came_before_under_the_old_state_and_itself_under_the_new() {
    assert_eq!(acknowledgements(&[false, true]), ["1 false", "2 true"]);
    assert_eq!(acknowledgements(&[false, false, true, false]), ["2 false", "3 true", "4 false"]);
}

/// What the sender adds up is then exact, however ACKs are delayed.
#[test]
fn every_segment_is_echoed_as_it_was_marked() {
    let marks = [false, true, true, true, false, false, true, false, false, true];
    let mut echoed = vec![];
    for line in acknowledgements(&marks) {
        let (next, echo) = line.split_once(' ').unwrap();
        echoed.resize(next.parse().unwrap(), echo == "true");
    }
    assert_eq!(echoed, marks);
}

#[test]
fn what_the_sender_says_of_its_window_does_not_end_the_echo() {
    let (spec, mut receiver) = (delayed(), Receiver::new(100));
    receiver.note_congestion(&spec, true, true);
    assert!(receiver.echoes());
}
