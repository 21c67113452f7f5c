//! Packets at the hosts: what the loop does when one arrives, when a timer fires, and when anything is to be sent.

use tailcut_engine::Time;

use super::clock::Due;
use super::hosts::Known;
use super::tickets::Tickets;
use super::{Network, view};
use crate::measure::{End, Observer};
use crate::packet::{ConnectionId, Flags, FlowKey, Packet};
use crate::topology::HostId;
use crate::transport::spread::Event;
use crate::transport::{Phase, Segment, Transmit};

impl<O: Observer> Network<'_, O> {
    /// A packet has reached its host.
    #[inline]
    pub(super) fn deliver(&mut self, host: HostId, packet: Packet) {
        let id = packet.connection;
        self.tally.follow(|observer| {
            observer.packet_delivered(self.clock.now(), Tickets::of(&packet), &packet);
        });
        let packet = self.tickets.redeemed::<O>(packet);
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_delivered(self.clock.now(), host, seen);
        self.hosts.let_go(id);
        if packet.flags.has(Flags::TO_SENDER) {
            self.deliver_to_sender(id, packet);
        } else {
            self.deliver_to_receiver(id, packet);
        }
        self.hosts.release(&packet);
        self.retire_if_over(id);
    }

    #[inline]
    fn deliver_to_sender(&mut self, id: ConnectionId, packet: Packet) {
        let spreads = self.hosts.sends_by(id).spreads;
        if spreads {
            let flow = self.hosts.at_sender(id).flow;
            self.hosts.couple(id, || self.flows.manager(flow).map(|manager| manager.growth()));
        }
        let done_before = self.hosts.sender(id).phase() == Phase::Done;
        self.hosts.tell_sender(self.clock.now(), &packet);
        if packet.flags.has(Flags::SYN) {
            if self.hosts.sender(id).phase() == Phase::Established {
                self.on_established(id);
            }
        } else if spreads && !packet.flags.has(Flags::RST) {
            let data_ack = self.hosts.options().number(packet.options);
            self.manage(id, Event::Acknowledged { data_ack });
        }
        self.pump(id);
        if !done_before && self.hosts.sender(id).phase() == Phase::Done {
            self.on_acknowledged(id, packet.flags.has(Flags::FIRST));
        }
    }

    #[inline]
    fn deliver_to_receiver(&mut self, id: ConnectionId, packet: Packet) {
        let heard = self.hosts.tell_receiver(self.clock.now(), &packet);
        let mut completed = heard.completed;
        if heard.data && self.hosts.receives_by(id).spreads {
            let number = self.hosts.options().number(packet.options);
            completed = self.flows.note_data(self.hosts.at_receiver(id).flow, number);
            if completed {
                self.hosts.receiver_mut(id).acknowledge_now();
            }
        }
        self.answer(id);
        self.ask_for_pulls(id);
        if completed {
            self.on_received(id);
        }
    }

    /// Sends whatever the receiver has to send, and sets its timer. The connection may be over then.
    #[inline]
    pub(super) fn answer(&mut self, id: ConnectionId) {
        let spreads = self.hosts.receives_by(id).spreads;
        self.hosts.hold(id);
        let &Known { flow, copy, key, .. } = self.hosts.at_receiver(id);
        while self.hosts.owes_answer(id) {
            let data = if spreads { self.flows.data_ack(flow, copy) } else { None };
            let segment = self.hosts.poll_receiver(id, self.clock.now(), data);
            let Some(mut segment) = segment else { break };
            let all = || self.hosts.receiver(id).complete() && self.flows.may_win(flow, copy);
            if data.map_or_else(all, |data| data.complete) {
                segment.flags = segment.flags | Flags::FIRST;
            }
            self.send(key, id, segment);
        }
        self.expect_receiver(id);
        self.tally.follow(|observer| {
            let (deadline, timer) = self.hosts.receiver(id).timer();
            observer.timer_set(self.clock.now(), id, End::Receiver, deadline, timer);
        });
        self.hosts.let_go(id);
    }

    /// A host hands a packet to its interface.
    #[inline]
    pub(super) fn send(&mut self, key: FlowKey, id: ConnectionId, segment: Segment) {
        let Segment { seq, options, wire_bytes, flags } = segment;
        let mut packet = Packet { key, connection: id, seq, options, wire_bytes, flags };
        if self.fabric.marks() {
            let flow = self.flows.flow(self.hosts.whose(&packet));
            self.fabric.mark(&mut packet, flow.bytes);
        }
        self.hosts.hold(id);
        let host = packet.key.src();
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_sent(self.clock.now(), host, seen);
        self.tally.follow(|observer| {
            let (flow, ticket) = (self.hosts.whose(&packet), self.tickets.issue(&mut packet));
            observer.packet_sent(self.clock.now(), flow, ticket, &packet);
        });
        self.transmit(self.fabric.host_port(host), None, packet);
    }

    /// Sends whatever the sender has to send, and sets its timer. The connection may be over then.
    #[inline]
    pub(super) fn pump(&mut self, id: ConnectionId) {
        let (now, spreads) = (self.clock.now(), self.hosts.sends_by(id).spreads);
        self.hosts.hold(id);
        self.tally.note_acted(now, || {
            let (&Known { key, flow, copy, .. }, sender) =
                (self.hosts.at_sender(id), self.hosts.sender(id));
            let view = sender.view(self.hosts.sends_by(id));
            (self.flows.flow(flow).id, copy, key.sport(), view, sender.tcp())
        });
        loop {
            if spreads {
                self.hand_out(id);
            }
            let Some(transmit) = self.hosts.poll_sender(id, now) else { break };
            let (mut mapping, mut key) = (None, self.hosts.at_sender(id).key);
            match transmit {
                Transmit::Segment { seq, .. } if spreads => {
                    let known = self.hosts.at_sender(id);
                    (mapping, key) = self.flows.subflow_segment(known, seq);
                }
                Transmit::Syn { retry: false } => {
                    self.flows.note_copy(self.hosts.at_sender(id).flow)
                }
                _ => {}
            }
            let segment = self.hosts.segment(id, now, transmit, mapping);
            self.send(key, id, segment);
        }
        if let Some(due) = self.hosts.wake_for_sender(id) {
            self.clock.wake(Due::Sender(id), due);
        }
        self.tell_timer(id);
        self.tally.follow(|observer| {
            let stop = self.hosts.sender(id).stop(self.hosts.sends_by(id));
            observer.sender_stops(self.clock.now(), id, stop);
        });
        self.hosts.let_go(id);
    }

    /// What the sender waits for, to whoever wants to know.
    #[inline(always)]
    pub(super) fn tell_timer(&mut self, id: ConnectionId) {
        self.tally.follow(|observer| {
            let (deadline, timer) = self.hosts.sender(id).timer();
            observer.timer_set(self.clock.now(), id, End::Sender, deadline, timer);
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
            self.clock.order_receiver(id, self.hosts.at_receiver(id).key.src());
        }
        self.clock.wake(Due::Receiver(id), due);
    }

    /// The timer of a receiver has fired.
    pub(super) fn wake_receiver(&mut self, id: ConnectionId) {
        let now = self.clock.now();
        if self.hosts.wake_receiver(id, now) {
            self.tally.follow(|observer| observer.timer_fires(now, id, End::Receiver));
            self.answer(id);
        } else {
            self.expect_receiver(id);
        }
        self.retire_if_over(id);
    }

    /// The timer of a sender has fired, or its connection is to be opened.
    pub(super) fn wake_sender(&mut self, id: ConnectionId) {
        let now = self.clock.now();
        if self.hosts.sender(id).deadline() <= now {
            self.tally.follow(|observer| observer.timer_fires(now, id, End::Sender));
        }
        if self.hosts.wake_sender(id, now) && self.hosts.sends_by(id).spreads {
            self.manage(id, Event::TimedOut);
        }
        self.pump(id);
        self.retire_if_over(id);
    }

    /// Frees a connection of which nothing can be heard any more.
    #[inline]
    pub(super) fn retire_if_over(&mut self, id: ConnectionId) {
        if self.hosts.is_over(id) {
            self.retire(id);
        }
    }

    fn retire(&mut self, id: ConnectionId) {
        self.clock.cancel(Due::Sender(id));
        self.clock.cancel(Due::Receiver(id));
        self.leave_pulls(id);
        if let Some(audit) = self.fabric.audit() {
            self.flows.settle(audit, &self.hosts);
        }
        let flow = self.hosts.at_sender(id).flow;
        self.flows.absorb(&self.hosts, id);
        let chains = self.hosts.unlink(self.flows.chains(flow), id);
        self.flows.set_chains(flow, chains);
        self.hosts.retire(id);
        // What befalls a network in which nothing happens any more does not keep a run going.
        if self.is_over() {
            self.clock.cancel(Due::Incident);
        }
    }
}
