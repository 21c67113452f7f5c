//! Traces flows of a run: simulates it again and prints what decided on their packets, windows and
//! timers.

use std::ops::ControlFlow;

use tailcut_net::measure::Unobserved;
use tailcut_net::scenario::Progress;
use tailcut_net::{simulate_watched, trace};

use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{RunError, to_scenario};

/// Whether this build has the simulator's trace points; without them a trace has no lines.
pub use tailcut_net::trace::COMPILED as TRACES;

/// Simulates a run of a plan (an element of `runs`, as JSON) and hands `sink` every trace line of
/// these flows.
///
/// # Errors
/// See [`RunError`].
pub fn trace(
    run_json: &str,
    flows: &[u64],
    read_table: &TableReader,
    sink: impl FnMut(&str) + 'static,
    on_progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let scenario = to_scenario(&plan, read_table)?;
    if let Some(&missing) = flows.iter().find(|id| !scenario.flows.iter().any(|f| f.id == **id)) {
        return Err(RunError::UnknownFlow(missing));
    }
    let watch = &mut |progress: &Progress| on_progress(progress);
    trace::follow(flows.iter().copied(), sink, || simulate_watched(&scenario, Unobserved, watch))?;
    Ok(())
}
