//! Optional measurements add to the results and change nothing in them.

use std::ops::ControlFlow;

use crate::common::{GOOD, plan};
use tailcut_experiment::{Column, RunResult, Values, no_table_reader, run};
use tailcut_net::measure::attribution::{PARTS, Part};

const WATCHED: &str = "
[measure]
segments = true
throughput = true
attribution = true
fabric = true
[series]
flows = [0]
links = [\"h0>s0\"]
differentials = [\"h0>h15\"]
";
/// The columns of the flow table that only `measure.segments` fills.
const COUNTED: [&str; 2] = ["most_duplicate_acks", "reordering_extent"];

/// Returns the result of the first run, sprayed so that segments are reordered, without losses.
fn result(further: &str) -> RunResult {
    let text = format!("{GOOD}[balance]\nkind = \"spray\"\n{further}")
        .replace("arrivals = \"1ms\"", "arrivals = \"50ms\"");
    let planned = serde_json::to_string(&plan(&text).runs[0]).expect("a plan is plain data");
    run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(())).expect("it runs")
}

fn column<'a>(result: &'a RunResult, name: &str) -> &'a Column {
    result.flows.iter().find(|column| column.name == name).expect("the column exists")
}

#[test]
fn all_measurements_together_leave_flows_and_links_unchanged() {
    let (plain, watched) = (result(""), result(WATCHED));
    for (before, after) in plain.flows.iter().zip(&watched.flows) {
        assert!(before == after || COUNTED.contains(&before.name), "{}", before.name);
    }
    assert_eq!(plain.flows.len() + PARTS, watched.flows.len());
    let Values::U64(flows) = &column(&plain, "id").values else { panic!("flows are numbered") };
    assert!(flows.len() > 5, "there is something to compare: {} flows", flows.len());
    assert_eq!(plain.tiers, watched.tiers);
    assert_eq!(plain.facts, watched.facts);
    assert!(plain.extra_tables.is_empty() && plain.series.is_empty());
    let tables: Vec<_> = watched.extra_tables.iter().map(|(name, _)| *name).collect();
    assert_eq!(tables, ["segments", "throughput", "fabric", "ports", "paths"]);
    assert!(watched.series.len() >= 4, "window and rate, queue and utilisation, differential");
}

fn integers(column: &Column) -> &[i64] {
    match &column.values {
        Values::I64(values) => values,
        other => panic!("{other:?} are no integers"),
    }
}

#[test]
fn attribution_splits_completion_times_and_changes_nothing_else() {
    let (plain, split) = (result(""), result("[measure]\nattribution = true\n"));
    assert_eq!(plain.flows, split.flows[..plain.flows.len()]);
    assert_eq!((&plain.tiers, &plain.counters), (&split.tiers, &split.counters));
    let parts = &split.flows[plain.flows.len()..];
    let names: Vec<&str> = parts.iter().map(|column| column.name).collect();
    assert_eq!(names, Part::COLUMNS);
    let fct = column(&split, "fct_ns");
    assert!(parts.iter().all(|part| part.valid == fct.valid), "all of a flow or nothing");
    for (row, fct) in integers(fct).iter().enumerate() {
        let total: i64 = parts.iter().map(|part| integers(part)[row]).sum();
        assert_eq!(total, *fct, "row {row}");
    }
    let waited = |column: &&Column| column.name.ends_with("_others_ns");
    assert!(parts.iter().filter(waited).any(|part| integers(part).iter().any(|ns| *ns > 0)));
}

#[test]
fn attribution_true_changes_the_run_id_and_false_does_not() {
    let id = |further: &str| plan(&format!("{GOOD}[measure]\n{further}")).runs[0].id.clone();
    assert_eq!(id(""), id("attribution = false"));
    assert_ne!(id(""), id("attribution = true"));
}

#[test]
fn columns_about_segments_are_empty_unless_segments_are_measured() {
    for name in COUNTED {
        let missing = column(&result(""), name).valid.clone().expect("values may be missing");
        assert!(!missing.is_empty() && missing.iter().all(|valid| !valid));
        let watched = result(WATCHED);
        let counted = column(&watched, name);
        assert!(counted.valid.as_ref().is_some_and(|valid| valid.iter().all(|valid| *valid)));
        let Values::U64(values) = &counted.values else { panic!("{name} is a count") };
        assert!(values.iter().any(|value| *value > 0), "{name}: segments overtake each other");
    }
}
