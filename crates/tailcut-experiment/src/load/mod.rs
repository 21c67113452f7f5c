//! Loads an experiment: from a file and overrides to a plan, or to all errors in them.

mod configs;
mod files;
mod header;
mod runs;
mod variants;

use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::check::Checker;
use crate::diagnostic::{Code, Failure, Problem};
use crate::document::{Node, Override, Sources, Span, Table, Value, parse_document};
use crate::plan::{FORMAT, Plan, SweepAxis};
use crate::resolve::{Axis, Schemes, axes};
use crate::schema::schema;
use crate::sections::{REQUIRED_SECTIONS, RUN_SECTIONS};

pub use variants::Variant;

pub use files::{Files, PlannedFiles, TableReader, no_table_reader};

/// Changes to a file as it is loaded; `set` goes over `variant`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes<'a> {
    /// The variant whose table of the file is applied.
    pub variant: Option<Variant>,
    /// Overrides from the command line, as key and value in TOML.
    pub set: &'a [(String, String)],
}

impl<'a> Changes<'a> {
    /// Only overrides from the command line.
    pub fn set(set: &'a [(String, String)]) -> Changes<'a> {
        Changes { variant: None, set }
    }
}

/// Loads an experiment file, with changes, into its plan. `read_table` reads the tables that it
/// names.
///
/// # Errors
/// All errors found, each with its place.
pub fn load(path: &Path, changes: Changes<'_>, read_table: &TableReader) -> Result<Plan, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(unreadable).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| {
            let byte = error.utf8_error().valid_up_to() + 1;
            (format!("it is not text in UTF-8 (byte {byte})"), "save it as UTF-8")
        })
    });
    match text {
        Ok(text) => {
            let directory = path.parent().unwrap_or(Path::new(""));
            load_text(&name, &text, directory, changes, read_table)
        }
        Err((reason, hint)) => {
            let mut sources = Sources::default();
            sources.add(&name, "");
            let message = format!("{name} cannot be read: {reason}");
            let problem = Problem::without_place(Code::Unreadable, message).hint(hint);
            Err(Failure::new(&sources, vec![problem]))
        }
    }
}

/// Returns the reason why a file cannot be read, and advice.
fn unreadable(error: std::io::Error) -> (String, &'static str) {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => {
            "check the path; `tailcut new FILE` writes an experiment to start from"
        }
        std::io::ErrorKind::IsADirectory => "name an experiment file in this directory",
        _ => "check that it is a file and that you may read it",
    };
    (error.to_string(), hint)
}

/// Loads the text of an experiment. Files that it names are relative to `directory`.
///
/// # Errors
/// All errors found, each with its place.
pub fn load_text(
    name: &str,
    text: &str,
    directory: &Path,
    changes: Changes<'_>,
    read_table: &TableReader,
) -> Result<Plan, Failure> {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let mut problems = Vec::new();
    let mut root = match parse_document(&sources, source) {
        Ok(root) => root,
        Err(problem) => return Err(Failure::new(&sources, vec![*problem])),
    };
    problems.extend(variants::take(&mut root, changes.variant));
    for (key, value) in changes.set {
        match Override::parse(&mut sources, key, value) {
            Ok(change) => problems.extend(apply(&mut root, change)),
            Err(problem) => problems.push(*problem),
        }
    }
    let files = Files::new(directory, read_table);
    let mut loader = Loader { schema: schema(), root, problems, files };
    match loader.plan(name) {
        Some(plan) => Ok(plan),
        None => Err(Failure::new(&sources, loader.problems)),
    }
}

/// Puts an override into the tree. If it names a swept key, a list replaces the values of that
/// axis, and a single value removes the axis.
fn apply(root: &mut Table, change: Override) -> Option<Problem> {
    let Override { path, key, place, node } = change;
    if let [first, scheme, ..] = path.as_slice() {
        let known = root.table("schemes");
        if first == "schemes" && known.is_none_or(|t| t.get(scheme).is_none()) {
            let names = || known.into_iter().flat_map(|t| &t.entries).map(|e| e.key.as_str());
            return Some(
                Problem::new(Code::UnknownScheme, place, format!("there is no scheme {scheme:?}"))
                    .key(key)
                    .expected(format!("one of {}", names().collect::<Vec<_>>().join(", ")))
                    .did_you_mean(scheme, names()),
            );
        }
    }
    let swept = axes(root).0.into_iter().any(|axis| axis.path == path);
    if let (true, Some(Value::Table(sweep))) =
        (swept, root.entries.iter_mut().find(|e| e.key == "sweep").map(|e| &mut e.node.value))
    {
        if matches!(node.value, Value::Array(_)) {
            replace_axis(sweep, &path, &mut Some((place, node)));
            return None;
        }
        replace_axis(sweep, &path, &mut None);
    }
    root.set(&path, place, node);
    None
}

/// Replaces the values of an axis where it stands, because the first axis varies slowest. Removes
/// the axis if `values` is `None`, or if they have been put elsewhere already.
fn replace_axis(sweep: &mut Table, path: &[String], values: &mut Option<(Span, Node)>) {
    sweep.entries.retain_mut(|entry| {
        let inner = crate::document::parse_key(&entry.key).unwrap_or_default();
        if inner == path {
            let Some((place, node)) = values.take() else { return false };
            (entry.place, entry.node) = (place, node);
        } else if let (Some(rest), Value::Table(table)) =
            (path.strip_prefix(inner.as_slice()), &mut entry.node.value)
        {
            replace_axis(table, rest, values);
        }
        true
    });
}

struct Loader<'a> {
    schema: Json,
    root: Table,
    problems: Vec<Problem>,
    files: Files<'a>,
}

impl Loader<'_> {
    fn plan(&mut self, name: &str) -> Option<Plan> {
        self.check_root();
        let (schemes, scheme_problems) = Schemes::new(&self.root, &self.schema);
        let inherits_well = scheme_problems.is_empty();
        self.problems.extend(scheme_problems);
        let (axes, sweep_problems) = axes(&self.root);
        self.problems.extend(sweep_problems);
        let header = self.header(&schemes);
        let size_fits = self.check_size(&schemes, &axes, header.seeds.len());
        let given = REQUIRED_SECTIONS.iter().all(|name| self.root.get(name).is_some());
        if !inherits_well || !size_fits || !given {
            return None;
        }
        let combinations = self.combinations(&schemes, &axes);
        if !self.problems.is_empty() {
            return None;
        }
        self.check_effect(&combinations, &schemes, &axes);
        let runs = self.runs(&combinations, &schemes, &axes, &header)?;
        Some(Plan {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: header.title,
            question: header.question,
            source_file: name.to_owned(),
            baseline: header.report.baseline.clone().unwrap_or_else(|| schemes.names[0].clone()),
            schemes: schemes.names,
            sweep: axes
                .iter()
                .map(|axis| SweepAxis {
                    key: axis.key.clone(),
                    values: axis.values.iter().map(crate::document::Node::label).collect(),
                })
                .collect(),
            seeds: header.seeds,
            measure: header.measure,
            model: header.model,
            lab: header.lab,
            report: header.report,
            runs,
        })
    }

    /// Checks the file as written. A scheme's changes are checked in the configurations that they
    /// make.
    fn check_root(&mut self) {
        let definitions = self.schema["$defs"].as_object().expect("the schema has definitions");
        let mut written = self.root.clone();
        written.remove("schemes");
        written.remove("sweep");
        let mut checker = Checker::new(definitions);
        checker.check_table(&self.schema, None, "", Span::default(), &written);
        self.problems.append(&mut checker.problems);
    }

    /// Checks one configuration, section by section.
    fn check_sections(&self, configuration: &Table) -> Vec<Problem> {
        let definitions = self.schema["$defs"].as_object().expect("the schema has definitions");
        let empty = Map::new();
        let properties = self.schema["properties"].as_object().unwrap_or(&empty);
        let mut checker = Checker::new(definitions);
        for &name in RUN_SECTIONS {
            if let (Some(entry), Some(schema)) = (configuration.entry(name), properties.get(name)) {
                checker.check(schema, name, entry.place, &entry.node);
            }
        }
        checker.problems
    }

    /// Refuses more than [`MAX_RUNS`](crate::file::MAX_RUNS) runs, before they are laid out.
    fn check_size(&mut self, schemes: &Schemes, axes: &[Axis], seeds: usize) -> bool {
        let runs = axes
            .iter()
            .map(|axis| axis.values.len())
            .chain([schemes.names.len(), seeds])
            .try_fold(1usize, usize::checked_mul)
            .filter(|runs| *runs <= crate::file::MAX_RUNS);
        if runs.is_none() {
            let place = self.root.entry("sweep").or(self.root.entry("seeds")).map(|e| e.place);
            let message = "schemes, swept values and seeds multiply to too many runs";
            let mut problem = Problem::without_place(Code::TooManyRuns, message)
                .expected(format!("at most {} runs", crate::file::MAX_RUNS));
            problem.place = place;
            self.problems.push(problem);
        }
        runs.is_some()
    }
}
