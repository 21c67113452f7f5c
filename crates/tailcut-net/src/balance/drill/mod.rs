//! DRILL (Ghorbani, Yang, Godfrey, Ganjali, Firoozshahian, SIGCOMM 2017): each packet takes the
//! shortest queue of a few ports, some drawn at random and some that were the best before. A
//! switch's view of its own queues is enough to even out bursts of microseconds; no switch asks
//! another.
//!
//! Where paths differ in rates or in the traffic that crosses them, a packet compares only the
//! ports of its flow's component of symmetric paths (`components`).

mod components;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use self::components::Components;
use super::hash::Salts;
use super::{Layout, Pick, PickContext, Strategy};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::{Graph, PortId, Routes};

/// Parameters of DRILL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Drill {
    /// Ports drawn at random for each packet: d of the paper's DRILL(d, m).
    pub samples: u32,
    /// Best ports of earlier packets that are compared again: m.
    pub memory: u32,
    /// Whether paths between two edge switches that differ in rates, or in the traffic that crosses
    /// their links, are divided into symmetric components. A flow is then hashed to one component
    /// by its capacity, and its packets choose among the ports of that one. A symmetric fabric is
    /// not divided.
    pub components: bool,
}

impl Default for Drill {
    fn default() -> Self {
        Drill { samples: 2, memory: 1, components: true }
    }
}

/// Maximum number of equal-cost ports of a switch.
const MOST: u32 = 1_023;
/// Maximum of rates times destinations times links for finding components: beyond, it takes
/// minutes.
const MOST_STEPS: u64 = 1 << 32;

impl Strategy for Drill {
    type State = DrillState;

    fn looks_at_queues(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), SpecError> {
        if !(1..=MOST).contains(&self.samples) {
            let message = format!("samples = {}: must be from 1 to {MOST}", self.samples);
            return Err(SpecError::new("drill-samples", "samples", message)
                .hint("the paper draws 2; one sample without memory is kind = \"spray\""));
        }
        if self.memory > MOST {
            let message = format!("memory = {}: must be at most {MOST}", self.memory);
            return Err(SpecError::new("drill-memory", "memory", message));
        }
        Ok(())
    }

    /// Refuses components that take too long to find.
    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let [rates, edges, links] = components::size(graph);
        let steps = rates.saturating_mul(edges).saturating_mul(links);
        if self.components && steps > MOST_STEPS {
            let message = format!(
                "components = true: takes too long with {rates} rates of links between switches, {edges} switches with hosts and {links} links"
            );
            return Err(SpecError::new("drill-components", "components", message)
                .hint("write components = false, or give more links the same rate"));
        }
        Ok(())
    }

    /// Returns the memory of the best ports in bytes, at most one per port. Components are left
    /// out: most fabrics of several rates have none.
    fn state_bytes(&self, graph: &Graph) -> u64 {
        let entry = size_of::<(PortId, Vec<PortId>)>() as u64 + u64::from(self.memory) * 4;
        u64::from(graph.switches) * size_of::<Switch>() as u64
            + 2 * graph.links.len() as u64 * entry
    }

    fn state(&self, layout: Layout<'_>) -> DrillState {
        let stream = |switch| RandomStream::new(layout.seed, u64::from(switch), "drill");
        let salts = Salts::drawn(layout.seed);
        let switch = |number| Switch { stream: stream(number), best: BTreeMap::new() };
        DrillState {
            components: self.components_of(layout.graph, layout.routes, salts),
            salts,
            spec: self.clone(),
            switches: (0..layout.graph.switches).map(switch).collect(),
            seen: vec![],
        }
    }
}

impl Drill {
    fn components_of(
        &self,
        graph: &Graph,
        routes: &Routes,
        salts: Salts,
    ) -> Option<Box<Components>> {
        self.components.then(|| Components::new(graph, routes, salts)).flatten().map(Box::new)
    }
}

#[derive(Debug, Clone)]
struct Switch {
    stream: RandomStream,
    /// Keyed by the first of some equal-cost ports: those with the shortest queues last time,
    /// shortest first.
    best: BTreeMap<PortId, Vec<PortId>>,
}

/// The memories of all switches.
#[derive(Debug, Clone)]
pub struct DrillState {
    spec: Drill,
    /// `None` if all paths between two edge switches are symmetric.
    components: Option<Box<Components>>,
    salts: Salts,
    switches: Vec<Switch>,
    /// Buffer for the ports that one packet compares: their waiting times, and their positions
    /// among its choices.
    seen: Vec<(Time, u32)>,
}

impl Pick for DrillState {
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        let components = self.components.as_ref();
        let among = components.and_then(|all| all.places(fork.switch, packet.key));
        if let Some([only]) = among {
            return u32::from(*only);
        }
        let Switch { stream, best } = &mut self.switches[fork.switch.index()];
        let PickContext { now, ports, queues, choices, .. } = fork;
        let choices = among.map_or(choices, |among| among.len() as u32);
        // Returns the port at a position among those that are compared.
        let port = |place: u32| {
            ports[among.map_or(place as usize, |among| usize::from(among[place as usize]))]
        };
        let best = best.entry(port(0)).or_default();
        self.seen.clear();
        let mut look = |place: u32| {
            if !self.seen.iter().any(|&(_, other)| other == place) {
                self.seen.push((queues.wait(port(place), now), place));
            }
        };
        for _ in 0..self.spec.samples {
            look(stream.below(u64::from(choices)) as u32);
        }
        // After a failure a remembered port may no longer lead to the destination.
        for known in &*best {
            if let Some(place) = (0..choices).find(|&place| port(place) == *known) {
                look(place);
            }
        }
        // Stable sort: of equal queues the one drawn first wins.
        self.seen.sort_by_key(|&(wait, _)| wait);
        best.clear();
        let kept = self.seen.iter().take(self.spec.memory as usize);
        best.extend(kept.map(|&(_, place)| port(place)));
        let place = self.seen[0].1;
        among.map_or(place, |among| u32::from(among[place as usize]))
    }

    fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        self.components = self.spec.components_of(graph, routes, self.salts);
    }
}

#[cfg(test)]
mod tests {
    use tailcut_engine::Rate;

    use super::*;
    use crate::balance::PortQueues;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, SeqField};
    use crate::topology::HostId;
    use crate::topology::SwitchId;
    use crate::topology::fat_tree::FatTree;
    use crate::topology::leaf_spine::LeafSpine;

    /// Waiting times at ports 10, 11, 12 and on, in microseconds.
    struct At(Vec<u64>);

    impl PortQueues for At {
        fn last_use(&self, _: PortId) -> Time {
            Time::ZERO
        }
        fn queued(&self, port: PortId) -> Time {
            Time::from_us(self.0[port.index() - 10])
        }
        fn transmission(&self, _: PortId, _: u16) -> Time {
            Time::ZERO
        }
    }

    fn drilling(spec: &Drill) -> DrillState {
        let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
        let routes = Routes::new(&graph).expect("it is connected");
        spec.state(Layout { graph: &graph, routes: &routes, seed: 5 })
    }

    fn pick(drilling: &mut DrillState, waits: &[u64]) -> u32 {
        let ports: Vec<PortId> = (10..10 + waits.len()).map(PortId::at).collect();
        let fork = PickContext {
            now: Time::ZERO,
            switch: SwitchId(3),
            ingress: PortId(0),
            choices: ports.len() as u32,
            ports: &ports,
            queues: &At(waits.to_vec()),
        };
        let mut packet = Packet {
            key: FlowKey::new(HostId(0), HostId(1), 2, 3),
            connection: ConnectionId(0),
            seq: SeqField::new(0),
            options: NO_OPTIONS,
            wire_bytes: 1_500,
            flags: Flags::DATA,
        };
        drilling.pick(fork, &mut packet)
    }

    #[test]
    fn remembers_the_best_port_while_it_stays_the_best() {
        let mut drilling = drilling(&Drill::default());
        let mut waits = [90; 16];
        waits[7] = 0;
        let found = (0..200).position(|_| pick(&mut drilling, &waits) == 7);
        assert!(found.is_some(), "two of sixteen ports are drawn each time");
        assert!((0..100).all(|_| pick(&mut drilling, &waits) == 7));
        waits[7] = 95;
        assert!((0..100).all(|_| pick(&mut drilling, &waits) != 7));
    }

    #[test]
    fn without_memory_takes_the_shorter_of_the_drawn_queues() {
        let mut drilling = drilling(&Drill { samples: 2, memory: 0, ..Drill::default() });
        let waits: Vec<u64> = (0..10).collect();
        let picks = (0..20_000).map(|_| pick(&mut drilling, &waits));
        let mut counts = [0.0; 10];
        picks.for_each(|place| counts[place as usize] += 1.0);
        // The position is the smaller of two independent draws from ten.
        let expected = |place: usize| 20_000.0 * (19.0 - 2.0 * place as f64) / 100.0;
        let square = |(place, n): (usize, &f64)| (n - expected(place)).powi(2) / expected(place);
        let chi2: f64 = counts.iter().enumerate().map(square).sum();
        assert!(chi2 < 27.88, "chi-squared {chi2} exceeds the 0.1 % point of 9 degrees of freedom");
    }

    #[test]
    fn forgets_a_port_that_no_longer_leads_to_the_destination() {
        let mut drilling = drilling(&Drill { samples: 1, memory: 4, ..Drill::default() });
        let waits = [5; 8];
        let before = (0..50).map(|_| pick(&mut drilling, &waits)).max();
        assert!(before > Some(1), "others are remembered");
        assert!((0..50).all(|_| pick(&mut drilling, &waits[..2]) < 2));
    }

    #[test]
    fn refuses_components_of_a_large_fabric_with_a_rate_for_each_link() {
        let shape = LeafSpine { racks: 500, spines: 100, ..LeafSpine::default() };
        let mut graph = shape.build().expect("it is not too large");
        assert_eq!(Drill::default().check_topology(&graph), Ok(()));
        for (link, rate) in graph.links.iter_mut().zip(1_000_000..) {
            link.rate = Rate(rate);
        }
        let error = Drill::default().check_topology(&graph).expect_err("it would take minutes");
        assert_eq!((error.code, error.field.as_str()), ("drill-components", "components"));
        assert_eq!(Drill { components: false, ..Drill::default() }.check_topology(&graph), Ok(()));
    }

    #[test]
    fn refuses_zero_samples() {
        let none = Drill { samples: 0, ..Drill::default() };
        assert_eq!(none.check().expect_err("nothing to choose from").field, "samples");
    }
}
