//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): each flow has a queue of its own,
//! and the queues send in turn. Each turn grants a quantum of bytes; what a packet was too large
//! for is kept for the next turn. So flows with packets of any size share the link equally.
//!
//! A full port drops the last packet of the longest queue (the paper's buffer stealing, after
//! McKenney). A flow is a five-tuple; the paper hashes flows into a fixed number of queues, here
//! each has its own.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::{
    Headers, Never, PacketScheduler, PortContext, PortQueue, QueueKind, Ties, check_limit, fits,
};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;

/// Parameters of deficit round robin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Drr {
    /// Most that may wait in all queues of a port together, behind the packet in transmission,
    /// which is not counted.
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Bytes that a flow may send in its turn. The paper wants at least a full packet, so that
    /// every turn sends one.
    pub quantum: Bytes,
    /// Whether the hosts' interfaces are scheduled too, within `host.nic_queue`.
    pub hosts: bool,
}

impl Default for Drr {
    fn default() -> Self {
        let limit = Limit::AtMost(Amount::Packets(100));
        Drr { limit, ties: Ties::default(), quantum: Bytes(1_538), hosts: false }
    }
}

/// The least quantum: smaller ones would take many rounds for one packet.
const LEAST_QUANTUM: u64 = 64;

impl QueueKind for Drr {
    fn check(&self) -> Result<(), SpecError> {
        if self.quantum.0 < LEAST_QUANTUM {
            let message =
                format!("quantum = \"{}\": must be at least {LEAST_QUANTUM}B", self.quantum);
            return Err(SpecError::new("drr-quantum", "quantum", message)
                .hint("write a full packet, such as \"1538B\""));
        }
        check_limit("drr-limit", "limit", self.limit)
    }

    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some(("shared-buffer-drr", "deficit round robin drops waiting packets for others"))
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

impl PortQueue for Drr {
    type Admission = Never;
    type Schedule = Box<DrrQueue>;

    fn admission(&self, _: &PortContext) -> Option<Never> {
        None
    }
    fn schedule(&self, at: &PortContext) -> Option<Box<DrrQueue>> {
        (self.hosts || !at.host).then(|| Box::new(DrrQueue::new(at.limit, self.quantum.0)))
    }
}

/// The waiting packets of one flow.
#[derive(Debug, Clone, Default)]
struct FlowQueue {
    packets: VecDeque<Packet>,
    bytes: u64,
    /// Bytes that the flow may still send in this turn.
    deficit: u64,
}

/// The packets that remain of a flow's queue while packets are taken from its end.
struct Remaining<'a> {
    packets: std::collections::vec_deque::Iter<'a, Packet>,
    bytes: u64,
}

impl<'a> Remaining<'a> {
    /// Begins with all packets of `queue`.
    fn of(queue: &'a FlowQueue) -> Remaining<'a> {
        Remaining { packets: queue.packets.iter(), bytes: queue.bytes }
    }

    /// Removes the last packet and returns its bytes.
    fn pop(&mut self) -> u64 {
        let size = self.packets.next_back().map_or(0, |packet| u64::from(packet.wire_bytes));
        self.bytes -= size;
        size
    }
}

/// All waiting packets of one port.
#[derive(Debug, Clone)]
pub(crate) struct DrrQueue {
    limit: Limit,
    quantum: u64,
    /// Queues of the flows that have packets waiting, by five-tuple.
    queues: BTreeMap<u64, FlowQueue>,
    /// The same flows in the order of their turns.
    turns: VecDeque<u64>,
    /// Whether the first flow has received its quantum for this turn.
    granted: bool,
    packets: u32,
    bytes: u64,
    drops: u64,
    longest: u32,
}

impl DrrQueue {
    fn new(limit: Limit, quantum: u64) -> DrrQueue {
        DrrQueue {
            limit,
            quantum,
            queues: BTreeMap::new(),
            turns: VecDeque::new(),
            granted: false,
            packets: 0,
            bytes: 0,
            drops: 0,
            longest: 0,
        }
    }

    /// Returns the flows that lose their last packets to `arriving`, in order, one entry per
    /// packet. `None` if the arriving packet's own flow would have the longest queue before there
    /// is room: then it is dropped, and no other packet is.
    fn victims(&self, arriving: &Packet) -> Option<Vec<u64>> {
        let (mut packets, mut bytes) = (self.packets as usize, self.bytes);
        let mut victims = vec![];
        let mut left: BTreeMap<u64, Remaining<'_>> = BTreeMap::new();
        while !fits(self.limit, packets, bytes, arriving.wire_bytes) {
            let flow = self.longest_queue(arriving, &left)?;
            let whole = || Remaining::of(self.queues.get(&flow).expect("it is the longest queue"));
            let size = left.entry(flow).or_insert_with(whole).pop();
            (packets, bytes) = (packets - 1, bytes - size);
            victims.push(flow);
        }
        Some(victims)
    }

    /// Returns the flow with the most bytes waiting, the arriving packet counted; `None` if that is
    /// the arriving packet's flow. Among equals it prefers other flows, and of those the one whose
    /// turn is last. `left` has what remains of the queues that have lost packets.
    fn longest_queue(&self, arriving: &Packet, left: &BTreeMap<u64, Remaining<'_>>) -> Option<u64> {
        let own = arriving.key.0;
        let waits = |flow: u64| match left.get(&flow) {
            Some(remaining) => remaining.bytes,
            None => self.queues.get(&flow).map_or(0, |queue| queue.bytes),
        };
        let mut longest = (waits(own) + u64::from(arriving.wire_bytes), None);
        for &flow in self.turns.iter().filter(|&&flow| flow != own) {
            if waits(flow) >= longest.0 {
                longest = (waits(flow), Some(flow));
            }
        }
        longest.1
    }

    /// Removes and returns the last packet of a flow.
    fn steal(&mut self, flow: u64) -> Packet {
        let queue = self.queues.get_mut(&flow).expect("it is the longest queue");
        let packet = queue.packets.pop_back().expect("a queue is not empty");
        self.took(flow, &packet);
        packet
    }

    /// Accounts for a packet that has left the queue of its flow.
    fn took(&mut self, flow: u64, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_bytes);
        let queue = self.queues.get_mut(&flow).expect("the packet was in it");
        queue.bytes -= u64::from(packet.wire_bytes);
        if queue.packets.is_empty() {
            // An idle flow keeps no deficit (section 3 of the paper).
            self.queues.remove(&flow);
            let at = self.turns.iter().position(|&other| other == flow).expect("it has a turn");
            self.turns.remove(at);
            self.granted &= at != 0;
        }
    }
}

impl PacketScheduler for DrrQueue {
    fn offer(&mut self, _: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        if !fits(self.limit, self.packets as usize, self.bytes, packet.wire_bytes) {
            let Some(victims) = self.victims(&packet) else {
                self.drops += 1;
                return false;
            };
            self.drops += victims.len() as u64;
            displaced.extend(victims.into_iter().map(|flow| self.steal(flow)));
        }
        let queue = self.queues.entry(packet.key.0).or_default();
        if queue.packets.is_empty() {
            self.turns.push_back(packet.key.0);
        }
        queue.packets.push_back(packet);
        queue.bytes += u64::from(packet.wire_bytes);
        self.bytes += u64::from(packet.wire_bytes);
        self.packets += 1;
        self.longest = self.longest.max(self.packets);
        true
    }

    fn pop(&mut self, _: Time) -> Option<Packet> {
        loop {
            let flow = *self.turns.front()?;
            let queue = self.queues.get_mut(&flow).expect("whoever has a turn waits");
            if !self.granted {
                queue.deficit += self.quantum;
                self.granted = true;
            }
            let size = queue.packets.front().map_or(0, |packet| u64::from(packet.wire_bytes));
            if size <= queue.deficit {
                queue.deficit -= size;
                let packet = queue.packets.pop_front()?;
                self.took(flow, &packet);
                return Some(packet);
            }
            self.turns.rotate_left(1);
            self.granted = false;
        }
    }

    #[inline]
    fn len(&self) -> u32 {
        self.packets
    }

    fn first(&self) -> Option<&Packet> {
        self.queues.get(self.turns.front()?)?.packets.front()
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.queues.values().flat_map(|queue| &queue.packets).for_each(see);
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
    use crate::packet::ConnectionId;
    use crate::queue::kind::script::{offer, packet};
    use proptest::prelude::*;

    fn queues(limit: &str) -> DrrQueue {
        DrrQueue::new(limit.parse().expect("it is a limit"), 1_538)
    }

    /// Returns which flows send, in order, with the number of each packet.
    fn order(queues: &mut DrrQueue) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| queues.pop(Time::ZERO))
            .map(|p| (p.connection.0, p.seq.number()))
            .collect()
    }

    #[test]
    fn flows_send_in_turn_each_in_its_order() {
        let mut queue = queues("unlimited");
        for seq in 0..3 {
            offer(&mut queue, packet(1, seq, 1_538));
        }
        offer(&mut queue, packet(2, 0, 1_538));
        assert_eq!(order(&mut queue), [(1, 0), (2, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn small_packets_of_a_flow_share_one_turn() {
        let mut queue = queues("unlimited");
        for seq in 0..3 {
            offer(&mut queue, packet(1, seq, 700));
            offer(&mut queue, packet(2, seq, 1_538));
        }
        assert_eq!(order(&mut queue), [(1, 0), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2)]);
    }

    #[test]
    fn carries_an_unused_deficit_to_the_next_round() {
        let mut queue = DrrQueue::new(Limit::Unlimited, 1_000);
        for seq in 0..2 {
            offer(&mut queue, packet(1, seq, 1_500));
            offer(&mut queue, packet(2, seq, 1_000));
        }
        assert_eq!(order(&mut queue), [(2, 0), (1, 0), (2, 1), (1, 1)]);
    }

    #[test]
    fn a_full_port_drops_the_last_packet_of_the_longest_queue() {
        let mut queue = queues("3packets");
        offer(&mut queue, packet(1, 0, 100));
        offer(&mut queue, packet(1, 1, 100));
        offer(&mut queue, packet(2, 0, 100));
        assert_eq!(offer(&mut queue, packet(3, 0, 100)), [packet(1, 1, 100)]);
        assert_eq!(order(&mut queue), [(1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn drops_an_arrival_that_makes_its_own_queue_the_longest() {
        let mut queue = queues("3packets");
        offer(&mut queue, packet(1, 0, 100));
        offer(&mut queue, packet(1, 1, 100));
        offer(&mut queue, packet(2, 0, 100));
        assert_eq!(offer(&mut queue, packet(1, 2, 100)), [packet(1, 2, 100)]);
        assert_eq!((queue.len(), queue.drops(), queue.longest()), (3, 1, 3));
    }

    #[test]
    fn a_queue_emptied_by_drops_loses_its_turn() {
        let mut queue = queues("1000B");
        offer(&mut queue, packet(1, 0, 1_000));
        assert_eq!(offer(&mut queue, packet(2, 0, 100)), [packet(1, 0, 1_000)]);
        assert_eq!(order(&mut queue), [(2, 0)]);
    }

    #[test]
    fn drops_no_waiting_packet_for_an_arrival_that_is_dropped() {
        let mut queue = queues("4700B");
        offer(&mut queue, packet(1, 0, 1_538));
        for seq in 0..37 {
            offer(&mut queue, packet(2, seq, 84));
        }
        assert_eq!(offer(&mut queue, packet(1, 1, 1_538)), [packet(1, 1, 1_538)]);
        assert_eq!((queue.len(), queue.drops()), (38, 1));
    }

    #[test]
    fn a_large_packet_displaces_several_small_ones() {
        let mut queue = queues("1000B");
        for seq in 0..4 {
            offer(&mut queue, packet(1, seq, 150));
            offer(&mut queue, packet(2, seq, 100));
        }
        let lost = [packet(1, 3, 150), packet(1, 2, 150), packet(2, 3, 100)];
        assert_eq!(offer(&mut queue, packet(3, 0, 400)), lost);
    }

    #[test]
    fn refuses_a_quantum_below_64_bytes() {
        let spec = Drr { quantum: Bytes(63), ..Drr::default() };
        assert_eq!(spec.check().map_err(|error| error.code), Err("drr-quantum"));
        assert_eq!(Drr::default().check(), Ok(()));
    }

    proptest! {
        /// Lemma 2 of the paper: while two flows wait, neither gets ahead by more than a quantum
        /// and two packets.
        #[test]
        fn backlogged_flows_share_equally(sizes in prop::collection::vec(64..1_538u16, 2..6), quantum in 64..3_000u64) {
            let mut queue = DrrQueue::new(Limit::Unlimited, quantum);
            for seq in 0..200 {
                for (flow, &size) in sizes.iter().enumerate() {
                    offer(&mut queue, packet(flow as u32, seq, size));
                }
            }
            let mut sent = vec![0u64; sizes.len()];
            while queue.queues.len() == sizes.len() {
                let packet = queue.pop(Time::ZERO).expect("all wait");
                sent[packet.connection.index()] += u64::from(packet.wire_bytes);
                let apart = sent.iter().max().unwrap() - sent.iter().min().unwrap();
                prop_assert!(apart <= quantum + 2 * 1_538, "{sent:?}");
            }
        }

        /// Every packet is sent or dropped, once, and those of a flow are sent in their order.
        #[test]
        fn nothing_is_lost_doubled_or_overtaken_within_a_flow(
            limit in prop_oneof![(1..8u32).prop_map(Amount::Packets), (1_600..4_000u64).prop_map(Amount::Bytes)],
            steps in prop::collection::vec((any::<bool>(), 0..4u32, 64..1_538u16), 1..120),
        ) {
            let mut queue = DrrQueue::new(Limit::AtMost(limit), 1_538);
            let (mut offered, mut dropped, mut sent) = (vec![], vec![], vec![]);
            for (number, (take, flow, size)) in steps.into_iter().enumerate() {
                if take {
                    sent.extend(queue.pop(Time::ZERO));
                } else {
                    let arriving = packet(flow, number as u32, size);
                    offered.push(arriving);
                    dropped.extend(offer(&mut queue, arriving));
                }
                let mut seen = 0;
                queue.visit(&mut |_| seen += 1);
                prop_assert_eq!(seen, queue.len());
                prop_assert!(fits(Limit::AtMost(limit), queue.len() as usize - usize::from(seen > 0), 0, 0));
            }
            sent.extend(std::iter::from_fn(|| queue.pop(Time::ZERO)));
            prop_assert_eq!(queue.drops(), dropped.len() as u64);
            for flow in 0..4 {
                let of = |packets: &[Packet]| packets.iter().filter(|p| p.connection == ConnectionId(flow)).map(|p| p.seq.number()).collect::<Vec<_>>();
                prop_assert!(of(&sent).is_sorted());
                let mut all = [of(&sent), of(&dropped)].concat();
                all.sort_unstable();
                prop_assert_eq!(all, of(&offered));
            }
        }
    }
}
