//! What a congestion control may ask for: samples of every ACK, and pacing.

use crate::tcp::pair::{Pair, What};
use crate::tcp::script::{Script, sack};
use What::Data;
use tailcut_engine::Time;
use tailcut_net::transport::tcp::congestion::{AckSample, Pacing};
use tailcut_net::transport::tcp::{CongestionState, TcpSpec};

const MS: Time = Time::from_ms(1);

fn ecn() -> TcpSpec {
    TcpSpec { ecn: true, ..sack(4) }
}

fn stamped() -> TcpSpec {
    TcpSpec { timestamps: true, ..sack(4) }
}

/// So many segments, with samples from the start.
fn sensing(spec: TcpSpec, segments: u64) -> Pair {
    let mut pair = Pair::new(spec, segments);
    pair.sender.enable_sampling();
    pair
}

fn sample(pair: &Pair) -> AckSample {
    *pair.sender.sample().expect("an ACK has arrived")
}

#[test]
fn an_ack_tells_its_round_trip_and_what_it_delivered() {
    let sample = sample(&sensing(sack(4), 4).run());
    assert_eq!((sample.rtt, sample.delivered), (Some(MS), 1_000));
}

#[test]
fn a_window_per_round_trip_is_the_rate() {
    let rate = sample(&sensing(sack(4), 4).run()).rate.expect("it says one");
    assert_eq!((rate.delivered, rate.interval), (4_000, MS));
}

#[test]
fn samples_acks_in_recovery() {
    let pair = sensing(sack(8), 8).lose(Data(0)).run_until(Time::from_us(2_000));
    assert_eq!(sample(&pair).state, CongestionState::Recovery);
    assert_eq!(sample(&pair).delivered, 1_000);
}

/// Sprayed ACKs overtake each other, and one has room for three blocks: what each delivered adds up
/// to the flow.
#[test]
fn samples_reordered_acks() {
    let mut script = Script::opening(sack(8), 8);
    script.sender.enable_sampling();
    script.pass(MS);
    script.syn_ack();
    script.pass(MS);
    let mut delivered = |ack, blocks: &[(u32, u32)]| {
        script.sack(ack, blocks);
        script.sender.sample().expect("an ACK has arrived").delivered
    };
    assert_eq!(
        [delivered(2, &[]), delivered(1, &[(4, 5)]), delivered(8, &[])],
        [2_000, 1_000, 5_000]
    );
}

#[test]
fn what_was_sent_again_measures_no_round_trip() {
    let pair = sensing(sack(8), 8).lose(Data(0)).run();
    assert_eq!((sample(&pair).rtt, sample(&pair).min_rtt), (None, MS));
}

#[test]
fn samples_one_way_delay_from_timestamps() {
    let spec = TcpSpec { ack_every: 1, ..stamped() };
    let mut pair = sensing(spec, 1).delay(Data(0), Time::from_ms(6));
    pair = pair.run();
    assert_eq!(sample(&pair).one_way, Some(Time::from_ms(6)));
}

/// A fabric's delays, which a clock of milliseconds tells as none.
#[test]
fn a_finer_clock_tells_delays_of_microseconds() {
    for (timestamp_tick, told) in [(Time::from_us(1), Time::from_us(537)), (MS, Time::ZERO)] {
        let spec = TcpSpec { ack_every: 1, timestamp_tick, ..stamped() };
        let pair = sensing(spec, 1).delay(Data(0), Time::from_us(37)).run();
        assert_eq!(sample(&pair).one_way, Some(told));
    }
}

#[test]
fn samples_count_marked_bytes() {
    let pair = sensing(ecn(), 8).mark(Data(0)).run_until(Time::from_ms(2));
    assert_eq!(sample(&pair).marked, 1_000);
}

#[test]
fn the_end_of_the_data_limits_the_rate() {
    let pair = sensing(sack(4), 5).run();
    assert!(sample(&pair).rate.is_none_or(|rate| rate.app_limited || rate.delivered == 4_000));
}

/// 10 MB/s: a segment each 100 us, by a timer that is not that of retransmissions.
#[test]
fn a_rate_spaces_the_segments() {
    let mut pair = sensing(sack(4), 4);
    pair.sender.pace(Pacing::Rate(10_000_000));
    let pair = pair.run();
    let left: Vec<u64> = (0..4).flat_map(|seq| pair.times(Data(seq))).collect();
    assert_eq!(left, [1_000, 1_100, 1_200, 1_300]);
    assert_eq!(pair.counters().timeouts, 0);
}

#[test]
fn the_timer_expires_in_time_and_what_it_resends_is_paced() {
    let mut pair = sensing(sack(4), 4);
    pair.sender.pace(Pacing::Gap(Time::from_ms(4)));
    let pair = pair.lose(Data(0)).run();
    assert_eq!((pair.times(Data(0)), pair.counters().timeouts), (vec![1_000, 13_000], 1));
}

#[test]
fn pacing_ends_with_the_connection() {
    let mut pair = sensing(sack(4), 2);
    pair.sender.pace(Pacing::Gap(Time::from_ms(1)));
    assert_eq!(pair.run().sender.deadline(), Time::NEVER);
}
