//! Turns at the interfaces of sending hosts: where a transport asks for it, a host's senders hand
//! over one data packet each, whenever the interface has none left to send. What a sender sends is
//! decided when it leaves, and not when it has room for it (Ultra Ethernet).

use std::collections::VecDeque;

use super::Network;
use super::clock::EventKind;
use super::interface_turns::InterfaceTurns;
use super::partition::Extent;
use super::profile::TransportProfile;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags, Packet};
use crate::topology::{Graph, HostId, PortId};

/// The senders of one host that want a turn.
#[derive(Debug, Clone, Default)]
struct Line {
    waiting: VecDeque<ConnectionId>,
    /// A data packet waits in the interface's queue.
    has_packet: bool,
}

/// The turns of all hosts; none where no transport takes turns.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    hosts: Vec<Line>,
    /// The interfaces of hosts with several, where transports pace packets by them.
    pub several: Option<Box<InterfaceTurns>>,
}

impl Turns {
    pub fn new(profiles: &[TransportProfile], graph: &Graph, fabric: &Fabric) -> Turns {
        let any = profiles.iter().any(|profile| profile.kind.takes_turns());
        if fabric.has_interfaces() {
            let paced = profiles.iter().any(|profile| profile.kind.pulls());
            let several = paced.then(|| Box::new(InterfaceTurns::new(graph, fabric)));
            return Turns { hosts: vec![], several };
        }
        let hosts = if any { graph.each_host().len() } else { 0 };
        Turns { hosts: vec![Line::default(); hosts], several: None }
    }

    /// Whether senders of hosts with one interface take turns.
    #[inline]
    pub fn any(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Returns the number of interfaces that have turns, where hosts have several.
    pub fn interfaces(&self) -> u32 {
        self.several.as_ref().map_or(0, |several| several.interfaces())
    }

    /// The hosts with one interface whose senders take turns.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// A sender is over: it waits no more.
    fn leave(&mut self, host: HostId, id: ConnectionId) {
        self.hosts[host.index()].waiting.retain(|&other| other != id);
    }
}

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// A sender may want a turn: it joins those of its host that wait, and gets one at once where
    /// the interface is idle.
    #[inline]
    pub(super) fn ask_for_turn(&mut self, id: ConnectionId) {
        if !self.hosts.sender(id).wants_turn(self.hosts.sender_profile(id)) {
            return;
        }
        if self.turns.several.is_some() {
            return self.ask_for_interface(id);
        }
        let host = self.hosts.sender_info(id).key.src();
        if !self.hosts.queue_for_turn(id) {
            return;
        }
        self.wait_for_turn(host, id);
        self.expect_turn(host, self.fabric.host_port(host));
    }

    fn wait_for_turn(&mut self, host: HostId, id: ConnectionId) {
        self.turns.hosts[host.index()].waiting.push_back(id);
        self.tally.trace(|observer| observer.turn_wanted(self.clock.now(), id));
    }

    /// The first sender in line that still has something to send sends a packet, and waits for its
    /// next turn.
    fn give_turn(&mut self, host: HostId, port: PortId) {
        while let Some(id) = self.turns.hosts[host.index()].waiting.pop_front() {
            self.hosts.leave_turns(id);
            let contenders = 1 + self.turns.hosts[host.index()].waiting.len() as u32;
            self.hosts.retain(id);
            let waiting = self.fabric.waiting_at(port);
            let sent = self.send_in_turn(id, contenders, None);
            if sent {
                self.turns.hosts[host.index()].has_packet = self.fabric.waiting_at(port) > waiting;
                if self.hosts.sender(id).wants_turn(self.hosts.sender_profile(id))
                    && self.hosts.queue_for_turn(id)
                {
                    self.wait_for_turn(host, id);
                }
            }
            self.expect_sender(id);
            self.hosts.release(id);
            self.retire_if_over(id);
            if sent {
                return;
            }
        }
    }

    /// A sender sends a packet by `port`, or by its host's only interface, if it still has
    /// something to send; `contenders` senders wait for the turn. Returns whether it does.
    #[inline(always)]
    pub(super) fn send_in_turn(
        &mut self,
        id: ConnectionId,
        contenders: u32,
        port: Option<PortId>,
    ) -> bool {
        let now = self.clock.now();
        if E::IS_PART && self.hosts.sender(id).finished() {
            self.extent.part().doubt();
        }
        self.tally.trace(|observer| observer.turn_given(now, id, contenders == 1));
        self.hosts.sender_mut(id).grant_turn(contenders);
        let Some(transmit) = self.hosts.poll_sender(id, now) else { return false };
        let segment = self.hosts.segment(id, now, transmit, None);
        let mut key = self.hosts.sender_info(id).key;
        if self.hosts.sender_profile(id).has_entropy {
            key = key.with_sport(segment.entropy);
        }
        self.send_by(port, key, id, segment);
        self.note_segment_sent(id, transmit);
        true
    }

    /// Gives turns while the interface is idle, and makes sure that it is asked again when it has
    /// sent what it has. A dead link takes what it is offered at once; a paused one asks again
    /// when it resumes, as long as something waits in its queue.
    fn expect_turn(&mut self, host: HostId, port: PortId) {
        let now = self.clock.now();
        while self.someone_waits(host) && self.fabric.is_idle(now, port) {
            self.give_turn(host, port);
        }
        let idle = self.fabric.busy_until(port);
        if self.someone_waits(host) && idle > now {
            self.clock.reschedule(EventKind::Idle(port), idle);
        }
    }

    fn someone_waits(&self, host: HostId) -> bool {
        !self.turns.hosts[host.index()].waiting.is_empty()
    }

    /// The transmitter of a host has fallen idle: the next sender in line hands over a packet, if
    /// none waits.
    pub(super) fn before_departure(&mut self, port: PortId) {
        let Some(host) = self.sending_host(port) else { return };
        if !self.turns.hosts[host.index()].has_packet
            && self.fabric.busy_until(port) <= self.clock.now()
        {
            self.give_turn(host, port);
        }
    }

    /// The transmitter of a host has taken a packet, or has found none.
    pub(super) fn after_departure(&mut self, port: PortId, taken: Option<&Packet>) {
        let Some(host) = self.sending_host(port) else { return };
        // What waited may have been lost with its link.
        let is_empty = self.fabric.waiting_at(port) == 0;
        if is_empty || taken.is_some_and(|packet| packet.flags.has(Flags::DATA)) {
            self.turns.hosts[host.index()].has_packet = false;
        }
        self.expect_turn(host, port);
    }

    /// Returns the host whose interface a port is, where senders take turns.
    fn sending_host(&self, port: PortId) -> Option<HostId> {
        match self.turns.any() {
            true => self.scenario.graph.host(self.fabric.port(port.reversed()).far_end()),
            false => None,
        }
    }

    /// A connection is over, and its place will be another's.
    pub(super) fn leave_turns(&mut self, id: ConnectionId) {
        let takes = self.turns.any() || self.turns.several.is_some();
        if takes && self.hosts.leave_turns(id) {
            match self.turns.several {
                None => self.turns.leave(self.hosts.sender_info(id).key.src(), id),
                Some(_) => self.leave_interface_turns(id),
            }
            if E::IS_PART {
                self.extent.part().doubt();
            }
        }
    }
}
