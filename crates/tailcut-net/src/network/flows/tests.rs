//! Outcomes of flows, and the calls of policies and managers, without a network.

use super::*;
use crate::network::connections::NewConnection;
use crate::network::connections::tests::{opening, tcp};
use crate::network::profile::{ProfileId, TransportProfile};
use crate::network::tests::scenario;
use crate::packet::{Flags, NO_OPTIONS, Packet, SeqField};
use crate::topology::HostId;
use crate::transport::Transport;
use crate::transport::mptcp::MptcpSpec;

const FLOW: FlowIndex = FlowIndex(1);

/// Flow 1 of the scenario, which starts 10 us after the run.
fn flows() -> Flows {
    Flows::new(&scenario())
}

#[test]
fn times_count_from_the_start_of_a_flow() {
    let mut flows = flows();
    flows.note_established(FLOW, Time::from_us(12));
    flows.note_established(FLOW, Time::from_us(13));
    flows.note_received(FLOW, Time::from_us(18));
    assert!(flows.note_acknowledged(FLOW, Time::from_us(20)));
    assert!(!flows.note_first_acknowledged(FLOW, Time::from_us(30)));
    let record = flows.record(FLOW);
    let times = [record.connect, record.fct, record.fct_ack];
    assert_eq!(times, [2, 8, 10].map(|us| Some(Time::from_us(us))));
    assert_eq!((flows.finished(), flows.has_finished(FLOW)), (1, true));
    assert!(!flows.has_finished(FlowIndex(0)));
}

#[test]
fn a_flow_that_waited_starts_when_it_does() {
    let mut flows = flows();
    flows.start_at(FLOW, Time::from_us(50));
    flows.note_received(FLOW, Time::from_us(53));
    assert_eq!(flows.record(FLOW).fct, Some(Time::from_us(3)));
    assert_eq!(flows.known(FLOW).start, Time::from_us(50));
}

#[test]
fn reuses_the_buffer_of_policy_actions() {
    let mut flows = flows();
    let actions = flows.react(FLOW, PolicyEvent::Started, Time::from_us(10));
    assert!(matches!(actions[..], [PolicyAction::Open(_)]));
    flows.give_back(actions);
    assert_eq!(flows.react(FLOW, PolicyEvent::Timer, Time::from_us(10)), []);
}

#[test]
fn the_record_holds_the_prediction() {
    let mut flows = flows();
    let ideal = (Time::from_us(3), Time::from_us(4));
    let foreseen =
        FlowPrediction { profile: ProfileId::at(0), hops: 4, shared_hops: Some(1), ideal };
    flows.foresee(FLOW, &foreseen);
    flows.note_copy(FLOW);
    let record = flows.record(FLOW);
    assert_eq!((record.ideal_fct, record.ideal_fct_ack), ideal);
    assert_eq!((record.hops, record.shared_hops, record.copies), (4, Some(1), 1));
}

/// Two connections of flow 1, of which the second has got three segments and the first one.
fn connected<'a>(
    flows: &mut Flows,
    profiles: &'a [TransportProfile],
) -> (Connections<'a>, [ConnectionId; 2]) {
    let mut hosts = Connections::new(profiles);
    let ids = [(0, 1), (1, 3)].map(|(copy, segments)| {
        let id = hosts.admit(opening(&hosts, FLOW.0, copy));
        flows.set_chains(FLOW, hosts.insert(flows.chains(FLOW), id));
        let (key, options) = (hosts.sender_info(id).key, NO_OPTIONS);
        for seq in 0..segments {
            let (flags, wire_bytes) = (Flags::DATA, 1_538);
            let packet =
                Packet { key, connection: id, seq: SeqField::new(seq), options, wire_bytes, flags };
            hosts.on_packet_at_receiver(Time::ZERO, &packet);
        }
        id
    });
    (hosts, ids)
}

#[test]
fn a_flow_has_delivered_what_its_furthest_connection_has_or_all_if_it_is_over() {
    let (mut flows, profiles) = (flows(), tcp());
    let (hosts, _) = connected(&mut flows, &profiles);
    flows.note_received(FlowIndex(0), Time::from_us(50));
    flows.note_deliveries(&hosts);
    let delivered = [FlowIndex(0), FLOW].map(|flow| flows.record(flow).delivered_in_arrivals);
    assert_eq!(delivered, [10_000, 3 * 1_460]);
}

#[test]
fn each_copy_of_a_flow_is_sampled_by_its_latest_connection_while_that_is_under_way() {
    let (mut flows, profiles) = (flows(), tcp());
    let (mut hosts, [first, second]) = connected(&mut flows, &profiles);
    let window = hosts.sender(first).cwnd(hosts.sender_profile(first));
    let samples = |flows: &Flows, hosts: &Connections<'_>| {
        let samples = flows.samples(hosts).inspect(|sample| assert_eq!(sample.window, window));
        samples
            .map(|sample| (sample.of.flow, sample.of.copy, sample.acknowledged))
            .collect::<Vec<_>>()
    };
    assert_eq!(samples(&flows, &hosts), [], "none has been opened");
    for id in [first, second] {
        hosts.fire_sender_timer(id, Time::ZERO);
    }
    assert_eq!(samples(&flows, &hosts), [(1, 0, 0), (1, 1, 0)]);
    let later = hosts.admit(NewConnection { from: 5_840, ..opening(&hosts, FLOW.0, 0) });
    flows.set_chains(FLOW, hosts.insert(flows.chains(FLOW), later));
    hosts.fire_sender_timer(later, Time::ZERO);
    assert_eq!(samples(&flows, &hosts), [(1, 1, 0), (1, 0, 5_840)]);
    hosts.sender_mut(second).abort();
    assert_eq!(samples(&flows, &hosts), [(1, 0, 5_840)]);
}

#[test]
fn sums_needless_retransmissions() {
    let (mut flows, profiles) = (flows(), tcp());
    let (mut hosts, ids) = connected(&mut flows, &profiles);
    let (key, options) = (hosts.sender_info(ids[0]).key, NO_OPTIONS);
    let (flags, wire_bytes) = (Flags::DATA, 1_538);
    let again =
        Packet { key, connection: ids[0], seq: SeqField::new(0), options, wire_bytes, flags };
    hosts.on_packet_at_receiver(Time::ZERO, &again);
    ids.iter().for_each(|&id| flows.absorb(&hosts, id));
    let mut counters = RunCounters::default();
    flows.sum_up(&mut counters);
    assert_eq!((counters.needless_retransmissions, counters.recoveries_undone), (1, 0));
}

/// Notes what it is told.
#[derive(Default)]
struct Judge(Vec<Option<FlowIndex>>);

impl Audit for Judge {
    fn settle(&mut self, known: &dyn Fn(ConnectionId, FlowKey) -> Option<audit::AuditedFlow>) {
        let key = |port| FlowKey::new(HostId(0), HostId(1), 1_024, port);
        let asked = [key(5_001), key(5_001).reversed(), key(7)];
        self.0 = asked.map(|key| known(ConnectionId(1), key).map(|known| known.flow)).to_vec();
    }
    fn totals(
        &self,
        flows: &mut dyn Iterator<Item = audit::AuditedFlow>,
    ) -> Vec<(&'static str, u64)> {
        vec![("bytes", flows.map(|flow| flow.bytes).sum())]
    }
}

#[test]
fn audits_detections_against_started_flows() {
    let (mut flows, profiles) = (flows(), tcp());
    let (hosts, _) = connected(&mut flows, &profiles);
    let mut judge = Judge::default();
    let totals = [0, 1, 2].map(|started| {
        let has_started = |flow: FlowIndex| flow.index() < started;
        flows.audit(&mut judge, &hosts, &has_started)[0].1
    });
    assert_eq!(totals, [0, 10_000, 20_000]);
    assert_eq!(judge.0, [Some(FLOW), Some(FLOW), None]);
}

#[test]
fn a_spread_flow_says_what_its_subflows_carry_and_what_has_arrived() {
    let (mut flows, profiles) = (flows(), tcp());
    let (hosts, [first, _]) = connected(&mut flows, &profiles);
    let known = hosts.sender_info(first);
    assert_eq!(flows.subflow_segment(known, 0), (None, known.key), "it has no manager");
    assert_eq!(flows.data_ack(FLOW, 0), None);
    let spread = MptcpSpec::default().multipath().expect("it spreads flows");
    let (manager, collected) =
        (spread.manager(flows.flow(FLOW), 1), spread.collected(flows.flow(FLOW)));
    flows.spread(FLOW, manager, collected);
    let manager = flows.manager_mut(FLOW).expect("it has one now");
    // 10,000 bytes are seven segments.
    let given: Vec<_> = (0..7).map(|_| manager.assign(0, &mut vec![])).collect();
    assert_eq!((given[0], given[6]), (Some(1_460), Some(1_240)));
    let (mapping, key) = flows.subflow_segment(known, 6);
    assert_eq!(mapping, Some(Mapping { number: 6, payload: 1_240, last: true }));
    assert_eq!(key, known.key);
    assert!(!flows.note_data(FLOW, None) && !flows.note_data(FLOW, Some(1)));
    let ack = |number, complete| Some(DataAck { number, complete });
    assert_eq!(flows.data_ack(FLOW, 0), ack(0, false));
    let complete: Vec<_> = [0, 2, 3, 4, 5, 6].map(|n| flows.note_data(FLOW, Some(n))).into();
    assert_eq!(complete, [false, false, false, false, false, true]);
    assert_eq!(flows.data_ack(FLOW, 1), ack(7, true));
    assert_eq!(flows.receive(FLOW, 0), [ReceiverAction::Finish { copy: 0 }]);
    assert_eq!(flows.data_ack(FLOW, 1), ack(7, false), "another has ended it");
    assert!(flows.may_win(FLOW, 0) && !flows.may_win(FLOW, 1));
}
