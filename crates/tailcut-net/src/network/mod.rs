//! The machinery: ports joined by switches, hosts with connections, one agenda.

mod alone;
mod elephants;
mod endpoints;
mod fabric;
mod flows;
mod foretold;
mod incidents;
mod multipath;
mod outcome;
mod profile;
mod receiver;
mod scheduled;
mod sender;
mod wire;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use tailcut_engine::{Agenda, Time};

use crate::measure::series::{Sampler, UnknownPlace};
use crate::measure::{Loss, Observer, Unobserved};
use crate::packet::Flags;
use crate::replicate::machine::{Action, Replicate};
use crate::scenario::{Counters, Outcome, Progress, Scenario};
use crate::topology::RouteError;
use crate::traffic::driver::Driver;

use alone::Alone;
use endpoints::Connection;
use fabric::{Fabric, Node};
use flows::FlowState;
pub(crate) use flows::{FIRST_SOURCE_PORT, SERVICE_PORT};
pub use foretold::{foretell, Foretold};
use incidents::Incidents;
use profile::Profile;
pub use wire::full_packet;

/// Why a scenario cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The graph has no routes.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A requested series names no link or host.
    #[error(transparent)]
    Place(#[from] UnknownPlace),
    /// What fails is not there, or fails in two ways at once.
    #[error("faults: {0}")]
    Fault(#[from] crate::component::SpecError),
    /// A strategy is that of a switch that is not there.
    #[error("balance: {0}")]
    Balance(crate::component::SpecError),
    /// Addresses have 16 bits.
    #[error("{hosts} hosts are more than the 65,536 that packets can address")]
    TooManyHosts {
        /// Hosts in the graph.
        hosts: u32,
    },
    /// A flow that no host can send.
    #[error("flow {id} goes from host {src} to host {dst} with {bytes} bytes; hosts are 0..{hosts}, distinct, and bytes at least 1")]
    BadFlow {
        /// Its identifier.
        id: u64,
        /// Its source.
        src: u32,
        /// Its destination.
        dst: u32,
        /// Its size.
        bytes: u64,
        /// Hosts in the graph.
        hosts: u32,
    },
    /// The caller asked to stop.
    #[error("the run was interrupted")]
    Interrupted,
}

/// How often the caller hears of progress, in events: timers alone must be stoppable, too.
const PROGRESS_INTERVAL: u64 = 1 << 20;

/// A run in progress.
pub struct Network<'a, O: Observer> {
    scenario: &'a Scenario,
    /// The transports of the run; a connection knows the number of its own.
    profiles: &'a [Profile],
    now: Time,
    agenda: Agenda,
    fabric: Fabric,
    connections: Vec<Connection>,
    /// Slots of retired connections, to be used again.
    vacant: Vec<u32>,
    flows: Vec<FlowState>,
    next_flow: usize,
    /// Flows before this one start at times of their own.
    listed_flows: usize,
    /// Starts the others; none for open-loop traffic.
    driver: Option<Box<Driver>>,
    finished_flows: u64,
    live_connections: usize,
    counters: Counters,
    sampler: Sampler,
    incidents: Incidents,
    /// Busy time of every port within the arrivals window.
    busy: Vec<Time>,
    alone: Alone,
    /// Which connections carry a flow.
    policy: Box<dyn Replicate>,
    /// What it asked for, room that is used again.
    actions: Vec<Action>,
    /// When flows want to be asked again.
    flow_timers: BinaryHeap<Reverse<(Time, u32)>>,
    observer: O,
}

/// Runs a scenario.
///
/// # Errors
/// [`SimError`] when the scenario is inconsistent or `on_progress` breaks off.
pub fn simulate(
    scenario: &Scenario,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    simulate_observed(scenario, Unobserved, on_progress).map(|(outcome, _)| outcome)
}

/// Runs a scenario under the eyes of an observer, and gives it back.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed<O: Observer>(
    scenario: &Scenario,
    observer: O,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Outcome, O), SimError> {
    let profiles = profile::profiles(scenario);
    let mut network = Network::new(scenario, &profiles, observer)?;
    network.run(on_progress)?;
    Ok(network.finish())
}

impl<'a, O: Observer> Network<'a, O> {
    fn new(scenario: &'a Scenario, profiles: &'a [Profile], observer: O) -> Result<Self, SimError> {
        let hosts = scenario.graph.hosts;
        if hosts > 1 << 16 {
            return Err(SimError::TooManyHosts { hosts });
        }
        scenario.scheme.balance.check_on(&scenario.graph).map_err(SimError::Balance)?;
        for flow in &scenario.flows {
            if flow.src >= hosts || flow.dst >= hosts || flow.src == flow.dst || flow.bytes == 0 {
                let &crate::traffic::Flow { src, dst, bytes, id, .. } = flow;
                return Err(SimError::BadFlow { id, src, dst, bytes, hosts });
            }
        }
        let fabric = Fabric::new(scenario)?;
        let full = profiles.iter().map(|p| p.sizes.data(p.tcp.mss.0)).max().unwrap_or(1);
        let mut agenda = Agenda::new(fabric.typical_delay(full));
        let entities = Entities::of(&fabric);
        agenda.grow_to(entities.connections as usize);
        let mut network = Network {
            scenario,
            profiles,
            now: Time::ZERO,
            agenda,
            connections: vec![],
            vacant: vec![],
            flows: scenario.flows.iter().map(FlowState::new).collect(),
            next_flow: 0,
            listed_flows: match scenario.jobs.is_empty() {
                true => scenario.flows.len(),
                false => scenario.jobs.listed,
            },
            driver: Driver::new(&scenario.flows, &scenario.jobs).map(Box::new),
            finished_flows: 0,
            live_connections: 0,
            counters: Counters::default(),
            sampler: Sampler::new(&scenario.series, &scenario.graph, &fabric.routes)?,
            incidents: Incidents::new(scenario)?,
            busy: vec![],
            alone: Alone::new(scenario)?,
            policy: scenario.scheme.replicate.policy().machine(hosts),
            actions: vec![],
            flow_timers: BinaryHeap::new(),
            fabric,
            observer,
        };
        network.expect_incidents();
        network.schedule_start();
        network.agenda.schedule(entities.window, scenario.horizon.arrivals);
        if let Some(interval) = network.sampler.interval() {
            network.agenda.schedule(entities.sampler, interval);
        }
        Ok(network)
    }

    /// What a connection goes by.
    #[inline]
    fn profile(&self, connection: &Connection) -> &'a Profile {
        &self.profiles[usize::from(connection.profile)]
    }

    fn run(
        &mut self,
        on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        let entities = Entities::of(&self.fabric);
        let end = self.scenario.horizon.arrivals + self.scenario.horizon.drain;
        let mut report_at = PROGRESS_INTERVAL;
        while let Some((time, entity)) = self.agenda.pop() {
            if time > end {
                self.now = end;
                break;
            }
            self.now = time;
            self.counters.events += 1;
            if self.counters.events >= report_at {
                report_at += PROGRESS_INTERVAL;
                let progress = Progress {
                    now: time,
                    events: self.counters.events,
                    packet_hops: self.counters.packet_hops,
                    finished_flows: self.finished_flows,
                };
                if on_progress(&progress).is_break() {
                    return Err(SimError::Interrupted);
                }
            }
            self.fetch_ahead(entities);
            if entity < entities.arrivals {
                self.arrive(entity);
            } else if entity >= entities.connections {
                self.wake(entity - entities.connections);
            } else if entity == entities.arrivals {
                self.start_flows();
            } else if entity == entities.window {
                self.busy = self.fabric.ports.iter().map(|p| p.busy(time)).collect();
                self.note_deliveries();
            } else if entity == entities.sampler {
                self.sample(entities);
            } else {
                match entity.checked_sub(entities.dequeues) {
                    Some(port) => self.dequeue(port),
                    None => self.incident()?,
                }
            }
        }
        Ok(())
    }

    /// Asks for what the next events will touch: a large fabric does not fit into the nearest cache.
    #[inline]
    fn fetch_ahead(&self, entities: Entities) {
        if let Some(port) = self.agenda.upcoming(4).filter(|&e| e < entities.arrivals) {
            tailcut_engine::fetch_early(&self.fabric.ports[port as usize]);
        }
        if let Some(port) = self.agenda.upcoming(2).filter(|&e| e < entities.arrivals) {
            self.fabric.ports[port as usize].fetch_first();
        }
        if entities.dequeues < entities.connections {
            self.fetch_queues_ahead(entities);
        }
    }

    /// The same for the ports that will fall idle.
    #[inline]
    fn fetch_queues_ahead(&self, entities: Entities) {
        let falls_idle = |ahead| {
            let entity = self.agenda.upcoming(ahead).filter(|&e| e < entities.connections);
            entity.and_then(|e| e.checked_sub(entities.dequeues))
        };
        if let Some(port) = falls_idle(4) {
            tailcut_engine::fetch_early(&self.fabric.ports[port as usize]);
            self.fabric.scheduled.fetch(port);
        }
        if let Some(port) = falls_idle(2) {
            self.fabric.scheduled.fetch_first(port);
        }
    }

    /// The first packet of a port's ring has reached the far end of its wire.
    #[inline]
    fn arrive(&mut self, port: u32) {
        let (mut packet, next) = self.fabric.ports[port as usize].take();
        if let Some(time) = next {
            self.agenda.schedule(port, time);
        }
        self.counters.packet_hops += 1;
        if packet.flags.has(Flags::CORRUPTED) {
            self.fabric.ports[port as usize].note_lost();
            self.lose_packet(port, packet, Loss::Corrupted);
            return;
        }
        match self.fabric.far_end(port) {
            Node::Switch(switch) => {
                let egress = self.fabric.egress(self.now, switch, &mut packet);
                self.transmit(egress, packet);
            }
            Node::Host(host) => self.deliver(host, packet),
        }
    }

    /// A packet is at the near end of a link.
    #[inline]
    fn transmit(&mut self, port: u32, packet: crate::packet::Packet) {
        if !self.fabric.scheduled.is_empty() && self.enqueue(port, packet) {
            return;
        }
        self.offer(port, packet);
    }

    /// The port behind the queue takes a packet, or drops it.
    #[inline]
    fn offer(&mut self, port: u32, packet: crate::packet::Packet) {
        use crate::port::Offer;
        let shares = self.fabric.pools.is_some();
        if shares && !self.fabric.has_memory(self.now, port, packet.wire_bytes) {
            self.fabric.ports[port as usize].note_drop();
            self.drop_packet(port, packet);
            return;
        }
        let offer = self.fabric.ports[port as usize].offer(self.now, packet);
        match offer {
            Offer::First(arrival) => self.agenda.schedule(port, arrival),
            Offer::Behind => {}
            Offer::Dropped => {
                self.drop_packet(port, packet);
                return;
            }
            Offer::Lost => {
                self.lose_packet(port, packet, Loss::DeadLink);
                return;
            }
        }
        if shares {
            self.fabric.note_memory(self.now, port, packet.wire_bytes);
        }
        if O::ACTIVE {
            // As it will leave: the queue may have marked it.
            let accepted = self.fabric.ports[port as usize].last();
            let departs = self.fabric.ports[port as usize].busy_until();
            let view = self.view(accepted);
            self.observer.link_sends(self.now, port, departs, &view);
        }
    }

    #[cold]
    fn drop_packet(&mut self, port: u32, packet: crate::packet::Packet) {
        self.counters.dropped += 1;
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.dropped(self.now, port, &view);
        }
        self.fabric.options.release(packet.options);
        self.connections[packet.connection as usize].in_network -= 1;
        self.retire_if_over(packet.connection);
    }

    fn sample(&mut self, entities: Entities) {
        let fabric = &mut self.fabric;
        self.sampler.sample_links(self.now, &mut fabric.ports, fabric.scheduled.queues());
        for id in 0..self.connections.len() as u32 {
            let Some(acked) = self.acknowledged(id) else { continue };
            let connection = &self.connections[id as usize];
            let (profile, sender) = (self.profile(connection), &connection.sender);
            let flow = self.flows[connection.flow as usize].flow.id;
            self.sampler.sample_flow(self.now, flow, sender.cwnd(profile), acked);
        }
        let more = self.live_connections > 0 || self.next_start().is_some();
        if let (true, Some(interval)) = (more, self.sampler.interval()) {
            self.agenda.schedule(entities.sampler, self.now + interval);
        }
    }
}

/// Numbering of the agenda's entities. Ports come first, so that packets
/// arriving at one instant are handled before timers expiring at that instant.
#[derive(Debug, Clone, Copy)]
struct Entities {
    arrivals: u32,
    window: u32,
    sampler: u32,
    incidents: u32,
    /// Transmitters of scheduled ports that fall idle.
    dequeues: u32,
    connections: u32,
}

impl Entities {
    #[inline]
    fn of(fabric: &Fabric) -> Entities {
        let arrivals = fabric.ports.len() as u32;
        Entities {
            arrivals,
            window: arrivals + 1,
            sampler: arrivals + 2,
            incidents: arrivals + 3,
            dequeues: arrivals + 4,
            connections: arrivals + 4 + fabric.scheduled.queues().len() as u32,
        }
    }
}
