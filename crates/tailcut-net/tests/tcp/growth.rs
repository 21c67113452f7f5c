//! `window_growth = "delivered"`: windows that grow by what an ACK is the first to tell of.

use crate::tcp::script::{ENDLESS, MSS, RTT, Script, newreno, sack};
use WindowGrowth::{Acks, Delivered};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;
use tailcut_net::transport::tcp::reordering::adaptive::AdaptiveSpec;
use tailcut_net::transport::tcp::reordering::rack::RackSpec;
use tailcut_net::transport::tcp::{CongestionSpec, ReorderingSpec, TcpSpec, WindowGrowth};

/// Ten segments at first, and RACK.
fn spec(window_growth: WindowGrowth) -> TcpSpec {
    TcpSpec { window_growth, reordering: ReorderingSpec::Rack(RackSpec::default()), ..sack(10) }
}

/// A round trip after the initial window has left.
fn start(spec: TcpSpec) -> Script {
    let mut script = Script::established(spec, ENDLESS);
    script.pass(RTT);
    script
}

#[test]
fn an_ack_of_many_segments_opens_slow_start_by_all_of_them() {
    let window = |growth| {
        let mut script = start(spec(growth));
        script.ack(4);
        script.window()
    };
    assert_eq!([Acks, Delivered].map(window), [11, 14]);
}

/// Two of the ten were reported before.
#[test]
fn does_not_grow_again_for_segments_already_sacked() {
    let mut script = start(spec(Delivered));
    script.sack(0, &[(1, 3)]);
    assert_eq!(script.window(), 10);
    script.ack(10);
    assert_eq!(script.window(), 18);
}

#[test]
fn an_ack_opens_slow_start_to_the_threshold_and_counts_beyond_it_as_in_congestion_avoidance() {
    let cwnd = |growth| {
        let initial_ssthresh = Limit::AtMost(Amount::Packets(12));
        let mut script = start(TcpSpec { initial_ssthresh, ..spec(growth) });
        script.ack(8);
        script.sender.cwnd()
    };
    assert_eq!([Acks, Delivered].map(cwnd), [11 * MSS, 12 * MSS + 6 * MSS * MSS / (12 * MSS)]);
}

#[test]
fn in_congestion_avoidance_a_window_of_acknowledged_data_opens_a_segment_however_few_acks_tell() {
    let window = |growth| {
        let initial_ssthresh = Limit::AtMost(Amount::Packets(10));
        let mut script = start(TcpSpec { initial_ssthresh, ..spec(growth) });
        script.ack(5);
        script.ack(10);
        script.sender.cwnd()
    };
    let [acks, delivered] = [Acks, Delivered].map(window);
    assert!((10 * MSS + 150..10 * MSS + 250).contains(&acks), "{acks}");
    assert!((10 * MSS + 950..=11 * MSS).contains(&delivered), "{delivered}");
}

/// A segment that `wide` others overtake has arrived, the window holds `window` segments, and then
/// an ACK of nothing but what lies beyond a gap arrives. By how many segments it opens the window.
fn opened_beyond_a_gap(spec: TcpSpec, wide: u32) -> u64 {
    let mut script = start(spec);
    // So that RACK goes by time from here on.
    script.sack(0, &[(1, 2)]);
    script.ack(2);
    script.sack(2, &[(3, 3 + wide)]);
    script.ack(3 + wide);
    let before = script.window();
    script.sack(3 + wide, &[(4 + wide, 5 + wide)]);
    script.window() - before
}

#[test]
fn an_ack_that_does_not_advance_opens_the_window_once_reordering_is_wide() {
    for (growth, wide, opened) in [(Delivered, 2, 0), (Delivered, 3, 1), (Acks, 3, 0)] {
        assert_eq!(opened_beyond_a_gap(spec(growth), wide), opened, "{growth:?}, {wide}");
    }
}

#[test]
fn reordering_is_wide_for_a_threshold_that_has_adapted_to_it() {
    let reordering = ReorderingSpec::Adaptive(AdaptiveSpec::default());
    let mut script = start(TcpSpec { reordering, ..spec(Delivered) });
    script.sender.set_dupack_threshold(4);
    let before = script.window();
    script.sack(0, &[(1, 2)]);
    assert_eq!(script.window() - before, 1);
}

#[test]
fn a_fixed_threshold_opens_nothing_beyond_a_gap() {
    let reordering = ReorderingSpec::None {};
    let mut script = start(TcpSpec { reordering, ..spec(Delivered) });
    script.sack(0, &[(1, 2)]);
    assert_eq!(script.window(), 10);
}

#[test]
fn an_ack_that_another_has_overtaken_opens_nothing() {
    let mut script = start(spec(Delivered));
    script.sack(0, &[(1, 2)]);
    script.ack(2);
    script.sack(2, &[(3, 6)]);
    script.ack(6);
    let before = script.window();
    script.sack(2, &[(7, 8)]);
    assert_eq!(script.window(), before);
    assert_eq!(opened_beyond_a_gap(spec(Delivered), 3), 1, "by one that is in order");
}

#[test]
fn cubic_grows_by_what_was_reported_first() {
    let cubic = CubicSpec { hystart: HystartSpec::None, ..CubicSpec::default() };
    let window = |growth| {
        let congestion = CongestionSpec::Cubic(cubic.clone());
        let mut script = start(TcpSpec { congestion, ..spec(growth) });
        script.sack(0, &[(1, 3)]);
        script.ack(10);
        script.window()
    };
    assert_eq!([Acks, Delivered].map(window), [11, 18]);
}

#[test]
fn without_selective_acknowledgements_windows_grow_by_acks() {
    let mut script = start(TcpSpec { window_growth: Delivered, ..newreno(10) });
    script.ack(4);
    assert_eq!(script.window(), 11);
}
