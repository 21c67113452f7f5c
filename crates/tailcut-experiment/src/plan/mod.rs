//! The plan: what every backend, store and report works from.

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

/// Version of the plan's form.
pub const FORMAT: u32 = 1;

/// Version of what runs yield. A change that makes the same plan give other tables raises it,
/// so that no stored result is taken for what the present version would give.
pub const RESULTS_VERSION: u32 = 22;

/// An experiment, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Tailcut that planned it.
    pub version: String,
    /// The title of the experiment.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// The file it was read from, as given.
    pub source_file: String,
    /// The scheme that the others are compared with.
    pub baseline: String,
    /// Scheme names, in the order of the report.
    pub schemes: Vec<String>,
    /// The sweep's axes, the first varying slowest.
    pub sweep: Vec<SweepAxis>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// What is measured, and how it is counted.
    pub measure: MeasureSpec,
    /// What the queueing analysis is told.
    pub model: ModelSpec,
    /// What the kernel lab is told.
    pub lab: LabSpec,
    /// What the report shows.
    pub report: ReportSpec,
    /// Every scheme at every point of the sweep under every seed.
    pub runs: Vec<RunPlan>,
}

/// One axis of the sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepAxis {
    /// The key: `traffic.load`.
    pub key: String,
    /// Its values: scalars as written, tables and lists as text.
    pub values: Vec<Json>,
}

/// One run. Two entries with the same `id` are the same run: one result serves both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    /// What it is, as a hash: of configuration, seed, contents of files and [`RESULTS_VERSION`], not of names.
    pub id: String,
    /// The scheme's name.
    pub scheme: String,
    /// The point of the sweep: key and value of every axis.
    pub point: Map<String, Json>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Everything else that decides the result.
    pub config: Config,
    /// The files that the configuration names.
    pub files: Vec<FileUse>,
    /// What to expect of it.
    pub facts: RunEstimates,
}

/// A file that a run depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileUse {
    /// The path as written in the configuration.
    pub path: String,
    /// Where that is: relative paths start at the experiment file.
    pub resolved: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}
