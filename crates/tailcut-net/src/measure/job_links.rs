//! The traffic of a job on every link.

use tailcut_engine::{Rate, Time};

use super::{Observer, PacketView};
use crate::topology::{Graph, PortId};

/// The packets of a job that a link carried in one direction, acknowledgements included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkTraffic {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes, framing included.
    pub wire_bytes: u64,
    /// The time that the link transmitted them.
    pub busy: Time,
}

/// Observer that adds up the packets of some flows on every link.
#[derive(Debug, Clone)]
pub struct JobLinks {
    /// Ascending.
    flows: Vec<u64>,
    rates: Vec<Rate>,
    links: Vec<LinkTraffic>,
}

impl JobLinks {
    /// Creates an observer of the flows with these identifiers.
    pub fn new(graph: &Graph, mut flows: Vec<u64>) -> JobLinks {
        flows.sort_unstable();
        let rates: Vec<Rate> = graph.links.iter().flat_map(|link| [link.rate; 2]).collect();
        let links = vec![LinkTraffic::default(); rates.len()];
        JobLinks { flows, rates, links }
    }

    /// Returns the traffic of every port, in the order of their numbers.
    pub fn links(&self) -> &[LinkTraffic] {
        &self.links
    }
}

impl Observer for JobLinks {
    fn link_accepts(&mut self, _now: Time, link: PortId, _departs: Time, packet: &PacketView) {
        if self.flows.binary_search(&packet.flow).is_err() {
            return;
        }
        let on = &mut self.links[link.index()];
        on.packets += 1;
        on.wire_bytes += u64::from(packet.wire_bytes);
        on.busy += self.rates[link.index()].transmission_time(packet.wire_bytes.into());
    }

    fn link_changes(&mut self, _now: Time, link: PortId, rate: Rate, _propagation: Time) {
        self.rates[link.index()] = rate;
    }
}
