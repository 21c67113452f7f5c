//! Estimates, feedback and choices of leaves, on two racks and two spines.

use super::*;
use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, SeqField};
use crate::topology::leaf_spine::LeafSpine;
use crate::topology::{Routes, SwitchId};

/// Links of 1 Gbps: 8 us for 1,000 bytes.
struct Gigabit;
impl PortQueues for Gigabit {
    fn last_use(&self, _: PortId) -> Time {
        Time::ZERO
    }
    fn queued(&self, _: PortId) -> Time {
        Time::ZERO
    }
    fn transmission(&self, _: PortId, bytes: u16) -> Time {
        Time::from_ns(8 * u64::from(bytes))
    }
}

/// Two racks of two hosts, two spines: hosts 0 and 1 are attached to switch 0, hosts 2 and 3 to
/// switch 1.
struct Fabric {
    graph: Graph,
    routes: Routes,
    leaves: CongaState,
}

fn fabric() -> Fabric {
    let shape = LeafSpine { racks: 2, hosts_per_rack: 2, spines: 2, ..LeafSpine::default() };
    let graph = shape.build().expect("it is small");
    let routes = Routes::new(&graph).expect("it is connected");
    let leaves = Conga::default().state(Layout { graph: &graph, routes: &routes, seed: 3 });
    Fabric { graph, routes, leaves }
}

impl Fabric {
    /// Sends a packet and its overlay header through the fabric; returns which of two spines it
    /// takes.
    fn send(&mut self, now: Time, src: u32, dst: u32, source_port: u16) -> u32 {
        let key = FlowKey::new(HostId(src), HostId(dst), source_port, 5_000);
        let (options, flags, wire_bytes) = (NO_OPTIONS, Flags::DATA, 1_000);
        let connection = ConnectionId(0);
        let mut packet =
            Packet { key, connection, seq: SeqField::new(0), options, wire_bytes, flags };
        let (mut ingress, mut stamp) = (self.routes.host_port(key.src()), OverlayHeader::default());
        let mut taken = 0;
        while let Some(switch) = self.graph.switch(self.graph.far_end(ingress)) {
            let ports = self.routes.candidates(switch, key.dst());
            let choices = ports.len() as u32;
            let queues = &Gigabit;
            let fork = PickContext { now, switch, ingress, choices, ports, queues };
            let choice = if choices > 1 { self.leaves.pick(fork, &mut packet) } else { 0 };
            taken += choice;
            let egress = ports[choice as usize];
            let hop = PassContext { now, switch, ingress, egress, queues };
            self.leaves.pass(hop, &packet, &mut stamp);
            ingress = egress;
        }
        taken
    }

    fn uplink(&self, spine: u32) -> PortId {
        self.routes.candidates(SwitchId(0), HostId(2))[spine as usize]
    }
}

#[test]
fn a_rate_estimate_is_the_rate_times_tau() {
    let mut fabric = fabric();
    let port = fabric.uplink(0);
    // 1,000 bytes each 16 us are half of 1 Gbps: 10 kB of the 20 kB that the link could carry in
    // 160 us.
    for step in 0..200 {
        let periods = fabric.leaves.periods(Time::from_us(16 * step));
        *fabric.leaves.sent(periods, port) += 1_000.0;
    }
    let bytes = fabric.leaves.places.links[port.index()].estimate.bytes;
    assert!((9_000.0..11_000.0).contains(&bytes), "{bytes}");
    let mut congestion = |now| {
        let periods = fabric.leaves.periods(now);
        fabric.leaves.congestion(periods, port, &Gigabit)
    };
    let busy = congestion(Time::from_us(16 * 199));
    assert!((3..=4).contains(&busy), "{busy} of 8");
    assert_eq!(congestion(Time::from_ms(60)), 0);
}

#[test]
fn a_flowlet_keeps_its_path_despite_congestion() {
    let mut fabric = fabric();
    let way = fabric.send(Time::ZERO, 0, 2, 1_024);
    assert!(
        (1..100).all(|step| fabric.send(Time::from_us(8 * step), 0, 2, 1_024) == way),
        "gaps of 8 us are no gaps"
    );
}

#[test]
fn a_new_flowlet_takes_the_uplink_that_carries_less() {
    let mut fabric = fabric();
    let busy = fabric.send(Time::ZERO, 0, 2, 1_024);
    for step in 1..100 {
        fabric.send(Time::from_us(8 * step), 0, 2, 1_024);
    }
    for source_port in 2_000..2_010 {
        assert_eq!(fabric.send(Time::from_us(800), 1, 3, source_port), 1 - busy);
    }
}

#[test]
fn a_new_flowlet_keeps_its_path_if_none_is_better() {
    let mut fabric = fabric();
    let way = fabric.send(Time::ZERO, 0, 2, 1_024);
    assert!((1..50).all(|ms| fabric.send(Time::from_ms(ms), 0, 2, 1_024) == way));
}

/// The link from a spine to the leaf is invisible to the other leaf.
#[test]
fn a_leaf_learns_of_remote_congestion_from_packets_in_the_other_direction() {
    let mut fabric = fabric();
    let spine = fabric.routes.candidates(SwitchId(2), HostId(2))[0];
    let now = Time::from_us(100);
    let periods = fabric.leaves.periods(now);
    *fabric.leaves.sent(periods, spine) = 40_000.0;
    let ways = |fabric: &mut Fabric, ports: std::ops::Range<u16>| {
        ports.map(|port| fabric.send(now, 0, 2, port)).sum::<u32>()
    };
    let blind = ways(&mut fabric, 1_024..1_032);
    assert!((1..=7).contains(&blind), "its own links are level: {blind} of 8");
    // Packets in the other direction report the first spine and the second.
    for port in 3_000..3_004 {
        fabric.send(now, 2, 0, port);
    }
    assert_eq!(ways(&mut fabric, 4_000..4_008), 8, "none takes the first");
}

#[test]
fn measures_that_are_not_refreshed_age_to_zero() {
    let mut fabric = fabric();
    let pair = fabric.leaves.pair(0, 1);
    fabric.leaves.to[pair][0] = Measure { value: 7, fresh: false, at: Time::ZERO };
    let left = [0, 9, 10, 20, 30].map(|ms| {
        let measure = fabric.leaves.to[pair][0];
        measure.aged(Time::from_ms(ms), fabric.leaves.spec.age)
    });
    assert_eq!(left, [7, 7, 3, 1, 0]);
}

/// The other leaf knows an old measure, and packets from there arrive all the time.
#[test]
fn repeated_feedback_does_not_rejuvenate_an_old_measure() {
    let mut fabric = fabric();
    let (here, there) = (fabric.leaves.pair(0, 1), fabric.leaves.pair(1, 0));
    fabric.leaves.from[there][0] = Measure { value: 7, fresh: true, at: Time::from_ms(1) };
    fabric.leaves.turns[there].news = 1;
    let told = [2, 9, 12, 23, 34, 45].map(|ms| {
        fabric.send(Time::from_ms(ms), 2, 0, 3_000);
        fabric.leaves.to[here][0].value
    });
    assert_eq!(told, [7, 7, 3, 1, 0, 0]);
}

#[test]
fn refuses_conga_parameters_out_of_range() {
    let wrong = [
        Conga { entries: 0, ..Conga::default() },
        Conga { bits: 9, ..Conga::default() },
        Conga { decay: 1.0, ..Conga::default() },
        Conga { tau: Time::ZERO, ..Conga::default() },
        Conga { age: Time::ZERO, ..Conga::default() },
    ];
    assert!(wrong.iter().all(|spec| spec.check().is_err()));
    assert_eq!(Conga::default().check(), Ok(()));
}
