//! Flows at their hosts: what the loop does when one starts, and what its replication policy asks
//! for, done.

use super::Network;
use super::clock::EventKind;
use super::connections::{ConnectionInfo, FlowContext, NewConnection};
use super::partition::{Extent, Opening};
use super::profile::TransportKind;
use crate::measure::Observer;
use crate::packet::ConnectionId;
use crate::replicate::machine::{
    OpenConnection, PolicyAction, PolicyEvent, ReceiverAction, ReplicationPlan,
};
use crate::traffic::FlowIndex;
use crate::traffic::demand::Signal;
use crate::transport::{Transmit, spread as subflow};

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// Starts every flow that is due, and comes back for the next.
    pub(super) fn start_flows(&mut self) {
        let now = self.clock.now();
        while let Some(flow) = self.starts.take_listed(now) {
            self.start(flow);
        }
        while let Some(flow) = self.starts.take_driven(now) {
            self.flows.start_at(flow, now);
            self.start(flow);
        }
        while let Some(flow) = self.starts.take_timer(now) {
            self.tally.trace(|observer| observer.policy_timer_fired(now, flow));
            self.run_policy(flow, PolicyEvent::Timer);
        }
        self.schedule_start();
    }

    /// Makes sure that the next flow starts when it should, and the next timer of a flow fires.
    pub(super) fn schedule_start(&mut self) {
        self.clock.reschedule_or_cancel(EventKind::Flows, self.starts.next());
    }

    /// A flow is over, as far as `signal` says: others may have waited for it.
    pub(super) fn signal_flow_end(&mut self, flow: FlowIndex, signal: Signal) {
        if self.starts.note_over(flow, signal, self.clock.now()) {
            self.schedule_start();
        }
    }

    /// A sender has handed this segment to its interface: others may have waited for the last one.
    #[inline]
    pub(super) fn note_segment_sent(&mut self, id: ConnectionId, transmit: Transmit) {
        if !self.starts.await_sending() {
            return;
        }
        let Transmit::Segment { seq, retransmission: false } = transmit else { return };
        let flow = self.hosts.sender_info(id).flow;
        let is_last = seq + 1 == self.hosts.sender(id).segments();
        if is_last && self.starts.awaits_sending(flow) && self.flows.is_handed_out(flow) {
            self.signal_flow_end(flow, Signal::Sent);
        }
    }

    fn start(&mut self, flow: FlowIndex) {
        let now = self.clock.now();
        self.starts.note_start(flow, now);
        self.tally.trace(|observer| observer.flow_starts(now, flow, self.flows.flow(flow).id));
        let foreseen = self.foresight.predict(self.flows.flow(flow), &self.fabric);
        self.flows.foresee(flow, &foreseen);
        match &self.hosts.transport(foreseen.profile).kind {
            TransportKind::Multipath(spread) => {
                self.open_first_subflow(flow, foreseen.profile, &**spread)
            }
            _ => self.run_policy(flow, PolicyEvent::Started),
        }
    }

    /// Lets the replication policy answer an event of a flow.
    fn run_policy(&mut self, flow: FlowIndex, event: PolicyEvent) {
        let actions = self.flows.react(flow, event, self.clock.now());
        // All of a flow's connections are there before the first one sends.
        for action in &actions {
            if let PolicyAction::Open(open) = action {
                let id = self.admit_copy(flow, open);
                if E::IS_PART {
                    self.announce(id, flow, Opening::Copy(*open));
                }
            }
        }
        for &action in &actions {
            self.carry_out(flow, action);
        }
        self.flows.give_back(actions);
    }

    fn carry_out(&mut self, flow: FlowIndex, action: PolicyAction) {
        let now = self.clock.now();
        match action {
            PolicyAction::Open(OpenConnection { copy, .. }) => {
                if let Some(id) = self.hosts.find(self.flows.head(flow), copy) {
                    self.wake_sender(id);
                }
            }
            PolicyAction::Confirm => {
                if self.flows.note_acknowledged(flow, now) {
                    self.signal_flow_end(flow, Signal::Acknowledged);
                }
            }
            PolicyAction::AbandonOthers { but } => self.abandon_others(flow, but),
            PolicyAction::WakeAt(time) => {
                self.starts.ask_at(time, flow);
                self.tally.trace(|observer| observer.policy_timer_armed(now, flow));
                self.schedule_start();
            }
        }
    }

    /// Gives a copy a connection, in the place of its number among its flow's; a later piece comes
    /// before an earlier.
    pub(super) fn admit_copy(&mut self, flow: FlowIndex, open: &OpenConnection) -> ConnectionId {
        let asked = self.flows.flow(flow);
        let profile = self.foresight.profile(asked);
        let transport = self.hosts.transport(profile);
        let carried = FlowContext { flow: asked, index: flow, profile, transport };
        let links = self.flows.hops(flow);
        // The application of a flow that has ended has gone.
        let closed = self.flows.winner(flow).is_some();
        let opening = NewConnection::copy(carried, open, links, self.scenario.seed);
        let id = self.admit(NewConnection { closed, ..opening });
        let chains = self.hosts.insert(self.flows.chains(flow), id);
        self.flows.set_chains(flow, chains);
        id
    }

    /// Gives a connection a place among those of the hosts and a timer.
    pub(super) fn admit(&mut self, opening: NewConnection) -> ConnectionId {
        let (host, flow) = (opening.key.src(), opening.flow);
        let id = self.hosts.admit(opening);
        self.clock.admit(id, host);
        self.tally.trace(|observer| {
            let ReplicationPlan { copies, piece, .. } =
                self.scenario.scheme.replicate.replication_plan(self.flows.flow(flow).bytes);
            let profile = self.hosts.sender_profile(id);
            let one_path = !profile.is_multipath && !profile.has_entropy;
            let alone = copies == 1 && piece.is_none() && one_path;
            let orderly = alone && self.fabric.keeps_order();
            observer.connection_opens(self.clock.now(), id, flow, orderly);
        });
        self.tell_timer(id);
        id
    }

    /// The handshake of a connection is complete at its sender.
    pub(super) fn on_established(&mut self, id: ConnectionId) {
        if self.hosts.sender_profile(id).is_multipath {
            self.manage(id, subflow::SubflowEvent::Established);
        }
        let &ConnectionInfo { flow, copy, .. } = self.hosts.sender_info(id);
        self.flows.note_established(flow, self.clock.now());
        self.run_policy(flow, PolicyEvent::Established { copy });
    }

    /// The last byte that a connection carries has arrived in order.
    pub(super) fn on_received(&mut self, id: ConnectionId) {
        let &ConnectionInfo { flow, copy, .. } = self.hosts.receiver_info(id);
        let answers = self.flows.receive(flow, copy);
        for &answer in &answers {
            match answer {
                ReceiverAction::Finish { .. } => self.finish_flow(flow),
                ReceiverAction::ResetOthers { but } => self.reset_others(flow, but),
            }
        }
        self.flows.give_back_answers(answers);
    }

    /// The last byte of a flow has arrived.
    fn finish_flow(&mut self, flow: FlowIndex) {
        let now = self.clock.now();
        self.flows.note_received(flow, now);
        self.tally.trace(|observer| observer.flow_finishes(now, flow));
        self.signal_flow_end(flow, Signal::Received);
    }

    /// The sender of a connection knows that every byte has arrived, and whether on no other one
    /// before.
    pub(super) fn on_acknowledged(&mut self, id: ConnectionId, first: bool) {
        let &ConnectionInfo { flow, copy, .. } = self.hosts.sender_info(id);
        self.run_policy(flow, PolicyEvent::Acknowledged { copy, first });
    }

    /// The receiving host resets the flow's connections but one.
    fn reset_others(&mut self, flow: FlowIndex, but: u8) {
        let mut at = self.flows.chains(flow).receiving;
        while let Some(other) = at {
            at = self.hosts.after_at_receiver(other);
            if self.hosts.receiver_info(other).copy != but {
                self.hosts.receiver_mut(other).reset();
                self.flush_receiver(other);
                self.retire_if_over(other);
            }
        }
    }

    /// The sending application gives up the flow's connections but one.
    fn abandon_others(&mut self, flow: FlowIndex, but: u8) {
        let mut at = self.flows.head(flow);
        while let Some(other) = at {
            at = self.hosts.after(other);
            if self.hosts.sender_info(other).copy != but && !self.hosts.sender(other).finished() {
                self.hosts.sender_mut(other).abort();
                self.flush_sender(other);
                self.retire_if_over(other);
            }
        }
    }
}
