//! The axes of a sweep.

use crate::diagnostic::{Code, Problem};
use crate::document::{Node, Span, Table, Value, parse_key, write_key};
use crate::sections::{RUN_SECTIONS, SCHEME_SECTIONS, is_run_section, is_scheme_section};

/// A swept key and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key as text, such as `traffic.load`.
    pub key: String,
    /// The key as a path.
    pub path: Vec<String>,
    /// The place of the key.
    pub place: Span,
    /// The values, at least one.
    pub values: Vec<Node>,
}

/// Returns the axes of `[sweep]` in the order of the file, and the problems found.
///
/// A key may be quoted (`"traffic.load" = […]`) or dotted (`traffic.load = […]`).
pub fn axes(root: &Table) -> (Vec<Axis>, Vec<Problem>) {
    let (mut axes, mut problems) = (Vec::new(), Vec::new());
    match root.get("sweep").map(|node| &node.value) {
        None => {}
        Some(Value::Table(table)) => collect(table, &[], root, &mut axes, &mut problems),
        Some(_) => {
            let node = root.get("sweep").expect("it was just there");
            problems.push(wrong_type("sweep", node, "a table of keys and lists of values"));
        }
    }
    (axes, problems)
}

fn wrong_type(key: &str, node: &Node, expected: &str) -> Problem {
    Problem::new(Code::WrongType, node.place, format!("`{key}` is {}", node.describe()))
        .key(key)
        .expected(expected)
}

fn collect(
    table: &Table,
    prefix: &[String],
    root: &Table,
    axes: &mut Vec<Axis>,
    problems: &mut Vec<Problem>,
) {
    for entry in &table.entries {
        let Some(inner) = parse_key(&entry.key) else {
            problems.push(
                Problem::new(
                    Code::BadSweepKey,
                    entry.place,
                    format!("{:?} is not a key", entry.key),
                )
                .key("sweep")
                .expected("dotted keys, such as \"traffic.load\""),
            );
            continue;
        };
        let path = [prefix, &inner].concat();
        let key = write_key(&path);
        let values = match &entry.node.value {
            Value::Table(table) => {
                collect(table, &path, root, axes, problems);
                continue;
            }
            Value::Array(values) => values,
            _ => {
                problems.push(
                    wrong_type(&format!("sweep.{key}"), &entry.node, "a list of values").hint(
                        format!("write [{}] to sweep over this single value", shown(&entry.node)),
                    ),
                );
                continue;
            }
        };
        let found = problems.len();
        problems.extend(check_path(&path, &key, entry.place, root));
        problems.extend(check_values(&key, &entry.node, values));
        if axes.iter().any(|axis| axis.path == path) {
            problems.push(
                Problem::new(Code::Duplicate, entry.place, format!("`{key}` is swept twice"))
                    .key(format!("sweep.{key}")),
            );
        }
        if problems.len() == found {
            axes.push(Axis { key, path, place: entry.place, values: values.clone() });
        }
    }
}

fn shown(node: &Node) -> String {
    node.to_json().to_string()
}

fn check_path(path: &[String], key: &str, place: Span, root: &Table) -> Option<Problem> {
    let first = path.first()?;
    let problem = |message: String| {
        Problem::new(Code::BadSweepKey, place, message).key(format!("sweep.{key}"))
    };
    if first == "schemes" {
        let names =
            || root.table("schemes").into_iter().flat_map(|t| &t.entries).map(|e| e.key.as_str());
        let scheme = path.get(1).map_or("", String::as_str);
        if !names().any(|name| name == scheme) {
            return Some(
                Problem::new(Code::UnknownScheme, place, format!("there is no scheme {scheme:?}"))
                    .key(format!("sweep.{key}"))
                    .expected(format!("one of {}", names().collect::<Vec<_>>().join(", ")))
                    .did_you_mean(scheme, names()),
            );
        }
        let section = path.get(2).map_or("", String::as_str);
        return (!is_scheme_section(section)).then(|| {
            problem(format!("`{key}` cannot be swept"))
                .expected(format!(
                    "a key below one of {} of the scheme {scheme:?}",
                    SCHEME_SECTIONS.join(", ")
                ))
                .did_you_mean(section, SCHEME_SECTIONS.iter().copied())
        });
    }
    (!is_run_section(first)).then(|| {
        problem(format!("`{key}` cannot be swept"))
            .expected(format!("a key below {} or schemes", RUN_SECTIONS.join(", ")))
            .did_you_mean(first, RUN_SECTIONS.iter().copied().chain(["schemes"]))
    })
}

fn check_values(key: &str, list: &Node, values: &[Node]) -> Vec<Problem> {
    if values.is_empty() {
        return vec![
            Problem::new(
                Code::EmptySweep,
                list.place,
                format!("the sweep of `{key}` has no values"),
            )
            .key(format!("sweep.{key}"))
            .expected("a list of at least one value"),
        ];
    }
    let mut problems = Vec::new();
    for (i, value) in values.iter().enumerate() {
        if values[..i].iter().any(|earlier| same(&earlier.value, &value.value)) {
            let message = format!("the sweep of `{key}` lists {} twice", shown(value));
            problems.push(
                Problem::new(Code::Duplicate, value.place, message)
                    .key(format!("sweep.{key}"))
                    .expected("values that differ"),
            );
        }
    }
    problems
}

/// Returns whether two values are equal as written. An integer equals a floating-point number of
/// the same value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(i), Value::Float(f)) | (Value::Float(f), Value::Integer(i)) => {
            *i as f64 == *f
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.value, &b.value))
        }
        (Value::Table(a), Value::Table(b)) => {
            a.entries.len() == b.entries.len()
                && a.entries
                    .iter()
                    .all(|e| b.get(&e.key).is_some_and(|n| same(&e.node.value, &n.value)))
        }
        (Value::Array(_) | Value::Table(_), _) | (_, Value::Array(_) | Value::Table(_)) => false,
        (a, b) => a == b,
    }
}
