//! TOML → checked experiment → plan with every default explicit → runs.

pub mod column;
pub mod diagnostic;
pub mod run;

use std::path::Path;

pub use column::{Column, Values};
pub use diagnostic::{Diagnostic, Failure};
pub use run::{run, RunError, RunResult};

fn under_construction() -> Failure {
    let message = "reading experiment files is under construction".to_owned();
    let rendered = format!("error[TC-E000]: {message}");
    Failure { diagnostics: vec![Diagnostic { code: "TC-E000", message, rendered, ..Diagnostic::default() }] }
}

/// Reads an experiment file, with `key=value` overrides, into its plan, as JSON.
///
/// # Errors
/// Everything found wrong, each with its place.
pub fn load(path: &Path, overrides: &[(String, String)]) -> Result<String, Failure> {
    let _ = (path, overrides);
    Err(under_construction())
}

/// The JSON Schema of experiment files.
pub fn schema() -> String {
    "{}".to_owned()
}

/// Every component that an experiment can name, as JSON.
pub fn describe() -> String {
    "[]".to_owned()
}

/// Points of a flow-size distribution: bytes and cumulative probability.
///
/// # Errors
/// When there is no such table, or it is not a distribution.
pub fn workload(name_or_path: &str, unit: &str) -> Result<(Vec<u64>, Vec<f64>), Failure> {
    let _ = (name_or_path, unit);
    Err(under_construction())
}
