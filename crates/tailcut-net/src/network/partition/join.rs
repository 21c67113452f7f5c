//! From what partitions know at the end of a run to one outcome.

use tailcut_engine::Time;

use super::cut::Cut;
use super::wakings::Wakings;
use super::{Extent, Partition};
use crate::fabric::Fabric;
use crate::measure::Unobserved;
use crate::measure::records::{FlowRecord, Outcome, RunCounters};
use crate::network::Network;
use crate::network::books::Books;
use crate::network::flows::Flows;
use crate::network::outcome::{assert_possible, flow_state, tier_records};
use crate::port::PortCounters;
use crate::scenario::Scenario;
use crate::topology::PortId;
use crate::traffic::closed_loop::ClosedLoop;
use crate::traffic::unfinished::RunEnd;
use crate::traffic::{Flow, FlowIndex};

/// A partition's share of an outcome.
pub(super) struct Piece {
    flows: Flows,
    counters: RunCounters,
    /// The busy time of each port within the arrivals.
    busy: Vec<Time>,
    /// The packets that its ports hold, and what they have counted.
    fabric: Fabric,
    books: Books,
    /// Something is still expected after the end.
    is_pending: bool,
    /// Something happened that one thread might not have had.
    in_doubt: bool,
    wakings: Wakings,
    /// By flow: whether it has started.
    started: Vec<bool>,
    driver: Option<Box<ClosedLoop>>,
    links_down: Vec<String>,
}

impl Network<'_, Unobserved, Partition> {
    pub(super) fn into_piece(mut self) -> Piece {
        for port in self.extent.leaving() {
            self.fabric.forget_arrived(Time::NEVER, port);
        }
        let idle = self.hosts.live().flat_map(|id| self.extent.ends[id.index()].idle_timers());
        let last = idle.map(|moment| moment.time).fold(self.extent.moment.time, Time::max);
        let is_pending = self.clock.earliest().is_some() || self.awaits_incident();
        // What a port sends until the run ends has been deferred where something is on its link.
        if self.clock.earliest().is_some() {
            self.clock.advance_to(self.scenario.end());
        }
        self.close_books();
        let further = self.scheme_counters();
        let links_down = self.names_of_links_down();
        let (mut counters, mut busy, _, books, _) = self.tally.finish();
        // Links that come from elsewhere are busy there.
        for (port, busy) in busy.iter_mut().enumerate() {
            let [from, _] = self.extent.cut.ends(&self.scenario.graph, PortId::at(port));
            *busy = if from == self.extent.me { *busy } else { Time::ZERO };
        }
        self.flows.sum_up(&mut counters);
        counters.events -= self.extent.surplus;
        counters.in_flight = self.fabric.packets().count() as u64;
        counters.scheme_counters = further;
        counters.end = last;
        Piece {
            counters,
            busy,
            fabric: self.fabric,
            books,
            is_pending,
            in_doubt: self.extent.in_doubt,
            wakings: self.extent.wakings,
            started: self.flows.all().map(|flow| self.starts.has_started(flow)).collect(),
            links_down,
            flows: self.flows,
            driver: self.starts.into_driver(),
        }
    }
}

/// Joins the pieces of all partitions, in their order. `None` where one is in doubt.
pub(super) fn join(mut pieces: Vec<Piece>, scenario: &Scenario, cut: &Cut) -> Option<Outcome> {
    if pieces.iter().any(|piece| piece.in_doubt) {
        return None;
    }
    let driver = join_drivers(&mut pieces, scenario, cut);
    let busy = join_busy_times(&mut pieces);
    let links_down = std::mem::take(&mut pieces[0].links_down);
    let (mut flows, started) = join_flows(&pieces, cut);
    let end = match pieces.iter().any(|piece| piece.is_pending) {
        true => scenario.end(),
        false => pieces.iter().map(|piece| piece.counters.end).max().unwrap_or_default(),
    };
    let mut counters = RunCounters { end, ..RunCounters::default() };
    let listed = scenario.jobs.listed(scenario.flows.len());
    let starts = scenario.flows[..listed].iter().map(|flow| flow.start);
    let starts = starts.filter(|start| *start <= scenario.end());
    // The end of the arrivals is one event, too.
    counters.events = 1 + Wakings::count(pieces.iter().map(|piece| &piece.wakings), starts);
    for Piece { counters: part, .. } in &pieces {
        counters.events += part.events;
        counters.packet_hops += part.packet_hops;
        counters.sent += part.sent;
        counters.delivered += part.delivered;
        counters.dropped += part.dropped;
        counters.lost_on_links += part.lost_on_links;
        counters.in_flight += part.in_flight;
        counters.needless_retransmissions += part.needless_retransmissions;
        counters.recoveries_undone += part.recoveries_undone;
        for (index, (name, count)) in part.scheme_counters.iter().enumerate() {
            match counters.scheme_counters.get_mut(index) {
                Some(known) => known.1 += count,
                None => counters.scheme_counters.push((*name, *count)),
            }
        }
    }
    let ports = |port| {
        pieces.iter().map(|piece| piece.fabric.counters(port)).fold(PortCounters::default(), add)
    };
    let inside = |port| pieces.iter().map(|piece| piece.fabric.inside(port)).sum();
    let books = Books::sum(pieces.iter().map(|piece| &piece.books));
    books.check(|port| (inside(port), ports(port)), &counters);
    let (mut jobs, mut unfinished) = (vec![], vec![]);
    if let Some(driver) = driver {
        // Nothing that waits for the last byte of a flow to leave waits for it to arrive.
        if flows
            .iter()
            .enumerate()
            .any(|(at, record)| record.fct.is_some() && driver.is_unsent(FlowIndex::at(at)))
        {
            return None;
        }
        let state = |flow: FlowIndex| flow_state(&flows[flow.index()], started[flow.index()]);
        unfinished = driver.unfinished(&scenario.flows, &state, &RunEnd { at: end, links_down });
        jobs = driver.records();
        let mut counts = (0..flows.len()).map(|at| at < listed || started[at]);
        flows.retain(|_| counts.next() == Some(true));
    }
    let outcome = Outcome {
        flows,
        jobs,
        unfinished,
        critical_path: None,
        tiers: tier_records(&scenario.graph, scenario.horizon.arrivals, &busy, ports),
        counters,
        series: vec![],
        port_samples: None,
    };
    assert_possible(&outcome.flows, scenario);
    Some(outcome)
}

/// Returns what all partitions know of closed-loop traffic.
fn join_drivers(pieces: &mut [Piece], scenario: &Scenario, cut: &Cut) -> Option<Box<ClosedLoop>> {
    let mut drivers = pieces.iter_mut().map(|piece| piece.driver.take()).enumerate();
    let (_, mut all) = drivers.next()?;
    let own = all.as_mut()?;
    for (part, driver) in drivers {
        let of_part = |host| cut.of(host) == part;
        own.take_over(&*driver?, &scenario.flows, &of_part);
    }
    all
}

/// Returns the records of all flows, which the partitions of their senders and receivers know in
/// parts, and whether each has started.
fn join_flows(pieces: &[Piece], cut: &Cut) -> (Vec<FlowRecord>, Vec<bool>) {
    let count = pieces.first().map_or(0, |piece| piece.flows.count());
    let part = |host| &pieces[cut.of(host)];
    let of = |index: usize| {
        let at = FlowIndex::at(index);
        let &Flow { src, dst, .. } = pieces[0].flows.flow(at);
        let sent = part(src).flows.record(at);
        if cut.of(src) == cut.of(dst) {
            return sent;
        }
        let arrived = part(dst).flows.record(at);
        FlowRecord {
            fct: arrived.fct,
            winner: arrived.winner,
            delivered_in_arrivals: arrived.delivered_in_arrivals,
            needless_retransmissions: arrived.needless_retransmissions,
            ..sent
        }
    };
    let started =
        |index: usize| part(pieces[0].flows.flow(FlowIndex::at(index)).src).started[index];
    ((0..count).map(of).collect(), (0..count).map(started).collect())
}

/// Returns the busy time of each port: that of the partition that sends by it.
fn join_busy_times(pieces: &mut [Piece]) -> Vec<Time> {
    let (first, others) = pieces.split_first_mut().expect("there are partitions");
    let mut all = std::mem::take(&mut first.busy);
    for piece in others {
        all.iter_mut().zip(&piece.busy).for_each(|(all, part)| *all += *part);
    }
    all
}

/// Adds the counters of a port in two partitions.
fn add(a: PortCounters, b: PortCounters) -> PortCounters {
    PortCounters {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
        drops: a.drops + b.drops,
        lost: a.lost + b.lost,
        max_queue: a.max_queue.max(b.max_queue),
    }
}
