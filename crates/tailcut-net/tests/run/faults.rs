//! Failures in whole runs: losses, routes, and the flows from which selective RED drops.

use std::collections::BTreeMap;

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::by_tier::ByTier;
use tailcut_net::balance::spray::Spray;
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::measure::{Loss, Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::selective_red::SelectiveRed;
use tailcut_net::scenario::Scenario;
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::find::find_link;
use tailcut_net::topology::star::Star;
use tailcut_net::topology::{Graph, HostId, PortId};
use tailcut_net::transport::tcp::Recovery;

use crate::run::support::{flow, row, run, run_observed, scenario, tcp};

/// Counts data packets over each link in a window of time, and every loss and drop.
#[derive(Default)]
struct LinkCounts {
    from: Time,
    over: BTreeMap<PortId, u64>,
    lost: Vec<(Time, Loss)>,
    dropped_flows: Vec<u64>,
    marked: BTreeMap<(u64, bool), u64>,
}

impl Observer for LinkCounts {
    fn host_sends(&mut self, _: Time, _: HostId, packet: &PacketView) {
        if packet.flags.has(Flags::LOST_PATHS) {
            *self.marked.entry((packet.flow, packet.flags.has(Flags::TO_SENDER))).or_default() += 1;
        }
    }
    fn link_accepts(&mut self, now: Time, link: PortId, _: Time, packet: &PacketView) {
        if now >= self.from && packet.flags.has(Flags::DATA) {
            *self.over.entry(link).or_default() += 1;
        }
    }
    fn dropped(&mut self, _: Time, _: PortId, packet: &PacketView) {
        self.dropped_flows.push(packet.flow);
    }
    fn lost(&mut self, now: Time, _: PortId, loss: Loss, _: &PacketView) {
        self.lost.push((now, loss));
    }
}

impl LinkCounts {
    fn since(from: Time) -> LinkCounts {
        LinkCounts { from, ..LinkCounts::default() }
    }
    fn over(&self, graph: &Graph, links: &[&str]) -> Vec<u64> {
        let port = |name: &&str| find_link(graph, name).expect("the link exists");
        links.iter().map(|name| self.over.get(&port(name)).copied().unwrap_or(0)).collect()
    }
}

fn fat_tree() -> Graph {
    FatTree { k: 4, ..FatTree::default() }.build().expect("k is even")
}

/// Returns a sprayed flow from pod 0 to pod 2 of a k = 4 fat-tree, with a transport that tolerates
/// reordering.
fn sprayed(bytes: u64) -> Scenario {
    let mut scenario = scenario(fat_tree(), vec![flow(0, 0, 9, bytes, Time::ZERO)]);
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    let tcp = tcp(&mut scenario);
    (tcp.dupack_threshold, tcp.recovery) = (50, Recovery::SackPrr);
    scenario
}

fn link_down(link: &str, at: Time, until: Option<Time>) -> Incident {
    Incident::LinkDown { link: link.into(), at, until }
}

fn faults(reconvergence: Time, incidents: Vec<Incident>) -> FaultsSpec {
    FaultsSpec { reconvergence, incidents, ..FaultsSpec::default() }
}

fn chi_squared(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|n| (*n as f64 - mean).powi(2) / mean).sum()
}

/// Packets of a flow take the links of each equivalence class in equal shares: the 0.1 % points of
/// chi-squared are 10.83 for one degree of freedom and 16.27 for three.
#[test]
fn spraying_gives_the_links_of_an_equivalence_class_equal_shares() {
    let scenario = sprayed(20_000_000);
    let (_, seen) = run_observed(&scenario, LinkCounts::default());
    let classes: [(&[&str], f64); 4] = [
        (&["edge0>agg0", "edge0>agg1"], 10.83),
        (&["agg0>core0", "agg0>core1", "agg1>core2", "agg1>core3"], 16.27),
        (&["core0>agg4", "core1>agg4", "core2>agg5", "core3>agg5"], 16.27),
        (&["agg4>edge4", "agg5>edge4"], 10.83),
    ];
    for (class, critical) in classes {
        let counts = seen.over(&scenario.graph, class);
        assert!(counts.iter().sum::<u64>() > 13_000, "{class:?}: {counts:?}");
        let chi2 = chi_squared(&counts);
        assert!(chi2 < critical, "{class:?}: {counts:?}, chi-squared {chi2}");
    }
}

#[test]
fn remote_edges_stop_using_the_cores_behind_a_failed_link_once_routing_has_learned_of_it() {
    let mut scenario = sprayed(40_000_000);
    // The last link down to the receiver's edge switch, which the sender's edge switch does not
    // see.
    let down = link_down("edge4>agg4", Time::from_ms(20), None);
    scenario.faults = faults(Time::from_ms(5), vec![down]);
    let (outcome, seen) = run_observed(&scenario, LinkCounts::since(Time::from_ms(26)));
    let graph = &scenario.graph;
    assert!(outcome.flows[0].fct.is_some());
    assert_eq!(seen.over(graph, &["edge0>agg0", "core0>agg4", "core1>agg4"]), [0, 0, 0]);
    let left = seen.over(graph, &["agg1>core2", "agg1>core3"]);
    assert!(chi_squared(&left) < 10.83, "{left:?}");
    let dead = seen.lost.iter().filter(|lost| lost.1 == Loss::DeadLink).map(|lost| lost.0);
    let (first, last) = (dead.clone().min(), dead.max());
    assert!(first > Some(Time::from_ms(20)) && last > Some(Time::from_ms(20)));
    // A packet that left the sender before the routes changed may still reach the dead link after.
    assert!(last < Some(Time::from_us(25_100)), "{last:?}");
    assert_eq!(outcome.counters.lost_on_links, seen.lost.len() as u64);
}

#[test]
fn a_link_down_at_the_start_loses_nothing_unless_known_at_start_is_false() {
    let run_with = |known_at_start, incident| {
        let mut scenario = sprayed(1_000_000);
        scenario.faults =
            FaultsSpec { known_at_start, ..faults(Time::from_ms(10), vec![incident]) };
        run(&scenario)
    };
    let switch = Incident::SwitchDown { switch: "agg0".into(), at: Time::ZERO, until: None };
    for incident in [link_down("edge0>agg0", Time::ZERO, None), switch] {
        let known = run_with(true, incident.clone());
        assert_eq!((known.counters.lost_on_links, known.flows[0].timeouts), (0, 0));
        let unknown = run_with(false, incident);
        assert!(unknown.counters.lost_on_links > 0);
    }
}

#[test]
fn a_link_down_at_the_start_is_used_only_after_reconvergence() {
    let mut scenario = sprayed(40_000_000);
    let down = link_down("edge0>agg0", Time::ZERO, Some(Time::from_ms(50)));
    scenario.faults = faults(Time::from_ms(5), vec![down]);
    let until = |ms: u64| {
        let (_, all) = run_observed(&scenario, LinkCounts::default());
        let (_, later) = run_observed(&scenario, LinkCounts::since(Time::from_ms(ms)));
        let over = |seen: &LinkCounts| seen.over(&scenario.graph, &["edge0>agg0"])[0];
        over(&all) - over(&later)
    };
    assert_eq!(until(55), 0);
    assert!(until(60) > 0);
}

/// A link corrupts a tenth of its packets, and all of them during an incident.
#[test]
fn a_lossy_link_returns_to_its_own_loss_rate_after_an_incident() {
    let link = (Rate(1_000_000_000), Time::from_us(5));
    let mut graph = row(&[link; 3]);
    graph.links[1].loss = 0.1;
    let flows = (0..200).map(|id| flow(id, 0, 1, 1_460, Time::from_us(500 * id)));
    let mut scenario = scenario(graph, flows.collect());
    scenario.faults = faults(
        Time::ZERO,
        vec![Incident::Loss {
            link: "s0>s1".into(),
            one_way: false,
            probability: 1.0,
            at: Time::from_ms(20),
            until: Some(Time::from_ms(25)),
        }],
    );
    let (outcome, seen) = run_observed(&scenario, LinkCounts::default());
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    let lost = |from: u64, to: u64| {
        let within = |at: &Time| (Time::from_ms(from)..Time::from_ms(to)).contains(at);
        seen.lost.iter().filter(|(at, loss)| within(at) && *loss == Loss::Corrupted).count()
    };
    let (before, after) = (lost(0, 20), lost(30, 50));
    // 40 flows of some eight packets each, of which a tenth is lost.
    for share in [before, after] {
        assert!((10..70).contains(&share), "{before} and {after}");
    }
}

#[test]
fn a_repaired_link_is_used_again_once_routing_has_learned_of_it() {
    let mut scenario = sprayed(40_000_000);
    let down = link_down("edge0>agg0", Time::from_ms(20), Some(Time::from_ms(60)));
    scenario.faults = faults(Time::from_ms(5), vec![down]);
    let between = |from: u64| {
        let (_, seen) = run_observed(&scenario, LinkCounts::since(Time::from_ms(from)));
        seen.over(&scenario.graph, &["edge0>agg0", "edge0>agg1"])
    };
    let (after_failure, after_repair) = (between(26), between(65));
    assert!(chi_squared(&after_repair) < 10.83, "{after_repair:?}");
    assert_eq!(after_failure[0], after_repair[0], "nothing crossed it between");
    assert!(after_failure[1] > after_repair[1] + 1_000);
}

#[test]
fn a_host_that_is_cut_off_waits_and_finishes_when_its_link_is_back() {
    let link = (Rate(1_000_000_000), Time::from_us(5));
    let mut scenario = scenario(row(&[link; 3]), vec![flow(0, 0, 1, 3_000_000, Time::ZERO)]);
    let down = link_down("s1>h1", Time::from_ms(5), Some(Time::from_ms(105)));
    scenario.faults = faults(Time::from_ms(1), vec![down]);
    let outcome = run(&scenario);
    let fct = outcome.flows[0].fct.expect("it finishes");
    assert!(fct > Time::from_ms(105), "{fct}");
    assert!(outcome.flows[0].timeouts >= 1);
    assert!(outcome.counters.lost_on_links > 10);
    assert_eq!(outcome.counters.dropped, 0, "losses on links are counted apart");
}

#[test]
fn a_switch_that_goes_down_takes_its_links_with_it() {
    let mut scenario = sprayed(20_000_000);
    let switch = "agg4".to_owned();
    let down = Incident::SwitchDown { switch, at: Time::from_ms(20), until: None };
    scenario.faults = faults(Time::from_ms(1), vec![down]);
    let (outcome, seen) = run_observed(&scenario, LinkCounts::since(Time::from_ms(22)));
    assert!(outcome.flows[0].fct.is_some());
    let links = ["core0>agg4", "core1>agg4", "agg4>edge4", "agg4>edge5"];
    assert_eq!(seen.over(&scenario.graph, &links), [0; 4]);
}

#[test]
fn a_slow_link_slows_the_flow_for_as_long_as_it_is_slow() {
    let link = (Rate(1_000_000_000), Time::from_us(5));
    let mut scenario = scenario(row(&[link; 2]), vec![flow(0, 0, 1, 10_000_000, Time::ZERO)]);
    let whole = run(&scenario).flows[0].fct.expect("it finishes");
    let (at, until) = (Time::from_ms(10), Some(Time::from_ms(30)));
    let rate = Rate(100_000_000);
    let slow = Incident::Rate { link: "s0>h1".into(), one_way: true, rate, at, until };
    scenario.faults = faults(Time::ZERO, vec![slow]);
    let slowed = run(&scenario).flows[0].fct.expect("it finishes");
    // 20 ms at a tenth of the rate cost nine tenths of 20 ms.
    let cost = (slowed - whole).as_secs_f64();
    assert!((cost - 0.018).abs() < 0.0002, "{cost} s");
}

/// F1 has lost two of its four paths, F2 none.
fn two_flows(mark_acks: bool) -> Scenario {
    let rate =
        tailcut_net::component::OneOrEach::Each(tailcut_net::topology::fat_tree::FatTreeValues {
            host: Rate(1_000_000_000),
            aggregation: Rate(1_000_000_000),
            core: Rate(230_000_000),
        });
    let graph = FatTree { k: 4, rate, ..FatTree::default() }.build().expect("k is even");
    let flows = vec![flow(1, 0, 9, 50_000_000, Time::ZERO), flow(2, 14, 8, 50_000_000, Time::ZERO)];
    let mut scenario = scenario(graph, flows);
    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
    let limit = Limit::Unlimited;
    scenario.scheme.queue =
        QueueSpec::SelectiveRed(SelectiveRed { limit, mark_acks, ..SelectiveRed::default() });
    let tcp = tcp(&mut scenario);
    (tcp.dupack_threshold, tcp.recovery) = (50, Recovery::SackPrr);
    tcp.receive_window = tailcut_engine::Bytes(1_000_000);
    let down = link_down("edge0>agg0", Time::ZERO, None);
    scenario.faults = faults(Time::ZERO, vec![down]);
    scenario
}

#[test]
fn selective_red_drops_early_only_from_flows_that_have_lost_paths() {
    let (_, seen) = run_observed(&two_flows(true), LinkCounts::default());
    assert!(seen.dropped_flows.len() > 20, "RED acts");
    assert!(seen.dropped_flows.iter().all(|flow| *flow == 1), "the other flow has all its paths");
    let marked = |flow, acks| seen.marked.get(&(flow, acks)).copied().unwrap_or(0);
    assert!(marked(1, false) > 30_000 && marked(1, true) > 30_000);
    assert_eq!((marked(2, false), marked(2, true)), (0, 0));
}

#[test]
fn the_fault_manager_leaves_acknowledgements_unmarked_where_asked_to() {
    let (_, seen) = run_observed(&two_flows(false), LinkCounts::default());
    assert!(seen.marked.contains_key(&(1, false)) && !seen.marked.contains_key(&(1, true)));
}

#[test]
fn without_a_failure_selective_red_is_drop_tail() {
    let mut scenario = two_flows(true);
    scenario.faults.active = false;
    let selective = run(&scenario);
    crate::run::support::limit_queues(&mut scenario, Limit::Unlimited);
    let plain = run(&scenario);
    assert_eq!(selective.flows, plain.flows);
}

#[test]
fn strategies_differ_by_tier() {
    let mut scenario = sprayed(5_000_000);
    scenario.scheme.balance = BalanceSpec::ByTier(ByTier::default());
    let (_, seen) = run_observed(&scenario, LinkCounts::default());
    let edge = seen.over(&scenario.graph, &["edge0>agg0", "edge0>agg1"]);
    assert!(chi_squared(&edge) < 10.83, "the edge sprays: {edge:?}");
    let cores = ["agg0>core0", "agg0>core1", "agg1>core2", "agg1>core3"];
    let used = seen.over(&scenario.graph, &cores).iter().filter(|n| **n > 0).count();
    assert_eq!(used, 2, "each aggregation switch hashes the flow to one core");
}

#[test]
fn a_switch_may_differ_from_its_tier() {
    let mut scenario = sprayed(5_000_000);
    scenario.flows.push(flow(1, 2, 11, 5_000_000, Time::ZERO));
    let switches = [("edge0".to_owned(), BalanceSpec::default())].into();
    scenario.scheme.balance = BalanceSpec::ByTier(ByTier { switches, ..ByTier::default() });
    let (_, seen) = run_observed(&scenario, LinkCounts::default());
    let edge = seen.over(&scenario.graph, &["edge0>agg0", "edge0>agg1"]);
    assert_eq!(edge.iter().filter(|n| **n > 0).count(), 1, "the sender's edge hashes: {edge:?}");
    let other = seen.over(&scenario.graph, &["edge1>agg0", "edge1>agg1"]);
    assert!(chi_squared(&other) < 10.83, "the next edge sprays: {other:?}");
}

/// Four senders overload one port. It takes half of the memory (alpha 1), which is full with 26
/// full packets.
#[test]
fn an_overloaded_port_takes_half_of_a_shared_buffer() {
    let graph = Star { hosts: 5, ..Star::default() }.build().expect("hosts are enough");
    let flows = (0..4).map(|id| flow(id, id as u32, 4, 1_000_000, Time::ZERO)).collect();
    let mut scenario = scenario(graph, flows);
    let shared_buffer = Limit::AtMost(Amount::Bytes(80_000));
    scenario.switch = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
    let outcome = run(&scenario);
    assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    assert!(outcome.counters.dropped > 0);
    let longest = outcome.tiers.iter().filter(|tier| !tier.up).map(|tier| tier.max_queue).max();
    assert_eq!(longest, Some(26));
}

/// "The run ends earlier when all have" finished, whatever will still happen to idle links.
#[test]
fn a_run_ends_with_its_last_packet_and_not_with_a_later_repair() {
    let link = (Rate(1_000_000_000), Time::from_us(5));
    let mut scenario = scenario(row(&[link; 3]), vec![flow(0, 0, 1, 3_000_000, Time::ZERO)]);
    let undisturbed = run(&scenario).counters.end;
    let down = link_down("s0>s1", Time::from_ms(100), Some(Time::from_ms(900)));
    scenario.faults = faults(Time::from_ms(1), vec![down]);
    assert_eq!(run(&scenario).counters.end, undisturbed);
}

/// 86 bytes take 9,173,333.3 ps at 75 Mbps and 5,982,608.7 ps at 115 Mbps. Rounding twice would be
/// a picosecond short, and no flow may be faster than its ideal time.
#[test]
fn a_rate_raised_as_a_packet_begins_makes_no_flow_faster_than_ideal() {
    let link = (Rate(75_000_000), Time::from_us(5));
    let mut scenario = scenario(row(&[link; 2]), vec![flow(0, 0, 1, 1_000, Time::ZERO)]);
    let raised = |link: &str| Incident::Rate {
        link: link.into(),
        one_way: false,
        rate: Rate(115_000_000),
        at: Time::ZERO,
        until: None,
    };
    for recovery in [Recovery::Newreno, Recovery::SackPrr] {
        tcp(&mut scenario).recovery = recovery;
        scenario.faults = faults(Time::ZERO, vec![raised("h0>s0"), raised("s0>h1")]);
        let flow = &run(&scenario).flows[0];
        assert!(flow.fct >= Some(flow.ideal_fct), "{flow:?}");
    }
}
