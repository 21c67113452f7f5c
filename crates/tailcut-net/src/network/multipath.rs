//! Flows over several subflows: what their managers ask for, done.

use super::endpoints::{Connection, NO_CONNECTION};
use super::flows::source_port;
use super::profile::Profile;
use super::sender::Sender;
use super::Network;
use crate::measure::Observer;
use crate::packet::{FlowKey, FIRST_SOURCE_PORT, SERVICE_PORT};
use crate::traffic::demand::Signal;
use crate::transport::spread::{Action, Event, Open, Seen, Spread, View};
use crate::transport::tcp::{self, Close, Congestion, Coupled};
use crate::transport::{DataAck, Mapping};

impl<O: Observer> Network<'_, O> {
    /// The first subflow of a flow, and its manager.
    pub(super) fn open_first_subflow(&mut self, index: u32, profile: u8, spread: &dyn Spread) {
        let flow = self.flows[index as usize].flow;
        let manager = spread.manager(&flow, self.scenario.seed);
        let first = manager.first();
        self.flows[index as usize].manager = Some(manager);
        self.open_subflow(index, profile, first);
    }

    fn open_subflow(&mut self, index: u32, profile: u8, open: Open) {
        let Open { copy, coupled, bears_all_paths } = open;
        let flow = self.flows[index as usize].flow;
        let number = profile;
        let profile = &self.profiles[usize::from(number)];
        let mut sender = tcp::Sender::open_ended(&profile.tcp, self.now);
        if coupled {
            sender.set_congestion(Congestion::Coupled(Coupled::default()));
        }
        if bears_all_paths {
            let paths = self.fabric.shortest_paths(&self.scenario.graph, flow.src, flow.dst);
            let reordering = if paths > 1 { paths } else { 0 };
            sender.set_dupack_threshold(reordering.saturating_add(3));
        }
        let key = FlowKey::new(flow.src, flow.dst, source_port(flow.id, copy), SERVICE_PORT);
        let mut connection =
            Connection::new(key, index, copy, (number, profile), Sender::Tcp(sender));
        connection.sibling = self.flows[index as usize].connections;
        let id = self.admit(connection);
        self.flows[index as usize].connections = id;
        self.wake(id);
    }

    /// Lets the manager of a flow answer an event of one of its subflows.
    pub(super) fn manage(&mut self, id: u32, event: Event) {
        let connection = &self.connections[id as usize];
        let state = &mut self.flows[connection.flow as usize];
        let (Some(manager), Some(sender)) = (&mut state.manager, connection.sender.tcp()) else {
            return;
        };
        let (connections, head) = (&self.connections, state.connections);
        let look = |copy: u8| {
            let mut at = head;
            while at != NO_CONNECTION && connections[at as usize].copy != copy {
                at = connections[at as usize].sibling;
            }
            let found = connections.get(at as usize)?;
            found.sender.tcp().map(Seen::of)
        };
        let mut actions = std::mem::take(&mut self.subflow_actions);
        let view = View { copy: connection.copy, seen: Seen::of(sender), look: &look };
        manager.on(event, view, &mut actions);
        if !actions.is_empty() {
            self.carry_out_all(id, &mut actions);
        }
        self.subflow_actions = actions;
    }

    #[cold]
    fn carry_out_all(&mut self, id: u32, actions: &mut Vec<Action>) {
        let Connection { flow, profile, .. } = self.connections[id as usize];
        for action in actions.drain(..) {
            match action {
                Action::Open(open) => self.open_subflow(flow, profile, open),
                Action::PumpOthers => self.pump_others(id),
                Action::Close => self.close_subflows(flow, id),
            }
        }
    }

    /// Before an acknowledgement: how much the coupling lets this subflow's window grow by it.
    pub(super) fn couple(&mut self, id: u32) {
        let connection = &mut self.connections[id as usize];
        let Sender::Tcp(sender) = &mut connection.sender else { return };
        if sender.cwnd() < sender.ssthresh() {
            return;
        }
        if let Some(manager) = &self.flows[connection.flow as usize].manager {
            sender.couple(manager.growth());
        }
    }

    /// Receiving end: a packet with data has arrived. True when it was the last of the flow.
    pub(super) fn note_data(&mut self, id: u32, options: u32) -> bool {
        let number = self.options.number(options);
        let state = &mut self.flows[self.connections[id as usize].flow as usize];
        let Some((manager, number)) = state.manager.as_mut().zip(number) else { return false };
        manager.on_data(number)
    }

    /// Receiving end: what an acknowledgement says of the data, and whether it ends the connection.
    pub(super) fn data_ack(&self, id: u32) -> Option<DataAck> {
        let connection = &self.connections[id as usize];
        let state = &self.flows[connection.flow as usize];
        let manager = state.manager.as_ref()?;
        let here = state.carried.winner.is_none_or(|winner| winner == connection.copy);
        let (number, all) = manager.received();
        Some(DataAck { number, complete: all && here })
    }

    /// What a segment of a subflow carries of the data, and what its packet goes by.
    pub(super) fn subflow_segment(&mut self, id: u32, seq: u32) -> (Option<Mapping>, FlowKey) {
        let &Connection { copy, key, flow, .. } = &self.connections[id as usize];
        let Some(manager) = &mut self.flows[flow as usize].manager else { return (None, key) };
        let carries = manager.carries(copy, seq);
        let mapping =
            Mapping { number: carries.number, payload: carries.payload, last: carries.last };
        let scattered =
            |port| FlowKey::new(key.src(), key.dst(), FIRST_SOURCE_PORT + port, key.dport());
        (Some(mapping), carries.scattered.map_or(key, scattered))
    }

    fn pump_others(&mut self, id: u32) {
        let mut other = self.flows[self.connections[id as usize].flow as usize].connections;
        while other != NO_CONNECTION {
            let next = self.connections[other as usize].sibling;
            if other != id {
                self.pump(other);
            }
            other = next;
        }
    }

    /// Hands a subflow the data that its window has room for, one segment at a time.
    pub(super) fn hand_out(&mut self, id: u32, profile: &Profile) {
        let connection = &mut self.connections[id as usize];
        let Sender::Tcp(sender) = &mut connection.sender else { return };
        let Some(manager) = &mut self.flows[connection.flow as usize].manager else { return };
        if !sender.has_room(&profile.tcp, manager.likely()) {
            return;
        }
        let mut actions = vec![];
        let Some(payload) = manager.assign(connection.copy, &mut actions) else { return };
        sender.extend(&profile.tcp, payload);
        if !actions.is_empty() {
            self.carry_out_all(id, &mut actions);
        }
    }

    /// The sender knows that all data has arrived. The subflow that heard of it closes as TCP does; the others are reset
    /// by a packet each (MP_FASTCLOSE of RFC 8684), unless nothing is ever sent after the last ACK.
    fn close_subflows(&mut self, index: u32, id: u32) {
        let state = &mut self.flows[index as usize];
        let mut other = state.connections;
        if state.fct_ack.is_none() {
            state.fct_ack = Some(self.now - state.flow.start);
            self.drive(index, Signal::Acknowledged);
        }
        while other != NO_CONNECTION {
            let next = self.connections[other as usize].sibling;
            let silent = self.profile(&self.connections[other as usize]).tcp.close == Close::None;
            if let Sender::Tcp(sender) = &mut self.connections[other as usize].sender {
                if sender.outstanding() == 0 && (other == id || silent) {
                    sender.finish();
                }
                if !sender.finished() {
                    sender.abort();
                }
            }
            if other != id {
                self.pump(other);
                self.retire_if_over(other);
            }
            other = next;
        }
    }
}
