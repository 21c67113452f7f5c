//! The plan, on which backends, store and report work.

mod facts;
mod id;
mod memory;
mod notes;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::file::{MeasureSpec, ReportSpec};
use crate::lab::LabSpec;
use crate::model::ModelSpec;
use crate::sections::Config;

pub use facts::{PACKET_HOPS_PER_SECOND, RoutedGraph, RunEstimates, RunFlows};
pub use id::{canonical, hex, run_id};

/// The version of the plan's format.
pub const FORMAT: u32 = 1;

/// The version of results. A change that makes an equal plan give other tables raises it, so that
/// no stored result is taken for one of the present version.
pub const RESULTS_VERSION: u32 = 22;

/// An experiment, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The format, [`FORMAT`].
    pub format: u32,
    /// The version of Tailcut that made the plan.
    pub version: String,
    /// The title of the experiment.
    pub title: String,
    /// The question that the experiment answers.
    pub question: String,
    /// The experiment file, as given.
    pub source_file: String,
    /// The scheme that the others are compared with.
    pub baseline: String,
    /// Scheme names, in the order of the report.
    pub schemes: Vec<String>,
    /// The axes of the sweep; the first varies slowest.
    pub sweep: Vec<SweepAxis>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The `[measure]` section: what is measured and how it is counted.
    pub measure: MeasureSpec,
    /// The `[model]` section.
    pub model: ModelSpec,
    /// The `[lab]` section.
    pub lab: LabSpec,
    /// The `[report]` section.
    pub report: ReportSpec,
    /// Every scheme at every point of the sweep under every seed.
    pub runs: Vec<RunPlan>,
}

/// An axis of the sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepAxis {
    /// The key, such as `traffic.load`.
    pub key: String,
    /// The values: scalars as written, tables and lists as text.
    pub values: Vec<Json>,
}

/// A run. Entries with the same `id` are the same run and share one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    /// The identifier: a hash of configuration, seed, contents of files and [`RESULTS_VERSION`],
    /// not of names.
    pub id: String,
    /// The scheme's name.
    pub scheme: String,
    /// The point of the sweep: the value of every axis, by key.
    pub point: Map<String, Json>,
    /// The seed of all randomness.
    pub seed: u64,
    /// Everything else that decides the result.
    pub config: Config,
    /// The files that the configuration names.
    pub files: Vec<FileUse>,
    /// Sizes and estimates of the run.
    pub facts: RunEstimates,
}

/// A file that a run depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileUse {
    /// The path as written in the configuration.
    pub path: String,
    /// The absolute path; relative ones start at the experiment file's directory.
    pub resolved: String,
    /// The SHA-256 of the file's content, in hexadecimal.
    pub sha256: String,
}
