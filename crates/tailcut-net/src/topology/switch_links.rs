//! Links between switches and sets of equal-cost ports, from which routes are computed.

use std::collections::{BTreeMap, VecDeque};

use super::routes::{ATTACHED, RouteError, START_BITS};
use super::{Graph, PortId, SwitchId};

/// The distance of a switch without a path.
pub(super) const UNREACHABLE: u32 = u32::MAX;

/// The live links between switches.
pub(super) struct SwitchLinks {
    /// By switch: where its links begin, and after the last one where they end.
    first: Vec<u32>,
    /// By switch, in port order: its ports, and the switch at the far end of each.
    links: Vec<(PortId, SwitchId)>,
}

impl SwitchLinks {
    /// Returns the links of a graph between switches, as far as `alive` admits their numbers.
    pub fn new(graph: &Graph, alive: impl Fn(usize) -> bool) -> SwitchLinks {
        let ends = |index: usize| {
            let link = &graph.links[index];
            let [of_a, of_b] = PortId::both_directions(index);
            let (a, b) = (graph.switch(link.a)?, graph.switch(link.b)?);
            alive(index).then_some([(a, of_a, b), (b, of_b, a)])
        };
        let every = || (0..graph.links.len()).filter_map(ends).flatten();
        let mut first = vec![0; graph.switches as usize + 1];
        every().for_each(|(near, ..)| first[near.index() + 1] += 1);
        (1..first.len()).for_each(|switch| first[switch] += first[switch - 1]);
        let mut next = first.clone();
        let mut links = vec![(PortId(0), SwitchId(0)); first[first.len() - 1] as usize];
        for (near, port, far) in every() {
            links[next[near.index()] as usize] = (port, far);
            next[near.index()] += 1;
        }
        SwitchLinks { first, links }
    }

    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.links.len() / 2
    }

    /// Returns the ports of a switch towards others, in port order, with the switch behind each.
    pub fn of(&self, switch: SwitchId) -> &[(PortId, SwitchId)] {
        let at = |index: usize| self.first[index] as usize;
        &self.links[at(switch.index())..at(switch.index() + 1)]
    }

    /// Returns the switches that a switch has links to, each once, in their order.
    pub fn neighbours(&self, switch: SwitchId) -> Vec<SwitchId> {
        let mut neighbours: Vec<_> = self.of(switch).iter().map(|&(_, far)| far).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        neighbours
    }

    /// Sets `distance` to that of every switch from the nearest of `targets` in links,
    /// [`UNREACHABLE`] without a path.
    pub fn distances(&self, targets: &[SwitchId], distance: &mut Vec<u32>) {
        distance.clear();
        distance.resize(self.first.len() - 1, UNREACHABLE);
        targets.iter().for_each(|target| distance[target.index()] = 0);
        let mut queue = VecDeque::from(targets.to_vec());
        while let Some(switch) = queue.pop_front() {
            let next = distance[switch.index()] + 1;
            for &(_, peer) in self.of(switch) {
                if distance[peer.index()] == UNREACHABLE {
                    distance[peer.index()] = next;
                    queue.push_back(peer);
                }
            }
        }
    }
}

/// Sets of equal-cost ports, each stored once.
pub(super) struct PortSets {
    /// The ports of all sets that are no single port.
    pub candidates: Vec<PortId>,
    known: BTreeMap<Vec<PortId>, PortId>,
    /// By switch: the set that was encoded last, and its entry. Most switches have the same ports
    /// towards almost everyone.
    last: Vec<(Vec<PortId>, PortId)>,
}

impl PortSets {
    /// Returns no sets, for a number of switches.
    pub fn new(switches: usize) -> PortSets {
        let last = vec![(vec![], PortId(0)); switches];
        PortSets { candidates: vec![], known: BTreeMap::new(), last }
    }

    /// Returns the table entry of a set of ports of a switch, and stores the set if it is new.
    ///
    /// # Errors
    /// Refuses more ports than an entry can count or locate.
    pub fn encode(&mut self, switch: SwitchId, set: &[PortId]) -> Result<PortId, RouteError> {
        if let [only] = set
            && *only < ATTACHED
        {
            return Ok(*only);
        }
        let (last, entry) = &mut self.last[switch.index()];
        if last == set && !set.is_empty() {
            return Ok(*entry);
        }
        let found = match self.known.get(set) {
            Some(known) => *known,
            None => {
                let start = self.candidates.len();
                if set.len() >= 1 << (32 - START_BITS) || start + set.len() >= 1 << START_BITS {
                    return Err(RouteError::TooManyPaths { switch, paths: set.len() });
                }
                self.candidates.extend(set);
                let entry = PortId(start as u32 | (set.len() as u32) << START_BITS);
                self.known.insert(set.to_vec(), entry);
                entry
            }
        };
        (*last, *entry) = (set.to_vec(), found);
        Ok(found)
    }
}
