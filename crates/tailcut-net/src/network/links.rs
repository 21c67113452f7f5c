//! Packets on the fabric: what the loop does when it takes them, hands them out or loses them.

use tailcut_engine::Time;

use super::clock::EventKind;
use super::partition::Extent;
use super::tickets::PacketIds;
use super::{Network, view};
use crate::fabric::{Consequence, ForwardOutcome, OfferOutcome};
use crate::measure::{Loss, Observer};
use crate::packet::Packet;
use crate::topology::{PortId, RouteError};
use crate::trace::trace;

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// The first packet of a link has reached its far end.
    #[inline(always)]
    pub(super) fn arrive(&mut self, port: PortId) {
        // Asked once: with the questions of few fabrics asked one by one, plain TCP takes 2 % more
        // instructions.
        if self.fabric.has_fast_path() {
            self.arrive_in::<true>(port);
        } else {
            self.arrive_closely(port);
        }
    }

    #[inline(never)]
    fn arrive_closely(&mut self, port: PortId) {
        self.arrive_in::<false>(port);
    }

    /// Takes the packet in a fabric that is plain
    /// ([`Fabric::has_fast_path`](crate::fabric::Fabric::has_fast_path)), or not.
    #[inline(always)]
    fn arrive_in<const PLAIN: bool>(&mut self, port: PortId) {
        if !PLAIN {
            self.fabric.settle(self.clock.now(), port);
        }
        let (mut packet, next) = self.fabric.take_arrived(port);
        self.trace_packet(&packet);
        if let Some(at) = next {
            self.clock.schedule(EventKind::Arrival(port), at);
        } else if !PLAIN && let Some(at) = self.fabric.falls_idle(port) {
            self.clock.schedule(EventKind::Idle(port), at);
        }
        self.tally.note_hop();
        match self.fabric.forward_in::<PLAIN>(self.clock.now(), port, &mut packet) {
            ForwardOutcome::Switch { egress, .. } => {
                self.tally.books.count(port, |fates| &mut fates.passed);
                match PLAIN {
                    true => self.transmit_in::<true>(egress, Some(port), packet),
                    false => self.transmit_closely(egress, Some(port), packet),
                }
            }
            ForwardOutcome::Host(host) => {
                self.tally.books.count(port, |fates| &mut fates.passed);
                self.deliver(host, packet);
            }
            ForwardOutcome::Lost => {
                self.end(&packet);
                self.lose_packet(port, packet, Loss::Corrupted);
            }
        }
    }

    /// A packet is at the near end of a link: it came by the link `ingress`, or is its host's own.
    #[inline]
    pub(super) fn transmit(&mut self, port: PortId, ingress: Option<PortId>, packet: Packet) {
        if self.fabric.has_fast_path() {
            self.transmit_in::<true>(port, ingress, packet);
        } else {
            self.transmit_closely(port, ingress, packet);
        }
    }

    #[inline(never)]
    fn transmit_closely(&mut self, port: PortId, ingress: Option<PortId>, packet: Packet) {
        self.transmit_in::<false>(port, ingress, packet);
        self.expect_frames();
    }

    /// Offers the packet in a fabric that is plain, or not.
    // In line where a switch forwards: a call costs plain TCP 2 % more instructions.
    #[inline(always)]
    fn transmit_in<const PLAIN: bool>(
        &mut self,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) {
        let now = self.clock.now();
        self.tally.books.count(port, |fates| &mut fates.offered);
        self.trace_packet(&packet);
        if E::IS_PART && self.extent.leaves(port) {
            self.fabric.forget_arrived(now, port);
        }
        if !PLAIN {
            self.tally.note_queues(now, port, || {
                let waits = self.fabric.has_scheduled_queue(port);
                waits.then(|| view(&self.hosts, &self.flows, &self.tickets.as_sent::<O>(&packet)))
            });
        }
        let offered = self.fabric.offer_in::<PLAIN>(now, port, ingress, packet);
        self.offered(port, packet, offered);
    }

    /// Frames of flow control have set out.
    #[inline]
    fn expect_frames(&mut self) {
        while let Some((port, at)) = self.fabric.poll_pause_frame() {
            self.clock.reschedule(EventKind::Frame(port), at);
        }
    }

    /// A frame of flow control has reached the near end of a link.
    #[inline(never)]
    pub(super) fn on_pause_frame(&mut self, port: PortId) {
        let heeded = self.fabric.on_pause_frame(self.clock.now(), port);
        if let Some(at) = heeded.idle {
            self.clock.reschedule(EventKind::Idle(port), at);
        }
        if let Some(at) = heeded.next {
            self.clock.reschedule(EventKind::Frame(port), at);
        }
    }

    /// Handles the outcome of a packet offered to a link.
    #[inline(always)]
    fn offered(&mut self, port: PortId, packet: Packet, offered: OfferOutcome) {
        match offered {
            OfferOutcome::AcceptedFirst(_) | OfferOutcome::AcceptedBehind
                if E::IS_PART && self.extent.leaves(port) =>
            {
                return self.cross(port);
            }
            OfferOutcome::AcceptedFirst(at) => self.clock.schedule(EventKind::Arrival(port), at),
            OfferOutcome::AcceptedBehind => {}
            OfferOutcome::Queued(idle) => {
                let now = self.clock.now();
                self.tally.trace(|observer| {
                    observer.packet_waits(
                        now,
                        PacketIds::of(&packet),
                        port,
                        self.fabric.port(port),
                    );
                });
                while let Some(displaced) = self.fabric.displaced() {
                    if displaced.is_returned() {
                        // The arriving packet takes the place of one that waited.
                        self.tally.trace(|observer| {
                            let ticket = PacketIds::of(&displaced);
                            observer.packet_leaves(now, ticket, port, self.fabric.port(port));
                        });
                        self.turn_back(port, displaced);
                    } else {
                        self.tally.trace(|observer| {
                            observer.packet_displaced(now, PacketIds::of(&displaced), port);
                        });
                        self.trace_packet(&displaced);
                        trace!("displaced by a packet that the queue prefers");
                        self.drop_packet(port, displaced);
                    }
                }
                if let Some(at) = idle {
                    self.expect_idle(port, at);
                }
                return;
            }
            OfferOutcome::Returned => {
                let header = self.fabric.displaced().expect("its header goes back");
                return self.turn_back(port, header);
            }
            OfferOutcome::Dropped => {
                self.end(&packet);
                return self.drop_packet(port, packet);
            }
            OfferOutcome::Lost => {
                self.end(&packet);
                return self.lose_packet(port, packet, Loss::DeadLink);
            }
        }
        self.tally.note_accepted(self.clock.now(), port, || {
            // As it will leave: the queue may have marked it.
            let (accepted, departs) = self.fabric.last(port);
            (departs, view(&self.hosts, &self.flows, &self.tickets.as_sent::<O>(accepted)))
        });
        self.tally.trace(|observer| {
            let departs = self.fabric.busy_until(port);
            let begins = departs - self.fabric.transmission(port, packet.wire_bytes);
            let (now, ticket) = (self.clock.now(), PacketIds::of(&packet));
            observer.packet_on_link(now, ticket, port, self.fabric.port(port), begins, departs);
        });
    }

    /// The transmitter of a port with a scheduled queue falls idle.
    #[inline]
    pub(super) fn idle(&mut self, port: PortId) {
        if self.turns.any() {
            return self.idle_in_turns(port);
        }
        self.depart(port);
    }

    /// The same, where senders hand over packets in turns.
    #[inline(never)]
    fn idle_in_turns(&mut self, port: PortId) {
        self.before_departure(port);
        // A port is not asked for nothing: it would expect to be asked again.
        let waits = self.fabric.waiting_at(port) > 0;
        let taken = if waits { self.depart(port) } else { None };
        self.after_departure(port, taken.as_ref());
    }

    /// The transmitter of a port takes the next packet from its queue, and returns it.
    #[inline]
    fn depart(&mut self, port: PortId) -> Option<Packet> {
        let now = self.clock.now();
        if E::IS_PART && self.extent.leaves(port) {
            self.fabric.forget_arrived(now, port);
        }
        let taken = self.fabric.on_transmitter_idle(now, port)?;
        self.tally.trace(|observer| {
            let ticket = PacketIds::of(&taken.packet);
            observer.packet_leaves(now, ticket, port, self.fabric.port(port));
        });
        self.offered(port, taken.packet, taken.offered);
        if let Some(at) = taken.idle {
            self.expect_idle(port, at);
        }
        self.expect_frames();
        Some(taken.packet)
    }

    /// A transmitter falls idle at this time. Where senders take turns it may be known already.
    #[inline]
    fn expect_idle(&mut self, port: PortId, at: Time) {
        match self.turns.any() {
            true => self.clock.reschedule(EventKind::Idle(port), at),
            false => self.clock.schedule(EventKind::Idle(port), at),
        }
    }

    /// Something fails or comes back.
    #[cold]
    pub(super) fn incident(&mut self) -> Result<(), RouteError> {
        let now = self.clock.now();
        for consequence in self.fabric.apply_incidents(now, &self.scenario.graph)? {
            match consequence {
                // What is on a link is known where it arrives.
                Consequence::Lost { port, waited: false, .. }
                    if E::IS_PART && self.extent.leaves(port) =>
                {
                    self.fabric.take_back_loss(port);
                }
                Consequence::Arrives { port, .. } if E::IS_PART && self.extent.leaves(port) => {}
                Consequence::Lost { port, packet, .. } => {
                    self.tally.trace(|observer| {
                        observer.packet_stranded(now, PacketIds::of(&packet), port);
                    });
                    self.lose_packet(port, packet, Loss::UnderWay);
                }
                Consequence::Arrives { port, at } => {
                    self.clock.reschedule_or_cancel(EventKind::Arrival(port), at)
                }
                Consequence::Idle { port, at } => {
                    self.clock.reschedule_or_cancel(EventKind::Idle(port), at);
                    if at.is_none() {
                        self.after_departure(port, None);
                    }
                }
                Consequence::Changed { port, rate, propagation } => {
                    self.tally.note_change(now, port, rate, propagation);
                    self.pulls.change_rate(&self.scenario.graph, port, rate);
                    self.tally.trace(|observer| {
                        let departures = self.fabric.departures(port).into_iter();
                        let departures: Vec<_> =
                            departures.map(|(packet, at)| (PacketIds::of(&packet), at)).collect();
                        observer.link_retimed(now, port, &departures);
                    });
                }
                Consequence::Rerouted => self.tally.reroute(&self.scenario.graph, &self.fabric),
            }
        }
        if self.fabric.has_interfaces() {
            self.pulls.refresh(&self.fabric);
            self.reassign_turns();
        }
        self.expect_frames();
        if let Some(at) = self.fabric.next_incident().filter(|_| !E::IS_PART && !self.is_over()) {
            self.clock.schedule(EventKind::Incident, at);
        }
        Ok(())
    }

    /// The switch of `port` sends a header back to the sender of its packet.
    #[cold]
    fn turn_back(&mut self, port: PortId, mut header: Packet) {
        let now = self.clock.now();
        self.trace_packet(&header);
        trace!("trimmed to its header, which goes back to its sender");
        self.tally.note_returned(now, port, || {
            let packet = self.tickets.as_sent::<O>(&header.before_return());
            view(&self.hosts, &self.flows, &packet)
        });
        let egress = self.fabric.turn_back(now, port, &mut header);
        self.transmit(egress, Some(port.reversed()), header);
    }

    #[cold]
    pub(super) fn drop_packet(&mut self, port: PortId, packet: Packet) {
        let packet = self.tickets.redeemed::<O>(packet);
        self.trace_loss("dropped", port, &packet);
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_dropped(self.clock.now(), port, seen);
        self.forget(packet);
    }

    /// A packet is lost to a failure.
    #[cold]
    pub(super) fn lose_packet(&mut self, port: PortId, packet: Packet, loss: Loss) {
        let packet = self.tickets.redeemed::<O>(packet);
        let how = match loss {
            Loss::DeadLink => "lost to a dead link",
            Loss::UnderWay => "lost to the failure of its link",
            Loss::Corrupted => "lost to its checksum",
        };
        self.trace_loss(how, port, &packet);
        let seen = || view(&self.hosts, &self.flows, &packet);
        self.tally.note_lost(self.clock.now(), port, loss, seen);
        self.forget(packet);
    }

    /// A packet is no more, to an observer who follows packets.
    #[cold]
    fn end(&mut self, packet: &Packet) {
        self.tally.trace(|observer| {
            observer.packet_ends(self.clock.now(), PacketIds::of(packet), packet);
        });
    }

    /// A packet is no more.
    fn forget(&mut self, packet: Packet) {
        self.hosts.release_options(&packet);
        if E::IS_PART {
            return self.release_in_part(&packet);
        }
        self.hosts.release(packet.connection);
        self.retire_if_over(packet.connection);
    }
}
