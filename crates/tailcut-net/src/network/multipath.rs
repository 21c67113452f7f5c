//! Flows over several subflows: opening and closing them, handing out data, coupling their windows.

use tailcut_engine::Stream;

use super::endpoints::{Connection, NO_CONNECTION};
use super::flows::{source_port, FIRST_SOURCE_PORT, SERVICE_PORT, SOURCE_PORTS};
use super::profile::{Kind, Paths, Profile};
use super::sender::Sender;
use super::Network;
use crate::measure::Observer;
use crate::packet::FlowKey;
use crate::traffic::demand::Signal;
use crate::transport::mmptcp::{ScatterThreshold, Switch};
use crate::transport::mptcp::{Multipath, Phase, SubflowWindow};
use crate::transport::tcp::{self, Close, Congestion, CongestionState, Coupled};
use crate::transport::{segments_of, DataAck, Mapping};

/// What the subflows of a flow share.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    pub data: Multipath,
    /// Source ports of a flow that scatters its packets.
    scatter: Option<Stream>,
}

impl Spread {
    /// The source port of the next packet with data on a subflow, where it is not always the same.
    pub fn scattered_port(&mut self, copy: u8) -> Option<u16> {
        let stream = self.scatter.as_mut().filter(|_| copy == 0)?;
        Some(FIRST_SOURCE_PORT + stream.below(SOURCE_PORTS) as u16)
    }
}

impl<O: Observer> Network<'_, O> {
    /// The first subflow of a flow, and what it will share with others.
    pub(super) fn open_first_subflow(&mut self, index: u32, profile: u8, paths: &Paths) {
        let flow = self.flows[index as usize].flow;
        let Profile { tcp, .. } = &self.profiles[usize::from(profile)];
        let segments = segments_of(flow.bytes, tcp.mss);
        let window = paths.in_segments(tcp.mss.0) as u32;
        let mut data = Multipath::new(segments, window, paths.subflows);
        let mut scatter = None;
        if paths.scatter.is_some() {
            data = data.retire_first();
            scatter = Some(Stream::new(self.scenario.seed, flow.id, "packet-scatter"));
        }
        self.flows[index as usize].multipath = Some(Box::new(Spread { data, scatter }));
        self.open_subflow(index, profile, 0);
    }

    fn open_subflow(&mut self, index: u32, profile: u8, copy: u8) {
        let flow = self.flows[index as usize].flow;
        let Profile { tcp, kind, .. } = &self.profiles[usize::from(profile)];
        let mut sender = tcp::Sender::open_ended(tcp, self.now);
        let scatter = match kind {
            Kind::Multipath(paths) if copy == 0 => paths.scatter.as_ref(),
            _ => None,
        };
        match scatter {
            None => sender.set_congestion(Congestion::Coupled(Coupled::default())),
            Some(scatter) if scatter.dupack_threshold == ScatterThreshold::Topology => {
                let graph = &self.scenario.graph;
                let paths = self.fabric.shortest_paths(graph, flow.src, flow.dst);
                let reordering = if paths > 1 { paths } else { 0 };
                sender.set_dupack_threshold(reordering.saturating_add(3));
            }
            Some(_) => {}
        }
        let key = FlowKey::new(flow.src, flow.dst, source_port(flow.id, copy), SERVICE_PORT);
        let profile = (profile, &self.profiles[usize::from(profile)]);
        let mut connection = Connection::new(key, index, copy, profile, Sender::Tcp(sender));
        connection.sibling = self.flows[index as usize].connections;
        let id = self.admit(connection);
        self.flows[index as usize].connections = id;
        self.wake(id);
    }

    fn open_other_subflows(&mut self, index: u32, profile: u8) {
        let Some(spread) = &mut self.flows[index as usize].multipath else { return };
        spread.data.open_others();
        for copy in 1..spread.data.subflows() as u8 {
            self.open_subflow(index, profile, copy);
        }
    }

    /// A subflow is established.
    pub(super) fn on_subflow_established(&mut self, id: u32) {
        let Connection { flow, profile, copy, .. } = self.connections[id as usize];
        self.note_window(id);
        let scatters = self.profiles[usize::from(profile)].scatter().is_some();
        let Some(spread) = &mut self.flows[flow as usize].multipath else { return };
        match (copy, spread.data.phase()) {
            (0, Phase::Alone) if !scatters => self.open_other_subflows(flow, profile),
            (1.., Phase::Opening) => {
                spread.data.on_joined();
                if let Some(first) = self.connection_of(flow, 0).filter(|_| scatters) {
                    self.reinject_hole(first);
                }
            }
            _ => {}
        }
    }

    /// Before an acknowledgement: how much the coupling lets this subflow's window grow by it.
    pub(super) fn couple(&mut self, id: u32) {
        let connection = &mut self.connections[id as usize];
        let Sender::Tcp(sender) = &mut connection.sender else { return };
        if sender.cwnd() < sender.ssthresh() {
            return;
        }
        let mss = self.profiles[usize::from(connection.profile)].tcp.mss.0;
        if let Some(spread) = &self.flows[connection.flow as usize].multipath {
            sender.couple(spread.data.increase(mss));
        }
    }

    /// After an acknowledgement, with what it says of the data.
    pub(super) fn on_subflow_ack(&mut self, id: u32, data_ack: Option<u32>) {
        let Connection { flow, copy, .. } = self.connections[id as usize];
        let una = self.connections[id as usize].sender.una();
        self.note_window(id);
        let Some(spread) = &mut self.flows[flow as usize].multipath else { return };
        spread.data.on_subflow_ack(copy, una);
        let opened = data_ack.is_some_and(|ack| spread.data.on_data_ack(ack));
        if spread.data.acknowledged() {
            self.close_subflows(flow, id);
            return;
        }
        let drains = copy == 0 && spread.data.drains_first();
        if self.connections[id as usize].sender.counters().fast_recoveries > 0 {
            self.switch_on_congestion(id);
        }
        if drains {
            self.reinject_hole(id);
        }
        if opened {
            self.pump_others(id);
        }
    }

    /// The retransmission timer of an established subflow has expired.
    pub(super) fn on_subflow_timeout(&mut self, id: u32) {
        let Connection { flow, copy, .. } = self.connections[id as usize];
        self.note_window(id);
        self.switch_on_congestion(id);
        let Some(spread) = &mut self.flows[flow as usize].multipath else { return };
        if spread.data.reinject_all(copy) {
            self.pump_others(id);
        }
    }

    /// The coupling looks at windows and round trips; a subflow in recovery counts with its threshold (RFC 6356
    /// section 3), a scattering one not at all.
    fn note_window(&mut self, id: u32) {
        let connection = &self.connections[id as usize];
        let Some(spread) = &mut self.flows[connection.flow as usize].multipath else { return };
        let Some(sender) = connection.sender.tcp() else { return };
        if spread.data.counts(connection.copy) {
            let recovers = sender.state() == CongestionState::Recovery;
            let cwnd = if recovers { sender.ssthresh() } else { sender.cwnd() };
            let rtt = sender.rtt().smoothed().0;
            spread.data.set_window(connection.copy, SubflowWindow { cwnd, rtt });
        }
    }

    /// A flow that scatters goes on over subflows at the first sign of congestion, if that is its strategy: a fast
    /// retransmit or a timeout. A lost SYN is none: no window has been sent that could have been too large.
    fn switch_on_congestion(&mut self, id: u32) {
        let Connection { flow, profile, copy, .. } = self.connections[id as usize];
        let Some(scatter) = self.profiles[usize::from(profile)].scatter() else { return };
        if copy == 0 && matches!(scatter.switch, Switch::Congestion {}) {
            self.switch(flow, profile);
        }
    }

    /// Opens the other subflows of a flow that has data left for them.
    fn switch(&mut self, flow: u32, profile: u8) {
        let Some(spread) = &self.flows[flow as usize].multipath else { return };
        let more = spread.data.assigned() < spread.data.segments();
        if more && spread.data.phase() == Phase::Alone {
            self.open_other_subflows(flow, profile);
        }
    }

    /// A subflow that gets no new data cannot draw enough duplicate ACKs for its last hole. When all that is beyond it must
    /// have arrived, or enough to call it lost, another subflow carries it (compare early retransmit, RFC 5827).
    fn reinject_hole(&mut self, id: u32) {
        let connection = &self.connections[id as usize];
        let (flow, copy) = (connection.flow, connection.copy);
        let Some(sender) = connection.sender.tcp() else { return };
        let beyond = sender.outstanding().saturating_sub(1);
        if sender.duplicates() == 0 || sender.duplicates() < beyond.min(sender.dupack_threshold()) {
            return;
        }
        let Some(spread) = &mut self.flows[flow as usize].multipath else { return };
        if spread.data.reinject_first(copy) {
            self.pump_others(id);
        }
    }

    /// Receiving end: a packet with data has arrived. True when it was the last of the flow.
    pub(super) fn note_data(&mut self, id: u32, options: u32) -> bool {
        let number = self.options.number(options);
        let state = &mut self.flows[self.connections[id as usize].flow as usize];
        let Some((spread, number)) = state.multipath.as_mut().zip(number) else { return false };
        let complete_before = spread.data.complete();
        spread.data.on_segment(number) && !complete_before
    }

    /// Receiving end: what an acknowledgement says of the data, and whether it ends the connection.
    pub(super) fn data_ack(&self, id: u32) -> Option<DataAck> {
        let connection = &self.connections[id as usize];
        let state = &self.flows[connection.flow as usize];
        let data = &state.multipath.as_ref()?.data;
        let here = state.carried.winner.is_none_or(|winner| winner == connection.copy);
        Some(DataAck { number: data.data_ack(), complete: data.complete() && here })
    }

    /// What a segment of a subflow carries of the data, and what its packet goes by.
    pub(super) fn subflow_segment(&mut self, id: u32, seq: u32) -> (Option<Mapping>, FlowKey) {
        let connection = &self.connections[id as usize];
        let (mss, copy) = (self.profile(connection).tcp.mss.0, connection.copy);
        let first = connection.key;
        let state = &mut self.flows[connection.flow as usize];
        let Some(spread) = &mut state.multipath else { return (None, first) };
        let number = spread.data.data_of(copy, seq);
        let scattered = |port| FlowKey::new(first.src(), first.dst(), port, first.dport());
        let mapping = Mapping {
            number,
            payload: payload(mss, state.flow.bytes, number),
            last: number + 1 == spread.data.segments(),
        };
        (Some(mapping), spread.scattered_port(copy).map_or(first, scattered))
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
        let (Sender::Tcp(sender), index) = (&mut connection.sender, connection.flow) else {
            return;
        };
        let state = &mut self.flows[index as usize];
        let Some(spread) = &mut state.multipath else { return };
        let (tcp, bytes) = (&profile.tcp, state.flow.bytes);
        let likely = spread.data.likely_next();
        if !sender.has_room(tcp, payload(tcp.mss.0, bytes, likely)) {
            return;
        }
        let Some(segment) = spread.data.assign(connection.copy) else { return };
        sender.extend(tcp, payload(tcp.mss.0, bytes, segment));
        let sent = u64::from(spread.data.assigned()) * tcp.mss.0;
        let volume = match profile.scatter().map(|scatter| &scatter.switch) {
            Some(Switch::Volume { bytes }) => sent >= bytes.0,
            _ => false,
        };
        let number = connection.profile;
        if volume {
            self.switch(index, number);
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

/// Payload bytes of a data segment of a flow of `bytes`.
pub(super) fn payload(mss: u64, bytes: u64, segment: u32) -> u64 {
    (bytes - u64::from(segment) * mss).min(mss)
}
