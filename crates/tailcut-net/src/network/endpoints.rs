//! Connections at the hosts: between the transport's state machines and the wire.

use tailcut_engine::Time;

use super::profile::Profile;
use super::sender::Sender;
use super::{Entities, Network};
use crate::measure::{Observer, PacketView};
use crate::packet::{inline_number, Flags, FlowKey, Packet, SackBlocks, Timestamps, NO_OPTIONS};
use crate::transport::tcp::{Acknowledge, Close, Imitation, Receiver, Recovery};
use crate::transport::{Phase, Transmit};

pub(super) const NO_CONNECTION: u32 = u32::MAX;

/// Both halves of a connection.
pub(super) struct Connection {
    pub key: FlowKey,
    pub flow: u32,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// Packets of this connection queued or on a wire.
    pub in_network: u32,
    pub receiver: Receiver,
    /// When the agenda will wake this connection.
    timer: Time,
    /// The next connection of the same flow.
    pub sibling: u32,
    pub copy: u8,
    /// Number of its transport.
    pub profile: u8,
    pub live: bool,
    pub sender: Sender,
    /// The timestamps that sender and receiver will echo (RFC 7323 TS.Recent).
    recent_timestamps: [u32; 2],
}

impl Connection {
    pub fn new(key: FlowKey, flow: u32, copy: u8, profile: u8, sender: Sender) -> Connection {
        Connection {
            key,
            flow,
            from: 0,
            in_network: 0,
            // A sender without segments will be given some, nobody knows how many.
            receiver: Receiver::new(match sender.segments() {
                0 => u32::MAX,
                segments => segments,
            }),
            timer: Time::NEVER,
            sibling: NO_CONNECTION,
            copy,
            profile,
            live: true,
            sender,
            recent_timestamps: [0; 2],
        }
    }
}

impl<'a, O: Observer> Network<'a, O> {
    #[inline]
    fn profile_of(&self, id: u32) -> &'a Profile {
        self.profile(&self.connections[id as usize])
    }

    /// A packet has reached its host.
    #[inline]
    pub(super) fn deliver(&mut self, host: u32, packet: Packet) {
        let id = packet.connection;
        self.counters.delivered += 1;
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.host_receives(self.now, host, &view);
        }
        self.connections[id as usize].in_network -= 1;
        if self.profile_of(id).tcp.timestamps {
            self.note_timestamps(id, packet);
        }
        if packet.flags.has(Flags::TO_SENDER) {
            self.deliver_to_sender(id, packet);
        } else {
            self.deliver_to_receiver(id, packet);
        }
        self.fabric.options.release(packet.options);
        self.retire_if_over(id);
    }

    #[inline]
    fn deliver_to_sender(&mut self, id: u32, packet: Packet) {
        let (now, profile) = (self.now, self.profile_of(id));
        if profile.spreads {
            self.couple(id);
        }
        let sender = &mut self.connections[id as usize].sender;
        let done_before = sender.phase() == Phase::Done;
        if !packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::RST) {
            let echo = packet.flags.has(Flags::ECN_ECHO);
            if packet.options == NO_OPTIONS {
                sender.on_ack(profile, now, packet.seq, &SackBlocks::default(), echo);
            } else {
                let blocks = self.fabric.options.get(packet.options).blocks;
                sender.on_ack(profile, now, packet.seq, &blocks, echo);
            }
            if packet.flags.has(Flags::FIN) {
                sender.on_fin();
            }
            if profile.spreads {
                let data_ack = self.fabric.options.number(packet.options);
                self.on_subflow_ack(id, data_ack);
            }
        } else if packet.flags.has(Flags::RST) {
            sender.on_reset();
        } else {
            sender.on_syn_ack(profile, now);
            if sender.phase() == Phase::Established {
                self.on_established(id);
            }
        }
        self.pump(id);
        if !done_before && self.connections[id as usize].sender.phase() == Phase::Done {
            self.on_acknowledged(id);
        }
    }

    #[inline]
    fn deliver_to_receiver(&mut self, id: u32, packet: Packet) {
        let profile = self.profile_of(id);
        if profile.ecn {
            self.note_congestion(id, packet.flags);
        }
        let receiver = &mut self.connections[id as usize].receiver;
        if !packet.flags.has(Flags::SYN) {
            receiver.end_handshake();
        }
        if packet.flags.has(Flags::DATA) && !receiver.closed {
            let complete_before = receiver.complete();
            let acknowledge = receiver.on_segment(&profile.tcp, self.now, packet.seq);
            let mut completed = !complete_before && receiver.complete();
            if profile.spreads {
                completed = self.note_data(id, packet.options);
            }
            match acknowledge {
                Acknowledge::Later if !completed => self.set_timer(id),
                _ if completed && !profile.spreads && profile.tcp.imitate == Imitation::Ns3 => {
                    self.close_as_ns3(id, packet.flags.has(Flags::FIN));
                }
                _ => self.send_ack(id),
            }
            if completed {
                self.on_received(id);
            }
        } else if packet.flags.has(Flags::RST) {
            receiver.closed = true;
        } else if receiver.closed {
            if packet.flags.has(Flags::SYN) || packet.flags.has(Flags::DATA) {
                self.send_to_sender(id, Flags::RST, 0, NO_OPTIONS, profile.sizes.bare());
            }
        } else if packet.flags.has(Flags::SYN) {
            self.on_syn(id);
        } else if packet.flags.has(Flags::PROBE) {
            self.send_ack(id);
        }
    }

    /// A SYN has arrived, or the answer to one is due again.
    fn on_syn(&mut self, id: u32) {
        let profile = self.profile_of(id);
        let receiver = &mut self.connections[id as usize].receiver;
        let again = if receiver.in_handshake() { Flags::RETRANSMISSION } else { Flags(0) };
        if receiver.on_syn(&profile.tcp, self.now) {
            // An ECN-setup SYN-ACK carries ECE alone (RFC 3168 section 6.1.1).
            let setup = if profile.ecn { Flags::ECN_ECHO } else { Flags(0) };
            let flags = Flags::SYN | Flags::ACK | setup | again;
            self.send_to_sender(id, flags, 0, NO_OPTIONS, profile.sizes.syn());
            self.set_timer(id);
        } else if !receiver.in_handshake() {
            // A SYN of a connection that is established: an old duplicate (RFC 9293 section 3.10.7.4).
            self.send_ack(id);
        }
    }

    /// What a data segment says of congestion.
    #[cold]
    fn note_congestion(&mut self, id: u32, flags: Flags) {
        let tcp = &self.profile_of(id).tcp;
        let receiver = &mut self.connections[id as usize].receiver;
        if !flags.has(Flags::DATA) || receiver.closed {
            return;
        }
        let experienced = flags.has(Flags::CONGESTION_EXPERIENCED);
        let reduced = flags.has(Flags::WINDOW_REDUCED);
        if receiver.owes_ack_before(tcp, experienced) {
            self.send_ack(id);
        }
        let receiver = &mut self.connections[id as usize].receiver;
        receiver.note_congestion(tcp, experienced, reduced);
    }

    /// Acknowledges everything received so far.
    #[inline]
    fn send_ack(&mut self, id: u32) {
        let Profile { tcp, sizes, spreads, .. } = self.profile_of(id);
        let data_ack = if *spreads { self.data_ack(id) } else { None };
        let receiver = &mut self.connections[id as usize].receiver;
        receiver.acknowledged();
        let next = receiver.next();
        let mut flags = Flags::ACK;
        let complete = data_ack.map_or(receiver.complete(), |(_, complete)| complete);
        if complete && tcp.close == Close::Fin {
            flags = flags | Flags::FIN;
        }
        if receiver.echoes() {
            flags = flags | Flags::ECN_ECHO;
        }
        if receiver.has_blocks() && tcp.recovery == Recovery::SackPrr {
            let blocks = receiver.take_blocks();
            let limit = if tcp.timestamps { 3 } else { SackBlocks::MAX };
            let blocks = blocks.first(limit);
            let size = sizes.ack(blocks.as_slice().len());
            let mut options = self.fabric.options.insert(blocks);
            if let Some((ack, _)) = data_ack {
                options = self.fabric.options.enumerate(options, ack);
            }
            self.send_to_sender(id, flags, next, options, size);
        } else {
            let options = data_ack.map_or(NO_OPTIONS, |(ack, _)| inline_number(ack));
            self.send_to_sender(id, flags, next, options, sizes.bare());
        }
    }

    /// ns-3's answer to everything up to the FIN: an ACK if it comes with the FIN, a FIN of its own, and one more ACK.
    #[cold]
    fn close_as_ns3(&mut self, id: u32, came_with_fin: bool) {
        let Profile { tcp, sizes, .. } = self.profile_of(id);
        let closes = tcp.close == Close::Fin;
        let all = self.connections[id as usize].receiver.next();
        if closes && came_with_fin {
            self.send_to_sender(id, Flags::ACK, all, NO_OPTIONS, sizes.bare());
        }
        self.send_ack(id);
        if closes {
            self.send_to_sender(id, Flags::ACK, all, NO_OPTIONS, sizes.bare());
        }
    }

    /// The receiving host resets a connection.
    pub(super) fn reset_by_receiver(&mut self, id: u32) {
        let size = self.profile_of(id).sizes.bare();
        let receiver = &mut self.connections[id as usize].receiver;
        receiver.closed = true;
        receiver.acknowledged();
        if receiver.established {
            self.send_to_sender(id, Flags::RST, 0, NO_OPTIONS, size);
        }
    }

    #[inline]
    fn send_to_sender(&mut self, id: u32, flags: Flags, seq: u32, options: u32, size: u16) {
        let key = self.connections[id as usize].key.reversed();
        let flags = flags | Flags::TO_SENDER;
        self.send(Packet { key, connection: id, seq, options, wire_bytes: size, flags });
    }

    /// Which timestamp to echo from now on (RFC 7323 section 4.3): that of a segment at or before the last
    /// acknowledgement sent. The receiver's own segments never move on, so that any of them will do.
    #[cold]
    fn note_timestamps(&mut self, id: u32, packet: Packet) {
        let Timestamps { value, echo } = self.fabric.options.get(packet.options).timestamps;
        let connection = &mut self.connections[id as usize];
        let to_sender = packet.flags.has(Flags::TO_SENDER);
        let data = packet.flags.has(Flags::DATA);
        if to_sender {
            connection.sender.note_timestamp(echo);
        }
        if to_sender || !data || packet.seq <= connection.receiver.last_acknowledged() {
            connection.recent_timestamps[usize::from(!to_sender)] = value;
        }
    }

    #[cold]
    fn stamp(&mut self, packet: &mut Packet) {
        let to_sender = packet.flags.has(Flags::TO_SENDER);
        let connection = &self.connections[packet.connection as usize];
        let value = (self.now.as_ns() / 1_000_000) as u32;
        let echo = connection.recent_timestamps[usize::from(to_sender)];
        packet.options = self.fabric.options.stamp(packet.options, Timestamps { value, echo });
    }

    /// A host hands a packet to its interface.
    #[inline]
    fn send(&mut self, mut packet: Packet) {
        if self.profile_of(packet.connection).tcp.timestamps {
            self.stamp(&mut packet);
        }
        if self.fabric.marking {
            let flow = self.connections[packet.connection as usize].flow;
            self.fabric.mark(&mut packet, self.flows[flow as usize].flow.bytes);
        }
        self.counters.sent += 1;
        self.connections[packet.connection as usize].in_network += 1;
        let host = packet.key.src();
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.host_sends(self.now, host, &view);
        }
        self.transmit(self.fabric.routes.host_port(host), packet);
    }

    /// Sends whatever the sender has to send, and sets its timer.
    #[inline]
    pub(super) fn pump(&mut self, id: u32) {
        let profile = self.profile_of(id);
        let Profile { tcp, sizes, .. } = profile;
        if O::ACTIVE {
            let connection = &self.connections[id as usize];
            let flow = self.flows[connection.flow as usize].flow.id;
            if let Some(sender) = connection.sender.tcp() {
                self.observer.sender_acted(self.now, flow, connection.copy, sender);
            }
        }
        loop {
            if profile.spreads {
                self.hand_out(id, profile);
            }
            let connection = &mut self.connections[id as usize];
            let Some(transmit) = connection.sender.poll_transmit(profile, self.now) else { break };
            let (mut options, mut key) = (NO_OPTIONS, connection.key);
            let (seq, flags, wire_bytes) = match transmit {
                Transmit::Segment { seq, retransmission } => {
                    let mut flags = Flags::DATA | Flags::ACK;
                    if retransmission {
                        flags = flags | Flags::RETRANSMISSION;
                    } else if profile.ecn {
                        // Never on retransmissions (RFC 3168 section 6.1.5).
                        flags = flags | Flags::ECN_CAPABLE;
                        if connection.sender.take_cwr() {
                            flags = flags | Flags::WINDOW_REDUCED;
                        }
                    }
                    let mut last = seq + 1 == connection.sender.segments();
                    let mut payload = connection.sender.payload(profile, seq);
                    if profile.spreads {
                        let sent = self.subflow_segment(id, seq);
                        (last, payload, options) = (sent.last, sent.payload, sent.options);
                        key = sent.key.unwrap_or(key);
                    }
                    let connection = &self.connections[id as usize];
                    if last && tcp.close == Close::Fin {
                        flags = flags | Flags::FIN;
                    }
                    if let Some(priority) = connection.sender.priority(profile) {
                        options = inline_number(priority);
                    }
                    (seq, flags, sizes.data(payload))
                }
                Transmit::Ack => (0, Flags::ACK, sizes.bare()),
                Transmit::Probe => {
                    options = connection.sender.priority(profile).map_or(options, inline_number);
                    (connection.sender.una(), Flags::PROBE | Flags::ACK, sizes.data(1))
                }
                Transmit::Syn { retry } => {
                    let copies = &mut self.flows[connection.flow as usize].copies;
                    *copies = copies.saturating_add(u8::from(!retry));
                    let again = if retry { Flags::RETRANSMISSION } else { Flags(0) };
                    let setup = if profile.ecn {
                        Flags::ECN_ECHO | Flags::WINDOW_REDUCED
                    } else {
                        Flags(0)
                    };
                    (0, Flags::SYN | again | setup, sizes.syn())
                }
                Transmit::Reset => (0, Flags::RST, sizes.bare()),
            };
            self.send(Packet { key, connection: id, seq, options, wire_bytes, flags });
        }
        self.set_timer(id);
    }

    /// Makes sure that the connection is woken no later than its earliest deadline.
    /// A deadline that moves later costs nothing: the timer finds out when it fires.
    #[inline]
    fn set_timer(&mut self, id: u32) {
        let connection = &mut self.connections[id as usize];
        let due = connection.sender.deadline().min(connection.receiver.deadline());
        if due < connection.timer {
            connection.timer = due;
            let entity = Entities::of(&self.fabric).connections + id;
            self.agenda.reschedule(entity, due.max(self.now));
        }
    }

    /// A connection's timer has fired.
    pub(super) fn wake(&mut self, id: u32) {
        let (now, profile) = (self.now, self.profile_of(id));
        let connection = &mut self.connections[id as usize];
        connection.timer = Time::NEVER;
        if connection.receiver.deadline() <= now {
            if connection.receiver.in_handshake() {
                self.on_syn(id);
            } else {
                self.send_ack(id);
            }
        }
        let sender = &mut self.connections[id as usize].sender;
        if sender.deadline() <= now {
            sender.on_timer(profile, now);
            if profile.spreads && sender.phase() == Phase::Established {
                self.on_subflow_timeout(id);
            }
        }
        self.pump(id);
        self.retire_if_over(id);
    }

    /// Frees a connection of which nothing can be heard any more.
    #[inline]
    pub(super) fn retire_if_over(&mut self, id: u32) {
        let connection = &self.connections[id as usize];
        if connection.in_network == 0 && connection.live && connection.sender.finished() {
            self.retire(id);
        }
    }

    fn retire(&mut self, id: u32) {
        self.agenda.cancel(Entities::of(&self.fabric).connections + id);
        self.note_elephants();
        self.leave_flow(id);
        let connection = &mut self.connections[id as usize];
        connection.live = false;
        self.live_connections -= 1;
        self.vacant.push(id);
    }

    /// What an observer sees of a packet.
    pub(super) fn view(&self, packet: &Packet) -> PacketView {
        let connection = &self.connections[packet.connection as usize];
        let Profile { tcp, sizes, spreads, .. } = self.profile(connection);
        let sender = &connection.sender;
        let flow_bytes = self.carries(connection);
        // The segments of a subflow may carry data of any place, some of it again.
        let size = if *spreads { u64::MAX } else { flow_bytes };
        let offset = |segments: u32| 1 + (u64::from(segments) * tcp.mss.0).min(size);
        let data = packet.flags.has(Flags::DATA);
        let syn = packet.flags.has(Flags::SYN);
        let fin = u64::from(tcp.close == Close::Fin);
        let (seq, ack) = if packet.flags.has(Flags::TO_SENDER) {
            let all = !syn && packet.seq == sender.segments();
            let ack = if syn { 1 } else { offset(packet.seq) + if all { fin } else { 0 } };
            (u64::from(!syn), ack)
        } else if data {
            (offset(packet.seq), 1)
        } else if syn {
            (0, 0)
        } else {
            let done = sender.phase() == Phase::Done;
            (offset(sender.una()) + if done { fin } else { 0 }, 1 + if done { fin } else { 0 })
        };
        let options = self.fabric.options.get(packet.options);
        // Whoever rewrites a packet on its way puts it back before its host sees it.
        let key = match packet.flags.has(Flags::REWRITTEN) {
            true if packet.flags.has(Flags::TO_SENDER) => connection.key.reversed(),
            true => connection.key,
            false => packet.key,
        };
        PacketView {
            flow: self.flows[connection.flow as usize].flow.id,
            copy: connection.copy,
            src: key.src(),
            dst: key.dst(),
            sport: key.sport(),
            dport: key.dport(),
            seq,
            ack,
            flags: packet.flags,
            payload: if data || packet.flags.has(Flags::PROBE) {
                sizes.payload(packet.wire_bytes)
            } else {
                0
            },
            window: tcp.receive_window.0,
            mss: tcp.mss.0 as u16,
            mss_option: tcp.mss_option,
            flow_bytes,
            data: (*spreads && data)
                .then(|| self.fabric.options.number(packet.options))
                .flatten()
                .map(|segment| u64::from(segment) * tcp.mss.0),
            sack: tcp.recovery == Recovery::SackPrr,
            timestamps: tcp.timestamps.then_some(options.timestamps),
            blocks: options.blocks,
            wire_bytes: packet.wire_bytes,
        }
    }
}
