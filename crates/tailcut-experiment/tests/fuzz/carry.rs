//! An experiment is loaded and run: it is refused with a code and a key, or its run ends and no packet is lost.

use std::ops::ControlFlow;
use std::path::Path;

use tailcut_experiment::{RunError, load_text, no_table_reader, run};

/// Runs of more packet-hops, or of more flows, need not end here: they were announced as long.
pub const MOST_PACKET_HOPS: u64 = 30_000;
const MOST_FLOWS: u64 = 500;
/// A short run that handles more events than these, a thousand times what was expected of it, does not end.
const ENDLESS_EVENTS: u64 = 1_000 * MOST_PACKET_HOPS;
/// Lists of more flows are made, but their runs are not begun.
const MOST_FLOWS_AT_ALL: u64 = 200_000;

/// What became of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The keys that are wrong.
    Refused(Vec<String>),
    /// It was announced as long.
    Long,
    /// The run has ended.
    Ran,
}

/// Loads an experiment and runs its first run. A long one is run for so many events.
///
/// # Errors
/// What is wrong with Tailcut.
pub fn carry_out(text: &str, events_of_long_runs: u64) -> Result<Ending, String> {
    let plan = match load_text("fuzz.toml", text, Path::new("tests/files"), &[], &no_table_reader) {
        Ok(plan) => plan,
        Err(failure) => {
            let told = |d: &tailcut_experiment::Diagnostic| {
                d.code.starts_with("TC-E") && !d.message.is_empty() && !d.key.is_empty()
            };
            if !failure.diagnostics.iter().all(told) {
                return Err(format!("an error without code, message or key: {failure}"));
            }
            return Ok(Ending::Refused(failure.diagnostics.into_iter().map(|d| d.key).collect()));
        }
    };
    let facts = &plan.runs[0].facts;
    let long = facts.expected_packet_hops > MOST_PACKET_HOPS || facts.flows > MOST_FLOWS;
    let most_events = if long { events_of_long_runs } else { ENDLESS_EVENTS };
    if long && (most_events == 0 || facts.flows > MOST_FLOWS_AT_ALL) {
        return Ok(Ending::Long);
    }
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let outcome = run(&planned, None, &no_table_reader, &mut |progress| match progress.events {
        events if events > most_events => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    // The run itself has held the books of each port (the simulator's `network/books.rs`).
    let counters = match outcome {
        Ok(outcome) => outcome.counters,
        Err(RunError::Interrupted) if long => return Ok(Ending::Long),
        Err(RunError::Interrupted) => return Err(format!("it does not end:\n{text}")),
        Err(error) => return Err(format!("{error}\n{text}")),
    };
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    match counters.sent == accounted {
        true => Ok(Ending::Ran),
        false => Err(format!("{} packets sent, {accounted} found:\n{text}", counters.sent)),
    }
}
