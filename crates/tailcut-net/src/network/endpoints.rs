//! Connections at the hosts: between the transport's state machines and the wire.

use tailcut_engine::Time;

use super::clock::Due;
use super::profile::Profile;
use super::receiver::Receiver;
use super::sender::Sender;
use super::Network;
use crate::measure::{Observer, PacketView};
use crate::packet::{Flags, FlowKey, Packet};
use crate::transport::spread::Event;
use crate::transport::tcp::{Close, Recovery};
use crate::transport::{Phase, Segment, Transmit};

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
}

impl Connection {
    /// Of transport number `number`.
    pub fn new(
        key: FlowKey,
        flow: u32,
        copy: u8,
        (number, profile): (u8, &Profile),
        sender: Sender,
    ) -> Connection {
        // A sender without segments will be given some, nobody knows how many.
        let segments = match sender.segments() {
            0 => u32::MAX,
            segments => segments,
        };
        Connection {
            key,
            flow,
            from: 0,
            in_network: 0,
            receiver: Receiver::new(profile, segments),
            timer: Time::NEVER,
            sibling: NO_CONNECTION,
            copy,
            profile: number,
            live: true,
            sender,
        }
    }
}

/// What the ends of its connection see of a packet.
#[inline]
fn as_segment(packet: &Packet) -> Segment {
    let &Packet { seq, options, wire_bytes, flags, .. } = packet;
    Segment { seq, options, wire_bytes, flags }
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
        if packet.flags.has(Flags::TO_SENDER) {
            self.deliver_to_sender(id, packet);
        } else {
            self.deliver_to_receiver(id, packet);
        }
        self.options.release(packet.options);
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
        sender.on_packet(profile, now, &as_segment(&packet), &self.options);
        if packet.flags.has(Flags::SYN) {
            if sender.phase() == Phase::Established {
                self.on_established(id);
            }
        } else if profile.spreads && !packet.flags.has(Flags::RST) {
            let data_ack = self.options.number(packet.options);
            self.manage(id, Event::Acknowledged { data_ack });
        }
        self.pump(id);
        if !done_before && self.connections[id as usize].sender.phase() == Phase::Done {
            self.on_acknowledged(id);
        }
    }

    #[inline]
    fn deliver_to_receiver(&mut self, id: u32, packet: Packet) {
        let (now, profile) = (self.now, self.profile_of(id));
        let receiver = &mut self.connections[id as usize].receiver;
        let heard = packet.flags.has(Flags::DATA) && !receiver.closed;
        let mut completed = receiver.on_packet(profile, now, &as_segment(&packet), &self.options);
        if profile.spreads && heard {
            completed = self.note_data(id, packet.options);
            if completed {
                self.connections[id as usize].receiver.acknowledge_now();
            }
        }
        self.answer(id);
        self.ask_for_pulls(id);
        if completed {
            self.on_received(id);
        }
    }

    /// Sends whatever the receiver has to send, and sets its timer.
    #[inline]
    pub(super) fn answer(&mut self, id: u32) {
        let profile = self.profile_of(id);
        while self.connections[id as usize].receiver.owes_anything() {
            let data = if profile.spreads { self.data_ack(id) } else { None };
            let Connection { receiver, key, .. } = &mut self.connections[id as usize];
            let key = key.reversed();
            let segment = receiver.poll_transmit(profile, self.now, data, &mut self.options);
            let Some(segment) = segment else { break };
            self.send(key, id, segment);
        }
        let connection = &self.connections[id as usize];
        if connection.receiver.deadline() < connection.timer {
            self.set_timer(id);
        }
    }

    /// The receiving host resets a connection.
    pub(super) fn reset_by_receiver(&mut self, id: u32) {
        self.connections[id as usize].receiver.reset();
        self.answer(id);
    }

    /// A host hands a packet to its interface.
    #[inline]
    pub(super) fn send(&mut self, key: FlowKey, id: u32, segment: Segment) {
        let Segment { seq, options, wire_bytes, flags } = segment;
        let mut packet = Packet { key, connection: id, seq, options, wire_bytes, flags };
        if self.fabric.marks() {
            let flow = self.connections[id as usize].flow;
            self.fabric.mark(&mut packet, self.flows[flow as usize].flow.bytes);
        }
        self.counters.sent += 1;
        self.connections[id as usize].in_network += 1;
        let host = packet.key.src();
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.host_sends(self.now, host, &view);
        }
        self.transmit(self.fabric.host_port(host), packet);
    }

    /// Sends whatever the sender has to send, and sets its timer.
    #[inline]
    pub(super) fn pump(&mut self, id: u32) {
        let profile = self.profile_of(id);
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
            let (mut mapping, mut key) = (None, connection.key);
            match transmit {
                Transmit::Segment { seq, .. } if profile.spreads => {
                    (mapping, key) = self.subflow_segment(id, seq);
                }
                Transmit::Syn { retry: false } => {
                    let copies = &mut self.flows[connection.flow as usize].copies;
                    *copies = copies.saturating_add(1);
                }
                _ => {}
            }
            let sender = &mut self.connections[id as usize].sender;
            let options = &mut self.options;
            let segment = sender.packet(profile, self.now, transmit, mapping, options);
            self.send(key, id, segment);
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
            self.clock.move_to(Due::Connection(id), due.max(self.now));
        }
    }

    /// A connection's timer has fired.
    pub(super) fn wake(&mut self, id: u32) {
        let (now, profile) = (self.now, self.profile_of(id));
        let connection = &mut self.connections[id as usize];
        connection.timer = Time::NEVER;
        if connection.receiver.deadline() <= now {
            connection.receiver.on_timer(&profile.tcp, now);
            self.answer(id);
        }
        let sender = &mut self.connections[id as usize].sender;
        if sender.deadline() <= now {
            let expired = sender.on_timer(profile, now);
            if expired && profile.spreads && sender.phase() == Phase::Established {
                self.manage(id, Event::TimedOut);
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
        self.clock.cancel(Due::Connection(id));
        self.leave_pulls(id);
        self.settle();
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
        } else if data || packet.is_trimmed() {
            (offset(packet.seq), 1)
        } else if syn {
            (0, 0)
        } else {
            let done = sender.phase() == Phase::Done;
            (offset(sender.una()) + if done { fin } else { 0 }, 1 + if done { fin } else { 0 })
        };
        let options = self.options.get(packet.options);
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
                .then(|| self.options.number(packet.options))
                .flatten()
                .map(|segment| u64::from(segment) * tcp.mss.0),
            sack: tcp.recovery == Recovery::SackPrr,
            timestamps: tcp.timestamps.then_some(options.timestamps),
            blocks: options.blocks,
            wire_bytes: packet.wire_bytes,
        }
    }
}
