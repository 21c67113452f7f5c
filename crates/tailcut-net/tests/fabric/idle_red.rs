//! Selective RED's average decays from the departure of the last marked packet, whatever changes on
//! the link meanwhile.

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::fabric::{Fabric, FabricSpec, OfferOutcome};
use tailcut_net::faults::Incident;
use tailcut_net::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, Packet, SeqField};
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::red::Red;
use tailcut_net::queue::selective_red::{BufferForm, SelectiveRed};
use tailcut_net::topology::HostId;
use tailcut_net::topology::star::Star;

const LIMIT: Limit = Limit::AtMost(Amount::Packets(200));
const WEIGHT: f64 = 0.02;

/// With every packet marked the discipline is RED.
fn queues() -> [QueueSpec; 3] {
    let selective =
        |form| SelectiveRed { weight: WEIGHT, limit: LIMIT, form, ..Default::default() };
    [
        QueueSpec::Red(Red { weight: WEIGHT, limit: LIMIT, ..Red::default() }),
        QueueSpec::SelectiveRed(selective(BufferForm::OneQueue)),
        QueueSpec::SelectiveRed(selective(BufferForm::TwoQueues)),
    ]
}

/// Returns a packet of a flow that has lost paths.
fn marked(seq: u32) -> Packet {
    let key = FlowKey::new(HostId(0), HostId(2), 1_024, 5_000);
    let (connection, options) = (ConnectionId(0), NO_OPTIONS);
    let flags = Flags::DATA | Flags::LOST_PATHS;
    Packet { key, connection, seq: SeqField::new(seq), options, wire_bytes: 1_538, flags }
}

/// Returns how many of 20 marked packets are accepted at `again`, after 120 at once and an
/// incident.
fn accepted(queue: QueueSpec, rate: Rate, incident: Incident, again: Time) -> u32 {
    let graph = Star { hosts: 3, rate, ..Star::default() }.build().expect("hosts are enough");
    let mut parts = FabricSpec { queue, ..FabricSpec::with_defaults(&graph) };
    parts.faults.incidents = vec![incident];
    let mut fabric = Fabric::new(&parts).expect("it is connected");
    let port = fabric.host_port(HostId(2)).reversed();
    let offer = |fabric: &mut Fabric, now: Time, seq: u32| {
        u32::from(fabric.offer(now, port, None, marked(seq)) != OfferOutcome::Dropped)
    };
    for seq in 0..120 {
        offer(&mut fabric, Time(1), seq);
    }
    while let Some(at) = fabric.next_incident() {
        fabric.apply_incidents(at, &graph).expect("routes stay small");
    }
    (0..20).map(|seq| offer(&mut fabric, again, 1_000 + seq)).sum()
}

#[test]
fn a_failed_link_is_idle_from_its_failure() {
    let (link, until) = ("s0>h2".to_owned(), Some(Time::from_ms(2)));
    let down = Incident::LinkDown { link, at: Time::from_ms(1), until };
    let taken =
        queues().map(|queue| accepted(queue, Rate(10_000_000), down.clone(), Time::from_ms(62)));
    assert_eq!(taken, [20; 3]);
}

#[test]
fn a_slower_link_is_not_idle_while_marked_packets_wait() {
    let slower = Incident::Rate {
        link: "s0>h2".into(),
        one_way: true,
        rate: Rate(10_000_000),
        at: Time::from_us(1),
        until: None,
    };
    let taken = queues()
        .map(|queue| accepted(queue, Rate(10_000_000_000), slower.clone(), Time::from_ms(20)));
    assert_eq!(taken, [0; 3]);
}

#[test]
fn a_faster_link_is_idle_from_when_it_has_sent_them() {
    let faster = Incident::Rate {
        link: "s0>h2".into(),
        one_way: true,
        rate: Rate(10_000_000_000),
        at: Time::from_us(1),
        until: None,
    };
    let taken =
        queues().map(|queue| accepted(queue, Rate(10_000_000), faster.clone(), Time::from_ms(30)));
    assert_eq!(taken, [20; 3]);
}
