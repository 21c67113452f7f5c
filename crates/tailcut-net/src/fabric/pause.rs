//! Flow control from hop to hop at work ([`crate::switch::flow_control`] says when a link stops): a
//! switch that holds much of what came by one link has the far end of that link stop.
//!
//! A switch counts, for each link that leads to it, the bytes that came by it and wait. Where they
//! are too many it sends a frame back, and where they no longer are, another one. A frame waits for
//! the packet in service on the way back, but for no other, and takes its time on the link. The far
//! end, a switch or a host, stops after the packet that it is sending.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tailcut_engine::Time;

use super::{Fabric, OfferOutcome};
use crate::packet::Packet;
use crate::port::Port;
use crate::switch::flow_control::FlowControl;
use crate::topology::PortId;

/// A link at its far end, in the switch or the host that it leads to.
#[derive(Debug, Clone, Copy, Default)]
struct FarEnd {
    /// Bytes that came by it and wait.
    held: u64,
    /// Whether it has been asked to stop.
    asked: bool,
    /// The arrival of the last frame that was sent back.
    answered: Time,
}

/// A link at its near end, in the switch or the host that sends by it. It hears of the other end by
/// frames only.
#[derive(Debug, Clone, Default)]
struct NearEnd {
    /// Frames on their way to it: when each arrives, and whether it is to stop.
    frames: VecDeque<(Time, bool)>,
    /// Whether it has stopped.
    stopped: bool,
    /// Whether its transmitter is asked when it falls idle.
    armed: bool,
    /// By which link what waits for it came, and how much that is.
    waiting: VecDeque<(Option<PortId>, u16)>,
}

/// Flow control at work.
#[derive(Debug, Clone)]
pub(super) struct PauseState {
    kind: Arc<dyn FlowControl>,
    /// Both ends of each link, by its port. One switch has the near ends of the links that leave it
    /// and the far ends of those that lead to it, and looks at no others.
    near: Vec<NearEnd>,
    far: Vec<FarEnd>,
    /// The number of stops that switches have asked for.
    count: u64,
    /// Links whose next frame was not told of yet, and when it arrives.
    due: Vec<(PortId, Time)>,
}

impl PauseState {
    pub fn new(kind: Arc<dyn FlowControl>, ports: usize) -> PauseState {
        let (near, far) = (vec![NearEnd::default(); ports], vec![FarEnd::default(); ports]);
        PauseState { kind, near, far, count: 0, due: vec![] }
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
        self.near[port.index()].waiting.push_back((ingress, bytes));
        let Some(ingress) = ingress else { return };
        let link = &mut self.far[ingress.index()];
        link.held += u64::from(bytes);
        if !link.asked && self.kind.should_pause(link.held, false) {
            link.asked = true;
            self.count += 1;
            self.send(now, ingress, true, ports);
        }
    }

    /// The packet that has waited longest at `port` leaves.
    fn remove(&mut self, now: Time, port: PortId, ports: &[Port]) {
        let first = self.near[port.index()].waiting.pop_front();
        let Some((Some(ingress), bytes)) = first else { return };
        let link = &mut self.far[ingress.index()];
        link.held -= u64::from(bytes);
        if link.asked && !self.kind.should_pause(link.held, true) {
            link.asked = false;
            self.send(now, ingress, false, ports);
        }
    }

    /// Sends a frame back along a link.
    // Seldom, and large: with this and the two hints below plain TCP takes 0.9 % fewer
    // instructions.
    #[inline(never)]
    fn send(&mut self, now: Time, ingress: PortId, stop: bool, ports: &[Port]) {
        let back = &ports[ingress.reversed().index()];
        let leaves = back.busy_until().max(now) + Time(back.transmission_time(self.kind.frame()));
        let answered = &mut self.far[ingress.index()].answered;
        // One that is behind another does not overtake it where the wire has become shorter.
        let arrives = (leaves + back.propagation()).max(*answered);
        *answered = arrives;
        let frames = &mut self.near[ingress.index()].frames;
        frames.push_back((arrives, stop));
        if frames.len() == 1 {
            self.due.push((ingress, arrives));
        }
    }

    /// A link has failed or come back: nobody remembers what was asked along it.
    fn forget(&mut self, port: PortId) {
        let (near, far) = (&mut self.near[port.index()], &mut self.far[port.index()]);
        near.frames.clear();
        (near.armed, near.stopped) = (false, false);
        (far.asked, far.answered) = (false, Time::ZERO);
    }
}

/// The effect of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseOutcome {
    /// [`Fabric::on_transmitter_idle`] is due at this time: the link goes on.
    pub idle: Option<Time>,
    /// [`Fabric::on_pause_frame`] is due again.
    pub next: Option<Time>,
}

impl Fabric {
    /// Whether links may be stopped: only then does [`Fabric::on_pause_frame`] have to be called.
    pub fn has_flow_control(&self) -> bool {
        self.stops.is_some()
    }

    /// A link of which a frame is on its way back, and when it arrives, of those not told of yet:
    /// [`Fabric::on_pause_frame`] is due then.
    #[inline]
    pub fn poll_pause_frame(&mut self) -> Option<(PortId, Time)> {
        self.stops.as_mut()?.due.pop()
    }

    /// A frame has arrived at the near end of a link.
    pub fn on_pause_frame(&mut self, now: Time, port: PortId) -> PauseOutcome {
        let waits = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        let free = self.ports[port.index()].busy_until().max(now);
        let Some(stops) = &mut self.stops else { return PauseOutcome { idle: None, next: None } };
        let link = &mut stops.near[port.index()];
        while let Some(&(_, stop)) = link.frames.front().filter(|(at, _)| *at <= now) {
            link.frames.pop_front();
            link.stopped = stop;
        }
        let goes_on = !link.stopped && !link.armed && waits;
        link.armed |= goes_on;
        PauseOutcome {
            idle: goes_on.then_some(free),
            next: link.frames.front().map(|frame| frame.0),
        }
    }

    /// Offers a packet to a port that may be stopped.
    pub(super) fn offer_controlled(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> OfferOutcome {
        let waits = self.scheduled.waiting(port).is_some_and(|waiting| waiting > 0);
        let busy_until = self.ports[port.index()].busy_until();
        let stopped = self.stops.as_ref().is_some_and(|s| s.near[port.index()].stopped);
        if !waits && !stopped && busy_until <= now {
            return self.put(now, port, packet);
        }
        let offered = self.enqueue(now, port, packet);
        let Some(stops) = self.stops.as_mut().filter(|_| offered != OfferOutcome::Dropped) else {
            return offered;
        };
        stops.add(now, port, ingress, packet.wire_bytes, &self.ports);
        let link = &mut stops.near[port.index()];
        let asks = !link.stopped && !link.armed;
        link.armed |= asks;
        OfferOutcome::Queued(asks.then(|| busy_until.max(now)))
    }

    /// Whether the transmitter of a port goes on with what waits, now that it is idle.
    #[inline]
    pub(super) fn try_resume(&mut self, port: PortId) -> bool {
        let Some(stops) = &mut self.stops else { return true };
        let link = &mut stops.near[port.index()];
        link.armed = !link.stopped;
        link.armed
    }

    /// A packet has left the queue of a port; `more` wait there.
    // In line: without flow control, which is nearly always, there is nothing to do.
    #[inline(always)]
    pub(super) fn leaves_controlled(&mut self, now: Time, port: PortId, more: bool) {
        if let Some(stops) = &mut self.stops {
            stops.near[port.index()].armed = more;
            stops.remove(now, port, &self.ports);
        }
    }

    /// Whether a transmitter is to be asked when it falls idle, as far as flow control goes.
    pub(super) fn is_armed(&self, port: PortId) -> bool {
        self.stops.as_ref().is_none_or(|stops| stops.near[port.index()].armed)
    }

    /// A link has failed or come back.
    pub(super) fn forget_frames(&mut self, port: PortId) {
        if let Some(stops) = &mut self.stops {
            stops.forget(port);
        }
    }

    /// Returns the numbers of stops and of links stopped for ever, by the names of the results;
    /// empty without flow control.
    pub(crate) fn pause_counters(&self) -> Vec<(&'static str, u64)> {
        let told = |stops: &PauseState| {
            vec![
                ("pauses", stops.count),
                ("deadlocked_links", self.deadlocked_links().len() as u64),
            ]
        };
        self.stops.as_ref().map_or_else(Vec::new, told)
    }

    /// Links that wait for each other and will for ever: each is stopped for packets that wait, in
    /// the end, for it. None unless there is a circle of links in which every switch holds too much
    /// for the next to go on.
    pub fn deadlocked_links(&self) -> Vec<PortId> {
        let Some(PauseState { near, far, kind, .. }) = &self.stops else { return vec![] };
        let stands = |port: &PortId| {
            let (near, far) = (&near[port.index()], &far[port.index()]);
            near.stopped && far.asked && near.frames.is_empty()
        };
        let mut stuck: BTreeSet<PortId> = (0..near.len()).map(PortId::at).filter(stands).collect();
        loop {
            let mut held = vec![0; near.len()];
            for &port in &stuck {
                for &(ingress, bytes) in &near[port.index()].waiting {
                    if let Some(ingress) = ingress {
                        held[ingress.index()] += u64::from(bytes);
                    }
                }
            }
            let before = stuck.len();
            stuck.retain(|&port| kind.should_pause(held[port.index()], true));
            if stuck.len() == before {
                return stuck.into_iter().collect();
            }
        }
    }
}
