//! The life of a flow: its connections, who wins, what becomes of the others.

use super::alone::Carriers;
use super::endpoints::{Connection, NO_CONNECTION};
use super::multipath::Spread;
use super::profile::Kind;
use super::sender::Sender;
use super::{Entities, Network};
use crate::measure::Observer;
use crate::packet::FlowKey;
use crate::replicate::repflow::Loser;
use crate::replicate::ReplicateSpec;
use crate::traffic::demand::Signal;
use crate::traffic::Flow;
use crate::transport::tcp::Receiver;
use crate::transport::TransportSpec;
use tailcut_engine::Time;

/// Port on which every receiving application listens; copy n of a flow goes to the n-th port after it.
/// These and the source ports enter the ECMP hash; they are those of the ns-3 scenarios that runs are held against.
pub(crate) const SERVICE_PORT: u16 = 5000;
/// Source ports of flow n: the (n modulo `SOURCE_PORTS`)-th from here.
pub(crate) const FIRST_SOURCE_PORT: u16 = 1024;
pub(super) const SOURCE_PORTS: u64 = 60_000;

/// The source port of a subflow, which gives it a path of its own; other connections have that of the first.
pub(super) fn source_port(flow: u64, subflow: u8) -> u16 {
    // Far apart, and never twice for 60 subflows.
    FIRST_SOURCE_PORT + ((flow + u64::from(subflow) * 997) % SOURCE_PORTS) as u16
}

/// What is known of a flow so far.
pub(super) struct FlowState {
    pub flow: Flow,
    /// Head of the chain of live connections.
    pub connections: u32,
    /// What the subflows share, while there are any.
    pub multipath: Option<Box<Spread>>,
    pub copies: u8,
    pub winner: Option<u8>,
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
    /// Bytes given to connections; fewer than the flow has while pieces of it wait for their turn.
    pub handed: u64,
    /// An edge switch has taken it for an elephant.
    pub detected: bool,
    pub delivered_in_arrivals: u64,
}

impl FlowState {
    pub fn new(flow: &Flow) -> FlowState {
        FlowState {
            flow: *flow,
            connections: NO_CONNECTION,
            multipath: None,
            copies: 0,
            winner: None,
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
            handed: flow.bytes,
            detected: false,
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
        self.schedule_start();
    }

    /// When the next flow starts, as far as that is known.
    pub(super) fn next_start(&self) -> Option<Time> {
        let listed = self.flows[..self.listed_flows].get(self.next_flow).map(|s| s.flow.start);
        let driven = self.driver.as_ref().and_then(|driver| driver.next());
        listed.into_iter().chain(driven).min()
    }

    /// Makes sure that the next flow starts when it should.
    pub(super) fn schedule_start(&mut self) {
        if let Some(time) = self.next_start() {
            self.agenda.reschedule(Entities::of(&self.fabric).arrivals, time);
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
        let flow = self.flows[index as usize].flow;
        if let Some(driver) = &mut self.driver {
            driver.on_start(index, self.now);
        }
        let (copies, delay) = match &self.scenario.scheme.replicate {
            ReplicateSpec::Repflow(p) if flow.bytes <= p.threshold.0 => (p.copies, p.copy_delay),
            ReplicateSpec::Repsyn(p) if flow.bytes <= p.threshold.0 => (p.copies, p.copy_delay),
            _ => (1, Time::ZERO),
        };
        let source_port = source_port(flow.id, 0);
        let profile = self.profile_number(&flow);
        let key =
            |copy: u32| FlowKey::new(flow.src, flow.dst, source_port, SERVICE_PORT + copy as u16);
        let second = copies > 1 && self.scenario.scheme.balance.keeps_paths();
        self.describe_path(index, key(0), second.then(|| key(1)));
        let split = self.piece_of(flow.bytes).is_some();
        self.foretell(index, &Carriers { profile, copies, delay, split });
        if let Kind::Multipath(paths) = &self.profiles[usize::from(profile)].kind {
            self.open_first_subflow(index, profile, paths);
            return;
        }
        if split {
            self.flows[index as usize].handed = 0;
            self.open_piece(index);
            return;
        }
        // The chain is built from its end, and opened from its start.
        let mut opened = vec![];
        for copy in (0..copies).rev() {
            let at = flow.start + Time(delay.0 * u64::from(copy));
            let sender = Sender::new(&self.profiles[usize::from(profile)], flow.bytes, at);
            let mut connection = Connection::new(key(copy), index, copy as u8, profile, sender);
            connection.sibling = self.flows[index as usize].connections;
            let id = self.admit(connection);
            self.flows[index as usize].connections = id;
            opened.push(id);
        }
        for id in opened.into_iter().rev() {
            self.wake(id);
        }
    }

    /// The transport that carries a flow, by its number.
    fn profile_number(&self, flow: &Flow) -> u8 {
        match &self.scenario.scheme.transport {
            TransportSpec::Mixed(mixed) => mixed.choose(flow, self.scenario.seed) as u8,
            _ => 0,
        }
    }

    /// Bytes of each piece of a flow that its application splits.
    fn piece_of(&self, bytes: u64) -> Option<u64> {
        match &self.scenario.scheme.replicate {
            ReplicateSpec::Split(split) => split.applies(bytes).then_some(split.piece.0),
            _ => None,
        }
    }

    /// Bytes that a connection carries: all of its flow's, or a piece of them.
    pub(super) fn carries(&self, connection: &Connection) -> u64 {
        let bytes = self.flows[connection.flow as usize].flow.bytes;
        if self.piece_of(bytes).is_none() {
            return bytes;
        }
        let (profile, last) = (self.profile(connection), connection.sender.segments() - 1);
        u64::from(last) * profile.tcp.mss.0 + connection.sender.payload(profile, last)
    }

    /// What the receiver has acknowledged of a flow, by its first connection or its latest piece; none by others.
    pub(super) fn acknowledged(&self, id: u32) -> Option<u64> {
        let connection = &self.connections[id as usize];
        let state = &self.flows[connection.flow as usize];
        if !connection.live || connection.copy != 0 {
            return None;
        }
        let here = u64::from(connection.sender.una()) * self.profile(connection).tcp.mss.0;
        match self.piece_of(state.flow.bytes) {
            None => Some(here),
            Some(_) if state.connections != id => None,
            Some(_) => Some(state.handed - self.carries(connection) + here),
        }
    }

    /// Opens the connection of the next piece of a split flow: the source port is its number.
    fn open_piece(&mut self, index: u32) {
        let state = &self.flows[index as usize];
        let (flow, before) = (state.flow, state.handed);
        let Some(piece) = self.piece_of(flow.bytes) else { return };
        let bytes = piece.min(flow.bytes - before);
        let port = FIRST_SOURCE_PORT + ((flow.id + before / piece) % SOURCE_PORTS) as u16;
        let key = FlowKey::new(flow.src, flow.dst, port, SERVICE_PORT);
        let profile = self.profile_number(&flow);
        let sender = Sender::new(&self.profiles[usize::from(profile)], bytes, self.now);
        let mut connection = Connection::new(key, index, 0, profile, sender);
        connection.sibling = self.flows[index as usize].connections;
        let id = self.admit(connection);
        let state = &mut self.flows[index as usize];
        state.handed += bytes;
        state.connections = id;
        self.wake(id);
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
        let entity = Entities::of(&self.fabric).connections + id;
        self.agenda.grow_to(entity as usize + 1);
        id
    }

    /// Path length, and how much of the path two copies share.
    fn describe_path(&mut self, index: u32, first: FlowKey, second: Option<FlowKey>) {
        let path = self.fabric.path(&self.fabric.routes, first);
        let shared = second.map(|key| {
            let other = self.fabric.path(&self.fabric.routes, key);
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
        let routes = self.incidents.whole().unwrap_or(&self.fabric.routes);
        (state.ideal_fct, state.ideal_fct_ack) =
            self.alone.completion(&self.fabric, routes, self.profiles, &state.flow, carriers);
    }

    /// The handshake of a connection is complete at its sender.
    pub(super) fn on_established(&mut self, id: u32) {
        if self.profile(&self.connections[id as usize]).spreads {
            self.on_subflow_established(id);
        }
        let index = self.connections[id as usize].flow as usize;
        if self.flows[index].connect.is_some() {
            return;
        }
        self.flows[index].connect = Some(self.now - self.flows[index].flow.start);
        if matches!(self.scenario.scheme.replicate, ReplicateSpec::Repsyn(_)) {
            self.abort_siblings(id);
        }
    }

    /// The last byte of a flow has arrived in order on one of its connections.
    pub(super) fn on_received(&mut self, id: u32) {
        let (index, copy) = {
            let connection = &self.connections[id as usize];
            (connection.flow as usize, connection.copy)
        };
        let state = &mut self.flows[index];
        if state.fct.is_some() || state.handed < state.flow.bytes {
            return;
        }
        state.fct = Some(self.now - state.flow.start);
        state.winner = Some(copy);
        self.finished_flows += 1;
        self.drive(index as u32, Signal::Received);
        if self.cancels_losers() {
            let mut other = self.flows[index].connections;
            while other != NO_CONNECTION {
                let next = self.connections[other as usize].sibling;
                if other != id {
                    self.reset_by_receiver(other);
                }
                other = next;
            }
        }
    }

    /// The sender of a connection knows that every byte has arrived.
    pub(super) fn on_acknowledged(&mut self, id: u32) {
        let connection = &self.connections[id as usize];
        let index = connection.flow;
        let state = &mut self.flows[index as usize];
        if state.handed < state.flow.bytes {
            self.open_piece(index);
            return;
        }
        if state.winner == Some(connection.copy) {
            if state.fct_ack.replace(self.now - state.flow.start).is_none() {
                self.drive(index, Signal::Acknowledged);
            }
            if self.cancels_losers() {
                self.abort_siblings(id);
            }
        }
    }

    fn cancels_losers(&self) -> bool {
        match &self.scenario.scheme.replicate {
            ReplicateSpec::Repflow(p) => p.loser == Loser::Reset,
            ReplicateSpec::Repsyn(_) => true,
            ReplicateSpec::None | ReplicateSpec::Split(_) => false,
        }
    }

    /// The sending application gives up every other connection of the flow.
    fn abort_siblings(&mut self, id: u32) {
        let mut other = self.flows[self.connections[id as usize].flow as usize].connections;
        while other != NO_CONNECTION {
            let next = self.connections[other as usize].sibling;
            if other != id && !self.connections[other as usize].sender.finished() {
                self.connections[other as usize].sender.abort();
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
                let next = match &state.multipath {
                    Some(spread) => spread.data.data_ack(),
                    None => connection.receiver.next(),
                };
                let here = u64::from(next) * self.profile(connection).tcp.mss.0;
                // Of a split flow, what earlier pieces have carried comes before the first connection, the latest piece.
                let carries = self.carries(connection);
                let bytes = (state.handed - carries) + here.min(carries);
                delivered = delivered.max(bytes);
                if self.piece_of(state.flow.bytes).is_some() {
                    break;
                }
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
                state.multipath = None;
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
