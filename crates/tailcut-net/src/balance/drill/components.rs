//! The symmetric components of an asymmetric fabric (DRILL's paper, its section on asymmetry).
//!
//! The shortest paths between edge switches make a labelled graph. A path of a pair (source,
//! destination) labels each link that it crosses with the pair and with its capacity factor: the
//! rate of its narrowest link. Two paths of a pair are symmetric if their links at each hop have
//! the same rate and the same labels, each as often: whatever the traffic, it loads their queues
//! equally. A component is a class of symmetric paths. The source's edge switch hashes a flow to
//! one of its pair's components, weighted by capacity, and every switch on the path keeps the
//! flow's packets within it.
//!
//! A fat-tree has millions of labels, so they are never listed. Instead a 128-bit sum over them is
//! compared, with coefficients drawn for each pair and rate. Counting paths towards each
//! destination yields it in a few steps per link.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tailcut_engine::random::mix;

use crate::balance::hash::{self, Salts};
use crate::packet::FlowKey;
use crate::topology::{Graph, PortId, Routes, SwitchId};

/// Maximum number of components of a pair; a pair with more is not divided.
const MOST_OF_A_PAIR: usize = 1_023;
/// Maximum number of components over all switches and destinations, which take some 300 MB. Towards
/// destinations beyond that, no pair is divided.
const MOST: usize = 1 << 24;

/// Stands for the empty rest of a path at its destination.
const ARRIVED: u32 = u32::MAX;

/// The division of the ports of every switch towards every destination.
#[derive(Debug, Clone)]
pub(super) struct Components {
    /// Group of destinations of each host.
    groups: Vec<u32>,
    /// Edge switch of each group.
    targets: Vec<SwitchId>,
    switches: usize,
    salts: Salts,
    /// By group and switch: where its parts start, and how many there are. A switch has none if all
    /// its ports are one component.
    rows: Vec<(u32, u32)>,
    parts: Vec<Part>,
    /// Ports, by their positions among the equal-cost ones.
    places: Vec<u16>,
    /// By component: the component of its paths behind their first link.
    rest: Vec<u32>,
}

/// A component at a switch.
#[derive(Debug, Clone, Copy)]
struct Part {
    component: u32,
    /// The last hash of the component; its hashes start after those of the part before.
    upto: u32,
    /// End of the component's places; they start where those of the part before end.
    places: u32,
}

impl Components {
    /// Finds the components of a fabric with these routes; `None` if no pair's paths have to be
    /// divided.
    pub fn new(graph: &Graph, routes: &Routes, salts: Salts) -> Option<Components> {
        let links = links_of(graph, routes);
        let mut search = Search::new(graph, routes, salts, &links);
        for group in 0..routes.groups() {
            search.divide(group);
        }
        let found = search.found;
        (!found.parts.is_empty()).then_some(found)
    }

    /// Returns the positions of the ports that a flow may take, among those of `switch` towards its
    /// destination; `None` if it may take all.
    #[inline]
    pub fn places(&self, switch: SwitchId, key: FlowKey) -> Option<&[u16]> {
        let towards = self.groups[key.dst().index()] as usize;
        let source = self.targets[self.groups[key.src().index()] as usize];
        let (first, here) = self.row(towards, switch);
        if here.is_empty() {
            return None;
        }
        let (_, whole) = self.row(towards, source);
        let mut left =
            self.choose(whole, source, key).map_or(ARRIVED, |place| whole[place].component);
        let place = loop {
            if left == ARRIVED {
                // The packet was sent here by a switch with another strategy or other routes.
                break self.choose(here, switch, key)?;
            }
            if let Ok(place) = here.binary_search_by_key(&left, |part| part.component) {
                break place;
            }
            left = self.rest[left as usize];
        };
        let start = (first + place).checked_sub(1).map_or(0, |before| self.parts[before].places);
        Some(&self.places[start as usize..here[place].places as usize])
    }

    /// Returns the part at a switch that a flow is hashed to; `None` if the switch has no parts.
    #[inline]
    fn choose(&self, parts: &[Part], switch: SwitchId, key: FlowKey) -> Option<usize> {
        let hash = hash::hash(key.0, self.salts.of(switch));
        let place = parts.partition_point(|part| part.upto < hash);
        (place < parts.len()).then_some(place)
    }

    /// Returns where the parts of a switch start, and the parts.
    #[inline]
    fn row(&self, towards: usize, switch: SwitchId) -> (usize, &[Part]) {
        let (start, count) = self.rows[towards * self.switches + switch.index()];
        (start as usize, &self.parts[start as usize..][..count as usize])
    }
}

/// Links between switches, with the labels of all pairs.
struct Links {
    /// The switch that each port leads to.
    ends: Vec<SwitchId>,
    /// By port: a number shared by all ports with the same rate and labels.
    labels: Vec<u32>,
    /// Rate of each such number.
    rates: Vec<u64>,
}

/// Returns the rates of the links between switches, lowest first.
fn rates(graph: &Graph) -> BTreeSet<u64> {
    let inner = |node| graph.switch(node).is_some();
    let links = graph.links.iter().filter(|link| inner(link.a) && inner(link.b));
    links.map(|link| link.rate.0).collect()
}

/// Returns the number of different rates of links between switches, of switches with hosts, and of
/// links.
pub(super) fn size(graph: &Graph) -> [u64; 3] {
    let ends = graph.links.iter().map(|link| (link.a, link.b));
    let ends = ends.filter(|(a, b)| graph.host(*a).is_some() || graph.host(*b).is_some());
    let edges: BTreeSet<_> = ends.filter_map(|(a, b)| graph.switch(a.max(b))).collect();
    [rates(graph).len(), edges.len(), graph.links.len()].map(|count| count as u64)
}

fn links_of(graph: &Graph, routes: &Routes) -> Links {
    let ports = (0..2 * graph.links.len()).map(PortId::at);
    let rate = |port: PortId| graph.links[port.link()].rate.0;
    let end = |port| graph.switch(graph.far_end(port)).unwrap_or_default();
    let ends: Vec<SwitchId> = ports.clone().map(end).collect();
    let targets = targets(graph, routes);
    let mut sums = vec![0_u128; ends.len()];
    let (mut order, mut paths, mut sources) = (Order::new(graph), vec![], vec![]);
    for towards in 0..targets.len() {
        let nearest_first = order.of(routes, &ends, towards, targets[towards]);
        for least in rates(graph) {
            let wide = |switch| {
                let ports = routes.towards(switch, towards).iter();
                ports.copied().filter(move |&port| rate(port) >= least)
            };
            // Number of paths from each switch that are nowhere narrower than `least`.
            paths.clear();
            paths.resize(graph.switches as usize, 0_u128);
            paths[targets[towards].index()] = 1;
            for &switch in nearest_first {
                let onward = wide(switch).map(|port| paths[ends[port.index()].index()]);
                paths[switch.index()] = onward.fold(0, u128::wrapping_add);
            }
            // Number of such paths to each switch, weighted with their sources' coefficients.
            sources.clear();
            sources.resize(graph.switches as usize, 0_u128);
            for (source, target) in targets.iter().enumerate() {
                sources[target.index()] = coefficient(source as u64, towards as u64, least);
            }
            for &switch in nearest_first.iter().rev() {
                let here = sources[switch.index()];
                for port in wide(switch) {
                    let end = ends[port.index()].index();
                    sources[end] = sources[end].wrapping_add(here);
                    let crossing = here.wrapping_mul(paths[end]);
                    sums[port.index()] = sums[port.index()].wrapping_add(crossing);
                }
            }
        }
    }
    let mut known = BTreeMap::new();
    let mut rates = vec![];
    let label = |port: PortId| {
        *known.entry((sums[port.index()], rate(port))).or_insert_with(|| {
            rates.push(rate(port));
            rates.len() as u32 - 1
        })
    };
    let labels = ports.map(label).collect();
    Links { ends, labels, rates }
}

/// Returns the coefficient of the label of a pair and a rate in a sum.
fn coefficient(source: u64, destination: u64, rate: u64) -> u128 {
    let low = mix(mix(source << 32 | destination) ^ rate);
    u128::from(mix(!low)) << 64 | u128::from(low)
}

/// Returns the edge switch of each group of hosts.
fn targets(graph: &Graph, routes: &Routes) -> Vec<SwitchId> {
    let mut targets = vec![SwitchId(0); routes.groups()];
    for host in graph.each_host() {
        targets[routes.group(host)] = routes.edge_switch(host);
    }
    targets
}

/// Switches in the order of their distances.
struct Order {
    nearest_first: Vec<SwitchId>,
    seen: Vec<bool>,
    open: Vec<(SwitchId, usize)>,
}

impl Order {
    fn new(graph: &Graph) -> Order {
        let switches = graph.switches as usize;
        Order {
            nearest_first: Vec::with_capacity(switches),
            seen: vec![false; switches],
            open: vec![],
        }
    }

    /// Returns the switches with ports towards a group, except the group's own switch, each after
    /// all switches that its ports lead to. Routes of switches that a failure has cut off lead to
    /// the dead link, and on from its far end.
    fn of(
        &mut self,
        routes: &Routes,
        ends: &[SwitchId],
        towards: usize,
        target: SwitchId,
    ) -> &[SwitchId] {
        let Order { nearest_first, seen, open } = self;
        nearest_first.clear();
        seen.fill(false);
        seen[target.index()] = true;
        for start in (0..seen.len()).map(SwitchId::at) {
            if !std::mem::replace(&mut seen[start.index()], true) {
                open.push((start, 0));
            }
            while let Some((switch, next)) = open.last_mut() {
                match routes.towards(*switch, towards).get(*next) {
                    Some(port) => {
                        *next += 1;
                        let end = ends[port.index()];
                        if !std::mem::replace(&mut seen[end.index()], true) {
                            open.push((end, 0));
                        }
                    }
                    None => {
                        nearest_first.push(*switch);
                        open.pop();
                    }
                }
            }
        }
        nearest_first
    }
}

/// A component of the paths from a switch, and its number of paths.
#[derive(Debug, Clone, Copy)]
struct Bundle {
    component: u32,
    paths: f64,
}

/// Divides the paths towards each destination in turn.
struct Search<'a> {
    routes: &'a Routes,
    links: &'a Links,
    order: Order,
    found: Components,
    /// For the current destination, from the nearest switches on: the component of each pair of
    /// first link's label and rest.
    known: BTreeMap<(u32, u32), u32>,
    /// For the components of that destination, from the first on: the rate of the narrowest link.
    narrowest: Vec<u64>,
    /// Range of each switch's bundles, by component; empty if it has too many.
    spans: Vec<Range<usize>>,
    bundles: Vec<Bundle>,
    /// Buffer for the bundles of one switch, with the positions of the ports that they begin with.
    begun: Vec<(Bundle, u16)>,
}

impl<'a> Search<'a> {
    fn new(graph: &Graph, routes: &'a Routes, salts: Salts, links: &'a Links) -> Search<'a> {
        let switches = graph.switches as usize;
        let found = Components {
            groups: graph.each_host().map(|host| routes.group(host) as u32).collect(),
            targets: targets(graph, routes),
            switches,
            salts,
            rows: vec![],
            parts: vec![],
            places: vec![],
            rest: vec![],
        };
        Search {
            routes,
            links,
            order: Order::new(graph),
            found,
            known: BTreeMap::new(),
            narrowest: vec![],
            spans: vec![],
            bundles: vec![],
            begun: vec![],
        }
    }

    fn divide(&mut self, towards: usize) {
        let target = self.found.targets[towards];
        let order = self.order.of(self.routes, &self.links.ends, towards, target);
        let nearest_first = order.to_vec();
        let Components { rows, parts, places, rest, switches, .. } = &self.found;
        let (row, before) = (rows.len(), [parts.len(), places.len(), rest.len()]);
        self.known.clear();
        self.narrowest.clear();
        self.bundles.clear();
        self.bundles.push(Bundle { component: ARRIVED, paths: 1.0 });
        self.spans.clear();
        self.spans.resize(*switches, 0..0);
        self.spans[target.index()] = 0..1;
        self.found.rows.resize(row + self.spans.len(), (before[0] as u32, 0));
        for switch in nearest_first {
            if !self.begin(switch, towards, before[2]) {
                continue;
            }
            let start = self.bundles.len();
            for &(bundle, _) in &self.begun {
                match self.bundles[start..].last_mut() {
                    Some(last) if last.component == bundle.component => last.paths += bundle.paths,
                    _ => self.bundles.push(bundle),
                }
            }
            let count = self.bundles.len() - start;
            if count <= MOST_OF_A_PAIR {
                self.spans[switch.index()] = start..self.bundles.len();
            }
            if (2..=MOST_OF_A_PAIR).contains(&count) {
                self.found.rows[row + switch.index()] =
                    (self.found.parts.len() as u32, count as u32);
                self.part(start, before[2]);
            }
        }
        let Components { rows, parts, places, rest, .. } = &mut self.found;
        if parts.len() == before[0] || parts.len().max(rest.len()) > MOST {
            parts.truncate(before[0]);
            places.truncate(before[1]);
            rest.truncate(before[2]);
            rows[row..].fill((before[0] as u32, 0));
        }
    }

    /// Lists the bundles that begin with each port of a switch, sorted by component. Returns false
    /// if a following switch is not divided. The components of this destination are numbered from
    /// `base` on.
    fn begin(&mut self, switch: SwitchId, towards: usize, base: usize) -> bool {
        self.begun.clear();
        let mut last = None;
        for (place, &port) in (0..).zip(self.routes.towards(switch, towards)) {
            let label = self.links.labels[port.index()];
            let behind = self.spans[self.links.ends[port.index()].index()].clone();
            if behind.is_empty() {
                return false;
            }
            for &Bundle { component: rest, paths } in &self.bundles[behind] {
                // Usually all ports of a switch begin one component.
                let component = match last {
                    Some((known, component)) if known == (label, rest) => component,
                    _ => *self.known.entry((label, rest)).or_insert_with(|| {
                        let rate = self.links.rates[label as usize];
                        let onward = (rest as usize).checked_sub(base);
                        let onward = onward.and_then(|place| self.narrowest.get(place));
                        self.narrowest.push(onward.map_or(rate, |onward| rate.min(*onward)));
                        self.found.rest.push(rest);
                        self.found.rest.len() as u32 - 1
                    }),
                };
                last = Some(((label, rest), component));
                self.begun.push((Bundle { component, paths }, place));
            }
        }
        self.begun.sort_by_key(|(bundle, _)| bundle.component);
        true
    }

    /// Stores the parts of a switch, whose bundles start at `start`.
    fn part(&mut self, start: usize, base: usize) {
        let bundles = &self.bundles[start..];
        let capacity = |bundle: &Bundle| {
            bundle.paths * self.narrowest[bundle.component as usize - base] as f64
        };
        let all: f64 = bundles.iter().map(capacity).sum();
        let mut sum = 0.0;
        let Components { parts, places, .. } = &mut self.found;
        let mut begun = self.begun.chunk_by(|(a, _), (b, _)| a.component == b.component);
        for bundle in bundles {
            sum += capacity(bundle);
            places.extend(begun.next().into_iter().flatten().map(|(_, place)| *place));
            // The conversion saturates at the largest number.
            let upto = (sum / all * (1_u64 << 32) as f64) as u32;
            parts.push(Part { component: bundle.component, upto, places: places.len() as u32 });
        }
        if let Some(last) = parts.last_mut() {
            last.upto = u32::MAX;
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
