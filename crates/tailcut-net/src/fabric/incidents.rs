//! Incidents: what fails, comes back or changes while packets are on their way.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{RandomStream, Rate, Time};

use super::{Fabric, FabricSpec};
use crate::component::SpecError;
use crate::faults::{Change, ChangeKind};
use crate::packet::Packet;
use crate::topology::{Graph, PathCounts, PortId, RouteError, Routes};

/// The current and the wanted state of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wire {
    up: bool,
    rate: Rate,
    propagation: Time,
    loss: f64,
}

/// The incidents of a run.
#[derive(Debug, Clone)]
pub(super) struct FaultTimeline {
    changes: Vec<Change>,
    next: usize,
    /// Per link: how many incidents keep it down, and how many of them routing knows.
    down: Vec<u16>,
    known: Vec<u16>,
    /// Per link: how many of them the senders of hosts with several interfaces know.
    noticed: Vec<u16>,
    /// The ports that anything befalls: how each was built, is, and shall be.
    wires: BTreeMap<PortId, [Wire; 3]>,
    /// The routes of the whole network.
    whole: Option<Routes>,
}

impl FaultTimeline {
    pub fn new(parts: &FabricSpec<'_>) -> Result<FaultTimeline, SpecError> {
        let graph = parts.graph;
        let mut changes = parts.faults.changes(graph)?;
        if !graph.attachment.is_single() {
            let detection = parts.interface.detection();
            let noticed = parts.faults.noticed(&changes, detection);
            changes.extend(noticed);
            changes.sort_by_key(|change| change.at);
        }
        let links = if changes.is_empty() { 0 } else { graph.links.len() };
        let mut wires = BTreeMap::new();
        // A port as it was built.
        let wires_of = |port: PortId| {
            let link = &graph.links[port.link()];
            let (rate, propagation, loss) = (link.rate, link.propagation, link.loss);
            [Wire { up: true, rate, propagation, loss }; 3]
        };
        let lossy = (0..graph.links.len()).filter(|&link| graph.links[link].loss > 0.0);
        for port in lossy.flat_map(PortId::both_directions) {
            wires.insert(port, wires_of(port));
        }
        for change in &changes {
            let ports = match change.what {
                ChangeKind::Down { link, .. }
                | ChangeKind::Learned { link, .. }
                | ChangeKind::Noticed { link, .. } => {
                    PortId::both_directions(link as usize).to_vec()
                }
                ChangeKind::Rate(port, _)
                | ChangeKind::Loss(port, _)
                | ChangeKind::Delay(port, _) => vec![port],
            };
            for port in ports {
                wires.insert(port, wires_of(port));
            }
        }
        let [down, known, noticed] = [(); 3].map(|()| vec![0; links]);
        Ok(FaultTimeline { changes, next: 0, down, known, noticed, wires, whole: None })
    }

    /// Returns the links that are down now, by index.
    pub fn links_down(&self) -> impl Iterator<Item = usize> + '_ {
        self.down.iter().enumerate().filter(|(_, down)| **down > 0).map(|(link, _)| link)
    }

    /// Whether a packet is ever lost on a link, or a link ever changes.
    pub fn any(&self) -> bool {
        !self.wires.is_empty()
    }

    /// The ports that faults befall, and what their losses draw from.
    pub fn ports(&self, seed: u64) -> impl Iterator<Item = (PortId, RandomStream)> + '_ {
        self.wires
            .keys()
            .map(move |&port| (port, RandomStream::new(seed, u64::from(port.0), "loss")))
    }

    /// Per link: how many reasons to be down the senders of hosts with several interfaces know.
    pub fn known_to_senders(&self) -> &[u16] {
        &self.noticed
    }

    /// Notes what is due; returns which ports are touched, whether routing has learned of
    /// something, and whether senders have.
    fn take(&mut self, now: Time) -> (BTreeSet<PortId>, bool, bool) {
        let (mut touched, mut learned, mut noticed) = (BTreeSet::new(), false, false);
        let count = |down: bool, reasons: u16| if down { reasons + 1 } else { reasons - 1 };
        while let Some(&change) = self.changes.get(self.next).filter(|change| change.at <= now) {
            self.next += 1;
            match change.what {
                ChangeKind::Down { link, down } => {
                    let reasons = &mut self.down[link as usize];
                    *reasons = count(down, *reasons);
                    touched.extend(PortId::both_directions(link as usize));
                }
                ChangeKind::Learned { link, down } => {
                    let reasons = &mut self.known[link as usize];
                    *reasons = count(down, *reasons);
                    learned = true;
                }
                ChangeKind::Noticed { link, down } => {
                    let reasons = &mut self.noticed[link as usize];
                    *reasons = count(down, *reasons);
                    noticed = true;
                }
                ChangeKind::Rate(port, _)
                | ChangeKind::Loss(port, _)
                | ChangeKind::Delay(port, _) => {
                    let [built, _, wanted] = self.wires.get_mut(&port).expect("the port is listed");
                    match change.what {
                        ChangeKind::Rate(_, rate) => wanted.rate = rate.unwrap_or(built.rate),
                        ChangeKind::Loss(_, probability) => {
                            wanted.loss = probability.unwrap_or(built.loss);
                        }
                        ChangeKind::Delay(_, extra) => {
                            wanted.propagation = built.propagation + extra
                        }
                        ChangeKind::Down { .. }
                        | ChangeKind::Learned { .. }
                        | ChangeKind::Noticed { .. } => {}
                    }
                    touched.insert(port);
                }
            }
        }
        (touched, learned, noticed)
    }

    /// Returns the rate that a port was built with.
    fn built_rate(&self, port: PortId) -> Rate {
        self.wires[&port][0].rate
    }

    /// Applies a port's wanted state. Returns the state before and after.
    fn turn(&mut self, port: PortId) -> (Wire, Wire) {
        let up = self.down[port.link()] == 0;
        let wires = self.wires.get_mut(&port).expect("the port is listed");
        let now = Wire { up, ..wires[2] };
        (std::mem::replace(&mut wires[1], now), now)
    }
}

/// A consequence of an incident for the fabric's driver; consequences are carried out in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Consequence {
    /// A packet was queued, in service or on the wire of a link that went down.
    Lost {
        /// The link.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Whether it waited in a queue that decides the order at departure.
        waited: bool,
    },
    /// The next packet of a link arrives at another time, or none does any more.
    Arrives {
        /// The link.
        port: PortId,
        /// The arrival time.
        at: Option<Time>,
    },
    /// A transmitter falls idle at another time, or has nothing to fall idle for.
    Idle {
        /// The link.
        port: PortId,
        /// The time at which it falls idle.
        at: Option<Time>,
    },
    /// A link has another rate or propagation delay.
    Changed {
        /// The link.
        port: PortId,
        /// The rate.
        rate: Rate,
        /// The propagation delay.
        propagation: Time,
    },
    /// Switches go by other routes ([`Fabric::routes`]).
    Rerouted,
}

impl Fabric {
    /// Returns the time of the next incident, at which [`Fabric::apply_incidents`] is due.
    pub fn next_incident(&self) -> Option<Time> {
        self.incidents.changes.get(self.incidents.next).map(|change| change.at)
    }

    /// Everything that changes at this instant changes together.
    ///
    /// # Errors
    /// When a table of routes overflows.
    pub fn apply_incidents(
        &mut self,
        now: Time,
        graph: &Graph,
    ) -> Result<Vec<Consequence>, RouteError> {
        let (touched, learned, noticed) = self.incidents.take(now);
        let mut consequences = vec![];
        for port in touched {
            self.change_wire(now, port, &mut consequences);
        }
        if learned {
            self.reconverge(graph)?;
            consequences.push(Consequence::Rerouted);
        }
        if noticed {
            self.inform_senders(graph);
        }
        Ok(consequences)
    }

    /// Returns the links that are down now, by index.
    pub fn links_down(&self) -> impl Iterator<Item = usize> + '_ {
        self.incidents.links_down()
    }

    fn change_wire(&mut self, now: Time, number: PortId, consequences: &mut Vec<Consequence>) {
        let (before, after) = self.incidents.turn(number);
        let lost = |packet| Consequence::Lost { port: number, packet, waited: false };
        if before.up && !after.up {
            consequences.push(Consequence::Arrives { port: number, at: None });
            let under_way = self.ports[number.index()].go_down(now);
            consequences.extend(under_way.into_iter().map(lost));
            if !self.scheduled.is_empty() {
                consequences.push(Consequence::Idle { port: number, at: None });
            }
            // What waits in a queue that decides the order at departure is lost with the link.
            while let Some(packet) = self.scheduled.pop(now, number) {
                self.ports[number.index()].note_lost();
                consequences.push(Consequence::Lost { port: number, packet, waited: true });
                self.leaves_controlled(now, number, false);
            }
            self.forget_frames(number);
            if let Some(stamps) = &mut self.stamps {
                stamps.forget(number);
            }
        }
        if (before.rate, before.propagation) != (after.rate, after.propagation) {
            self.scheduled.change_rate(number, after.rate, self.incidents.built_rate(number));
            let port = &mut self.ports[number.index()];
            let first = port.retime(now, after.rate, after.propagation);
            if first.is_some() {
                consequences.push(Consequence::Arrives { port: number, at: first });
            }
            let waits = self.scheduled.waiting(number).is_some_and(|waiting| waiting > 0);
            if waits && self.is_armed(number) {
                let at = Some(self.ports[number.index()].busy_until().max(now));
                consequences.push(Consequence::Idle { port: number, at });
            }
            let Wire { rate, propagation, .. } = after;
            consequences.push(Consequence::Changed { port: number, rate, propagation });
        }
        if before.loss != after.loss {
            self.ports[number.index()].set_loss(after.loss);
        }
        if !before.up && after.up {
            self.ports[number.index()].come_up();
            self.forget_frames(number);
        }
        self.recount_memory(now, number);
    }

    /// Every switch routes by what is known now, and hosts hear of what is lost.
    fn reconverge(&mut self, graph: &Graph) -> Result<(), RouteError> {
        let whole = self.incidents.whole.get_or_insert_with(|| self.routes.clone());
        let known = &self.incidents.known;
        self.routes = whole.avoiding(graph, |link| known[link] == 0)?;
        self.path_counts = PathCounts::default();
        self.marks.reroute(graph, whole, &self.routes);
        self.balancer.reroute(graph, &self.routes);
        Ok(())
    }

    /// The routes of the whole network, whatever has failed.
    pub fn fault_free_routes(&self) -> &Routes {
        self.incidents.whole.as_ref().unwrap_or(&self.routes)
    }
}
