//! Max-min fair rates of a set of long flows, if all links that leave a rack or a pod act as one.
//!
//! Perfect balancing over equal-cost paths reaches these rates in a symmetric fabric: only the two
//! hosts' links and the joint uplinks of racks and pods limit a flow, never a collision on one path
//! (RPS, INFOCOM 2013, observation 1).

use crate::topology::{Graph, HostId};

/// Returns the ideal rate of each flow, in bits per second on the wire.
///
/// `pairs` are the flows' sources and destinations. Links count as healthy and at the graph's
/// rates.
pub fn fair_shares(graph: &Graph, pairs: &[(HostId, HostId)]) -> Vec<f64> {
    let mut capacity: Vec<f64> = vec![];
    let mut uses: Vec<Vec<usize>> = vec![vec![]; pairs.len()];
    let hosts = graph.host_rates();
    for direction in [0, 1] {
        let first = capacity.len();
        capacity.extend(hosts.iter().map(|rate| rate.0 as f64));
        for (flow, &(src, dst)) in pairs.iter().enumerate() {
            uses[flow].push(first + [src, dst][direction].index());
        }
    }
    for tier in 1..graph.tiers.len() as u8 {
        let groups = graph.groups_below(tier);
        for direction in [0, 1] {
            let first = capacity.len();
            capacity.extend(groups.uplink.iter().map(|rate| rate.0 as f64));
            for (flow, &(src, dst)) in pairs.iter().enumerate() {
                let (from, to) = (groups.of_host[src.index()], groups.of_host[dst.index()]);
                if from != to {
                    uses[flow].push(first + [from, to][direction] as usize);
                }
            }
        }
    }
    fill(&mut capacity, &uses)
}

/// Progressive filling: all rates grow together; a flow that uses a full resource stops (Bertsekas
/// and Gallager, section 6.5.2).
fn fill(capacity: &mut [f64], uses: &[Vec<usize>]) -> Vec<f64> {
    let mut rates = vec![0.0; uses.len()];
    let mut growing = vec![0u32; capacity.len()];
    for resource in uses.iter().flatten() {
        growing[*resource] += 1;
    }
    let mut open: Vec<usize> = (0..uses.len()).collect();
    let mut level = 0.0;
    while !open.is_empty() {
        let share = |at: usize| capacity[at] / f64::from(growing[at]);
        let tightest = (0..capacity.len()).filter(|&at| growing[at] > 0);
        let step = tightest.map(share).min_by(f64::total_cmp).unwrap_or(0.0);
        level += step;
        let full: Vec<bool> = (0..capacity.len())
            .map(|at| growing[at] > 0 && share(at) <= step * (1.0 + 1e-9))
            .collect();
        for (at, left) in capacity.iter_mut().enumerate() {
            *left -= step * f64::from(growing[at]);
        }
        open.retain(|&flow| {
            let stops = uses[flow].iter().any(|&at| full[at]);
            if stops {
                rates[flow] = level;
                uses[flow].iter().for_each(|&at| growing[at] -= 1);
            }
            !stops
        });
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::fat_tree::FatTree;
    use crate::topology::leaf_spine::LeafSpine;
    use crate::topology::star::Star;

    fn pair((src, dst): (u32, u32)) -> (HostId, HostId) {
        (HostId(src), HostId(dst))
    }

    #[test]
    fn a_permutation_on_a_fat_tree_has_the_full_rate() {
        let graph = FatTree { k: 4, ..FatTree::default() }.build().unwrap();
        let pairs: Vec<_> = (0..16).map(|host| pair((host, (host + 5) % 16))).collect();
        assert!(fair_shares(&graph, &pairs).iter().all(|rate| *rate == 1e9));
    }

    #[test]
    fn an_incast_shares_the_receivers_link_and_another_flow_gets_the_rest() {
        let graph = Star { hosts: 6, ..Star::default() }.build().unwrap();
        let rates = fair_shares(&graph, &[(1, 0), (2, 0), (3, 0), (4, 0), (1, 5)].map(pair));
        assert_eq!(rates, [0.25e9, 0.25e9, 0.25e9, 0.25e9, 0.75e9]);
    }

    #[test]
    fn flows_of_a_rack_share_its_uplinks() {
        let graph = LeafSpine { racks: 2, hosts_per_rack: 6, spines: 3, ..LeafSpine::default() };
        let graph = graph.build().unwrap();
        let mut pairs: Vec<_> = (0..6).map(|host| pair((host, host + 6))).collect();
        let uplink = 3e9 / 6.0;
        assert!(fair_shares(&graph, &pairs).iter().all(|rate| (rate - uplink).abs() < 1.0));
        pairs[5] = pair((5, 4));
        let rates = fair_shares(&graph, &pairs);
        assert!((rates[0] - 0.6e9).abs() < 1.0 && (rates[5] - 1e9).abs() < 1.0, "{rates:?}");
    }
}
