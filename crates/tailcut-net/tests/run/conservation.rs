//! Random small scenarios: packets are conserved on every link, queues keep their limits, ports
//! their rates, and a finished flow has delivered exactly its bytes.

mod transports;

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::json;
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::by_tier::ByTier;
use tailcut_net::balance::drill::Drill;
use tailcut_net::balance::round_robin::RoundRobin;
use tailcut_net::balance::spray::Spray;
use tailcut_net::balance::tinyflow::{Detect, Reroute, TinyFlow};
use tailcut_net::balance::{BalanceSpec, flowlet::Flowlet};
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::interface::{ByFlow, ByPacket, ByRail, InterfaceSpec};
use tailcut_net::measure::attribution::Attribution;
use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::segments::SegmentObserver;
use tailcut_net::queue::drr::Drr;
use tailcut_net::queue::selective_red::{BufferForm, SelectiveRed};
use tailcut_net::queue::thresholds::Thresholds;
use tailcut_net::queue::{
    QueueSpec,
    drop_tail::DropTail,
    ecn::Ecn,
    pfabric::PfabricQueue,
    red::Red,
    trimming::{Marking, Trimming},
};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::{Loser, RepFlow};
use tailcut_net::replicate::repsyn::RepSyn;
use tailcut_net::replicate::split::Split;
use tailcut_net::scenario::Scenario;
use tailcut_net::switch::SwitchSpec;
use tailcut_net::switch::pfc::Pfc;
use tailcut_net::topology::dumbbell::Dumbbell;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::topology::find::{link_name, node_name};
use tailcut_net::topology::leaf_spine::LeafSpine;
use tailcut_net::topology::parallel_paths::ParallelPaths;
use tailcut_net::topology::star::Star;
use tailcut_net::topology::{Attachment, Graph, Link, PortId};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::Recovery;

use self::transports::transports;
use crate::run::ledger::Ledger;
use crate::run::support::{limit_queues, row, run, run_observed, scenario, tcp};

fn graphs() -> impl Strategy<Value = Graph> {
    let slow = (Rate(100_000_000), Time::from_us(5));
    let propagation = OneOrEach::One(Time::from_us(3));
    let dumbbell = Dumbbell { pairs: 2, propagation: propagation.clone(), ..Dumbbell::default() };
    let leaf_spine = LeafSpine { racks: 2, hosts_per_rack: 2, spines: 2, ..LeafSpine::default() };
    let path_rates = vec![Rate(1_000_000_000), Rate(200_000_000)];
    let graphs = [
        Ok(row(&[slow; 3])),
        Star { hosts: 5, ..Star::default() }.build(),
        dumbbell.build(),
        leaf_spine.build(),
        ParallelPaths { path_rates, ..ParallelPaths::default() }.build(),
        FatTree { k: 4, ..FatTree::default() }.build(),
    ];
    prop::sample::select(graphs.map(|graph| graph.expect("the parameters are valid")).to_vec())
}

fn flows(hosts: u32) -> impl Strategy<Value = Vec<Flow>> {
    let bytes = (0..6u32).prop_flat_map(|exponent| 10u64.pow(exponent)..4 * 10u64.pow(exponent));
    let flow = (0..hosts, 1..hosts, bytes, 0..2_000_000u64);
    prop::collection::vec(flow, 1..24).prop_map(move |mut rows| {
        rows.sort_by_key(|row| row.3);
        let flow = |(id, (src, step, bytes, start)): (usize, (u32, u32, u64, u64))| {
            crate::run::support::flow(
                id as u64,
                src,
                (src + step) % hosts,
                bytes,
                Time::from_ns(start),
            )
        };
        rows.into_iter().enumerate().map(flow).collect()
    })
}

fn limits(packets: Range<u32>) -> impl Strategy<Value = Limit> {
    prop_oneof![
        packets.prop_map(|n| Limit::AtMost(Amount::Packets(n))),
        (2_000..40_000u64).prop_map(|n| Limit::AtMost(Amount::Bytes(n))),
        Just(Limit::Unlimited),
    ]
}

fn replication() -> impl Strategy<Value = ReplicateSpec> {
    let delays = prop::sample::select(vec![Time::ZERO, Time::from_us(1), Time::from_us(300)]);
    (0..5u8, 2..4u32, delays).prop_map(|(kind, copies, copy_delay)| {
        let repflow = RepFlow { copies, copy_delay, ..RepFlow::default() };
        match kind {
            0 => ReplicateSpec::None,
            1 => ReplicateSpec::Repflow(RepFlow { loser: Loser::Reset, ..repflow }),
            2 => ReplicateSpec::Repflow(RepFlow { loser: Loser::Finish, ..repflow }),
            3 => {
                let (threshold, piece) = (Bytes(20_000), Bytes(3_000 * u64::from(copies)));
                ReplicateSpec::Split(Split { threshold, piece })
            }
            _ => ReplicateSpec::Repsyn(RepSyn { copies, copy_delay, ..RepSyn::default() }),
        }
    })
}

fn balancers() -> impl Strategy<Value = BalanceSpec> {
    prop_oneof![
        2 => Just(BalanceSpec::default()),
        1 => Just(BalanceSpec::Spray(Spray {})),
        1 => Just(BalanceSpec::RoundRobin(RoundRobin {})),
        1 => (1..200u64).prop_map(|us| {
            BalanceSpec::Flowlet(Flowlet { gap: Time::from_us(us), ..Flowlet::default() })
        }),
        1 => Just(BalanceSpec::Drill(Drill::default())),
        2 => tinyflows().prop_map(BalanceSpec::TinyFlow),
        1 => (tinyflows(), any::<bool>()).prop_map(|(tinyflow, edge)| {
            let edge = if edge { BalanceSpec::TinyFlow(tinyflow) } else { BalanceSpec::default() };
            BalanceSpec::ByTier(ByTier {
                edge: Box::new(edge),
                aggregation: Box::new(BalanceSpec::Spray(Spray {})),
                core: Box::new(BalanceSpec::RoundRobin(RoundRobin {})),
                switches: [("s0".to_owned(), BalanceSpec::RoundRobin(RoundRobin {}))].into(),
            })
        }),
    ]
}

/// Returns sensitive parameters, with which small flows soon become elephants.
fn tinyflows() -> impl Strategy<Value = TinyFlow> {
    let detect = prop::sample::select(vec![
        Detect::RandomSkip,
        Detect::RandomSkipSwitch,
        Detect::ExactPort,
        Detect::ExactSwitch,
        Detect::PolledCounters,
        Detect::HostMarked,
    ]);
    (detect, 1..3u32, any::<bool>()).prop_map(|(detect, samples, rewrite)| TinyFlow {
        detect,
        samples,
        sample_every: Bytes(5_000),
        poll_every: Time::from_us(200),
        elephant: Bytes(20_000),
        forget: Time::from_us(100),
        reroute: if rewrite { Reroute::FiveTuple } else { Reroute::Egress },
        ..TinyFlow::default()
    })
}

fn queues() -> impl Strategy<Value = QueueSpec> {
    limits(1..30).prop_flat_map(|limit| {
        prop_oneof![
            2 => Just(QueueSpec::DropTail(DropTail { limit, ..DropTail::default() })),
            1 => (0..20u32, any::<bool>()).prop_map(move |(k, hosts)| {
                QueueSpec::Ecn(Ecn { limit, threshold: Thresholds::One(Amount::Packets(k)), hosts, ..Ecn::default() })
            }),
            1 => (64..3_000u64, any::<bool>()).prop_map(move |(quantum, hosts)| {
                QueueSpec::Drr(Drr { limit, quantum: Bytes(quantum), hosts, ..Drr::default() })
            }),
            1 => (0..10u32).prop_map(move |min| {
                let min = f64::from(min);
                QueueSpec::Red(Red { limit, min, max: min + 5.0, weight: 0.1, ..Red::default() })
            }),
            1 => (0..10u32, any::<bool>(), any::<bool>()).prop_map(move |(min, two, mark_acks)| {
                let min = f64::from(min);
                QueueSpec::SelectiveRed(SelectiveRed {
                    limit,
                    form: if two { BufferForm::TwoQueues } else { BufferForm::OneQueue },
                    min,
                    max: min + 5.0,
                    weight: 0.1,
                    mark_acks,
                    ..SelectiveRed::default()
                })
            }),
        ]
    })
}

fn shared_buffers() -> impl Strategy<Value = SwitchSpec> {
    let size = prop_oneof![
        2 => Just(Limit::Unlimited),
        1 => (3_000..60_000u64).prop_map(|n| Limit::AtMost(Amount::Bytes(n))),
    ];
    (size, 0.1..4.0f64).prop_map(|(shared_buffer, alpha)| SwitchSpec {
        shared_buffer,
        alpha,
        pfc: None,
    })
}

/// Returns failures of random links at random times. Each link has at most one of each kind, so
/// they do not overlap.
fn faults(graph: &Graph) -> impl Strategy<Value = FaultsSpec> + use<> {
    let name = |link| link_name(graph, PortId::both_directions(link)[0]);
    let upper = |link: &Link| node_name(graph, link.a.max(link.b));
    let links: Vec<(String, String)> =
        graph.links.iter().enumerate().map(|(at, link)| (name(at), upper(link))).collect();
    let times = (0..3_000u64, prop::option::of(1..3_000u64));
    let incident = (0..links.len(), 0..5u8, times, any::<bool>(), 1..100u64);
    let incidents = prop::collection::vec(incident, 1..5);
    let some = (incidents, 0..2_000u64).prop_map(move |(mut incidents, reconvergence)| {
        incidents.sort_by_key(|incident| (incident.0, incident.1));
        incidents.dedup_by_key(|incident| (incident.0, incident.1));
        let incident = |row: (usize, u8, (u64, Option<u64>), bool, u64)| {
            let (index, kind, (at, lasts), one_way, amount) = row;
            let (link, switch) = links[index].clone();
            let (at, until) = (Time::from_us(at), lasts.map(|us| Time::from_us(at + us)));
            match kind {
                0 => Incident::LinkDown { link, at, until },
                1 => Incident::SwitchDown { switch, at, until },
                2 => {
                    let rate = Rate(20_000_000 * amount);
                    Incident::Rate { link, one_way, rate, at, until }
                }
                3 => {
                    let probability = amount as f64 / 100.0;
                    Incident::Loss { link, one_way, probability, at, until }
                }
                _ => {
                    let extra = Time::from_us(10 * amount);
                    Incident::Delay { link, one_way, extra, at, until }
                }
            }
        };
        let incidents = incidents.into_iter().map(incident).collect();
        FaultsSpec {
            reconvergence: Time::from_us(reconvergence),
            incidents,
            ..FaultsSpec::default()
        }
    });
    prop_oneof![1 => Just(FaultsSpec::default()), 1 => some]
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    graphs().prop_flat_map(|graph| {
        let parts = (
            flows(graph.hosts),
            queues(),
            balancers(),
            limits(5..50),
            replication(),
            transports(),
            1..400u64,
            (faults(&graph), shared_buffers()),
        );
        parts.prop_map(move |(flows, queue, balance, nic, replicate, transport, drain, around)| {
            let mut scenario = scenario(graph.clone(), flows);
            let queue = match &transport {
                TransportSpec::Pfabric(_) if drain % 3 > 0 => QueueSpec::Pfabric(PfabricQueue {
                    limit: queue.limit(),
                    hosts: drain % 2 == 0,
                    ..PfabricQueue::default()
                }),
                TransportSpec::Ndp(_) | TransportSpec::Uet(_) if drain % 3 > 0 => {
                    let header_limit = Limit::AtMost(Amount::Bytes(84 * drain));
                    let (limit, hosts) = (queue.limit(), drain % 2 == 0);
                    let low = drain as u32 % 7;
                    let [low, high] = [low, low + 1 + drain as u32 % 5].map(Amount::Packets);
                    let marking = matches!(transport, TransportSpec::Uet(_)).then_some(Marking {
                        low,
                        high,
                        last_hop: hosts,
                    });
                    let returns = marking.is_none();
                    QueueSpec::Trimming(Trimming {
                        limit,
                        header_limit: Some(header_limit),
                        hosts,
                        marking,
                        returns,
                        follows_rate: !returns,
                        ..Trimming::default()
                    })
                }
                _ => queue,
            };
            scenario.scheme.queue = queue;
            scenario.scheme.balance = balance;
            scenario.host.nic_queue = nic;
            (scenario.faults, scenario.switch) = around;
            let pfc = Pfc { xoff: Bytes(100 * drain), xon: Bytes(40 * drain) };
            if drain % 4 == 0 && scenario.scheme.queue.check_flow_control(&pfc).is_ok() {
                scenario.switch.pfc = Some(pfc);
                scenario.switch.shared_buffer = Limit::Unlimited;
            }
            if scenario.scheme.queue.check_shared().is_err() {
                scenario.switch = SwitchSpec::default();
            }
            scenario.scheme.replicate = replicate;
            scenario.scheme.transport = transport;
            if scenario.scheme.check_replication().is_err() {
                scenario.scheme.replicate = ReplicateSpec::None;
            }
            (scenario.horizon.arrivals, scenario.horizon.drain) =
                (Time::from_ms(2), Time::from_ms(drain));
            scenario
        })
    })
}

/// Returns scenarios whose hosts have several interfaces.
fn multi_homed() -> impl Strategy<Value = Scenario> {
    let graph = |spec| crate::fabric::topologies::build(spec).expect("the parameters are valid");
    let planes = json!({"kind": "multi-plane", "planes": 3, "rate": "1Gbps",
        "links_per_spine": 1});
    let rails = json!({"kind": "rail-optimised", "rate": "1Gbps", "internal_rate": "8Gbps",
        "links_per_spine": 1});
    let graphs = prop::sample::select(vec![graph(planes), graph(rails)]);
    graphs.prop_flat_map(|graph| {
        let around = (faults(&graph), 0..3_000u64, any::<bool>());
        (Just(graph.clone()), flows(graph.hosts), scenarios(), around).prop_map(
            |(graph, flows, scenario, (faults, detection, spread))| {
                let mut scenario = Scenario { graph, flows, faults, ..scenario };
                let detection = Some(Time::from_us(detection));
                scenario.scheme.interface = match (scenario.graph.attachment, spread) {
                    (Attachment::Planes { .. }, true) => {
                        InterfaceSpec::ByPacket(ByPacket { detection })
                    }
                    (Attachment::Planes { .. }, false) => {
                        InterfaceSpec::ByFlow(ByFlow { detection })
                    }
                    (_, true) => InterfaceSpec::ByRail(ByRail {}),
                    (_, false) => InterfaceSpec::default(),
                };
                if scenario.scheme.check_interfaces(&scenario.graph).is_err() {
                    scenario.scheme.balance = BalanceSpec::Spray(Spray {});
                }
                scenario.switch.pfc = None;
                scenario
            },
        )
    })
}

proptest! {
    #![proptest_config(crate::run::support::random_cases(400))]

    #[test]
    fn runs_of_hosts_with_several_interfaces_add_up(scenario in multi_homed()) {
        let observers = (Ledger::new(&scenario), Attribution::new(&scenario.graph));
        let (outcome, (ledger, attribution)) = run_observed(&scenario, observers);
        ledger.check(&outcome);
        crate::run::attribution::check(&outcome, &attribution);
        let plain = run(&scenario);
        prop_assert_eq!(&plain.flows, &outcome.flows);
        prop_assert_eq!(plain.counters.end, outcome.counters.end);
    }

    #[test]
    fn packets_are_conserved_on_every_link(scenario in scenarios()) {
        let (outcome, ledger) = run_observed(&scenario, Ledger::new(&scenario));
        ledger.check(&outcome);
    }

    #[test]
    fn observers_and_series_change_nothing(scenario in scenarios()) {
        let mut watched = scenario.clone();
        watched.series.flows = watched.flows.iter().map(|flow| flow.id).collect();
        watched.series.links = vec![link_name(&watched.graph, PortId(0))];
        watched.series.differentials = vec!["h0>h1".into()];
        watched.max_port_samples = 40;
        let attribution = Attribution::new(&watched.graph);
        let ledger = (Ledger::new(&watched), FlowPaths::default());
        let observers = (ledger, (SegmentObserver::default(), attribution));
        let (observed, (_, (_, attribution))) = run_observed(&watched, observers);
        let plain = run(&scenario);
        prop_assert_eq!(&plain.flows, &observed.flows);
        prop_assert_eq!(&plain.jobs, &observed.jobs);
        prop_assert_eq!(&plain.tiers, &observed.tiers);
        prop_assert_eq!(plain.counters.end, observed.counters.end);
        crate::run::attribution::check(&observed, &attribution);
    }

    #[test]
    fn the_parts_of_completion_times_add_up(scenario in scenarios()) {
        let (mut outcome, attribution) = run_observed(&scenario, Attribution::new(&scenario.graph));
        crate::run::attribution::check(&outcome, &attribution);
        let plain = run(&scenario);
        // Without an observer of packets there is no event for a transmitter that falls idle.
        prop_assert!(outcome.counters.events >= plain.counters.events);
        outcome.counters.events = plain.counters.events;
        prop_assert_eq!(plain, outcome);
    }

    #[test]
    fn sampling_all_ports_changes_nothing(scenario in scenarios(), instants in 2..60u32) {
        let mut watched = run(&Scenario { max_port_samples: instants, ..scenario.clone() });
        let samples = watched.port_samples.take().expect("they are asked for");
        prop_assert!(samples.times.len() <= instants as usize);
        let plain = run(&scenario);
        watched.counters.events = plain.counters.events;
        prop_assert_eq!(plain, watched);
    }

    #[test]
    fn the_same_scenario_twice_has_the_same_outcome(scenario in scenarios()) {
        prop_assert_eq!(run(&scenario), run(&scenario));
    }
}

/// Given enough time, every flow of a lossy run finishes: nothing is ever stuck.
#[test]
fn flows_finish_however_small_the_queues() {
    for recovery in [Recovery::Newreno, Recovery::SackPrr] {
        let flows = (0..12)
            .map(|id| crate::run::support::flow(id, id as u32 % 4, 4, 60_000, Time::ZERO))
            .collect();
        let mut scenario = scenario(Star { hosts: 5, ..Star::default() }.build().unwrap(), flows);
        limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(3)));
        tcp(&mut scenario).recovery = recovery;
        let outcome = run(&scenario);
        assert!(outcome.counters.dropped > 10, "the queue overflows");
        assert!(outcome.flows.iter().all(|flow| flow.fct.is_some()));
    }
}

#[test]
fn a_flow_that_the_horizon_cuts_off_is_reported_as_unfinished() {
    let flows = vec![crate::run::support::flow(0, 0, 1, 50_000_000, Time::ZERO)];
    let mut scenario = scenario(row(&[(Rate(1_000_000_000), Time::from_us(2)); 2]), flows);
    scenario.horizon.drain = Time::from_ms(50);
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    assert_eq!((flow.fct, flow.fct_ack, flow.winner), (None, None, None));
    assert!(flow.connect.is_some() && flow.data_packets > 1_000);
    assert!(outcome.counters.in_flight > 0);
}

/// A randomly found case: subflows are reset while their host's interface is full, and others take
/// their slots.
#[test]
fn a_connection_whose_reset_is_dropped_at_its_own_interface_ends_once() {
    let rng_seed = RngSeed::Fixed(3_909_515_491);
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&scenarios(), |scenario| {
            run(&scenario);
            Ok(())
        })
        .expect("every run ends");
}
