//! pFabric's queue (Alizadeh et al., SIGCOMM 2013, section 4.1). Packets carry a priority: the
//! bytes that their flow still has to deliver. A full queue drops the packet with the most
//! remaining, the latest among equals. The transmitter takes the flow of the packet with the least
//! remaining and sends the packet of that flow that has waited longest, so that old packets of a
//! flow do not starve behind newer ones. Packets without data (SYNs, acknowledgements) carry no
//! priority and come first.
//!
//! The order is decided when the transmitter falls idle, so that ports with this queue need a
//! second event per packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::{
    Headers, Never, PacketScheduler, PortContext, PortQueue, QueueKind, Ties, TransportFeatures,
    check_limit, fits,
};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;

/// Parameters of pFabric's queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PfabricQueue {
    /// Most that may wait behind the packet in transmission, which is not counted (pFabric: 36 KB,
    /// about two bandwidth-delay products).
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Whether the hosts' interfaces are scheduled by priority too, within `host.nic_queue`.
    pub hosts: bool,
}

impl Default for PfabricQueue {
    fn default() -> Self {
        PfabricQueue {
            limit: Limit::AtMost(Amount::Bytes(36_000)),
            ties: Ties::default(),
            hosts: true,
        }
    }
}

impl QueueKind for PfabricQueue {
    fn check(&self) -> Result<(), SpecError> {
        check_limit("pfabric-limit", "limit", self.limit)
    }

    fn check_packets(&self, stamps: TransportFeatures) -> Result<(), SpecError> {
        if stamps.priorities {
            return Ok(());
        }
        let message =
            "a pfabric queue orders packets by the priority that only the pfabric transport stamps";
        Err(SpecError::new("pfabric-needs-priorities", "kind", message)
            .hint("write transport = { kind = \"pfabric\" } as well, or another queue"))
    }

    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some(("shared-buffer-pfabric", "a pfabric queue drops waiting packets by priority"))
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

impl PortQueue for PfabricQueue {
    type Admission = Never;
    type Schedule = PriorityQueue;

    fn admission(&self, _: &PortContext) -> Option<Never> {
        None
    }
    fn schedule(&self, at: &PortContext) -> Option<PriorityQueue> {
        (self.hosts || !at.host).then(|| PriorityQueue::new(at.limit))
    }
}

#[derive(Debug, Clone, Copy)]
struct QueuedPacket {
    priority: u32,
    packet: Packet,
}

/// The waiting packets of one port in order of arrival. Queues are short (the paper's point), so
/// that a scan of all packets is fastest.
#[derive(Debug, Clone)]
pub(crate) struct PriorityQueue {
    limit: Limit,
    waiting: Vec<QueuedPacket>,
    bytes: u64,
    drops: u64,
    longest: u32,
}

impl PriorityQueue {
    pub fn new(limit: Limit) -> PriorityQueue {
        PriorityQueue { limit, waiting: vec![], bytes: 0, drops: 0, longest: 0 }
    }

    /// Displaces worse packets until a packet of this priority and size fits. Returns false,
    /// without displacing any, if that would not be enough.
    fn make_room(&mut self, priority: u32, wire_bytes: u16, displaced: &mut Vec<Packet>) -> bool {
        while !fits(self.limit, self.waiting.len(), self.bytes, wire_bytes) {
            let worse = |w: &&QueuedPacket| w.priority > priority;
            let packets = self.waiting.iter().filter(worse).count();
            let bytes: u64 =
                self.waiting.iter().filter(worse).map(|w| u64::from(w.packet.wire_bytes)).sum();
            self.drops += 1;
            if !fits(self.limit, self.waiting.len() - packets, self.bytes - bytes, wire_bytes) {
                return false;
            }
            // `max_by_key` returns the last maximum: the latest among equals.
            let worst = (0..self.waiting.len()).max_by_key(|&at| self.waiting[at].priority);
            let worst = worst.expect("a queue without room is not empty");
            displaced.push(self.remove(worst));
        }
        true
    }

    fn remove(&mut self, at: usize) -> Packet {
        let packet = self.waiting.remove(at).packet;
        self.bytes -= u64::from(packet.wire_bytes);
        packet
    }
}

impl PacketScheduler for PriorityQueue {
    fn offer(&mut self, _: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        // Packets without data carry no priority and come first.
        let priority = packet.number().unwrap_or(0);
        if !self.make_room(priority, packet.wire_bytes, displaced) {
            return false;
        }
        self.bytes += u64::from(packet.wire_bytes);
        self.waiting.push(QueuedPacket { priority, packet });
        self.longest = self.longest.max(self.waiting.len() as u32);
        true
    }

    fn pop(&mut self, _: Time) -> Option<Packet> {
        let best = self.waiting.iter().min_by_key(|w| w.priority)?.packet.key;
        let at = self.waiting.iter().position(|w| w.packet.key == best)?;
        Some(self.remove(at))
    }

    #[inline]
    fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    #[inline]
    fn first(&self) -> Option<&Packet> {
        self.waiting.first().map(|w| &w.packet)
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.waiting.iter().for_each(|w| see(&w.packet));
    }

    fn drops(&self) -> u64 {
        self.drops
    }

    fn headers(&self) -> Option<Headers> {
        None
    }

    fn longest(&self) -> u32 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{NO_OPTIONS, inline_number};
    use crate::queue::kind::script::{self, packet};
    use proptest::prelude::*;

    fn limited(limit: u32) -> PriorityQueue {
        PriorityQueue::new(Limit::AtMost(Amount::Packets(limit)))
    }

    /// Offers a packet of this priority and returns the packets that are dropped.
    fn offer(queue: &mut PriorityQueue, priority: u32, packet: Packet) -> Vec<Packet> {
        let packet = Packet { options: inline_number(priority), ..packet };
        let dropped = script::offer(queue, packet);
        dropped.iter().map(|packet| Packet { options: NO_OPTIONS, ..*packet }).collect()
    }

    fn pop(queue: &mut PriorityQueue) -> Option<Packet> {
        queue.pop(Time::ZERO).map(|packet| Packet { options: NO_OPTIONS, ..packet })
    }

    fn packets(queue: &PriorityQueue) -> Vec<Packet> {
        let mut seen = vec![];
        queue.visit(&mut |packet| seen.push(Packet { options: NO_OPTIONS, ..*packet }));
        seen
    }

    #[test]
    fn the_flow_with_the_least_remaining_is_served_its_earliest_packet_first() {
        let mut queue = limited(10);
        offer(&mut queue, 500, packet(1, 0, 100));
        offer(&mut queue, 300, packet(2, 0, 100));
        offer(&mut queue, 100, packet(1, 1, 100));
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue))
            .map(|p| (p.connection.0, p.seq.number()))
            .collect();
        assert_eq!(order, [(1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn a_full_queue_drops_the_latest_of_the_worst() {
        let mut queue = limited(3);
        offer(&mut queue, 900, packet(1, 0, 100));
        offer(&mut queue, 900, packet(1, 1, 100));
        offer(&mut queue, 200, packet(2, 0, 100));
        assert_eq!(offer(&mut queue, 300, packet(3, 0, 100)), [packet(1, 1, 100)]);
    }

    #[test]
    fn drops_an_arrival_that_is_as_bad_as_the_worst() {
        let mut queue = limited(1);
        offer(&mut queue, 900, packet(1, 0, 100));
        assert_eq!(offer(&mut queue, 900, packet(2, 0, 100)), [packet(2, 0, 100)]);
    }

    #[test]
    fn drops_no_waiting_packet_if_the_arrival_would_still_not_fit() {
        let mut queue = PriorityQueue::new(Limit::AtMost(Amount::Bytes(1_000)));
        offer(&mut queue, 900, packet(1, 0, 100));
        offer(&mut queue, 100, packet(2, 0, 900));
        assert_eq!(offer(&mut queue, 500, packet(3, 0, 200)), [packet(3, 0, 200)]);
        assert_eq!(queue.len(), 2);
    }

    proptest! {
        /// Against a queue that sorts all it holds on every step, as the paper words it.
        #[test]
        fn equals_a_queue_that_sorts_all_packets_on_every_step(
            limit in prop_oneof![(1..8u32).prop_map(Amount::Packets), (300..2_000u64).prop_map(Amount::Bytes)],
            steps in prop::collection::vec((any::<bool>(), 0..4u32, 0..6u32, 60..300u16), 1..80),
        ) {
            let limit = Limit::AtMost(limit);
            let mut queue = PriorityQueue::new(limit);
            // Order of arrival, priority, packet.
            let mut reference: Vec<(u32, u32, Packet)> = vec![];
            for (number, (take, flow, priority, size)) in steps.into_iter().enumerate() {
                let number = number as u32;
                if take {
                    let mut sorted = reference.clone();
                    sorted.sort_by_key(|r| (r.1, r.0));
                    let flow = sorted.first().map(|r| r.2.connection);
                    let expected = reference.iter().filter(|r| Some(r.2.connection) == flow).min_by_key(|r| r.0).map(|r| r.2);
                    reference.retain(|r| Some(r.2) != expected);
                    prop_assert_eq!(pop(&mut queue), expected);
                } else {
                    let arriving = packet(flow, number, size);
                    let mut all = reference.clone();
                    all.push((number, priority, arriving));
                    let full = |all: &[(u32, u32, Packet)]| match limit {
                        Limit::AtMost(Amount::Packets(n)) => all.len() > n as usize,
                        Limit::AtMost(Amount::Bytes(n)) => all.iter().map(|r| u64::from(r.2.wire_bytes)).sum::<u64>() > n,
                        Limit::Unlimited => false,
                    };
                    while full(&all) {
                        let worst = *all.iter().max_by_key(|r| (r.1, r.0)).expect("it is full");
                        all.retain(|r| *r != worst);
                    }
                    // A packet that is dropped itself displaces none.
                    if all.iter().any(|r| r.2 == arriving) {
                        reference = all;
                    }
                    offer(&mut queue, priority, arriving);
                }
                let expected: Vec<_> = reference.iter().map(|r| r.2).collect();
                prop_assert_eq!(packets(&queue), expected);
            }
        }
    }
}
