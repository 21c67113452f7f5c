use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::double_tree::parent;
use super::steps::{Effect, Step, Work, part};
use super::*;
use crate::horizon::Horizon;
use crate::topology::star::Star;
use crate::traffic::TrafficSpec;
use tailcut_engine::Rate;

fn collective(operation: &str, algorithm: &str, bytes: u64, slices: u32) -> Collective {
    let spec = json!({
        "operation": operation, "algorithm": algorithm, "bytes": format!("{bytes}B"),
        "slices": slices,
    });
    serde_json::from_value(spec).expect("well-formed")
}

fn steps(operation: &str, algorithm: &str, ranks: u32, bytes: u64, slices: u32) -> Vec<Step> {
    let about = collective(operation, algorithm, bytes, slices);
    about.steps(ranks).expect("the algorithm does it").steps
}

/// Returns the number of messages and their bytes.
fn totals(steps: &[Step]) -> (u64, u64) {
    let sizes = steps.iter().filter_map(|step| match &step.work {
        Work::Message { bytes, .. } => Some(bytes.end - bytes.start),
        Work::Join { .. } => None,
    });
    sizes.fold((0, 0), |(count, sum), size| (count + 1, sum + size))
}

#[test]
fn messages_and_bytes_are_the_closed_forms() {
    for n in [2u32, 3, 5, 8, 12, 16] {
        let (ranks, s) = (u64::from(n), 1_000_003);
        let (p, rounds) = (1 << n.ilog2(), u64::from(n.ilog2()));
        let r = ranks - p;
        let of = |operation, algorithm, slices| totals(&steps(operation, algorithm, n, s, slices));
        let (all, links) = (2 * ranks * (ranks - 1), (ranks - 1) * s);
        assert_eq!(of("all-reduce", "ring", 1), (all, 2 * links));
        assert_eq!(of("all-reduce", "ring", 3), (3 * all, 2 * links));
        assert_eq!(of("reduce-scatter", "ring", 1), (all / 2, links));
        assert_eq!(of("all-gather", "ring", 1), (all / 2, links));
        assert_eq!(of("all-reduce", "direct", 1), (all, 2 * links));
        assert_eq!(of("reduce-scatter", "direct", 1), (all / 2, links));
        assert_eq!(of("all-gather", "direct", 1), (all / 2, links));
        assert_eq!(of("all-to-all", "direct", 1), (all / 2, links));
        assert_eq!(of("all-to-all", "pairwise", 1), (all / 2, links));
        assert_eq!(of("all-reduce", "double-tree", 7), (4 * 7 * (ranks - 1), 2 * links));
        let halving = of("all-reduce", "halving-doubling", 1);
        assert_eq!(halving, (2 * r + 2 * p * rounds, 2 * (r + p - 1) * s), "{n} ranks");
    }
}

#[test]
fn the_trees_of_eight_ranks_are_those_of_nccl() {
    let tree: Vec<Option<u32>> = (0..8).map(|place| parent(place, 8)).collect();
    assert_eq!(tree[0], None);
    assert_eq!(tree[1..], [2, 4, 2, 0, 6, 4, 6].map(Some));
    let pairs: Vec<(u32, u32)> = steps("all-reduce", "double-tree", 8, 1_000, 1)
        .iter()
        .filter_map(|step| match step.work {
            Work::Message { src, dst, effect: Effect::Reduce, lane: 1, .. } => Some((dst, src)),
            _ => None,
        })
        .collect();
    for edge in [(7, 3), (3, 5), (3, 1), (5, 6), (5, 4), (1, 2), (1, 0)] {
        assert!(pairs.contains(&edge), "{edge:?} in {pairs:?}");
    }
    assert_eq!(parent(8, 9), Some(0));
    assert_eq!(parent(5, 6), Some(4));
}

/// The contributions to each byte: how often each rank's byte is in the sum.
type Array = Vec<BTreeMap<u32, u32>>;

/// Carries steps out, each as soon as its waits and lane let it, in an order that `choose` decides,
/// and returns the arrays that the ranks end with. Reading and writing are apart, as in a network.
fn simulate(
    steps: &[Step],
    mut arrays: Vec<Array>,
    choose: &mut dyn FnMut(usize) -> usize,
) -> Vec<Array> {
    let mut begun = vec![false; steps.len()];
    let mut over = vec![false; steps.len()];
    let mut under_way: Vec<(usize, Array)> = vec![];
    loop {
        let ready: Vec<usize> = (0..steps.len())
            .filter(|&at| !begun[at] && steps[at].after.iter().all(|&from| over[from as usize]))
            .filter(|&at| {
                let Work::Message { src, dst, lane, .. } = steps[at].work else { return true };
                let same = |step: &Step| {
                    matches!(step.work, Work::Message { src: s, dst: d, lane: l, .. }
                        if (s, d, l) == (src, dst, lane))
                };
                (0..at).all(|before| begun[before] || !same(&steps[before]))
            })
            .collect();
        let choices = ready.len() + under_way.len();
        if choices == 0 {
            assert!(over.iter().all(|over| *over), "every step is carried out");
            return arrays;
        }
        let chosen = choose(choices);
        if let Some(&at) = ready.get(chosen) {
            begun[at] = true;
            match &steps[at].work {
                Work::Join { .. } => over[at] = true,
                Work::Message { src, bytes, .. } => {
                    let range = bytes.start as usize..bytes.end as usize;
                    under_way.push((at, arrays[*src as usize][range].to_vec()));
                }
            }
            continue;
        }
        let (at, carried) = under_way.swap_remove(chosen - ready.len());
        over[at] = true;
        let Work::Message { dst, bytes, effect, .. } = &steps[at].work else { continue };
        for (place, from) in (bytes.start as usize..).zip(carried) {
            let to = &mut arrays[*dst as usize][place];
            match effect {
                Effect::Copy => *to = from,
                Effect::Reduce => {
                    from.iter().for_each(|(rank, count)| *to.entry(*rank).or_default() += count);
                }
            }
        }
    }
}

proptest! {
    /// Whatever the order of arrivals, every rank ends with every rank's contribution, once.
    #[test]
    fn every_rank_ends_with_every_part(
        ranks in 2u32..10, spare in 0u64..9, slices in 1u32..4, which in 0usize..7, seed: u64,
    ) {
        let (operation, algorithm) = [
            ("all-reduce", "ring"), ("reduce-scatter", "ring"), ("all-gather", "ring"),
            ("all-reduce", "halving-doubling"), ("all-reduce", "double-tree"),
            ("all-reduce", "direct"), ("reduce-scatter", "direct"),
        ][which];
        let slices = if ["ring", "double-tree"].contains(&algorithm) { slices } else { 1 };
        let bytes = u64::from(ranks) * u64::from(slices) + spare;
        let gathers = operation == "all-gather";
        let owner = |byte: usize| {
            let owns = |rank: &u32| part(&(0..bytes), ranks.into(), (*rank).into()).contains(&(byte as u64));
            (0..ranks).find(owns).expect("a part has it")
        };
        let begin = |rank: u32, byte: usize| match !gathers || owner(byte) == rank {
            true => BTreeMap::from([(rank, 1)]),
            false => BTreeMap::new(),
        };
        let arrays = (0..ranks).map(|rank| (0..bytes as usize).map(|byte| begin(rank, byte)).collect());
        let mut state = seed | 1;
        let mut choose = |choices: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % choices
        };
        let graph = steps(operation, algorithm, ranks, bytes, slices);
        let ends = simulate(&graph, arrays.collect(), &mut choose);
        let sum: BTreeMap<u32, u32> = (0..ranks).map(|rank| (rank, 1)).collect();
        for (rank, array) in (0..ranks).zip(&ends) {
            for (byte, end) in array.iter().enumerate() {
                let expected = match operation {
                    "reduce-scatter" if owner(byte) != rank => continue,
                    "all-gather" => BTreeMap::from([(owner(byte), 1)]),
                    _ => sum.clone(),
                };
                prop_assert_eq!(end, &expected, "rank {} byte {} of {:?}", rank, byte, graph);
            }
        }
    }

    #[test]
    fn all_to_all_sends_every_part_once(ranks in 2u32..20, pairwise: bool) {
        let algorithm = if pairwise { "pairwise" } else { "direct" };
        let mut pairs: Vec<(u32, u32)> = vec![];
        for step in steps("all-to-all", algorithm, ranks, 1_000, 1) {
            let Work::Message { src, dst, bytes, .. } = step.work else { panic!("a message") };
            prop_assert_eq!(bytes, part(&(0..1_000), ranks.into(), dst.into()));
            pairs.push((src, dst));
        }
        pairs.sort_unstable();
        let all = (0..ranks).flat_map(|src| (0..ranks).map(move |dst| (src, dst)));
        prop_assert_eq!(pairs, all.filter(|(src, dst)| src != dst).collect::<Vec<_>>());
    }

    #[test]
    fn tokens_of_experts_add_up(ranks in 2u32..40, spare in 0u64..1_000_000, skew in 0.0f64..3.0) {
        let bytes = u64::from(ranks) + spare;
        let mut stream = tailcut_engine::RandomStream::new(1, 0, "experts");
        let shares = experts::shares(ranks, bytes, skew, &mut stream);
        prop_assert_eq!(shares.iter().sum::<u64>(), bytes);
        prop_assert!(shares.iter().all(|share| *share > 0));
        let (count, sent) = totals(&experts::steps(&shares).steps);
        let n = u64::from(ranks);
        prop_assert_eq!((count, sent), (2 * n * (n - 1), 2 * (n - 1) * bytes));
    }
}

fn demand(hosts: u32, parameters: serde_json::Value) -> Result<Demand, TrafficError> {
    let star = Star { hosts, rate: Rate(10_000_000_000), propagation: Time::from_us(1) };
    let graph = star.build().expect("the parameters are valid");
    let horizon = Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(1) };
    let mut spec = json!({"kind": "collective", "operation": "all-reduce", "bytes": "1MB"});
    let fields = spec.as_object_mut().expect("an object");
    fields.extend(parameters.as_object().expect("an object").clone());
    let spec: TrafficSpec = serde_json::from_value(spec).expect("well-formed");
    spec.generate(&graph, &horizon, 1, &|_: &str| Err(std::io::ErrorKind::NotFound.into()))
}

#[test]
fn jobs_take_hosts_by_their_placement() {
    let hosts = |placement: &str| {
        let demand = demand(8, json!({"jobs": 2, "ranks": 3, "placement": placement}));
        let demand = demand.expect("valid");
        let of = |job| {
            let flows = demand.flows.iter().zip(&demand.jobs.rules);
            let of_job = flows.filter(|(_, rule)| rule.job == job);
            of_job.take(3).map(|(flow, _)| flow.src.0).collect::<Vec<_>>()
        };
        (of(0), of(1))
    };
    assert_eq!(hosts("packed"), (vec![0, 1, 2], vec![3, 4, 5]));
    assert_eq!(hosts("round-robin"), (vec![0, 2, 4], vec![1, 3, 5]));
    let (first, second) = hosts("scattered");
    let mut all = [first.clone(), second.clone()].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6, "{first:?} and {second:?}");
}

#[test]
fn iterations_are_jobs_with_computations_between() {
    let demand = demand(4, json!({"repeat": 3, "compute": "5us"})).expect("valid");
    let iterations: Vec<(u32, u32, u32)> = demand
        .jobs
        .collectives
        .iter()
        .map(|about| (about.job, about.group, about.iteration))
        .collect();
    assert_eq!(iterations, [(0, 0, 0), (1, 0, 1), (2, 0, 2)]);
    assert_eq!((demand.flows.len(), demand.jobs.computations.len()), (3 * 24, 2 * 4));
    assert_eq!(demand.jobs.independent, 4);
}

#[test]
fn impossible_collectives_are_refused() {
    for (parameters, code) in [
        (json!({"ranks": 1}), "collective-hosts"),
        (json!({"ranks": 5, "jobs": 2}), "collective-hosts"),
        (json!({"hosts": [1, 9]}), "collective-hosts"),
        (json!({"bytes": "7B"}), "collective-bytes"),
        (json!({"slices": 0}), "collective-count"),
        (json!({"repeat": 0}), "collective-count"),
        (json!({"slices": 2, "algorithm": "direct"}), "collective-slices"),
        (json!({"start": "1ms"}), "collective-start"),
        (json!({"skew": 1.0}), "collective-skew"),
        (json!({"algorithm": "pairwise"}), "collective-algorithm"),
        (json!({"operation": "all-to-all"}), "collective-algorithm"),
        (json!({"repeat": 4_000_000}), "traffic-flows"),
    ] {
        let error = demand(8, parameters.clone()).expect_err(code);
        assert_eq!(error.code, code, "{parameters}: {error}");
    }
}
