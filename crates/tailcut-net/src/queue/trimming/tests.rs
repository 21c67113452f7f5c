//! Scripts and random cases of a trimming queue.

use super::*;
use crate::queue::kind::script::{self, offer};
use proptest::prelude::*;

fn packet(seq: u32, wire_bytes: u16, flags: Flags) -> Packet {
    Packet { flags, ..script::packet(seq, seq, wire_bytes) }
}

fn data(seq: u32) -> Packet {
    packet(seq, 1_538, Flags::DATA | Flags::ACK)
}

fn control(seq: u32) -> Packet {
    packet(seq, 78, Flags::ACK | Flags::TO_SENDER)
}

/// Returns a port of a switch.
fn at(limit: &str) -> PortContext {
    let limit = limit.parse().expect("it is a limit");
    PortContext {
        number: 2,
        host: false,
        last_hop: false,
        limit,
        threshold: None,
        full_packet: 1_538,
        seed: 1,
    }
}

fn queue(limit: &str, spec: Trimming) -> TrimmingQueue {
    TrimmingQueue::new(&spec, &at(limit))
}

fn sent(queue: &mut TrimmingQueue) -> Vec<Packet> {
    std::iter::from_fn(|| queue.pop(Time::ZERO)).collect()
}

#[test]
fn a_full_queue_sends_the_header_of_a_packet_without_room() {
    let mut queue = queue("2packets", Trimming::default());
    assert!((0..3).all(|seq| offer(&mut queue, data(seq)).is_empty()));
    let sent = sent(&mut queue);
    let [header, first, second] = sent[..] else { panic!("{sent:?}") };
    assert!(header.is_trimmed() && header.wire_bytes == 84 && !header.flags.has(Flags::DATA));
    assert!(header.seq.number() > 0, "one of the last two");
    assert_eq!((first.seq.number(), second.seq.number() + header.seq.number()), (0, 3));
    assert!(!first.is_trimmed() && !second.is_trimmed());
}

#[test]
fn trims_the_arriving_packet_as_often_as_the_last_waiting_one() {
    let mut queue =
        queue("1packets", Trimming { header_limit: Some(Limit::Unlimited), ..Trimming::default() });
    offer(&mut queue, data(0));
    let mut arriving = 0;
    for seq in 1..=10_000 {
        offer(&mut queue, data(seq));
        let header = queue.headers.first().expect("one is trimmed");
        arriving += u32::from(header.seq.number() == seq);
    }
    // Four standard deviations.
    assert!((4_800..=5_200).contains(&arriving), "{arriving}");
}

#[test]
fn sends_ratio_headers_for_each_packet() {
    let mut queue = queue("8packets", Trimming { ratio: 3, ..Trimming::default() });
    (0..2).for_each(|seq| drop(offer(&mut queue, data(seq))));
    (10..18).for_each(|seq| drop(offer(&mut queue, control(seq))));
    let order: Vec<u32> = sent(&mut queue).iter().map(|packet| packet.seq.number()).collect();
    assert_eq!(order, [10, 11, 12, 0, 13, 14, 15, 1, 16, 17]);
}

#[test]
fn without_room_a_switch_returns_headers_and_drops_packets_without_data() {
    let header_limit = Some(Limit::AtMost(Amount::Packets(1)));
    let mut queue = queue("1packets", Trimming { header_limit, ..Trimming::default() });
    offer(&mut queue, data(0));
    assert_eq!(offer(&mut queue, control(1)), []);
    assert_eq!(offer(&mut queue, control(2)), [control(2)]);
    let mut gone = vec![];
    let waits = queue.offer(Time::ZERO, data(3), &mut gone);
    let back = if waits { data(0) } else { data(3) }.trimmed(84, false).returned();
    assert_eq!(gone, [back]);
    assert_eq!((queue.len(), queue.drops(), queue.longest()), (2, 1, 2));
    assert_eq!(queue.headers(), Some(Headers { returned: 1, dropped: 1 }));
    let header = data(4).trimmed(84, false);
    assert_eq!(offer(&mut queue, header), [header.returned()], "trimmed by a switch before");
    let back = header.returned();
    assert_eq!(offer(&mut queue, back), [back], "what goes back already is dropped");
    assert_eq!(queue.headers(), Some(Headers { returned: 2, dropped: 2 }));
}

#[test]
fn the_interface_of_a_host_drops_packets_without_room() {
    let mut queue =
        TrimmingQueue::new(&Trimming::default(), &PortContext { host: true, ..at("1packets") });
    offer(&mut queue, data(0));
    assert_eq!(offer(&mut queue, control(1)), []);
    let dropped = offer(&mut queue, data(2));
    assert!(dropped == [data(0)] || dropped == [data(2)], "{dropped:?}");
    assert_eq!(queue.headers(), Some(Headers { returned: 0, dropped: 1 }));
}

#[test]
fn the_default_header_limit_is_the_memory_of_full_packets() {
    let headers = |spec: Trimming, at: &PortContext| {
        let mut queue = TrimmingQueue::new(&spec, at);
        (0..).take_while(|seq| offer(&mut queue, control(*seq)).is_empty()).count()
    };
    let jumbo = PortContext { full_packet: 9_038, ..at("8packets") };
    assert_eq!(headers(Trimming::default(), &at("8packets")), 8 * 1_538 / 78);
    assert_eq!(headers(Trimming::default(), &jumbo), 8 * 9_038 / 78);
    assert_eq!(headers(Trimming::default(), &at("10KB")), 10_000 / 78);
    let header_limit = Some(Limit::AtMost(Amount::Packets(3)));
    assert_eq!(headers(Trimming { header_limit, ..Trimming::default() }, &jumbo), 3);
    let interface = PortContext { host: true, ..at("500packets") };
    assert_eq!(headers(Trimming::default(), &interface), 500);
}

#[test]
fn refuses_unusable_header_ratio_and_limit() {
    let check = |spec: Trimming| spec.check().map_err(|error| error.code);
    let plain = Trimming::default;
    assert_eq!(check(plain()), Ok(()));
    assert_eq!(check(Trimming { header: Bytes(1_500), ..plain() }), Err("trimming-header"));
    assert_eq!(check(Trimming { ratio: 0, ..plain() }), Err("trimming-ratio"));
    let header_limit = Some(Limit::AtMost(Amount::Bytes(83)));
    assert_eq!(check(Trimming { header_limit, ..plain() }), Err("trimming-limit"));
}

proptest! {
    /// Every packet is sent, whole or as a header, or dropped, exactly once; the queues keep
    /// their order and limits.
    #[test]
    fn nothing_is_lost_or_doubled(
        limit in prop_oneof![(1..6u32).prop_map(Amount::Packets), (1_600..6_000u64).prop_map(Amount::Bytes)],
        header_limit in prop_oneof![(1..4u32).prop_map(Amount::Packets), (84..300u64).prop_map(Amount::Bytes)],
        steps in prop::collection::vec((0..3u8, 85..1_538u16), 1..200),
    ) {
        let limit = Limit::AtMost(limit);
        let header_limit = Limit::AtMost(header_limit);
        let spec = Trimming { header_limit: Some(header_limit), ..Trimming::default() };
        let mut queue = TrimmingQueue::new(&spec, &PortContext { limit, ..at("1packets") });
        let (mut offered, mut ended, mut untouched) = (vec![], vec![], vec![]);
        for (number, (step, size)) in steps.into_iter().enumerate() {
            match step {
                0 => {
                    let popped = queue.pop(Time::ZERO);
                    ended.extend(popped.map(|packet| packet.seq.number()));
                    untouched.extend(popped.filter(|p| p.flags.has(Flags::DATA)).map(|p| p.seq.number()));
                }
                kind => {
                    let flags = if kind == 1 { Flags::DATA } else { Flags::ACK };
                    let arriving = packet(number as u32, size.min(if kind == 1 { 1_538 } else { 84 }), flags);
                    offered.push(arriving.seq.number());
                    ended.extend(offer(&mut queue, arriving).iter().map(|packet| packet.seq.number()));
                }
            }
            prop_assert!(fits(limit, queue.data.packets.len().saturating_sub(1), queue.data.bytes, 0));
            prop_assert!(fits(header_limit, queue.headers.packets.len().saturating_sub(1), queue.headers.bytes, 0));
        }
        for packet in sent(&mut queue) {
            ended.push(packet.seq.number());
            untouched.extend(packet.flags.has(Flags::DATA).then_some(packet.seq.number()));
        }
        prop_assert!(untouched.is_sorted());
        ended.sort_unstable();
        prop_assert_eq!(ended, offered);
    }
}
