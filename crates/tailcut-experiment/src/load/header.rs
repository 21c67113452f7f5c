//! The parts of a file that say how to run and report an experiment, not what to run.

use serde::de::DeserializeOwned;

use super::Loader;
use super::configs::unrealisable;
use crate::diagnostic::{Code, Problem};
use crate::document::{Node, Value};
use crate::file::{MAX_RUNS, MeasureSpec, ReportSpec};
use crate::lab::LabSpec;
use crate::model::ModelSpec;
use crate::resolve::Schemes;

pub(super) struct Header {
    pub title: String,
    pub question: String,
    pub seeds: Vec<u64>,
    pub measure: MeasureSpec,
    pub model: ModelSpec,
    pub lab: LabSpec,
    pub report: ReportSpec,
}

impl Loader<'_> {
    /// Reads the header. An invalid part has been reported and gets its default.
    pub(super) fn header(&mut self, schemes: &Schemes) -> Header {
        let text = |key| self.root.get(key).and_then(Node::text).unwrap_or_default().to_owned();
        let (title, question) = (text("title"), text("question"));
        let seeds = match self.root.get("seeds") {
            None => vec![1],
            Some(node) => {
                let (seeds, mut problems) = seeds(node);
                self.problems.append(&mut problems);
                seeds
            }
        };
        let measure: MeasureSpec = self.section("measure");
        if let Err(error) = measure.check() {
            self.problems.push(unrealisable(&self.root, "measure", &error));
        }
        let model = self.section("model");
        let lab = self.section("lab");
        let report: ReportSpec = self.section("report");
        if let Some(baseline) = report.baseline.as_ref().filter(|b| !schemes.names.contains(b)) {
            let place = self.root.table("report").and_then(|t| t.get("baseline")).map(|n| n.place);
            let names = schemes.names.iter().map(String::as_str);
            let mut problem = Problem::without_place(
                Code::UnknownScheme,
                format!("there is no scheme {baseline:?}"),
            )
            .key("report.baseline")
            .expected(format!("one of {}", schemes.names.join(", ")))
            .did_you_mean(baseline, names);
            problem.place = place;
            self.problems.push(problem);
        }
        Header { title, question, seeds, measure, model, lab, report }
    }

    /// Reads a section; returns its default if it is missing or invalid.
    fn section<T: DeserializeOwned + Default>(&mut self, name: &str) -> T {
        let Some(entry) = self.root.entry(name) else { return T::default() };
        serde_json::from_value(entry.node.to_json()).unwrap_or_else(|error| {
            // The check against the schema reports most of these errors first.
            let within = |problem: &Problem| problem.key.starts_with(name);
            if !self.problems.iter().any(within) {
                let problem = Problem::new(Code::WrongType, entry.place, error.to_string());
                self.problems.push(problem.key(name));
            }
            T::default()
        })
    }
}

/// Returns the seeds, and a problem for each that is listed twice. The schema reports elements that
/// are not seeds.
fn seeds(node: &Node) -> (Vec<u64>, Vec<Problem>) {
    let mut problems = Vec::new();
    let seeds = match &node.value {
        Value::Integer(count) => {
            (1..=u64::try_from(*count).unwrap_or(0).min(MAX_RUNS as u64)).collect()
        }
        Value::Array(items) => {
            let mut seeds: Vec<u64> = Vec::new();
            for item in items {
                let Value::Integer(seed) = item.value else { continue };
                let Ok(seed) = u64::try_from(seed) else { continue };
                if seeds.contains(&seed) {
                    problems.push(
                        Problem::new(
                            Code::Duplicate,
                            item.place,
                            format!("the seed {seed} is listed twice"),
                        )
                        .key("seeds")
                        .expected("seeds that differ"),
                    );
                } else {
                    seeds.push(seed);
                }
            }
            seeds
        }
        _ => vec![],
    };
    (seeds, problems)
}
