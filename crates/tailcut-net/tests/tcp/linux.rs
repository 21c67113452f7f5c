//! What `hosts = "linux"` does in single connections.

use crate::pair::{Pair, What};
use crate::script::sack;
use tailcut_engine::Time;
use tailcut_net::transport::tcp::{Hosts, TcpSpec};
use What::{Data, Syn};

const MS: Time = Time::from_ms(1);

fn linux() -> TcpSpec {
    Hosts::Linux.defaults()
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
