//! The loop of a run on several threads: window after window, with a meeting between two.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use tailcut_engine::Time;
use tailcut_engine::rendezvous::Broken;

use super::cut::{Cut, MOST};
use super::exchange::{Batch, Exchange, Known, Note};
use super::join::{Piece, join};
use super::moment::Moment;
use super::{Extent, Partition};
use crate::fabric::{Fabric, FabricError};
use crate::measure::records::Outcome;
use crate::measure::{Observer, Unobserved};
use crate::network::clock::EventKind;
use crate::network::profile::{TransportKind, TransportProfile, profiles};
use crate::network::{Network, SimError, check_scenario, simulate};
use crate::scenario::{Progress, Scenario};
use crate::traffic::Flow;

/// Returns why a scenario is simulated by one thread however many there are; `None` where it can be
/// cut.
pub fn one_thread_reason(scenario: &Scenario) -> Option<&'static str> {
    // What is wrong with the fabric is said by the run.
    let built = || Fabric::new(&scenario.fabric_spec()).ok()?.one_thread_reason();
    scenario_reason(scenario).or_else(|| cut(scenario, MOST).err()).or_else(built)
}

/// Returns the reason that a scenario itself shows.
fn scenario_reason(scenario: &Scenario) -> Option<&'static str> {
    let reasons = [
        (scenario.jobs.explained.is_some(), "a job's critical path is followed"),
        (!scenario.series.is_off(), "series are sampled"),
        (scenario.max_port_samples > 0, "ports are sampled"),
    ];
    if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
        return Some(reason);
    }
    let plan = |flow: &Flow| scenario.scheme.replicate.replication_plan(flow.bytes);
    if scenario.flows.iter().map(plan).any(|plan| plan.copies > 1 && !plan.all_send) {
        return Some("senders give up connections that their receivers still open");
    }
    for profile in profiles(scenario) {
        match profile.kind {
            TransportKind::Tcp => {}
            TransportKind::Multipath(_) => {
                return Some("subflows are closed that their receivers still open");
            }
            _ if profile.kind.grants_unasked() => {
                return Some("receivers grant credits to senders that may have finished");
            }
            _ => {}
        }
    }
    None
}

/// Cuts the network of a scenario into at most so many partitions.
///
/// # Errors
/// Says why that is not possible.
fn cut(scenario: &Scenario, parts: usize) -> Result<Cut, &'static str> {
    let sizes = profiles(scenario).into_iter().map(|profile| profile.sizes.bare());
    // Links may become faster.
    let may_change = scenario.faults.active && !scenario.faults.incidents.is_empty();
    let shortest = if may_change { 0 } else { sizes.min().unwrap_or(0) };
    let bound = scenario.jobs.bound_hosts(&scenario.flows);
    Cut::new(&scenario.graph, parts, shortest, &bound)
}

/// A run, and on how many threads it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct OnThreads {
    /// The outcome: that of [`simulate`].
    pub outcome: Outcome,
    /// The threads that simulated it.
    pub threads: usize,
    /// Why there was one, where more were asked for.
    pub reason: Option<&'static str>,
}

impl OnThreads {
    fn one(outcome: Outcome, reason: Option<&'static str>) -> OnThreads {
        OnThreads { outcome, threads: 1, reason }
    }

    /// Joins the pieces of a run, or has one thread repeat it.
    fn joined(
        pieces: Result<Vec<Piece>, &'static str>,
        scenario: &Scenario,
        cut: &Cut,
        alone: impl FnOnce() -> Result<Outcome, SimError>,
    ) -> Result<OnThreads, SimError> {
        match pieces.and_then(|pieces| join(pieces, scenario, cut).ok_or(IN_DOUBT)) {
            Ok(outcome) => Ok(OnThreads { outcome, threads: cut.parts(), reason: None }),
            Err(reason) => Ok(OnThreads::one(alone()?, Some(reason))),
        }
    }
}

/// The reason where only the run itself shows that it is one for one thread.
const IN_DOUBT: &str = "a host acted for a connection that may have been over";

/// Runs a scenario as [`simulate`] does, with the same outcome, on at most so many threads. A
/// scenario with a [`one_thread_reason`] runs on one.
///
/// # Errors
/// As [`simulate`].
///
/// # Panics
/// With the message of the first thread that panics; the others stop.
pub fn simulate_on(
    threads: usize,
    scenario: &Scenario,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<OnThreads, SimError> {
    if threads < 2 {
        return Ok(OnThreads::one(simulate(scenario, on_progress)?, None));
    }
    check_scenario(scenario)?;
    let cut = match scenario_reason(scenario).map_or_else(|| cut(scenario, threads), Err) {
        Ok(cut) => Arc::new(cut),
        Err(reason) => return Ok(OnThreads::one(simulate(scenario, on_progress)?, Some(reason))),
    };
    let (exchange, profiles) = (Exchange::new(cut.parts()), profiles(scenario));
    let thread = |me, on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>| {
        let _leaves = LeavesOnPanic(&exchange);
        run_partition(
            scenario,
            &profiles,
            Partition::new(&scenario.graph, Arc::clone(&cut), me),
            &exchange,
            on_progress,
        )
    };
    let thread = &thread;
    let pieces = thread::scope(|scope| {
        let others: Vec<_> = (1..cut.parts())
            .map(|me| scope.spawn(move || thread(me, &mut |_| ControlFlow::Continue(()))))
            .collect();
        let own = thread(0, on_progress);
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(own).chain(others.collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    let pieces = pieces.into_iter().collect::<Result<Vec<_>, _>>()?;
    let pieces = pieces.into_iter().collect::<Result<Vec<_>, _>>();
    OnThreads::joined(pieces, scenario, &cut, || simulate(scenario, on_progress))
}

/// Runs a scenario in at most so many partitions, as [`simulate_on`] does, all in turns on the
/// calling thread: what tests need that share a machine.
///
/// # Errors
/// As [`simulate`].
#[doc(hidden)]
pub fn simulate_in_turns(parts: usize, scenario: &Scenario) -> Result<OnThreads, SimError> {
    check_scenario(scenario)?;
    let alone = || simulate(scenario, &mut |_| ControlFlow::Continue(()));
    let reason = one_thread_reason(scenario);
    let cut = if reason.is_none() { cut(scenario, parts).ok() } else { None };
    let Some(cut) = cut.map(Arc::new) else { return Ok(OnThreads::one(alone()?, reason)) };
    let (exchange, profiles) = (Exchange::new(cut.parts()), profiles(scenario));
    let network = |me| {
        let partition = Partition::new(&scenario.graph, Arc::clone(&cut), me);
        Network::new(scenario, &profiles, Unobserved, partition)
    };
    let mut networks = (0..cut.parts()).map(network).collect::<Result<Vec<_>, _>>()?;
    let mut over = false;
    for turn in 0.. {
        let each = networks.iter_mut().map(|network| network.end_window(&exchange, turn));
        let known = each.reduce(Known::and).expect("there are partitions");
        for network in &mut networks {
            over = network.next_window(&exchange, turn, known)?.is_break();
        }
        if over {
            break;
        }
    }
    let pieces = networks.into_iter().map(Network::into_piece).collect();
    OnThreads::joined(Ok(pieces), scenario, &cut, alone)
}

/// Frees the other threads when this one panics.
struct LeavesOnPanic<'e>(&'e Exchange);

impl Drop for LeavesOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave();
        }
    }
}

/// Simulates one partition. Returns why it is none where only the network shows that.
fn run_partition(
    scenario: &Scenario,
    profiles: &[TransportProfile],
    partition: Partition,
    exchange: &Exchange,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Result<Piece, &'static str>, SimError> {
    let network = Network::new(scenario, profiles, Unobserved, partition);
    let mut network = network.inspect_err(|_| exchange.leave())?;
    // The same one in all partitions.
    if let Some(reason) = network.fabric.one_thread_reason() {
        return Ok(Err(reason));
    }
    network.run_windows(exchange, on_progress).inspect_err(|_| exchange.leave())?;
    Ok(Ok(network.into_piece()))
}

/// Events of one partition between two looks at the progress.
const LOOK_EVERY: u64 = 1 << 16;

/// A phase of a run. All partitions change it in the same turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// They handle the events of a window.
    Runs,
    /// They ask for connections that are over: nothing is due before the next incident, or the end.
    Asks,
    /// They hear the answers.
    Hears,
    /// They count what is left.
    Counts,
}

impl<O: Observer> Network<'_, O, Partition> {
    fn run_windows(
        &mut self,
        exchange: &Exchange,
        on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        let me = self.extent.me;
        let (mut look_at, mut stop) = (LOOK_EVERY, false);
        for turn in 0.. {
            let own = self.end_window(exchange, turn);
            let met = exchange.meet(turn, me, own, stop);
            // Another thread has an error or panics: its own says more.
            let (known, go_on) = met.map_err(|Broken| SimError::Interrupted)?;
            if go_on.is_break() {
                return Err(SimError::Interrupted);
            }
            if self.next_window(exchange, turn, known)?.is_break() {
                break;
            }
            let events = self.tally.events();
            if me == 0 && events >= look_at {
                look_at = events + LOOK_EVERY;
                stop = on_progress(&exchange.progress(self.clock.now())).is_break();
            }
            exchange.show(
                me,
                &Progress {
                    now: self.clock.now(),
                    events,
                    packet_hops: self.tally.packet_hops(),
                    finished_flows: self.flows.finished(),
                },
            );
        }
        Ok(())
    }

    /// Hands over what others get after a window, and returns what is known here.
    fn end_window(&mut self, exchange: &Exchange, turn: u64) -> Known {
        if self.extent.phase == Phase::Asks || self.extent.searches() {
            self.search();
        }
        let waiting = u64::from(self.starts.next_start().is_some());
        let alive = self.extent.open.len() as u64 + waiting;
        Known { earliest: self.hand_over(exchange, turn), alive }
    }

    /// Takes what others have handed over, and handles the events of the next window. Breaks at the
    /// end of the run.
    fn next_window(
        &mut self,
        exchange: &Exchange,
        turn: u64,
        known: Known,
    ) -> Result<ControlFlow<()>, SimError> {
        exchange.take_over(turn, self.extent.me, |from, batch| self.take_in(from, batch));
        let (end, earliest) = (self.scenario.end(), known.earliest);
        let incident = self.next_incident().filter(|at| *at <= end);
        let is_quiet = match incident {
            Some(at) => self.extent.cleared == Some(at) || earliest > at,
            None => earliest > end || earliest == Time::NEVER,
        };
        self.extent.phase = match (self.extent.phase, incident) {
            (Phase::Runs, _) if is_quiet => Phase::Asks,
            (Phase::Runs, _) => {
                self.run_window(earliest, incident, end)?;
                Phase::Runs
            }
            (Phase::Asks, _) => Phase::Hears,
            (Phase::Hears, None) => return Ok(ControlFlow::Break(())),
            (Phase::Hears, Some(_)) => Phase::Counts,
            // The first one befalls a network without flows, too.
            (Phase::Counts, Some(at)) if known.alive > 0 || self.scenario.flows.is_empty() => {
                self.incident_at(at)?;
                self.extent.incidents_end = known.alive == 0;
                Phase::Runs
            }
            // What befalls a network in which nothing happens any more does not keep a run going.
            (Phase::Counts, _) => {
                self.extent.incidents_end = true;
                Phase::Runs
            }
        };
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the time of the next incident that matters.
    fn next_incident(&self) -> Option<Time> {
        self.fabric.next_incident().filter(|_| !self.extent.incidents_end)
    }

    /// Returns whether an incident is still to come, beside which something is alive here, or
    /// nothing ever was.
    pub(super) fn awaits_incident(&self) -> bool {
        let is_alive = !self.extent.open.is_empty() || self.starts.next_start().is_some();
        self.next_incident().is_some() && (is_alive || self.scenario.flows.is_empty())
    }

    /// Lets an incident befall this partition: every other one does the same in this turn.
    fn incident_at(&mut self, at: Time) -> Result<(), SimError> {
        self.clock.advance_to(at);
        self.extent.moment = Moment { time: at, order: self.clock.order_of(EventKind::Incident) };
        self.extent.cleared = None;
        if self.extent.me == 0 {
            self.tally.note_event();
        }
        for port in self.extent.leaving() {
            self.fabric.forget_arrived(at, port);
        }
        Ok(self.incident().map_err(FabricError::from)?)
    }

    /// Handles the events of a window that begins with the earliest one: as long as no other
    /// partition matters, and no incident.
    fn run_window(
        &mut self,
        earliest: Time,
        incident: Option<Time>,
        end: Time,
    ) -> Result<(), SimError> {
        let beyond = Time(earliest.0.saturating_add(self.extent.cut.lookahead().0));
        match incident {
            Some(at) if at < beyond => {
                self.extent.cleared = Some(at);
                self.run_until(at, true, end)
            }
            _ => self.run_until(beyond.min(Time(end.0.saturating_add(1))), false, end),
        }
    }

    /// Handles all events earlier than `limit`, and those at `limit` that come before an incident
    /// where `until_incident` says so.
    fn run_until(&mut self, limit: Time, until_incident: bool, end: Time) -> Result<(), SimError> {
        while let Some(due) = self.clock.next_before(limit, until_incident) {
            // Most events.
            if let EventKind::Arrival(port) = due {
                self.tally.note_event();
                self.extent.moment = Moment { time: self.clock.now(), order: port.0.into() };
                self.fetch_ahead();
                self.arrive(port);
                continue;
            }
            let moment = Moment { time: self.clock.now(), order: self.clock.order_of(due) };
            match due {
                EventKind::Sender(id) if self.hosts.sender(id).finished() => {
                    self.tally.note_event();
                    self.hosts.fire_sender_timer(id, moment.time);
                    self.extent.ends[id.index()].note_idle_timer(0, moment);
                    continue;
                }
                EventKind::Receiver(id) if self.hosts.receiver(id).deadline() == Time::NEVER => {
                    self.tally.note_event();
                    self.hosts.fire_receiver_timer(id, moment.time);
                    self.extent.ends[id.index()].note_idle_timer(1, moment);
                    continue;
                }
                EventKind::Receiver(id) => {
                    self.tally.note_event();
                    // Without its FIN acknowledged no connection is over.
                    if !self.hosts.receiver(id).repeats_fin() {
                        self.extent.ends[id.index()].note_receiver_timer(moment);
                    }
                }
                // Those of all partitions at one instant are one event.
                EventKind::Flows => {
                    let is_listed = self.starts.next_listed() == Some(moment.time);
                    let after = self.extent.moment;
                    self.extent.wakings.note(moment, after, is_listed);
                }
                EventKind::ArrivalsEnd => {}
                // One thread defers the departure.
                EventKind::Idle(port) if self.fabric.defers() && self.extent.leaves(port) => {}
                _ => drop(self.tally.note_event()),
            }
            self.extent.moment = moment;
            self.handle(due, end)?;
        }
        Ok(())
    }

    /// Hands over what others get, and returns the time that nothing here or there precedes.
    fn hand_over(&mut self, exchange: &Exchange, turn: u64) -> Time {
        let part = &mut self.extent;
        let mut first = std::mem::replace(&mut part.first_out, Time::NEVER);
        for (to, batch) in part.outgoing.iter_mut().enumerate() {
            if !batch.notes.is_empty() || !batch.packets.is_empty() {
                exchange.hand_over(turn, part.me, to, batch);
            }
        }
        if let Some(own) = self.clock.earliest() {
            first = first.min(own);
        }
        first
    }

    /// Takes what another partition has handed over.
    fn take_in(&mut self, from: usize, batch: &Batch) {
        for note in &batch.notes {
            match *note {
                Note::Opened { id, flow, start, opening } => {
                    self.flows.start_at(flow, start);
                    self.open_at_receiver(from, id, flow, opening);
                }
                Note::Released { id, moment } => {
                    let ends = &mut self.extent.ends[id.index()];
                    ends.touch(moment.max(ends.touched), false);
                    self.hosts.release(id);
                }
                Note::Finished { id, holds, touched, finished } => {
                    self.answer_search(from, id, holds, [touched, finished]);
                }
                Note::Retired { id, over } => self.retire_sender(id, over),
            }
        }
        for crossing in &batch.packets {
            self.receive(batch, crossing);
        }
    }
}
