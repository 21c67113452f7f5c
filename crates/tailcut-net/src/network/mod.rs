//! The machinery: ports joined by switches, hosts with connections, one agenda.

mod alone;
mod audit;
mod clock;
mod endpoints;
mod flows;
mod foretold;
mod links;
mod multipath;
mod outcome;
mod profile;
mod pulls;
mod receiver;
mod sender;
mod wire;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use tailcut_engine::Time;

use crate::fabric::{Fabric, FabricError};
use crate::measure::records::{Counters, Outcome};
use crate::measure::series::{Sampler, UnknownPlace};
use crate::measure::{Observer, Unobserved};
use crate::packet::OptionStore;
use crate::replicate::machine::{Action, Replicate};
use crate::scenario::{Progress, Scenario};
use crate::traffic::driver::Driver;
use crate::transport::spread as subflow;
use crate::watch::Watch;

use alone::Alone;
use clock::{Clock, Due};
use endpoints::Connection;
use flows::FlowState;
pub use foretold::{foretell, Foretold};
pub use outcome::tier_records;
use profile::Profile;
use pulls::Pulls;
pub use wire::full_packet;

/// Why a scenario cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The network cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A requested series names no link or host.
    #[error(transparent)]
    Place(#[from] UnknownPlace),
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

/// A run in progress.
pub struct Network<'a, O: Observer> {
    scenario: &'a Scenario,
    /// The transports of the run; a connection knows the number of its own.
    profiles: &'a [Profile],
    now: Time,
    clock: Clock,
    fabric: Fabric,
    /// What few packets carry.
    options: OptionStore,
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
    /// Busy time of every port within the arrivals window.
    busy: Vec<Time>,
    alone: Alone,
    pulls: Pulls,
    /// Which connections carry a flow.
    policy: Box<dyn Replicate>,
    /// What it asked for, room that is used again.
    actions: Vec<Action>,
    /// What the managers of subflows asked for, the same.
    subflow_actions: Vec<subflow::Action>,
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
    simulate_watched(scenario, observer, &mut |progress: &Progress| on_progress(progress))
}

/// As [`simulate_observed`], shown to somebody on the way, as often as they like.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched<O: Observer>(
    scenario: &Scenario,
    observer: O,
    watch: &mut dyn Watch,
) -> Result<(Outcome, O), SimError> {
    let profiles = profile::profiles(scenario);
    let mut network = Network::new(scenario, &profiles, observer)?;
    network.run(watch)?;
    Ok(network.finish())
}

impl<'a, O: Observer> Network<'a, O> {
    fn new(scenario: &'a Scenario, profiles: &'a [Profile], observer: O) -> Result<Self, SimError> {
        let hosts = scenario.graph.hosts;
        if hosts > 1 << 16 {
            return Err(SimError::TooManyHosts { hosts });
        }
        for flow in &scenario.flows {
            if flow.src >= hosts || flow.dst >= hosts || flow.src == flow.dst || flow.bytes == 0 {
                let &crate::traffic::Flow { src, dst, bytes, id, .. } = flow;
                return Err(SimError::BadFlow { id, src, dst, bytes, hosts });
            }
        }
        let fabric = Fabric::new(&scenario.parts())?;
        let full = profiles.iter().map(|p| p.sizes.data(p.tcp.mss.0)).max().unwrap_or(1);
        let pulls = Pulls::new(profiles, &scenario.graph, &fabric);
        let clock = Clock::new(&scenario.graph, full, fabric.schedules_any(), pulls.any());
        let mut network = Network {
            scenario,
            profiles,
            now: Time::ZERO,
            clock,
            options: OptionStore::default(),
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
            sampler: Sampler::new(&scenario.series, &scenario.graph, fabric.routes())?,
            busy: vec![],
            alone: Alone::new(scenario)?,
            pulls,
            policy: scenario.scheme.replicate.policy().machine(hosts),
            actions: vec![],
            subflow_actions: vec![],
            flow_timers: BinaryHeap::new(),
            fabric,
            observer,
        };
        network.schedule_start();
        network.clock.expect(Due::Window, scenario.horizon.arrivals);
        if let Some(at) = network.fabric.next_incident() {
            network.clock.expect(Due::Incident, at);
        }
        if let Some(interval) = network.sampler.interval() {
            network.clock.expect(Due::Sample, interval);
        }
        Ok(network)
    }

    /// What a connection goes by.
    #[inline]
    fn profile(&self, connection: &Connection) -> &'a Profile {
        &self.profiles[usize::from(connection.profile)]
    }

    fn run(&mut self, watch: &mut dyn Watch) -> Result<(), SimError> {
        let end = self.scenario.horizon.arrivals + self.scenario.horizon.drain;
        let every = watch.every().max(1);
        let mut look_at = every;
        while let Some((time, due)) = self.clock.next() {
            if time > end {
                self.now = end;
                break;
            }
            self.now = time;
            self.counters.events += 1;
            if self.counters.events >= look_at {
                look_at += every;
                let progress = Progress {
                    now: time,
                    events: self.counters.events,
                    packet_hops: self.counters.packet_hops,
                    finished_flows: self.finished_flows,
                };
                if watch.look(&progress, self).is_break() {
                    return Err(SimError::Interrupted);
                }
            }
            self.fetch_ahead();
            match due {
                Due::Arrival(port) => self.arrive(port),
                Due::Connection(id) => self.wake(id),
                Due::Idle(port) => self.idle(port),
                Due::Pull(host) => self.pull(host),
                Due::Flows => self.start_flows(),
                Due::Window => self.close_window(),
                Due::Sample => self.sample(),
                Due::Incident => self.incident().map_err(FabricError::from)?,
            }
        }
        Ok(())
    }

    /// Asks for what the next events will touch: a large fabric does not fit into the nearest cache.
    #[inline]
    fn fetch_ahead(&self) {
        if let Some(port) = self.clock.upcoming_arrival(4) {
            self.fabric.fetch(port);
        }
        if let Some(port) = self.clock.upcoming_arrival(2) {
            self.fabric.fetch_first(port);
        }
        if self.clock.has_idle() {
            if let Some(port) = self.clock.upcoming_idle(4) {
                self.fabric.fetch_idle(port);
            }
            if let Some(port) = self.clock.upcoming_idle(2) {
                self.fabric.fetch_waiting(port);
            }
        }
    }

    /// The arrivals have ended.
    fn close_window(&mut self) {
        self.busy = (0..self.fabric.ports()).map(|port| self.fabric.busy(self.now, port)).collect();
        self.note_deliveries();
    }

    fn sample(&mut self) {
        self.sampler.sample_links(self.now, &mut self.fabric);
        for id in 0..self.connections.len() as u32 {
            let Some(acked) = self.acknowledged(id) else { continue };
            let connection = &self.connections[id as usize];
            let (profile, sender) = (self.profile(connection), &connection.sender);
            let flow = self.flows[connection.flow as usize].flow.id;
            self.sampler.sample_flow(self.now, flow, sender.cwnd(profile), acked);
        }
        let more = self.live_connections > 0 || self.next_start().is_some();
        if let (true, Some(interval)) = (more, self.sampler.interval()) {
            self.clock.expect(Due::Sample, self.now + interval);
        }
    }
}
