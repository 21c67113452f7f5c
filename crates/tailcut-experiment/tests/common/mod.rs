//! A valid experiment, which tests vary or break.

pub mod jobs;

use std::path::Path;

use tailcut_experiment::{Changes, Failure, Plan, load_text, no_table_reader};

/// A small experiment with every kind of section.
pub const GOOD: &str = r#"title = "a test"
seeds = 2
[topology]
kind = "fat-tree"
k = 4
[queue]
limit = "100packets"
[transport]
mss = "1460B"
[traffic]
kind = "poisson"
load = 0.5
[horizon]
arrivals = "1ms"
[schemes.TCP]
[schemes.RepFlow]
like = "TCP"
replicate = { kind = "repflow" }
[sweep]
"traffic.load" = [0.2, 0.5]
[report]
baseline = "TCP"
"#;

/// Returns the good experiment with one line replaced.
pub fn with(line: &str, replacement: &str) -> String {
    replaced(GOOD, line, replacement)
}

/// Returns a text with one line replaced, which must occur once.
pub fn replaced(text: &str, line: &str, replacement: &str) -> String {
    assert_eq!(text.matches(line).count(), 1, "{line:?} is there once");
    text.replace(line, replacement)
}

/// Returns the plan of a valid text.
pub fn plan(text: &str) -> Plan {
    plan_with(text, &[])
}

/// Returns the plan of a valid text under valid overrides.
pub fn plan_with(text: &str, overrides: &[(&str, &str)]) -> Plan {
    load(text, overrides).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the errors of an invalid text.
pub fn failure(text: &str) -> Failure {
    load(text, &[]).expect_err("the experiment is wrong")
}

/// Loads a text with overrides. Its files are in `tests/files`.
pub fn load(text: &str, overrides: &[(&str, &str)]) -> Result<Plan, Failure> {
    let overrides: Vec<_> =
        overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    load_text("test.toml", text, directory, Changes::set(&overrides), &no_table_reader)
}
