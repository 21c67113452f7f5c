//! From what partitions know at the end of a run to one outcome.

use tailcut_engine::Time;

use super::Partition;
use super::cut::Cut;
use crate::measure::Unobserved;
use crate::measure::records::{FlowRecord, Outcome, RunCounters};
use crate::network::Network;
use crate::network::books::Books;
use crate::network::outcome::{assert_possible, tier_records};
use crate::port::PortCounters;
use crate::scenario::Scenario;
use crate::topology::PortId;

/// A partition's share of an outcome.
pub(super) struct Piece {
    flows: Vec<FlowRecord>,
    counters: RunCounters,
    /// The busy time of each port within the arrivals.
    busy: Vec<Time>,
    ports: Vec<PortCounters>,
    books: Books,
    /// By port: packets that wait there or are on its link.
    inside: Vec<u64>,
    /// Something is still expected after the end.
    is_pending: bool,
    /// Something happened that one thread might not have had.
    in_doubt: bool,
    /// The instants at which policies, and no flow of the partition, asked to be woken.
    policy_instants: Vec<Time>,
}

impl Network<'_, Unobserved, Partition> {
    pub(super) fn into_piece(mut self) -> Piece {
        for port in self.extent.leaving() {
            self.fabric.forget_arrived(Time::NEVER, port);
        }
        let idle = self.hosts.live().flat_map(|id| self.extent.ends[id.index()].idle_timers());
        let last = idle.map(|moment| moment.time).fold(self.extent.moment.time, Time::max);
        self.close_books();
        let further = self.scheme_counters();
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
        let ports = (0..self.fabric.port_count()).map(PortId);
        Piece {
            flows: self.flows.all().map(|flow| self.flows.record(flow)).collect(),
            counters,
            busy,
            ports: ports.clone().map(|port| self.fabric.counters(port)).collect(),
            books,
            inside: ports.map(|port| self.fabric.inside(port)).collect(),
            is_pending: self.clock.earliest().is_some(),
            in_doubt: self.extent.in_doubt,
            policy_instants: self.extent.policy_instants,
        }
    }
}

/// Joins the pieces of all partitions, in their order. `None` where one is in doubt.
pub(super) fn join(pieces: Vec<Piece>, scenario: &Scenario, cut: &Cut) -> Option<Outcome> {
    if pieces.iter().any(|piece| piece.in_doubt) {
        return None;
    }
    let flows = join_flows(&pieces, cut);
    let end = match pieces.iter().any(|piece| piece.is_pending) {
        true => scenario.end(),
        false => pieces.iter().map(|piece| piece.counters.end).max().unwrap_or_default(),
    };
    let mut counters = RunCounters { end, ..RunCounters::default() };
    counters.events = own_events(&pieces, scenario);
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
    let ports = sum(
        &pieces,
        |piece| &piece.ports,
        |all: &mut PortCounters, part| {
            all.packets += part.packets;
            all.bytes += part.bytes;
            all.drops += part.drops;
            all.lost += part.lost;
            all.max_queue = all.max_queue.max(part.max_queue);
        },
    );
    let busy = sum(&pieces, |piece| &piece.busy, |all: &mut Time, part| *all += *part);
    let inside = sum(&pieces, |piece| &piece.inside, |all: &mut u64, part| *all += part);
    let books = Books::sum(pieces.iter().map(|piece| &piece.books));
    books.check(|port| (inside[port.index()], ports[port.index()]), &counters);
    let outcome = Outcome {
        flows,
        jobs: vec![],
        unfinished: vec![],
        critical_path: None,
        tiers: tier_records(&scenario.graph, scenario.horizon.arrivals, &busy, |port| {
            ports[port.index()]
        }),
        counters,
        series: vec![],
        port_samples: None,
    };
    assert_possible(&outcome.flows, scenario);
    Some(outcome)
}

/// Returns the records of all flows, which the partitions of their senders and receivers know in
/// parts.
fn join_flows(pieces: &[Piece], cut: &Cut) -> Vec<FlowRecord> {
    let count = pieces.first().map_or(0, |piece| piece.flows.len());
    let of = |index: usize| {
        let flow = pieces[0].flows[index].flow;
        let [sender, receiver] = [flow.src, flow.dst].map(|host| cut.of(host));
        let sent = &pieces[sender].flows[index];
        if sender == receiver {
            return sent.clone();
        }
        let arrived = &pieces[receiver].flows[index];
        FlowRecord {
            fct: arrived.fct,
            winner: arrived.winner,
            delivered_in_arrivals: arrived.delivered_in_arrivals,
            needless_retransmissions: arrived.needless_retransmissions,
            ..sent.clone()
        }
    };
    (0..count).map(of).collect()
}

/// Returns the number of events that are the run's own: an instant at which flows start, or policies
/// are woken, is one in all partitions together, and so is the end of the arrivals.
fn own_events(pieces: &[Piece], scenario: &Scenario) -> u64 {
    let end = scenario.end();
    let starts = scenario.flows.iter().map(|flow| flow.start).filter(|start| *start <= end);
    let woken = pieces.iter().flat_map(|piece| &piece.policy_instants).copied();
    let mut instants: Vec<Time> = starts.chain(woken).collect();
    instants.sort_unstable();
    instants.dedup();
    instants.len() as u64 + 1
}

/// Adds up a table of all pieces, row by row.
fn sum<T: Default + Clone>(
    pieces: &[Piece],
    table: impl Fn(&Piece) -> &Vec<T>,
    add: impl Fn(&mut T, &T),
) -> Vec<T> {
    let rows = pieces.first().map_or(0, |piece| table(piece).len());
    let mut all = vec![T::default(); rows];
    for piece in pieces {
        all.iter_mut().zip(table(piece)).for_each(|(all, part)| add(all, part));
    }
    all
}
