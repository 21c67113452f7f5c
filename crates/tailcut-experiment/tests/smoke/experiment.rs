//! Small experiments as the loader sees them, and their runs.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value as Json;
use tailcut_experiment::{load_text, no_tables, to_scenario, Plan, RunPlan};
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::simulate_observed;

/// The plan of an experiment, or the codes of what is wrong with it. A refusal says what to do.
pub fn loaded(experiment: &Json) -> Result<Plan, BTreeSet<String>> {
    let toml = toml::Value::try_from(experiment).expect("it has no null");
    let text = toml::to_string(&toml).expect("tables become text");
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    load_text("smoke.toml", &text, directory, &[], &no_tables).map_err(|failure| {
        for diagnostic in &failure.diagnostics {
            assert!(diagnostic.hint.is_some(), "a refusal says what to do:\n{failure}");
        }
        let code = |code: &str| code.strip_prefix("TC-E100/").unwrap_or(code).to_owned();
        failure.diagnostics.iter().map(|diagnostic| code(&diagnostic.code)).collect()
    })
}

/// What packets carried as hosts received them.
#[derive(Debug, Default)]
pub struct Seen {
    pub marked: u64,
    pub of_flows_that_lost_paths: u64,
}

impl Observer for Seen {
    fn host_receives(&mut self, _: tailcut_engine::Time, _: u32, packet: &PacketView) {
        self.marked += u64::from(packet.flags.has(Flags::CONGESTION_EXPERIENCED));
        self.of_flows_that_lost_paths += u64::from(packet.flags.has(Flags::LOST_PATHS));
    }
}

/// Runs it: no packet is unaccounted for, every flow finishes.
pub fn carry_out(run: &RunPlan, experiment: &Json) -> (Outcome, Seen) {
    let scenario = to_scenario(run, &no_tables).expect("the plan is fresh");
    let (outcome, seen) =
        simulate_observed(&scenario, Seen::default(), &mut |_| ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("{error}\n{experiment}"));
    let counters = &outcome.counters;
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    assert_eq!(counters.sent, accounted, "packets are lost: {experiment}");
    let unfinished = outcome.flows.iter().filter(|flow| flow.fct.is_none()).count();
    assert_eq!(unfinished, 0, "flows do not finish: {experiment}");
    (outcome, seen)
}
