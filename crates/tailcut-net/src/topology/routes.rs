//! Shortest-path routes: for each switch and destination, the equal-cost egress ports.

use std::collections::{BTreeMap, VecDeque};

use super::Graph;

/// The directed link that leaves a node: `2 * link` from `a`, `2 * link + 1` from `b`.
pub type PortId = u32;

/// Bits of a table entry that locate the candidates; the rest count them.
const START_BITS: u32 = 22;

const UNREACHABLE: u32 = u32::MAX;

/// Equal-cost routes of every switch towards every switch that has hosts.
///
/// Destinations are grouped by the switch that they hang on, which keeps the
/// table small enough for the cache: 80 KB for 1,024 hosts.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Per host: the group of destinations it belongs to (its switch).
    group: Vec<u16>,
    /// Per host: the port that leads down to it from its switch.
    down: Vec<PortId>,
    /// Per host: the port that leads up from it.
    up: Vec<PortId>,
    /// Per switch and group: where its candidates start, and above `START_BITS` how many; 0 where the host is attached.
    table: Vec<u32>,
    groups: usize,
    candidates: Vec<PortId>,
}

/// Why a graph cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A host without exactly one link.
    #[error("host {host} has {links} links; a host has exactly one")]
    HostLinks {
        /// The host.
        host: u32,
        /// Its links.
        links: usize,
    },
    /// Two hosts joined without a switch.
    #[error("host {host} is not attached to a switch")]
    NoSwitch {
        /// The host.
        host: u32,
    },
    /// More equal-cost paths than the tables hold.
    #[error("switch {switch} has {paths} equal-cost ports towards one destination; at most 1,023 fit, and 4 million over all switches")]
    TooManyPaths {
        /// The switch, numbered over switches.
        switch: u32,
        /// Its equal-cost ports.
        paths: usize,
    },
    /// No path.
    #[error("switch {switch} has no path to host {host}")]
    Disconnected {
        /// The switch, numbered over switches.
        switch: u32,
        /// The host.
        host: u32,
    },
}

impl Routes {
    /// Computes the routes of a graph.
    ///
    /// # Errors
    /// When a host has not exactly one link to a switch, or the graph is not connected.
    pub fn new(graph: &Graph) -> Result<Routes, RouteError> {
        let hosts = graph.hosts;
        let switches = graph.switches as usize;
        let mut ports: Vec<Vec<(PortId, u32)>> = vec![vec![]; hosts as usize + switches];
        for (index, link) in graph.links.iter().enumerate() {
            ports[link.a as usize].push((2 * index as u32, link.b));
            ports[link.b as usize].push((2 * index as u32 + 1, link.a));
        }
        let (mut up, mut down, mut edge) = (vec![], vec![], vec![]);
        for host in 0..hosts {
            let [(port, peer)] = ports[host as usize][..] else {
                return Err(RouteError::HostLinks { host, links: ports[host as usize].len() });
            };
            if peer < hosts {
                return Err(RouteError::NoSwitch { host });
            }
            up.push(port);
            down.push(port ^ 1);
            edge.push(peer - hosts);
        }
        let mut numbering = BTreeMap::new();
        for &switch in &edge {
            let next = numbering.len() as u16;
            numbering.entry(switch).or_insert(next);
        }
        let groups = numbering.len();
        let mut table = vec![0u32; switches * groups];
        let mut candidates: Vec<PortId> = vec![];
        let mut known: BTreeMap<Vec<PortId>, u32> = BTreeMap::new();
        for (&target, &group) in &numbering {
            let distance = distances(&ports, hosts, switches, target);
            for switch in (0..switches as u32).filter(|&s| s != target) {
                let here = distance[switch as usize];
                if here == UNREACHABLE {
                    let host = edge.iter().position(|&e| e == target).unwrap_or(0) as u32;
                    return Err(RouteError::Disconnected { switch, host });
                }
                let set: Vec<PortId> = ports[(hosts + switch) as usize]
                    .iter()
                    .filter(|&&(_, peer)| {
                        peer >= hosts && distance[(peer - hosts) as usize] + 1 == here
                    })
                    .map(|&(port, _)| port)
                    .collect();
                if set.len() >= 1 << (32 - START_BITS)
                    || candidates.len() + set.len() >= 1 << START_BITS
                {
                    return Err(RouteError::TooManyPaths { switch, paths: set.len() });
                }
                let encoded = *known.entry(set).or_insert_with_key(|set| {
                    let start = candidates.len() as u32;
                    candidates.extend(set);
                    start | (set.len() as u32) << START_BITS
                });
                table[switch as usize * groups + usize::from(group)] = encoded;
            }
        }
        let group = edge.iter().map(|e| numbering[e]).collect();
        Ok(Routes { group, down, up, table, groups, candidates })
    }

    /// The port that leads up from a host.
    #[inline]
    pub fn host_port(&self, host: u32) -> PortId {
        self.up[host as usize]
    }

    /// The equal-cost ports from `switch` (numbered over switches) towards `host`, in port order.
    #[inline]
    pub fn candidates(&self, switch: u32, host: u32) -> &[PortId] {
        let group = usize::from(self.group[host as usize]);
        let set = self.table[switch as usize * self.groups + group];
        if set == 0 {
            return std::slice::from_ref(&self.down[host as usize]);
        }
        let start = (set & ((1 << START_BITS) - 1)) as usize;
        &self.candidates[start..start + (set >> START_BITS) as usize]
    }
}

/// Hops from every switch to `target`.
fn distances(ports: &[Vec<(PortId, u32)>], hosts: u32, switches: usize, target: u32) -> Vec<u32> {
    let mut distance = vec![UNREACHABLE; switches];
    distance[target as usize] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(switch) = queue.pop_front() {
        for &(_, peer) in &ports[(hosts + switch) as usize] {
            if peer >= hosts && distance[(peer - hosts) as usize] == UNREACHABLE {
                distance[(peer - hosts) as usize] = distance[switch as usize] + 1;
                queue.push_back(peer - hosts);
            }
        }
    }
    distance
}
