//! The jitter of hosts' interfaces: delays and order of packets.

use tailcut_engine::{Rate, Time};
use tailcut_net::fabric::{Fabric, FabricSpec, OfferOutcome};
use tailcut_net::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};
use tailcut_net::topology::HostId;
use tailcut_net::topology::star::Star;

const TRANSMISSION: Time = Time::from_ns(12_304);
const PROPAGATION: Time = Time::from_us(1);

/// Returns the arrival times at the switch of packets that a host hands to its interface at
/// `handed`.
fn arrivals(jitter: Time, seed: u64, handed: &[Time]) -> Vec<Time> {
    let star = Star { hosts: 3, rate: Rate(1_000_000_000), propagation: PROPAGATION };
    let graph = star.build().expect("hosts are enough");
    let mut fabric = Fabric::new(&FabricSpec { jitter, seed, ..FabricSpec::with_defaults(&graph) })
        .expect("connected");
    let port = fabric.host_port(HostId(1));
    let key = FlowKey::new(HostId(1), HostId(2), 1_024, 5_000);
    let (mut arrived, mut due) = (vec![], None);
    for (seq, &now) in (0..).zip(handed) {
        while let Some(at) = due.filter(|at| *at <= now) {
            arrived.push(at);
            due = fabric.take_arrived(port).1;
        }
        let (connection, options, flags) = (ConnectionId(0), NO_OPTIONS, Flags::DATA);
        let packet =
            Packet { key, connection, seq: SeqField::new(seq), options, wire_bytes: 1_538, flags };
        match fabric.offer(now, port, None, packet) {
            OfferOutcome::AcceptedFirst(at) => due = Some(at),
            OfferOutcome::AcceptedBehind => {}
            other => panic!("nothing is in its way: {other:?}"),
        }
    }
    while let Some(at) = due {
        arrived.push(at);
        due = fabric.take_arrived(port).1;
    }
    arrived
}

fn apart(packets: u64) -> Vec<Time> {
    (0..packets).map(|n| Time::from_us(100 * n)).collect()
}

#[test]
fn an_interface_holds_each_packet_back_for_less_than_its_jitter() {
    let (jitter, handed) = (Time::from_us(10), apart(2_000));
    let arrived = arrivals(jitter, 1, &handed);
    let held: Vec<u64> = arrived
        .iter()
        .zip(&handed)
        .map(|(arrived, handed)| (*arrived - *handed - TRANSMISSION - PROPAGATION).0)
        .collect();
    assert!(held.iter().all(|held| *held < jitter.0));
    let mean = held.iter().sum::<u64>() as f64 / held.len() as f64;
    // Four standard deviations of the mean of 2,000 even draws.
    assert!((mean / jitter.0 as f64 - 0.5).abs() < 4.0 * 0.289 / 2_000_f64.sqrt(), "{mean}");
    assert_eq!(arrived, arrivals(jitter, 1, &handed), "by the seed");
    assert_ne!(arrived, arrivals(jitter, 2, &handed));
}

#[test]
fn packets_behind_others_keep_their_order_and_the_links_rate() {
    let burst = [Time::ZERO; 20];
    let arrived = arrivals(Time::from_us(10), 1, &burst);
    assert!(arrived.windows(2).all(|two| two[1] - two[0] >= TRANSMISSION));
    let whole = arrived[19] - Time(20 * TRANSMISSION.0) - PROPAGATION;
    assert!(whole < Time::from_us(10), "a busy link is not held back: {whole}");
}

#[test]
fn without_jitter_nothing_is_held_back() {
    let handed = apart(20);
    let on_time: Vec<Time> = handed.iter().map(|at| *at + TRANSMISSION + PROPAGATION).collect();
    assert_eq!(arrivals(Time::ZERO, 1, &handed), on_time);
}
