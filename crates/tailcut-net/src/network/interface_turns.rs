//! Turns at the interfaces of hosts with several: a host's senders hand over one data packet each,
//! whenever an interface has sent what its host gave it. Senders that keep to one interface wait
//! for that; where each packet chooses, all senders of a host wait in one line for all of its
//! interfaces.
//!
//! The clock of an interface goes by what its own host hands over. A dead link takes packets at the
//! rate of the link, so that it loses no more than its share, and what other accelerators send by
//! an interface does not keep its owner from its turns.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::Network;
use super::clock::EventKind;
use super::partition::Extent;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags, Packet};
use crate::topology::{Attachment, Graph, PortId};

/// The turns of all hosts.
#[derive(Debug, Clone)]
pub(super) struct InterfaceTurns {
    /// The senders that wait, by host where each packet chooses, and else by the host's link.
    lines: Vec<VecDeque<ConnectionId>>,
    /// Links of a host that have one line.
    shared: usize,
    /// By a host's link: when the host has sent what it handed over.
    free: Vec<Time>,
}

impl InterfaceTurns {
    pub fn new(graph: &Graph, fabric: &Fabric) -> InterfaceTurns {
        let links = interfaces(graph);
        let shared = fabric.interfaces_per_connection() as usize;
        let lines = vec![VecDeque::new(); links / shared];
        InterfaceTurns { lines, shared, free: vec![Time::ZERO; links] }
    }

    /// Returns the number of interfaces.
    pub fn interfaces(&self) -> u32 {
        self.free.len() as u32
    }

    /// A host has handed a packet over that takes so long to send.
    pub fn note_sent(&mut self, now: Time, port: PortId, transmission: Time) {
        let free = &mut self.free[port.link()];
        *free = now.max(*free) + transmission;
    }

    fn line(&mut self, port: PortId) -> &mut VecDeque<ConnectionId> {
        &mut self.lines[port.link() / self.shared]
    }
}

/// Returns the number of links of hosts, which are a graph's first, where hosts have several.
pub(super) fn interfaces(graph: &Graph) -> usize {
    let each = match graph.attachment {
        Attachment::Single => 1,
        Attachment::Planes { planes } => planes,
        Attachment::Rails { .. } => 2,
    };
    (graph.hosts * each) as usize
}

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// A host with several interfaces hands a packet over to one of them, `port` where that is given.
    #[inline(never)]
    pub(super) fn leave_by(
        &mut self,
        port: Option<PortId>,
        id: ConnectionId,
        packet: &Packet,
    ) -> PortId {
        let now = self.clock.now();
        let Some(turns) = &self.turns.several else { return self.fabric.uplink(now, packet) };
        let host = packet.key.src();
        let port = port.or_else(|| self.kept_interface(id, packet)).unwrap_or_else(|| {
            let usable = |port: &PortId| self.fabric.may_leave_by(*port, packet.key);
            let ports = self.fabric.interfaces_in_turn(host).filter(usable);
            let first = ports.min_by_key(|port| turns.free[port.link()].max(now));
            first.expect("some interface is usable")
        });
        self.fabric.pass_turn(host, port);
        let transmission = self.fabric.transmission(port, packet.wire_bytes);
        if let Some(turns) = &mut self.turns.several {
            turns.note_sent(now, port, transmission);
        }
        port
    }

    /// Returns the interface of a packet whose connection keeps to one: to one plane or rail both
    /// ways, as between two endpoints of the fabric.
    fn kept_interface(&self, id: ConnectionId, packet: &Packet) -> Option<PortId> {
        let back = packet.flags.has(Flags::TO_SENDER);
        let key = match back {
            true => self.hosts.receiver_info(id).key.reversed(),
            false => self.hosts.sender_info(id).key,
        };
        self.fabric.kept_interface(key, back)
    }

    /// Returns the interface for which a sender waits; the first of its host's, where any will do.
    fn awaited(&self, id: ConnectionId) -> (PortId, bool) {
        let key = self.hosts.sender_info(id).key;
        match self.fabric.kept_interface(key, false) {
            Some(port) => (port, true),
            None => (self.fabric.host_port(key.src()), false),
        }
    }

    /// A sender that wants a turn joins those that wait for the same interfaces, and gets one at
    /// once where one of these is idle.
    #[inline(never)]
    pub(super) fn ask_for_interface(&mut self, id: ConnectionId) {
        if !self.hosts.queue_for_turn(id) {
            return;
        }
        let (port, is_kept) = self.awaited(id);
        self.wait_for_interface(id, port);
        match is_kept {
            true => self.give_turns_at(port),
            false => self.give_turns_of(id),
        }
    }

    /// Gives turns at all interfaces that a sender may use.
    fn give_turns_of(&mut self, id: ConnectionId) {
        let host = self.hosts.sender_info(id).key.src();
        for port in self.fabric.interfaces_in_turn(host) {
            self.give_turns_at(port);
        }
    }

    fn wait_for_interface(&mut self, id: ConnectionId, port: PortId) {
        if let Some(turns) = &mut self.turns.several {
            turns.line(port).push_back(id);
            self.tally.trace(|observer| observer.turn_wanted(self.clock.now(), id));
        }
    }

    /// Gives turns at an interface until its host has something to send there, and makes sure that
    /// it is asked again when that is sent.
    pub(super) fn give_turns_at(&mut self, port: PortId) {
        while self.is_free(port) {
            let Some((id, contenders)) = self.next_in_line(port) else { return };
            self.hosts.leave_turns(id);
            self.hosts.retain(id);
            if self.send_in_turn(id, contenders, Some(port))
                && self.hosts.sender(id).wants_turn(self.hosts.sender_profile(id))
                && self.hosts.queue_for_turn(id)
            {
                let (awaited, _) = self.awaited(id);
                self.wait_for_interface(id, awaited);
            }
            self.expect_sender(id);
            self.hosts.release(id);
            self.retire_if_over(id);
        }
        if let Some(turns) = &mut self.turns.several
            && !turns.line(port).is_empty()
        {
            self.clock.reschedule(EventKind::Turn(port), turns.free[port.link()]);
        }
    }

    fn is_free(&self, port: PortId) -> bool {
        let free = |turns: &InterfaceTurns| turns.free[port.link()] <= self.clock.now();
        self.turns.several.as_deref().is_some_and(free)
    }

    /// Takes the first sender out of line that may send by an interface; also returns how many
    /// wait, with it.
    fn next_in_line(&mut self, port: PortId) -> Option<(ConnectionId, u32)> {
        let line = self.turns.several.as_mut()?.line(port);
        let may =
            |id: &ConnectionId| self.fabric.may_leave_by(port, self.hosts.sender_info(*id).key);
        let first = line.iter().position(may)?;
        let contenders = line.len() as u32;
        line.remove(first).map(|id| (id, contenders))
    }

    /// Senders may have learned of failures: each waits for the interfaces that it may use now.
    #[cold]
    pub(super) fn reassign_turns(&mut self) {
        let Some(turns) = &mut self.turns.several else { return };
        let waiting: Vec<ConnectionId> =
            turns.lines.iter_mut().flat_map(|line| line.drain(..)).collect();
        for &id in &waiting {
            let (port, _) = self.awaited(id);
            if let Some(turns) = &mut self.turns.several {
                turns.line(port).push_back(id);
            }
        }
        for id in waiting {
            if !self.hosts.waits_for_turn(id) {
                continue;
            }
            match self.awaited(id) {
                (port, true) => self.give_turns_at(port),
                (_, false) => self.give_turns_of(id),
            }
        }
    }

    /// A connection is over: its sender waits no more.
    pub(super) fn leave_interface_turns(&mut self, id: ConnectionId) {
        let (port, _) = self.awaited(id);
        if let Some(turns) = &mut self.turns.several {
            turns.line(port).retain(|&other| other != id);
        }
    }
}
