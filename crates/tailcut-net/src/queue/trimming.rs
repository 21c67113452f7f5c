//! Trimmed packets (Handley et al., SIGCOMM 2017, section 3.1, after "cut payload" of Cheng et al.,
//! NSDI 2014): a packet that finds the queue full loses its payload instead of being dropped, so
//! that its header reports to the receiver what is missing.
//!
//! Packets with data wait in one short queue; headers and other packets without data wait in
//! another. Weighted round robin serves them, with `ratio` headers per packet. A full queue trims
//! either the arriving packet or the last one that waits, by the toss of a coin, which keeps flows
//! from falling into step. If the header queue is full too, the header of a data packet returns to
//! its sender; any other packet without data is dropped. A host's own interface drops both.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Time};

use super::{
    Headers, Never, PacketScheduler, PortContext, PortQueue, QueueKind, Ties, TransportFeatures,
    check_limit, fits,
};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::{Flags, Packet};

/// Parameters of a queue that trims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trimming {
    /// Most packets with data that may wait behind the one in transmission, which is not counted
    /// (NDP: 8).
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Most headers and other packets without data that may wait. By default as much memory as
    /// `limit` full packets, as in NDP: 146 headers beside 8 packets of 1,538 B.
    pub header_limit: Option<Limit>,
    /// Bytes of a trimmed packet on the wire: NDP's 64 bytes, preamble and gap.
    pub header: Bytes,
    /// Headers sent for each packet with data while both wait.
    pub ratio: u32,
    /// Whether the hosts' interfaces favour packets without data in the same way, within
    /// `host.nic_queue`.
    pub hosts: bool,
}

impl Default for Trimming {
    fn default() -> Self {
        Trimming {
            limit: Limit::AtMost(Amount::Packets(8)),
            ties: Ties::default(),
            header_limit: None,
            header: Bytes(84),
            ratio: 10,
            hosts: true,
        }
    }
}

/// Allowed header sizes on the wire in bytes: at least the headers of a datagram, and less than
/// what is worth trimming.
const HEADERS: std::ops::RangeInclusive<u64> = 40..=512;
/// The largest `ratio`: with more, packets would starve.
const MOST: u32 = 1_000;

impl QueueKind for Trimming {
    fn check(&self) -> Result<(), SpecError> {
        if !HEADERS.contains(&self.header.0) {
            let message = format!(
                "header = \"{}\": must be from {} to {} bytes",
                self.header,
                HEADERS.start(),
                HEADERS.end()
            );
            return Err(SpecError::new("trimming-header", "header", message)
                .hint("the smallest Ethernet frame with preamble and gap has \"84B\""));
        }
        if self.ratio == 0 || self.ratio > MOST {
            let message =
                format!("ratio = {}: must be from 1 to {MOST} headers for each packet", self.ratio);
            return Err(SpecError::new("trimming-ratio", "ratio", message).hint("NDP sends 10"));
        }
        check_limit("trimming-limit", "limit", self.limit)?;
        let Some(limit) = self.header_limit else { return Ok(()) };
        check_limit("trimming-limit", "header_limit", limit)?;
        if matches!(limit, Limit::AtMost(Amount::Bytes(bytes)) if bytes < self.header.0) {
            let message = format!(
                "header_limit = \"{limit}\": must hold at least one header of {}",
                self.header
            );
            return Err(SpecError::new("trimming-limit", "header_limit", message)
                .hint("write for example \"12KB\""));
        }
        Ok(())
    }

    fn check_packets(&self, stamps: TransportFeatures) -> Result<(), SpecError> {
        if stamps.hears_headers {
            return Ok(());
        }
        let message = "a trimming queue forwards the headers of packets without room, which only the ndp transport understands";
        Err(SpecError::new("trimming-needs-ndp", "kind", message)
            .hint("write transport = { kind = \"ndp\" } as well, or another queue"))
    }

    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some(("shared-buffer-trimming", "a trimming queue trims waiting packets"))
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn ties(&self) -> Ties {
        self.ties
    }
    fn schedules_departures(&self) -> bool {
        true
    }
}

impl PortQueue for Trimming {
    type Admission = Never;
    type Schedule = Box<TrimmingQueue>;

    fn admission(&self, _: &PortContext) -> Option<Never> {
        None
    }
    fn schedule(&self, at: &PortContext) -> Option<Box<TrimmingQueue>> {
        (self.hosts || !at.host).then(|| Box::new(TrimmingQueue::new(self, at)))
    }
}

impl Trimming {
    /// Returns the limit of packets without data at a port. In the interface of a host it is the
    /// limit of packets with data.
    fn headers_at(&self, at: &PortContext) -> Limit {
        match (self.header_limit, at.limit) {
            (_, limit) if at.host => limit,
            (Some(limit), _) => limit,
            (None, Limit::AtMost(Amount::Packets(packets))) => {
                Limit::AtMost(Amount::Bytes(u64::from(packets) * at.full_packet))
            }
            (None, limit) => limit,
        }
    }
}

/// Packets that wait in the order of their arrival.
#[derive(Debug, Clone)]
struct LimitedFifo {
    limit: Limit,
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl LimitedFifo {
    fn new(limit: Limit) -> LimitedFifo {
        LimitedFifo { limit, packets: VecDeque::new(), bytes: 0 }
    }

    fn fits(&self, more: u16) -> bool {
        fits(self.limit, self.packets.len(), self.bytes, more)
    }

    fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.wire_bytes);
        self.packets.push_back(packet);
    }

    fn first(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    fn last(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }
}

/// The waiting packets of one port.
#[derive(Debug, Clone)]
pub(crate) struct TrimmingQueue {
    data: LimitedFifo,
    headers: LimitedFifo,
    header: u16,
    ratio: u32,
    /// Headers sent since the last packet with data, while one waited.
    turn: u32,
    stream: RandomStream,
    /// Whether headers of data packets that have no room return to their senders.
    returns: bool,
    without_room: Headers,
    drops: u64,
    longest: u32,
}

impl TrimmingQueue {
    fn new(spec: &Trimming, at: &PortContext) -> TrimmingQueue {
        let stream = RandomStream::new(at.seed, u64::from(at.number), "trim");
        TrimmingQueue {
            data: LimitedFifo::new(at.limit),
            headers: LimitedFifo::new(spec.headers_at(at)),
            header: spec.header.0 as u16,
            ratio: spec.ratio,
            turn: 0,
            stream,
            returns: !at.host,
            without_room: Headers::default(),
            drops: 0,
            longest: 0,
        }
    }

    /// Queues a packet without data if there is room for it; returns whether there was.
    fn push_header(&mut self, packet: Packet) -> bool {
        let fits = self.headers.fits(packet.wire_bytes);
        if fits {
            self.headers.push(packet);
        }
        fits
    }

    /// Returns a header without room to its sender if its packet was trimmed, here or before.
    /// Returns whether it was.
    fn turn_back(&mut self, header: Packet, displaced: &mut Vec<Packet>) -> bool {
        let goes_back = self.returns && header.is_trimmed();
        if goes_back {
            self.without_room.returned += 1;
            displaced.push(header.returned());
        }
        goes_back
    }

    fn drop_header(&mut self) {
        self.without_room.dropped += 1;
        self.drops += 1;
    }

    /// Chooses which data packet makes way, by the toss of a coin: the arriving one or the last
    /// that waits. Returns that packet, and queues the other.
    fn chosen(&mut self, arriving: Packet) -> Packet {
        if self.stream.below(2) == 0 {
            return arriving;
        }
        let Some(last) = self.data.last() else { return arriving };
        match self.data.fits(arriving.wire_bytes) {
            true => {
                self.data.push(arriving);
                last
            }
            false => {
                // The arriving packet is larger than the last one was.
                self.data.push(last);
                arriving
            }
        }
    }
}

impl PacketScheduler for TrimmingQueue {
    fn offer(&mut self, _: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        let mut waits = true;
        if !packet.flags.has(Flags::DATA) {
            waits = self.push_header(packet);
            if !waits && !self.turn_back(packet, displaced) {
                self.drop_header();
            }
        } else if self.data.fits(packet.wire_bytes) {
            self.data.push(packet);
        } else {
            let chosen = self.chosen(packet);
            let header = chosen.trimmed(self.header);
            if !self.push_header(header) {
                waits = chosen != packet;
                if !self.turn_back(header, displaced) {
                    self.drop_header();
                    displaced.extend(waits.then_some(chosen));
                }
            }
        }
        self.longest = self.longest.max(self.len());
        waits
    }

    fn pop(&mut self, _: Time) -> Option<Packet> {
        if self.data.packets.is_empty() {
            return self.headers.first();
        }
        if self.turn < self.ratio
            && let Some(header) = self.headers.first()
        {
            self.turn += 1;
            return Some(header);
        }
        self.turn = 0;
        self.data.first()
    }

    #[inline]
    fn len(&self) -> u32 {
        (self.data.packets.len() + self.headers.packets.len()) as u32
    }

    fn first(&self) -> Option<&Packet> {
        self.headers.packets.front().or_else(|| self.data.packets.front())
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.headers.packets.iter().chain(&self.data.packets).for_each(see);
    }

    fn drops(&self) -> u64 {
        self.drops
    }

    fn headers(&self) -> Option<Headers> {
        Some(self.without_room)
    }

    fn longest(&self) -> u32 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
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
        PortContext { number: 2, host: false, limit, threshold: None, full_packet: 1_538, seed: 1 }
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
        let mut queue = queue(
            "1packets",
            Trimming { header_limit: Some(Limit::Unlimited), ..Trimming::default() },
        );
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
        let back = if waits { data(0) } else { data(3) }.trimmed(84).returned();
        assert_eq!(gone, [back]);
        assert_eq!((queue.len(), queue.drops(), queue.longest()), (2, 1, 2));
        assert_eq!(queue.headers(), Some(Headers { returned: 1, dropped: 1 }));
        let header = data(4).trimmed(84);
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
}
