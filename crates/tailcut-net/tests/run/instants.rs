//! Samples of all ports and links of flows, compared with other records of the same run.

use tailcut_engine::Time;
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::measure::paths::{FlowPaths, LinkUse};
use tailcut_net::queue::pfabric::PfabricQueue;
use tailcut_net::queue::{QueueSpec, Ties, drop_tail::DropTail};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::NodeId;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::star::Star;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::pfabric::PfabricSpec;

use crate::run::support::{flow, run, run_observed, scenario};

/// Returns four hosts that send to a fifth, whose queue holds 20 packets.
fn incast() -> Scenario {
    let flows = (0..4).map(|id| flow(id, id as u32, 4, 200_000, Time::ZERO)).collect();
    let mut scenario = scenario(Star { hosts: 5, ..Star::default() }.build().unwrap(), flows);
    // With this order at one instant the run lasts for several samples, however few are requested.
    let (limit, ties) = (Limit::AtMost(Amount::Packets(20)), Ties::Departure);
    scenario.scheme.queue = QueueSpec::DropTail(DropTail { limit, ties });
    scenario.horizon.arrivals = Time::from_ms(20);
    scenario.max_port_samples = 400;
    scenario
}

#[test]
fn port_samples_equal_the_series_and_add_up_to_the_totals() {
    let mut scenario = incast();
    for priorities in [false, true] {
        if priorities {
            let limit = Limit::AtMost(Amount::Packets(20));
            scenario.scheme.queue =
                QueueSpec::Pfabric(PfabricQueue { limit, ..Default::default() });
            scenario.scheme.transport = TransportSpec::Pfabric(PfabricSpec::default());
        }
        let interval = run(&scenario).port_samples.expect("they are asked for").times[0];
        scenario.series.links = vec!["s0>h4".into()];
        scenario.series.interval = interval;
        let outcome = run(&scenario);
        let samples = outcome.port_samples.as_ref().expect("they are asked for");
        let ports = 2 * scenario.graph.links.len();
        let (down, instants) = (2 * 4 + 1, samples.times.len());
        assert!((299..=400).contains(&instants), "{instants}");
        let [queue, utilisation] = &outcome.series[..] else { panic!("queue and utilisation") };
        // Series end with the last flow, samples with the run.
        let common = queue.times.len().min(instants);
        assert!(common > 90, "{common}");
        assert_eq!(samples.times[..common], queue.times[..common]);
        for at in 0..common {
            let cell = at * ports + down;
            assert_eq!(f64::from(samples.packets[cell]), queue.values[at]);
            let busy = samples.busy_ns[cell] as f64 / interval.as_ns() as f64;
            assert!((busy - utilisation.values[at]).abs() < 2.0 / interval.as_ns() as f64);
            let bytes = u64::from(samples.bytes[cell]);
            assert!(bytes <= u64::from(samples.packets[cell]) * 1_538, "{bytes}");
            assert_eq!(bytes > 0, samples.packets[cell] > 0);
        }
        assert!(samples.packets.iter().any(|&packets| packets > 10), "the queue is long");
        let drops: u64 = samples.drops.iter().map(|&drops| u64::from(drops)).sum();
        assert!(drops > 0 && drops <= outcome.counters.dropped);
        let in_arrivals =
            samples.times.iter().filter(|at| **at <= scenario.horizon.arrivals).count();
        let busy: u64 = (0..in_arrivals).map(|at| samples.busy_ns[at * ports + down]).sum();
        let down = outcome.tiers.iter().find(|tier| !tier.up).expect("hosts have links");
        let whole = down.max_utilisation * scenario.horizon.arrivals.as_ns() as f64;
        let tail = interval.as_ns() as f64;
        assert!((busy as f64 - whole).abs() <= tail, "{busy} of {whole}");
        scenario.series.links.clear();
    }
}

/// A run without flows ends when its arrivals do, and no sample changes that.
#[test]
fn samples_do_not_keep_a_run_going() {
    for instants in [2, 3, 5, 400] {
        let scenario = Scenario { max_port_samples: instants, ..incast() };
        let watched = run(&scenario);
        let plain = run(&Scenario { max_port_samples: 0, ..scenario });
        assert_eq!(watched.counters.end, plain.counters.end, "{instants}");
        let last = watched.port_samples.and_then(|samples| samples.times.last().copied());
        assert!(last.is_some_and(|last| last <= plain.counters.end));
    }
}

fn links_of(paths: &FlowPaths, flow: u64, copy: u8) -> Vec<LinkUse> {
    paths.links_of(flow).iter().filter(|crossing| crossing.copy == copy).copied().collect()
}

#[test]
fn the_links_of_a_connection_lead_from_its_source_to_its_destination() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let flows = (0..16).map(|id| {
        let at = Time::from_us(id);
        flow(id, id as u32, (id as u32 + 8) % 16, 60_000, at)
    });
    let mut scenario = scenario(graph, flows.collect());
    scenario.scheme.replicate = ReplicateSpec::Repflow(RepFlow::default());
    let (outcome, paths) = run_observed(&scenario, FlowPaths::default());
    assert_eq!(outcome.counters.dropped, 0);
    let mut apart = 0;
    for record in &outcome.flows {
        let flow = record.flow;
        for copy in 0..2 {
            let links = links_of(&paths, flow.id, copy);
            assert_eq!(links.len(), 6, "there and back through the core");
            let mut node = NodeId(flow.src.0);
            for crossing in &links {
                let link = &scenario.graph.links[crossing.port.link()];
                let from = [link.a, link.b][crossing.port.index() % 2];
                assert_eq!(from, node, "flow {}, copy {copy}", flow.id);
                node = scenario.graph.far_end(crossing.port);
            }
            assert_eq!(node, NodeId(flow.dst.0));
            let segments = 60_000u32.div_ceil(1_460);
            let winner = record.winner == Some(copy);
            assert!(!winner || links.iter().all(|at| at.packets >= segments), "{links:?}");
        }
        let of = |copy| links_of(&paths, flow.id, copy).into_iter().map(|at| at.port);
        apart += u32::from(!of(0).eq(of(1)));
    }
    assert!(apart > 8, "most copies go another way: {apart}");
    assert!(paths.links_of(99).is_empty());
}

#[test]
fn a_sprayed_flow_has_all_its_links() {
    let graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    let mut scenario = scenario(graph, vec![flow(0, 0, 8, 600_000, Time::ZERO)]);
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    let (_, paths) = run_observed(&scenario, FlowPaths::default());
    // Up: 1, 2 and 4 links; down: 4, 2 and 1.
    assert_eq!(paths.links_of(0).len(), 14);
    let through_core: u32 = paths.links_of(0).iter().map(|crossing| crossing.packets).sum();
    assert!(through_core >= 6 * 411);
}
