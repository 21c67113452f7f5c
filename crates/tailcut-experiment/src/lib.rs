//! Turns a TOML experiment into a checked [plan](Plan) with every default explicit, and runs it.
//!
//! Loading reads a file into a [tree](document) in which every value knows its place in the text.
//! Overrides, inheritance and sweeps change that tree. The [schema](schema()), composed of the
//! components' parameter structs, checks it. Only then does it become typed
//! [configurations](Config), so an error found late still points at what was typed.

pub mod capture;
pub mod column;
pub mod demand;
pub mod diagnostic;
pub mod document;
pub mod job;
pub mod plan;
pub mod run;
pub mod story;
pub mod tabulate;
mod trace;

mod check;
mod config;
mod describe;
mod fabric_tables;
mod file;
mod lab;
mod load;
mod model;
mod resolve;
mod schema;
mod sections;
mod workload;

pub use capture::CaptureRequest;
pub use column::{Column, Values};
pub use demand::{RunDemand, run_demand};
pub use describe::{Component, Parameter, describe};
pub use diagnostic::{Diagnostic, Failure};
pub use file::{FctClock, MeasureSpec, Unfinished};
pub use job::{ExplainedJob, explain_job};
pub use load::{Changes, TableReader, Variant, load, load_text, no_table_reader};
pub use model::{ModelSpec, ShortByteShare};
pub use plan::{Plan, RESULTS_VERSION, RunPlan};
pub use run::{RunError, RunResult, Threads, check_capture, run, run_on, run_watched, to_scenario};
pub use schema::schema;
pub use sections::Config;
pub use story::{ExplainedFlow, Explanation, explain};
pub use tabulate::{MeasuredFlow, MeasuredRun, tabulate};
pub use trace::{TRACES, trace};
pub use workload::workload;
