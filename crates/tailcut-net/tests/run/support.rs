//! Short forms for scenarios.

use std::ops::ControlFlow;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tailcut_engine::{Rate, Time};
use tailcut_net::amount::Limit;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::measure::Observer;
use tailcut_net::measure::records::Outcome;
use tailcut_net::network::{simulate, simulate_observed};
use tailcut_net::queue::{QueueSpec, drop_tail::DropTail};
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::{Graph, HostId, Link, NodeId};
use tailcut_net::traffic::Flow;
use tailcut_net::traffic::demand::Jobs;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::TcpSpec;

pub fn flow(id: u64, src: u32, dst: u32, bytes: u64, start: Time) -> Flow {
    Flow { src: HostId(src), dst: HostId(dst), bytes, start, id }
}

/// Returns a scenario of ten simulated seconds without drops.
pub fn scenario(graph: Graph, flows: Vec<Flow>) -> Scenario {
    let queue = QueueSpec::DropTail(DropTail { limit: Limit::Unlimited, ..DropTail::default() });
    Scenario {
        faults: FaultsSpec::default(),
        switch: SwitchSpec::default(),
        graph,
        host: HostSpec::default(),
        scheme: Scheme { queue, ..Scheme::default() },
        flows,
        horizon: Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(10_000) },
        seed: 1,
        jobs: Jobs::default(),
        series: SeriesSpec::default(),
        max_port_samples: 0,
    }
}

pub fn tcp(scenario: &mut Scenario) -> &mut TcpSpec {
    match &mut scenario.scheme.transport {
        TransportSpec::Tcp(tcp) => tcp,
        other => panic!("{other:?} is not TCP"),
    }
}

pub fn limit_queues(scenario: &mut Scenario, limit: Limit) {
    scenario.scheme.queue = QueueSpec::DropTail(DropTail { limit, ..DropTail::default() });
}

pub fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &mut |_| ControlFlow::Continue(())).expect("the scenario is valid")
}

pub fn run_observed<O: Observer>(scenario: &Scenario, observer: O) -> (Outcome, O) {
    simulate_observed(scenario, observer, &mut |_| ControlFlow::Continue(()))
        .expect("the scenario is valid")
}

/// Returns host 0, switches in a row and host 1, with one link for each rate and delay.
pub fn row(links: &[(Rate, Time)]) -> Graph {
    let switches = links.len() as u32 - 1;
    let node = |at: u32| match at {
        0 => 0,
        last if last == switches + 1 => 1,
        switch => switch + 1,
    };
    let link = |(at, &(rate, propagation)): (usize, &(Rate, Time))| {
        let (a, b) = (NodeId(node(at as u32)), NodeId(node(at as u32 + 1)));
        Link::new(a, b, rate, propagation, 0)
    };
    Graph {
        hosts: 2,
        switches,
        tiers: vec!["row".into()],
        links: links.iter().enumerate().map(link).collect(),
        ..Graph::default()
    }
}

/// Returns a configuration for `cases` random cases, different in every run. A failure prints the
/// seed that repeats them.
pub fn random_cases(cases: u32) -> Config {
    let seed = match std::env::var("TAILCUT_TEST_SEED") {
        Ok(seed) => seed.parse().expect("TAILCUT_TEST_SEED is a number"),
        Err(_) => fresh_seed(),
    };
    println!("TAILCUT_TEST_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

/// Returns a seed of 32 bits, which is short enough to type.
fn fresh_seed() -> u64 {
    let drawn = any::<u32>().new_tree(&mut TestRunner::default());
    drawn.expect("a number can be drawn").current().into()
}
