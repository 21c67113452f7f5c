//! Mixed strategies: switches of each tier choose in their own way (RPS, section IV-A names the mixture).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BalanceSpec;
use crate::component::SpecError;
use crate::topology::Graph;

/// A strategy for each tier of switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByTier {
    /// Switches that hosts hang on.
    pub edge: Box<BalanceSpec>,
    /// Switches next to those: aggregation switches, or the spines of a leaf-spine fabric.
    pub aggregation: Box<BalanceSpec>,
    /// All switches further from the hosts.
    pub core: Box<BalanceSpec>,
}

impl Default for ByTier {
    fn default() -> Self {
        let ecmp = || Box::new(BalanceSpec::Ecmp {});
        ByTier { edge: Box::new(BalanceSpec::Spray {}), aggregation: ecmp(), core: ecmp() }
    }
}

impl ByTier {
    /// The strategies from the edge upwards, with their names.
    pub(super) fn tiers(&self) -> [(&'static str, &BalanceSpec); 3] {
        [("edge", &self.edge), ("aggregation", &self.aggregation), ("core", &self.core)]
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        for (tier, spec) in self.tiers() {
            match spec {
                BalanceSpec::ByTier(_) => {
                    let message = format!("{tier}: a tier's strategy cannot differ by tier again");
                    return Err(SpecError::new("by-tier-nested", tier, message)
                        .hint("name the strategy of the tier directly"));
                }
                BalanceSpec::TinyFlow(_) if tier != "edge" => {
                    let message = format!("{tier}: TinyFlow runs at edge switches only");
                    return Err(SpecError::new("by-tier-tinyflow", tier, message)
                        .hint("TinyFlow's section III-B: the rest of the network uses ECMP"));
                }
                _ => spec.check().map_err(|mut error| {
                    error.field = format!("{tier}.{}", error.field);
                    error
                })?,
            }
        }
        Ok(())
    }
}

/// Per switch: 0 where hosts hang, 1 next to those, 2 beyond.
pub(super) fn tiers_of(graph: &Graph) -> Vec<u8> {
    let mut neighbours = vec![vec![]; graph.switches as usize];
    let mut tiers = vec![u8::MAX; graph.switches as usize];
    let mut queue = VecDeque::new();
    for link in &graph.links {
        match (link.a < graph.hosts, link.b < graph.hosts) {
            (false, false) => {
                let (a, b) = (link.a - graph.hosts, link.b - graph.hosts);
                neighbours[a as usize].push(b);
                neighbours[b as usize].push(a);
            }
            (true, false) | (false, true) => {
                let switch = link.a.max(link.b) - graph.hosts;
                if tiers[switch as usize] != 0 {
                    tiers[switch as usize] = 0;
                    queue.push_back(switch);
                }
            }
            (true, true) => {}
        }
    }
    while let Some(switch) = queue.pop_front() {
        let next = tiers[switch as usize].saturating_add(1).min(2);
        for &other in &neighbours[switch as usize] {
            if tiers[other as usize] == u8::MAX {
                tiers[other as usize] = next;
                queue.push_back(other);
            }
        }
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn tiers_within_tiers_and_tinyflow_off_the_edge_are_refused() {
        let nested =
            ByTier { core: Box::new(BalanceSpec::ByTier(ByTier::default())), ..ByTier::default() };
        assert_eq!(nested.check().expect_err("nested").code, "by-tier-nested");
        let tinyflow = || Box::new(BalanceSpec::TinyFlow(TinyFlow::default()));
        assert_eq!(ByTier { edge: tinyflow(), ..ByTier::default() }.check(), Ok(()));
        let core = ByTier { core: tinyflow(), ..ByTier::default() };
        assert_eq!(core.check().expect_err("not at the edge").code, "by-tier-tinyflow");
    }
}
