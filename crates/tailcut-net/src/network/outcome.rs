//! From the state at the end of a run to its tables.

use super::Network;
use super::partition::Extent;
use crate::measure::Observer;
use crate::measure::records::{FlowRecord, Outcome, TierRecord, UnfinishedJob};
use crate::packet::OptionStore;
use crate::port::PortCounters;
use crate::scenario::Scenario;
use crate::topology::find::link_name;
use crate::topology::{Graph, PortId};
use crate::traffic::FlowIndex;
use crate::traffic::unfinished::{FlowState, RunEnd};
use crate::watch::RunView;
use tailcut_engine::Time;

impl<O: Observer, E: Extent> Network<'_, O, E> {
    pub(super) fn finish(mut self) -> (Outcome, O) {
        self.close_books();
        let further = self.scheme_counters();
        let instants = self.tally.take_instants();
        let unfinished = self.unfinished_jobs();
        let critical_path = self.starts.critical_path(self.scenario.jobs.explained, &|flow| {
            let record = self.flows.record(flow);
            (record.flow, record.ideal_fct)
        });
        let (mut counters, busy, series, books, observer) = self.tally.finish();
        self.flows.sum_up(&mut counters);
        counters.scheme_counters = further;
        counters.in_flight = self.fabric.packets().count() as u64;
        counters.end = self.clock.now();
        let port = |port| (self.fabric.inside(port), self.fabric.counters(port));
        books.check(port, &counters);
        let (graph, arrivals) = (&self.scenario.graph, self.scenario.horizon.arrivals);
        let outcome = Outcome {
            flows: {
                let counted = self.flows.all().filter(|flow| self.starts.counts(*flow));
                counted.map(|flow| self.flows.record(flow)).collect()
            },
            jobs: self.starts.jobs(),
            unfinished,
            critical_path,
            tiers: tier_records(graph, arrivals, &busy, |port| self.fabric.counters(port)),
            counters,
            series,
            port_samples: instants,
        };
        assert_possible(&outcome.flows, self.scenario);
        (outcome, observer)
    }

    /// Settles what is open at the end of a run: departures, deliveries, and what connections have
    /// done.
    pub(super) fn close_books(&mut self) {
        self.fabric.come_after_departures(true);
        self.fabric.settle_all(self.clock.now());
        if !self.tally.window_is_closed() {
            // The run ended with the arrivals.
            self.close_window();
        }
        self.hosts.live().for_each(|id| self.flows.absorb(&self.hosts, id));
        let with_options = self.fabric.packets().filter(|p| OptionStore::holds(p.options));
        debug_assert_eq!(
            with_options.count(),
            self.hosts.options().live(),
            "options belong to packets in flight"
        );
    }

    /// Returns the counters of the scheme in use, by name.
    pub(super) fn scheme_counters(&mut self) -> Vec<(&'static str, u64)> {
        let audit = self.fabric.audit();
        let audited = audit.map(|audit| {
            self.flows.audit(audit, &self.hosts, &|flow| self.starts.has_started(flow))
        });
        let mut further = audited.unwrap_or_default();
        further.extend(self.fabric.pause_counters());
        further.extend(self.fabric.headers());
        if self.hosts.use_paws() {
            further.push(("paws_discarded", self.flows.paws_discarded()));
        }
        further
    }

    /// Returns the jobs that the end of the run interrupts, with the links that are down then.
    fn unfinished_jobs(&self) -> Vec<UnfinishedJob> {
        let state = |flow| flow_state(&self.flows.record(flow), self.starts.has_started(flow));
        let end = RunEnd { at: self.clock.now(), links_down: self.names_of_links_down() };
        self.starts.unfinished(&state, &end)
    }

    /// Returns the names of the links that are down now.
    pub(super) fn names_of_links_down(&self) -> Vec<String> {
        let name = |link| link_name(&self.scenario.graph, PortId::both_directions(link)[0]);
        self.fabric.links_down().map(name).collect()
    }
}

impl<O: Observer, E: Extent> RunView for Network<'_, O, E> {
    fn queue(&mut self, port: PortId) -> u32 {
        self.fabric.settle(self.clock.now(), port);
        self.fabric.queue_length(self.clock.now(), port)
    }

    fn flows(&self) -> usize {
        self.flows.count()
    }

    fn flow(&self, index: usize) -> FlowRecord {
        self.flows.record(FlowIndex::at(index))
    }
}

/// Returns the state of a flow at the end of a run.
pub(super) fn flow_state(record: &FlowRecord, has_started: bool) -> FlowState {
    match (record.fct, record.fct_ack) {
        _ if !has_started => FlowState::Waiting,
        (_, Some(_)) => FlowState::Acknowledged,
        (Some(_), None) => FlowState::Received,
        (None, None) => FlowState::UnderWay(record.flow.start),
    }
}

/// Returns the records of the links of each tier and direction, given each port's busy time in `[0,
/// arrivals)` and its counters.
pub fn tier_records(
    graph: &Graph,
    arrivals: Time,
    busy: &[Time],
    counters: impl Fn(PortId) -> PortCounters,
) -> Vec<TierRecord> {
    let window = arrivals.max(Time(1)).0 as f64;
    let mut records = vec![];
    for (tier, name) in graph.tiers.iter().enumerate() {
        for up in [true, false] {
            let mut record = TierRecord {
                tier: name.clone(),
                up,
                links: 0,
                packets: 0,
                wire_bytes: 0,
                drops: 0,
                mean_utilisation: 0.0,
                max_utilisation: 0.0,
                max_queue: 0,
                host_links: 0,
                host_utilisation: 0.0,
            };
            let links = graph.links.iter().enumerate().filter(|(_, l)| usize::from(l.tier) == tier);
            for (index, link) in links {
                let port = PortId::both_directions(index)[usize::from(!up)];
                let counters = counters(port);
                let utilisation = busy[port.index()].0 as f64 / window;
                record.links += 1;
                record.packets += counters.packets;
                record.wire_bytes += counters.bytes;
                record.drops += counters.drops;
                record.mean_utilisation += utilisation;
                record.max_utilisation = record.max_utilisation.max(utilisation);
                record.max_queue = record.max_queue.max(counters.max_queue);
                let sends = graph.host(if up { link.a } else { link.b }).is_some();
                if sends && !graph.is_internal(index) {
                    record.host_links += 1;
                    record.host_utilisation += utilisation;
                }
            }
            record.mean_utilisation /= f64::from(record.links.max(1));
            record.host_utilisation /= f64::from(record.host_links.max(1));
            records.push(record);
        }
    }
    records
}

/// No flow is faster than the best possible.
pub(super) fn assert_possible(flows: &[FlowRecord], scenario: &Scenario) {
    for record in flows {
        let clocks = [(record.fct, record.ideal_fct), (record.fct_ack, record.ideal_fct_ack)];
        assert!(
            clocks.iter().all(|(took, ideal)| took.is_none_or(|took| took >= *ideal)),
            "faster than its ideal: {record:?}\n{:?}",
            scenario.scheme
        );
    }
}
