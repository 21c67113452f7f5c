//! Shortest-path routes: for each switch and destination, the equal-cost egress ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::multi_homed::MultiHomed;
use super::route_table::RouteTable;
use super::switch_links::{SwitchLinks, UNREACHABLE};
use super::{Graph, HostId, PortId, SwitchId};

/// Bits of a table entry that locate the candidates; the upper bits count them. If the count is 0,
/// the entry is the only candidate itself.
pub(super) const START_BITS: u32 = 22;
/// Table entry of the switch that the destination is attached to.
pub(super) const ATTACHED: PortId = PortId((1 << START_BITS) - 1);

/// Maximum entries of the table: they take a gigabyte.
const MOST_ENTRIES: usize = 1 << 28;
/// Maximum links between switches to look at, over all destinations: beyond, it takes minutes.
const MOST_STEPS: usize = 1 << 30;
/// Number of hosts that the lower 16 bits of an address tell apart.
const LOW_HOSTS: u32 = 1 << 16;
/// Maximum links between two hosts: result tables count them in 8 bits.
const LONGEST_PATH: u32 = 255;

/// Equal-cost routes of every switch towards every switch that has hosts.
///
/// Destinations are grouped by their edge switch, which keeps the table small enough for the cache:
/// 160 KB for 1,024 hosts. Copies share it.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Group of destinations of each host (its edge switch).
    group: Arc<[u16]>,
    /// Column of the table by the lower 16 bits of a host: its group, or in a network of more
    /// hosts the column of [`Routes::columns`] that leads everyone to the slow path.
    column: Arc<[u16]>,
    /// Whether each host has one link and a number of 16 bits.
    has_simple_hosts: bool,
    /// Port that leads down to each host from its switch.
    down: Arc<[PortId]>,
    /// Port that leads up from each host: its first one, where it has several.
    pub(super) up: Arc<[PortId]>,
    /// By switch and column: the only candidate itself, or where the candidates start and, above
    /// `START_BITS`, their number.
    table: Arc<[PortId]>,
    groups: usize,
    /// Columns of the table: a group each, and where there are more than 65,536 hosts one that
    /// holds [`ATTACHED`] alone.
    columns: usize,
    candidates: Arc<[PortId]>,
    /// Edge switch of each group.
    pub(super) targets: Arc<[SwitchId]>,
    switches: u32,
    /// The links of hosts that have several; `None` where each has one.
    pub(super) several: Option<Arc<MultiHomed>>,
}

/// Reasons for which a graph cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A host does not have exactly one link.
    #[error("host {host} has {links} links; a host must have exactly one")]
    HostLinks {
        /// The host.
        host: HostId,
        /// Its links.
        links: usize,
    },
    /// Two hosts are joined without a switch.
    #[error("host {host} is not attached to a switch")]
    NoSwitch {
        /// The host.
        host: HostId,
    },
    /// A switch has more equal-cost ports than the tables hold.
    #[error(
        "switch {switch} has {paths} equal-cost ports towards one destination; at most 1,023 fit, and 4 million over all switches"
    )]
    TooManyPaths {
        /// The switch, numbered over switches.
        switch: SwitchId,
        /// Its equal-cost ports.
        paths: usize,
    },
    /// The routes of the network would not fit into memory or time.
    #[error(
        "{switches} switches, {edges} of them with hosts, and {links} links between switches: the routes would not fit into memory or time"
    )]
    TooLarge {
        /// Switches.
        switches: usize,
        /// Number of switches with hosts.
        edges: usize,
        /// Links between switches.
        links: usize,
    },
    /// Two hosts are too far apart.
    #[error("hosts are {links} links apart; at most 255 are supported")]
    TooFar {
        /// Links of a shortest path.
        links: u32,
    },
    /// A switch has no path to a host.
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
    /// Refuses hosts without exactly one link to a switch, unconnected graphs, and networks that
    /// are too large.
    pub fn new(graph: &Graph) -> Result<Routes, RouteError> {
        let (up, edge) = first_links(graph)?;
        let down = up.iter().map(|port| port.reversed()).collect();
        let mut numbering = BTreeMap::new();
        for &switch in &edge {
            let next = numbering.len() as u16;
            numbering.entry(switch).or_insert(next);
        }
        let groups = numbering.len();
        let switch_links = SwitchLinks::new(graph, |_| true);
        let (switches, links) = (graph.switches as usize, switch_links.len());
        if switches * groups > MOST_ENTRIES || groups * links > MOST_STEPS {
            return Err(RouteError::TooLarge { switches, edges: groups, links });
        }
        let mut targets = vec![SwitchId(0); groups];
        numbering.iter().for_each(|(&switch, &group)| targets[usize::from(group)] = switch);
        let group: Arc<[u16]> = edge.iter().map(|e| numbering[e]).collect();
        let several = MultiHomed::new(graph, &group, groups).map(Arc::new);
        let is_wide = graph.hosts > LOW_HOSTS;
        let column = match is_wide {
            true => vec![groups as u16; LOW_HOSTS as usize].into(),
            false => group.clone(),
        };
        let mut routes = Routes {
            group,
            column,
            has_simple_hosts: several.is_none() && !is_wide,
            down,
            up: up.into(),
            table: [].into(),
            groups,
            columns: groups + usize::from(is_wide),
            candidates: [].into(),
            targets: targets.into(),
            switches: graph.switches,
            several,
        };
        let (cut_off, farthest) = routes.fill(&switch_links, None)?;
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

    /// Recomputes these routes, those of the whole graph, without the links that `alive` refuses. A
    /// switch that can no longer reach a destination keeps its routes to it. These lead to the dead
    /// link, not in circles, because no live link leaves the part of the network that is cut off.
    ///
    /// # Errors
    /// Refuses more equal-cost ports than the table holds.
    pub fn avoiding(
        &self,
        graph: &Graph,
        alive: impl Fn(usize) -> bool,
    ) -> Result<Routes, RouteError> {
        let mut routes = self.clone();
        routes.fill(&SwitchLinks::new(graph, alive), Some(self))?;
        Ok(routes)
    }

    /// Returns, for each pair of groups (source, then destination), whether `now` lacks some of the
    /// paths of these routes, those of the whole graph.
    pub fn lost_paths(&self, graph: &Graph, now: &Routes) -> Vec<bool> {
        let mut lost = vec![false; self.groups * self.groups];
        for destination in 0..self.groups {
            // 0: not known yet; 1: keeps every path; 2: has lost some.
            let mut state = vec![0u8; self.switches as usize];
            for source in 0..self.groups {
                let mut has_lost =
                    |&switch| self.has_lost(graph, now, switch, destination, &mut state);
                lost[source * self.groups + destination] =
                    self.edges(source).iter().any(&mut has_lost);
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

    /// Returns the ports from a switch towards the edge switch of a group; empty at that switch
    /// itself.
    pub(crate) fn towards(&self, switch: SwitchId, group: usize) -> &[PortId] {
        match &self.table[switch.index() * self.columns + group] {
            &ATTACHED => &[],
            entry => self.listed(entry),
        }
    }

    /// Returns the candidates that an entry of the table stands for.
    #[inline]
    fn listed<'a>(&'a self, entry: &'a PortId) -> &'a [PortId] {
        match entry.0 >> START_BITS {
            0 => std::slice::from_ref(entry),
            count => &self.candidates[(entry.0 & ATTACHED.0) as usize..][..count as usize],
        }
    }

    /// Returns the group of a host: the number of its edge switch among those with hosts.
    pub fn group(&self, host: HostId) -> usize {
        usize::from(self.group[host.index()])
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the switch that a host is attached to, numbered among the switches.
    pub fn edge_switch(&self, host: HostId) -> SwitchId {
        self.targets[self.group(host)]
    }

    /// Fills the tables, from `fallback` where there is no path. Returns the first pair of switches
    /// without a path, and the largest number of links between two edge switches.
    fn fill(
        &mut self,
        links: &SwitchLinks,
        fallback: Option<&Routes>,
    ) -> Result<(Option<(SwitchId, SwitchId)>, u32), RouteError> {
        let switches = self.switches as usize;
        let (mut cut_off, mut farthest) = (None, 0);
        let mut table = RouteTable::new(links, switches, self.columns);
        let mut distance = vec![];
        // By the neighbours of an edge switch: its group, for others with the same neighbours.
        let mut twins: BTreeMap<Vec<SwitchId>, usize> = BTreeMap::new();
        // In the order of edge switches, on which the layout of the table depends.
        let mut targets: Vec<(SwitchId, usize)> =
            self.targets.iter().enumerate().map(|(group, &switch)| (switch, group)).collect();
        targets.sort_unstable();
        for (target, group) in targets {
            let neighbours = links.neighbours(target);
            if let Some(&twin) = twins.get(&neighbours) {
                table.repeat([twin, group], [self.targets[twin], target], &neighbours)?;
                continue;
            }
            let ends = self.edges(group);
            links.distances(ends, &mut distance);
            let apart = self.targets.iter().map(|&edge| distance[edge.index()]);
            farthest = farthest.max(apart.filter(|&links| links != UNREACHABLE).max().unwrap_or(0));
            let inside = |s| self.several.as_ref().is_some_and(|several| several.is_internal(s));
            let leads_on = |s: &SwitchId| !ends.contains(s) && !inside(*s);
            let mut is_reached = true;
            for switch in (0..switches).map(SwitchId::at).filter(leads_on) {
                let here = distance[switch.index()];
                if here != UNREACHABLE {
                    let is_nearer = |far: SwitchId| distance[far.index()] + 1 == here;
                    table.lead_to(switch, group, is_nearer)?;
                } else {
                    is_reached = false;
                    cut_off = cut_off.or(Some((switch, target)));
                    let ports = fallback.map_or(&[][..], |whole| whole.towards(switch, group));
                    table.set(switch, group, ports)?;
                }
            }
            if is_reached && self.several.is_none() {
                twins.insert(neighbours, group);
            }
        }
        let (entries, candidates) = table.into_parts();
        (self.table, self.candidates) = (entries.into(), candidates.into());
        Ok((cut_off, farthest))
    }

    /// Returns whether each host has one link and a number of 16 bits, so that
    /// [`Routes::first_port`] is a host's port.
    #[inline]
    pub(crate) fn has_simple_hosts(&self) -> bool {
        self.has_simple_hosts
    }

    /// Returns the port that leads up from the host with these lower 16 bits.
    #[inline]
    pub(crate) fn first_port(&self, low_host: usize) -> PortId {
        self.up[low_host]
    }

    /// Returns the port that leads up from a host.
    #[inline]
    pub fn host_port(&self, host: HostId) -> PortId {
        self.up[host.index()]
    }

    /// Prefetches the table entry that [`Routes::next_ports`] will read.
    #[inline]
    pub(crate) fn fetch(&self, switch: SwitchId, low_host: usize) {
        let column = self.column.get(low_host).map_or(0, |column| usize::from(*column));
        tailcut_engine::prefetch(&self.table[switch.index() * self.columns + column]);
    }

    /// Returns the equal-cost ports from `switch` towards a host, in port order. `low_host` is the
    /// lower 16 bits of its number; the whole number is asked for only where these do not decide.
    #[inline(always)]
    pub(crate) fn next_ports(
        &self,
        switch: SwitchId,
        low_host: usize,
        host: impl FnOnce() -> HostId,
    ) -> &[PortId] {
        let column = usize::from(self.column[low_host]);
        let mut entry = &self.table[switch.index() * self.columns + column];
        if *entry == ATTACHED {
            if self.has_simple_hosts {
                return std::slice::from_ref(&self.down[low_host]);
            }
            entry = self.entry_slow_path(switch, host());
        }
        self.listed(entry)
    }

    /// Returns the entry of the table towards a host, or the port itself that leads down to it. Out
    /// of line, so that simple hosts pay nothing for the others.
    #[cold]
    fn entry_slow_path(&self, switch: SwitchId, host: HostId) -> &PortId {
        match (&self.table[switch.index() * self.columns + self.group(host)], &self.several) {
            (&ATTACHED, None) => &self.down[host.index()],
            (&ATTACHED, Some(several)) => several.last_hop(switch, host, &self.up, &self.down),
            (entry, _) => entry,
        }
    }

    /// Returns the equal-cost ports from `switch` towards `host`, in port order.
    pub fn candidates(&self, switch: SwitchId, host: HostId) -> &[PortId] {
        self.listed(self.entry_slow_path(switch, host))
    }
}

impl Routes {
    /// Returns the ports of all shortest paths to a host, behind any of the ports `first`, grouped
    /// by the number of links before them.
    pub fn layers(&self, graph: &Graph, first: Vec<PortId>, dst: HostId) -> Vec<Vec<PortId>> {
        let mut layers = vec![first];
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

/// Numbers of shortest paths, computed as far as requested. Layered graphs have exponentially many
/// paths, so none is enumerated.
#[derive(Debug, Clone, Default)]
pub struct PathCounts {
    /// By requested group of destinations: the number of paths from each switch, 0 if not known.
    from: BTreeMap<usize, Vec<u32>>,
}

impl PathCounts {
    /// Returns the number of shortest paths from one host to another over `routes`, which must be
    /// the same in every call; `u32::MAX` stands for that many or more.
    pub fn between(&mut self, graph: &Graph, routes: &Routes, src: HostId, dst: HostId) -> u32 {
        let group = routes.group(dst);
        let counts = self.from.entry(group).or_insert_with(|| {
            let mut counts = vec![0; routes.switches as usize];
            routes.edges(group).iter().for_each(|target| counts[target.index()] = 1);
            counts
        });
        let edges = routes.edges(routes.group(src));
        let mut open = edges.to_vec();
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
        edges.iter().map(|edge| counts[edge.index()]).fold(0, u32::saturating_add)
    }
}

/// Returns the first port of each host, and the switch behind it.
fn first_links(graph: &Graph) -> Result<(Vec<PortId>, Vec<SwitchId>), RouteError> {
    let mut first = vec![None; graph.hosts as usize];
    let mut count = vec![0; graph.hosts as usize];
    for (index, link) in graph.links.iter().enumerate() {
        let ends = [(link.a, link.b), (link.b, link.a)];
        for (port, (near, far)) in PortId::both_directions(index).into_iter().zip(ends) {
            if let Some(host) = graph.host(near) {
                first[host.index()].get_or_insert((port, far));
                count[host.index()] += 1;
            }
        }
    }
    let mut links = (vec![], vec![]);
    for (host, found) in graph.each_host().zip(first) {
        let Some((port, far)) =
            found.filter(|_| count[host.index()] == 1 || !graph.attachment.is_single())
        else {
            return Err(RouteError::HostLinks { host, links: count[host.index()] });
        };
        links.0.push(port);
        links.1.push(graph.switch(far).ok_or(RouteError::NoSwitch { host })?);
    }
    Ok(links)
}
