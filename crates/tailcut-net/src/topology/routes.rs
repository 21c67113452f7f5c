//! Shortest-path routes: for each switch and destination, the equal-cost egress ports.

use std::collections::{BTreeMap, VecDeque};

use super::{Graph, HostId, NodeId, PortId, SwitchId};

/// Bits of a table entry that locate the candidates; the rest count them, and are 0 where the entry is the only one itself.
const START_BITS: u32 = 22;
/// Table entry: the host is attached.
const ATTACHED: PortId = PortId((1 << START_BITS) - 1);

const UNREACHABLE: u32 = u32::MAX;

/// Entries of the table: beyond, it takes a gigabyte.
const MOST_ENTRIES: usize = 1 << 28;
/// Links looked at, over all destinations: beyond, it takes minutes.
const MOST_STEPS: usize = 1 << 30;
/// Links between two hosts: result tables count them in 8 bits.
const LONGEST_PATH: u32 = 255;

/// Equal-cost routes of every switch towards every switch that has hosts.
///
/// Destinations are grouped by the switch that they hang on, which keeps the
/// table small enough for the cache: 160 KB for 1,024 hosts.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Per host: the group of destinations it belongs to (its switch).
    group: Vec<u16>,
    /// Per host: the port that leads down to it from its switch.
    down: Vec<PortId>,
    /// Per host: the port that leads up from it.
    up: Vec<PortId>,
    /// Per switch and group: its only candidate, or where they start, and above `START_BITS` how many there are.
    table: Vec<PortId>,
    groups: usize,
    candidates: Vec<PortId>,
    /// Per group: its switch.
    targets: Vec<SwitchId>,
    switches: u32,
}

/// Why a graph cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A host without exactly one link.
    #[error("host {host} has {links} links; a host has exactly one")]
    HostLinks {
        /// The host.
        host: HostId,
        /// Its links.
        links: usize,
    },
    /// Two hosts joined without a switch.
    #[error("host {host} is not attached to a switch")]
    NoSwitch {
        /// The host.
        host: HostId,
    },
    /// More equal-cost paths than the tables hold.
    #[error(
        "switch {switch} has {paths} equal-cost ports towards one destination; at most 1,023 fit, and 4 million over all switches"
    )]
    TooManyPaths {
        /// The switch, numbered over switches.
        switch: SwitchId,
        /// Its equal-cost ports.
        paths: usize,
    },
    /// A network whose routes would not fit.
    #[error(
        "{switches} switches, {edges} of them with hosts, and {links} links: the routes would not fit into memory or time"
    )]
    TooLarge {
        /// Switches.
        switches: usize,
        /// Switches that hosts hang on.
        edges: usize,
        /// Links.
        links: usize,
    },
    /// Hosts too far apart.
    #[error("hosts are {links} links apart; at most 255 are counted")]
    TooFar {
        /// Links of a shortest path.
        links: u32,
    },
    /// No path.
    #[error("switch {switch} has no path to host {host}")]
    Disconnected {
        /// The switch, numbered over switches.
        switch: SwitchId,
        /// The host.
        host: HostId,
    },
}

impl Routes {
    /// Computes the routes of a graph.
    ///
    /// # Errors
    /// When a host has not exactly one link to a switch, or the graph is not connected.
    pub fn new(graph: &Graph) -> Result<Routes, RouteError> {
        let hosts = graph.hosts;
        let ports = ports(graph, |_| true);
        let (mut up, mut down, mut edge) = (vec![], vec![], vec![]);
        for host in graph.each_host() {
            let [(port, peer)] = ports[host.index()][..] else {
                return Err(RouteError::HostLinks { host, links: ports[host.index()].len() });
            };
            let Some(switch) = peer.switch(hosts) else {
                return Err(RouteError::NoSwitch { host });
            };
            up.push(port);
            down.push(port.reversed());
            edge.push(switch);
        }
        let mut numbering = BTreeMap::new();
        for &switch in &edge {
            let next = numbering.len() as u16;
            numbering.entry(switch).or_insert(next);
        }
        let groups = numbering.len();
        let (switches, links) = (graph.switches as usize, graph.links.len());
        if switches * groups > MOST_ENTRIES || groups * links > MOST_STEPS {
            return Err(RouteError::TooLarge { switches, edges: groups, links });
        }
        let mut targets = vec![SwitchId(0); groups];
        numbering.iter().for_each(|(&switch, &group)| targets[usize::from(group)] = switch);
        let group = edge.iter().map(|e| numbering[e]).collect();
        let mut routes = Routes {
            group,
            down,
            up,
            table: vec![],
            groups,
            candidates: vec![],
            targets,
            switches: graph.switches,
        };
        let (cut_off, farthest) = routes.fill(&ports, None)?;
        if farthest + 2 > LONGEST_PATH {
            return Err(RouteError::TooFar { links: farthest + 2 });
        }
        if let Some((switch, target)) = cut_off {
            let host = edge.iter().position(|&e| e == target).unwrap_or(0);
            let host = HostId::at(host);
            return Err(RouteError::Disconnected { switch, host });
        }
        Ok(routes)
    }

    /// These routes of the whole graph, recomputed without the links that `alive` refuses. A switch that can no
    /// longer reach a destination keeps its routes to it: they lead to the dead link, not in circles, since no
    /// live link leaves the part of the network that is cut off.
    ///
    /// # Errors
    /// When a table overflows.
    pub fn avoiding(
        &self,
        graph: &Graph,
        alive: impl Fn(usize) -> bool,
    ) -> Result<Routes, RouteError> {
        let mut routes = self.clone();
        routes.fill(&ports(graph, alive), Some(self))?;
        Ok(routes)
    }

    /// For each pair of groups (source, then destination): whether `now` misses some of the paths that these
    /// routes, those of the whole graph, take.
    pub fn lost_paths(&self, graph: &Graph, now: &Routes) -> Vec<bool> {
        let mut lost = vec![false; self.groups * self.groups];
        for destination in 0..self.groups {
            // 0: not known yet; 1: keeps every path; 2: has lost some.
            let mut state = vec![0u8; self.switches as usize];
            for source in 0..self.groups {
                let switch = self.targets[source];
                lost[source * self.groups + destination] =
                    self.has_lost(graph, now, switch, destination, &mut state);
            }
        }
        lost
    }

    fn has_lost(
        &self,
        graph: &Graph,
        now: &Routes,
        switch: SwitchId,
        destination: usize,
        state: &mut [u8],
    ) -> bool {
        if state[switch.index()] != 0 {
            return state[switch.index()] == 2;
        }
        let kept = now.towards(switch, destination);
        let mut lost = false;
        for &port in self.towards(switch, destination) {
            let next = graph.next_switch(port);
            lost |= !kept.contains(&port) || self.has_lost(graph, now, next, destination, state);
        }
        state[switch.index()] = 1 + u8::from(lost);
        lost
    }

    /// Ports from a switch towards the switch of a group; none at that switch itself.
    pub(crate) fn towards(&self, switch: SwitchId, group: usize) -> &[PortId] {
        match &self.table[switch.index() * self.groups + group] {
            &ATTACHED => &[],
            entry => self.listed(entry),
        }
    }

    /// The candidates that an entry of the table stands for.
    #[inline]
    fn listed<'a>(&'a self, entry: &'a PortId) -> &'a [PortId] {
        match entry.0 >> START_BITS {
            0 => std::slice::from_ref(entry),
            count => &self.candidates[(entry.0 & ATTACHED.0) as usize..][..count as usize],
        }
    }

    /// The group of a host: which of the switches with hosts it hangs on.
    pub fn group(&self, host: HostId) -> usize {
        usize::from(self.group[host.index()])
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The switch, numbered over switches, that a host hangs on.
    pub fn edge_switch(&self, host: HostId) -> SwitchId {
        self.targets[self.group(host)]
    }

    /// Fills the tables, from `fallback` where there is no path; says which pair of switches that was, and how many
    /// links the switches with hosts that are farthest apart have between them.
    fn fill(
        &mut self,
        ports: &[Vec<(PortId, NodeId)>],
        fallback: Option<&Routes>,
    ) -> Result<(Option<(SwitchId, SwitchId)>, u32), RouteError> {
        let (switches, groups) = (self.switches as usize, self.groups);
        let hosts = (ports.len() - switches) as u32;
        let (mut cut_off, mut farthest) = (None, 0);
        let mut table = vec![ATTACHED; switches * groups];
        let mut candidates: Vec<PortId> = vec![];
        let mut known: BTreeMap<Vec<PortId>, PortId> = BTreeMap::new();
        // In the order of the switches that hosts hang on, on which the layout of the table depends.
        let mut targets: Vec<(SwitchId, usize)> =
            self.targets.iter().enumerate().map(|(group, &switch)| (switch, group)).collect();
        targets.sort_unstable();
        for (target, group) in targets {
            let distance = distances(ports, hosts, switches, target);
            let apart = self.targets.iter().map(|&edge| distance[edge.index()]);
            farthest = farthest.max(apart.filter(|&links| links != UNREACHABLE).max().unwrap_or(0));
            for switch in (0..switches).map(SwitchId::at).filter(|&s| s != target) {
                let here = distance[switch.index()];
                if here == UNREACHABLE {
                    cut_off = cut_off.or(Some((switch, target)));
                }
                let set: Vec<PortId> = ports[switch.node(hosts).index()]
                    .iter()
                    .filter(|(_, peer)| {
                        here != UNREACHABLE
                            && peer.switch(hosts).is_some_and(|s| distance[s.index()] + 1 == here)
                    })
                    .map(|&(port, _)| port)
                    .collect();
                let set = match fallback {
                    Some(whole) if here == UNREACHABLE => whole.towards(switch, group).to_vec(),
                    _ => set,
                };
                if set.len() >= 1 << (32 - START_BITS)
                    || candidates.len() + set.len() >= 1 << START_BITS
                {
                    return Err(RouteError::TooManyPaths { switch, paths: set.len() });
                }
                let encoded = *known.entry(set).or_insert_with_key(|set| match set[..] {
                    [only] if only < ATTACHED => only,
                    _ => {
                        let start = candidates.len() as u32;
                        candidates.extend(set);
                        PortId(start | (set.len() as u32) << START_BITS)
                    }
                });
                table[switch.index() * groups + group] = encoded;
            }
        }
        (self.table, self.candidates) = (table, candidates);
        Ok((cut_off, farthest))
    }

    /// The port that leads up from a host.
    #[inline]
    pub fn host_port(&self, host: HostId) -> PortId {
        self.up[host.index()]
    }

    /// Asks for what [`Routes::candidates`] will look up.
    #[inline]
    pub(crate) fn fetch(&self, switch: SwitchId, host: HostId) {
        let group = self.group.get(host.index()).map_or(0, |group| usize::from(*group));
        tailcut_engine::prefetch(&self.table[switch.index() * self.groups + group]);
    }

    /// The equal-cost ports from `switch` (numbered over switches) towards `host`, in port order.
    #[inline]
    pub fn candidates(&self, switch: SwitchId, host: HostId) -> &[PortId] {
        let group = usize::from(self.group[host.index()]);
        match &self.table[switch.index() * self.groups + group] {
            &ATTACHED => std::slice::from_ref(&self.down[host.index()]),
            entry => self.listed(entry),
        }
    }
}

impl Routes {
    /// The ports of all shortest paths from one host to another, by how many links come before them.
    pub fn layers(&self, graph: &Graph, src: HostId, dst: HostId) -> Vec<Vec<PortId>> {
        let mut layers = vec![vec![self.host_port(src)]];
        loop {
            let mut next: Vec<PortId> = vec![];
            for &port in &layers[layers.len() - 1] {
                if let Some(switch) = graph.far_end(port).switch(graph.hosts) {
                    next.extend(self.candidates(switch, dst));
                }
            }
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return layers;
            }
            layers.push(next);
        }
    }
}

/// How many shortest paths there are, as far as it was asked. Layered graphs have exponentially many: none is walked.
#[derive(Debug, Clone, Default)]
pub struct PathCounts {
    /// Per group of destinations that was asked for: the number from each switch, 0 where it is not known.
    from: BTreeMap<usize, Vec<u32>>,
}

impl PathCounts {
    /// Shortest paths from one host to another over `routes`, always the same; `u32::MAX` stands for that many or more.
    pub fn between(&mut self, graph: &Graph, routes: &Routes, src: HostId, dst: HostId) -> u32 {
        let group = routes.group(dst);
        let target = routes.targets[group];
        let counts = self.from.entry(group).or_insert_with(|| {
            let mut counts = vec![0; routes.switches as usize];
            counts[target.index()] = 1;
            counts
        });
        let edge = routes.edge_switch(src);
        let mut open = vec![edge];
        while let Some(&switch) = open.last() {
            let ports = routes.towards(switch, group);
            let next = ports.iter().map(|&port| graph.next_switch(port));
            let unknown = open.len();
            if counts[switch.index()] == 0 {
                open.extend(next.clone().filter(|&next| counts[next.index()] == 0));
            }
            if open.len() == unknown {
                if counts[switch.index()] == 0 {
                    let onward = next.map(|next| counts[next.index()]);
                    counts[switch.index()] = onward.fold(0, u32::saturating_add);
                }
                open.pop();
            }
        }
        counts[edge.index()]
    }
}

/// Per node: its ports, and the node at the far end of each.
fn ports(graph: &Graph, alive: impl Fn(usize) -> bool) -> Vec<Vec<(PortId, NodeId)>> {
    let mut ports = vec![vec![]; graph.nodes()];
    for (index, link) in graph.links.iter().enumerate().filter(|(index, _)| alive(*index)) {
        let [of_a, of_b] = PortId::both_directions(index);
        ports[link.a.index()].push((of_a, link.b));
        ports[link.b.index()].push((of_b, link.a));
    }
    ports
}

/// Hops from every switch to `target`.
fn distances(
    ports: &[Vec<(PortId, NodeId)>],
    hosts: u32,
    switches: usize,
    target: SwitchId,
) -> Vec<u32> {
    let mut distance = vec![UNREACHABLE; switches];
    distance[target.index()] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(switch) = queue.pop_front() {
        for &(_, peer) in &ports[switch.node(hosts).index()] {
            let Some(next) = peer.switch(hosts) else { continue };
            if distance[next.index()] == UNREACHABLE {
                distance[next.index()] = distance[switch.index()] + 1;
                queue.push_back(next);
            }
        }
    }
    distance
}
