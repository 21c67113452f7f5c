//! A fabric at work without a connection: packets go in at hosts and come out at hosts, by a list
//! of what is due.

use std::collections::BTreeMap;

use tailcut_engine::{Bytes, Rate};

use super::*;
use crate::amount::{Amount, Limit};
use crate::balance::BalanceSpec;
use crate::faults::Incident;
use crate::packet::{ConnectionId, FlowKey, NO_OPTIONS, SeqField, inline_number};
use crate::queue::QueueSpec;
use crate::queue::drop_tail::DropTail;
use crate::queue::pfabric::PfabricQueue;
use crate::switch::SwitchSpec;
use crate::switch::pfc::Pfc;
use crate::topology::Graph;
use crate::topology::fat_tree::FatTree;
use crate::topology::star::Star;

/// The outcome of a packet: its tag and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    At(u32, Time),
    Dropped,
    Lost,
}

/// Drives a fabric with what stands for real frames: a tag, and nothing behind it.
struct Driver {
    fabric: Fabric,
    graph: Graph,
    /// By time, kind and port.
    due: BTreeMap<(Time, Kind, PortId), ()>,
    fates: Vec<(u32, Fate)>,
}

/// In the order of one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Arrival,
    Incident,
    Idle,
    Frame,
}

impl Driver {
    fn new(graph: &Graph, change: impl FnOnce(&mut FabricSpec<'_>)) -> Driver {
        let mut parts = FabricSpec::with_defaults(graph);
        change(&mut parts);
        let fabric = Fabric::new(&parts).expect("the parts fit");
        let due = fabric.next_incident().map(|at| ((at, Kind::Incident, PortId(0)), ()));
        Driver { due: due.into_iter().collect(), fabric, graph: graph.clone(), fates: vec![] }
    }

    /// A host sends at some time.
    fn send(&mut self, now: Time, packet: Packet) {
        self.run(now);
        let port = self.fabric.host_port(packet.key.src());
        let offered = self.fabric.offer(now, port, None, packet);
        self.follow(port, packet, offered);
        self.expect_frames();
    }

    fn expect_frames(&mut self) {
        while let Some((port, at)) = self.fabric.poll_pause_frame() {
            self.put_off(Some(at), Kind::Frame, port);
        }
    }

    fn follow(&mut self, port: PortId, packet: Packet, offered: OfferOutcome) {
        match offered {
            OfferOutcome::AcceptedFirst(at) => self.expect(at, Kind::Arrival, port),
            OfferOutcome::AcceptedBehind => {}
            OfferOutcome::Queued(at) => {
                while let Some(packet) = self.fabric.displaced() {
                    self.fates.push((packet.connection.0, Fate::Dropped));
                }
                if let Some(at) = at {
                    self.expect(at, Kind::Idle, port);
                }
            }
            OfferOutcome::Returned => unreachable!("no queue here trims"),
            OfferOutcome::Dropped => self.fates.push((packet.connection.0, Fate::Dropped)),
            OfferOutcome::Lost => self.fates.push((packet.connection.0, Fate::Lost)),
        }
    }

    fn expect(&mut self, at: Time, kind: Kind, port: PortId) {
        let again = self.due.keys().any(|&(_, k, p)| (k, p) == (kind, port));
        assert!(!again, "{kind:?} of {port:?} was due already");
        self.due.insert((at, kind, port), ());
    }

    fn put_off(&mut self, at: Option<Time>, kind: Kind, port: PortId) {
        self.due.retain(|&(_, k, p), ()| (k, p) != (kind, port));
        if let Some(at) = at {
            self.expect(at, kind, port);
        }
    }

    /// All that is due before `end`.
    fn run(&mut self, end: Time) {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 < end) {
            let (now, kind, port) = *entry.key();
            entry.remove();
            match kind {
                Kind::Arrival => self.arrive(now, port),
                Kind::Idle => {
                    let Some(taken) = self.fabric.on_transmitter_idle(now, port) else {
                        assert!(self.fabric.has_flow_control(), "something waits");
                        continue;
                    };
                    self.follow(port, taken.packet, taken.offered);
                    if let Some(at) = taken.idle {
                        self.expect(at, Kind::Idle, port);
                    }
                }
                Kind::Incident => self.incident(now),
                Kind::Frame => {
                    let PauseOutcome { idle, next } = self.fabric.on_pause_frame(now, port);
                    for (at, kind) in [(idle, Kind::Idle), (next, Kind::Frame)] {
                        if let Some(at) = at {
                            self.expect(at, kind, port);
                        }
                    }
                }
            }
            self.expect_frames();
        }
    }

    fn arrive(&mut self, now: Time, port: PortId) {
        let (mut packet, next) = self.fabric.take_arrived(port);
        if let Some(at) = next {
            self.expect(at, Kind::Arrival, port);
        }
        match self.fabric.forward(now, port, &mut packet) {
            ForwardOutcome::Host(host) => {
                self.fates.push((packet.connection.0, Fate::At(host.0, now)))
            }
            ForwardOutcome::Lost => self.fates.push((packet.connection.0, Fate::Lost)),
            ForwardOutcome::Switch { egress, .. } => {
                let offered = self.fabric.offer(now, egress, Some(port), packet);
                self.follow(egress, packet, offered);
            }
        }
    }

    fn incident(&mut self, now: Time) {
        for consequence in self.fabric.apply_incidents(now, &self.graph).expect("routes stay small")
        {
            match consequence {
                Consequence::Lost { packet, .. } => {
                    self.fates.push((packet.connection.0, Fate::Lost))
                }
                Consequence::Arrives { port, at } => self.put_off(at, Kind::Arrival, port),
                Consequence::Idle { port, at } => self.put_off(at, Kind::Idle, port),
                Consequence::Changed { .. } | Consequence::Rerouted => {}
            }
        }
        if let Some(at) = self.fabric.next_incident() {
            self.expect(at, Kind::Incident, PortId(0));
        }
    }

    /// The fates of all packets, when nothing is due any more.
    fn fates(mut self) -> Vec<(u32, Fate)> {
        self.run(Time::NEVER);
        assert_eq!(self.fabric.packets().count(), 0, "no packet is forgotten");
        self.fates
    }
}

fn packet(tag: u32, src: HostId, dst: HostId) -> Packet {
    let key = FlowKey::new(src, dst, 1_024 + tag as u16, 5_000);
    let (options, flags) = (NO_OPTIONS, Flags(0));
    Packet {
        key,
        connection: ConnectionId(tag),
        seq: SeqField::new(0),
        options,
        wire_bytes: 1_250,
        flags,
    }
}

fn with_priority(tag: u32, src: HostId, priority: u32) -> Packet {
    Packet { options: inline_number(priority), ..packet(tag, src, HostId(4)) }
}

/// 1,250 bytes take 10 us on each link of 1 Gbps; wires of 1 us.
fn star() -> Graph {
    let (rate, propagation) = (Rate(1_000_000_000), Time::from_us(1));
    Star { hosts: 5, rate, propagation }.build().expect("hosts are enough")
}

#[test]
fn a_packet_takes_its_time_on_every_link() {
    let mut driver = Driver::new(&star(), |_| {});
    driver.send(Time::ZERO, packet(3, HostId(0), HostId(1)));
    assert_eq!(driver.fates(), [(3, Fate::At(1, Time::from_us(22)))]);
}

#[test]
fn packets_that_meet_at_a_port_follow_each_other() {
    let mut driver = Driver::new(&star(), |_| {});
    for host in 0..4 {
        driver.send(Time::ZERO, packet(host, HostId(host), HostId(4)));
    }
    let fates: Vec<_> =
        (0..4).map(|n| (n, Fate::At(4, Time::from_us(22 + 10 * u64::from(n))))).collect();
    assert_eq!(driver.fates(), fates);
}

#[test]
fn a_packet_that_finds_its_port_full_is_given_back() {
    let mut driver = Driver::new(&star(), |parts| {
        let limit = Limit::AtMost(Amount::Packets(1));
        parts.queue = QueueSpec::DropTail(DropTail { limit, ..DropTail::default() });
    });
    for host in 0..4 {
        driver.send(Time::ZERO, packet(host, HostId(host), HostId(4)));
    }
    let dropped: Vec<_> = driver.fates().into_iter().filter(|(_, f)| *f == Fate::Dropped).collect();
    assert_eq!(dropped, [(2, Fate::Dropped), (3, Fate::Dropped)]);
}

#[test]
fn the_shared_buffer_limits_queues_too() {
    let mut driver = Driver::new(&star(), |parts| {
        let shared_buffer = Limit::AtMost(Amount::Bytes(2_600));
        parts.switch = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
    });
    for host in 0..4 {
        driver.send(Time::ZERO, packet(host, HostId(host), HostId(4)));
    }
    let dropped = driver.fates().iter().filter(|(_, fate)| *fate == Fate::Dropped).count();
    assert_eq!(dropped, 2);
}

/// RED's parameters in the tests below: an average of 10 drops nothing, one of 12 everything.
fn early(kind: &str, limit: &str, form: &str) -> QueueSpec {
    let parameters = format!(
        r#"{{ "kind": "{kind}", "limit": "{limit}", "min": 10, "max": 12, "weight": 0.1{form} }}"#
    );
    serde_json::from_str(&parameters).expect("it is a queue")
}

/// Offers a switch port `overflows` packets more than fit, lets two leave, and returns what becomes
/// of the next one.
fn offered_after_overflows(
    queue: &QueueSpec,
    shared_buffer: Limit,
    overflows: u32,
) -> OfferOutcome {
    let graph = star();
    let mut parts = FabricSpec { queue: queue.clone(), ..FabricSpec::with_defaults(&graph) };
    parts.switch = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
    let mut fabric = Fabric::new(&parts).expect("the parts fit");
    let egress = fabric.host_port(HostId(4)).reversed();
    let mut offer = |at| {
        let packet = Packet { flags: Flags::LOST_PATHS, ..packet(0, HostId(0), HostId(4)) };
        fabric.offer(at, egress, None, packet)
    };
    // The first is on the link, fifteen wait.
    let accepted = (0..16).filter(|_| offer(Time::ZERO) != OfferOutcome::Dropped).count();
    assert_eq!(accepted, 16, "there is room for them");
    for _ in 0..overflows {
        assert_eq!(offer(Time::ZERO), OfferOutcome::Dropped, "there is no room");
    }
    offer(Time::from_us(21))
}

#[test]
fn packets_that_find_no_room_raise_the_average_of_early_detection() {
    // Half of what ports share is one port's: a sixteenth packet does not fit.
    let shared = Limit::AtMost(Amount::Bytes(29 * 1_250));
    let two_queues = r#", "form": "two-queues""#;
    for (kind, limit, form, shared_buffer) in [
        ("red", "15packets", "", Limit::Unlimited),
        ("red", "100packets", "", shared),
        ("selective-red", "15packets", "", Limit::Unlimited),
        ("selective-red", "100packets", "", shared),
        ("selective-red", "15packets", two_queues, Limit::Unlimited),
    ] {
        let queue = early(kind, limit, form);
        let after = |overflows| offered_after_overflows(&queue, shared_buffer, overflows);
        assert_eq!(
            after(0),
            OfferOutcome::AcceptedBehind,
            "{kind} of {limit}{form}: the average is low"
        );
        assert_eq!(after(50), OfferOutcome::Dropped, "{kind} of {limit}{form}: it is beyond max");
    }
}

#[test]
fn a_scheduled_queue_sends_the_best_first_and_gives_back_the_worst() {
    let mut driver = Driver::new(&star(), |parts| {
        let limit = Limit::AtMost(Amount::Packets(1));
        parts.queue =
            QueueSpec::Pfabric(PfabricQueue { limit, hosts: false, ..PfabricQueue::default() });
    });
    assert!(driver.fabric.has_scheduled_queues());
    for (host, priority) in [(0, 900), (1, 500), (2, 100), (3, 700)] {
        driver.send(Time::ZERO, with_priority(host, HostId(host), priority));
    }
    // The first is on the link when the second comes to wait, and makes way for the third; the
    // fourth is worse.
    let expected = [
        (1, Fate::Dropped),
        (3, Fate::Dropped),
        (0, Fate::At(4, Time::from_us(22))),
        (2, Fate::At(4, Time::from_us(32))),
    ];
    assert_eq!(driver.fates(), expected);
}

/// Two hosts send to a third: whoever has a packet waiting is paused until none does.
fn pausing(parts: &mut FabricSpec<'_>) {
    parts.switch.pfc = Some(Pfc { xoff: Bytes(1_000), xon: Bytes(0) });
}

#[test]
fn a_paused_host_ends_its_packet_and_goes_on_when_it_is_told_to() {
    let mut driver = Driver::new(&star(), pausing);
    for (tag, host) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 1)] {
        driver.send(Time::ZERO, packet(tag, HostId(host), HostId(4)));
    }
    // At 11 us the first packet of host 1 has to wait. The frame is back at 12.672 us, 84 bytes and
    // a wire later, while the second is being sent. At 41 us none waits any more, and the third
    // leaves 1.672 us after.
    let times = [22_000, 32_000, 42_000, 52_000, 64_672].map(Time::from_ns);
    let fates: Vec<_> = [0, 1, 2, 3, 4].into_iter().zip(times.map(|at| Fate::At(4, at))).collect();
    assert_eq!(driver.fates(), fates);
}

#[test]
fn a_link_that_fails_forgets_that_it_is_paused() {
    let mut driver = Driver::new(&star(), |parts| {
        pausing(parts);
        parts.faults.incidents = vec![Incident::LinkDown {
            link: "h1>s0".into(),
            at: Time::from_us(15),
            until: Some(Time::from_us(16)),
        }];
    });
    for (tag, host) in [(0, 0), (1, 1), (2, 1), (3, 1)] {
        driver.send(Time::ZERO, packet(tag, HostId(host), HostId(4)));
    }
    driver.send(Time::from_us(17), packet(4, HostId(1), HostId(4)));
    let fates = driver.fates();
    let lost = fates.iter().filter(|(_, fate)| *fate == Fate::Lost).map(|(tag, _)| *tag);
    assert_eq!(lost.collect::<Vec<_>>(), [2, 3]);
    // It leaves at once, at 17 us, though the switch has asked for a pause before.
    assert!(fates.contains(&(4, Fate::At(4, Time::from_us(42)))), "{fates:?}");
}

#[test]
fn a_link_that_goes_down_gives_back_what_it_held_and_takes_nothing_more() {
    for scheduled in [false, true] {
        let mut driver = Driver::new(&star(), |parts| {
            if scheduled {
                parts.queue = QueueSpec::Pfabric(PfabricQueue::default());
            }
            parts.faults.incidents = vec![Incident::LinkDown {
                link: "s0>h4".into(),
                at: Time::from_us(15),
                until: Some(Time::from_us(40)),
            }];
        });
        for host in 0..3 {
            driver.send(Time::ZERO, packet(host, HostId(host), HostId(4)));
        }
        driver.send(Time::from_us(16), packet(3, HostId(3), HostId(4)));
        driver.send(Time::from_us(50), packet(4, HostId(3), HostId(4)));
        let lost = [0, 1, 2, 3].map(|tag| (tag, Fate::Lost));
        let fates = driver.fates();
        assert_eq!(
            (&fates[..4], &fates[4..]),
            (&lost[..], &[(4, Fate::At(4, Time::from_us(72)))][..])
        );
    }
}

#[test]
fn a_link_that_slows_down_moves_what_is_due() {
    for scheduled in [false, true] {
        let mut driver = Driver::new(&star(), |parts| {
            if scheduled {
                parts.queue = QueueSpec::Pfabric(PfabricQueue::default());
            }
            parts.faults.incidents = vec![Incident::Rate {
                link: "s0>h4".into(),
                one_way: true,
                rate: Rate(500_000_000),
                at: Time::from_us(16),
                until: None,
            }];
        });
        for host in 0..2 {
            driver.send(Time::ZERO, packet(host, HostId(host), HostId(4)));
        }
        // Half of the first has left by then; the other half takes twice its time.
        let expected = [(0, Time::from_us(27)), (1, Time::from_us(47))];
        assert_eq!(driver.fates(), expected.map(|(tag, at)| (tag, Fate::At(4, at))));
    }
}

#[test]
fn routes_avoid_what_is_known_to_be_down() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let send = |at: u64| {
        let mut driver = Driver::new(&graph, |parts| {
            let link = "s0>s8".into();
            parts.faults.incidents = vec![Incident::LinkDown { link, at: Time(1), until: None }];
        });
        for tag in 0..16 {
            driver.send(Time::from_ms(at), packet(tag, HostId(0), HostId(15)));
        }
        driver.fates().iter().filter(|(_, fate)| *fate == Fate::Lost).count()
    };
    // 10 ms after the failure every switch has learned of it.
    let (unknown, known) = (send(5), send(11));
    assert!(unknown > 0 && known == 0, "{unknown} and {known} lost");
}

#[test]
fn the_same_packets_meet_the_same_fate() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let run = || {
        let mut driver = Driver::new(&graph, |parts| {
            parts.balance = BalanceSpec::Spray(crate::balance::spray::Spray {});
            parts.queue = QueueSpec::DropTail(DropTail {
                limit: Limit::AtMost(Amount::Packets(2)),
                ..DropTail::default()
            });
        });
        for tag in 0..200 {
            driver.send(
                Time(u64::from(tag / 8) * 4_000_000),
                packet(tag, HostId(tag % 12), HostId(12 + tag % 4)),
            );
        }
        driver.fates()
    };
    assert_eq!(run(), run());
}
