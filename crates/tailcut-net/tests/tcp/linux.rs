//! What `hosts = "linux"` does in single connections.

use crate::tcp::pair::{Pair, What};
use crate::tcp::script::{ENDLESS, MSS, Script, sack};
use What::{Data, Syn};
use tailcut_engine::{Bytes, Time};
use tailcut_net::transport::tcp::reordering::rack::RackSpec;
use tailcut_net::transport::tcp::{HostDefaults, ReductionBase, ReorderingSpec, TcpSpec};

const MS: Time = Time::from_ms(1);

fn linux() -> TcpSpec {
    HostDefaults::Linux.defaults()
}

#[test]
fn ten_segments_leave_at_first() {
    assert_eq!(Pair::new(linux(), 40).run_until(MS).data().len(), 10);
}

#[test]
fn sixteen_segments_are_acknowledged_at_once_and_every_second_then() {
    let pair = Pair::new(linux(), 40).run();
    let acks: Vec<u32> = (1..=16).chain((18..=40).step_by(2)).collect();
    assert_eq!(pair.acks(), acks);
}

#[test]
fn a_duplicate_is_followed_by_quick_acks() {
    let pair = Pair::new(linux(), 60).duplicate(Data(30)).run();
    assert!(pair.acks().windows(2).any(|two| two[0] > 31 && two[1] == two[0] + 1));
}

/// RTO = SRTT + max(200 ms, 4 RTTVAR).
#[test]
fn a_timeout_takes_200_ms_more_than_a_round_trip() {
    let spec = TcpSpec { reordering: sack(1).reordering, ..linux() };
    let pair = Pair::new(spec, 1).lose(Data(0)).run();
    assert_eq!(pair.times(Data(0)), [1_000, 202_000]);
}

#[test]
fn a_lost_syn_takes_a_second() {
    assert_eq!(Pair::new(linux(), 1).lose(Syn).run().times(Syn), [0, 1_000_000]);
}

#[test]
fn a_lost_tail_takes_two_round_trips() {
    let pair = Pair::new(linux(), 10).lose(Data(8)).lose(Data(9)).run();
    assert_eq!((pair.times(Data(9))[1], pair.counters().timeouts), (4_000, 0));
}

/// Ten segments at first, and never more than 20 under way.
fn bounded(reduction_base: ReductionBase) -> TcpSpec {
    TcpSpec { receive_window: Bytes(20 * MSS), reduction_base, ..sack(10) }
}

/// The first 100 segments have been acknowledged one by one.
fn held_back(reduction_base: ReductionBase) -> Script {
    let mut script = Script::established(bounded(reduction_base), ENDLESS);
    (1..=100).for_each(|ack| drop(script.ack(ack)));
    script
}

fn lose_first(script: &mut Script) {
    (102..=104).for_each(|end| drop(script.sack(100, &[(101, end)])));
}

#[test]
fn in_slow_start_the_window_grows_to_twice_what_it_lets_out() {
    assert_eq!(held_back(ReductionBase::Window).window(), 40);
}

#[test]
fn in_congestion_avoidance_the_window_grows_to_a_segment_more_than_it_lets_out() {
    let mut script = held_back(ReductionBase::Window);
    lose_first(&mut script);
    (120..=900).for_each(|ack| drop(script.ack(ack)));
    assert_eq!((script.threshold(), script.sender.cwnd() / MSS), (20, 21));
}

#[test]
fn a_flow_that_the_receive_window_holds_back_keeps_all_of_it_through_a_loss() {
    let threshold = |base| {
        let mut script = held_back(base);
        lose_first(&mut script);
        script.threshold()
    };
    assert_eq!([ReductionBase::Window, ReductionBase::FlightSize].map(threshold), [20, 10]);
}

/// Of a window of eight segments the receiver's lets one out. It is lost, a probe repeats it, and
/// the ACK of the next one tells.
#[test]
fn a_loss_that_a_probe_has_repaired_halves_the_window() {
    let rack = RackSpec { max_ack_delay: Time::ZERO, ..RackSpec::default() };
    let threshold = |reduction_base| {
        let reordering = ReorderingSpec::Rack(rack.clone());
        let spec = TcpSpec { receive_window: Bytes(MSS), reordering, reduction_base, ..sack(8) };
        let pair = Pair::new(spec, 3).lose(Data(0)).run();
        assert_eq!(pair.counters().timeouts, 0);
        pair.sender.ssthresh() / MSS
    };
    assert_eq!([ReductionBase::Window, ReductionBase::FlightSize].map(threshold), [4, 2]);
}

#[test]
fn a_timeout_halves_the_window() {
    let mut script = held_back(ReductionBase::Window);
    script.expire();
    assert_eq!(script.threshold(), 20);
}

#[test]
fn a_timeout_within_a_recovery_reduces_no_second_time() {
    let threshold = |base| {
        let mut script = held_back(base);
        lose_first(&mut script);
        script.expire();
        script.threshold()
    };
    assert_eq!(threshold(ReductionBase::Window), 20);
    assert!(threshold(ReductionBase::FlightSize) < 10);
}
