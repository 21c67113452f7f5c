//! Compares the port, which computes departures on arrival, with a plain queue that has an event
//! for each arrival and each departure: the same packets at the same times.

use std::collections::VecDeque;

use proptest::prelude::*;
use tailcut_engine::{RandomStream, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};
use tailcut_net::port::{Port, PortOutcome};
use tailcut_net::topology::HostId;

/// Returns a packet identified by `seq`.
pub fn packet(seq: u32, wire_bytes: u16) -> Packet {
    Packet {
        key: FlowKey::new(HostId(0), HostId(1), 2, 3),
        connection: ConnectionId(0),
        seq: SeqField::new(seq),
        options: NO_OPTIONS,
        wire_bytes,
        flags: Flags::DATA,
    }
}

/// The behaviour of a queue under a script of packets.
#[derive(Debug, Default, PartialEq)]
struct History {
    /// Per packet offered: whether it was accepted, and the number waiting just after.
    fates: Vec<(bool, usize)>,
    /// Packets in the order in which their last bit arrives at the far end, with the time.
    arrivals: Vec<(u32, u64)>,
    max_queue: usize,
}

/// The arrivals of a script: time in picoseconds and size on the wire.
type Script = [(u64, u16)];

/// Runs a textbook queue: one packet in service, others waiting, an event when service ends. At
/// equal times service ends before the next packet arrives.
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

/// Runs the script through a port, whose event is handled before or after a packet offered at the
/// same time.
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
            history.arrivals.push((taken.seq.number(), time.0));
            due = next;
        }
        let offer = port.offer(Time(now), packet(seq as u32, bytes));
        if let PortOutcome::First(time) = offer {
            assert!(due.is_none(), "a port has one pending event");
            due = Some(time);
        }
        history.fates.push((offer != PortOutcome::Dropped, port.queue(Time(now)) as usize));
    }
    while let Some(time) = due {
        let (taken, next) = port.take();
        history.arrivals.push((taken.seq.number(), time.0));
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

/// Returns arrivals whose gaps are multiples of half a full packet's transmission, some of them
/// zero, so that many fall on the instant of a departure.
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

/// 100 packets wait behind the one in service; the 102nd is dropped.
#[test]
fn a_limit_does_not_count_the_packet_in_service() {
    let mut port = Port::new(Rate(1_000_000_000), Time::ZERO, Limit::AtMost(Amount::Packets(100)));
    let accepted = (0..200)
        .filter(|&seq| port.offer(Time::ZERO, packet(seq, 1_502)) != PortOutcome::Dropped)
        .count();
    assert_eq!((accepted, port.counters().drops, port.counters().max_queue), (101, 99, 100));
}

/// An event of a link in a script.
#[derive(Debug, Clone, Copy)]
enum Event {
    Offer(u16),
    Down,
    Up,
    Wire { rate: u64, propagation: u64 },
}

/// The behaviour of a link with faults under a script: the fate of each packet offered, arrivals,
/// and the packets lost while queued or under way.
#[derive(Debug, Default, PartialEq)]
struct Troubled {
    offers: Vec<Offered>,
    arrivals: Vec<(u32, u64)>,
    lost: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offered {
    Accepted,
    Full,
    Dead,
}

/// A textbook queue under faults: an event for the end of each service and for each arrival at the
/// far end, each with the epoch of the link in which it was set. Events of earlier epochs are
/// ignored.
struct Textbook {
    rate: u64,
    propagation: u64,
    up: bool,
    epoch: u32,
    waiting: VecDeque<(u32, u16)>,
    /// Packet, size, and begin and end of its service.
    in_service: Option<(u32, u16, u64, u64)>,
    /// Packet, departure, arrival and epoch of each packet on the wire.
    wire: VecDeque<(u32, u64, u64, u32)>,
    history: Troubled,
}

impl Textbook {
    fn transmission(&self, bytes: u16) -> u64 {
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        ((bits + u128::from(self.rate / 2)) / u128::from(self.rate)) as u64
    }

    /// Handles ends of service up to `until`, then arrivals up to it.
    fn advance(&mut self, until: u64) {
        while let Some((seq, .., end)) = self.in_service.filter(|service| service.3 <= until) {
            self.wire.push_back((seq, end, end + self.propagation, self.epoch));
            self.in_service = self
                .waiting
                .pop_front()
                .map(|(n, bytes)| (n, bytes, end, end + self.transmission(bytes)));
        }
        while let Some(&(seq, _, arrival, epoch)) = self.wire.front().filter(|p| p.2 <= until) {
            self.wire.pop_front();
            if epoch == self.epoch {
                self.history.arrivals.push((seq, arrival));
            }
        }
    }

    fn handle(&mut self, now: u64, seq: u32, event: Event, limit: Limit) {
        self.advance(now);
        match event {
            Event::Offer(_) if !self.up => self.history.offers.push(Offered::Dead),
            Event::Offer(bytes) => {
                let fits = match limit {
                    Limit::Unlimited => true,
                    Limit::AtMost(Amount::Packets(n)) => self.waiting.len() < n as usize,
                    Limit::AtMost(Amount::Bytes(n)) => {
                        let waiting = self.waiting.iter().map(|p| u64::from(p.1)).sum::<u64>();
                        waiting + u64::from(bytes) <= n
                    }
                };
                let offered = match self.in_service {
                    None => {
                        self.in_service = Some((seq, bytes, now, now + self.transmission(bytes)));
                        Offered::Accepted
                    }
                    Some(_) if fits => {
                        self.waiting.push_back((seq, bytes));
                        Offered::Accepted
                    }
                    Some(_) => Offered::Full,
                };
                self.history.offers.push(offered);
            }
            Event::Down => {
                let wire = self.wire.iter().filter(|p| p.3 == self.epoch).map(|p| p.0);
                self.history.lost.extend(wire);
                self.history.lost.extend(self.in_service.take().map(|p| p.0));
                self.history.lost.extend(self.waiting.drain(..).map(|p| p.0));
                self.epoch += 1;
                self.up = false;
            }
            Event::Up => self.up = true,
            Event::Wire { rate, propagation } => {
                let old = self.rate;
                (self.rate, self.propagation) = (rate, propagation);
                if let Some((seq, bytes, begin, end)) = self.in_service {
                    let (old, new) = (u128::from(old), u128::from(rate));
                    let rest = ((u128::from(end - now) * old + new / 2) / new) as u64;
                    // Rounding must make the rest neither longer than the whole nor the whole
                    // shorter: half a picosecond is many when the new rate is low.
                    let whole = self.transmission(bytes);
                    let rest = if begin == now { whole } else { rest.min(whole) };
                    self.in_service = Some((seq, bytes, begin, now + rest));
                }
                for packet in &mut self.wire {
                    packet.2 = (packet.1 + propagation).max(now);
                }
                self.advance(now);
            }
        }
    }
}

fn by_the_textbook(script: &[(u64, Event)], rate: u64, limit: Limit) -> Troubled {
    let (waiting, wire, history) = Default::default();
    let mut link = Textbook {
        rate,
        propagation: 1_000,
        up: true,
        epoch: 0,
        waiting,
        in_service: None,
        wire,
        history,
    };
    for (seq, &(now, event)) in script.iter().enumerate() {
        link.handle(now, seq as u32, event, limit);
    }
    link.advance(u64::MAX);
    link.history
}

fn by_the_port(script: &[(u64, Event)], rate: u64, limit: Limit) -> Troubled {
    let mut port = Port::new(Rate(rate), Time(1_000), limit);
    port.expect_faults(RandomStream::new(1, 0, "loss"));
    let mut history = Troubled::default();
    let mut due: Option<Time> = None;
    let take = |port: &mut Port, due: &mut Option<Time>, until: u64, arrivals: &mut Vec<_>| {
        while let Some(time) = due.filter(|time| time.0 <= until) {
            let (taken, next) = port.take();
            arrivals.push((taken.seq.number(), time.0));
            *due = next;
        }
    };
    for (seq, &(now, event)) in script.iter().enumerate() {
        take(&mut port, &mut due, now, &mut history.arrivals);
        match event {
            Event::Offer(bytes) => {
                history.offers.push(match port.offer(Time(now), packet(seq as u32, bytes)) {
                    PortOutcome::First(time) => {
                        due = Some(time);
                        Offered::Accepted
                    }
                    PortOutcome::Behind => Offered::Accepted,
                    PortOutcome::Dropped => Offered::Full,
                    PortOutcome::Lost => Offered::Dead,
                });
            }
            Event::Down => {
                history
                    .lost
                    .extend(port.go_down(Time(now)).iter().map(|packet| packet.seq.number()));
                due = None;
            }
            Event::Up => port.come_up(),
            Event::Wire { rate, propagation } => {
                due = port.retime(Time(now), Rate(rate), Time(propagation));
                take(&mut port, &mut due, now, &mut history.arrivals);
            }
        }
    }
    take(&mut port, &mut due, u64::MAX, &mut history.arrivals);
    let dead = history.offers.iter().filter(|offer| **offer == Offered::Dead).count();
    let counters = port.counters();
    assert_eq!(counters.lost as usize, history.lost.len() + dead);
    assert_eq!(counters.packets as usize, history.lost.len() + history.arrivals.len());
    assert_eq!(counters.drops as usize + counters.packets as usize + dead, history.offers.len());
    history
}

/// Returns scripts in which links fail, recover and change, at multiples of a quarter of a full
/// packet's transmission.
fn troubled_scripts() -> impl Strategy<Value = (Vec<(u64, Event)>, u64)> {
    let event = prop_oneof![
        20 => sizes().prop_map(Event::Offer),
        1 => Just(Event::Down),
        2 => Just(Event::Up),
        2 => (rates(), prop_oneof![Just(0), Just(1_000), 0..100_000_000u64])
            .prop_map(|(rate, propagation)| Event::Wire { rate, propagation }),
    ];
    let gap = prop_oneof![6 => Just(0u64), 4 => 0u64..6, 1 => 0u64..60];
    (prop::collection::vec((gap, event), 1..150), rates()).prop_map(|(steps, rate)| {
        let quarter = Rate(rate).transmission_time(1_502).0 / 4;
        let mut now = 0;
        let script = steps.into_iter().map(|(gap, event)| {
            // Changes at one instant count as one: the simulator applies them together.
            now += gap * quarter + u64::from(!matches!(event, Event::Offer(_)));
            (now, event)
        });
        (script.collect(), rate)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_link_that_fails_and_changes_equals_the_two_event_queue_packet_for_packet(
        (script, rate) in troubled_scripts(), limit in limits(),
    ) {
        // Two `Down`s in a row are one failure in the simulator.
        let mut up = true;
        let script: Vec<_> = script
            .into_iter()
            .filter(|(_, event)| match event {
                Event::Down => std::mem::replace(&mut up, false),
                Event::Up => !std::mem::replace(&mut up, true),
                _ => true,
            })
            .collect();
        prop_assert_eq!(by_the_port(&script, rate, limit), by_the_textbook(&script, rate, limit));
    }
}

#[test]
fn the_packet_in_service_keeps_what_has_left_when_the_rate_changes() {
    let mut port = Port::new(Rate(1_000_000_000), Time::ZERO, Limit::Unlimited);
    port.expect_faults(RandomStream::new(1, 0, "loss"));
    port.offer(Time::ZERO, packet(0, 1_500));
    port.offer(Time::ZERO, packet(1, 1_500));
    // 12 us at 1 Gbps: after a quarter, 9 us are left, which become 90 us at 100 Mbps.
    let first = port.retime(Time::from_us(3), Rate(100_000_000), Time::ZERO);
    assert_eq!(first, Some(Time::from_us(93)));
    assert_eq!(port.busy_until(), Time::from_us(93 + 120));
    assert_eq!(port.busy(Time::from_us(50)), Time::from_us(50));
}

#[test]
fn a_packet_that_begins_as_the_rate_changes_takes_its_whole_transmission_at_the_new_rate() {
    // 1,502 B take 143,853.4999984 ps at this rate; the part rounded off would be 42 ps less at 1
    // Gbps.
    let mut port = Port::new(Rate(83_529_424_033), Time::ZERO, Limit::Unlimited);
    port.expect_faults(RandomStream::new(1, 0, "loss"));
    port.offer(Time::ZERO, packet(0, 1_502));
    port.offer(Time(143_852), packet(1, 1_502));
    assert_eq!(port.take().1, Some(Time(2 * 143_853)));
    let changed = port.retime(Time(143_853), Rate(1_000_000_000), Time::ZERO);
    assert_eq!(changed, Some(Time(143_853) + Time::from_ns(12_016)));
}

#[test]
fn a_link_that_fails_loses_what_it_holds_and_what_it_is_offered() {
    let mut port = Port::new(Rate(1_000_000_000), Time::from_us(100), Limit::Unlimited);
    port.expect_faults(RandomStream::new(1, 0, "loss"));
    for seq in 0..5 {
        port.offer(Time::ZERO, packet(seq, 1_500));
    }
    let lost = port.go_down(Time::from_us(30));
    assert_eq!(lost.iter().map(|p| p.seq.number()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(port.offer(Time::from_us(40), packet(5, 1_500)), PortOutcome::Lost);
    assert_eq!(port.busy(Time::from_us(500)), Time::from_us(30));
    port.come_up();
    let offer = port.offer(Time::from_us(50), packet(6, 1_500));
    assert_eq!(offer, PortOutcome::First(Time::from_us(50 + 12 + 100)));
    assert_eq!(port.counters().lost, 6);
}

#[test]
fn a_lossy_link_corrupts_its_share_of_the_packets_and_delivers_them_in_their_time() {
    let mut port = Port::new(Rate(1_000_000_000), Time::ZERO, Limit::Unlimited);
    port.expect_faults(RandomStream::new(1, 0, "loss"));
    port.set_loss(0.1);
    for seq in 0..100_000 {
        port.offer(Time::ZERO, packet(seq, 125));
    }
    assert_eq!(port.busy_until(), Time::from_us(100_000));
    let corrupted = port.packets().filter(|packet| packet.flags.has(Flags::CORRUPTED)).count();
    // Five standard deviations of the binomial.
    assert!(corrupted.abs_diff(10_000) < 475, "{corrupted}");
}
