//! Who is in front of whom at the ports: kept for all packets, so that it is known when one of a story comes.

use std::collections::VecDeque;

use tailcut_engine::{Rate, Time};

use crate::port::Retiming;

/// A packet that a port has accepted and not sent yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    pub departs: Time,
    pub wire_bytes: u16,
    pub flow: u64,
    /// Its number in the story of its flow, if it is in one.
    pub number: Option<usize>,
}

/// A port.
#[derive(Debug, Clone, Default)]
pub(super) struct PortBacklog {
    accepted: VecDeque<Accepted>,
    /// Packets accepted since the run began.
    count: u64,
    /// Those of flows that have a story.
    own: Vec<(u64, u64)>,
}

/// How many packets a port has accepted: all, and those of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Served {
    pub all: u64,
    pub own: u64,
}

impl PortBacklog {
    /// What is in front of a packet of `flow` that comes now: packets, and those of its own flow.
    pub fn ahead(&mut self, now: Time, flow: u64) -> (u32, u32) {
        self.forget(now);
        let own = self.accepted.iter().filter(|packet| packet.flow == flow).count();
        (self.accepted.len() as u32, own as u32)
    }

    /// A packet is accepted; `told` if its flow has a story.
    pub fn accept(&mut self, now: Time, packet: Accepted, told: bool) {
        self.forget(now);
        self.accepted.push_back(packet);
        self.count += 1;
        if told {
            let flow = packet.flow;
            match self.own.iter_mut().find(|(known, _)| *known == flow) {
                Some((_, count)) => *count += 1,
                None => self.own.push((flow, 1)),
            }
        }
    }

    /// What the port has accepted so far.
    pub fn served(&self, flow: u64) -> Served {
        let own = self.own.iter().find(|(known, _)| *known == flow);
        Served { all: self.count, own: own.map_or(0, |(_, count)| *count) }
    }

    /// The link has another rate from now on: what has not left is re-timed as the port does it. Tells of each packet when
    /// it begins, unless it has begun, and departs.
    pub fn retime(
        &mut self,
        now: Time,
        (old, new): (Rate, Rate),
        tell: &mut dyn FnMut(&Accepted, Option<Time>),
    ) {
        self.forget(now);
        let mut retiming = Retiming::new(now, old, new);
        for packet in &mut self.accepted {
            let begins;
            (begins, packet.departs) = retiming.next(packet.departs, packet.wire_bytes);
            tell(packet, begins);
        }
    }

    /// Everything on the link is lost.
    pub fn clear(&mut self) {
        self.accepted.clear();
    }

    fn forget(&mut self, now: Time) {
        while self.accepted.front().is_some_and(|first| first.departs <= now) {
            self.accepted.pop_front();
        }
    }
}
