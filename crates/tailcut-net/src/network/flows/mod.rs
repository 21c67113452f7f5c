//! The flows of a run: their state, and their outcomes.

#[cfg(test)]
mod tests;

use tailcut_engine::Time;

use super::connections::{Chains, ConnectionInfo, Connections};
use super::flow_predictor::FlowPrediction;
use crate::balance::audit::{self, Audit};
use crate::measure::records::{FlowRecord, RunCounters, Sampled};
use crate::measure::series::ConnectionSample;
use crate::packet::{ConnectionId, FIRST_SOURCE_PORT, FlowKey};
use crate::replicate::machine::{
    Arrived, PolicyAction, PolicyEvent, ReceiverAction, Receiving, Replicate, Sending, Sent,
};
use crate::scenario::Scenario;
use crate::traffic::{Flow, FlowIndex};
use crate::transport::spread::{self as subflow, SubflowManager};
use crate::transport::subflows::DataReassembly;
use crate::transport::{ConnectionState, DataAck, Mapping};

/// The state of a flow.
struct FlowState {
    flow: Flow,
    /// The flow's live connections at either host.
    chains: Chains,
    /// Manages its subflows, while there are any.
    manager: Option<Box<dyn SubflowManager>>,
    /// The data-level reassembly of the subflows.
    collected: Option<Box<DataReassembly>>,
    copies: u8,
    /// The replication state at either end.
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
            chains: Chains::default(),
            manager: None,
            collected: None,
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
    /// Segments that PAWS discarded, at both ends.
    paws_discarded: u64,
    /// The replication policy.
    policy: Box<dyn Replicate>,
    /// The policy's actions; the buffer is reused.
    actions: Vec<PolicyAction>,
    answers: Vec<ReceiverAction>,
    /// The actions of the subflow managers; the buffer is reused.
    subflow_actions: Vec<subflow::SubflowAction>,
}

impl Flows {
    /// Creates the flows of a scenario; none has started.
    pub fn new(scenario: &Scenario) -> Flows {
        Flows {
            states: scenario.flows.iter().map(FlowState::new).collect(),
            finished: 0,
            paws_discarded: 0,
            policy: scenario.scheme.replicate.instantiate(scenario.graph.hosts),
            actions: vec![],
            answers: vec![],
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

    // --- what is known
    // ----------------------------------------------------------------------------------------------

    /// Returns the number of flows.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = FlowIndex> + use<> {
        (0..self.states.len()).map(FlowIndex::at)
    }

    /// Returns the number of finished flows.
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
    pub fn known(&self, flow: FlowIndex) -> audit::AuditedFlow {
        let FlowState { flow: Flow { bytes, start, .. }, hops, .. } = *self.state(flow);
        audit::AuditedFlow { flow, bytes, start, links: hops }
    }

    /// Returns whether connections have been given the last byte of a flow: pieces get theirs one
    /// after the other.
    pub fn is_handed_out(&self, flow: FlowIndex) -> bool {
        let FlowState { flow, sent, .. } = self.state(flow);
        sent.handed >= flow.bytes
    }

    /// The copy that has brought its last byte, if one has.
    pub fn winner(&self, flow: FlowIndex) -> Option<u8> {
        self.state(flow).arrived.winner
    }

    /// Whether no copy but this has brought its last byte.
    #[inline]
    pub fn may_win(&self, flow: FlowIndex, copy: u8) -> bool {
        self.winner(flow).is_none_or(|winner| winner == copy)
    }

    /// Whether its last byte has arrived.
    pub fn has_finished(&self, flow: FlowIndex) -> bool {
        self.state(flow).fct.is_some()
    }

    /// Returns the record of a flow, a row of the flow table.
    pub fn record(&self, flow: FlowIndex) -> FlowRecord {
        self.state(flow).record()
    }

    // --- what happens
    // -----------------------------------------------------------------------------------------------

    /// Records the prediction of a flow.
    pub fn foresee(&mut self, flow: FlowIndex, foreseen: &FlowPrediction) {
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

    /// Records that the last byte has arrived.
    pub fn note_received(&mut self, flow: FlowIndex, now: Time) {
        let state = self.state_mut(flow);
        state.fct = Some(now - state.flow.start);
        self.finished += 1;
    }

    /// Records that the sender has been acknowledged the last byte. Returns false if that was
    /// known.
    pub fn note_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        let state = self.state_mut(flow);
        let took = now - state.flow.start;
        state.fct_ack.replace(took).is_none()
    }

    /// Records that the sender has been acknowledged the last byte. Returns true if it was not
    /// known before.
    pub fn note_first_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        self.state(flow).fct_ack.is_none() && self.note_acknowledged(flow, now)
    }

    /// The arrivals have ended: notes what each flow has delivered, in order, on the connection
    /// that has got furthest.
    pub fn note_deliveries(&mut self, hosts: &Connections<'_>) {
        for flow in self.all() {
            self.state_mut(flow).delivered_in_arrivals = self.delivered(flow, hosts);
        }
    }

    fn delivered(&self, index: FlowIndex, hosts: &Connections<'_>) -> u64 {
        let FlowState { flow, collected, .. } = self.state(index);
        let mut delivered = if self.has_finished(index) { flow.bytes } else { 0 };
        let mut at = self.chains(index).receiving;
        while let Some(id) = at.filter(|_| delivered < flow.bytes) {
            let next = match collected {
                Some(collected) => collected.next(),
                None => hosts.receiver(id).next_expected(),
            };
            delivered = delivered.max(hosts.brought(id, next, flow));
            at = hosts.after_at_receiver(id);
        }
        delivered
    }

    /// Adds what one connection has done, and what of it in vain.
    pub fn absorb(&mut self, hosts: &Connections<'_>, id: ConnectionId) {
        let (sender, receiver) = (hosts.sender(id), hosts.receiver(id));
        let (done, state) = (sender.counters(), self.state_mut(hosts.sender_info(id).flow));
        state.data_packets += done.data_packets;
        state.retransmissions += done.retransmissions;
        state.timeouts += done.timeouts;
        state.fast_recoveries += done.fast_recoveries;
        state.recoveries_undone += done.recoveries_undone;
        state.needless_retransmissions += receiver.duplicates();
        self.paws_discarded += done.paws_discarded + receiver.discarded();
    }

    /// Returns the number of segments that PAWS discarded.
    pub fn paws_discarded(&self) -> u64 {
        self.paws_discarded
    }

    // --- what is told of them
    // ---------------------------------------------------------------------------------------

    /// The state of every connection that is under way, where a copy has several of the latest.
    pub fn samples<'s>(
        &'s self,
        hosts: &'s Connections<'s>,
    ) -> impl Iterator<Item = ConnectionSample> + 's {
        let is_under_way = |id: &ConnectionId| {
            let sender = hosts.sender(*id);
            sender.phase() != ConnectionState::Closed && !sender.finished()
        };
        let is_latest = |id: &ConnectionId| {
            let &ConnectionInfo { flow, copy, .. } = hosts.sender_info(*id);
            hosts.find(self.head(flow), copy) == Some(*id)
        };
        hosts.live().filter(is_under_way).filter(is_latest).map(|id| {
            let (&ConnectionInfo { flow, copy, .. }, sender) =
                (hosts.sender_info(id), hosts.sender(id));
            ConnectionSample {
                of: Sampled { flow: self.flow(flow).id, copy },
                window: sender.cwnd(hosts.sender_profile(id)),
                acknowledged: hosts.acknowledged(id),
            }
        })
    }

    /// Looks up whose packets the guesses of switches were about, while their connections are still
    /// there.
    pub fn settle(&self, audit: &mut dyn Audit, hosts: &Connections<'_>) {
        audit.settle(&|id, key| hosts.owner(id, key).map(|flow| self.known(flow)));
    }

    /// Returns the audit of the balancer's elephant detection over all flows that have started.
    pub fn audit(
        &self,
        audit: &mut dyn Audit,
        hosts: &Connections<'_>,
        has_started: &dyn Fn(FlowIndex) -> bool,
    ) -> Vec<(&'static str, u64)> {
        self.settle(audit, hosts);
        let started = self.all().filter(|flow| has_started(*flow));
        audit.totals(&mut started.map(|flow| self.known(flow)))
    }

    /// Counts what all flows have done in vain.
    pub fn sum_up(&self, counters: &mut RunCounters) {
        let sum = |count: fn(&FlowState) -> u64| self.states.iter().map(count).sum::<u64>();
        counters.needless_retransmissions = sum(|state| state.needless_retransmissions);
        counters.recoveries_undone = sum(|state| u64::from(state.recoveries_undone));
    }

    // --- its connections
    // --------------------------------------------------------------------------------------------

    /// The first of its connections at the host that sends it.
    #[inline]
    pub fn head(&self, flow: FlowIndex) -> Option<ConnectionId> {
        self.state(flow).chains.sending
    }

    /// Returns the flow's connections at both hosts.
    pub fn chains(&self, flow: FlowIndex) -> Chains {
        self.state(flow).chains
    }

    /// Has other first connections. Without any at its sender nobody manages them, and without any
    /// at its receiver nothing is collected.
    pub fn set_chains(&mut self, flow: FlowIndex, chains: Chains) {
        let state = self.state_mut(flow);
        state.chains = chains;
        if chains.sending.is_none() {
            state.manager = None;
        }
        if chains.receiving.is_none() {
            state.collected = None;
        }
    }

    /// Sending end: lets the replication policy answer an event of a flow. What it asks for is to
    /// be given back.
    pub fn react(&mut self, flow: FlowIndex, event: PolicyEvent, now: Time) -> Vec<PolicyAction> {
        let mut actions = std::mem::take(&mut self.actions);
        let FlowState { flow, sent, .. } = &mut self.states[flow.index()];
        self.policy.on_event(event, Sending { flow, sent, now }, &mut actions);
        actions
    }

    /// Returns the buffer of [`Flows::react`] for reuse.
    pub fn give_back(&mut self, mut actions: Vec<PolicyAction>) {
        actions.clear();
        self.actions = actions;
    }

    /// Receiving end: what follows when all that a copy carries has arrived. To be given back as
    /// well.
    pub fn receive(&mut self, flow: FlowIndex, copy: u8) -> Vec<ReceiverAction> {
        let mut answers = std::mem::take(&mut self.answers);
        let FlowState { flow, arrived, .. } = &mut self.states[flow.index()];
        self.policy.received(copy, Receiving { flow, arrived }, &mut answers);
        answers
    }

    /// Returns the buffer of [`Flows::receive`] for reuse.
    pub fn give_back_answers(&mut self, mut answers: Vec<ReceiverAction>) {
        answers.clear();
        self.answers = answers;
    }

    /// Has its subflows managed, and what they bring collected.
    pub fn spread(
        &mut self,
        flow: FlowIndex,
        manager: Box<dyn SubflowManager>,
        collected: DataReassembly,
    ) {
        let state = self.state_mut(flow);
        state.manager = Some(manager);
        state.collected = Some(Box::new(collected));
    }

    /// Returns whether what the flow's subflows bring is collected.
    pub fn collects(&self, flow: FlowIndex) -> bool {
        self.state(flow).collected.is_some()
    }

    /// Returns the manager of the flow's subflows, if it has any.
    #[inline]
    pub fn manager(&self, flow: FlowIndex) -> Option<&dyn SubflowManager> {
        self.state(flow).manager.as_deref()
    }

    #[inline]
    pub fn manager_mut(&mut self, flow: FlowIndex) -> Option<&mut Box<dyn SubflowManager>> {
        self.state_mut(flow).manager.as_mut()
    }

    /// Receiving end: a data segment has arrived on one of its subflows, with a number if it has
    /// one. True when it was the last missing.
    pub fn note_data(&mut self, flow: FlowIndex, number: Option<u32>) -> bool {
        let collected = self.state_mut(flow).collected.as_mut();
        collected.zip(number).is_some_and(|(collected, number)| collected.on_segment(number))
    }

    /// Receiving end: what an acknowledgement of a subflow says of the data, and whether it ends
    /// the connection.
    pub fn data_ack(&self, flow: FlowIndex, copy: u8) -> Option<DataAck> {
        let collected = self.state(flow).collected.as_ref()?;
        let complete = collected.complete() && self.may_win(flow, copy);
        Some(DataAck { number: collected.next(), complete })
    }

    /// Returns the data that a segment of a subflow carries, and the key of its packet; `known` is
    /// the connection as its sending end knows it.
    pub fn subflow_segment(
        &mut self,
        known: &ConnectionInfo,
        seq: u32,
    ) -> (Option<Mapping>, FlowKey) {
        let &ConnectionInfo { flow, copy, key, .. } = known;
        let Some(manager) = self.manager_mut(flow) else { return (None, key) };
        let subflow::DataMapping { number, payload, last, scattered } = manager.carries(copy, seq);
        let elsewhere =
            |port| FlowKey::new(key.src(), key.dst(), FIRST_SOURCE_PORT + port, key.dport());
        (Some(Mapping { number, payload, last }), scattered.map_or(key, elsewhere))
    }

    /// Lets the manager of its subflows answer an event. What it asks for is to be given back.
    pub fn manage(
        &mut self,
        flow: FlowIndex,
        event: subflow::SubflowEvent,
        view: subflow::View<'_>,
    ) -> Vec<subflow::SubflowAction> {
        let mut actions = std::mem::take(&mut self.subflow_actions);
        if let Some(manager) = &mut self.states[flow.index()].manager {
            manager.on_event(event, view, &mut actions);
        }
        actions
    }

    /// Returns the buffer of [`Flows::manage`] for reuse.
    pub fn give_back_subflow(&mut self, mut actions: Vec<subflow::SubflowAction>) {
        actions.clear();
        self.subflow_actions = actions;
    }
}
