//! Mixed strategies: switches of each tier choose in their own way (RPS, section IV-A names the
//! mixture), and named switches may differ from their tier.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::audit::Audit;
use super::hash::Salts;
use super::{
    BalanceSpec, Balancer, EdgeOnly, Layout, OverlayHeader, PassContext, Pick, PickContext,
    Strategy,
};
use crate::component::{SpecError, did_you_mean};
use crate::packet::{FlowKey, Packet};
use crate::topology::find::find_node;
use crate::topology::{Graph, PortId, Routes, SwitchId};

/// A strategy for each tier of switches, and for switches by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByTier {
    /// Switches that hosts are attached to.
    pub edge: Box<BalanceSpec>,
    /// Switches next to edge switches: aggregation switches, or the spines of a leaf-spine fabric.
    pub aggregation: Box<BalanceSpec>,
    /// All switches further from the hosts.
    pub core: Box<BalanceSpec>,
    /// Switches that differ from their tier, by their name in the topology or as `"s3"`: `{ edge0 =
    /// { kind = "ecmp" } }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: BTreeMap<String, BalanceSpec>,
}

impl Default for ByTier {
    fn default() -> Self {
        ByTier {
            edge: Box::new(BalanceSpec::of_the_edge()),
            aggregation: Box::default(),
            core: Box::default(),
            switches: BTreeMap::new(),
        }
    }
}

impl ByTier {
    /// Returns the strategies from the edge upwards, with their field names.
    fn tiers(&self) -> [(&'static str, &BalanceSpec); 3] {
        [("edge", &self.edge), ("aggregation", &self.aggregation), ("core", &self.core)]
    }

    /// Returns the strategies of all tiers and named switches.
    fn strategies(&self) -> impl Iterator<Item = &BalanceSpec> {
        self.tiers().map(|(_, spec)| spec).into_iter().chain(self.switches.values())
    }

    /// Returns the switches that differ from their tier, each with its name and strategy.
    ///
    /// # Errors
    /// Refuses a name of no switch, and two names of one switch.
    pub(super) fn named(&self, graph: &Graph) -> Result<BTreeMap<SwitchId, Named<'_>>, SpecError> {
        let mut found: BTreeMap<SwitchId, Named> = BTreeMap::new();
        for (name, spec) in &self.switches {
            let place = || format!("switches.{name}");
            let node = find_node(graph, name);
            let switch = node.and_then(|node| graph.switch(node)).ok_or_else(|| {
                let known = graph.names.iter().skip(graph.hosts as usize).map(String::as_str);
                let hint = did_you_mean(name, known).map_or_else(
                    || "write a name of the topology, or \"s3\" for switch 3".to_owned(),
                    |meant| format!("did you mean `{meant}`?"),
                );
                let message = format!("the topology has no switch {name:?}");
                SpecError::new("by-tier-switch", place(), message).hint(hint)
            })?;
            if let Some((other, _)) = found.insert(switch, (name, spec)) {
                let message = format!("{name:?} and {other:?} are the same switch");
                return Err(SpecError::new("by-tier-switch-twice", place(), message)
                    .hint("keep one of them"));
            }
        }
        Ok(found)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Strategy for ByTier {
    type State = Mixture;

    fn check(&self) -> Result<(), SpecError> {
        for (tier, spec) in self.tiers() {
            match spec {
                BalanceSpec::ByTier(_) => {
                    let message = format!("{tier}: the strategy of a tier cannot be by-tier");
                    return Err(SpecError::new("by-tier-nested", tier, message)
                        .hint("name the strategy of the tier directly"));
                }
                _ => spec.check().map_err(|error| below(tier, error))?,
            }
            fabric_only(tier, spec)?;
            if let Some(edge) = spec.edge_only().filter(|_| tier != "edge") {
                let message = format!("{tier}: {} runs at edge switches only", edge.name);
                return Err(SpecError::new(edge.code, tier, message).hint(edge.why));
            }
        }
        for (name, spec) in &self.switches {
            let place = format!("switches.{name}");
            match spec {
                BalanceSpec::ByTier(_) => {
                    let message = format!("{name}: the strategy of a switch cannot be by-tier");
                    return Err(SpecError::new("by-tier-nested", place, message)
                        .hint("name the strategy of the switch directly"));
                }
                _ => spec.check().map_err(|error| below(&place, error))?,
            }
            fabric_only(&place, spec)?;
            if let Some(EdgeOnly { code, kind, name: strategy, .. }) = spec.edge_only() {
                let message = format!("{name}: {strategy} must run at all edge switches");
                return Err(SpecError::new(code, place, message).hint(format!(
                    "write edge = {{ kind = \"{kind}\" }}, and name the edge switches that differ"
                )));
            }
        }
        Ok(())
    }

    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        for (tier, spec) in self.tiers() {
            spec.check_topology(graph).map_err(|error| below(tier, error))?;
        }
        for (name, spec) in &self.switches {
            spec.check_topology(graph)
                .map_err(|error| below(&format!("switches.{name}"), error))?;
        }
        self.named(graph).map(drop)
    }

    fn is_per_connection(&self) -> bool {
        self.strategies().all(|spec| spec.is_per_connection())
    }

    fn draws(&self) -> bool {
        self.strategies().any(|spec| spec.draws())
    }

    fn looks_at_queues(&self) -> bool {
        self.strategies().any(|spec| spec.looks_at_queues())
    }

    fn has_equal_shares(&self) -> bool {
        self.strategies().all(|spec| spec.has_equal_shares())
    }

    /// Returns `None`, because a mixture cannot be nested in another.
    fn edge_only(&self) -> Option<EdgeOnly> {
        None
    }

    fn fabric_only(&self) -> Option<&'static str> {
        None
    }

    fn state_bytes(&self, graph: &Graph) -> u64 {
        self.strategies().map(|spec| spec.state_bytes(graph)).sum()
    }

    fn state(&self, layout: Layout<'_>) -> Mixture {
        Mixture::new(self, layout)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Pick for Mixture {
    #[inline]
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        self.balancers[self.of_switch[fork.switch.index()] as usize].pick(fork, packet)
    }
    fn plain_hash(&self) -> Option<Salts> {
        // Tiers differ.
        None
    }
    fn predict(&self, switch: SwitchId, ports: &[PortId], key: FlowKey) -> Option<u32> {
        self.balancers[self.of_switch[switch.index()] as usize].predict(switch, ports, key)
    }
    fn large_flow_threshold(&self) -> Option<Bytes> {
        self.balancers.iter().find_map(|balancer| balancer.large_flow_threshold())
    }
    fn audit(&mut self) -> Option<&mut dyn Audit> {
        self.balancers.iter_mut().find_map(|balancer| balancer.audit())
    }
    fn stamps(&self) -> bool {
        self.balancers.iter().any(|balancer| balancer.stamps())
    }
    fn pass(&mut self, hop: PassContext<'_>, packet: &Packet, stamp: &mut OverlayHeader) {
        self.balancers[self.of_switch[hop.switch.index()] as usize].pass(hop, packet, stamp);
    }
    fn sees_all(&self) -> bool {
        self.balancers.iter().any(|balancer| balancer.sees_all())
    }
    fn see(&mut self, now: Time, switch: SwitchId, packet: &Packet) {
        self.balancers[self.of_switch[switch.index()] as usize].see(now, switch, packet);
    }
    fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        self.balancers.iter_mut().for_each(|balancer| balancer.reroute(graph, routes));
    }
}

/// The name of a switch in the parameters, and its strategy.
type Named<'a> = (&'a str, &'a BalanceSpec);

/// Prefixes the field of a strategy's error with the place of the strategy.
fn below(place: &str, error: SpecError) -> SpecError {
    SpecError { field: format!("{place}.{}", error.field), ..error }
}

/// Refuses a strategy that needs the switches of all tiers.
fn fabric_only(place: &str, spec: &BalanceSpec) -> Result<(), SpecError> {
    let Some(kind) = spec.fabric_only() else { return Ok(()) };
    let message =
        format!("{place}: {kind} must run at all switches, because they exchange what they see");
    Err(SpecError::new("by-tier-fabric", place, message)
        .hint(format!("write balance = {{ kind = \"{kind}\" }}")))
}

/// The balancer of each switch.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// Index into `balancers`, by switch.
    of_switch: Vec<u32>,
    /// The balancers of edge, aggregation and core, then those of named switches only. Balancers
    /// hold state per switch, so that switches with one strategy share a balancer.
    balancers: Vec<Balancer>,
}

impl Mixture {
    /// Creates the balancers. `spec` has been checked against the network.
    fn new(spec: &ByTier, layout: Layout<'_>) -> Mixture {
        let graph = layout.graph;
        let mut strategies = spec.tiers().map(|(_, tier)| tier).to_vec();
        let mut of_switch: Vec<u32> =
            tiers_of(graph).into_iter().map(|tier| u32::from(tier.min(2))).collect();
        for (switch, (_, strategy)) in spec.named(graph).expect("every switch named is there") {
            let known = strategies.iter().position(|other| *other == strategy);
            of_switch[switch.index()] = known.unwrap_or(strategies.len()) as u32;
            if known.is_none() {
                strategies.push(strategy);
            }
        }
        let new = |strategy: &BalanceSpec| Balancer::new(strategy, layout);
        Mixture { of_switch, balancers: strategies.into_iter().map(new).collect() }
    }
}

/// Returns the tier of each switch: 0 with hosts attached, 1 next to those, 2 beyond.
pub(super) fn tiers_of(graph: &Graph) -> Vec<u8> {
    let mut neighbours = vec![vec![]; graph.switches as usize];
    let mut tiers = vec![u8::MAX; graph.switches as usize];
    let mut queue = VecDeque::new();
    for link in &graph.links {
        match (graph.switch(link.a), graph.switch(link.b)) {
            (Some(a), Some(b)) => {
                neighbours[a.index()].push(b);
                neighbours[b.index()].push(a);
            }
            (None, Some(switch)) | (Some(switch), None) => {
                if tiers[switch.index()] != 0 {
                    tiers[switch.index()] = 0;
                    queue.push_back(switch);
                }
            }
            (None, None) => {}
        }
    }
    while let Some(switch) = queue.pop_front() {
        let next = tiers[switch.index()].saturating_add(1).min(2);
        for &other in &neighbours[switch.index()] {
            if tiers[other.index()] == u8::MAX {
                tiers[other.index()] = next;
                queue.push_back(other);
            }
        }
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::conga::Conga;
    use crate::balance::flowlet::Flowlet;
    use crate::balance::round_robin::RoundRobin;
    use crate::balance::spray::Spray;
    use crate::balance::tinyflow::TinyFlow;
    use crate::topology::fat_tree::FatTree;
    use crate::topology::leaf_spine::LeafSpine;

    #[test]
    fn a_fat_tree_has_three_tiers_and_a_leaf_spine_two() {
        let count = |graph: &Graph, tier| tiers_of(graph).iter().filter(|t| **t == tier).count();
        let tree = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
        assert_eq!([0, 1, 2].map(|tier| count(&tree, tier)), [8, 8, 4]);
        let racks = LeafSpine { racks: 4, spines: 3, ..LeafSpine::default() };
        let racks = racks.build().expect("the parameters are valid");
        assert_eq!([0, 1, 2].map(|tier| count(&racks, tier)), [4, 3, 0]);
    }

    #[test]
    fn refuses_nested_tiers_and_tinyflow_off_the_edge() {
        let nested =
            ByTier { core: Box::new(BalanceSpec::ByTier(ByTier::default())), ..ByTier::default() };
        assert_eq!(nested.check().expect_err("nested").code, "by-tier-nested");
        let tinyflow = || Box::new(BalanceSpec::TinyFlow(TinyFlow::default()));
        assert_eq!(ByTier { edge: tinyflow(), ..ByTier::default() }.check(), Ok(()));
        let core = ByTier { core: tinyflow(), ..ByTier::default() };
        assert_eq!(core.check().expect_err("not at the edge").code, "by-tier-tinyflow");
    }

    #[test]
    fn refuses_a_strategy_of_the_whole_fabric_at_some_switches() {
        let conga = || BalanceSpec::Conga(Conga::default());
        let tier = ByTier { aggregation: Box::new(conga()), ..ByTier::default() };
        let error = tier.check().expect_err("leaves would not know what it sees");
        assert_eq!((error.code, &error.field[..]), ("by-tier-fabric", "aggregation"));
        let switches = [("s0".to_owned(), conga())].into();
        let switch = ByTier { switches, ..ByTier::default() };
        let error = switch.check().expect_err("nobody tells it anything");
        assert_eq!((error.code, &error.field[..]), ("by-tier-fabric", "switches.s0"));
    }

    fn with(switches: &[(&str, BalanceSpec)]) -> ByTier {
        let named = switches.iter().map(|(name, spec)| ((*name).to_owned(), spec.clone()));
        ByTier { switches: named.collect(), ..ByTier::default() }
    }

    #[test]
    fn refuses_strategies_of_tiers_or_the_edge_at_a_named_switch() {
        let error = |spec| with(&[("core0", spec)]).check().expect_err("refused");
        assert_eq!(error(BalanceSpec::ByTier(ByTier::default())).code, "by-tier-nested");
        assert_eq!(error(BalanceSpec::TinyFlow(TinyFlow::default())).code, "by-tier-tinyflow");
        let flowlet = BalanceSpec::Flowlet(Flowlet { entries: 0, ..Flowlet::default() });
        assert_eq!(error(flowlet).field, "switches.core0.entries");
    }

    #[test]
    fn topology_errors_name_their_tier() {
        let graph = FatTree { k: 64, ..FatTree::default() }.build().expect("k is even");
        let tables = BalanceSpec::Flowlet(Flowlet { entries: 1 << 20, ..Flowlet::default() });
        let spec = ByTier { core: Box::new(tables), ..ByTier::default() };
        assert_eq!(spec.check_topology(&graph).expect_err("too much memory").field, "core.entries");
    }

    #[test]
    fn refuses_unknown_switches_and_switches_named_twice() {
        let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
        let error = |names: &[&str]| {
            let spray = names.iter().map(|name| (*name, BalanceSpec::Spray(Spray {})));
            with(&spray.collect::<Vec<_>>()).named(&graph).expect_err("refused")
        };
        let misspelt = error(&["cor0"]);
        assert_eq!(misspelt.code, "by-tier-switch");
        assert_eq!(misspelt.hint.as_deref(), Some("did you mean `core0`?"));
        assert_eq!(error(&["h0"]).code, "by-tier-switch");
        assert_eq!(error(&["edge1", "s1"]).code, "by-tier-switch-twice");
    }

    #[test]
    fn switches_of_one_strategy_share_a_balancer() {
        let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
        let routes = Routes::new(&graph).expect("it is connected");
        let turns = || BalanceSpec::RoundRobin(RoundRobin {});
        let spec =
            with(&[("edge0", turns()), ("core3", turns()), ("agg1", BalanceSpec::Spray(Spray {}))]);
        let mixture = Mixture::new(&spec, Layout { graph: &graph, routes: &routes, seed: 1 });
        assert_eq!(mixture.balancers.len(), 4);
        let differ = mixture.of_switch.iter().enumerate().filter(|(_, which)| **which == 3);
        assert_eq!(differ.map(|(switch, _)| switch).collect::<Vec<_>>(), [0, 19]);
        assert_eq!(mixture.of_switch[9], 0, "the edge sprays too");
    }
}
