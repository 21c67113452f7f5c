//! The loop of a run on several threads: window after window, with a meeting between two.

use std::ops::ControlFlow;
use std::time::Duration;

use tailcut_engine::Time;
use tailcut_engine::rendezvous::Broken;

use super::exchange::{Batch, Exchange, Known, Note};
use super::moment::Moment;
use super::stopwatch::Stopwatch;
use super::{Extent, Partition};
use crate::fabric::FabricError;
use crate::measure::Observer;
use crate::network::clock::EventKind;
use crate::network::{Network, SimError};
use crate::scenario::Progress;

/// Events of one partition between two looks at the progress.
const LOOK_EVERY: u64 = 1 << 16;
/// The longest time between two looks, beside a window, however idle that partition is.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// Returns whether the first partition looks at the progress: by its events, or by the time since
/// the last look.
fn is_look_due(events: u64, look_at: u64, since_look: Duration) -> bool {
    events >= look_at || since_look >= LOOK_AFTER
}

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
    pub(super) fn run_windows(
        &mut self,
        exchange: &Exchange,
        watch: &mut Stopwatch,
        on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        let me = self.extent.me;
        let (mut look_at, mut stop) = (LOOK_EVERY, false);
        for turn in 0.. {
            watch.worked();
            let own = self.end_window(exchange, turn);
            watch.exchanged();
            let met = exchange.meet(turn, me, own, stop);
            watch.waited();
            // Another thread has an error or panics: its own says more.
            let (known, go_on) = met.map_err(|Broken| SimError::Interrupted)?;
            if go_on.is_break() {
                return Err(SimError::Interrupted);
            }
            self.take_over(exchange, turn);
            watch.exchanged();
            if self.next_window(known)?.is_break() {
                break;
            }
            let events = self.tally.events();
            if me == 0 && is_look_due(events, look_at, watch.since_look()) {
                look_at = events + LOOK_EVERY;
                watch.note_look();
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
    pub(super) fn end_window(&mut self, exchange: &Exchange, turn: u64) -> Known {
        if self.extent.phase == Phase::Asks || self.extent.searches() {
            self.search();
        }
        let waiting = u64::from(self.starts.next_start().is_some());
        let alive = self.extent.open.len() as u64 + waiting;
        Known { earliest: self.hand_over(exchange, turn), alive }
    }

    /// Takes what others have handed over.
    pub(super) fn take_over(&mut self, exchange: &Exchange, turn: u64) {
        exchange.take_over(turn, self.extent.me, |from, batch| self.take_in(from, batch));
    }

    /// Handles the events of the next window. Breaks at the end of the run.
    pub(super) fn next_window(&mut self, known: Known) -> Result<ControlFlow<()>, SimError> {
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
