//! Held against ns-3 (tests/oracles/ns3/README.md): same links, same parameters, same flows.

mod common;

use common::ns3::{chain, dumbbell, oracle_flows, oracle_rows, run, EventLog, Setting};
use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::transport::tcp::{Close, Imitation, Recovery};

#[test]
fn a_lone_flow_takes_the_same_time_to_the_nanosecond() {
    for size in ["10k", "100k", "1m"] {
        let setting = Setting { nic_queue: "10000packets", ..Setting::default() };
        let scenario = setting.scenario(chain(), oracle_flows(&format!("o_a_{size}")));
        let outcome = run(&scenario);
        let expected = &oracle_rows(&format!("a_{size}"))[0];
        let flow = &outcome.flows[0];
        assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)), "{size}");
        assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)), "{size}");
        assert_eq!(flow.ideal_fct, Time::from_ns(expected.fct_rx_ns), "{size}: closed form");
        assert_eq!(flow.data_packets, expected.data_packets, "{size}");
    }
}

#[test]
fn a_lone_flow_sends_every_segment_when_ns3_does() {
    for size in ["10k", "100k", "1m"] {
        let setting = Setting { nic_queue: "10000packets", ..Setting::default() };
        let scenario = setting.scenario(chain(), oracle_flows(&format!("o_a_{size}")));
        EventLog::of(&scenario).assert_equals(&format!("a_{size}"));
    }
}

#[test]
fn two_flows_share_a_bottleneck_without_loss_to_the_nanosecond() {
    for (case, flows) in [("b_noloss_off0", "o_b_off0"), ("b_noloss_off5us", "o_b_off5000")] {
        let setting =
            Setting { nic_queue: "10000packets", queue: "10000packets", ..Setting::default() };
        let outcome = run(&setting.scenario(dumbbell(), oracle_flows(flows)));
        for (flow, expected) in outcome.flows.iter().zip(oracle_rows(case)) {
            assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)), "{case}");
            assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)), "{case}");
        }
        assert_eq!(outcome.counters.dropped, 0);
        assert_eq!(outcome.counters.packet_hops, 8238);
    }
}

/// One flow over three links, the middle one of 100 Mbps behind a queue of 20 packets.
fn narrow_middle(setting: &Setting) -> Scenario {
    let mut graph = chain();
    graph.links[1].rate = tailcut_engine::Rate(100_000_000);
    setting.scenario(graph, oracle_flows("o_c"))
}

#[test]
fn sack_with_prr_does_everything_when_ns3_does() {
    let setting = Setting {
        nic_queue: "10000packets",
        queue: "20packets",
        min_rto: Time::from_ms(200),
        recovery: Recovery::SackPrr,
        imitate: Imitation::Ns3,
        ..Setting::default()
    };
    let scenario = narrow_middle(&setting);
    let outcome = run(&scenario);
    let (flow, expected) = (&outcome.flows[0], &oracle_rows("c_rto200_sack_prr")[0]);
    assert_eq!(outcome.counters.dropped, 25);
    assert_eq!(flow.retransmissions, expected.retransmissions);
    assert_eq!(flow.timeouts, expected.timeouts);
    assert_eq!(flow.fast_recoveries, expected.fast_recoveries);
    assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)));
    assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)));
    EventLog::of(&scenario).assert_equals("c_rto200_sack_prr");
}

/// Without SACK, ns-3 departs from RFC 6582 (docs/validation/ns3.md): how many lines of its log agree with ours, and
/// the first that does not, on both sides.
#[test]
fn newreno_without_sack_agrees_with_ns3_until_ns3_leaves_rfc_6582() {
    let case = |min_rto, limited_transmit| {
        let setting = Setting {
            nic_queue: "10000packets",
            queue: "20packets",
            min_rto: Time::from_ms(min_rto),
            limited_transmit,
            ..Setting::default()
        };
        narrow_middle(&setting)
    };
    let two_flows = |flows| {
        let setting = Setting { nic_queue: "10000packets", ..Setting::default() };
        setting.scenario(dumbbell(), oracle_flows(flows))
    };
    let cases = [
        ("c_rto200_lt1", case(200, true)),
        ("c_rto200_lt0", case(200, false)),
        ("c_rto10_lt1", case(10, true)),
        ("c_rto10_lt0", case(10, false)),
        ("b_bq100_off5us", two_flows("o_b_off5000")),
        ("b_bq100_stag", two_flows("o_b_stag")),
    ];
    let mut report = String::new();
    for (name, scenario) in cases {
        let (same, ours, theirs) = EventLog::of(&scenario).agreement(name);
        report += &format!("{name}: {same} lines agree, then\n  ours: {ours}\n  ns-3: {theirs}\n");
    }
    insta::assert_snapshot!("first_differences", report);
}

/// A lone flow that overruns the 100-packet queue of its own interface: loss in slow start, NewReno.
#[test]
fn a_flow_that_overruns_its_own_interface_loses_what_ns3_loses() {
    let setting = Setting { nic_queue: "100packets", ..Setting::default() };
    let outcome = run(&setting.scenario(chain(), oracle_flows("o_a_1m")));
    let expected = &oracle_rows("a_1m_nicq100")[0];
    assert_eq!(outcome.counters.dropped, 105);
    assert_eq!(outcome.flows[0].fast_recoveries, expected.fast_recoveries);
}

/// Mean and nearest-rank 99th percentile of the completion times of one size class, in milliseconds.
fn mean_and_p99(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    let rank = (0.99 * times.len() as f64).ceil() as usize;
    [times.iter().sum::<f64>() / times.len() as f64, times[rank - 1]]
}

fn class(bytes: u64) -> usize {
    [100_000, 1_000_000, 10_000_000, u64::MAX].iter().position(|&limit| bytes <= limit).unwrap()
}

/// Individual completion times are chaotic after the first drop. So the flow list is run 40 times
/// with starts jittered by up to 1 us, and ns-3's one run must lie within the central 95 % of ours.
///
/// Returns the statistics that do not.
fn outside(setting: &Setting, case: &str, flows: &str) -> Vec<String> {
    let mut graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    for link in &mut graph.links {
        link.propagation = Time::from_ns(2667);
    }
    let summary = |times: &mut dyn Iterator<Item = (u64, u64)>| -> [[f64; 2]; 4] {
        let mut classes: [Vec<f64>; 4] = Default::default();
        times.for_each(|(bytes, ns)| classes[class(bytes)].push(ns as f64 / 1e6));
        classes.map(mean_and_p99)
    };
    let theirs = summary(&mut oracle_rows(case).iter().map(|row| (row.bytes, row.fct_rx_ns)));
    let one_run = |seed: u64| {
        let mut jitter = tailcut_engine::Stream::new(seed, 0, "jitter");
        let mut flows = oracle_flows(flows);
        flows.iter_mut().for_each(|flow| flow.start.0 += jitter.below(1_000_000));
        let outcome = run(&setting.scenario(graph.clone(), flows));
        summary(
            &mut outcome.flows.iter().map(|f| (f.flow.bytes, f.fct.expect("all finish").as_ns())),
        )
    };
    let half = |seeds: std::ops::Range<u64>| seeds.map(one_run).collect::<Vec<_>>();
    let ours = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(20..40));
        [half(0..20), other.join().expect("no run panics")].concat()
    });
    let mut outside = vec![];
    for (class, theirs) in theirs.iter().enumerate() {
        for (statistic, name) in ["mean", "p99"].iter().enumerate() {
            let mut values: Vec<f64> = ours.iter().map(|run| run[class][statistic]).collect();
            values.sort_by(f64::total_cmp);
            // 2.5 % of 40 runs on either side: the second smallest and the second largest.
            let (low, high) = (values[1], values[38]);
            let value = theirs[statistic];
            println!("class {class} {name}: ns-3 {value:.3} ms, ours {low:.3} to {high:.3} ms");
            if !(low <= value && value <= high) {
                outside.push(format!("class {class} {name}"));
            }
        }
    }
    outside
}

fn a_fabric_full_of_flows(imitate: Imitation) -> Vec<String> {
    let setting =
        Setting { recovery: Recovery::SackPrr, close: Close::Fin, imitate, ..Setting::default() };
    outside(&setting, "d_k4_l05_1s_rto10_nicq100000_sackprr", "k4_l0.5_1s_s2")
}

#[test]
fn a_fabric_full_of_flows_has_the_completion_times_of_ns3() {
    assert_eq!(a_fabric_full_of_flows(Imitation::None), [""; 0]);
}

#[test]
fn a_fabric_full_of_flows_has_the_completion_times_of_ns3_with_its_departures_from_the_rfcs() {
    assert_eq!(a_fabric_full_of_flows(Imitation::Ns3), [""; 0]);
}
