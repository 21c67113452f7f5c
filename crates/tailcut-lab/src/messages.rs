//! Messages between the processes of a run: commands of the supervisor, events and reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tailcut_experiment::tabulate::MeasuredSeries;
use tailcut_net::measure::records::TierRecord;

use crate::fabric::lateness::Lateness;
use crate::fabric::rate_check::RateWindows;
use crate::hosts::drops::DropCounters;

/// What a host is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCommand {
    /// Its part in the flows alone.
    IdleFlows(IdleTask),
    /// Its guests begin.
    Guests,
    /// The run.
    Run(RunTimes),
}

/// What one of the two hosts is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTask {
    /// Whether it receives.
    pub receives: bool,
    /// Who sends, and who receives.
    pub ends: (u32, u32),
    /// When each begins, by the monotonic clock, and the port that it comes from.
    pub starts: Vec<(u64, u16)>,
    /// The size of each flow.
    pub bytes: u64,
    /// When to stop waiting, on the monotonic clock.
    pub give_up_ns: u64,
}

/// What the fabric is told to do, before it is told when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricCommand {
    /// Let flows alone cross.
    IdleFlows,
    /// Let those of the run cross.
    Run,
}

/// When things happen, by the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// The beginning of the run.
    pub begin_ns: u64,
    /// From the beginning to the end of the arrivals.
    pub arrivals_ns: u64,
}

/// What a host says once it is ready: what it is set to, and what carries its flows if it is not the lab's own sockets.
pub type HostReady = (HostReadBack, Option<NodeReady>);

/// What a host is set to, as the kernel says it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostReadBack {
    /// Sysctls.
    pub sysctls: Vec<(String, String)>,
    /// What its interface may do to packets, and whether it does.
    pub offloads: Vec<(String, bool)>,
    /// Its route, as `ip -json route` has it.
    pub route: serde_json::Value,
}

/// What it says once it is ready, or why it never is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NodeReady {
    /// Its versions.
    Versions {
        /// Of Node.
        node: String,
        /// Of `repnet-bench`.
        bench: String,
    },
    /// It cannot begin.
    Failed {
        /// Why.
        failed: String,
    },
}

/// One event, told to the supervisor as it happens.
pub const RECEIVED: u8 = b'r';
/// See [`RECEIVED`].
pub const ACKNOWLEDGED: u8 = b'a';
/// Something is wrong: the report says what.
pub const WRONG: u8 = b'w';

/// What a sender tells of a flow, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SenderRecord {
    /// Its place among the flows of the run.
    pub index: u64,
    /// When the connection was due, if the flow waited for others.
    pub due_ns: Option<u64>,
    /// When the connection was opened.
    pub opened_ns: u64,
    /// When it was established.
    pub established_ns: Option<u64>,
    /// When the last byte was acknowledged.
    pub acknowledged_ns: Option<u64>,
    /// Data segments sent.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// What the receiver had already.
    pub duplicates: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Whether the kernel counts them.
    pub counts_timeouts: bool,
    /// Connections at the end: the subflows, where it has several.
    pub subflows: u32,
}

/// What a receiver tells of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceiverRecord {
    /// Its place among the flows of the run.
    pub index: u64,
    /// When the last byte was read, in nanoseconds of the monotonic clock.
    pub complete_ns: Option<u64>,
    /// Bytes read when the arrivals ended.
    pub in_arrivals: u64,
}

/// What a host tells at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// Of the flows that it sent.
    pub sent: Vec<SenderRecord>,
    /// Of the flows that it received.
    pub got: Vec<ReceiverRecord>,
    /// Windows and rates of the flows that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// What went wrong, if anything: bytes that differ, connections that broke.
    pub wrong: Vec<String>,
    /// What its kernel has thrown away.
    pub thrown_away: DropCounters,
}

/// What the fabric tells at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FabricReport {
    /// One record per tier and direction.
    pub tiers: Vec<TierRecord>,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Packets that found a queue full.
    pub dropped: u64,
    /// Packets lost to failures.
    pub lost: u64,
    /// Frames that came in.
    pub frames: u64,
    /// Of these, frames of second connections.
    pub copied: u64,
    /// Frames that found no room on their way to the fabric, which no plan has.
    pub ring_drops: u64,
    /// Frames that could not be handed to a host, which no plan has.
    pub refused: u64,
    /// Frames that no flow is known for.
    pub strange: u64,
    /// From the time at which a frame was to be at its host until it was handed over.
    pub released: Lateness,
    /// By how much frames came in after what had already happened in the fabric.
    pub entered: Lateness,
    /// What hosts were handed while the links to them were busy.
    pub paces: RateWindows,
    /// What the kernel has thrown away on its way in or out.
    pub thrown_away: DropCounters,
    /// What is in the capture, if one was asked for.
    pub captured: Option<Captured>,
    /// Of each switch what its ports have counted, and, where it is a kernel, what it is set to, as that says it.
    pub switches: Value,
    /// The queues of all ports by the names of their links, as the kernel says it, where it has them.
    pub queues: BTreeMap<String, Value>,
    /// Versions of what the switches were set up with besides iproute2.
    pub versions: BTreeMap<String, String>,
    /// How long after its time each change to the network was carried out, where kernels carry it out.
    pub changed: Lateness,
    /// Columns of the tables that are not known, and why.
    pub unknown: BTreeMap<String, String>,
    /// Queues and utilisation of the links that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// Nanoseconds for which the fabric's process had a processor; 0 where no process carries frames.
    pub worked_ns: u64,
}

/// What became of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Frames in the file.
    pub packets: u64,
    /// Frames after the file was full, and those that came faster than they were looked at.
    pub left_out: u64,
}
