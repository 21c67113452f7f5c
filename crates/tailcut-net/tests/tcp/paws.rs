//! Segments with old timestamps (RFC 7323 section 5). A round trip takes 1 ms.

use crate::tcp::pair::{
    Pair,
    What::{Ack, Data},
};
use crate::tcp::script::sack;
use tailcut_engine::{Bytes, Time};
use tailcut_net::packet::{Flags, OptionStore, Timestamps};
use tailcut_net::transport::Segment;
use tailcut_net::transport::tcp::{Paws, Receiver, TcpSpec, WireSizes};

const EACH: [Paws; 3] = [Paws::Off, Paws::Rfc7323, Paws::Linux];

fn spec(paws: Paws, tick: Time) -> TcpSpec {
    TcpSpec { timestamps: true, timestamp_tick: tick, paws, ..sack(8) }
}

/// Segment 1 is lost, and 5 arrives after the retransmission of 1.
fn overtaken_by_a_retransmission(paws: Paws, tick: Time) -> Pair {
    Pair::new(spec(paws, tick), 20).lose(Data(1)).delay(Data(5), Time::from_us(1_200)).run_loosely()
}

#[test]
fn a_segment_overtaken_by_a_retransmission_is_discarded_and_the_flow_completes() {
    let tick = Time::from_us(1);
    let pairs = EACH.map(|paws| overtaken_by_a_retransmission(paws, tick));
    assert_eq!(pairs.each_ref().map(|pair| pair.receiver.discarded()), [0, 1, 1]);
    assert!(pairs.iter().all(|pair| pair.done()));
}

/// The retransmission left a round trip after the segment: a tick of 1 ms.
#[test]
fn linux_takes_a_segment_that_is_older_by_one_tick() {
    let tick = Time::from_ms(1);
    let discarded = EACH.map(|paws| overtaken_by_a_retransmission(paws, tick).receiver.discarded());
    assert_eq!(discarded, [0, 1, 0]);
}

/// The clock began anew between the two: 5 is newer than the last number before it.
#[test]
fn an_old_segment_from_before_the_clock_began_anew_is_answered_by_an_ack() {
    let spec = spec(Paws::Rfc7323, Time::from_us(1));
    let (mut receiver, mut options) = (Receiver::new(9), OptionStore::default());
    let sizes = WireSizes::new(&spec, Bytes(0));
    let mut hear = |flags, seq, value| {
        let mut packet = Segment::bare(flags, seq, 100);
        packet.options = options.stamp(packet.options, Timestamps { value, echo: 0 });
        receiver.on_packet(&spec, Time::ZERO, &packet, &options);
        let answer = receiver.poll_transmit(&spec, &sizes, Time::ZERO, None, &mut options);
        (answer.expect("every segment is answered").seq, receiver.discarded())
    };
    let data = Flags::DATA | Flags::ACK;
    hear(Flags::SYN, 0, u32::MAX - 9);
    assert_eq!(hear(data, 0, u32::MAX), (1, 0));
    assert_eq!(hear(data, 1, 5), (2, 0));
    assert_eq!(hear(data, 2, u32::MAX), (2, 1));
    assert_eq!(hear(data, 2, 5), (3, 1));
}

/// Section 4.3: a segment beyond a gap does not set the timestamp by which others are too old.
#[test]
fn segments_that_only_overtake_each_other_are_all_taken() {
    for paws in EACH {
        let late = Time::from_us(15);
        let pair = Pair::new(spec(paws, Time::from_us(1)), 20).spaced(Time::from_us(10));
        let pair = pair.delay(Data(3), late).delay(Data(9), late).run();
        assert_eq!(pair.receiver.discarded(), 0, "{paws:?}");
        assert!(pair.done());
    }
}

#[test]
fn an_overtaken_ack_is_discarded() {
    let discarded = EACH.map(|paws| {
        let pair = Pair::new(spec(paws, Time::from_us(1)), 20).spaced(Time::from_us(10));
        let pair = pair.delay(Ack(6), Time::from_us(15)).run();
        assert!(pair.done());
        pair.counters().paws_discarded
    });
    assert_eq!(discarded, [0, 1, 1]);
}

/// Segment 1 is lost: each of the next ones is answered by a duplicate of the ACK before it.
#[test]
fn linux_takes_an_overtaken_duplicate_of_the_last_ack() {
    let discarded = EACH.map(|paws| {
        let pair = Pair::new(spec(paws, Time::from_us(1)), 20).spaced(Time::from_us(10));
        let pair = pair.lose(Data(1)).delay(Ack(1), Time::ZERO).delay(Ack(1), Time::from_us(15));
        let pair = pair.run();
        assert!(pair.done());
        pair.counters().paws_discarded
    });
    assert_eq!(discarded, [0, 1, 0]);
}
