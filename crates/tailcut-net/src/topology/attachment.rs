//! Attachment of hosts to switches: one link each, or several interfaces.

use serde::{Deserialize, Serialize};

use super::{Graph, HostId, PortId, SwitchId};

/// Maximum number of interfaces of a host: sets of interfaces have 8 bits.
pub const MOST_INTERFACES: u32 = 8;

/// How the hosts of a graph attach to its switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Attachment {
    /// Every host has one link.
    #[default]
    Single,
    /// Every host has an interface in each of `planes` networks that do not meet. The link of host
    /// `h` into plane `p` is at index `h * planes + p`.
    Planes {
        /// The number of planes.
        planes: u32,
    },
    /// A host is an accelerator with one interface; `rails` of them make up a server. The link at
    /// index `2 * h` joins host `h` to the leaf of its rail, the link after it to the server's
    /// internal switch. The internal switches are the last of the graph.
    Rails {
        /// The number of rails: interfaces of a server.
        rails: u32,
    },
}

impl Attachment {
    /// Returns whether hosts have a single link.
    pub fn is_single(&self) -> bool {
        *self == Attachment::Single
    }
}

impl Graph {
    /// Returns the port by which a host sends into a plane.
    pub fn plane_port(&self, planes: u32, host: HostId, plane: u32) -> PortId {
        PortId::both_directions((host.0 * planes + plane) as usize)[0]
    }

    /// Returns whether the link at `index` joins a host to the internal switch of its server.
    pub fn is_internal(&self, index: usize) -> bool {
        matches!(self.attachment, Attachment::Rails { .. })
            && index < 2 * self.hosts as usize
            && index % 2 == 1
    }

    /// Returns the first of the servers' internal switches; the number of switches if there is
    /// none.
    pub fn first_internal_switch(&self) -> SwitchId {
        match self.attachment {
            Attachment::Rails { rails } => SwitchId(self.switches - self.hosts / rails),
            _ => SwitchId(self.switches),
        }
    }

    /// Returns the internal switch that hands packets over to the interface that sends by `port`;
    /// `None` if the port is no interface of a server.
    pub fn relay(&self, port: PortId) -> Option<SwitchId> {
        let Attachment::Rails { rails } = self.attachment else { return None };
        let host = self.host(self.far_end(port.reversed()))?;
        let server = SwitchId(self.first_internal_switch().0 + host.0 / rails);
        (!self.is_internal(port.link())).then_some(server)
    }

    /// Returns the links of a plane, by index; none if the graph has no such plane.
    pub fn links_of_plane(&self, plane: u32) -> Vec<u32> {
        let Attachment::Planes { planes } = self.attachment else { return vec![] };
        if plane >= planes {
            return vec![];
        }
        let planes_of = self.planes_of_switches(planes);
        let of = |link: &super::Link| {
            self.switch(link.b).is_some_and(|switch| u32::from(planes_of[switch.index()]) == plane)
        };
        let links = self.links.iter().enumerate().filter(|(_, link)| of(link));
        links.map(|(index, _)| index as u32).collect()
    }

    /// Returns the links between the hosts of a rail and their leaves, by index; none if the graph
    /// has no such rail.
    pub fn links_of_rail(&self, rail: u32) -> Vec<u32> {
        match self.attachment {
            Attachment::Rails { rails } if rail < rails => {
                (rail..self.hosts).step_by(rails as usize).map(|host| 2 * host).collect()
            }
            _ => vec![],
        }
    }

    /// Returns the plane of each switch, which are as many in each plane, plane by plane.
    pub(super) fn planes_of_switches(&self, planes: u32) -> Vec<u8> {
        let each = (self.switches / planes).max(1);
        (0..self.switches).map(|switch| (switch / each) as u8).collect()
    }
}
