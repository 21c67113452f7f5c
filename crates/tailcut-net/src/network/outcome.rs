//! From the state at the end of a run to its tables.

use super::{FlowState, Network};
use crate::measure::records::{FlowRecord, Outcome, TierRecord};
use crate::measure::Observer;
use crate::packet::OptionStore;
use crate::port::PortCounters;
use crate::scenario::Scenario;
use crate::topology::{Graph, PortId};
use crate::watch::Sight;
use tailcut_engine::Time;

impl<O: Observer> Network<'_, O> {
    pub(super) fn finish(mut self) -> (Outcome, O) {
        if self.busy.is_empty() {
            // The run ended with the arrivals.
            self.close_window();
        }
        for id in 0..self.connections.len() {
            let connection = &self.connections[id];
            if connection.live {
                let state = &mut self.flows[connection.flow as usize];
                state.absorb(&connection.sender, &connection.receiver);
            }
        }
        let flows = &self.flows;
        self.counters.needless_retransmissions =
            flows.iter().map(|f| f.needless_retransmissions).sum();
        self.counters.recoveries_undone =
            flows.iter().map(|f| u64::from(f.recoveries_undone)).sum();
        self.counters.further = self.audit();
        self.counters.in_flight = self.fabric.packets().count() as u64;
        self.counters.end = self.now;
        let with_options = self.fabric.packets().filter(|p| OptionStore::holds(p.options));
        debug_assert_eq!(
            with_options.count(),
            self.options.live(),
            "options belong to packets in flight"
        );
        let graph = &self.scenario.graph;
        let outcome = Outcome {
            flows: self.flow_records(),
            jobs: self.driver.as_ref().map_or_else(Vec::new, |driver| driver.records()),
            tiers: tier_records(graph, self.scenario.horizon.arrivals, &self.busy, |port| {
                self.fabric.counters(port)
            }),
            counters: self.counters,
            series: self.sampler.into_series(),
        };
        assert_possible(&outcome.flows, self.scenario);
        (outcome, self.observer)
    }

    fn flow_records(&self) -> Vec<FlowRecord> {
        match &self.driver {
            None => self.flows.iter().map(FlowState::record).collect(),
            Some(driver) => {
                let started = |(index, _): &(usize, _)| driver.has_started(*index);
                self.flows.iter().enumerate().filter(started).map(|(_, s)| s.record()).collect()
            }
        }
    }
}

impl<O: Observer> Sight for Network<'_, O> {
    fn queue(&mut self, port: PortId) -> u32 {
        self.fabric.queue(self.now, port)
    }

    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn flow(&self, index: usize) -> FlowRecord {
        self.flows[index].record()
    }
}

impl FlowState {
    /// What is known of the flow, as a row of the flow table.
    pub(super) fn record(&self) -> FlowRecord {
        FlowRecord {
            flow: self.flow,
            connect: self.connect,
            fct: self.fct,
            fct_ack: self.fct_ack,
            ideal_fct: self.ideal_fct,
            ideal_fct_ack: self.ideal_fct_ack,
            data_packets: self.data_packets,
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.fast_recoveries,
            recoveries_undone: self.recoveries_undone,
            needless_retransmissions: self.needless_retransmissions,
            copies: self.copies,
            winner: self.carried.winner,
            shared_hops: self.shared_hops,
            hops: self.hops,
            delivered_in_arrivals: self.delivered_in_arrivals,
        }
    }
}

/// What the links of each tier and direction have done, given how long each port was busy in `[0, arrivals)`, and what it did.
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
            };
            let links = graph.links.iter().enumerate().filter(|(_, l)| usize::from(l.tier) == tier);
            for (index, _) in links {
                let port = 2 * index + usize::from(!up);
                let counters = counters(port as PortId);
                let utilisation = busy[port].0 as f64 / window;
                record.links += 1;
                record.packets += counters.packets;
                record.wire_bytes += counters.bytes;
                record.drops += counters.drops;
                record.mean_utilisation += utilisation;
                record.max_utilisation = record.max_utilisation.max(utilisation);
                record.max_queue = record.max_queue.max(counters.max_queue);
            }
            record.mean_utilisation /= f64::from(record.links.max(1));
            records.push(record);
        }
    }
    records
}

/// No flow is faster than the best possible.
fn assert_possible(flows: &[FlowRecord], scenario: &Scenario) {
    for record in flows {
        let clocks = [(record.fct, record.ideal_fct), (record.fct_ack, record.ideal_fct_ack)];
        debug_assert!(
            clocks.iter().all(|(took, ideal)| took.is_none_or(|took| took >= *ideal)),
            "faster than its ideal: {record:?}\n{:?}",
            scenario.scheme
        );
    }
}
