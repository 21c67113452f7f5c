//! Turns configuration trees into typed configurations.

use serde_json::{Value as Json, json};
use tailcut_net::component::SpecError;

use super::Loader;
use crate::config::TableOptions;
use crate::diagnostic::{Checked, Code, Problem};
use crate::document::{Node, Span, Table, Value, write_key};
use crate::file::MeasureSpec;
use crate::plan::canonical;
use crate::resolve::{Axis, Schemes, configuration, points};
use crate::sections::{Config, RUN_SECTIONS, is_scheme_section};

/// A scheme at a point of the sweep.
pub(super) struct Combination {
    pub scheme: usize,
    /// The index of the value on each axis.
    pub point: Vec<usize>,
    pub tree: Table,
    pub config: Config,
}

impl Loader<'_> {
    /// Returns every scheme at every point that passes the schema and the components' own checks.
    /// Adds the problems of the others.
    pub(super) fn combinations(&mut self, schemes: &Schemes, axes: &[Axis]) -> Vec<Combination> {
        let labels = TableOptions::from(&self.measure());
        let mut combinations = Vec::new();
        let mut found = Vec::new();
        for point in points(axes) {
            for scheme in 0..schemes.names.len() {
                let tree = configuration(&self.root, schemes, scheme, axes, &point);
                let problems = self.check_sections(&tree);
                if !problems.is_empty() {
                    found.extend(problems);
                    continue;
                }
                match self.typed(&tree, schemes, &labels) {
                    Ok(config) => {
                        found.extend(config.check().iter().map(|(section, error)| {
                            let written = if *section == "measure" { &self.root } else { &tree };
                            unrealisable(written, section, error)
                        }));
                        let point = point.clone();
                        combinations.push(Combination { scheme, point, tree, config });
                    }
                    Err(problem) => found.push(*problem),
                }
            }
        }
        self.add(found);
        combinations
    }

    /// Adds problems. The key of a problem inside a scheme gets its full path.
    pub(super) fn add(&mut self, problems: Vec<Problem>) {
        let mut places = Vec::new();
        if let Some(schemes) = self.root.table("schemes") {
            for scheme in &schemes.entries {
                let mut within = Vec::new();
                collect_places(&scheme.node, &mut within);
                places.extend(within.into_iter().map(|place| (place, &scheme.key)));
            }
        }
        let renamed = problems.into_iter().map(|mut problem| {
            let inside = places.iter().find(|(place, _)| Some(*place) == problem.place);
            if let Some((_, scheme)) = inside {
                problem.key =
                    format!("{}.{}", write_key(&["schemes", scheme.as_str()]), problem.key);
            }
            problem
        });
        self.problems.extend(renamed);
    }

    fn measure(&self) -> MeasureSpec {
        let written = self.root.get("measure").map(Node::to_json);
        written.and_then(|json| serde_json::from_value(json).ok()).unwrap_or_default()
    }

    fn typed(&self, tree: &Table, schemes: &Schemes, labels: &TableOptions) -> Checked<Config> {
        let mut sections = json!({ "scheme": {}, "labels": labels });
        for &name in RUN_SECTIONS {
            let mut value = tree.get(name).map_or_else(|| json!({}), Node::to_json);
            let default = schemes.default_kind(name);
            if let (Some(kind), Some(map)) = (default, value.as_object_mut()) {
                map.entry("kind").or_insert_with(|| kind.into());
            }
            match is_scheme_section(name) {
                true => sections["scheme"][name] = value,
                false => sections[name] = value,
            }
        }
        serde_path_to_error::deserialize(&sections).map_err(|error| {
            let path = error.path().to_string();
            let path = path.strip_prefix("scheme.").unwrap_or(&path);
            let message = error.inner().to_string();
            Problem::new(Code::WrongType, locate(tree, path), message).key(path).into()
        })
    }

    /// Refuses sweeps whose values change no run, or of which two values make the same runs.
    pub(super) fn check_effect(
        &mut self,
        combinations: &[Combination],
        schemes: &Schemes,
        axes: &[Axis],
    ) {
        let texts: Vec<String> = combinations
            .iter()
            .map(|c| {
                canonical(&serde_json::to_value(&c.config).expect("a configuration is plain data"))
            })
            .collect();
        for (number, axis) in axes.iter().enumerate() {
            let slice = |value: usize| -> Vec<&str> {
                let members =
                    combinations.iter().zip(&texts).filter(|(c, _)| c.point[number] == value);
                members.map(|(_, text)| text.as_str()).collect()
            };
            let slices: Vec<Vec<&str>> = (0..axis.values.len()).map(slice).collect();
            if slices.len() > 1 && slices.iter().all(|s| s == &slices[0]) {
                let all = match schemes.names.as_slice() {
                    [_] => "the scheme sets it itself".to_owned(),
                    names => format!("every scheme sets it itself ({})", names.join(", ")),
                };
                self.problems.push(
                    Problem::new(
                        Code::IdleSweep,
                        axis.place,
                        format!("sweeping `{}` changes no run", axis.key),
                    )
                    .key(format!("sweep.{}", axis.key))
                    .hint(format!("{all}; sweep \"schemes.NAME.{}\" instead", axis.key)),
                );
                continue;
            }
            for (i, value) in axis.values.iter().enumerate() {
                if let Some(same) = (0..i).find(|&earlier| slices[earlier] == slices[i]) {
                    let (a, b) = (axis.values[same].to_json(), value.to_json());
                    let message = format!("{a} and {b} are the same value of `{}`", axis.key);
                    self.problems.push(
                        Problem::new(Code::Duplicate, value.place, message)
                            .key(format!("sweep.{}", axis.key))
                            .expected("values that differ"),
                    );
                }
            }
        }
    }
}

fn collect_places(node: &Node, places: &mut Vec<Span>) {
    places.push(node.place);
    match &node.value {
        Value::Table(table) => {
            for entry in &table.entries {
                places.push(entry.place);
                collect_places(&entry.node, places);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_places(item, places)),
        _ => {}
    }
}

/// Returns a component's error as a problem, at the place of the parameter that it names.
pub(super) fn unrealisable(tree: &Table, section: &str, error: &SpecError) -> Problem {
    let path = format!("{section}.{}", error.field);
    let mut problem =
        Problem::new(Code::Unrealisable, locate(tree, &path), &error.message).key(path);
    problem.rule = Some(error.code);
    problem.hint.clone_from(&error.hint);
    problem
}

/// Returns the place of the value at a path such as `traffic.parts[0].load`, or of its closest
/// ancestor in the text.
fn locate(tree: &Table, path: &str) -> Span {
    let path: Vec<String> = path
        .split(['.', '['])
        .map(|segment| segment.trim_end_matches(']').to_owned())
        .filter(|segment| !segment.is_empty())
        .collect();
    let found = (1..=path.len()).rev().find_map(|length| {
        let node = tree.at(&path[..length])?;
        Some(match (&node.value, length < path.len(), length) {
            // The parameter has its default: point at the key of its table.
            (Value::Table(_), true, 1) => tree.entry(&path[0])?.place,
            _ => node.place,
        })
    });
    found.unwrap_or_default()
}

/// Returns a point as in the plan: key and value of every axis.
pub(super) fn point_json(axes: &[Axis], point: &[usize]) -> serde_json::Map<String, Json> {
    axes.iter().zip(point).map(|(axis, &i)| (axis.key.clone(), axis.values[i].label())).collect()
}
