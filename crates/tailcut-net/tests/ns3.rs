//! Held against ns-3 (tests/oracles/ns3/README.md): same links, same parameters, same flows.

mod common;

use common::ns3::{chain, dumbbell, oracle_flows, oracle_rows, run, EventLog, Setting};
use tailcut_engine::Time;
use tailcut_net::transport::tcp::Recovery;

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
        let setting = Setting { nic_queue: "10000packets", queue: "10000packets", ..Setting::default() };
        let outcome = run(&setting.scenario(dumbbell(), oracle_flows(flows)));
        for (flow, expected) in outcome.flows.iter().zip(oracle_rows(case)) {
            assert_eq!(flow.fct, Some(Time::from_ns(expected.fct_rx_ns)), "{case}");
            assert_eq!(flow.fct_ack, Some(Time::from_ns(expected.fct_ack_ns)), "{case}");
        }
        assert_eq!(outcome.counters.dropped, 0);
        assert_eq!(outcome.counters.packet_hops, 8238);
    }
}

#[test]
fn sack_with_prr_loses_and_repairs_what_ns3_does() {
    let setting = Setting {
        nic_queue: "10000packets",
        queue: "20packets",
        min_rto: Time::from_ms(200),
        recovery: Recovery::SackPrr,
        ..Setting::default()
    };
    let mut graph = chain();
    graph.links[1].rate = tailcut_engine::Rate(100_000_000);
    let outcome = run(&setting.scenario(graph, oracle_flows("o_c")));
    let (flow, expected) = (&outcome.flows[0], &oracle_rows("c_rto200_sack_prr")[0]);
    assert_eq!(outcome.counters.dropped, 25);
    assert_eq!(flow.retransmissions, expected.retransmissions);
    assert_eq!(flow.timeouts, 0);
    assert_eq!(flow.fast_recoveries, expected.fast_recoveries);
    let fct = flow.fct.expect("the flow finishes").as_ns() as f64;
    let error = (fct - expected.fct_rx_ns as f64).abs() / expected.fct_rx_ns as f64;
    assert!(error < 0.001, "completion time {fct} ns is {:.3} % off", error * 100.0);
}
