//! Flows over several subflows: what their managers ask for, done.

use super::Network;
use super::connections::{ConnectionInfo, FlowContext, NewConnection};
use super::partition::{Extent, Opening};
use super::profile::{ProfileId, TransportKind};
use super::sender::Sender;
use crate::measure::Observer;
use crate::packet::ConnectionId;
use crate::traffic::demand::Signal;
use crate::traffic::{Flow, FlowIndex};
use crate::transport::spread::{
    MultipathSpec, OpenSubflow, SubflowAction, SubflowEvent, SubflowView, View,
};

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// The first subflow of a flow, and its manager.
    pub(super) fn open_first_subflow(
        &mut self,
        flow: FlowIndex,
        profile: ProfileId,
        spread: &dyn MultipathSpec,
    ) {
        let manager = spread.manager(self.flows.flow(flow), self.scenario.seed);
        let &Flow { src, dst, .. } = self.flows.flow(flow);
        let first = manager.initial_subflow(&mut || {
            self.fabric.shortest_path_count(&self.scenario.graph, src, dst)
        });
        let collected = spread.collected(self.flows.flow(flow));
        self.flows.spread(flow, manager, collected);
        self.open_subflow(flow, profile, first);
    }

    /// Collects what the subflows of a flow bring, where that is not done yet.
    pub(super) fn collect_subflows(&mut self, flow: FlowIndex, profile: ProfileId) {
        let TransportKind::Multipath(spread) = &self.hosts.transport(profile).kind else { return };
        if !self.flows.collects(flow) {
            let manager = spread.manager(self.flows.flow(flow), self.scenario.seed);
            self.flows.spread(flow, manager, spread.collected(self.flows.flow(flow)));
        }
    }

    fn open_subflow(&mut self, flow: FlowIndex, profile: ProfileId, open: OpenSubflow) {
        let id = self.admit_subflow(flow, profile, open);
        if E::IS_PART {
            self.announce(id, flow, Opening::Subflow(open));
        }
        self.wake_sender(id);
    }

    /// Gives a subflow a place among the connections of its flow.
    pub(super) fn admit_subflow(
        &mut self,
        index: FlowIndex,
        profile: ProfileId,
        open: OpenSubflow,
    ) -> ConnectionId {
        let (flow, transport) = (self.flows.flow(index), self.hosts.transport(profile));
        let carried = FlowContext { flow, index, profile, transport };
        let opening = NewConnection::subflow(carried, open, self.clock.now());
        let id = self.admit(opening);
        let chains = self.hosts.prepend(self.flows.chains(index), id);
        self.flows.set_chains(index, chains);
        id
    }

    /// Lets the manager of a flow answer an event of one of its subflows.
    pub(super) fn manage(&mut self, id: ConnectionId, event: SubflowEvent) {
        let (hosts, &ConnectionInfo { flow, copy, .. }) = (&self.hosts, self.hosts.sender_info(id));
        let Some(sender) = hosts.sender(id).tcp() else { return };
        let head = self.flows.head(flow);
        let look = |copy: u8| hosts.sender(hosts.find(head, copy)?).tcp().map(SubflowView::of);
        let view = View { subflow: copy, seen: SubflowView::of(sender), look: &look };
        let mut actions = self.flows.manage(flow, event, view);
        if !actions.is_empty() {
            self.carry_out_all(id, &mut actions);
        }
        self.flows.give_back_subflow(actions);
    }

    #[cold]
    fn carry_out_all(&mut self, id: ConnectionId, actions: &mut Vec<SubflowAction>) {
        let &ConnectionInfo { flow, profile, .. } = self.hosts.sender_info(id);
        for action in actions.drain(..) {
            match action {
                SubflowAction::Open(open) => self.open_subflow(flow, profile, open),
                SubflowAction::PumpOthers => self.pump_others(id),
                SubflowAction::Close => self.close_subflows(flow, id),
            }
        }
    }

    fn pump_others(&mut self, id: ConnectionId) {
        let mut at = self.flows.head(self.hosts.sender_info(id).flow);
        while let Some(other) = at {
            at = self.hosts.after(other);
            if other != id {
                self.flush_sender(other);
                self.retire_if_over(other);
            }
        }
    }

    /// Hands a subflow the data that its window has room for, one segment at a time.
    pub(super) fn hand_out(&mut self, id: ConnectionId) {
        let (profile, &ConnectionInfo { flow, copy, .. }) =
            (self.hosts.sender_profile(id), self.hosts.sender_info(id));
        let Some(manager) = self.flows.manager_mut(flow) else { return };
        let Sender::Tcp(sender) = self.hosts.sender_mut(id) else { return };
        if !sender.has_room(&profile.tcp, manager.likely_segment_bytes()) {
            return;
        }
        let mut actions = vec![];
        let Some(payload) = manager.assign(copy, &mut actions) else { return };
        sender.assign_segment(&profile.tcp, payload);
        if !actions.is_empty() {
            self.carry_out_all(id, &mut actions);
        }
    }

    /// The sender knows that all data has arrived. The subflow that heard of it closes as TCP does;
    /// the others are reset by a packet each (MP_FASTCLOSE of RFC 8684), unless nothing is ever
    /// sent after the last ACK.
    fn close_subflows(&mut self, flow: FlowIndex, id: ConnectionId) {
        let mut at = self.flows.head(flow);
        if self.flows.note_first_acknowledged(flow, self.clock.now()) {
            self.signal_flow_end(flow, Signal::Acknowledged);
        }
        while let Some(other) = at {
            at = self.hosts.after(other);
            self.hosts.close_subflow(other, other == id);
            if other != id {
                self.flush_sender(other);
                self.retire_if_over(other);
            }
        }
    }
}
