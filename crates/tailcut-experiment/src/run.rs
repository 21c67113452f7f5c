//! One run: from its entry in the plan to tables.

use std::ops::ControlFlow;

use tailcut_net::scenario::{Counters, Progress, Series};

use crate::column::Column;

/// What a run yields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunResult {
    /// The flow table.
    pub flows: Vec<Column>,
    /// The link table, one row per tier and direction.
    pub tiers: Vec<Column>,
    /// Totals.
    pub counters: Counters,
    /// Requested time series.
    pub series: Vec<Series>,
    /// Further numbers about the run as a whole, by name.
    pub facts: Vec<(&'static str, f64)>,
}

/// Why a run did not happen or did not end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The caller's progress callback asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Not a run of a plan, or a file it names is gone or changed.
    #[error("{0}")]
    Plan(String),
}

/// Carries out one run of a plan (an element of `runs`, as JSON).
///
/// # Errors
/// See [`RunError`].
pub fn run(
    run_json: &str,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<RunResult, RunError> {
    let _ = (run_json, on_progress);
    Err(RunError::Plan("running is under construction".to_owned()))
}
