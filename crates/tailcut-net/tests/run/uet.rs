//! Ultra Ethernet's transport against closed forms on a fat-tree of 16 hosts, 100 Gbps, and 1 us a
//! link: a full packet of 4,150 B takes 332 ns on each of six links, one without data of 64 B 5.12
//! ns, and an empty round trip 14.02272 us.

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::Outcome;
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::trimming::{Marking, Trimming};
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::uet::{UetControl, UetSpec};

use crate::run::support::{flow, run, scenario};

/// Payload of a full packet, and its bytes on the wire.
const MSS: u64 = 4_086;
const FULL: u64 = 4_150;

/// Flows between the hosts of a fat-tree of 16, over queues as of the public simulator.
fn uet(control: UetControl, flows: Vec<Flow>) -> Scenario {
    let rate = OneOrEach::One(Rate(100_000_000_000));
    let propagation = OneOrEach::One(Time::from_us(1));
    let tree = FatTree { k: 4, rate, propagation, ..FatTree::default() };
    let mut scenario = scenario(tree.build().expect("k is even"), flows);
    scenario.host.framing_overhead = Bytes(24);
    scenario.scheme.transport = TransportSpec::Uet(UetSpec { control, ..UetSpec::default() });
    scenario.scheme.queue = QueueSpec::Trimming(Trimming {
        limit: Limit::AtMost(Amount::Bytes(42 * FULL)),
        header: Bytes(64),
        header_limit: Some(Limit::AtMost(Amount::Bytes(86 * FULL))),
        ratio: 100_000,
        host_ratio: Some(10),
        returns: false,
        marking: Some(Marking {
            low: Amount::Packets(9),
            high: Amount::Packets(35),
            last_hop: control == UetControl::Nscc,
        }),
        ..Trimming::default()
    });
    scenario
}

/// Returns the time in ps at which the last flow is acknowledged.
fn last(outcome: &Outcome) -> u64 {
    let times = outcome.flows.iter().map(|flow| flow.fct_ack.expect("it is acknowledged").0);
    times.max().expect("there are flows")
}

#[test]
fn a_lone_flow_under_nscc_takes_the_closed_form() {
    for (bytes, ps) in [(2_000_000, 176_199_520), (10 * MSS, 17_010_720)] {
        let outcome = run(&uet(UetControl::Nscc, vec![flow(0, 0, 13, bytes, Time::ZERO)]));
        assert_eq!(last(&outcome), ps, "{bytes} B");
        assert_eq!(outcome.flows[0].retransmissions, 0);
    }
}

/// ACKs answer packets 1, 5, 9, …: 118 leave ahead of the last data packet of either host.
#[test]
fn two_flows_towards_each_other_under_nscc_take_the_closed_form() {
    let flows = [(0, 0, 13), (1, 13, 0)];
    let flows = flows.map(|(id, src, dst)| flow(id, src, dst, 2_000_000, Time::ZERO));
    assert_eq!(last(&run(&uet(UetControl::Nscc, flows.to_vec()))), 176_803_680);
}

/// The first flow begins with two packets, as it waits for its second turn when the other flow
/// starts; from then on each gets every second turn. Three packets of the longer flow come last.
#[test]
fn senders_of_a_host_take_turns_packet_by_packet() {
    let flows = [(0, 13, 100), (1, 9, 101)];
    let flows = flows.map(|(id, dst, packets)| flow(id, 0, dst, packets * MSS, Time::ZERO));
    let outcome = run(&uet(UetControl::Nscc, flows.to_vec()));
    let [first, second] = [0, 1].map(|at| outcome.flows[at].fct.expect("it ends").0);
    assert_eq!(second - first, 3 * 332_000);
}

/// The interface loses what it holds with its link, and gives turns again when that is back.
#[test]
fn a_flow_goes_on_when_its_hosts_link_comes_back() {
    let mut scenario = uet(UetControl::Rccc, vec![flow(0, 0, 13, 4_000_000, Time::ZERO)]);
    scenario.faults.incidents = vec![Incident::LinkDown {
        link: "h0>edge0".into(),
        at: Time::from_us(50),
        until: Some(Time::from_us(400)),
    }];
    let flow = &run(&scenario).flows[0];
    assert!(flow.fct_ack > Some(Time::from_us(400)) && flow.timeouts > 0, "{flow:?}");
}

/// The first 43 packets end with the first ACK; from then on 64 quanta of 256 B are granted at a
/// time, at 99 % of the link.
#[test]
fn a_lone_flow_under_rccc_waits_for_credits_as_in_the_closed_form() {
    for control in [UetControl::Rccc, UetControl::Both] {
        let outcome = run(&uet(control, vec![flow(0, 0, 13, 245 * MSS, Time::ZERO)]));
        // The note rounds to 10 ps.
        assert_eq!((last(&outcome) + 5) / 10, 9_544_043, "{control:?}");
    }
}
