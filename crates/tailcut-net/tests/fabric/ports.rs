//! The port, which computes departures on arrival, against a plain queue with an event for each
//! arrival and each departure: the same packets at the same times.

use std::collections::VecDeque;

use proptest::prelude::*;
use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::packet::{Flags, FlowKey, Packet, NO_OPTIONS};
use tailcut_net::port::{Offer, Port};

/// A packet that can be told from others by `seq`.
pub fn packet(seq: u32, wire_bytes: u16) -> Packet {
    Packet {
        key: FlowKey::new(0, 1, 2, 3),
        connection: 0,
        seq,
        options: NO_OPTIONS,
        wire_bytes,
        flags: Flags::DATA,
    }
}

/// What a queue does with a script of packets.
#[derive(Debug, Default, PartialEq)]
struct History {
    /// Per packet offered: whether it was accepted, and how many waited just after.
    fates: Vec<(bool, usize)>,
    /// Packets in order of their last bit's arrival at the far end, with the time.
    arrivals: Vec<(u32, u64)>,
    max_queue: usize,
}

/// One arrival of a script: time in picoseconds and size on the wire.
type Script = [(u64, u16)];

/// The textbook queue: one packet in service, others waiting, an event when service ends.
/// At equal times service ends before the next packet arrives.
fn reference(script: &Script, rate: u64, propagation: u64, limit: Limit) -> History {
    let transmission = |bytes: u16| {
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        ((bits + u128::from(rate / 2)) / u128::from(rate)) as u64
    };
    let mut history = History::default();
    let mut waiting: VecDeque<(u32, u16)> = VecDeque::new();
    let mut in_service: Option<(u32, u64)> = None;
    let depart = |until: u64,
                  waiting: &mut VecDeque<(u32, u16)>,
                  in_service: &mut Option<(u32, u64)>,
                  arrivals: &mut Vec<(u32, u64)>| {
        while let Some((seq, end)) = in_service.filter(|(_, end)| *end <= until) {
            arrivals.push((seq, end + propagation));
            *in_service =
                waiting.pop_front().map(|(next, bytes)| (next, end + transmission(bytes)));
        }
    };
    for (seq, &(now, bytes)) in script.iter().enumerate() {
        depart(now, &mut waiting, &mut in_service, &mut history.arrivals);
        let fits = match limit {
            Limit::Unlimited => true,
            Limit::AtMost(Amount::Packets(n)) => waiting.len() < n as usize,
            Limit::AtMost(Amount::Bytes(n)) => {
                waiting.iter().map(|p| u64::from(p.1)).sum::<u64>() + u64::from(bytes) <= n
            }
        };
        let accepted = in_service.is_none() || fits;
        if in_service.is_none() {
            in_service = Some((seq as u32, now + transmission(bytes)));
        } else if fits {
            waiting.push_back((seq as u32, bytes));
        }
        history.fates.push((accepted, waiting.len()));
        history.max_queue = history.max_queue.max(waiting.len());
    }
    depart(u64::MAX, &mut waiting, &mut in_service, &mut history.arrivals);
    history
}

/// The same script through a port, whose event is handled before or after a packet offered at the same time.
fn one_event(
    script: &Script,
    rate: u64,
    propagation: u64,
    limit: Limit,
    events_first: bool,
) -> (History, Port) {
    let mut port = Port::new(Rate(rate), Time(propagation), limit);
    let mut history = History::default();
    let mut due: Option<Time> = None;
    for (seq, &(now, bytes)) in script.iter().enumerate() {
        while let Some(time) = due.filter(|time| time.0 < now || (events_first && time.0 == now)) {
            let (taken, next) = port.take();
            history.arrivals.push((taken.seq, time.0));
            due = next;
        }
        let offer = port.offer(Time(now), packet(seq as u32, bytes));
        if let Offer::First(time) = offer {
            assert!(due.is_none(), "a port has one pending event");
            due = Some(time);
        }
        history.fates.push((offer != Offer::Dropped, port.queue(Time(now)) as usize));
    }
    while let Some(time) = due {
        let (taken, next) = port.take();
        history.arrivals.push((taken.seq, time.0));
        due = next;
    }
    history.max_queue = port.counters().max_queue as usize;
    (history, port)
}

fn sizes() -> impl Strategy<Value = u16> {
    prop_oneof![Just(42), Just(1_502), Just(1_538), 1u16..9_000]
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000_000),
        Just(230_000_000),
        Just(115_000_000),
        1_000_000u64..100_000_000_000
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (0u32..9).prop_map(|n| Limit::AtMost(Amount::Packets(n))),
        (0u64..12_000).prop_map(|n| Limit::AtMost(Amount::Bytes(n))),
    ]
}

/// Arrivals at gaps of a random number of half transmission times of a full packet, some of none:
/// many fall on the very instant of a departure.
fn scripts() -> impl Strategy<Value = (Vec<(u64, u16)>, u64)> {
    let gap = prop_oneof![3 => Just(0u64), 4 => 0u64..6, 1 => 0u64..60];
    let steps = prop::collection::vec((gap, sizes(), prop::bool::weighted(0.3)), 1..150);
    (steps, rates()).prop_map(|(steps, rate)| {
        let half = Rate(rate).transmission_time(1_502).0 / 2;
        let mut now = 0;
        let script = steps
            .into_iter()
            .map(|(gap, size, full)| {
                now += gap * half;
                (now, if full { 1_502 } else { size })
            })
            .collect();
        (script, rate)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_one_event_port_equals_the_two_event_queue(
        (script, rate) in scripts(),
        propagation in prop_oneof![Just(0u64), 0u64..50_000_000],
        limit in limits(),
        events_first in any::<bool>(),
    ) {
        let expected = reference(&script, rate, propagation, limit);
        let (history, port) = one_event(&script, rate, propagation, limit, events_first);
        prop_assert_eq!(&history, &expected);

        let counters = port.counters();
        let accepted = expected.fates.iter().filter(|fate| fate.0).count() as u64;
        prop_assert_eq!(counters.packets + counters.drops, script.len() as u64);
        prop_assert_eq!((counters.packets, port.held()), (accepted, 0));
    }

    #[test]
    fn a_port_never_exceeds_its_rate_or_its_limit((script, rate) in scripts(), limit in limits()) {
        let (history, port) = one_event(&script, rate, 0, limit, true);
        for two in history.arrivals.windows(2) {
            let transmission = Rate(rate).transmission_time(u64::from(script[two[1].0 as usize].1));
            prop_assert!(two[1].1 - two[0].1 >= transmission.0);
        }
        if let Limit::AtMost(Amount::Packets(n)) = limit {
            prop_assert!(history.fates.iter().all(|fate| fate.1 <= n as usize));
            prop_assert!(port.counters().max_queue <= n);
        }
    }
}

/// 100 packets wait behind the one in service; the hundred-and-second is dropped.
#[test]
fn a_limit_does_not_count_the_packet_in_service() {
    let mut port = Port::new(Rate(1_000_000_000), Time::ZERO, Limit::AtMost(Amount::Packets(100)));
    let accepted = (0..200)
        .filter(|&seq| port.offer(Time::ZERO, packet(seq, 1_502)) != Offer::Dropped)
        .count();
    assert_eq!((accepted, port.counters().drops, port.counters().max_queue), (101, 99, 100));
}
