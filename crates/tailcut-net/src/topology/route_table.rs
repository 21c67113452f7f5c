//! The table of routes while it is filled.

use std::collections::BTreeMap;

use super::routes::{ATTACHED, RouteError, START_BITS};
use super::switch_links::SwitchLinks;
use super::{PortId, SwitchId};

/// A table of routes that is being filled: an entry for each switch and group of destinations.
pub(super) struct RouteTable<'l> {
    links: &'l SwitchLinks,
    columns: usize,
    /// By switch, then by group; [`ATTACHED`] where nothing has been entered.
    entries: Vec<PortId>,
    sets: PortSets,
    /// The ports of an entry; the buffer is reused.
    ports: Vec<PortId>,
}

impl<'l> RouteTable<'l> {
    /// Creates a table without routes.
    pub fn new(links: &'l SwitchLinks, switches: usize, columns: usize) -> RouteTable<'l> {
        let (entries, sets) = (vec![ATTACHED; switches * columns], PortSets::new(switches));
        RouteTable { links, columns, entries, sets, ports: vec![] }
    }

    /// Enters the ports by which a switch sends to a group.
    ///
    /// # Errors
    /// Refuses more ports than an entry can count or locate.
    pub fn set(
        &mut self,
        switch: SwitchId,
        group: usize,
        ports: &[PortId],
    ) -> Result<(), RouteError> {
        self.entries[switch.index() * self.columns + group] = self.sets.encode(switch, ports)?;
        Ok(())
    }

    /// Enters the ports of a switch to those of its neighbours that `is_next` admits.
    ///
    /// # Errors
    /// As [`RouteTable::set`].
    pub fn lead_to(
        &mut self,
        switch: SwitchId,
        group: usize,
        is_next: impl Fn(SwitchId) -> bool,
    ) -> Result<(), RouteError> {
        let mut ports = std::mem::take(&mut self.ports);
        ports.clear();
        let next = self.links.of(switch).iter().filter(|(_, far)| is_next(*far));
        ports.extend(next.map(|&(port, _)| port));
        let done = self.set(switch, group, &ports);
        self.ports = ports;
        done
    }

    /// Enters for a group what there is for its twin, whose edge switch has the same neighbours: all
    /// others are as far from either. Only the neighbours have ports of their own to each, and the
    /// two edge switches to each other. The twin comes first in each pair.
    ///
    /// # Errors
    /// As [`RouteTable::set`].
    pub fn repeat(
        &mut self,
        [twin, group]: [usize; 2],
        [twin_edge, edge]: [SwitchId; 2],
        neighbours: &[SwitchId],
    ) -> Result<(), RouteError> {
        self.entries.chunks_mut(self.columns).for_each(|row| row[group] = row[twin]);
        self.entries[edge.index() * self.columns + group] = ATTACHED;
        for &switch in neighbours {
            self.lead_to(switch, group, |far| far == edge)?;
        }
        self.lead_to(twin_edge, group, |_| true)
    }

    /// Returns the entries, and the ports of all sets that are no single port.
    pub fn into_parts(self) -> (Vec<PortId>, Vec<PortId>) {
        (self.entries, self.sets.candidates)
    }
}

/// Sets of equal-cost ports, each stored once.
struct PortSets {
    /// The ports of all sets that are no single port.
    candidates: Vec<PortId>,
    known: BTreeMap<Vec<PortId>, PortId>,
    /// By switch: the set that was encoded last, and its entry. Most switches have the same ports
    /// towards almost everyone.
    last: Vec<(Vec<PortId>, PortId)>,
}

impl PortSets {
    /// Returns no sets, for a number of switches.
    fn new(switches: usize) -> PortSets {
        let last = vec![(vec![], PortId(0)); switches];
        PortSets { candidates: vec![], known: BTreeMap::new(), last }
    }

    /// Returns the table entry of a set of ports of a switch, and stores the set if it is new.
    ///
    /// # Errors
    /// Refuses more ports than an entry can count or locate.
    fn encode(&mut self, switch: SwitchId, set: &[PortId]) -> Result<PortId, RouteError> {
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
