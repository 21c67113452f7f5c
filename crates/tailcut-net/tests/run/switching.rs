//! MMPTCP from its first phase to its second: the reasons for a switch, and the repair of a hole
//! that the scattering subflow leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{Bytes, Time};
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Loss, Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{HostId, PortId, Routes, SwitchId};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::mmptcp::{MmptcpSpec, SwitchTrigger};
use tailcut_net::transport::tcp::{Sender, TcpSpec};
use tailcut_net::transport::{ConnectionState, TransportSpec};

use crate::run::multipath::{fat_tree, with};
use crate::run::support::{flow, run_observed};

/// Events of the scattering subflows, by flow.
#[derive(Default)]
struct ScatterEvents {
    /// The time of the first fast retransmit or timeout, and the number of segments handed out by
    /// then.
    congested: BTreeMap<u64, (Time, u32)>,
    /// The time at which the second subflow opened.
    switched: BTreeMap<u64, Time>,
    syn_timeouts: BTreeMap<u64, u32>,
    /// Data that a link lost, and the packets that carried it later: position, subflow.
    lost: Vec<(u64, u8)>,
    carried: Vec<(u64, u8)>,
}

impl Observer for ScatterEvents {
    fn host_sends(&mut self, now: Time, _: HostId, packet: &PacketView) {
        if packet.copy == 1 && packet.flags.has(Flags::SYN) {
            self.switched.entry(packet.flow).or_insert(now);
        }
        let Some(data) = packet.data.filter(|_| packet.flags.has(Flags::DATA)) else { return };
        if self.lost.iter().any(|lost| lost.0 == data) {
            self.carried.push((data, packet.copy));
        }
    }
    fn lost(&mut self, _: Time, _: PortId, _: Loss, packet: &PacketView) {
        self.lost.extend(packet.data.map(|data| (data, packet.copy)));
    }
    fn tcp_sender_acted(&mut self, now: Time, flow: u64, copy: u8, sender: &Sender) {
        if copy != 0 {
            return;
        }
        let done = sender.counters();
        if sender.phase() == ConnectionState::SynSent {
            self.syn_timeouts.insert(flow, done.timeouts);
        }
        let of_syn = self.syn_timeouts.get(&flow).copied().unwrap_or(0);
        if done.timeouts - of_syn + done.fast_recoveries > 0 {
            self.congested.entry(flow).or_insert((now, sender.segments()));
        }
    }
}

fn scattered(switch: SwitchTrigger, flows: Vec<Flow>) -> Scenario {
    let transport = MmptcpSpec { switch, ..MmptcpSpec::default() };
    with(fat_tree(4), flows, TransportSpec::Mmptcp(transport))
}

fn observed(scenario: &Scenario) -> (Outcome, ScatterEvents) {
    run_observed(scenario, ScatterEvents::default())
}

const SEGMENTS: u32 = 600_000_u32.div_ceil(1_460);

/// Eight senders to one host overflow its port. Flows that lose packets while they have data left
/// switch to subflows at that moment. A flow elsewhere and a lone flow do not.
#[test]
fn only_congested_flows_switch_to_subflows() {
    let mut flows: Vec<Flow> =
        (0..8).map(|id| flow(id, 4 + id as u32, 0, 600_000, Time::ZERO)).collect();
    flows.push(flow(8, 12, 14, 600_000, Time::ZERO));
    let (outcome, seen) = observed(&scattered(SwitchTrigger::Congestion {}, flows));
    assert!(outcome.counters.dropped > 0);
    for record in &outcome.flows {
        let id = record.flow.id;
        assert!(record.fct.is_some());
        let congested = seen.congested.get(&id).filter(|congested| congested.1 < SEGMENTS);
        assert_eq!(seen.switched.get(&id), congested.map(|congested| &congested.0), "{record:?}");
        assert_eq!(record.copies, if congested.is_some() { 8 } else { 1 }, "{record:?}");
    }
    assert!(seen.switched.len() >= 4, "most of them lose packets: {:?}", seen.switched);
    assert!(!seen.switched.contains_key(&8), "nothing is lost elsewhere");
    let alone = flow(0, 4, 0, 600_000, Time::ZERO);
    let (alone, _) = observed(&scattered(SwitchTrigger::Congestion {}, vec![alone]));
    assert_eq!((alone.counters.dropped, alone.flows[0].copies), (0, 1));
}

fn loss(link: String, at: Time, lasts: Time) -> Incident {
    Incident::Loss { link, one_way: true, probability: 1.0, at, until: Some(at + lasts) }
}

/// Returns the edge switch of a host.
fn edge(host: u32) -> SwitchId {
    Routes::new(&fat_tree(4)).expect("it is connected").edge_switch(HostId(host))
}

#[test]
fn a_lost_syn_does_not_switch_to_subflows() {
    let flows = vec![flow(0, 0, 12, 400_000, Time::from_us(10))];
    let mut scenario = scattered(SwitchTrigger::Congestion {}, flows);
    let uplink = format!("h0>s{}", edge(0));
    scenario.faults.incidents.push(loss(uplink, Time::from_us(5), Time::from_us(20)));
    let (outcome, seen) = observed(&scenario);
    let record = &outcome.flows[0];
    assert_eq!((outcome.counters.lost_on_links, record.timeouts), (1, 1), "the SYN");
    assert!(record.fct.is_some() && seen.congested.is_empty());
    assert_eq!(record.copies, 1);
}

#[test]
fn a_timeout_switches_to_subflows() {
    let flows = vec![flow(0, 0, 12, 400_000, Time::ZERO)];
    let mut scenario = scattered(SwitchTrigger::Congestion {}, flows);
    // All packets of the first milliseconds are lost, so there are no duplicate ACKs.
    scenario.faults.incidents.push(loss(
        format!("s{}>h12", edge(12)),
        Time::from_us(100),
        Time::from_ms(5),
    ));
    let (outcome, seen) = observed(&scenario);
    assert!(outcome.flows[0].fct.is_some());
    assert_eq!(outcome.flows[0].copies, 8);
    assert_eq!(seen.switched.get(&0), seen.congested.get(&0).map(|congested| &congested.0));
}

/// The scattering subflow sends nothing new once another is up, so a hole near its end causes too
/// few duplicate ACKs. Each of its last packets is lost in turn: another subflow carries the data
/// long before the timer of 200 ms expires.
#[test]
fn a_hole_of_the_draining_subflow_is_filled_by_another() {
    let tcp = TcpSpec {
        min_rto: Time::from_ms(200),
        initial_rto: Time::from_ms(200),
        ..TcpSpec::default()
    };
    let switch = SwitchTrigger::Volume { bytes: Bytes(100_000) };
    let spec = MmptcpSpec { switch, tcp, ..MmptcpSpec::default() };
    let flows = vec![flow(0, 0, 12, 1_000_000, Time::ZERO)];
    let plain = with(fat_tree(4), flows, TransportSpec::Mmptcp(spec));
    let mut carried_by_another = 0;
    for step in 0..60u64 {
        let mut scenario = plain.clone();
        let at = Time::from_us(800) + Time(12_304_000 * step);
        scenario.faults.incidents.push(loss(
            format!("s{}>h12", edge(12)),
            at,
            Time::from_ns(12_304),
        ));
        let (outcome, seen) = observed(&scenario);
        let record = &outcome.flows[0];
        let fct = record.fct.expect("it finishes");
        let [(position, 0)] = seen.lost[..] else { continue };
        let carriers: BTreeSet<u8> = seen.carried.iter().map(|carried| carried.1).collect();
        assert!(carriers.iter().any(|copy| *copy > 0), "{position}: carried by {carriers:?}");
        // Enough duplicate ACKs for a fast retransmit, at least one, or none: the last packet waits
        // for the timer.
        match (record.fast_recoveries, record.timeouts) {
            (1, 0) => assert!(carriers.contains(&0), "{position}: {carriers:?}"),
            (0, 0) => {
                assert!(!carriers.contains(&0), "{position}: {carriers:?}");
                carried_by_another += 1;
            }
            (0, 1) => assert!(fct > Time::from_ms(200), "{position}: {fct}"),
            other => panic!("{position}: recoveries and timeouts {other:?}"),
        }
        assert!(record.timeouts > 0 || fct < Time::from_ms(20), "{position}: {fct}");
    }
    // The threshold is 3 and the four paths of a k = 4 fabric: six packets draw one to six
    // duplicate ACKs.
    assert_eq!(carried_by_another, 6);
}
