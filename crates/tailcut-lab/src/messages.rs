//! Messages between the processes of a run: commands of the supervisor, events and reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tailcut_experiment::tabulate::MeasuredSeries;
use tailcut_net::measure::records::TierRecord;

use crate::fabric::lateness::Lateness;
use crate::fabric::rate_check::RateWindows;
use crate::hosts::drops::DropCounters;

/// A command to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCommand {
    /// Take part in the idle flows.
    IdleFlows(IdleTask),
    /// Start the guests.
    Guests,
    /// Carry the flows of the run.
    Run(RunTimes),
}

/// The task of a host in the idle flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTask {
    /// Whether the host receives.
    pub receives: bool,
    /// The sending and the receiving host.
    pub ends: (u32, u32),
    /// The start of each flow, on the monotonic clock, and its source port.
    pub starts: Vec<(u64, u16)>,
    /// The size of each flow in bytes.
    pub bytes: u64,
    /// When to give up, on the monotonic clock.
    pub give_up_ns: u64,
}

/// A command to the fabric, which the start time follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricCommand {
    /// Carry the idle flows.
    IdleFlows,
    /// Carry the flows of the run.
    Run,
}

/// The times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// The start of the run, on the monotonic clock.
    pub begin_ns: u64,
    /// The nanoseconds from the start to the end of arrivals.
    pub arrivals_ns: u64,
}

/// The message of a host that is ready: its settings as read back, and the versions of Node if it
/// carries the flows.
pub type HostReady = (HostReadBack, Option<NodeReady>);

/// The settings of a host, as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostReadBack {
    /// The names and values of the sysctls.
    pub sysctls: Vec<(String, String)>,
    /// The offloads of the interface, and whether each is on.
    pub offloads: Vec<(String, bool)>,
    /// The route, as printed by `ip -json route`.
    pub route: serde_json::Value,
}

/// The message of a Node process that is ready, or cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NodeReady {
    /// The process is ready.
    Versions {
        /// The version of Node.
        node: String,
        /// The version of `repnet-bench`.
        bench: String,
    },
    /// The process cannot start.
    Failed {
        /// The reason.
        failed: String,
    },
}

/// The event, sent to the supervisor as it happens, that a flow was completely received.
pub const RECEIVED: u8 = b'r';
/// The event that a flow was completely acknowledged; see [`RECEIVED`].
pub const ACKNOWLEDGED: u8 = b'a';
/// The event of an error, which the report describes; see [`RECEIVED`].
pub const WRONG: u8 = b'w';

/// A sender's record of a flow; times are in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SenderRecord {
    /// The index among the flows of the run.
    pub index: u64,
    /// When the connection was due, if the flow depends on others.
    pub due_ns: Option<u64>,
    /// When the connection was opened.
    pub opened_ns: u64,
    /// When the connection was established.
    pub established_ns: Option<u64>,
    /// When the last byte was acknowledged.
    pub acknowledged_ns: Option<u64>,
    /// Data segments sent, retransmissions included.
    pub data_packets: u64,
    /// Retransmitted data segments.
    pub retransmissions: u64,
    /// Segments that the receiver reported as duplicates.
    pub duplicates: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Whether the kernel counts timeouts.
    pub counts_timeouts: bool,
    /// The number of subflows at the end; 1 for plain TCP.
    pub subflows: u32,
}

/// A receiver's record of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceiverRecord {
    /// The index among the flows of the run.
    pub index: u64,
    /// When the last byte was read, in nanoseconds of the monotonic clock.
    pub complete_ns: Option<u64>,
    /// Bytes read when the arrivals ended.
    pub in_arrivals: u64,
}

/// The report of a host at the end of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// The records of the flows that it sent.
    pub sent: Vec<SenderRecord>,
    /// The records of the flows that it received.
    pub got: Vec<ReceiverRecord>,
    /// Windows and rates of the flows that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// Error messages: bytes that differ, connections that broke.
    pub wrong: Vec<String>,
    /// Packets dropped by the host's kernel.
    pub thrown_away: DropCounters,
}

/// The report of the fabric at the end of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FabricReport {
    /// One record per tier and direction.
    pub tiers: Vec<TierRecord>,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Packets dropped by full queues.
    pub dropped: u64,
    /// Packets lost to failures.
    pub lost: u64,
    /// Frames received from hosts.
    pub frames: u64,
    /// Frames of second connections, included in `frames`.
    pub copied: u64,
    /// Frames dropped for lack of room on their way into the fabric.
    pub ring_drops: u64,
    /// Frames that a host's interface refused.
    pub refused: u64,
    /// Frames that match no flow.
    pub strange: u64,
    /// The lateness with which frames were handed over to their hosts.
    pub released: Lateness,
    /// The lateness of incoming frames behind events that the fabric had already carried out.
    pub entered: Lateness,
    /// Windows in which links to hosts were busy, and those that missed the rate.
    pub paces: RateWindows,
    /// Packets dropped by kernels on their way in or out.
    pub thrown_away: DropCounters,
    /// The size of the capture, if one was requested.
    pub captured: Option<Captured>,
    /// The counters of each switch's ports and, for kernel switches, their settings as read back.
    pub switches: Value,
    /// The queues of all ports by the names of their links, as read back from the kernel, if it has
    /// them.
    pub queues: BTreeMap<String, Value>,
    /// Versions of the tools that set up the switches, besides iproute2.
    pub versions: BTreeMap<String, String>,
    /// The lateness of changes to the network, where kernels carry them out.
    pub changed: Lateness,
    /// Columns of the tables that stay empty, and the reasons.
    pub unknown: BTreeMap<String, String>,
    /// Queue lengths and utilisation of the links that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// The CPU time of the fabric's process in nanoseconds; 0 if no process carries frames.
    pub worked_ns: u64,
}

/// The size of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Frames in the file.
    pub packets: u64,
    /// Frames left out: after the file was full, or missed by the observer.
    pub left_out: u64,
}
