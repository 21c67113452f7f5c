//! Entropy policies of TCP over real fabrics: the paths that packets take, and what that is good
//! for.

use serde_json::{Value, json};
use tailcut_engine::{Rate, Time};
use tailcut_net::amount::Amount;
use tailcut_net::faults::Incident;
use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::queue::{QueueSpec, ecn::Ecn, thresholds::Thresholds};
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::find::link_name;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::topology::{Graph, PortId};
use tailcut_net::transport::TransportSpec;

use crate::run::support::{flow, run_observed, scenario};

const FAST: Rate = Rate(1_000_000_000);
const SLOW: Rate = Rate(200_000_000);

fn parallel(path_rates: &[Rate]) -> Graph {
    let path_rates = path_rates.to_vec();
    let paths = path_rates.len() as u32;
    ParallelPaths { hosts_per_side: 1, paths, path_rates, ..ParallelPaths::default() }
        .build()
        .expect("it is valid")
}

/// A flow of DCTCP with RACK, whose ports a policy chooses, or none.
fn dctcp(graph: Graph, id: u64, entropy: Value) -> Scenario {
    let mut tcp = json!({
        "kind": "tcp", "congestion": { "kind": "dctcp" }, "recovery": "sack-prr",
        "timestamps": true, "reordering": { "kind": "rack" },
    });
    if !entropy.is_null() {
        tcp["entropy"] = entropy;
    }
    let mut scenario = scenario(graph, vec![flow(id, 0, 1, 4_000_000, Time::ZERO)]);
    scenario.scheme.transport = serde_json::from_value::<TransportSpec>(tcp).expect("it is TCP");
    let threshold = Thresholds::One(Amount::Packets(10));
    scenario.scheme.queue = QueueSpec::Ecn(Ecn { threshold, ..Ecn::default() });
    scenario
}

/// Returns the record of the flow, and its data packets over each path in the order of paths.
fn over_paths(scenario: &Scenario) -> (FlowRecord, Vec<u32>) {
    let (outcome, seen) = run_observed(scenario, FlowPaths::default());
    let record = outcome.flows[0].clone();
    let graph = &scenario.graph;
    let paths = (0..graph.links.len()).filter(|&link| graph.switch(graph.links[link].a).is_some());
    // Each path begins with a link from the first switch.
    let from_first = paths.filter(|&link| {
        let ends = [graph.links[link].a, graph.links[link].b];
        ends.iter().any(|end| graph.switch(*end).is_some_and(|switch| switch.0 == 0))
    });
    let uses = from_first.map(|link| {
        let links = seen.links_of(record.flow.id).iter();
        links.filter(|used| used.port.link() == link).map(|used| used.packets).sum()
    });
    let uses = uses.collect();
    (record, uses)
}

fn fct(record: &FlowRecord) -> Time {
    record.fct.expect("it finishes")
}

#[test]
fn an_oblivious_flow_takes_every_path_equally_often() {
    let entropy = json!({ "kind": "oblivious", "values": 1024 });
    let (record, uses) = over_paths(&dctcp(parallel(&[FAST; 4]), 0, entropy));
    assert_eq!(uses.len(), 4);
    let all = f64::from(uses.iter().sum::<u32>());
    // Of 1,024 values a quarter falls on each path, with a standard deviation of 13.9.
    assert!(uses.iter().all(|&on| (f64::from(on) / all - 0.25).abs() < 4.0 * 0.0136), "{uses:?}");
    assert!(record.retransmissions < 20, "RACK bears the reordering: {record:?}");
}

#[test]
fn one_value_keeps_the_path_of_the_connections_own_port() {
    for id in 0..8 {
        let (plain, before) = over_paths(&dctcp(parallel(&[FAST, SLOW]), id, Value::Null));
        let one = json!({ "kind": "reps", "values": 1 });
        let (record, uses) = over_paths(&dctcp(parallel(&[FAST, SLOW]), id, one));
        assert_eq!((uses, record.fct), (before, plain.fct));
    }
}

#[test]
fn reps_sends_more_over_the_better_path_than_random_ports_do() {
    let share = |entropy| {
        let (record, uses) = over_paths(&dctcp(parallel(&[FAST, SLOW]), 0, entropy));
        (f64::from(uses[1]) / f64::from(uses.iter().sum::<u32>()), fct(&record))
    };
    let (random, blind) = share(json!({ "kind": "random" }));
    let (reps, recycled) = share(json!({ "kind": "reps" }));
    assert!((random - 0.5).abs() < 0.05, "{random}");
    assert!(reps < 0.5 * random, "{reps} against {random}");
    assert!(recycled.0 * 2 < blind.0, "{recycled} against {blind}");
}

/// Half of the flows begin on the slow path. Those that leave it finish early.
#[test]
fn plb_leaves_a_path_on_which_many_bytes_are_marked() {
    let plb = json!({ "kind": "plb", "rehash_rounds": 3, "cong_thresh": 32 });
    let flows: Vec<_> =
        (0..16).map(|id| over_paths(&dctcp(parallel(&[FAST, SLOW]), id, plb.clone()))).collect();
    let begins_slow = |uses: &[u32]| uses[1] > 50;
    let (left, stayed): (Vec<_>, Vec<_>) =
        flows.iter().filter(|(_, uses)| begins_slow(uses)).partition(|(_, uses)| uses[0] > 50);
    assert!(left.len() >= 2 && !stayed.is_empty(), "{left:?} {stayed:?}");
    let slowest = left.iter().map(|(record, _)| fct(record)).max();
    let soonest = stayed.iter().map(|(record, _)| fct(record)).min();
    assert!(slowest.zip(soonest).is_some_and(|(left, stayed)| left.0 * 4 < stayed.0));
}

/// A path that loses everything, of which routing never learns. What a lost packet carried is not
/// recycled.
#[test]
fn reps_sends_little_over_a_path_that_loses_everything() {
    let with = |entropy: Value| {
        let mut scenario = dctcp(parallel(&[FAST; 4]), 0, entropy);
        let graph = &scenario.graph;
        let is_path = |&link: &usize| graph.switch(graph.links[link].a).is_some();
        let path = (0..graph.links.len()).find(is_path).expect("there are paths");
        let link = link_name(graph, PortId::both_directions(path)[0]);
        let (one_way, probability) = (true, 1.0);
        let (at, until) = (Time::from_ms(3), None);
        scenario.faults.incidents = vec![Incident::Loss { link, one_way, probability, at, until }];
        over_paths(&scenario).0
    };
    let (random, reps) = (with(json!({ "kind": "random" })), with(json!({ "kind": "reps" })));
    assert!(reps.retransmissions * 5 < random.retransmissions, "{reps:?} {random:?}");
    let late = |took: Time| fct(&reps).0 * 10 < took.0;
    assert!(random.fct.is_none_or(late), "{reps:?} {random:?}");
}
