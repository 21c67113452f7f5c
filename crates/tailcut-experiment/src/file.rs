//! The sections about the experiment as a whole: seeds, sweep, `[measure]` and `[report]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};
use tailcut_net::component::SpecError;

/// What is measured and how it is counted. Percentiles are nearest rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MeasureSpec {
    /// The end of a flow's completion time. Completion times start when the SYN is handed to the
    /// NIC.
    pub clock: FctClock,
    /// How unfinished flows enter means and percentiles. A flow is unfinished if the run ends
    /// first.
    pub unfinished: Unfinished,
    /// Flows of at most this size are short, all others long.
    pub short: Bytes,
    /// Upper bounds of the finer size groups, ascending. Larger flows form one more group.
    pub size_groups: Vec<Bytes>,
    /// Record duplicate ACKs, reordering, needless retransmissions and timeouts per flow. Slows
    /// runs down.
    pub segments: bool,
    /// Record the throughput of each long flow while flows arrive, and its ideal with perfect
    /// balancing.
    pub throughput: bool,
    /// Record the parts of each flow's completion time, which add up to it. Slows runs down.
    pub attribution: bool,
    /// Sample queue, utilisation and drops of every port over the run, and record which links
    /// carried each flow.
    pub fabric: bool,
    /// The largest number of instants at which ports are sampled for `fabric`. At least half as
    /// many are kept.
    pub fabric_instants: u32,
}

impl MeasureSpec {
    /// Checks the keys that change no table of a run. `TableOptions` checks the others.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self.unfinished {
            Unfinished::By(Time(0)) => Err(SpecError::new(
                "measure-unfinished",
                "unfinished.by",
                "by = \"0s\": must be greater than 0s, or no flow has finished",
            )),
            _ => Ok(()),
        }
    }
}

/// The end of a flow's completion time.
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
    /// Leave them out and report their number.
    ///
    /// This flatters schemes that leave slow flows unfinished.
    Exclude,
    /// Count the time until the run's end: a lower bound of their completion time.
    #[default]
    Censored,
    /// Leave out the flows that have not finished by this time of the run, and report their number.
    By(Time),
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

/// Options of the report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportSpec {
    /// The scheme that the others are compared with; by default the first one.
    pub baseline: Option<String>,
}

/// The largest permitted number of seeds, and of runs.
pub const MAX_RUNS: usize = 100_000;

/// The seeds of repetitions; only its schema is used.
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

/// The swept keys and their values; only its schema is used.
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

/// Values of the small variant.
#[derive(Default, Serialize)]
pub struct Small {}

impl JsonSchema for Small {
    fn schema_name() -> Cow<'static, str> {
        "Small".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Values of the medium variant.
#[derive(Default, Serialize)]
pub struct Medium {}

impl JsonSchema for Medium {
    fn schema_name() -> Cow<'static, str> {
        "Medium".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "about": {
                    "type": "string",
                    "description": "What the variant leaves out; it becomes part of the title."
                }
            },
            "required": ["about"]
        })
    }
}
