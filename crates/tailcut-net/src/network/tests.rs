//! Refusals of the loop, and what its order does not depend on.

use tailcut_engine::Time;

use super::*;
use crate::faults::{FaultsSpec, Incident};
use crate::measure::Unobserved;
use crate::measure::records::FlowRecord;
use crate::replicate::ReplicateSpec;
use crate::topology::HostId;
use crate::topology::star::Star;
use crate::traffic::Flow;
use crate::transport::TransportSpec;

/// Two flows of 10 KB between three hosts, 10 us apart.
pub(in crate::network) fn scenario() -> Scenario {
    let graph = Star { hosts: 3, ..Star::default() }.build().expect("hosts are enough");
    let flow = |id: u64| Flow {
        src: HostId(id as u32),
        dst: HostId(2),
        bytes: 10_000,
        start: Time::from_us(10 * id),
        id,
    };
    Scenario {
        graph,
        host: Default::default(),
        switch: Default::default(),
        faults: Default::default(),
        scheme: Default::default(),
        flows: vec![flow(0), flow(1)],
        jobs: Default::default(),
        horizon: Default::default(),
        seed: 1,
        series: Default::default(),
        max_port_samples: 0,
    }
}

#[test]
fn refuses_flows_between_invalid_hosts_or_without_bytes() {
    let refused = |change: fn(&mut Flow)| {
        let mut scenario = scenario();
        change(&mut scenario.flows[1]);
        matches!(check_scenario(&scenario), Err(SimError::BadFlow { id: 1, hosts: 3, .. }))
    };
    assert!(check_scenario(&scenario()).is_ok());
    assert!(refused(|flow| flow.src = HostId(3)) && refused(|flow| flow.dst = HostId(3)));
    assert!(refused(|flow| flow.src = flow.dst) && refused(|flow| flow.bytes = 0));
}

/// Four hosts send a flow to each other one, all at once, over links of which the first is down at
/// first: many timers expire at one instant.
fn ties() -> Scenario {
    let incident =
        Incident::LinkDown { link: "h0>s0".into(), at: Time::ZERO, until: Some(Time::from_ms(50)) };
    let pairs = (0..4).flat_map(|src| (0..4).map(move |dst| (src, dst)));
    let flow = |(id, (src, dst))| Flow {
        src: HostId(src),
        dst: HostId(dst),
        bytes: 20_000 + 10_000 * u64::from(dst),
        start: Time::from_us(10),
        id: id as u64,
    };
    let flows = pairs.filter(|(src, dst)| src != dst).enumerate().map(flow).collect();
    Scenario {
        graph: Star { hosts: 4, ..Star::default() }.build().expect("hosts are enough"),
        faults: FaultsSpec { incidents: vec![incident], ..FaultsSpec::default() },
        flows,
        horizon: crate::horizon::Horizon {
            arrivals: Time::from_ms(1),
            drain: Time::from_ms(9_000),
        },
        ..scenario()
    }
}

/// Returns the flow records of a run whose connections take their slots in this order.
fn records(scenario: &Scenario, places: &[usize]) -> (Vec<FlowRecord>, u64) {
    let profiles = profile::profiles(scenario);
    let mut network =
        Network::new(scenario, &profiles, Unobserved, Whole).expect("it is consistent");
    let hosts = &mut network.hosts;
    let taken: Vec<_> =
        places.iter().map(|_| hosts.admit(connections::tests::opening(hosts, 0, 0))).collect();
    places.iter().rev().for_each(|&place| hosts.retire(taken[place]));
    let go_on = &mut |_: &Progress| ControlFlow::Continue(());
    network.run(&mut &mut *go_on).expect("nobody breaks it off");
    let (outcome, _) = network.finish();
    (outcome.flows, outcome.counters.events)
}

/// Three flows of 200 KB at once to one host behind a queue of four packets, under this congestion
/// control.
fn crowded() -> Scenario {
    let flow = |id: u64| Flow {
        src: HostId(id as u32 - 17),
        dst: HostId(3),
        bytes: 200_000,
        start: Time::ZERO,
        id,
    };
    let limit = crate::amount::Limit::AtMost(crate::amount::Amount::Packets(4));
    let queue = crate::queue::drop_tail::DropTail { limit, ..Default::default() };
    let mut scenario = Scenario {
        graph: Star { hosts: 4, ..Star::default() }.build().expect("hosts are enough"),
        flows: vec![flow(17), flow(18), flow(19)],
        horizon: crate::horizon::Horizon {
            arrivals: Time::from_ms(1),
            drain: Time::from_ms(9_000),
        },
        ..scenario()
    };
    scenario.scheme.queue = crate::queue::QueueSpec::DropTail(queue);
    scenario
}

#[test]
fn a_trace_prints_drops_windows_and_timers_of_one_flow_and_changes_nothing() {
    let expected = records(&crowded(), &[]);
    let lines = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
    let sink = std::rc::Rc::clone(&lines);
    let traced = crate::trace::follow(
        [18],
        move |line| sink.borrow_mut().push(line.to_owned()),
        || records(&crowded(), &[]),
    );
    assert_eq!(traced, expected);
    let lines: Vec<String> = lines.take();
    assert!(lines.iter().all(|line| line.contains(" flow 18: ")), "{lines:#?}");
    let drops = lines.iter().filter(|line| line.contains("to its receiver dropped")).count();
    let refusals = lines.iter().filter(|line| line.contains("refused: 4 packets wait")).count();
    assert!(drops > 0 && refusals == drops, "{lines:#?}");
    for decision in ["window changes from", "the sender's timer fires: Open", "recovery begins"] {
        assert!(lines.iter().any(|line| line.contains(decision)), "{decision}: {lines:#?}");
    }
    let timeouts = lines.iter().filter(|line| line.contains("retransmission timeout")).count();
    let own = expected.0.iter().find(|record| record.flow.id == 18).expect("it is there");
    assert_eq!(timeouts, own.timeouts as usize, "{lines:#?}");
}

#[test]
fn places_of_connections_decide_nothing() {
    let backwards: Vec<_> = (0..40).rev().collect();
    let strewn: Vec<_> = (0..40).map(|n| 17 * n % 40).collect();
    for change in [
        |_: &mut Scenario| {},
        |it: &mut Scenario| it.scheme.replicate = ReplicateSpec::Repflow(Default::default()),
        |it: &mut Scenario| it.scheme.replicate = ReplicateSpec::Hedge(Default::default()),
        |it: &mut Scenario| it.scheme.transport = TransportSpec::Pfabric(Default::default()),
        |it: &mut Scenario| it.scheme.transport = TransportSpec::Mptcp(Default::default()),
        |it: &mut Scenario| it.scheme.transport = TransportSpec::Ndp(Default::default()),
    ] {
        let mut scenario = ties();
        change(&mut scenario);
        let expected = records(&scenario, &[]);
        assert!(expected.0.iter().all(|flow| flow.fct.is_some()), "{:?}", scenario.scheme);
        assert!(expected.0.iter().any(|flow| flow.timeouts > 0), "{:?}", scenario.scheme);
        assert_eq!(records(&scenario, &backwards), expected);
        assert_eq!(records(&scenario, &strewn), expected);
    }
}
