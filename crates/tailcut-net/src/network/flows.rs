//! The life of a flow at its hosts: when it starts, what its replication policy asks for, and what is known of it.

use std::cmp::Reverse;

use super::alone::{Carriers, Ways};
use super::clock::Due;
use super::endpoints::{Connection, NO_CONNECTION};
use super::profile::Kind;
use super::receiver::Receiver;
use super::sender::Sender;
use super::Network;
use crate::balance::ecmp;
use crate::measure::Observer;
use crate::packet::{FlowKey, FIRST_SOURCE_PORT, SERVICE_PORT, SOURCE_PORTS};
use crate::replicate::machine::{Action, Carried, Event, Open, View};
use crate::traffic::demand::Signal;
use crate::traffic::Flow;
use crate::transport::spread::{self as subflow, Manage};
use crate::transport::TransportSpec;
use tailcut_engine::Time;

/// The source port of a subflow, which gives it a path of its own; other connections have that of the first.
pub(super) fn source_port(flow: u64, subflow: u8) -> u16 {
    // Far apart, and never twice for 60 subflows.
    FIRST_SOURCE_PORT + ((flow + u64::from(subflow) * 997) % SOURCE_PORTS) as u16
}

/// What the packets of a connection of a flow go by.
pub(super) fn key_of(flow: &Flow, copy: u8, piece: u64) -> FlowKey {
    let port = FIRST_SOURCE_PORT + ((flow.id + piece) % SOURCE_PORTS) as u16;
    FlowKey::new(flow.src, flow.dst, port, SERVICE_PORT + u16::from(copy))
}

/// What is known of a flow so far.
pub(super) struct FlowState {
    pub flow: Flow,
    /// Head of the chain of live connections.
    pub connections: u32,
    /// Manages its subflows, while there are any.
    pub manager: Option<Box<dyn Manage>>,
    pub copies: u8,
    /// What replication remembers of it.
    pub carried: Carried,
    pub connect: Option<Time>,
    pub fct: Option<Time>,
    pub fct_ack: Option<Time>,
    pub ideal_fct: Time,
    pub ideal_fct_ack: Time,
    pub hops: u8,
    pub shared_hops: Option<u8>,
    pub data_packets: u64,
    pub retransmissions: u64,
    pub timeouts: u32,
    pub fast_recoveries: u32,
    pub needless_retransmissions: u64,
    pub recoveries_undone: u32,
    pub delivered_in_arrivals: u64,
}

impl FlowState {
    pub fn new(flow: &Flow) -> FlowState {
        FlowState {
            flow: *flow,
            connections: NO_CONNECTION,
            manager: None,
            copies: 0,
            carried: Carried::default(),
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

    /// Adds what one connection has done, and what of it in vain.
    pub fn absorb(&mut self, sender: &Sender, receiver: &Receiver) {
        let done = sender.counters();
        self.data_packets += done.data_packets;
        self.retransmissions += done.retransmissions;
        self.timeouts += done.timeouts;
        self.fast_recoveries += done.fast_recoveries;
        self.recoveries_undone += done.recoveries_undone;
        self.needless_retransmissions += receiver.duplicates();
    }
}

impl<O: Observer> Network<'_, O> {
    /// Starts every flow that is due, and comes back for the next.
    pub(super) fn start_flows(&mut self) {
        while let Some(state) = self.flows[..self.listed_flows].get(self.next_flow) {
            if state.flow.start > self.now {
                break;
            }
            self.start(self.next_flow as u32);
            self.next_flow += 1;
        }
        while let Some(index) = self.driver.as_mut().and_then(|driver| driver.take(self.now)) {
            self.flows[index as usize].flow.start = self.now;
            self.start(index);
        }
        while let Some(&Reverse((time, index))) = self.flow_timers.peek() {
            if time > self.now {
                break;
            }
            self.flow_timers.pop();
            self.react(index, Event::Timer);
        }
        self.schedule_start();
    }

    /// When the next flow starts, as far as that is known.
    pub(super) fn next_start(&self) -> Option<Time> {
        let listed = self.flows[..self.listed_flows].get(self.next_flow).map(|s| s.flow.start);
        let driven = self.driver.as_ref().and_then(|driver| driver.next());
        listed.into_iter().chain(driven).min()
    }

    /// Makes sure that the next flow starts when it should, and the next timer of a flow fires.
    pub(super) fn schedule_start(&mut self) {
        let timer = self.flow_timers.peek().map(|Reverse((time, _))| *time);
        if let Some(time) = self.next_start().into_iter().chain(timer).min() {
            self.clock.move_to(Due::Flows, time);
        }
    }

    /// A flow is over, as far as `signal` says: others may have waited for it.
    pub(super) fn drive(&mut self, index: u32, signal: Signal) {
        if let Some(driver) = &mut self.driver {
            driver.on_finished(index, signal, self.now);
            self.schedule_start();
        }
    }

    fn start(&mut self, index: u32) {
        if let Some(driver) = &mut self.driver {
            driver.on_start(index, self.now);
        }
        let profile = self.foresee(index);
        match &self.profiles[usize::from(profile)].kind {
            Kind::Spread(spread) => self.open_first_subflow(index, profile, &**spread),
            _ => self.react(index, Event::Started),
        }
    }

    /// What is known of a flow before its first packet, and the number of the transport that carries it.
    pub(super) fn foresee(&mut self, index: u32) -> u8 {
        let flow = self.flows[index as usize].flow;
        let profile = self.profile_number(&flow);
        let carriage = self.scenario.scheme.replicate.policy().carriage(flow.bytes);
        let second = carriage.copies > 1 && self.scenario.scheme.balance.keeps_paths();
        self.describe_path(index, key_of(&flow, 0, 0), second.then(|| key_of(&flow, 1, 0)));
        self.foretell(index, &Carriers { profile, carriage });
        profile
    }

    /// Lets the replication policy answer an event of a flow.
    fn react(&mut self, index: u32, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        let FlowState { flow, carried, .. } = &mut self.flows[index as usize];
        self.policy.on(event, View { flow, carried, now: self.now }, &mut actions);
        // A flow's chain is built from its end, and opened from its start.
        for action in actions.iter().rev() {
            if let Action::Open(open) = action {
                self.admit_copy(index, open);
            }
        }
        for action in actions.drain(..) {
            self.carry_out(index, action);
        }
        self.actions = actions;
    }

    fn carry_out(&mut self, index: u32, action: Action) {
        match action {
            Action::Open(Open { copy, .. }) => {
                if let Some(id) = self.connection_of(index, copy) {
                    self.wake(id);
                }
            }
            Action::Finish { .. } => {
                let state = &mut self.flows[index as usize];
                state.fct = Some(self.now - state.flow.start);
                self.finished_flows += 1;
                self.drive(index, Signal::Received);
            }
            Action::Confirm => {
                let state = &mut self.flows[index as usize];
                if state.fct_ack.replace(self.now - state.flow.start).is_none() {
                    self.drive(index, Signal::Acknowledged);
                }
            }
            Action::ResetOthers { but } => self.reset_others(index, but),
            Action::AbandonOthers { but } => self.abandon_others(index, but),
            Action::WakeAt(time) => {
                self.flow_timers.push(Reverse((time, index)));
                self.schedule_start();
            }
        }
    }

    /// Gives a copy a connection, in the place of its number among its flow's; a later piece comes before an earlier.
    fn admit_copy(&mut self, index: u32, open: &Open) {
        let state = &self.flows[index as usize];
        let (flow, over) = (state.flow, state.carried.winner.is_some());
        let number = self.profile_number(&flow);
        let profile = &self.profiles[usize::from(number)];
        let mut sender = Sender::new(profile, open.bytes, open.at);
        sender.set_links(state.hops);
        let key = key_of(&flow, open.copy, open.piece);
        let mut connection = Connection::new(key, index, open.copy, (number, profile), sender);
        connection.from = open.from;
        // The application of a flow that has ended has gone.
        connection.receiver.closed = over;
        let mut before = NO_CONNECTION;
        let mut after = state.connections;
        while after != NO_CONNECTION && self.connections[after as usize].copy < open.copy {
            (before, after) = (after, self.connections[after as usize].sibling);
        }
        connection.sibling = after;
        let id = self.admit(connection);
        match before {
            NO_CONNECTION => self.flows[index as usize].connections = id,
            before => self.connections[before as usize].sibling = id,
        }
    }

    /// The latest connection of a copy.
    pub(super) fn connection_of(&self, index: u32, copy: u8) -> Option<u32> {
        let mut id = self.flows[index as usize].connections;
        while id != NO_CONNECTION && self.connections[id as usize].copy != copy {
            id = self.connections[id as usize].sibling;
        }
        (id != NO_CONNECTION).then_some(id)
    }

    /// The transport that carries a flow, by its number.
    fn profile_number(&self, flow: &Flow) -> u8 {
        match &self.scenario.scheme.transport {
            TransportSpec::Mixed(mixed) => mixed.choose(flow, self.scenario.seed) as u8,
            _ => 0,
        }
    }

    /// Bytes that a connection carries: all of its flow's, or a piece of them.
    pub(super) fn carries(&self, connection: &Connection) -> u64 {
        let profile = self.profile(connection);
        if profile.spreads {
            return self.flows[connection.flow as usize].flow.bytes;
        }
        let last = connection.sender.segments() - 1;
        u64::from(last) * profile.tcp.mss.0 + connection.sender.payload(profile, last)
    }

    /// What the receiver has acknowledged of a flow, by its first connection or its latest piece; none by others.
    pub(super) fn acknowledged(&self, id: u32) -> Option<u64> {
        let connection = &self.connections[id as usize];
        let latest = || self.connection_of(connection.flow, 0) == Some(id);
        if !connection.live || connection.copy != 0 || !latest() {
            return None;
        }
        let here = u64::from(connection.sender.una()) * self.profile(connection).tcp.mss.0;
        Some(connection.from + here)
    }

    /// Gives a connection a slot, preferably a used one.
    pub(super) fn admit(&mut self, connection: Connection) -> u32 {
        self.live_connections += 1;
        if let Some(id) = self.vacant.pop() {
            self.connections[id as usize] = connection;
            return id;
        }
        let id = self.connections.len() as u32;
        self.connections.push(connection);
        self.clock.make_room(id + 1);
        id
    }

    /// Path length, and how much of the path two copies share.
    fn describe_path(&mut self, index: u32, first: FlowKey, second: Option<FlowKey>) {
        let (graph, routes) = (&self.scenario.graph, self.fabric.routes());
        let path = ecmp::path(graph, routes, first);
        let shared = second.map(|key| {
            let other = ecmp::path(graph, routes, key);
            let inner = 1..path.len().saturating_sub(1);
            u8::try_from(path[inner].iter().filter(|port| other.contains(port)).count())
                .unwrap_or(u8::MAX)
        });
        let state = &mut self.flows[index as usize];
        state.hops = u8::try_from(path.len()).unwrap_or(u8::MAX);
        state.shared_hops = shared;
    }

    /// The best possible completion time.
    fn foretell(&mut self, index: u32, carriers: &Carriers) {
        let state = &mut self.flows[index as usize];
        let ways = Ways { graph: &self.scenario.graph, routes: self.fabric.whole_routes() };
        (state.ideal_fct, state.ideal_fct_ack) =
            self.alone.completion(ways, self.profiles, &state.flow, carriers);
    }

    /// The handshake of a connection is complete at its sender.
    pub(super) fn on_established(&mut self, id: u32) {
        if self.profile(&self.connections[id as usize]).spreads {
            self.manage(id, subflow::Event::Established);
        }
        let Connection { flow, copy, .. } = self.connections[id as usize];
        let state = &mut self.flows[flow as usize];
        state.connect.get_or_insert(self.now - state.flow.start);
        self.react(flow, Event::Established { copy });
    }

    /// The last byte that a connection carries has arrived in order.
    pub(super) fn on_received(&mut self, id: u32) {
        let Connection { flow, copy, .. } = self.connections[id as usize];
        self.react(flow, Event::Received { copy });
    }

    /// The sender of a connection knows that every byte has arrived.
    pub(super) fn on_acknowledged(&mut self, id: u32) {
        let Connection { flow, copy, .. } = self.connections[id as usize];
        self.react(flow, Event::Acknowledged { copy });
    }

    /// The receiving host resets the flow's connections but one.
    fn reset_others(&mut self, index: u32, but: u8) {
        let mut other = self.flows[index as usize].connections;
        while other != NO_CONNECTION {
            let Connection { sibling: next, copy, .. } = self.connections[other as usize];
            if copy != but {
                self.reset_by_receiver(other);
            }
            other = next;
        }
    }

    /// The sending application gives up the flow's connections but one.
    fn abandon_others(&mut self, index: u32, but: u8) {
        let mut other = self.flows[index as usize].connections;
        while other != NO_CONNECTION {
            let Connection { sibling: next, copy, ref mut sender, .. } =
                self.connections[other as usize];
            if copy != but && !sender.finished() {
                sender.abort();
                self.pump(other);
                self.retire_if_over(other);
            }
            other = next;
        }
    }

    /// The arrivals have ended: notes what each flow has delivered, in order, on the connection that has got furthest.
    pub(super) fn note_deliveries(&mut self) {
        for index in 0..self.flows.len() {
            let state = &self.flows[index];
            let mut delivered = if state.fct.is_some() { state.flow.bytes } else { 0 };
            let mut at = state.connections;
            while at != NO_CONNECTION && delivered < state.flow.bytes {
                let connection = &self.connections[at as usize];
                let next = match &state.manager {
                    Some(manager) => manager.received().0,
                    None => connection.receiver.next(),
                };
                let here = u64::from(next) * self.profile(connection).tcp.mss.0;
                let bytes = connection.from + here.min(self.carries(connection));
                delivered = delivered.max(bytes);
                at = connection.sibling;
            }
            self.flows[index].delivered_in_arrivals = delivered;
        }
    }

    /// Takes a connection out of its flow's chain and adds up what it did.
    pub(super) fn leave_flow(&mut self, id: u32) {
        let connection = &self.connections[id as usize];
        let (index, after) = (connection.flow as usize, connection.sibling);
        let state = &mut self.flows[index];
        state.absorb(&connection.sender, &connection.receiver);
        if state.connections == id {
            state.connections = after;
            if after == NO_CONNECTION {
                state.manager = None;
            }
            return;
        }
        let mut at = state.connections;
        while self.connections[at as usize].sibling != id {
            at = self.connections[at as usize].sibling;
        }
        self.connections[at as usize].sibling = after;
    }
}
