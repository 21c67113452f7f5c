//! What a run of the simulator takes and yields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;
use crate::fabric::Parts;
use crate::faults::FaultsSpec;
use crate::host::HostSpec;
pub use crate::scheme::Scheme;
use crate::switch::SwitchSpec;
use crate::topology::Graph;
use crate::traffic::demand::{JobKind, Jobs};
use crate::traffic::Flow;

/// When a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Horizon {
    /// New flows start in `[0, arrivals)`.
    pub arrivals: Time,
    /// After the last arrival time, how long flows may take to finish. The run ends earlier when all have.
    pub drain: Time,
}

impl Default for Horizon {
    fn default() -> Self {
        Horizon { arrivals: Time::from_ms(500), drain: Time::from_ms(1_000) }
    }
}

/// Longer runs than a day of simulated time are slips of the unit.
pub(crate) const LONGEST: Time = Time::from_ms(24 * 3_600 * 1_000);

impl Horizon {
    /// Checks the times.
    ///
    /// # Errors
    /// When no flow could start, or the run would last longer than a day.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.arrivals == Time::ZERO {
            return Err(SpecError::new(
                "horizon-arrivals",
                "arrivals",
                "arrivals = \"0s\": no flow could start",
            ));
        }
        for (field, time) in [("arrivals", self.arrivals), ("drain", self.drain)] {
            if time > LONGEST {
                let message = format!("{field} = \"{time}\": at most a day can be simulated");
                return Err(SpecError::new("horizon-length", field, message));
            }
        }
        Ok(())
    }
}

/// Time series of chosen flows and directed links, sampled and bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesSpec {
    /// Flows (by id) whose congestion window and rate are sampled.
    pub flows: Vec<u64>,
    /// Links whose queue and utilisation are sampled, as `"from>to"` in node names or numbers (`"h0>s0"`).
    pub links: Vec<String>,
    /// Pairs of hosts between whose shortest paths the queues are compared, as `"from>to"` (`"h0>h15"`): the longest sum of queues
    /// along a path less the shortest (RPS, figure 4a).
    pub differentials: Vec<String>,
    /// Time between samples.
    pub interval: Time,
    /// At most this many samples per series; later ones are not taken, and the result says so.
    pub max_samples: u32,
}

impl Default for SeriesSpec {
    fn default() -> Self {
        SeriesSpec {
            flows: vec![],
            links: vec![],
            differentials: vec![],
            interval: Time::from_us(100),
            max_samples: 10_000,
        }
    }
}

impl SeriesSpec {
    /// Whether nothing is sampled.
    pub fn is_off(&self) -> bool {
        self.flows.is_empty() && self.links.is_empty() && self.differentials.is_empty()
    }

    /// Checks the sampling.
    ///
    /// # Errors
    /// When no sample would be taken, or all at once.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.interval == Time::ZERO {
            return Err(SpecError::new(
                "series-interval",
                "interval",
                "interval = \"0s\": samples need time between",
            ));
        }
        if self.interval > LONGEST {
            let message =
                format!("interval = \"{}\": no run lasts longer than a day", self.interval);
            return Err(SpecError::new("series-interval", "interval", message));
        }
        if self.max_samples == 0 {
            let message = "max_samples = 0: no sample would be taken";
            return Err(SpecError::new("series-max-samples", "max_samples", message)
                .hint("leave flows and links empty to record no series"));
        }
        Ok(())
    }
}

/// One run, fully resolved.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The network.
    pub graph: Graph,
    /// Host interfaces and framing.
    pub host: HostSpec,
    /// Switches.
    pub switch: SwitchSpec,
    /// What fails when.
    pub faults: FaultsSpec,
    /// The scheme under test.
    pub scheme: Scheme,
    /// The flows: those that wait for nothing in order of start time, then the others.
    pub flows: Vec<Flow>,
    /// What flows wait for, and the jobs that they make up; empty for open-loop traffic.
    pub jobs: Jobs,
    /// When to stop.
    pub horizon: Horizon,
    /// Seed of whatever the scheme itself draws.
    pub seed: u64,
    /// Requested time series.
    pub series: SeriesSpec,
}

impl Scenario {
    /// What its fabric is made of.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
            graph: &self.graph,
            queue: self.scheme.queue.clone(),
            balance: self.scheme.balance.clone(),
            switch: self.switch.clone(),
            nic_queue: self.host.nic_queue,
            faults: self.faults.clone(),
            seed: self.seed,
        }
    }
}

/// How far a run is; the simulator calls back with it every 2^20 events.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Events handled.
    pub events: u64,
    /// One packet, data or ACK, having crossed one link.
    pub packet_hops: u64,
    /// Flows that have finished.
    pub finished_flows: u64,
}

/// What happened to one flow: one row of the flow table. Times are relative to `start`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// The flow as asked for.
    pub flow: Flow,
    /// SYN handed to the NIC until the SYN-ACK of the first connection to be established; none if never.
    pub connect: Option<Time>,
    /// SYN handed to the NIC until the last in-order byte reaches the receiving application.
    pub fct: Option<Time>,
    /// SYN handed to the NIC until the sender has the ACK of the last byte (on the connection that won).
    pub fct_ack: Option<Time>,
    /// The best possible `fct` of this flow, by its transport and ways: with the network to itself, by closed form.
    pub ideal_fct: Time,
    /// The same for `fct_ack`, with the last byte acknowledged at once.
    pub ideal_fct_ack: Time,
    /// Data packets sent on all connections of the flow, retransmissions included.
    pub data_packets: u64,
    /// Data packets retransmitted on all its connections.
    pub retransmissions: u64,
    /// Retransmission timeouts on all its connections, SYN timeouts included.
    pub timeouts: u32,
    /// Fast recoveries entered on all its connections.
    pub fast_recoveries: u32,
    /// Of these, the recoveries that senders took back because nothing had been lost (`reordering.undo`).
    pub recoveries_undone: u32,
    /// Data segments that reached a receiver which had them already, on all its connections: sent again for nothing.
    pub needless_retransmissions: u64,
    /// Connections opened for it.
    pub copies: u8,
    /// The connection that finished first, counted from 0; none while unfinished.
    pub winner: Option<u8>,
    /// Links that the first two copies share between the two edge switches; none with a single copy,
    /// and none where packets of one connection take several paths.
    pub shared_hops: Option<u8>,
    /// Links between source and destination.
    pub hops: u8,
    /// Its bytes that were at the receiving application, in order, when the arrivals ended.
    pub delivered_in_arrivals: u64,
}

/// What happened to one job: one row of the job table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRecord {
    /// Its number among the jobs of the run.
    pub id: u64,
    /// What kind of job it is: `"query"`, `"transfer"`.
    pub kind: JobKind,
    /// When its first flow started.
    pub start: Time,
    /// From `start` until the last byte of its last flow reached its receiver; none if that did not happen.
    pub completion: Option<Time>,
    /// Its flows.
    pub flows: u32,
    /// Their application bytes.
    pub bytes: u64,
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
}

/// What TinyFlow's edge switches took for elephants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elephants {
    /// Elephants detected.
    pub found: u64,
    /// Elephants that several paths were open to, and that no switch had detected by the end of the run.
    pub missed: u64,
    /// Smaller flows taken for elephants.
    pub mistaken: u64,
    /// Streams of acknowledgements taken for elephants, most of them those of true elephants.
    pub ack_streams: u64,
    /// From the start of each elephant found to its detection, added up.
    pub detection_time: Time,
    /// Draws of a new path.
    pub reroutes: u64,
}

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
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
    /// Packets lost to failures: queued or under way on a link that went down, sent to one that was down, or corrupted.
    pub lost_on_links: u64,
    /// Packets still queued or on a wire at the end.
    pub in_flight: u64,
    /// Data segments that reached a receiver which had them already: retransmissions that were needless.
    pub needless_retransmissions: u64,
    /// Recoveries that senders took back because they were needless.
    pub recoveries_undone: u64,
    /// When the run ended.
    pub end: Time,
    /// Elephants, where switches look for them.
    pub elephants: Option<Elephants>,
}

/// One sampled time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What was sampled: `"flow 12 cwnd_bytes"`, `"link h0>s0 queue_packets"`.
    pub name: String,
    /// Sample times.
    pub times: Vec<Time>,
    /// Sampled values.
    pub values: Vec<f64>,
    /// True when `max_samples` cut it short.
    pub truncated: bool,
}

/// Everything that a run yields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One record per flow that has started, in the scenario's order.
    pub flows: Vec<FlowRecord>,
    /// One record per job that has begun.
    pub jobs: Vec<JobRecord>,
    /// One record per tier and direction.
    pub tiers: Vec<TierRecord>,
    /// Totals.
    pub counters: Counters,
    /// Requested time series.
    pub series: Vec<Series>,
}
