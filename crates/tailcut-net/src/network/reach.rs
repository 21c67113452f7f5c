//! The paths that the values of an entropy policy reach, by the hashes of the switches.

use std::collections::BTreeSet;

use super::flow_predictor::key_of;
use crate::balance::{BalanceSpec, Balancer, Layout};
use crate::fabric::{Interfaces, PathPredictor};
use crate::interface::InterfaceChoice;
use crate::topology::{Graph, PathCounts, Routes};
use crate::traffic::Flow;

/// The shortest paths between two hosts, and those of them that values reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathReach {
    /// The number of shortest paths.
    pub paths: u32,
    /// The number that the values reach, on average over the salts of several seeds.
    pub reached: f64,
}

/// The seeds over whose salts the average is taken.
const SEEDS: u64 = 8;

/// Returns the paths of a flow whose packets carry `values` entropy values. Switches must choose by
/// the packet's key alone.
pub fn path_reach(
    graph: &Graph,
    routes: &Routes,
    balance: &BalanceSpec,
    flow: &Flow,
    values: u32,
) -> PathReach {
    let paths = PathCounts::default().between(graph, routes, flow.src, flow.dst);
    let key = key_of(flow, 0, 0);
    let reached = |seed| {
        let balancer = Balancer::new(balance, Layout { graph, routes, seed });
        let interfaces = Interfaces::new(InterfaceChoice::Flow, graph, seed);
        let on = PathPredictor::new(graph, routes, &balancer, interfaces.as_ref());
        let mut seen = BTreeSet::new();
        for value in 0..values {
            seen.insert(on.path(key.with_sport(key.sport() ^ value as u16)));
            if seen.len() == paths as usize {
                break;
            }
        }
        seen.len() as u64
    };
    let total: u64 = (1..=SEEDS).map(reached).sum();
    PathReach { paths, reached: total as f64 / SEEDS as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ecmp::Ecmp;
    use crate::balance::hash::Salting;
    use crate::topology::HostId;
    use crate::topology::fat_tree::FatTree;
    use tailcut_engine::Time;

    fn reach(balance: BalanceSpec, values: u32) -> PathReach {
        let graph = FatTree { k: 8, ..FatTree::default() }.build().expect("k is even");
        let routes = Routes::new(&graph).expect("it is connected");
        let flow = Flow { id: 3, src: HostId(0), dst: HostId(127), bytes: 1, start: Time::ZERO };
        path_reach(&graph, &routes, &balance, &flow, values)
    }

    #[test]
    fn more_values_reach_more_paths() {
        let [one, few, many] = [1, 16, 1 << 16].map(|values| reach(BalanceSpec::default(), values));
        assert_eq!((one.paths, one.reached), (16, 1.0));
        // 16 draws of 16 paths reach 16 (1 - (15/16)^16) = 10.3 of them, with a standard deviation
        // of 1.25 over the root of 8 seeds.
        assert!((few.reached - 10.3).abs() < 4.0 * 1.25 / 8f64.sqrt(), "{few:?}");
        assert_eq!(many.reached, 16.0);
    }

    #[test]
    fn without_salts_switches_choose_alike_and_few_paths_are_reached() {
        let polarised = BalanceSpec::Ecmp(Ecmp { salt: Salting::None, ..Ecmp::default() });
        assert_eq!(reach(polarised, 1 << 16).reached, 4.0);
    }
}
