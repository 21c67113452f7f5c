//! The experiment file as a whole: what its sections are and what they default to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;

use crate::model::ModelSpec;
use crate::schema::Partial;

/// An experiment: one question, asked of one network and workload under several schemes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
pub struct ExperimentFile {
    /// What the experiment shows, in a line. Heads the report.
    title: String,
    /// The question it answers, in a paragraph. Shown in the report.
    #[schemars(default)]
    question: String,
    /// Repetitions: a number n for seeds 1 to n, or a list of seeds.
    #[schemars(default)]
    seeds: Seeds,
    /// The network.
    topology: TopologySpec,
    /// The hosts' interfaces, and what frames cost on the wire.
    #[schemars(default)]
    host: HostSpec,
    /// The switches' memory.
    #[schemars(default)]
    switch: SwitchSpec,
    /// What fails when, and how soon routing knows.
    #[schemars(default)]
    faults: FaultsSpec,
    /// The queue of every switch port.
    #[schemars(default)]
    queue: QueueSpec,
    /// How switches choose among equal-cost paths.
    #[schemars(default)]
    balance: BalanceSpec,
    /// The transport that carries every flow.
    #[schemars(default)]
    transport: TransportSpec,
    /// How flows are replicated.
    #[schemars(default)]
    replicate: ReplicateSpec,
    /// Which flows start when.
    traffic: TrafficSpec,
    /// When the run ends.
    #[schemars(default)]
    horizon: Horizon,
    /// What is measured, and how it is counted.
    #[schemars(default)]
    measure: MeasureSpec,
    /// What the queueing analysis is told.
    #[schemars(default)]
    model: ModelSpec,
    /// Time series to record. Off unless flows or links are named.
    #[schemars(default)]
    series: SeriesSpec,
    /// The schemes to compare, by name, in the order of the report. Each changes the sections above by key.
    #[schemars(default)]
    schemes: BTreeMap<String, SchemeOverride>,
    /// Values to run through: dotted key of any value, and the list of its values. Several keys make a cross product.
    #[schemars(default)]
    sweep: Sweep,
    /// What the report shows.
    #[schemars(default)]
    report: ReportSpec,
}

/// What a scheme changes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
pub struct SchemeOverride {
    /// The scheme whose changes this one starts from.
    #[schemars(default)]
    like: String,
    /// Changes to `[transport]`. Another `kind` starts from that kind's defaults.
    #[schemars(default)]
    transport: Partial<TransportSpec>,
    /// Changes to `[queue]`. Another `kind` starts from that kind's defaults.
    #[schemars(default)]
    queue: Partial<QueueSpec>,
    /// Changes to `[balance]`. Another `kind` starts from that kind's defaults.
    #[schemars(default)]
    balance: Partial<BalanceSpec>,
    /// Changes to `[replicate]`. Another `kind` starts from that kind's defaults.
    #[schemars(default)]
    replicate: Partial<ReplicateSpec>,
}

/// The schema states the default of every key; that of `[schemes]` is that there are none.
impl Serialize for SchemeOverride {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde::ser::SerializeMap::end(serializer.serialize_map(Some(0))?)
    }
}

/// What is measured, and how it is counted. Percentiles are nearest rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MeasureSpec {
    /// Where a flow's completion time ends. It starts when the SYN is handed to the NIC.
    pub clock: Clock,
    /// How flows that have not finished when the run ends enter means and percentiles.
    pub unfinished: Unfinished,
    /// Flows of at most this size are short, all others long.
    pub short: Bytes,
    /// Upper bounds of the finer size groups, ascending; larger flows form one more group.
    pub size_groups: Vec<Bytes>,
    /// Record what happens to segments: duplicate ACKs, reordering, needless retransmissions, timeouts per flow. Slows runs down.
    pub segments: bool,
    /// Record the throughput of each long flow while flows arrive, and the best it could have with perfect balancing.
    pub throughput: bool,
}

/// Where a flow's completion time ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// When the last in-order byte reaches the receiving application.
    #[default]
    Receiver,
    /// When the sender has the acknowledgement of the last byte.
    Sender,
}

/// How unfinished flows enter means and percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unfinished {
    /// Not at all; their number is reported. Flatters schemes that leave slow flows behind.
    Exclude,
    /// With the time from their start to the end of the run, which is too short: a lower bound.
    #[default]
    Censored,
}

impl Default for MeasureSpec {
    fn default() -> Self {
        let size_groups = [10_000, 100_000, 1_000_000, 10_000_000].map(Bytes).to_vec();
        MeasureSpec {
            clock: Clock::default(),
            unfinished: Unfinished::default(),
            short: Bytes(100_000),
            size_groups,
            segments: false,
            throughput: false,
        }
    }
}

/// What the report shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportSpec {
    /// The scheme that the others are compared with; the first one when left out.
    pub baseline: Option<String>,
}

/// The largest number of seeds, and of runs, that is taken for meant.
pub const MAX_RUNS: usize = 100_000;

struct Seeds;

impl Default for Seeds {
    fn default() -> Self {
        Seeds
    }
}

impl Serialize for Seeds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(1)
    }
}

impl JsonSchema for Seeds {
    fn schema_name() -> Cow<'static, str> {
        "Seeds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MAX_RUNS },
                { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1 }
            ]
        })
    }
}

#[derive(Default, Serialize)]
struct Sweep {}

impl JsonSchema for Sweep {
    fn schema_name() -> Cow<'static, str> {
        "Sweep".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    { "type": "array", "items": {}, "minItems": 1 },
                    { "$ref": "#/$defs/Sweep" }
                ]
            }
        })
    }
}
