//! What the driver and its Node process tell each other: the task, starts of flows, and the report.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::addressing::{LISTEN_PORT, address};
use crate::host_settings::Replication;
use crate::hosts::host_flow::HostFlow;
use crate::messages::ReceiverRecord;
use crate::payload::Payload;

/// The first message to the process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeTask {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) mode: &'static str,
    pub(super) threshold: u64,
    pub(super) copy_delay: f64,
    pub(super) payload: String,
    pub(super) flows: Vec<NodeFlow>,
    pub(super) expected: Vec<NodeFlow>,
}

#[derive(Debug, Serialize)]
pub(super) struct NodeFlow {
    pub(super) index: u64,
    /// The other host's address.
    pub(super) peer: Ipv4Addr,
    pub(super) bytes: u64,
    /// The source port; 0 if the kernel chooses it.
    pub(super) port: u16,
    pub(super) place: u64,
}

/// Node's record of a flow that it sent.
#[derive(Debug, Deserialize)]
pub(super) struct NodeSenderRecord {
    pub(super) index: u64,
    pub(super) opened_ns: u64,
    pub(super) established_ns: Option<u64>,
    pub(super) acknowledged_ns: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NodeReport {
    pub(super) sent: Vec<NodeSenderRecord>,
    pub(super) got: Vec<ReceiverRecord>,
    pub(super) wrong: Vec<String>,
}

/// Returns the line that starts a flow: its place among the flows that the host sends, and its due
/// time.
pub(super) fn start_line(own: &[HostFlow], flow: HostFlow, due_ns: u64) -> String {
    format!("{} {due_ns}\n", own.partition_point(|other| other.index < flow.index))
}

pub(super) fn task(
    host: u32,
    replication: &Replication,
    flows: &[HostFlow],
    payload: &Payload,
) -> NodeTask {
    let told = |flow: &HostFlow, peer: u32| NodeFlow {
        index: flow.index,
        peer: address(peer),
        bytes: flow.bytes,
        port: if replication.chooses_port(flow.bytes) { 0 } else { flow.source_port },
        place: payload.place(flow.index),
    };
    let (sent, expected) = (
        flows.iter().filter(|flow| flow.src == host).map(|flow| told(flow, flow.dst)),
        flows.iter().filter(|flow| flow.dst == host).map(|flow| told(flow, flow.src)),
    );
    NodeTask {
        address: address(host),
        port: LISTEN_PORT,
        mode: replication.mode,
        threshold: replication.threshold,
        copy_delay: replication.copy_delay_ns as f64 / 1e6,
        payload: payload.hex(),
        flows: sent.collect(),
        expected: expected.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: [HostFlow; 3] = [
        HostFlow { index: 0, src: 0, dst: 1, bytes: 5_000, start_ns: 0, source_port: 1_024 },
        HostFlow { index: 1, src: 1, dst: 0, bytes: 90, start_ns: 5, source_port: 1_024 },
        HostFlow { index: 2, src: 0, dst: 1, bytes: 70_000, start_ns: 9, source_port: 1_025 },
    ];

    #[test]
    fn ports_are_the_plans_except_for_flows_that_race_connections() {
        let replication = |mode| Replication {
            mode,
            threshold: 5_000,
            copy_delay_ns: 1_500_000,
            kernel_chooses_ports: mode == "syn",
        };
        let ports = |mode| -> Vec<u16> {
            let task = task(0, &replication(mode), &FLOWS, &Payload::default());
            assert!((task.copy_delay - 1.5).abs() < 1e-9);
            task.flows.iter().map(|flow| flow.port).collect()
        };
        assert_eq!(ports("net"), [1_024, 1_025]);
        assert_eq!(ports("flow"), [1_024, 1_025]);
        assert_eq!(ports("syn"), [0, 1_025]);
    }

    #[test]
    fn the_task_lists_the_flows_that_a_host_sends_and_receives() {
        let replication = Replication {
            mode: "net",
            threshold: 0,
            copy_delay_ns: 0,
            kernel_chooses_ports: false,
        };
        let task = task(0, &replication, &FLOWS, &Payload::default());
        let told = |flows: &[NodeFlow]| -> Vec<(u64, Ipv4Addr, u64)> {
            flows.iter().map(|flow| (flow.index, flow.peer, flow.place)).collect()
        };
        let place = |flow| Payload::default().place(flow);
        assert_eq!(told(&task.flows), [(0, address(1), place(0)), (2, address(1), place(2))]);
        assert_eq!(told(&task.expected), [(1, address(1), place(1))]);
    }

    #[test]
    fn a_start_line_names_a_flow_by_its_place_among_the_hosts_own() {
        let own = [FLOWS[0], FLOWS[2]];
        assert_eq!(
            [start_line(&own, FLOWS[0], 7), start_line(&own, FLOWS[2], 8)],
            ["0 7\n", "1 8\n"]
        );
    }
}
