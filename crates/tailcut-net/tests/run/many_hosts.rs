//! Networks of more hosts than 16 bits count: a lone flow takes the time that it takes in a small
//! network, whichever bits its hosts need.

use std::ops::ControlFlow;

use tailcut_engine::{Bytes, Time};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::balance::tinyflow::{Reroute, TinyFlow};
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::network::{SimError, simulate};
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Scenario, Scheme};
use tailcut_net::topology::leaf_spine::LeafSpine;
use tailcut_net::topology::multi_plane::MultiPlane;
use tailcut_net::topology::star::Star;
use tailcut_net::topology::{Graph, MAX_HOSTS};
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::entropy::EntropySpec;
use tailcut_net::transport::uet::UetSpec;

use crate::run::support::{flow, run, scenario};

/// Pairs of hosts by the half of the network and the place in it: between the halves in both
/// directions, and inside the upper one.
const PAIRS: [[(u32, u32); 2]; 4] =
    [[(0, 0), (1, 0)], [(0, 3), (1, 3)], [(1, 3), (0, 1)], [(1, 0), (1, 2)]];

/// Returns a flow of 300 KB for each pair, long after one another, in a network whose halves have
/// so many hosts. The last place of a half is its last host.
fn lone_flows(graph: Graph, scheme: &Scheme) -> Scenario {
    let half = graph.hosts / 2;
    let host =
        |(upper, place): (u32, u32)| upper * half + if place == 3 { half - 1 } else { place };
    let flows = PAIRS.iter().enumerate().map(|(id, &[src, dst])| {
        let start = Time::from_ms(100 * id as u64);
        flow(id as u64, host(src), host(dst), 300_000, start)
    });
    let flows = flows.collect();
    Scenario { scheme: scheme.clone(), ..scenario(graph, flows) }
}

fn leaf_spine(hosts_per_rack: u32) -> Graph {
    LeafSpine { racks: 2, hosts_per_rack, ..LeafSpine::default() }.build().expect("it is valid")
}

fn multi_plane(hosts_per_leaf: u32) -> Graph {
    let planes = MultiPlane { planes: 2, leaves: 2, hosts_per_leaf, ..MultiPlane::default() };
    planes.build().expect("it is valid")
}

fn times(scenario: &Scenario) -> Vec<Time> {
    run(scenario).flows.iter().map(|flow| flow.fct_ack.expect("it ends")).collect()
}

fn assert_alike(network: fn(u32) -> Graph, scheme: Scheme) {
    let (few, many) = (lone_flows(network(4), &scheme), lone_flows(network(65_536), &scheme));
    assert_eq!(times(&many), times(&few), "{scheme:?}");
}

fn uet() -> Scheme {
    let entropy = EntropySpec::Reps(Default::default());
    Scheme {
        transport: TransportSpec::Uet(UetSpec { entropy, ..UetSpec::default() }),
        queue: QueueSpec::Trimming(Default::default()),
        ..Scheme::default()
    }
}

#[test]
fn a_flow_of_tcp_takes_as_long_as_among_few_hosts() {
    assert_alike(leaf_spine, Scheme::default());
}

#[test]
fn replicas_have_addresses_of_their_own() {
    let replicate = ReplicateSpec::Repflow(tailcut_net::replicate::repflow::RepFlow {
        threshold: Bytes(1_000_000),
        ..Default::default()
    });
    assert_alike(leaf_spine, Scheme { replicate, ..Scheme::default() });
}

#[test]
fn sprayed_packets_arrive() {
    assert_alike(leaf_spine, Scheme { balance: BalanceSpec::Spray(Spray {}), ..Scheme::default() });
}

#[test]
fn entropy_values_leave_the_hosts_alone() {
    assert_alike(leaf_spine, uet());
}

#[test]
fn rewritten_elephants_arrive() {
    let tinyflow =
        TinyFlow { reroute: Reroute::FiveTuple, elephant: Bytes(10_000), ..TinyFlow::default() };
    assert_alike(
        leaf_spine,
        Scheme { balance: BalanceSpec::TinyFlow(tinyflow), ..Scheme::default() },
    );
}

#[test]
fn hosts_with_two_interfaces_are_reached_in_both_planes() {
    assert_alike(multi_plane, Scheme::default());
    assert_alike(multi_plane, uet());
}

#[test]
fn routes_around_a_failed_link_lead_to_every_host() {
    let link = "leaf0>spine0".to_owned();
    let incidents = vec![Incident::LinkDown { link, at: Time::ZERO, until: None }];
    let faults = FaultsSpec { incidents, ..FaultsSpec::default() };
    let failed = |hosts| {
        let healthy = lone_flows(leaf_spine(hosts), &Scheme::default());
        times(&Scenario { faults: faults.clone(), ..healthy })
    };
    assert_eq!(failed(65_536), failed(4));
}

#[test]
fn more_hosts_than_addresses_are_refused() {
    let mut graph = Star::default().build().expect("it is valid");
    graph.hosts = MAX_HOSTS + 1;
    let refused = simulate(&scenario(graph, vec![]), &mut |_| ControlFlow::Continue(()));
    assert_eq!(refused.expect_err("too many"), SimError::TooManyHosts { hosts: MAX_HOSTS + 1 });
}
