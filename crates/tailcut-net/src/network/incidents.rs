//! Incidents: what fails, comes back or changes while packets are on their way.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{Rate, Stream, Time};

use super::{Entities, Network, SimError};
use crate::faults::{Change, What};
use crate::measure::{Loss, Observer};
use crate::packet::Packet;
use crate::scenario::Scenario;
use crate::topology::{PortId, Routes};

/// How a link is, and how it shall be.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wire {
    up: bool,
    rate: Rate,
    propagation: Time,
    loss: f64,
}

/// The incidents of a run.
pub(super) struct Incidents {
    changes: Vec<Change>,
    next: usize,
    /// Per link: how many incidents keep it down, and how many of them routing knows.
    down: Vec<u16>,
    known: Vec<u16>,
    /// The ports that anything befalls: how each was built, is, and shall be.
    wires: BTreeMap<PortId, [Wire; 3]>,
    /// The routes of the whole network.
    whole: Option<Routes>,
}

impl Incidents {
    pub fn new(scenario: &Scenario) -> Result<Incidents, SimError> {
        let graph = &scenario.graph;
        let changes = scenario.faults.changes(graph)?;
        let links = if changes.is_empty() { 0 } else { graph.links.len() };
        let mut wires = BTreeMap::new();
        for change in &changes {
            let ports = match change.what {
                What::Down { link, .. } | What::Learned { link, .. } => {
                    vec![2 * link, 2 * link + 1]
                }
                What::Rate(port, _) | What::Loss(port, _) | What::Delay(port, _) => vec![port],
            };
            for port in ports {
                let link = &graph.links[port as usize / 2];
                let (rate, propagation) = (link.rate, link.propagation);
                wires.insert(port, [Wire { up: true, rate, propagation, loss: 0.0 }; 3]);
            }
        }
        let (down, known) = (vec![0; links], vec![0; links]);
        Ok(Incidents { changes, next: 0, down, known, wires, whole: None })
    }

    /// The ports that faults befall.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.wires.keys().copied()
    }

    /// The routes of the whole network, if routing knows of failures.
    pub fn whole(&self) -> Option<&Routes> {
        self.whole.as_ref()
    }

    /// When the next change is due.
    pub fn due(&self) -> Option<Time> {
        self.changes.get(self.next).map(|change| change.at)
    }
}

impl<O: Observer> Network<'_, O> {
    pub(super) fn expect_incidents(&mut self) {
        for port in self.incidents.ports() {
            let stream = Stream::new(self.scenario.seed, u64::from(port), "loss");
            self.fabric.ports[port as usize].expect_faults(stream);
        }
        if let Some(at) = self.incidents.due() {
            self.agenda.schedule(Entities::of(&self.fabric).incidents, at);
        }
    }

    /// Everything that changes at this instant changes together.
    pub(super) fn incident(&mut self) -> Result<(), SimError> {
        let (mut touched, mut learned) = (BTreeSet::new(), false);
        while let Some(&change) = self.incidents.changes.get(self.incidents.next) {
            if change.at > self.now {
                let more = self.live_connections > 0 || self.next_flow < self.flows.len();
                if more {
                    self.agenda.schedule(Entities::of(&self.fabric).incidents, change.at);
                }
                break;
            }
            self.incidents.next += 1;
            let count = |down: bool, reasons: u16| if down { reasons + 1 } else { reasons - 1 };
            match change.what {
                What::Down { link, down } => {
                    let reasons = &mut self.incidents.down[link as usize];
                    *reasons = count(down, *reasons);
                    touched.extend([2 * link, 2 * link + 1]);
                }
                What::Learned { link, down } => {
                    let reasons = &mut self.incidents.known[link as usize];
                    *reasons = count(down, *reasons);
                    learned = true;
                }
                What::Rate(port, _) | What::Loss(port, _) | What::Delay(port, _) => {
                    let [built, _, wanted] =
                        self.incidents.wires.get_mut(&port).expect("the port is listed");
                    match change.what {
                        What::Rate(_, rate) => wanted.rate = rate.unwrap_or(built.rate),
                        What::Loss(_, probability) => wanted.loss = probability,
                        What::Delay(_, extra) => wanted.propagation = built.propagation + extra,
                        What::Down { .. } | What::Learned { .. } => {}
                    }
                    touched.insert(port);
                }
            }
        }
        for port in touched {
            self.change_wire(port);
        }
        if learned {
            self.reconverge()?;
        }
        Ok(())
    }

    fn change_wire(&mut self, number: PortId) {
        let wires = self.incidents.wires.get_mut(&number).expect("the port is listed");
        let up = self.incidents.down[number as usize / 2] == 0;
        let before = wires[1];
        let now = Wire { up, ..wires[2] };
        wires[1] = now;
        let port = &mut self.fabric.ports[number as usize];
        if before.up && !now.up {
            let lost = port.go_down(self.now);
            self.agenda.cancel(number);
            for packet in lost {
                self.lose_packet(number, packet, Loss::UnderWay);
            }
            self.lose_scheduled(number);
        }
        let port = &mut self.fabric.ports[number as usize];
        if (before.rate, before.propagation) != (now.rate, now.propagation) {
            if let Some(first) = port.retime(self.now, now.rate, now.propagation) {
                self.agenda.reschedule(number, first);
            }
            let dequeue = Entities::of(&self.fabric).dequeues + number;
            if !self.fabric.scheduled.is_empty() && self.agenda.due(dequeue).is_some() {
                let idle = self.fabric.ports[number as usize].busy_until();
                self.agenda.reschedule(dequeue, idle.max(self.now));
            }
            if O::ACTIVE {
                self.observer.link_changes(self.now, number, now.rate, now.propagation);
            }
        }
        let port = &mut self.fabric.ports[number as usize];
        if before.loss != now.loss {
            port.set_loss(now.loss);
        }
        if !before.up && now.up {
            port.come_up();
        }
        self.fabric.recount_memory(self.now, number);
    }

    /// What waits in a queue that decides the order at departure is lost with the link.
    fn lose_scheduled(&mut self, number: PortId) {
        if self.fabric.scheduled.is_empty() {
            return;
        }
        self.agenda.cancel(Entities::of(&self.fabric).dequeues + number);
        while let Some(packet) = self.fabric.scheduled.pop(number) {
            self.fabric.ports[number as usize].note_lost();
            self.lose_packet(number, packet, Loss::UnderWay);
        }
    }

    /// Every switch routes by what is known now.
    fn reconverge(&mut self) -> Result<(), SimError> {
        let graph = &self.scenario.graph;
        let whole = self.incidents.whole.get_or_insert_with(|| self.fabric.routes.clone());
        let known = &self.incidents.known;
        let routes = whole.avoiding(graph, |link| known[link] == 0)?;
        self.fabric.reroute(graph, whole, routes);
        Ok(())
    }

    /// A packet is lost to a failure.
    #[cold]
    pub(super) fn lose_packet(&mut self, port: PortId, packet: Packet, loss: Loss) {
        self.counters.lost_on_links += 1;
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.lost(self.now, port, loss, &view);
        }
        self.fabric.options.release(packet.options);
        self.connections[packet.connection as usize].in_network -= 1;
        self.retire_if_over(packet.connection);
    }
}
