//! The fabric: links with their queues, switches with their balancers and memory, routes, and what
//! fails of them.
//!
//! It knows no connection, no clock and no observer. Whoever drives it keeps the time, holds a list
//! of what is due, and makes sense of the packets: the simulator does it with an agenda and TCP, a
//! laboratory may with a clock on the wall and frames of real hosts. Of a packet the fabric looks
//! at `key` (whence, whither, the five-tuple that ECMP hashes), `wire_bytes`, `flags` and, where
//! queues schedule by priority, [`Packet::number`]; `connection`, `seq` and `options` are the
//! driver's own. Only where something is kept of single packets or flows (stamps, what TinyFlow's
//! guesses are held against) are the first two compared with those of other packets: they have to
//! tell packets apart, and say nothing else.
//!
//! # How to drive it
//!
//! - A host sends: offer the packet to [`Fabric::uplink`]. A port is a directed link with the
//!   queue before it.
//! - [`Fabric::offer`] says what becomes of a packet ([`OfferOutcome`]). It may have to be asked
//!   for again: when the first packet of the link arrives ([`Fabric::take_arrived`], which says
//!   when the next one does), or when its transmitter falls idle ([`Fabric::on_transmitter_idle`],
//!   only with scheduled queues). Per link and kind at most one such call is ever due.
//! - With flow control ([`pause`]), [`Fabric::poll_pause_frame`] tells after each call what frames
//!   are on their way, and [`Fabric::on_pause_frame`] is due when one arrives, after idle
//!   transmitters of the same instant.
//! - Then [`Fabric::forward`] says where the packet is: at a host, or in a switch that has chosen
//!   the port that it shall be offered to next.
//! - At [`Fabric::next_incident`], [`Fabric::apply_incidents`] carries out what fails; it may move
//!   what is due, or lose packets.
//!
//! Times never go back. Of calls that are due at one instant, arrivals come before idle
//! transmitters, each in the order of ports, so that the same packets meet the same fate.
//!
//! ```
//! use std::collections::BTreeMap;
//! use tailcut_engine::Time;
//! use tailcut_net::fabric::{Fabric, FabricSpec, ForwardOutcome, OfferOutcome};
//! use tailcut_net::packet::{ConnectionId, Flags, FlowKey, Packet, NO_OPTIONS, SeqField};
//! use tailcut_net::topology::star::Star;
//! use tailcut_net::topology::{HostId, PortId};
//!
//! let graph = Star { hosts: 3, ..Star::default() }.build()?;
//! let mut fabric = Fabric::new(&FabricSpec::with_defaults(&graph))?;
//! // What is due, in order: time and port.
//! // Queues are drop-tail here, so that no transmitter has to be asked.
//! let mut due: BTreeMap<(Time, PortId), ()> = BTreeMap::new();
//! let mut arrived = vec![];
//!
//! let key = FlowKey::new(HostId(0), HostId(2), 1024, 5000);
//! let packet = Packet {
//!     key,
//!     connection: ConnectionId(7),
//!     seq: SeqField::new(0),
//!     options: NO_OPTIONS,
//!     wire_bytes: 1538,
//!     flags: Flags(0),
//! };
//! let mut todo = vec![(Time::ZERO, fabric.uplink(Time::ZERO, &packet), None, packet)];
//! loop {
//!     for (now, port, ingress, packet) in todo.drain(..) {
//!         match fabric.offer(now, port, ingress, packet) {
//!             OfferOutcome::AcceptedFirst(at) => drop(due.insert((at, port), ())),
//!             OfferOutcome::AcceptedBehind => {}
//!             other => panic!("nothing is in its way: {other:?}"),
//!         }
//!     }
//!     let Some(((now, port), ())) = due.pop_first() else { break };
//!     let (mut packet, next) = fabric.take_arrived(port);
//!     if let Some(at) = next {
//!         due.insert((at, port), ());
//!     }
//!     match fabric.forward(now, port, &mut packet) {
//!         ForwardOutcome::Switch { egress, .. } => todo.push((now, egress, Some(port), packet)),
//!         ForwardOutcome::Host(host) => arrived.push((now, host, packet.connection)),
//!         ForwardOutcome::Lost => {}
//!     }
//! }
//! assert_eq!(arrived.len(), 1);
//! assert_eq!((arrived[0].1, arrived[0].2), (HostId(2), ConnectionId(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod incidents;
mod inspect;
mod interfaces;
mod marks;
mod parts;
mod path_predictor;
mod pause;
mod prefetch;
mod scheduled;
mod shared_buffer;
mod stamps;
#[cfg(test)]
mod tests;
mod ties;
mod waiting;

use tailcut_engine::Time;

use crate::balance::audit::Audit;
use crate::balance::hash::{self, Salts};
use crate::balance::{Balancer, OverlayHeader, PickContext};
use crate::packet::{Flags, Packet};
use crate::port::{self, Port};
use crate::switch::pools::SharedBuffers;
use crate::topology::{HostId, PathCounts, PortId, Routes, SwitchId};

pub use incidents::Consequence;
use incidents::FaultTimeline;
pub(crate) use interfaces::Interfaces;
use marks::Marks;
pub use parts::{FabricError, FabricSpec};
pub(crate) use path_predictor::PathPredictor;
pub use pause::PauseOutcome;
use pause::PauseState;
pub use scheduled::Dequeued;
use scheduled::Scheduled;
use stamps::OverlayHeaders;
use ties::Brought;
use waiting::FabricQueues;

/// The outcome of a packet offered to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum OfferOutcome {
    /// Accepted, first on its link: [`Fabric::take_arrived`] is due at this time.
    AcceptedFirst(Time),
    /// Accepted, behind other packets on the link.
    AcceptedBehind,
    /// Queued at a scheduled port: [`Fabric::on_transmitter_idle`] is due at this time, unless it
    /// was due already. Packets may have been displaced: [`Fabric::displaced`].
    Queued(Option<Time>),
    /// There was no room even for its header, which goes back to its sender: [`Fabric::displaced`]
    /// has it, and [`Fabric::turn_back`] says by which port.
    Returned,
    /// There was no room for it.
    Dropped,
    /// The link is down.
    Lost,
}

/// The place that a packet has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// At this host.
    Host(HostId),
    /// In a switch (numbered over switches), which sends it by this port: offer it there.
    Switch {
        /// The switch.
        switch: SwitchId,
        /// The port.
        egress: PortId,
    },
    /// Nowhere: it was corrupted on the link.
    Lost,
}

/// Links, switches and routes at work.
#[derive(Debug, Clone)]
pub struct Fabric {
    ports: Vec<Port>,
    /// The choice of hosts with several interfaces; `None` where each has one.
    interfaces: Option<Box<Interfaces>>,
    /// The same choice where nothing has failed.
    healthy_interfaces: Option<Box<Interfaces>>,
    routes: Routes,
    path_counts: PathCounts,
    plain: bool,
    /// Whether `stamps` are there: beside what every packet asks for.
    stamped: bool,
    keeps_paths: bool,
    /// Whether the balancer is told of packets that have one port alone.
    sees_all: bool,
    /// Queues of ports that decide the order at departure.
    scheduled: Scheduled,
    /// Departures from there are carried out when somebody looks, and not when they are due.
    defers: bool,
    /// The event at hand comes after departures of its instant.
    after_departures: bool,
    /// Choices and notes of the balancer go by what waits.
    looked_at: bool,
    hosts: u32,
    balancer: Balancer,
    /// The salts of a balancer that hashes and does nothing else ([`Pick::plain_hash`]).
    plain_hash: Option<Salts>,
    marks: Marks,
    /// Buffers that the ports of a switch share.
    pools: Option<SharedBuffers>,
    /// The pause state of links.
    stops: Option<PauseState>,
    incidents: FaultTimeline,
    /// The balancer's headers of packets; `None` if it writes none.
    stamps: Option<Box<OverlayHeaders>>,
    /// The packet that a host has got last; none where events of one instant do not come in ns-3's
    /// order.
    brought: Option<Brought>,
}

impl Fabric {
    /// The port by which a host sends: its first, where it has several.
    #[inline]
    pub fn host_port(&self, host: HostId) -> PortId {
        self.routes.host_port(host)
    }

    /// The port by which a host sends a packet. Hosts with several interfaces choose one.
    #[inline]
    pub fn uplink(&mut self, now: Time, packet: &Packet) -> PortId {
        match self.routes.has_simple_hosts() {
            true => self.routes.first_port(packet.key.low_src()),
            false => self.choose_interface(now, packet),
        }
    }

    /// Whether a port has nothing but its own queue to ask: packets are not scheduled at departure,
    /// do not share memory and have no stamps, and balancers need not see packets that have one
    /// port alone.
    #[inline]
    pub(crate) fn has_fast_path(&self) -> bool {
        self.plain
    }

    /// Offers a packet to a port: one that came to its switch by the link `ingress`, or its host's
    /// own.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> OfferOutcome {
        match self.plain {
            true => self.offer_in::<true>(now, port, ingress, packet),
            false => self.offer_in::<false>(now, port, ingress, packet),
        }
    }

    /// Offers a packet in a fabric that is known to be plain, or known not to be.
    // The loop's hot spot: a call and a result in memory would cost it several per cent.
    #[inline(always)]
    pub(crate) fn offer_in<const PLAIN: bool>(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> OfferOutcome {
        debug_assert_eq!(PLAIN, self.plain);
        if PLAIN {
            return self.put(now, port, packet);
        }
        let offered = self.offer_slow_path(now, port, ingress, packet);
        if self.stamped {
            self.offer_stamp(port, ingress, &packet, offered);
        }
        offered
    }

    #[inline]
    fn offer_slow_path(
        &mut self,
        now: Time,
        port: PortId,
        ingress: Option<PortId>,
        packet: Packet,
    ) -> OfferOutcome {
        self.settle(now, port);
        if self.brought.is_some() {
            self.note_schedule(now, port, ingress, &packet);
        }
        if self.stops.is_some() {
            return self.offer_controlled(now, port, ingress, packet);
        }
        match self.scheduled.waiting(port) {
            Some(waiting) if waiting > 0 || self.ports[port.index()].busy_until() > now => {
                self.enqueue(now, port, packet)
            }
            _ => self.put_slow_path(now, port, packet),
        }
    }

    /// The port behind the queue takes a packet, if its switch has memory for it, or drops it.
    #[inline]
    fn put_slow_path(&mut self, now: Time, port: PortId, packet: Packet) -> OfferOutcome {
        match self.pools {
            None => self.put(now, port, packet),
            Some(_) => self.put_in_memory(now, port, packet),
        }
    }

    #[inline(always)]
    fn put(&mut self, now: Time, port: PortId, packet: Packet) -> OfferOutcome {
        match self.ports[port.index()].offer(now, packet) {
            port::PortOutcome::First(arrival) => OfferOutcome::AcceptedFirst(arrival),
            port::PortOutcome::Behind => OfferOutcome::AcceptedBehind,
            port::PortOutcome::Dropped => OfferOutcome::Dropped,
            port::PortOutcome::Lost => OfferOutcome::Lost,
        }
    }

    /// The first packet of a link has reached its far end: takes it, and says when the next one
    /// arrives there.
    #[inline]
    pub fn take_arrived(&mut self, port: PortId) -> (Packet, Option<Time>) {
        self.ports[port.index()].take()
    }

    /// Forgets the packets that have reached the far end of a link by `now`: another partition of
    /// the run takes them.
    pub(crate) fn forget_arrived(&mut self, now: Time, port: PortId) {
        self.ports[port.index()].forget_arrived(now);
    }

    /// Puts a packet that arrives at `at` on a link whose queue and transmitter are in another
    /// partition of the run. Returns whether it is the first one on the link.
    pub(crate) fn receive(&mut self, port: PortId, at: Time, packet: Packet) -> bool {
        self.ports[port.index()].receive(at, packet)
    }

    /// Takes a lost packet of a link out of the count: another partition of the run counts it.
    pub(crate) fn take_back_loss(&mut self, port: PortId) {
        self.ports[port.index()].take_back_loss();
    }

    /// Forwards a packet just taken from a link. Packets are offered to the ports that switches
    /// have chosen in the order in which they were forwarded.
    #[inline(always)]
    pub fn forward(&mut self, now: Time, port: PortId, packet: &mut Packet) -> ForwardOutcome {
        match self.plain {
            true => self.forward_in::<true>(now, port, packet),
            false => self.forward_in::<false>(now, port, packet),
        }
    }

    /// Forwards a packet in a fabric that is known to be plain, or known not to be.
    #[inline(always)]
    pub(crate) fn forward_in<const PLAIN: bool>(
        &mut self,
        now: Time,
        port: PortId,
        packet: &mut Packet,
    ) -> ForwardOutcome {
        debug_assert_eq!(PLAIN, self.plain);
        if packet.flags.has(Flags::CORRUPTED) {
            self.ports[port.index()].note_lost();
            self.drop_stamp(port);
            return ForwardOutcome::Lost;
        }
        let end = self.ports[port.index()].far_end();
        match end.switch(self.hosts) {
            None => {
                if !PLAIN {
                    self.drop_stamp(port);
                    self.note_brought(now, port, packet);
                }
                ForwardOutcome::Host(HostId(end.0))
            }
            Some(switch) => {
                let egress = self.egress::<PLAIN>(now, switch, port, packet);
                if !PLAIN && self.stamped {
                    self.pass_stamp(now, switch, port, egress, packet);
                }
                ForwardOutcome::Switch { switch, egress }
            }
        }
    }

    /// The port by which a packet leaves a switch that it has reached by the link `ingress`.
    #[inline(always)]
    fn egress<const PLAIN: bool>(
        &mut self,
        now: Time,
        switch: SwitchId,
        ingress: PortId,
        packet: &mut Packet,
    ) -> PortId {
        let key = packet.key;
        match self.routes.next_ports(switch, key.low_dst(), || key.dst()) {
            [only] => {
                if !PLAIN && self.sees_all {
                    self.balancer.see(now, switch, packet);
                }
                *only
            }
            many => {
                let choices = many.len() as u32;
                if let Some(salts) = self.plain_hash {
                    return many[hash::pick(packet.key.0, salts.of(switch), choices) as usize];
                }
                let queues = &FabricQueues::at(&self.ports, &self.scheduled);
                let fork = PickContext { now, switch, ingress, choices, ports: many, queues };
                many[self.balancer.pick(fork, packet) as usize]
            }
        }
    }

    /// The port by which a switch sends a header back ([`Packet::is_returned`]) that had no room at
    /// its port `port`. It is as if the header had come by that link: offer it with
    /// `port.reversed()` for its ingress.
    #[cold]
    pub fn turn_back(&mut self, now: Time, port: PortId, header: &mut Packet) -> PortId {
        let ingress = port.reversed();
        let near = self.ports[ingress.index()].far_end();
        let switch = near.switch(self.hosts).expect("the interfaces of hosts send nothing back");
        let egress = self.egress::<false>(now, switch, ingress, header);
        if self.stamped {
            // Its way begins here.
            self.pass(now, switch, ingress, egress, header, OverlayHeader::default());
        }
        egress
    }

    /// Returns the audit of elephant detection, where detections are counted.
    pub(crate) fn audit(&mut self) -> Option<&mut dyn Audit> {
        self.balancer.audit()
    }
}
