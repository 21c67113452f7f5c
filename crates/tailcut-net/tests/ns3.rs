//! Comparison with ns-3 (tests/oracles/ns3/README.md): same links, same parameters, same flows.

use crate::common::ns3::{
    EventLog, Setting, chain, dumbbell, oracle_drops, oracle_flows, oracle_rows, run, six_pairs,
};
use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::Graph;
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

/// Returns one flow over three links, the middle one of 100 Mbps with a queue of 20 packets.
fn narrow_middle(setting: &Setting) -> Scenario {
    let mut graph = chain();
    graph.links[1].rate = tailcut_engine::Rate(100_000_000);
    setting.scenario(graph, oracle_flows("o_c"))
}

#[test]
fn sack_with_prr_equals_ns3_event_by_event() {
    let setting = Setting {
        nic_queue: "10000packets",
        queue: "20packets",
        min_rto: Time::from_ms(200),
        recovery: Recovery::SackPrr,
        imitate: Imitation::NS3,
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

/// Returns names and scenarios of the cases without SACK, with 100-packet queues unless the name
/// says otherwise.
fn newreno_cases(imitate: Imitation) -> Vec<(&'static str, Scenario)> {
    let narrow = |min_rto, limited_transmit| {
        let setting = Setting {
            nic_queue: "10000packets",
            queue: "20packets",
            min_rto: Time::from_ms(min_rto),
            limited_transmit,
            imitate,
            ..Setting::default()
        };
        narrow_middle(&setting)
    };
    let two_flows = |flows| {
        let setting = Setting { nic_queue: "10000packets", imitate, ..Setting::default() };
        setting.scenario(dumbbell(), oracle_flows(flows))
    };
    let lone = Setting { nic_queue: "100packets", imitate, ..Setting::default() };
    vec![
        ("c_rto200_lt1", narrow(200, true)),
        ("c_rto200_lt0", narrow(200, false)),
        ("c_rto10_lt1", narrow(10, true)),
        ("c_rto10_lt0", narrow(10, false)),
        ("a_1m_nicq100", lone.scenario(chain(), oracle_flows("o_a_1m"))),
        ("b_bq100_stag", two_flows("o_b_stag")),
        ("b_bq100_off5us", two_flows("o_b_off5000")),
    ]
}

/// Returns, for each case, how many lines of ns-3's log agree, and the first difference on both
/// sides.
fn first_differences(imitate: Imitation) -> String {
    let mut report = String::new();
    for (name, scenario) in newreno_cases(imitate) {
        let (same, ours, theirs) = EventLog::of(&scenario).agreement(name);
        report += &format!("{name}: {same} lines agree, then\n  ours: {ours}\n  ns-3: {theirs}\n");
    }
    report
}

#[test]
fn newreno_without_sack_agrees_with_ns3_until_ns3_leaves_rfc_6582() {
    insta::assert_snapshot!("first_differences", first_differences(Imitation::NONE));
}

/// The cases have losses in slow start, partial ACKs, timeouts in recovery and recoveries due to
/// needless retransmissions; in the last one, packets reach a full queue as a transmission ends.
#[test]
fn newreno_without_sack_equals_ns3_event_by_event() {
    for (name, scenario) in newreno_cases(Imitation::NS3) {
        EventLog::of(&scenario).assert_equals(name);
        let outcome = run(&scenario);
        for (flow, expected) in outcome.flows.iter().zip(oracle_rows(name)) {
            assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)), "{name}");
            assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)), "{name}");
            assert_eq!(flow.retransmissions, expected.retransmissions, "{name}");
            assert_eq!(flow.fast_recoveries, expected.fast_recoveries, "{name}");
        }
        assert_eq!(outcome.counters.dropped, oracle_drops(name), "{name}");
    }
}

/// A lone NewReno flow overruns the 100-packet queue of its own interface: losses in slow start.
#[test]
fn a_flow_that_overruns_its_own_interface_equals_ns3() {
    let setting = Setting { nic_queue: "100packets", ..Setting::default() };
    let outcome = run(&setting.scenario(chain(), oracle_flows("o_a_1m")));
    let expected = &oracle_rows("a_1m_nicq100")[0];
    assert_eq!(outcome.counters.dropped, 105);
    assert_eq!(outcome.flows[0].fast_recoveries, expected.fast_recoveries);
}

/// Returns the oracle's fat-tree: k = 4, 2,667 ns per link.
fn fabric() -> Graph {
    let mut graph = FatTree { k: 4, ..FatTree::default() }.build().expect("k is even");
    for link in &mut graph.links {
        link.propagation = Time::from_ns(2667);
    }
    graph
}

/// Returns the identifiers of flows of one fabric whose completion times agree with ns-3's to the
/// nanosecond. Nothing is jittered.
fn equal_flows(imitate: Imitation) -> Vec<u64> {
    let setting =
        Setting { min_rto: Time::from_ms(200), close: Close::Fin, imitate, ..Setting::default() };
    let outcome = run(&setting.scenario(fabric(), oracle_flows("k4_l0.5_0.1s_s1")));
    let rows = oracle_rows("d_k4_l05_01s_rto200_nicq100000");
    let pairs = outcome.flows.iter().zip(rows);
    let equal = pairs.filter(|(ours, row)| ours.fct == Some(Time::from_ns(row.fct_rx_ns)));
    equal.map(|(_, row)| row.id).collect()
}

/// On links of equal length many events share an instant, and the order of simultaneous arrivals is
/// not imitated. With different lengths all flows are equal (`exact.rs`).
#[test]
fn most_flows_of_a_fabric_of_equal_links_take_the_same_time_to_the_nanosecond() {
    let rows = oracle_rows("d_k4_l05_01s_rto200_nicq100000");
    let ended = rows.iter().filter(|row| row.start_ns + row.fct_rx_ns < 32_979_365);
    let ended: Vec<u64> = ended.map(|row| row.id).collect();
    assert_eq!(ended, [0, 1, 3, 5, 6, 7, 11, 12, 14, 17, 19]);
    let equal = equal_flows(Imitation::NS3);
    assert!(ended.iter().all(|id| equal.contains(id)), "{equal:?}");
    assert_eq!(equal.len(), 45);
}

/// 1.07 s, 399 drops, 118 recoveries and 9 timeouts, without two events at one instant.
#[test]
fn six_long_flows_with_sack_and_prr_end_at_the_times_of_ns3() {
    let case = "e_six_long_sackprr";
    let min_rto = Time::from_ms(200);
    let setting = Setting { min_rto, drain: Time::from_ms(2_000), ..with_sack(Imitation::NS3) };
    let outcome = run(&setting.scenario(six_pairs(), oracle_flows("o_e")));
    assert_eq!(outcome.counters.dropped, oracle_drops(case));
    for (flow, expected) in outcome.flows.iter().zip(oracle_rows(case)) {
        assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)), "flow {}", expected.id);
        assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)), "flow {}", expected.id);
        assert_eq!(flow.data_packets, expected.data_packets, "flow {}", expected.id);
        assert_eq!(flow.retransmissions, expected.retransmissions, "flow {}", expected.id);
        assert_eq!(flow.fast_recoveries, expected.fast_recoveries, "flow {}", expected.id);
    }
}

fn with_sack(imitate: Imitation) -> Setting {
    Setting { recovery: Recovery::SackPrr, close: Close::Fin, imitate, ..Setting::default() }
}
