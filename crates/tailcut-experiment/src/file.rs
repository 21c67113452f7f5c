//! What an experiment file says of itself: seeds, sweep, what is measured and shown.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

/// What is measured, and how it is counted. Percentiles are nearest rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MeasureSpec {
    /// Where a flow's completion time ends. It starts when the SYN is handed to the NIC.
    pub clock: FctClock,
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
    /// Record what each flow's completion time is made of: parts that add up to it. Slows runs down.
    pub attribution: bool,
    /// Sample the queue, the use and the drops of every port over the run, and record which links carried each flow.
    pub fabric: bool,
    /// At how many instants ports are sampled for `fabric`, at the most; at least half as many are kept.
    pub fabric_instants: u32,
}

/// Where a flow's completion time ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FctClock {
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
            clock: FctClock::default(),
            unfinished: Unfinished::default(),
            short: Bytes(100_000),
            size_groups,
            segments: false,
            throughput: false,
            attribution: false,
            fabric: false,
            fabric_instants: 400,
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

/// Repetitions of a run.
pub struct Seeds;

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

/// Values to run through.
#[derive(Default, Serialize)]
pub struct Sweep {}

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
