//! What is known of the flows of a run, and what becomes of it.

use tailcut_engine::Time;

use super::foresight::Foreseen;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::balance::audit::Known;
use crate::measure::records::FlowRecord;
use crate::packet::ConnectionId;
use crate::replicate::machine::{Action, Arrived, Event, Replicate, Sent, View};
use crate::scenario::Scenario;
use crate::traffic::{Flow, FlowIndex};
use crate::transport::spread::{self as subflow, Manage};

/// What is known of a flow so far.
struct FlowState {
    flow: Flow,
    /// Head of the chain of live connections.
    connections: Option<ConnectionId>,
    /// Manages its subflows, while there are any.
    manager: Option<Box<dyn Manage>>,
    copies: u8,
    /// What replication remembers of it at either end.
    sent: Sent,
    arrived: Arrived,
    connect: Option<Time>,
    fct: Option<Time>,
    fct_ack: Option<Time>,
    ideal_fct: Time,
    ideal_fct_ack: Time,
    hops: u8,
    shared_hops: Option<u8>,
    data_packets: u64,
    retransmissions: u64,
    timeouts: u32,
    fast_recoveries: u32,
    needless_retransmissions: u64,
    recoveries_undone: u32,
    delivered_in_arrivals: u64,
}

impl FlowState {
    fn new(flow: &Flow) -> FlowState {
        FlowState {
            flow: *flow,
            connections: None,
            manager: None,
            copies: 0,
            sent: Sent::default(),
            arrived: Arrived::default(),
            connect: None,
            fct: None,
            fct_ack: None,
            ideal_fct: Time::ZERO,
            ideal_fct_ack: Time::ZERO,
            hops: 0,
            shared_hops: None,
            data_packets: 0,
            retransmissions: 0,
            timeouts: 0,
            fast_recoveries: 0,
            needless_retransmissions: 0,
            recoveries_undone: 0,
            delivered_in_arrivals: 0,
        }
    }

    fn record(&self) -> FlowRecord {
        FlowRecord {
            flow: self.flow,
            connect: self.connect,
            fct: self.fct,
            fct_ack: self.fct_ack,
            ideal_fct: self.ideal_fct,
            ideal_fct_ack: self.ideal_fct_ack,
            data_packets: self.data_packets,
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.fast_recoveries,
            recoveries_undone: self.recoveries_undone,
            needless_retransmissions: self.needless_retransmissions,
            copies: self.copies,
            winner: self.arrived.winner,
            shared_hops: self.shared_hops,
            hops: self.hops,
            delivered_in_arrivals: self.delivered_in_arrivals,
        }
    }
}

/// The flows of a run.
pub(super) struct Flows {
    states: Vec<FlowState>,
    finished: u64,
    /// Which connections carry a flow.
    policy: Box<dyn Replicate>,
    /// What it asked for, room that is used again.
    actions: Vec<Action>,
    /// What the managers of subflows asked for, the same.
    subflow_actions: Vec<subflow::Action>,
}

impl Flows {
    /// Those of a scenario, of which nothing has happened.
    pub fn new(scenario: &Scenario) -> Flows {
        Flows {
            states: scenario.flows.iter().map(FlowState::new).collect(),
            finished: 0,
            policy: scenario.scheme.replicate.policy().machine(scenario.graph.hosts),
            actions: vec![],
            subflow_actions: vec![],
        }
    }

    #[inline]
    fn state(&self, flow: FlowIndex) -> &FlowState {
        &self.states[flow.index()]
    }

    #[inline]
    fn state_mut(&mut self, flow: FlowIndex) -> &mut FlowState {
        &mut self.states[flow.index()]
    }

    // --- what is known ----------------------------------------------------------------------------------------------

    /// How many there are.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = FlowIndex> {
        (0..self.states.len()).map(FlowIndex::at)
    }

    /// How many have finished.
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// A flow as it was asked for.
    #[inline]
    pub fn flow(&self, flow: FlowIndex) -> &Flow {
        &self.state(flow).flow
    }

    /// Links between its hosts.
    pub fn hops(&self, flow: FlowIndex) -> u8 {
        self.state(flow).hops
    }

    /// A flow as a strategy of switches is told of it.
    pub fn known(&self, flow: FlowIndex) -> Known {
        let FlowState { flow: Flow { bytes, start, .. }, hops, .. } = *self.state(flow);
        Known { flow, bytes, start, links: hops }
    }

    /// The copy that has brought its last byte, if one has.
    pub fn winner(&self, flow: FlowIndex) -> Option<u8> {
        self.state(flow).arrived.winner
    }

    /// Whether its last byte has arrived.
    pub fn has_finished(&self, flow: FlowIndex) -> bool {
        self.state(flow).fct.is_some()
    }

    /// What is known of a flow, as a row of the flow table.
    pub fn record(&self, flow: FlowIndex) -> FlowRecord {
        self.state(flow).record()
    }

    // --- what happens -----------------------------------------------------------------------------------------------

    /// What a flow is told before its first packet.
    pub fn foresee(&mut self, flow: FlowIndex, foreseen: &Foreseen) {
        let state = self.state_mut(flow);
        (state.hops, state.shared_hops) = (foreseen.hops, foreseen.shared_hops);
        (state.ideal_fct, state.ideal_fct_ack) = foreseen.ideal;
    }

    /// A flow that waited for others starts.
    pub fn start_at(&mut self, flow: FlowIndex, now: Time) {
        self.state_mut(flow).flow.start = now;
    }

    /// A connection of a flow sends its first packet.
    pub fn note_copy(&mut self, flow: FlowIndex) {
        let copies = &mut self.state_mut(flow).copies;
        *copies = copies.saturating_add(1);
    }

    /// The handshake of one of its connections is complete.
    pub fn note_established(&mut self, flow: FlowIndex, now: Time) {
        let state = self.state_mut(flow);
        state.connect.get_or_insert(now - state.flow.start);
    }

    /// Its last byte has arrived.
    pub fn note_received(&mut self, flow: FlowIndex, now: Time) {
        let state = self.state_mut(flow);
        state.fct = Some(now - state.flow.start);
        self.finished += 1;
    }

    /// Its sender knows of that. True when it did not before.
    pub fn note_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        let state = self.state_mut(flow);
        let took = now - state.flow.start;
        state.fct_ack.replace(took).is_none()
    }

    /// Its sender knows, if it did not before. True when it did not.
    pub fn note_first_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        self.state(flow).fct_ack.is_none() && self.note_acknowledged(flow, now)
    }

    /// Its bytes that had arrived, in order, when the arrivals ended.
    pub fn note_delivered(&mut self, flow: FlowIndex, bytes: u64) {
        self.state_mut(flow).delivered_in_arrivals = bytes;
    }

    /// Adds what one connection has done, and what of it in vain.
    pub fn absorb(&mut self, flow: FlowIndex, sender: &Sender, receiver: &Receiver) {
        let (done, state) = (sender.counters(), self.state_mut(flow));
        state.data_packets += done.data_packets;
        state.retransmissions += done.retransmissions;
        state.timeouts += done.timeouts;
        state.fast_recoveries += done.fast_recoveries;
        state.recoveries_undone += done.recoveries_undone;
        state.needless_retransmissions += receiver.duplicates();
    }

    // --- its connections --------------------------------------------------------------------------------------------

    /// The first of its connections.
    #[inline]
    pub fn head(&self, flow: FlowIndex) -> Option<ConnectionId> {
        self.state(flow).connections
    }

    /// Has another first connection. Without any, nobody manages them.
    pub fn set_head(&mut self, flow: FlowIndex, head: Option<ConnectionId>) {
        let state = self.state_mut(flow);
        state.connections = head;
        if head.is_none() {
            state.manager = None;
        }
    }

    /// Lets the replication policy answer an event of a flow. What it asks for is to be given back.
    pub fn react(&mut self, flow: FlowIndex, event: Event, now: Time) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.actions);
        let FlowState { flow, sent, arrived, .. } = &mut self.states[flow.index()];
        self.policy.on(event, View { flow, sent, arrived, now }, &mut actions);
        actions
    }

    /// What [`Flows::react`] gave, done.
    pub fn give_back(&mut self, mut actions: Vec<Action>) {
        actions.clear();
        self.actions = actions;
    }

    /// Has its subflows managed.
    pub fn set_manager(&mut self, flow: FlowIndex, manager: Box<dyn Manage>) {
        self.state_mut(flow).manager = Some(manager);
    }

    /// Who manages its subflows, if it has any.
    #[inline]
    pub fn manager(&self, flow: FlowIndex) -> Option<&dyn Manage> {
        self.state(flow).manager.as_deref()
    }

    #[inline]
    pub fn manager_mut(&mut self, flow: FlowIndex) -> Option<&mut Box<dyn Manage>> {
        self.state_mut(flow).manager.as_mut()
    }

    /// Lets the manager of its subflows answer an event. What it asks for is to be given back.
    pub fn manage(
        &mut self,
        flow: FlowIndex,
        event: subflow::Event,
        view: subflow::View<'_>,
    ) -> Vec<subflow::Action> {
        let mut actions = std::mem::take(&mut self.subflow_actions);
        if let Some(manager) = &mut self.states[flow.index()].manager {
            manager.on(event, view, &mut actions);
        }
        actions
    }

    /// What [`Flows::manage`] gave, done.
    pub fn give_back_subflow(&mut self, mut actions: Vec<subflow::Action>) {
        actions.clear();
        self.subflow_actions = actions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::scenario;

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
    fn the_policy_is_asked_and_its_answers_have_room_again() {
        let mut flows = flows();
        let actions = flows.react(FLOW, Event::Started, Time::from_us(10));
        assert!(matches!(actions[..], [Action::Open(_)]));
        flows.give_back(actions);
        assert_eq!(flows.react(FLOW, Event::Timer, Time::from_us(10)), []);
    }

    #[test]
    fn what_is_foreseen_and_delivered_is_in_the_record() {
        let mut flows = flows();
        let ideal = (Time::from_us(3), Time::from_us(4));
        let foreseen = Foreseen { profile: 0, hops: 4, shared_hops: Some(1), ideal };
        flows.foresee(FLOW, &foreseen);
        flows.note_delivered(FLOW, 77);
        flows.note_copy(FLOW);
        let record = flows.record(FLOW);
        assert_eq!((record.ideal_fct, record.ideal_fct_ack), ideal);
        assert_eq!((record.hops, record.shared_hops, record.copies), (4, Some(1), 1));
        assert_eq!(record.delivered_in_arrivals, 77);
    }
}
