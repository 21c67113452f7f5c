//! A run on several threads: whether it can be, its threads, and what comes of them.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use tailcut_engine::Time;

use super::Partition;
use super::cut::{Cut, MOST};
use super::exchange::{Exchange, Known};
use super::join::{Piece, join};
use super::stopwatch::{Stopwatch, ThreadTimes};
use super::worthwhile::{RunSize, worthwhile_threads};
use crate::fabric::Fabric;
use crate::measure::Unobserved;
use crate::measure::records::Outcome;
use crate::network::profile::{TransportKind, TransportProfile, profiles};
use crate::network::{Network, SimError, check_scenario, schedule, simulate};
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

/// Returns how many of `at_most` threads make a run quicker than one, where about so many
/// packet-hops are expected of it; at least one.
pub fn threads_that_pay(scenario: &Scenario, packet_hops: u64, at_most: usize) -> usize {
    if at_most < 2 || scenario_reason(scenario).is_some() {
        return 1;
    }
    let Ok(cut) = cut(scenario, at_most) else { return 1 };
    let lookahead = cut.lookahead();
    let size = RunSize {
        packet_hops,
        hosts: scenario.graph.hosts.into(),
        busy: busy_time(scenario, lookahead),
        lookahead,
    };
    worthwhile_threads(&size, cut.parts())
}

/// Returns the time in which most packets are expected: that of arrivals, or of jobs where each
/// message takes at least `latency`.
fn busy_time(scenario: &Scenario, latency: Time) -> Time {
    let Scenario { graph, flows, jobs, horizon, .. } = scenario;
    if jobs.is_empty() {
        return horizon.arrivals;
    }
    let spans = schedule(flows, jobs, &graph.host_rates(), &|_| latency, scenario.end());
    spans.into_iter().map(|span| span.until).max().unwrap_or(horizon.arrivals)
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
    /// The times of each thread; empty where there was one.
    pub times: Vec<ThreadTimes>,
}

impl OnThreads {
    fn one(outcome: Outcome, reason: Option<&'static str>) -> OnThreads {
        OnThreads { outcome, threads: 1, reason, times: vec![] }
    }

    /// Joins the pieces of a run, or has one thread repeat it.
    fn joined(
        pieces: Result<(Vec<Piece>, Vec<ThreadTimes>), &'static str>,
        scenario: &Scenario,
        cut: &Cut,
        alone: impl FnOnce() -> Result<Outcome, SimError>,
    ) -> Result<OnThreads, SimError> {
        let joined = |(pieces, times)| {
            let outcome = join(pieces, scenario, cut).ok_or(IN_DOUBT)?;
            Ok(OnThreads { outcome, threads: cut.parts(), reason: None, times })
        };
        match pieces.and_then(joined) {
            Ok(run) => Ok(run),
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
    let routes = Fabric::find_routes(&scenario.fabric_spec())?;
    let (exchange, profiles) = (Exchange::new(cut.parts()), profiles(scenario));
    let partition = |me, on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>| {
        let partition = Partition::new(&scenario.graph, Arc::clone(&cut), routes.clone(), me);
        run_partition(scenario, &profiles, partition, &exchange, on_progress)
    };
    let pieces = on_threads(
        &exchange,
        cut.parts(),
        || partition(0, on_progress),
        |me| partition(me, &mut |_| ControlFlow::Continue(())),
    );
    let pieces = pieces.into_iter().collect::<Result<Vec<_>, _>>()?;
    let pieces =
        pieces.into_iter().collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().unzip());
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
    let routes = Fabric::find_routes(&scenario.fabric_spec())?;
    let (exchange, profiles) = (Exchange::new(cut.parts()), profiles(scenario));
    let network = |me| {
        let partition = Partition::new(&scenario.graph, Arc::clone(&cut), routes.clone(), me);
        Network::new(scenario, &profiles, Unobserved, partition)
    };
    let mut networks = (0..cut.parts()).map(network).collect::<Result<Vec<_>, _>>()?;
    let mut over = false;
    for turn in 0.. {
        let each = networks.iter_mut().map(|network| network.end_window(&exchange, turn));
        let known = each.reduce(Known::and).expect("there are partitions");
        for network in &mut networks {
            network.take_over(&exchange, turn);
            over = network.next_window(known)?.is_break();
        }
        if over {
            break;
        }
    }
    let pieces = networks.into_iter().map(Network::into_piece).collect();
    OnThreads::joined(Ok((pieces, vec![])), scenario, &cut, alone)
}

/// Gives each partition a thread, the first one the calling thread. Returns what they return, in
/// their order.
///
/// # Panics
/// With the message of the first partition that panics, when all threads have ended.
fn on_threads<T: Send>(
    exchange: &Exchange,
    parts: usize,
    first: impl FnOnce() -> T,
    other: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let other = |me| {
        let _leaves = LeavesOnPanic(exchange);
        other(me)
    };
    thread::scope(|scope| {
        // The system may refuse a thread, for which those before it would wait.
        let _leaves = LeavesOnPanic(exchange);
        let other = &other;
        let others: Vec<_> = (1..parts).map(|me| scope.spawn(move || other(me))).collect();
        let first = first();
        let ended =
            others.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(ended).collect()
    })
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

/// Simulates one partition, and returns its times, too. Returns why it is none where only the
/// network shows that.
fn run_partition(
    scenario: &Scenario,
    profiles: &[TransportProfile],
    partition: Partition,
    exchange: &Exchange,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Result<(Piece, ThreadTimes), &'static str>, SimError> {
    let mut watch = Stopwatch::start();
    let network = Network::new(scenario, profiles, Unobserved, partition);
    let mut network = network.inspect_err(|_| exchange.leave())?;
    // The same one in all partitions.
    if let Some(reason) = network.fabric.one_thread_reason() {
        return Ok(Err(reason));
    }
    let run = network.run_windows(exchange, &mut watch, on_progress);
    run.inspect_err(|_| exchange.leave())?;
    let piece = network.into_piece();
    watch.worked();
    Ok(Ok((piece, watch.times())))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tailcut_engine::Time;

    use super::*;

    #[test]
    fn a_thread_that_panics_frees_those_that_wait_and_ends_the_run_with_its_message() {
        let exchange = Exchange::new(4);
        let known = Known { earliest: Time(1), alive: 1 };
        let meets = |me: usize| {
            let meeting = |turn| {
                assert!((me, turn) != (2, 300), "partition 2 cannot go on");
                exchange.meet(turn, me, known, false).ok()
            };
            (0..).map_while(meeting).count()
        };
        let run = || on_threads(&exchange, 4, || meets(0), meets);
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
        assert_eq!(panic.downcast_ref(), Some(&"partition 2 cannot go on"));
    }

    #[test]
    fn each_partition_has_a_thread_and_gives_its_result_in_order() {
        let exchange = Exchange::new(3);
        let here = thread::current().id();
        let threads = on_threads(&exchange, 3, || (0, here), |me| (me, thread::current().id()));
        assert_eq!(threads.iter().map(|(me, _)| *me).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(threads[1..].iter().all(|(_, thread)| *thread != here));
    }
}
