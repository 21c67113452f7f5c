//! The machinery: ports joined by switches, hosts with connections, one agenda.

mod books;
mod clock;
mod connections;
mod endpoints;
mod error;
mod flow_events;
mod flow_predictor;
mod flows;
mod ideal_times;
mod interface_turns;
mod links;
mod multipath;
mod outcome;
mod partition;
mod predict;
mod profile;
mod pulls;
mod reach;
mod receiver;
mod schedule;
mod sender;
mod starts;
mod tally;
#[cfg(test)]
mod tests;
mod tickets;
mod tracing;
mod turns;
mod wire;

use std::ops::ControlFlow;

use tailcut_engine::Time;

use crate::fabric::{Fabric, FabricError};
use crate::measure::records::Outcome;
use crate::measure::{Erased, Observer, PacketView, Unobserved};
use crate::packet::Packet;
use crate::scenario::{Progress, Scenario};
use crate::topology::MAX_HOSTS;
use crate::watch::RunWatcher;

use clock::{EventClock, EventKind, OptionalEvents};
use connections::Connections;
pub use error::SimError;
use flow_predictor::FlowPredictor;
pub use flow_predictor::subflow_key;
use flows::Flows;
pub use outcome::tier_records;
use partition::{Extent, Whole};
pub use partition::{
    OnThreads, ThreadTimes, one_thread_reason, simulate_in_turns, simulate_on, threads_that_pay,
};
pub use predict::{PredictedFlow, predict_flows};
use profile::TransportProfile;
use pulls::Pulls;
pub use reach::{PathReach, path_reach};
pub use schedule::{FlowSpan, schedule};
use starts::FlowStarts;
use tally::RunRecorder;
use tickets::PacketIds;
use turns::Turns;
pub use wire::full_packet;

/// A run in progress. Each part keeps its own state; what one thing that happens means to several
/// of them is told here, and in the files of this folder that say so in their first line.
struct Network<'a, O: Observer, E: Extent = Whole> {
    scenario: &'a Scenario,
    clock: EventClock,
    fabric: Fabric,
    hosts: Connections<'a>,
    flows: Flows,
    starts: FlowStarts<'a>,
    foresight: FlowPredictor<'a>,
    pulls: Pulls,
    turns: Turns,
    tally: RunRecorder<O>,
    /// None, where nobody follows packets.
    tickets: PacketIds,
    /// How much of the run this is.
    extent: E,
}

/// Runs a scenario.
///
/// # Errors
/// [`SimError`] when the scenario is inconsistent or `on_progress` breaks off.
pub fn simulate(
    scenario: &Scenario,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    simulate_watched(scenario, Unobserved, &mut |progress: &Progress| on_progress(progress))
        .map(|(outcome, _)| outcome)
}

/// Runs a scenario under the eyes of an observer, and gives it back. Slower than
/// [`simulate_watched`], which compiles the simulator anew for each type of observer.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed<O: Observer>(
    scenario: &Scenario,
    mut observer: O,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Outcome, O), SimError> {
    let outcome = simulate_erased(scenario, Erased::new(&mut observer), on_progress)?;
    Ok((outcome, observer))
}

/// Compiled with the crates that call it.
#[inline]
fn simulate_erased(
    scenario: &Scenario,
    observer: Erased<'_>,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    let watch = &mut |progress: &Progress| on_progress(progress);
    simulate_watched(scenario, observer, watch).map(|(outcome, _)| outcome)
}

/// Runs a scenario under the eyes of an observer, shown to somebody on the way as often as they
/// like.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched<O: Observer>(
    scenario: &Scenario,
    observer: O,
    watch: &mut dyn RunWatcher,
) -> Result<(Outcome, O), SimError> {
    let profiles = profile::profiles(scenario);
    let mut network = Network::new(scenario, &profiles, observer, Whole)?;
    network.run(watch)?;
    Ok(network.finish())
}

/// Refuses what hosts cannot send, or packets not address.
fn check_scenario(scenario: &Scenario) -> Result<(), SimError> {
    let hosts = scenario.graph.hosts;
    if hosts > MAX_HOSTS {
        return Err(SimError::TooManyHosts { hosts });
    }
    for flow in &scenario.flows {
        let missing = flow.src.0.max(flow.dst.0) >= hosts;
        if missing || flow.src == flow.dst || flow.bytes == 0 {
            let &crate::traffic::Flow { src, dst, bytes, id, .. } = flow;
            return Err(SimError::BadFlow { id, src, dst, bytes, hosts });
        }
    }
    Ok(())
}

/// Returns an observer's view of a packet.
fn view(hosts: &Connections<'_>, flows: &Flows, packet: &Packet) -> PacketView {
    hosts.view(packet, flows.flow(hosts.flow_of(packet)))
}

impl<'a, O: Observer, E: Extent> Network<'a, O, E> {
    fn new(
        scenario: &'a Scenario,
        profiles: &'a [TransportProfile],
        observer: O,
        extent: E,
    ) -> Result<Self, SimError> {
        check_scenario(scenario)?;
        let spec = scenario.fabric_spec();
        let mut fabric = match extent.routes() {
            Some(routes) => Fabric::with_routes(&spec, routes)?,
            None => Fabric::new(&spec)?,
        };
        let turns = Turns::new(profiles, &scenario.graph, &fabric);
        if !O::WANTS_VIEWS && !O::TRACES_PACKETS {
            let interfaces = turns.hosts().map(|host| fabric.host_port(host));
            // Another partition looks at what arrives by these.
            let prompt: Vec<_> = interfaces.chain(extent.leaving()).collect();
            fabric.defer_departures(prompt.into_iter());
        }
        let full = profiles.iter().map(|p| p.sizes.data(p.tcp.mss.0)).max().unwrap_or(1);
        let pulls = Pulls::new(profiles, &scenario.graph, &fabric, scenario.seed);
        let seldom = OptionalEvents {
            idle: fabric.has_scheduled_queues() || turns.any(),
            frames: fabric.has_flow_control(),
            pulls: pulls.pacers(),
            turns: turns.interfaces(),
        };
        let mut network = Network {
            scenario,
            clock: EventClock::new(&scenario.graph, full, seldom, extent.parts()),
            hosts: Connections::new(profiles),
            flows: Flows::new(scenario),
            starts: FlowStarts::new(&scenario.flows, &scenario.jobs, extent.hosts()),
            tally: RunRecorder::new(scenario, &fabric, observer)?,
            foresight: FlowPredictor::new(scenario, profiles)?,
            pulls,
            turns,
            tickets: PacketIds::default(),
            extent,
            fabric,
        };
        network.schedule_start();
        network.clock.schedule(EventKind::ArrivalsEnd, scenario.horizon.arrivals);
        // Those of partitions befall all of them between two windows.
        if let Some(at) = network.fabric.next_incident().filter(|_| !E::IS_PART) {
            network.clock.schedule(EventKind::Incident, at);
        }
        if let Some(interval) = network.tally.interval() {
            network.clock.expect_sample(EventKind::Sample, interval);
        }
        if let Some(first) = network.tally.first_instant().filter(|first| *first <= scenario.end())
        {
            network.clock.expect_sample(EventKind::Instant, first);
        }
        Ok(network)
    }

    fn run(&mut self, watch: &mut dyn RunWatcher) -> Result<(), SimError> {
        let end = self.scenario.end();
        let every = watch.interval_events().max(1);
        let mut look_at = every;
        while let Some(due) = self.clock.next(end) {
            let events = self.tally.note_event();
            if events >= look_at {
                look_at += every;
                let progress = Progress {
                    now: self.clock.now(),
                    events,
                    packet_hops: self.tally.packet_hops(),
                    finished_flows: self.flows.finished(),
                };
                if watch.on_interval(&progress, self).is_break() {
                    return Err(SimError::Interrupted);
                }
            }
            self.handle(due, end)?;
        }
        Ok(())
    }

    /// Handles a due event.
    #[inline(always)]
    fn handle(&mut self, due: EventKind, end: Time) -> Result<(), SimError> {
        self.fetch_ahead();
        match due {
            EventKind::Arrival(port) => self.arrive(port),
            EventKind::Sender(id) => {
                self.tally.trace(|observer| observer.connection_wakes(self.clock.now(), id));
                self.fabric.come_after_departures(true);
                self.wake_sender(id);
                self.fabric.come_after_departures(false);
            }
            EventKind::Receiver(id) => {
                self.tally.trace(|observer| observer.connection_wakes(self.clock.now(), id));
                self.fabric.come_after_departures(true);
                self.wake_receiver(id);
                self.fabric.come_after_departures(false);
            }
            EventKind::Idle(port) => self.idle(port),
            EventKind::Frame(port) => self.on_pause_frame(port),
            EventKind::Pull(pacer) => {
                self.fabric.come_after_departures(true);
                self.pull(pacer);
                self.fabric.come_after_departures(false);
            }
            EventKind::Turn(port) => {
                self.fabric.come_after_departures(true);
                self.give_turns_at(port);
                self.fabric.come_after_departures(false);
            }
            EventKind::Flows => self.start_flows(),
            EventKind::ArrivalsEnd => self.close_window(),
            EventKind::Sample => self.sample(),
            EventKind::Instant => self.sample_ports(end),
            EventKind::Incident => self.incident().map_err(FabricError::from)?,
        }
        Ok(())
    }

    /// Asks for what the next events will touch: a large fabric does not fit into the nearest
    /// cache.
    #[inline]
    fn fetch_ahead(&mut self) {
        // Routes are worth their while only to an observer who touches as much again at every
        // packet.
        let (far, near) = if O::TRACES_PACKETS { (6, 4) } else { (4, 2) };
        if let Some(port) = self.clock.upcoming_arrival(far) {
            self.fabric.fetch(port);
        }
        if let Some(port) = self.clock.upcoming_arrival(near) {
            self.fabric.fetch_first(port);
        }
        if O::TRACES_PACKETS
            && let Some(port) = self.clock.upcoming_arrival(2)
        {
            self.fabric.fetch_route(port);
            let ticket = PacketIds::of(self.fabric.next(port));
            self.tally.trace(|observer| observer.packet_nears(ticket));
        }
        if self.clock.has_idle() {
            let upcoming = |ahead| match self.fabric.defers() {
                true => self
                    .clock
                    .upcoming_arrival(ahead)
                    .filter(|&port| self.fabric.has_scheduled_queue(port)),
                false => self
                    .clock
                    .upcoming_idle(ahead)
                    .filter(|&port| self.fabric.has_scheduled_queue(port)),
            };
            if let Some(port) = upcoming(4) {
                self.fabric.fetch_idle(port);
            }
            if let Some(port) = upcoming(2) {
                self.fabric.fetch_waiting(port);
            }
        }
    }

    /// The arrivals have ended.
    #[cold]
    fn close_window(&mut self) {
        self.fabric.settle_all(self.clock.now());
        self.tally.close_window(self.clock.now(), &self.fabric);
        self.flows.note_deliveries(&self.hosts);
    }

    /// All ports are sampled.
    #[cold]
    fn sample_ports(&mut self, end: Time) {
        if !self.clock.is_sample_due() {
            return;
        }
        self.fabric.settle_all(self.clock.now());
        let next = self.tally.sample_ports(self.clock.now(), &mut self.fabric);
        if let Some(at) = next.filter(|at| *at <= end) {
            self.clock.expect_sample(EventKind::Instant, at);
        }
    }

    /// Series are sampled: links, and the connections of flows.
    #[cold]
    fn sample(&mut self) {
        if !self.clock.is_sample_due() {
            return;
        }
        self.fabric.settle_all(self.clock.now());
        let seen = self.flows.samples(&self.hosts);
        self.tally.sample(self.clock.now(), &mut self.fabric, seen);
        if let Some(interval) = self.tally.interval() {
            self.clock.expect_sample(EventKind::Sample, self.clock.now() + interval);
        }
    }

    /// Whether no packet is under way, and none will be.
    fn is_over(&self) -> bool {
        !self.hosts.any() && self.starts.next_start().is_none()
    }
}
