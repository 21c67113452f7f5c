//! BBR at the two ends of a wire: its first segments, and data that come in pieces.

use crate::tcp::pair::{Pair, What};
use crate::tcp::script::{MSS, sack};
use What::Data;
use tailcut_engine::Time;
use tailcut_net::transport::tcp::congestion::bbr::{Bbr, BbrMode, BbrSpec};
use tailcut_net::transport::tcp::{Congestion, CongestionSpec, Receiver, Sender, TcpSpec};

fn bbr(bbr: BbrSpec) -> TcpSpec {
    let spec = TcpSpec { congestion: CongestionSpec::Bbr(bbr), ..sack(10) };
    TcpSpec { min_rto: Time::from_ms(200), initial_rto: Time::from_ms(1_000), ..spec }
}

fn state(pair: &Pair) -> &Bbr {
    match pair.sender.congestion() {
        Congestion::Bbr(bbr) => bbr,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ten_segments_leave_at_once_as_from_linux() {
    let pair = Pair::new(bbr(BbrSpec::default()), 20).run();
    let left: Vec<u64> = (0..10).flat_map(|seq| pair.times(Data(seq))).collect();
    assert_eq!(left, [1_000; 10]);
}

/// The initial window 2.885 times in a round trip of 1 ms, less 1 %: a segment each 35 us.
#[test]
fn unpaced_zero_paces_from_the_first_segment() {
    let pair = Pair::new(bbr(BbrSpec { unpaced: 0, ..BbrSpec::default() }), 20).run();
    let left: Vec<u64> = (0..4).flat_map(|seq| pair.times(Data(seq))).collect();
    assert_eq!(left, [1_000, 1_035, 1_070, 1_105]);
}

/// 10 MB/s and a millisecond: 400 segments tell the bandwidth, pairs of segments every 5 ms for
/// half a second leave it as it is, and are sent at it.
#[test]
fn a_lack_of_data_shrinks_no_estimate() {
    let spec = bbr(BbrSpec::default());
    let mut pair = Pair::new(spec.clone(), 1).spaced(Time::from_us(100));
    pair.sender = Sender::open_ended(&spec, Time::ZERO);
    pair.receiver = Receiver::new(1_000);
    let give = |mut pair: Pair, segments: u32, until: u64| {
        (0..segments).for_each(|_| pair.sender.assign_segment(&spec, MSS));
        pair.poll();
        pair.run_until(Time::from_ms(until))
    };
    pair = give(pair, 400, 100);
    let known = state(&pair).bandwidth();
    assert!((known / 1e7 - 1.0).abs() < 0.01, "{known}");
    assert!(matches!(state(&pair).mode(), BbrMode::ProbeBandwidth(_)));
    for piece in 1..=100 {
        pair = give(pair, 2, 100 + 5 * piece);
        assert_eq!(pair.sender.una(), 400 + 2 * piece as u32);
    }
    let now = state(&pair).bandwidth();
    assert!((now / known - 1.0).abs() < 0.01, "{now} of {known}");
    let apart = pair.times(Data(599))[0] - pair.times(Data(598))[0];
    assert!((100..=102).contains(&apart), "{apart} us");
}
