//! Packets at the hosts: what the loop does when one arrives, when a timer fires, and when anything
//! is to be sent.

use tailcut_engine::Time;

use super::clock::EventKind;
use super::connections::ConnectionInfo;
use super::partition::Extent;
use super::profile::TransportProfile;
use super::tickets::PacketIds;
use super::{Network, view};
use crate::measure::{ConnectionEnd, Observer};
use crate::packet::{ConnectionId, Flags, FlowKey, Packet, SeqField};
use crate::topology::{HostId, PortId};
use crate::trace::trace;
use crate::transport::spread::SubflowEvent;
use crate::transport::{ConnectionState, Segment, Transmit};

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// A packet has reached its host.
    #[inline]
    pub(super) fn deliver(&mut self, host: HostId, packet: Packet) {
        let id = packet.connection;
        self.tally.trace(|observer| {
            observer.packet_delivered(self.clock.now(), PacketIds::of(&packet), &packet);
        });
        let packet = self.tickets.redeemed::<O>(packet);
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_delivered(self.clock.now(), host, seen);
        self.hosts.release(id);
        if packet.flags.has(Flags::TO_SENDER) {
            self.deliver_to_sender(id, packet);
        } else {
            self.deliver_to_receiver(id, packet);
        }
        self.hosts.release_options(&packet);
        self.retire_if_over(id);
    }

    #[inline]
    fn deliver_to_sender(&mut self, id: ConnectionId, packet: Packet) {
        let spreads = self.hosts.sender_profile(id).is_multipath;
        if spreads {
            let flow = self.hosts.sender_info(id).flow;
            self.hosts
                .couple(id, || self.flows.manager(flow).map(|manager| manager.window_increase()));
        }
        let done_before = self.hosts.sender(id).phase() == ConnectionState::Done;
        let window = self.traced_window(id);
        self.hosts.on_packet_at_sender(self.clock.now(), &packet);
        self.trace_window(id, window);
        if packet.flags.has(Flags::SYN) {
            if self.hosts.sender(id).phase() == ConnectionState::Established {
                self.on_established(id);
            }
        } else if spreads && !packet.flags.has(Flags::RST) {
            let data_ack = self.hosts.options().number(packet.options);
            self.manage(id, SubflowEvent::Acknowledged { data_ack });
        }
        self.flush_sender(id);
        if !done_before && self.hosts.sender(id).phase() == ConnectionState::Done {
            self.on_acknowledged(id, packet.flags.has(Flags::FIRST_COPY));
        }
    }

    #[inline]
    fn deliver_to_receiver(&mut self, id: ConnectionId, packet: Packet) {
        let heard = self.hosts.on_packet_at_receiver(self.clock.now(), &packet);
        let mut completed = heard.completed;
        if heard.data && self.hosts.receiver_profile(id).is_multipath {
            let number = self.hosts.options().number(packet.options);
            completed = self.flows.note_data(self.hosts.receiver_info(id).flow, number);
            if completed {
                self.hosts.receiver_mut(id).acknowledge_now();
            }
        }
        self.flush_receiver(id);
        if self.pulls.any() {
            self.pulls.note_arrival(self.clock.now(), packet.key.dst(), packet.flags);
            self.ask_for_pulls(id);
        }
        if completed {
            self.on_received(id);
        }
    }

    /// Sends whatever the receiver has to send, and sets its timer. The connection may be over
    /// then.
    #[inline]
    pub(super) fn flush_receiver(&mut self, id: ConnectionId) {
        let &TransportProfile { is_multipath: spreads, echoes_entropy, .. } =
            self.hosts.receiver_profile(id);
        self.hosts.retain(id);
        let &ConnectionInfo { flow, copy, key, .. } = self.hosts.receiver_info(id);
        while self.hosts.owes_answer(id) {
            let data = if spreads { self.flows.data_ack(flow, copy) } else { None };
            let segment = self.hosts.poll_receiver(id, self.clock.now(), data);
            let Some(mut segment) = segment else { break };
            let all = || self.hosts.receiver(id).is_complete() && self.flows.may_win(flow, copy);
            if data.map_or_else(all, |data| data.complete) {
                segment.flags = segment.flags | Flags::FIRST_COPY;
            }
            let key = if echoes_entropy { key.with_dport(segment.entropy) } else { key };
            self.send(key, id, segment);
        }
        self.expect_receiver(id);
        self.tally.trace(|observer| {
            let (deadline, timer) = self.hosts.receiver(id).timer();
            observer.timer_set(self.clock.now(), id, ConnectionEnd::Receiver, deadline, timer);
        });
        self.hosts.release(id);
    }

    /// A host hands a packet to its interface.
    #[inline]
    pub(super) fn send(&mut self, key: FlowKey, id: ConnectionId, segment: Segment) {
        self.send_by(None, key, id, segment);
    }

    /// A host hands a packet to the interface `port`, or to the one that is chosen for it.
    #[inline(always)]
    pub(super) fn send_by(
        &mut self,
        port: Option<PortId>,
        key: FlowKey,
        id: ConnectionId,
        segment: Segment,
    ) {
        let Segment { seq, options, wire_bytes, flags, .. } = segment;
        let mut packet =
            Packet { key, connection: id, seq: SeqField::new(seq), options, wire_bytes, flags };
        if self.fabric.marks_packets() {
            let flow = self.flows.flow(self.hosts.flow_of(&packet));
            self.fabric.mark(&mut packet, flow.bytes);
        }
        self.hosts.retain(id);
        let host = packet.key.src();
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_sent(self.clock.now(), host, seen);
        self.tally.trace(|observer| {
            let (flow, ticket) = (self.hosts.flow_of(&packet), self.tickets.issue(&mut packet));
            observer.packet_sent(self.clock.now(), flow, ticket, &packet);
        });
        let port = match self.fabric.has_interfaces() {
            false => self.fabric.host_port(host),
            true => self.leave_by(port, id, &packet),
        };
        self.transmit(port, None, packet);
    }

    /// Sends whatever the sender has to send, and sets its timer. The connection may be over then.
    #[inline]
    pub(super) fn flush_sender(&mut self, id: ConnectionId) {
        let now = self.clock.now();
        let &TransportProfile { is_multipath: spreads, has_entropy, takes_turns, .. } =
            self.hosts.sender_profile(id);
        self.hosts.retain(id);
        self.tally.note_acted(now, || {
            let (&ConnectionInfo { key, flow, copy, .. }, sender) =
                (self.hosts.sender_info(id), self.hosts.sender(id));
            let view = sender.view(self.hosts.sender_profile(id));
            (self.flows.flow(flow).id, copy, key.sport(), view, sender.tcp())
        });
        loop {
            if spreads {
                self.hand_out(id);
            }
            let Some(transmit) = self.hosts.poll_sender(id, now) else { break };
            let (mut mapping, mut key) = (None, self.hosts.sender_info(id).key);
            match transmit {
                Transmit::Segment { seq, .. } if spreads => {
                    let known = self.hosts.sender_info(id);
                    (mapping, key) = self.flows.subflow_segment(known, seq);
                }
                Transmit::Syn { retry: false } => {
                    self.flows.note_copy(self.hosts.sender_info(id).flow)
                }
                _ => {}
            }
            let segment = self.hosts.segment(id, now, transmit, mapping);
            if has_entropy {
                key = key.with_sport(segment.entropy);
            }
            self.send(key, id, segment);
            if !spreads {
                self.note_segment_sent(id, transmit);
            }
        }
        self.expect_sender(id);
        if takes_turns {
            self.ask_for_turn(id);
        }
        self.hosts.release(id);
    }

    /// Makes sure that a sender is woken no later than it wants to be.
    #[inline]
    pub(super) fn expect_sender(&mut self, id: ConnectionId) {
        if let Some(due) = self.hosts.wake_for_sender(id) {
            self.clock.wake(EventKind::Sender(id), due);
        }
        self.tell_timer(id);
        self.tally.trace(|observer| {
            let stop = self.hosts.sender(id).stop(self.hosts.sender_profile(id));
            observer.sender_limited(self.clock.now(), id, stop);
        });
    }

    /// Reports the sender's limit to the observer.
    #[inline(always)]
    pub(super) fn tell_timer(&mut self, id: ConnectionId) {
        self.tally.trace(|observer| {
            let (deadline, timer) = self.hosts.sender(id).timer();
            observer.timer_set(self.clock.now(), id, ConnectionEnd::Sender, deadline, timer);
        });
    }

    /// Makes sure that a receiver is woken no later than it wants to be.
    #[inline]
    fn expect_receiver(&mut self, id: ConnectionId) {
        if let Some(due) = self.hosts.wake_for_receiver(id) {
            self.expect_receiver_at(id, due);
        }
    }

    /// Wakes a receiver earlier than it was to be: once for most.
    #[cold]
    fn expect_receiver_at(&mut self, id: ConnectionId, due: Time) {
        if self.hosts.joins_order(id) {
            self.clock.order_receiver(id, self.hosts.receiver_info(id).key.src());
        }
        self.clock.wake(EventKind::Receiver(id), due);
    }

    /// The timer of a receiver has fired.
    pub(super) fn wake_receiver(&mut self, id: ConnectionId) {
        let now = self.clock.now();
        if self.hosts.fire_receiver_timer(id, now) {
            self.tally.trace(|observer| observer.timer_fires(now, id, ConnectionEnd::Receiver));
            self.trace_receiver(id);
            trace!("the receiver's timer fires");
            self.flush_receiver(id);
        } else {
            self.expect_receiver(id);
        }
        self.retire_if_over(id);
    }

    /// The timer of a sender has fired, or its connection is to be opened.
    pub(super) fn wake_sender(&mut self, id: ConnectionId) {
        let now = self.clock.now();
        if self.hosts.sender(id).deadline() <= now {
            self.tally.trace(|observer| observer.timer_fires(now, id, ConnectionEnd::Sender));
        }
        let window = self.trace_sender_timer(id);
        let opens = self.hosts.sender(id).phase() == ConnectionState::Closed;
        let retransmits = self.hosts.fire_sender_timer(id, now);
        self.trace_window(id, window);
        if opens && self.hosts.sender(id).phase() == ConnectionState::Established {
            // Without a handshake the first data packet is the copy's first.
            self.flows.note_copy(self.hosts.sender_info(id).flow);
            self.on_established(id);
        }
        if retransmits && self.hosts.sender_profile(id).is_multipath {
            self.manage(id, SubflowEvent::TimedOut);
        }
        self.flush_sender(id);
        self.retire_if_over(id);
    }

    /// Frees a connection of which nothing can be heard any more.
    #[inline(always)]
    pub(super) fn retire_if_over(&mut self, id: ConnectionId) {
        if E::IS_PART {
            return self.extent.part().touch(id, self.hosts.sender(id).finished());
        }
        if self.hosts.is_over(id) {
            self.retire(id);
        }
    }

    /// Frees a connection.
    pub(super) fn retire(&mut self, id: ConnectionId) {
        self.clock.cancel(EventKind::Sender(id));
        self.clock.cancel(EventKind::Receiver(id));
        self.leave_pulls(id);
        self.leave_turns(id);
        if let Some(audit) = self.fabric.audit() {
            self.flows.settle(audit, &self.hosts);
        }
        let flow = self.hosts.sender_info(id).flow;
        self.flows.absorb(&self.hosts, id);
        let chains = self.hosts.unlink(self.flows.chains(flow), id);
        self.flows.set_chains(flow, chains);
        self.hosts.retire(id);
        // What befalls a network in which nothing happens any more does not keep a run going.
        if self.is_over() {
            self.clock.cancel(EventKind::Incident);
        }
    }
}
