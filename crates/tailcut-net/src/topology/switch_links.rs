//! Links between switches, from which routes are computed.

use std::collections::VecDeque;

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
