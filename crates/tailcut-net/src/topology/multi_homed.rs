//! Routes towards hosts with several links.
//!
//! Between switches they are those of single links. What differs is the last hop, at a switch that
//! a host attaches to, and the first: a sender's choice among its ports.

use super::{Attachment, Graph, HostId, PortId, Routes, SwitchId};

/// The links of hosts with several.
#[derive(Debug, Clone)]
pub(super) enum MultiHomed {
    /// Several networks that do not meet.
    Planes {
        /// The number of planes.
        planes: u32,
        /// The plane of each switch.
        plane: Vec<u8>,
        /// By host and plane: the port that leads down to the host.
        down: Vec<PortId>,
        /// By group and plane: the edge switch.
        edges: Vec<SwitchId>,
    },
    /// Servers with an interface per rail.
    Rails {
        /// The number of rails.
        rails: u32,
        /// The first of the servers' internal switches.
        first: SwitchId,
        /// By host: the port that leads down to it from the internal switch of its server.
        down: Vec<PortId>,
    },
}

impl MultiHomed {
    /// Returns the links of a graph's hosts; `None` where each has one. `group` is the group of
    /// each host, by its first link, and `groups` their number.
    pub fn new(graph: &Graph, group: &[u16], groups: usize) -> Option<MultiHomed> {
        match graph.attachment {
            Attachment::Single => None,
            Attachment::Planes { planes } => {
                let ports = graph
                    .each_host()
                    .flat_map(|host| (0..planes).map(move |plane| (host, plane)))
                    .map(|(host, plane)| graph.plane_port(planes, host, plane));
                let mut edges = vec![SwitchId(0); groups * planes as usize];
                let mut down = vec![];
                for (index, port) in ports.enumerate() {
                    let (host, plane) = (index / planes as usize, index % planes as usize);
                    let edge = usize::from(group[host]) * planes as usize + plane;
                    edges[edge] = graph.next_switch(port);
                    down.push(port.reversed());
                }
                let plane = graph.planes_of_switches(planes);
                Some(MultiHomed::Planes { planes, plane, down, edges })
            }
            Attachment::Rails { rails } => {
                let inside = |host: HostId| PortId::both_directions(2 * host.index() + 1)[1];
                let down = graph.each_host().map(inside).collect();
                Some(MultiHomed::Rails { rails, first: graph.first_internal_switch(), down })
            }
        }
    }

    /// Returns the port by which a switch that the destination attaches to leads on to it, where
    /// `up` and `down` are the first links of all hosts. The internal switch of another server
    /// hands over to the interface of its own accelerator on the destination's rail.
    pub fn last_hop<'a>(
        &'a self,
        switch: SwitchId,
        host: HostId,
        up: &'a [PortId],
        first_down: &'a [PortId],
    ) -> &'a PortId {
        match self {
            MultiHomed::Planes { planes, plane, down, .. } => {
                &down[host.index() * *planes as usize + usize::from(plane[switch.index()])]
            }
            MultiHomed::Rails { rails, first, down } => match switch.0.checked_sub(first.0) {
                None => &first_down[host.index()],
                Some(server) if server == host.0 / rails => &down[host.index()],
                Some(server) => &up[(server * rails + host.0 % rails) as usize],
            },
        }
    }

    /// Returns the edge switches of a group, one for each plane; `None` if that of its first link
    /// is the only one.
    pub fn edges(&self, group: usize) -> Option<&[SwitchId]> {
        match self {
            MultiHomed::Planes { planes, edges, .. } => {
                Some(&edges[group * *planes as usize..][..*planes as usize])
            }
            MultiHomed::Rails { .. } => None,
        }
    }

    /// Returns whether a switch is inside a server.
    pub fn is_internal(&self, switch: SwitchId) -> bool {
        matches!(self, MultiHomed::Rails { first, .. } if switch >= *first)
    }
}

impl Routes {
    /// Returns the switches that the hosts of a group attach to outside their servers.
    pub(super) fn edges(&self, group: usize) -> &[SwitchId] {
        let several = self.several.as_ref().and_then(|several| several.edges(group));
        several.unwrap_or(std::slice::from_ref(&self.targets[group]))
    }

    /// Returns the port by which a host sends to others of its server, without its interface.
    pub(crate) fn internal_port(&self, host: HostId) -> PortId {
        PortId::both_directions(self.up[host.index()].link() + 1)[0]
    }
}
