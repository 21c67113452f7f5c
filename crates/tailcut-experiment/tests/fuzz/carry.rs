//! Loads and runs an experiment: it must be refused with code and key, or its run must end without
//! losing track of a packet.

use std::ops::ControlFlow;
use std::path::Path;

use tailcut_experiment::{Changes, RunError, load_text, no_table_reader, run, to_scenario};
use tailcut_net::scenario::Progress;
use tailcut_net::{simulate, simulate_in_turns};

/// The most packet-hops of a run that must end here; longer runs are announced as long by the plan.
pub const MOST_PACKET_HOPS: u64 = 30_000;
const MOST_FLOWS: u64 = 500;
/// The events, a thousand times what is expected, after which a short run counts as endless.
const ENDLESS_EVENTS: u64 = 1_000 * MOST_PACKET_HOPS;
/// The most flows of a run that is started at all.
const MOST_FLOWS_AT_ALL: u64 = 200_000;

/// The outcome of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Refused, with the keys at fault.
    Refused(Vec<String>),
    /// Announced as long by its plan, and not run to its end.
    Long,
    /// Run to its end.
    Ran,
}

/// Loads an experiment and runs its first run, a long one for at most `events_of_long_runs` events.
///
/// # Errors
/// A defect of Tailcut.
pub fn carry_out(text: &str, events_of_long_runs: u64) -> Result<Ending, String> {
    let plan = match load_text(
        "fuzz.toml",
        text,
        Path::new("tests/files"),
        Changes::default(),
        &no_table_reader,
    ) {
        Ok(plan) => plan,
        Err(failure) => {
            let is_complete = |d: &tailcut_experiment::Diagnostic| {
                d.code.starts_with("TC-E") && !d.message.is_empty() && !d.key.is_empty()
            };
            if !failure.diagnostics.iter().all(is_complete) {
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
    let go_on = &mut |_: &Progress| ControlFlow::Continue(());
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let outcome = run(&planned, None, &no_table_reader, &mut |progress| match progress.events {
        events if events > most_events => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    // The run itself has checked every port (the simulator's `network/books.rs`).
    let counters = match outcome {
        Ok(outcome) => outcome.counters,
        Err(RunError::Interrupted) if long => return Ok(Ending::Long),
        Err(RunError::Interrupted) => return Err(format!("it does not end:\n{text}")),
        Err(error) => return Err(format!("{error}\n{text}")),
    };
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    if counters.sent != accounted {
        return Err(format!("{} packets sent, {accounted} found:\n{text}", counters.sent));
    }
    // Every second experiment: the check takes twice the time of the run.
    if !counters.sent.is_multiple_of(2) {
        return Ok(Ending::Ran);
    }
    let scenario = to_scenario(&plan.runs[0], &no_table_reader).expect("it has run");
    // A number from 2 to 8 that is another one for other experiments.
    let parts = 2 + (counters.sent % 7) as usize;
    let cut = simulate_in_turns(parts, &scenario).expect("it has run");
    if cut.threads > 1 && Ok(&cut.outcome) != simulate(&scenario, go_on).as_ref() {
        return Err(format!("{parts} partitions give another outcome:\n{text}"));
    }
    Ok(Ending::Ran)
}
