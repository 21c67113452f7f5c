//! Results of a run: a row per flow, job and tier, totals and series. The simulator and the lab
//! fill these records; result tables are made of nothing else.

use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::traffic::Flow;
pub use crate::traffic::closed_loop::JobRecord;
pub use crate::traffic::critical_path::{CriticalPath, PathPart, PathWork};
pub use crate::traffic::unfinished::UnfinishedJob;

/// What happened to one flow: one row of the flow table. Times are relative to `start`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// The flow as generated.
    pub flow: Flow,
    /// SYN handed to the NIC until the SYN-ACK of the first established connection; `None` if
    /// never.
    pub connect: Option<Time>,
    /// SYN handed to the NIC until the last in-order byte reaches the receiving application.
    pub fct: Option<Time>,
    /// SYN handed to the NIC until the sender has the ACK of the last byte (on the connection that
    /// won).
    pub fct_ack: Option<Time>,
    /// Ideal value of `fct`: the flow's transport and paths with the network to itself, in closed
    /// form.
    pub ideal_fct: Time,
    /// Ideal value of `fct_ack`, with the last byte acknowledged at once.
    pub ideal_fct_ack: Time,
    /// Data packets sent on all connections of the flow, retransmissions included.
    pub data_packets: u64,
    /// Data packets retransmitted on all its connections.
    pub retransmissions: u64,
    /// Retransmission timeouts on all its connections, SYN timeouts included.
    pub timeouts: u32,
    /// Fast recoveries entered on all its connections.
    pub fast_recoveries: u32,
    /// Recoveries among `fast_recoveries` that senders undid because nothing had been lost
    /// (`reordering.undo`).
    pub recoveries_undone: u32,
    /// Data segments that reached a receiver which had them already, on all connections of the
    /// flow.
    pub needless_retransmissions: u64,
    /// Connections opened for the flow.
    pub copies: u8,
    /// The connection that finished first, counted from 0; `None` while unfinished.
    pub winner: Option<u8>,
    /// Links that the first two copies share between the two edge switches; `None` with a single
    /// copy, and where packets of one connection take several paths.
    pub shared_hops: Option<u8>,
    /// Links between source and destination.
    pub hops: u8,
    /// Bytes that had reached the receiving application in order when the arrivals ended.
    pub delivered_in_arrivals: u64,
}

/// Totals of all directed links of one tier and direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierRecord {
    /// Tier name from the graph.
    pub tier: String,
    /// True from the hosts upwards.
    pub up: bool,
    /// Directed links in the tier.
    pub links: u32,
    /// Packets that crossed them.
    pub packets: u64,
    /// Bytes that crossed them, framing included.
    pub wire_bytes: u64,
    /// Packets that found a queue full.
    pub drops: u64,
    /// Mean over links of the fraction of the arrivals window during which the link transmitted.
    pub mean_utilisation: f64,
    /// The same fraction on the busiest link.
    pub max_utilisation: f64,
    /// Most packets ever waiting at one port.
    pub max_queue: u32,
    /// Number of links from hosts to switches.
    pub host_links: u32,
    /// Mean over the hosts' links of the fraction of the arrivals window during which the link
    /// transmitted.
    pub host_utilisation: f64,
}

/// Totals of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunCounters {
    /// Events handled.
    pub events: u64,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Packets handed to a host's NIC.
    pub sent: u64,
    /// Packets that reached their host.
    pub delivered: u64,
    /// Packets dropped at a full queue.
    pub dropped: u64,
    /// Packets lost to failures: queued or under way on a link that went down, sent to one that was
    /// down, or corrupted.
    pub lost_on_links: u64,
    /// Packets still queued or on a wire at the end.
    pub in_flight: u64,
    /// Data segments that reached a receiver which had them already.
    pub needless_retransmissions: u64,
    /// Recoveries that senders undid because nothing had been lost.
    pub recoveries_undone: u64,
    /// When the run ended.
    pub end: Time,
    /// Counters of the scheme in use, by name; empty for most schemes.
    pub scheme_counters: Vec<(&'static str, u64)>,
}

impl RunCounters {
    /// Returns the scheme's counter `name`, or `None` if the scheme has no such counter.
    pub fn further(&self, name: &str) -> Option<u64> {
        self.scheme_counters.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }
}

/// A sampled connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sampled {
    /// Identifier of the flow.
    pub flow: u64,
    /// Connection of the flow, from 0.
    pub copy: u8,
}

/// One sampled time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The sampled quantity: `"flow 12 cwnd_bytes"`, `"link h0>s0 queue_packets"`. A flow's
    /// connections after the first are named by their numbers: `"flow 12 connection 1 cwnd_bytes"`.
    pub name: String,
    /// The sampled flow and connection; `None` for links and paths.
    pub of: Option<Sampled>,
    /// Sample times.
    pub times: Vec<Time>,
    /// Sampled values.
    pub values: Vec<f64>,
    /// True if `max_samples` cut the series short.
    pub truncated: bool,
}

/// Samples of every port: one cell per instant and port, grouped by instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortSamples {
    /// Sample times.
    pub times: Vec<Time>,
    /// Packets waiting, without the one in transmission.
    pub packets: Vec<u32>,
    /// Bytes waiting, without the packet in transmission.
    pub bytes: Vec<u32>,
    /// Time for which the transmitter was busy since the previous sample, in nanoseconds.
    pub busy_ns: Vec<u64>,
    /// Packets dropped since the previous sample.
    pub drops: Vec<u32>,
}

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One record per started flow, in the scenario's order.
    pub flows: Vec<FlowRecord>,
    /// One record per job that has begun.
    pub jobs: Vec<JobRecord>,
    /// The jobs given as graphs that had not ended with the run, and what they waited for.
    pub unfinished: Vec<UnfinishedJob>,
    /// The critical path of the job to explain, if one was asked for and has ended.
    pub critical_path: Option<CriticalPath>,
    /// One record per tier and direction.
    pub tiers: Vec<TierRecord>,
    /// Totals.
    pub counters: RunCounters,
    /// Requested time series.
    pub series: Vec<Series>,
    /// Samples of every port, if requested.
    pub port_samples: Option<PortSamples>,
}
