//! An observer that accounts for every packet on every link.

use std::collections::{BTreeMap, VecDeque};

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Loss, Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::selective_red::BufferForm;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{HostId, NodeId, PortId};

/// The fields of a packet that stay the same on its path.
type Identity = (u32, u32, u16, u16, u16, u16, u16, u64);

/// Returns the identity of a packet, which no queue on its path changes.
fn identity(packet: &PacketView) -> Identity {
    let &PacketView { src, dst, sport, dport, flags, payload, wire_bytes, seq, .. } = packet;
    // Links and switches set these flags on a packet: marked, corrupted, rewritten.
    let on_the_way = Flags::CONGESTION_EXPERIENCED | Flags::CORRUPTED | Flags::REWRITTEN;
    let in_header = Flags::MARKED_BEFORE | Flags::LAST_HOP;
    let set = if flags.is_trimmed() { on_the_way | in_header } else { on_the_way };
    let sent = flags.0 & !set.0;
    // A switch may rewrite a scattered packet's port; its flow and subflow stay.
    let sport = if packet.data.is_some() { u16::from(packet.copy) } else { sport };
    // Other packets show their sender's state at the time of the event, not at that of sending.
    let counts = flags.has(Flags::DATA) || flags.is_trimmed() || flags.is_returned();
    let seq = if counts { seq } else { 0 };
    (src.0, dst.0, sport, dport, sent, payload, wire_bytes, seq)
}

/// Returns the identity of a trimmed packet before it was trimmed.
fn untrimmed(packet: &PacketView) -> Identity {
    let (src, dst, sport, dport, flags, _, _, seq) = identity(packet);
    let payload = (packet.flow_bytes - (seq - 1)).min(u64::from(packet.mss)) as u16;
    (src, dst, sport, dport, flags | Flags::DATA.0, payload, 78 + payload, seq)
}

struct Entry {
    identity: Identity,
    /// The beginning of its transmission.
    begins: Time,
    departs: Time,
    arrives: Time,
    bytes: u64,
}

struct LinkBook {
    from: NodeId,
    /// The switch inside a server that hands packets of other hosts over, if there is one.
    relay: Option<NodeId>,
    to: NodeId,
    rate: tailcut_engine::Rate,
    propagation: Time,
    limit: Limit,
    idle_from: Time,
    /// Packets accepted and not yet at the far end.
    on_it: VecDeque<Entry>,
    /// Packets in a queue that decides their order at departure; `None` if the order is that of
    /// arrival.
    scheduled: Option<Vec<(Identity, u64)>>,
}

/// Asserts on every event; `check` asserts on the totals.
pub struct Ledger {
    hosts: u32,
    links: Vec<LinkBook>,
    links_into: Vec<Vec<usize>>,
    drops_early: bool,
    /// Whether waiting packets may be trimmed, which shows only when they leave.
    trims: bool,
    /// The packet that a host has just handed to its interface.
    handed: Option<Identity>,
    /// Whether a switch returns a header: the next packet at a link is that header.
    turns: bool,
    counts: [u64; 4],
    /// The bytes of each connection that have arrived: start to end of each segment.
    arrived: BTreeMap<(u64, u8), BTreeMap<u64, u64>>,
    complete_at: BTreeMap<(u64, u8), Time>,
    sizes: BTreeMap<u64, u64>,
    /// The bytes of each piece, and the size from which flows are split.
    split: Option<(u64, u64)>,
}

impl Ledger {
    pub fn new(scenario: &Scenario) -> Ledger {
        let graph = &scenario.graph;
        let limit_of_queues = scenario.scheme.queue.limit();
        let schedules = |from: NodeId| match &scenario.scheme.queue {
            QueueSpec::Pfabric(queue) => queue.hosts || graph.switch(from).is_some(),
            QueueSpec::Drr(queue) => queue.hosts || graph.switch(from).is_some(),
            QueueSpec::Trimming(queue) => queue.hosts || graph.switch(from).is_some(),
            _ => scenario.switch.pfc.is_some(),
        };
        let mut links = vec![];
        let mut links_into = vec![vec![]; graph.nodes()];
        for link in &graph.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let switch_limit = link.queue_limit.unwrap_or(limit_of_queues);
                let switch_limit = match (&scenario.scheme.queue, switch_limit) {
                    (QueueSpec::SelectiveRed(queue), Limit::AtMost(amount))
                        if queue.form == BufferForm::TwoQueues =>
                    {
                        Limit::AtMost(match amount {
                            Amount::Packets(n) => Amount::Packets(2 * n),
                            Amount::Bytes(n) => Amount::Bytes(2 * n),
                        })
                    }
                    (_, limit) => limit,
                };
                let port = PortId(links.len() as u32);
                let relay = graph.relay(port).map(|switch| switch.node(graph.hosts));
                let limit = if graph.switch(from).is_none() {
                    scenario.host.nic_queue
                } else {
                    switch_limit
                };
                links_into[to.index()].push(links.len());
                links.push(LinkBook {
                    from,
                    relay,
                    to,
                    rate: link.rate,
                    propagation: link.propagation,
                    limit,
                    idle_from: Time::ZERO,
                    on_it: VecDeque::new(),
                    scheduled: schedules(from).then(Vec::new),
                });
            }
        }
        Ledger {
            hosts: graph.hosts,
            links,
            links_into,
            drops_early: matches!(
                scenario.scheme.queue,
                QueueSpec::Red(_) | QueueSpec::SelectiveRed(_)
            ) || scenario.switch.shared_buffer != Limit::Unlimited,
            trims: matches!(scenario.scheme.queue, QueueSpec::Trimming(_)),
            handed: None,
            turns: false,
            counts: [0; 4],
            arrived: BTreeMap::new(),
            complete_at: BTreeMap::new(),
            split: match &scenario.scheme.replicate {
                ReplicateSpec::Split(split) => Some((split.piece.0, split.threshold.0)),
                _ => None,
            },
            sizes: scenario.flows.iter().map(|flow| (flow.id, flow.bytes)).collect(),
        }
    }

    /// Handles a packet at `node`, which must be the next one on a link that leads there.
    fn arrive(&mut self, now: Time, node: NodeId, packet: &PacketView) {
        let identity = identity(packet);
        let link = self.links_into[node.index()].iter().copied().find(|&link| {
            let next = self.links[link].on_it.front();
            next.is_some_and(|next| next.arrives == now && next.identity == identity)
        });
        let link =
            link.unwrap_or_else(|| panic!("{packet:?} came to node {node} at {now} over no link"));
        self.links[link].on_it.pop_front();
    }

    /// Handles a packet at the near end of a link, whether accepted or not.
    fn offered(&mut self, now: Time, link: PortId, packet: &PacketView) {
        let LinkBook { from, relay, .. } = self.links[link.index()];
        if std::mem::take(&mut self.turns) {
            assert!(packet.flags.is_returned(), "{packet:?} comes before the header");
            return;
        }
        if let Some(switch) = relay.filter(|_| self.handed.is_none()) {
            self.arrive(now, switch, packet);
        } else if from.switch(self.hosts).is_none() {
            assert_eq!(
                self.handed.take(),
                Some(identity(packet)),
                "a host's link takes what the host sends"
            );
        } else {
            self.arrive(now, from, packet);
        }
    }

    /// Removes a packet from a scheduled queue, in which it must wait. Returns false if the link
    /// has no such queue.
    fn unqueue(&mut self, link: PortId, packet: &PacketView) -> bool {
        let Some(waiting) = &mut self.links[link.index()].scheduled else { return false };
        let mut at = waiting.iter().position(|(waits, _)| *waits == identity(packet));
        if at.is_none() && packet.flags.is_trimmed() {
            at = waiting.iter().position(|(waits, _)| *waits == untrimmed(packet));
        }
        waiting.remove(at.unwrap_or_else(|| panic!("{packet:?} does not wait at {link:?}")));
        true
    }

    /// Checks that the totals balance, and agree with the simulator's counters.
    pub fn check(&self, outcome: &Outcome) {
        let counters = &outcome.counters;
        let [sent, delivered, dropped, lost] = self.counts;
        assert_eq!(
            (sent, delivered, dropped, lost),
            (counters.sent, counters.delivered, counters.dropped, counters.lost_on_links)
        );
        let waiting = |link: &LinkBook| link.scheduled.as_ref().map_or(0, Vec::len);
        let in_flight: usize = self.links.iter().map(|link| link.on_it.len() + waiting(link)).sum();
        assert_eq!(
            sent,
            delivered + dropped + lost + in_flight as u64,
            "sent = delivered + dropped + lost + in flight"
        );
        assert_eq!(in_flight as u64, counters.in_flight);
        for link in &self.links {
            let late = link.on_it.iter().find(|entry| entry.arrives < counters.end);
            assert!(late.is_none(), "a packet was due at node {} before the end", link.to);
        }
        for record in &outcome.flows {
            let flow = record.flow;
            let complete = |copy: u8| {
                let spread = self.complete_at.get(&(flow.id, u8::MAX));
                self.complete_at.get(&(flow.id, copy)).or(spread).copied()
            };
            match record.winner {
                Some(winner) => {
                    assert_eq!(
                        complete(winner),
                        record.fct.map(|fct| flow.start + fct),
                        "{flow:?}"
                    );
                    let first = (0..record.copies).filter_map(complete).min();
                    assert_eq!(
                        complete(winner),
                        first,
                        "the copy that is complete first wins: {flow:?}"
                    );
                }
                None => {
                    assert_eq!((record.fct, record.fct_ack), (None, None));
                    assert!((0..16).all(|copy| complete(copy).is_none()), "{flow:?} is complete");
                }
            }
        }
    }
}

impl Observer for Ledger {
    fn host_sends(&mut self, _: Time, host: HostId, packet: &PacketView) {
        self.counts[0] += 1;
        assert_eq!(packet.src, host);
        assert_eq!(self.handed.replace(identity(packet)), None, "the last one reached the link");
    }

    fn host_receives(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.counts[1] += 1;
        assert_eq!(packet.dst, host);
        self.arrive(now, host.node(), packet);
        if packet.flags.has(Flags::DATA) {
            // The subflows of a multipath flow fill one stream.
            let connection =
                (packet.flow, if packet.data.is_some() { u8::MAX } else { packet.copy });
            let seq = packet.data.map_or(packet.seq, |position| 1 + position);
            let segments = self.arrived.entry(connection).or_default();
            // A piece's source port is its number.
            let before = match self.split {
                Some((piece, least)) if self.sizes[&packet.flow] > least => {
                    let first = packet.flow % 60_000;
                    piece * (u64::from(packet.sport) - 1_024 + 60_000 - first).rem_euclid(60_000)
                }
                _ => 0,
            };
            let seq = before + seq;
            segments.insert(seq, seq + u64::from(packet.payload));
            let mut end = 1;
            while let Some(&next) = segments.get(&end) {
                end = next;
            }
            let size = self.sizes[&packet.flow];
            assert!(end <= 1 + size, "no more bytes than the flow has");
            if end == 1 + size {
                self.complete_at.entry(connection).or_insert(now);
            }
        }
    }

    fn link_queues(&mut self, now: Time, link: PortId, packet: &PacketView) {
        self.offered(now, link, packet);
        let waiting = self.links[link.index()].scheduled.as_mut().expect("the queue is scheduled");
        waiting.push((identity(packet), u64::from(packet.wire_bytes)));
    }

    fn link_accepts(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        if !self.unqueue(link, packet) {
            self.offered(now, link, packet);
        }
        let book = &mut self.links[link.index()];
        if let Some(waiting) = book.scheduled.as_ref().filter(|_| !self.trims) {
            let (packets, bytes) = (waiting.len(), waiting.iter().map(|w| w.1).sum::<u64>());
            match book.limit {
                Limit::Unlimited => {}
                Limit::AtMost(Amount::Packets(limit)) => assert!(packets <= limit as usize),
                Limit::AtMost(Amount::Bytes(limit)) => assert!(bytes <= limit, "{link:?}"),
            }
        }
        let service = book.rate.transmission_time(u64::from(packet.wire_bytes));
        let begins = departs - service;
        assert!(begins >= book.idle_from.max(now), "{link:?} sends faster than its rate");
        book.idle_from = departs;
        let arrives = departs + book.propagation;
        let bytes = u64::from(packet.wire_bytes);
        let identity = identity(packet);
        book.on_it.push_back(Entry { identity, begins, departs, arrives, bytes });
        let waiting = || book.on_it.iter().filter(|entry| entry.begins > now);
        match book.limit {
            Limit::Unlimited => {}
            Limit::AtMost(Amount::Packets(limit)) => {
                assert!(waiting().count() <= limit as usize, "{link:?}")
            }
            Limit::AtMost(Amount::Bytes(limit)) => {
                assert!(waiting().map(|entry| entry.bytes).sum::<u64>() <= limit, "{link:?}");
            }
        }
    }

    fn dropped(&mut self, now: Time, link: PortId, packet: &PacketView) {
        self.counts[2] += 1;
        if self.unqueue(link, packet) {
            let book = &self.links[link.index()];
            let waiting = book.scheduled.iter().flatten();
            let (packets, bytes) = waiting.fold((0, 0), |(n, b), w| (n + 1, b + w.1));
            let bytes = bytes + u64::from(packet.wire_bytes);
            let full = match book.limit {
                Limit::Unlimited => false,
                Limit::AtMost(Amount::Packets(limit)) => packets >= limit,
                Limit::AtMost(Amount::Bytes(limit)) => bytes > limit,
            };
            assert!(full || self.trims, "{link:?} dropped a packet with room in its queue");
            return;
        }
        self.offered(now, link, packet);
        let book = &self.links[link.index()];
        // A packet that begins at this instant may still have waited when this one came
        // (`queue.ties`).
        let waiting = || book.on_it.iter().filter(|entry| entry.begins >= now);
        let full = match book.limit {
            Limit::Unlimited => false,
            Limit::AtMost(Amount::Packets(limit)) => waiting().count() >= limit as usize,
            Limit::AtMost(Amount::Bytes(limit)) => {
                waiting().map(|entry| entry.bytes).sum::<u64>() + u64::from(packet.wire_bytes)
                    > limit
            }
        };
        // Only random early detection drops before its queue is full, and only at switches.
        let early = self.drops_early && book.from.switch(self.hosts).is_some();
        assert!(full || early, "{link:?} dropped a packet with room in its queue");
    }

    fn returned(&mut self, _: Time, link: PortId, packet: &PacketView) {
        assert!(packet.flags.is_trimmed() && self.unqueue(link, packet));
        self.turns = true;
    }

    fn lost(&mut self, now: Time, link: PortId, loss: Loss, packet: &PacketView) {
        self.counts[3] += 1;
        if loss == Loss::DeadLink {
            if !self.unqueue(link, packet) {
                self.offered(now, link, packet);
            }
            return;
        }
        let book = &mut self.links[link.index()];
        if loss == Loss::UnderWay {
            book.idle_from = book.idle_from.min(now);
        }
        // Packets that wait in a scheduled queue are lost after those that have left it.
        let Some(first) = book.on_it.pop_front() else {
            assert!(self.unqueue(link, packet), "a link loses what it holds");
            return;
        };
        assert_eq!(first.identity, identity(packet), "in order");
        assert!(loss == Loss::UnderWay || first.arrives == now);
    }

    /// Follows the definition in the port's documentation, packet by packet.
    fn link_changes(&mut self, now: Time, link: PortId, rate: Rate, propagation: Time) {
        let book = &mut self.links[link.index()];
        let before = std::mem::replace(&mut book.rate, rate);
        let (old, new) = (u128::from(before.0), u128::from(rate.0));
        book.propagation = propagation;
        let mut free = None;
        for entry in &mut book.on_it {
            if entry.departs > now {
                let whole = rate.transmission_time(entry.bytes);
                entry.departs = match free {
                    // None of its bits has left: it takes its whole transmission time at the new
                    // rate.
                    None if entry.departs - now >= before.transmission_time(entry.bytes) => {
                        now + whole
                    }
                    None => {
                        let left = u128::from((entry.departs - now).0);
                        now + Time(((left * old + new / 2) / new) as u64).min(whole)
                    }
                    Some(free) => {
                        entry.begins = free;
                        free + whole
                    }
                };
                free = Some(entry.departs);
            }
            entry.arrives = (entry.departs + propagation).max(now);
        }
        book.idle_from = free.unwrap_or(book.idle_from);
    }
}
