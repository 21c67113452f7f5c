//! Packets ahead at each port. Kept for all flows, so that the number is known when a packet of a
//! story arrives.

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

/// The packets that one port has accepted and not sent yet.
#[derive(Debug, Clone, Default)]
pub(super) struct PortBacklog {
    accepted: VecDeque<Accepted>,
    /// Packets accepted since the run began.
    count: u64,
    /// Packets accepted of each flow that has a story.
    own: Vec<(u64, u64)>,
}

/// Packets that a port has accepted: all, and those of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Served {
    pub all: u64,
    pub own: u64,
}

impl PortBacklog {
    /// Returns how many packets are ahead of a packet of `flow` that arrives at `now`: all, and
    /// those of `flow`.
    pub fn ahead(&mut self, now: Time, flow: u64) -> (u32, u32) {
        self.forget(now);
        let own = self.accepted.iter().filter(|packet| packet.flow == flow).count();
        (self.accepted.len() as u32, own as u32)
    }

    /// Adds an accepted packet; `has_story`: its flow has a story.
    pub fn accept(&mut self, now: Time, packet: Accepted, has_story: bool) {
        self.forget(now);
        self.accepted.push_back(packet);
        self.count += 1;
        if has_story {
            let flow = packet.flow;
            match self.own.iter_mut().find(|(known, _)| *known == flow) {
                Some((_, count)) => *count += 1,
                None => self.own.push((flow, 1)),
            }
        }
    }

    /// Returns how many packets the port has accepted so far: all, and those of `flow`.
    pub fn served(&self, flow: u64) -> Served {
        let own = self.own.iter().find(|(known, _)| *known == flow);
        Served { all: self.count, own: own.map_or(0, |(_, count)| *count) }
    }

    /// Re-times the packets that have not left, as the port does, because the link's rate changes
    /// from `old` to `new`. Calls `tell` for each packet, with the time at which it begins unless
    /// it has begun.
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

    /// Forgets all packets, which are lost on the link.
    pub fn clear(&mut self) {
        self.accepted.clear();
    }

    fn forget(&mut self, now: Time) {
        while self.accepted.front().is_some_and(|first| first.departs <= now) {
            self.accepted.pop_front();
        }
    }
}
