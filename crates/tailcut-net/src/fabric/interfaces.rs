//! The choice of the interface by which a host with several sends.

use tailcut_engine::Time;

use super::Fabric;
use super::waiting::FabricQueues;
use crate::balance::PortQueues;
use crate::balance::hash::{Salts, hash, region};
use crate::interface::InterfaceChoice;
use crate::packet::{FlowKey, Packet};
use crate::topology::attachment::MOST_INTERFACES;
use crate::topology::{Attachment, Graph, HostId, PortId, Routes, SwitchId};

/// The interfaces of all hosts, and what their senders know of failures.
#[derive(Debug, Clone)]
pub(crate) struct Interfaces {
    choice: InterfaceChoice,
    homes: Homes,
    /// The interfaces of a host that carry the packets of one connection side by side.
    width: u32,
    /// One salt for each host, drawn from the run's seed.
    salts: Salts,
    /// By host: the interface after the last one chosen for a packet.
    turns: Vec<u8>,
    /// The failures that senders know of; `None` while they know of none.
    known: Option<Known>,
}

/// The interfaces of a host.
#[derive(Debug, Clone, Copy)]
enum Homes {
    Planes(u32),
    Rails(u32),
}

/// Failures that senders know of.
#[derive(Debug, Clone)]
struct Known {
    /// By host: the planes into which its link is up, a bit each.
    links: Vec<u8>,
    /// By switch: its part of the network, equal for switches that reach each other.
    parts: Vec<u32>,
    /// By host and plane: its edge switch.
    edges: Vec<SwitchId>,
}

impl Interfaces {
    /// Creates the choice of a network; `None` if every host has one interface.
    pub fn new(choice: InterfaceChoice, graph: &Graph, seed: u64) -> Option<Interfaces> {
        let homes = match graph.attachment {
            Attachment::Single => return None,
            Attachment::Planes { planes } => Homes::Planes(planes),
            Attachment::Rails { rails } => Homes::Rails(rails),
        };
        let salts = Salts::drawn(seed);
        let turns = vec![0; graph.hosts as usize];
        let width = choice.width(graph.attachment);
        Some(Interfaces { choice, homes, width, salts, turns, known: None })
    }

    /// Returns the ports that packets with this key may take first: one, or all that each packet
    /// chooses among.
    pub fn first_ports(&self, routes: &Routes, key: FlowKey) -> Vec<PortId> {
        match (self.homes, self.choice) {
            (Homes::Planes(planes), InterfaceChoice::Packet) => {
                let usable = planes_of(self.usable(planes, key));
                usable.map(|plane| in_plane(routes, key.src(), plane)).collect()
            }
            _ => vec![self.only_port(routes, key)],
        }
    }

    /// Returns the first port of all packets with this key, where packets do not choose.
    fn only_port(&self, routes: &Routes, key: FlowKey) -> PortId {
        match self.homes {
            Homes::Rails(rails) => self.on_rail(routes, rails, key),
            Homes::Planes(planes) => {
                in_plane(routes, key.src(), self.by_hash(self.usable(planes, key), key))
            }
        }
    }

    /// Returns the interface by which one end of a connection sends that keeps to one plane or rail
    /// both ways, whatever its packets' entropy values are; `None` where each packet chooses. `key`
    /// is that of the connection's sender; `back`: its receiver sends.
    fn kept_port(&self, routes: &Routes, key: FlowKey, back: bool) -> Option<PortId> {
        match (self.homes, self.choice) {
            (Homes::Planes(_), InterfaceChoice::Packet) => None,
            (Homes::Planes(planes), _) => {
                let host = if back { key.dst() } else { key.src() };
                Some(in_plane(routes, host, self.by_hash(self.usable(planes, key), key)))
            }
            (Homes::Rails(rails), _) => {
                Some(self.on_rail(routes, rails, if back { key.reversed() } else { key }))
            }
        }
    }

    /// Returns the ports by which one end of such a connection may send: one, or all that each
    /// packet chooses among.
    pub fn kept_ports(&self, routes: &Routes, key: FlowKey, back: bool) -> Vec<PortId> {
        let of_packets = || self.first_ports(routes, if back { key.reversed() } else { key });
        self.kept_port(routes, key, back).map_or_else(of_packets, |port| vec![port])
    }

    /// Returns the port whose link brings the data of such a connection to its receiver; `None`
    /// where each packet chooses.
    fn arrival_port(&self, routes: &Routes, key: FlowKey) -> Option<PortId> {
        let receiver = key.dst();
        match self.homes {
            Homes::Planes(_) => self.kept_port(routes, key, true),
            Homes::Rails(rails) if key.src().0 / rails == receiver.0 / rails => {
                Some(routes.internal_port(receiver))
            }
            Homes::Rails(_) => Some(routes.host_port(receiver)),
        }
    }

    /// Returns the ports by which packets between the hosts of `key` may leave, whatever their
    /// source and destination ports are and whatever fails.
    pub fn any_ports(&self, routes: &Routes, key: FlowKey) -> Vec<PortId> {
        match self.homes {
            Homes::Rails(rails) => vec![self.on_rail(routes, rails, key)],
            Homes::Planes(planes) => {
                (0..planes).map(|plane| in_plane(routes, key.src(), plane)).collect()
            }
        }
    }

    /// Sets which links senders take to be up from now on.
    pub fn learn(&mut self, graph: &Graph, is_up: impl Fn(usize) -> bool) {
        let Homes::Planes(planes) = self.homes else { return };
        self.known = (0..graph.links.len()).any(|link| !is_up(link)).then(|| {
            let each = 0..graph.hosts * planes;
            let edge = |index: u32| {
                let port = graph.plane_port(planes, HostId(index / planes), index % planes);
                graph.switch(graph.far_end(port)).expect("hosts attach to switches")
            };
            let mut links = vec![0; graph.hosts as usize];
            for index in each.clone().filter(|index| is_up(*index as usize)) {
                links[(index / planes) as usize] |= 1 << (index % planes);
            }
            Known { links, parts: parts(graph, is_up), edges: each.map(edge).collect() }
        });
    }

    /// Returns the planes by which a sender takes a receiver to be in reach, a bit each. It takes
    /// all for usable when it knows of none.
    fn usable(&self, planes: u32, key: FlowKey) -> u8 {
        let all = ((1u32 << planes) - 1) as u8;
        let Some(known) = &self.known else { return all };
        let (src, dst) = (key.src().index(), key.dst().index());
        let part = |host: usize, plane: usize| {
            known.parts[known.edges[host * planes as usize + plane].index()]
        };
        let meet = |plane: &usize| part(src, *plane) == part(dst, *plane);
        let joined = (0..planes as usize).filter(meet).fold(0, |set, plane| set | 1 << plane);
        match known.links[src] & known.links[dst] & joined {
            0 => all,
            some => some,
        }
    }

    /// Returns the plane that a flow's hash picks among some.
    fn by_hash(&self, usable: u8, key: FlowKey) -> u32 {
        // Beyond the numbers of switches, whose salts are others.
        let salt = self.salts.of(SwitchId(u32::MAX / 2 - key.src().0));
        let place = region(hash(key.0, salt), usable.count_ones());
        planes_of(usable).nth(place as usize).expect("it is in range")
    }

    /// Returns the first port towards a host where servers have an interface per rail.
    fn on_rail(&self, routes: &Routes, rails: u32, key: FlowKey) -> PortId {
        let (src, dst) = (key.src(), key.dst());
        let same_server = src.0 / rails == dst.0 / rails;
        let other_rail = self.choice == InterfaceChoice::Rail && src.0 % rails != dst.0 % rails;
        match same_server || other_rail {
            true => routes.internal_port(src),
            false => routes.host_port(src),
        }
    }
}

/// Returns the planes of a set, ascending.
fn planes_of(set: u8) -> impl Iterator<Item = u32> {
    (0..MOST_INTERFACES).filter(move |plane| set >> plane & 1 == 1)
}

/// Returns the port by which a host sends into a plane.
fn in_plane(routes: &Routes, host: HostId, plane: u32) -> PortId {
    PortId(routes.host_port(host).0 + 2 * plane)
}

/// Returns the part of the network of each switch: equal numbers reach each other over links that
/// are up.
fn parts(graph: &Graph, is_up: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut neighbours = vec![vec![]; graph.switches as usize];
    for (_, link) in graph.links.iter().enumerate().filter(|(index, _)| is_up(*index)) {
        if let (Some(a), Some(b)) = (graph.switch(link.a), graph.switch(link.b)) {
            neighbours[a.index()].push(b);
            neighbours[b.index()].push(a);
        }
    }
    let mut parts = vec![u32::MAX; neighbours.len()];
    for first in graph.each_switch() {
        let mut open = vec![first];
        while let Some(switch) = open.pop() {
            if parts[switch.index()] == u32::MAX {
                parts[switch.index()] = first.0;
                open.extend(&neighbours[switch.index()]);
            }
        }
    }
    parts
}

impl Fabric {
    /// Chooses the interface of a packet.
    #[inline(never)]
    pub(super) fn choose_interface(&mut self, now: Time, packet: &Packet) -> PortId {
        let Some(interfaces) = &mut self.interfaces else {
            return self.routes.host_port(packet.key.src());
        };
        let (key, host) = (packet.key, packet.key.src());
        let (Homes::Planes(planes), InterfaceChoice::Packet) =
            (interfaces.homes, interfaces.choice)
        else {
            return interfaces.only_port(&self.routes, key);
        };
        let usable = interfaces.usable(planes, key);
        if self.defers() {
            (0..planes).for_each(|plane| self.settle(now, in_plane(&self.routes, host, plane)));
        }
        let Some(interfaces) = &mut self.interfaces else {
            return self.routes.host_port(host);
        };
        let queues = FabricQueues::at(&self.ports, &self.scheduled);
        let turn = u32::from(interfaces.turns[host.index()]);
        let in_turn = (turn..turn + planes).map(|plane| plane % planes);
        let free_first = in_turn
            .filter(|plane| usable >> plane & 1 == 1)
            .min_by_key(|plane| queues.wait(in_plane(&self.routes, host, *plane), now))
            .expect("some plane is usable");
        interfaces.turns[host.index()] = ((free_first + 1) % planes) as u8;
        in_plane(&self.routes, host, free_first)
    }

    /// Returns whether hosts have several interfaces.
    #[inline(always)]
    pub(crate) fn has_interfaces(&self) -> bool {
        self.interfaces.is_some()
    }

    /// Returns how many interfaces of a host carry the packets of one connection side by side.
    pub(crate) fn interfaces_per_connection(&self) -> u32 {
        self.interfaces.as_deref().map_or(1, |interfaces| interfaces.width)
    }

    /// Returns the interface by which one end of a connection sends that keeps to one; `None`
    /// where each packet chooses, or hosts have one. `key` is that of the connection's sender;
    /// `back`: its receiver sends.
    pub(crate) fn kept_interface(&self, key: FlowKey, back: bool) -> Option<PortId> {
        self.interfaces.as_deref()?.kept_port(&self.routes, key, back)
    }

    /// Returns the port whose link brings the data of a connection that keeps to one interface to
    /// its receiver; `None` where each packet chooses, or hosts have one.
    pub(crate) fn arrival_interface(&self, key: FlowKey) -> Option<PortId> {
        self.interfaces.as_deref()?.arrival_port(&self.routes, key)
    }

    /// Returns the interfaces of a host whose packets choose, in the order of their turns; its
    /// first, where they do not.
    pub(crate) fn interfaces_in_turn(&self, host: HostId) -> impl Iterator<Item = PortId> + use<> {
        let planes = self.interfaces_per_connection();
        let turn = self.interfaces.as_deref().map_or(0, |it| u32::from(it.turns[host.index()]));
        let first = self.routes.host_port(host).0;
        (turn..turn + planes).map(move |plane| PortId(first + 2 * (plane % planes)))
    }

    /// Returns whether a sender may choose this interface for a packet of a connection.
    pub(crate) fn may_leave_by(&self, port: PortId, key: FlowKey) -> bool {
        match self.interfaces.as_deref() {
            Some(interfaces @ &Interfaces { homes: Homes::Planes(planes), .. }) => {
                let plane = port.link() as u32 % planes;
                interfaces.usable(planes, key) >> plane & 1 == 1
            }
            _ => true,
        }
    }

    /// A packet leaves by this interface: the next one begins to choose behind it.
    pub(crate) fn pass_turn(&mut self, host: HostId, port: PortId) {
        if let Some(Interfaces { homes: Homes::Planes(planes), turns, .. }) =
            self.interfaces.as_deref_mut()
        {
            turns[host.index()] = ((port.link() as u32 + 1) % *planes) as u8;
        }
    }

    /// Returns whether senders take the link of a host's interface for up.
    pub(crate) fn is_known_up(&self, port: PortId) -> bool {
        match self.interfaces.as_deref() {
            Some(Interfaces { homes: Homes::Planes(planes), known: Some(known), .. }) => {
                let (host, plane) =
                    (port.link() / *planes as usize, port.link() % *planes as usize);
                known.links[host] >> plane & 1 == 1
            }
            _ => true,
        }
    }

    /// Lets senders choose by the failures that they know of now.
    pub(super) fn inform_senders(&mut self, graph: &Graph) {
        if let Some(interfaces) = &mut self.interfaces {
            let known = self.incidents.known_to_senders();
            interfaces.learn(graph, |link| known[link] == 0);
        }
    }
}
