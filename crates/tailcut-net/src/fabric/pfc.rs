//! Priority flow control (IEEE 802.1Qbb) with one priority: a switch that holds much of what came by one link has the far end of that
//! link stop, so that nothing has to be dropped.
//!
//! A switch counts, for each link that leads to it, the bytes that came by it and wait. Above `xoff` it sends a pause frame back, at `xon` or below
//! another one that ends the pause. A frame waits for the packet in service on the way back, but for no other, and takes its time on the link.
//! The far end, a switch or a host, stops after the packet that it is sending. Pauses last until they are ended: in
//! reality frames repeat them.

use std::collections::{BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::{Fabric, Offered};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::port::Port;
use crate::topology::PortId;

/// Parameters of priority flow control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pfc {
    /// A link is paused when more than this came by it and waits. What still comes then has to find room beside it: three
    /// packets and what both ways of the wire hold, 5.3 KB at 1 Gbps and 2 us.
    pub xoff: Bytes,
    /// It goes on when no more than this is left.
    pub xon: Bytes,
}

impl Default for Pfc {
    fn default() -> Self {
        Pfc { xoff: Bytes(20_000), xon: Bytes(10_000) }
    }
}

impl Pfc {
    /// Checks the thresholds.
    ///
    /// # Errors
    /// When a pause would end before it has begun.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.xon.0 < self.xoff.0 {
            return Ok(());
        }
        let message = format!("xoff = \"{}\" and xon = \"{}\": xon is less", self.xoff, self.xon);
        Err(SpecError::new("pfc-thresholds", "pfc.xon", message)
            .hint("a pause ends a few packets below where it begins"))
    }
}

/// A pause frame on the wire: 64 bytes, preamble and gap.
const FRAME: u16 = 84;

/// One link, and the ends that it joins.
#[derive(Debug, Clone, Default)]
struct Link {
    /// At the far end: bytes that came by it and wait, and whether it was asked to pause.
    held: u64,
    asked: bool,
    /// Frames on their way to the near end, and when each arrives.
    frames: VecDeque<(Time, bool)>,
    /// At the near end: it has stopped.
    paused: bool,
    /// Its transmitter is to be asked when it falls idle.
    armed: bool,
    /// By which link what waits for it came, and how much that is.
    waiting: VecDeque<(Option<PortId>, u16)>,
}

/// Flow control at work.
#[derive(Debug, Clone)]
pub(super) struct Pauses {
    xoff: u64,
    xon: u64,
    links: Vec<Link>,
    /// How often a switch has asked for a pause.
    count: u64,
    /// Links whose next frame was not told of yet, and when it arrives.
    due: Vec<(PortId, Time)>,
}

impl Pauses {
    pub fn new(spec: &Pfc, ports: usize) -> Pauses {
        let links = vec![Link::default(); ports];
        Pauses { xoff: spec.xoff.0, xon: spec.xon.0, links, count: 0, due: vec![] }
    }

    /// A packet waits at `port`.
    fn add(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        bytes: u16,
        ports: &[Port],
    ) {
        self.links[port.index()].waiting.push_back((ingress, bytes));
        let Some(ingress) = ingress else { return };
        let link = &mut self.links[ingress.index()];
        link.held += u64::from(bytes);
        if link.held > self.xoff && !link.asked {
            link.asked = true;
            self.count += 1;
            self.send(now, ingress, true, ports);
        }
    }

    /// The packet that has waited longest at `port` leaves.
    fn remove(&mut self, now: Time, port: PortId, ports: &[Port]) {
        let first = self.links[port.index()].waiting.pop_front();
        let Some((Some(ingress), bytes)) = first else { return };
        let link = &mut self.links[ingress.index()];
        link.held -= u64::from(bytes);
        if link.held <= self.xon && link.asked {
            link.asked = false;
            self.send(now, ingress, false, ports);
        }
    }

    /// Sends a frame back along a link.
    fn send(&mut self, now: Time, ingress: PortId, pause: bool, ports: &[Port]) {
        let back = &ports[ingress.reversed().index()];
        let leaves = back.busy_until().max(now) + Time(back.transmission_time(FRAME));
        let frames = &mut self.links[ingress.index()].frames;
        // One that is behind another does not overtake it where the wire has become shorter.
        let arrives = (leaves + back.propagation()).max(frames.back().map_or(now, |last| last.0));
        frames.push_back((arrives, pause));
        if frames.len() == 1 {
            self.due.push((ingress, arrives));
        }
    }

    /// A link has failed or come back: nobody remembers what was asked along it.
    fn forget(&mut self, port: PortId) {
        let link = &mut self.links[port.index()];
        link.frames.clear();
        (link.asked, link.paused) = (false, false);
    }
}

/// What a pause frame has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heeded {
    /// [`Fabric::idle`] is due at this time: the link goes on.
    pub idle: Option<Time>,
    /// [`Fabric::heed`] is due again.
    pub next: Option<Time>,
}

impl Fabric {
    /// Whether links may be paused: only then does [`Fabric::heed`] have to be called.
    pub fn pauses_any(&self) -> bool {
        self.pauses.is_some()
    }

    /// A link of which a pause frame is on its way back, and when it arrives, of those not told of yet: [`Fabric::heed`] is due then.
    #[inline]
    pub fn frame(&mut self) -> Option<(PortId, Time)> {
        self.pauses.as_mut()?.due.pop()
    }

    /// A pause frame has arrived at the near end of a link.
    pub fn heed(&mut self, now: Time, port: PortId) -> Heeded {
        let waits = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        let free = self.ports[port.index()].busy_until().max(now);
        let Some(pauses) = &mut self.pauses else { return Heeded { idle: None, next: None } };
        let link = &mut pauses.links[port.index()];
        while let Some(&(_, pause)) = link.frames.front().filter(|(at, _)| *at <= now) {
            link.frames.pop_front();
            link.paused = pause;
        }
        let goes_on = !link.paused && !link.armed && waits;
        link.armed |= goes_on;
        Heeded { idle: goes_on.then_some(free), next: link.frames.front().map(|frame| frame.0) }
    }

    /// Offers a packet to a port that may be paused.
    pub(super) fn offer_pausable(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> Offered {
        let waits = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        let busy_until = self.ports[port.index()].busy_until();
        let paused = self.pauses.as_ref().is_some_and(|p| p.links[port.index()].paused);
        if !waits && !paused && busy_until <= now {
            return self.put(now, port, packet);
        }
        let offered = self.enqueue(now, port, packet);
        let Some(pauses) = self.pauses.as_mut().filter(|_| offered != Offered::Dropped) else {
            return offered;
        };
        pauses.add(now, port, ingress, packet.wire_bytes, &self.ports);
        let link = &mut pauses.links[port.index()];
        let asks = !link.paused && !link.armed;
        link.armed |= asks;
        Offered::Waits(asks.then(|| busy_until.max(now)))
    }

    /// Whether the transmitter of a port goes on with what waits, now that it is idle.
    pub(super) fn goes_on(&mut self, port: PortId) -> bool {
        let Some(pauses) = &mut self.pauses else { return true };
        let link = &mut pauses.links[port.index()];
        link.armed = !link.paused;
        link.armed
    }

    /// A packet has left the queue of a port; `more` wait there.
    pub(super) fn leaves_pausable(&mut self, now: Time, port: PortId, more: bool) {
        if let Some(pauses) = &mut self.pauses {
            pauses.links[port.index()].armed = more;
            pauses.remove(now, port, &self.ports);
        }
    }

    /// Whether a transmitter is to be asked when it falls idle, as far as pauses go.
    pub(super) fn is_armed(&self, port: PortId) -> bool {
        self.pauses.as_ref().is_none_or(|pauses| pauses.links[port.index()].armed)
    }

    /// A link has failed or come back.
    pub(super) fn forget_pauses(&mut self, port: PortId) {
        if let Some(pauses) = &mut self.pauses {
            pauses.links[port.index()].armed = false;
            pauses.forget(port);
        }
    }

    /// How often links were paused, and how many will be for ever, by the names of the results; none without flow control.
    pub(crate) fn pauses(&self) -> Vec<(&'static str, u64)> {
        let told = |pauses: &Pauses| {
            vec![("pauses", pauses.count), ("deadlocked_links", self.deadlock().len() as u64)]
        };
        self.pauses.as_ref().map_or_else(Vec::new, told)
    }

    /// Links that wait for each other and will for ever: each is paused for packets that wait, in the end, for it. None unless
    /// there is a circle of links in which every switch holds more than `xon` for the next.
    pub fn deadlock(&self) -> Vec<PortId> {
        let Some(Pauses { links, xon, .. }) = &self.pauses else { return vec![] };
        let stands = |link: &Link| link.paused && link.asked && link.frames.is_empty();
        let mut stuck: BTreeSet<PortId> =
            (0..links.len()).map(PortId::at).filter(|&port| stands(&links[port.index()])).collect();
        loop {
            let mut held = vec![0; links.len()];
            for &port in &stuck {
                for &(ingress, bytes) in &links[port.index()].waiting {
                    if let Some(ingress) = ingress {
                        held[ingress.index()] += u64::from(bytes);
                    }
                }
            }
            let before = stuck.len();
            stuck.retain(|&port| held[port.index()] > *xon);
            if stuck.len() == before {
                return stuck.into_iter().collect();
            }
        }
    }
}
