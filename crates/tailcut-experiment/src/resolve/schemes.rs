//! Named schemes and their inheritance.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::merge::merge;
use crate::diagnostic::{Code, Problem};
use crate::document::{Entry, Node, Table, Value, write_key};
use crate::schema::union;
use crate::sections::{RUN_SECTIONS, SCHEME_SECTIONS, is_run_section, is_scheme_section};

/// The schemes of an experiment, in the order of the file.
pub struct Schemes {
    /// The names; a single `default` if the file has no schemes.
    pub names: Vec<String>,
    default_kinds: BTreeMap<&'static str, String>,
}

impl Schemes {
    /// Finds the schemes and checks their keys and their inheritance.
    pub fn new(root: &Table, schema: &Json) -> (Schemes, Vec<Problem>) {
        let default_kinds = RUN_SECTIONS
            .iter()
            .filter_map(|section| {
                let reference = schema["properties"][section]["$ref"].as_str()?;
                let name = reference.strip_prefix("#/$defs/")?;
                Some((*section, union::default_kind(&schema["$defs"][name])?.to_owned()))
            })
            .collect();
        let mut problems = Vec::new();
        let table = root.table("schemes");
        let mut names: Vec<String> =
            table.into_iter().flat_map(|t| &t.entries).map(|e| e.key.clone()).collect();
        for entry in table.into_iter().flat_map(|t| &t.entries) {
            check_form(entry, &mut problems);
            check_parents(entry, table.expect("the entry is in it"), &mut problems);
        }
        if let Some(Node { value: Value::Table(_), .. }) | None = root.get("schemes") {
            // Without schemes there is one: the file as it stands.
        } else if let Some(entry) = root.entry("schemes") {
            problems.push(not_a_table(entry, "schemes", "tables, such as [schemes.TCP]"));
        }
        if names.is_empty() {
            names.push("default".to_owned());
        }
        (Schemes { names, default_kinds }, problems)
    }

    /// Returns the kind that a section without `kind` has; `None` if it has no default kind.
    pub fn default_kind(&self, section: &str) -> Option<&str> {
        self.default_kinds.get(section).map(String::as_str)
    }

    /// Returns a scheme's changes, including inherited ones.
    pub fn changes(&self, root: &Table, scheme: usize) -> Table {
        let Some(table) = root.table("schemes") else { return Table::default() };
        let mut chain: Vec<&Table> = Vec::new();
        let mut next = table.table(&self.names[scheme]);
        // A cycle has been reported by now; the count ends the loop.
        while let Some(current) = next.filter(|_| chain.len() <= self.names.len()) {
            chain.push(current);
            next = current.get("like").and_then(Node::text).and_then(|parent| table.table(parent));
        }
        let mut changes = Table::default();
        for table in chain.into_iter().rev() {
            for entry in table.entries.iter().filter(|e| is_scheme_section(&e.key)) {
                let inherited = changes.table(&entry.key);
                let node = match (inherited, &entry.node.value) {
                    (Some(inherited), Value::Table(own)) => {
                        // Inherited changes without a kind have the kind of the base.
                        let base_kind = root
                            .table(&entry.key)
                            .and_then(|t| t.get("kind"))
                            .and_then(Node::text)
                            .or(self.default_kind(&entry.key));
                        let value = Value::Table(merge(inherited, own, base_kind));
                        Node { value, place: entry.node.place }
                    }
                    _ => entry.node.clone(),
                };
                changes.put(Entry { node, ..entry.clone() });
            }
        }
        changes
    }
}

fn not_a_table(entry: &Entry, key: &str, expected: &str) -> Problem {
    Problem::new(Code::WrongType, entry.node.place, format!("`{key}` is {}", entry.node.describe()))
        .key(key)
        .expected(expected)
}

/// Checks the keys of a scheme and their types. Their values are checked in the configurations that
/// they make.
fn check_form(scheme: &Entry, problems: &mut Vec<Problem>) {
    let path = write_key(&["schemes", scheme.key.as_str()]);
    let Value::Table(table) = &scheme.node.value else {
        problems.push(not_a_table(
            scheme,
            &path,
            &format!("a table of like, {}", SCHEME_SECTIONS.join(", ")),
        ));
        return;
    };
    for entry in &table.entries {
        let key = format!("{path}.{}", write_key(&[&entry.key]));
        if entry.key == "like" {
            if entry.node.text().is_none() {
                problems.push(not_a_table(entry, &key, "the name of another scheme"));
            }
        } else if is_scheme_section(&entry.key) {
            if !matches!(entry.node.value, Value::Table(_)) {
                let example = format!(
                    "a table of what changes, such as {{ kind = \"{}\" }}",
                    example(&entry.key)
                );
                problems.push(not_a_table(entry, &key, &example));
            }
        } else {
            let known = ["like"].into_iter().chain(SCHEME_SECTIONS.iter().copied());
            let mut problem = Problem::new(
                Code::UnknownKey,
                entry.place,
                format!("a scheme has no key `{}`", entry.key),
            )
            .key(key)
            .expected(format!("one of like, {}", SCHEME_SECTIONS.join(", ")))
            .did_you_mean(&entry.key, known);
            if is_run_section(&entry.key) {
                problem = problem.hint(format!(
                    "all schemes see the same network and the same flows; to vary `{}`, add it to [sweep]",
                    entry.key
                ));
            }
            problems.push(problem);
        }
    }
}

fn example(section: &str) -> &'static str {
    match section {
        "transport" => "tcp",
        "queue" => "drop-tail",
        "balance" => "ecmp",
        _ => "repflow",
    }
}

fn check_parents(scheme: &Entry, schemes: &Table, problems: &mut Vec<Problem>) {
    let names = || schemes.entries.iter().map(|e| e.key.as_str());
    let parent_of = |name: &str| schemes.table(name)?.get("like")?.text();
    let Some(like) = schemes.table(&scheme.key).and_then(|t| t.get("like")) else { return };
    let Some(parent) = like.text() else { return };
    let key = write_key(&["schemes", scheme.key.as_str(), "like"]);
    if schemes.get(parent).is_none() {
        problems.push(
            Problem::new(Code::UnknownScheme, like.place, format!("there is no scheme {parent:?}"))
                .key(key)
                .expected(format!("one of {}", names().collect::<Vec<_>>().join(", ")))
                .did_you_mean(parent, names()),
        );
        return;
    }
    let mut circle = vec![scheme.key.as_str()];
    let mut next = Some(parent);
    while let Some(name) = next {
        if name == scheme.key {
            circle.push(name);
            // Only the member that comes first in the file reports the cycle.
            let first = names().find(|n| circle.contains(n));
            if first == Some(scheme.key.as_str()) {
                let message =
                    format!("schemes inherit from each other in a cycle: {}", circle.join(" -> "));
                problems.push(
                    Problem::new(Code::LikeCycle, like.place, message)
                        .key(key)
                        .expected("a scheme that does not inherit from this one"),
                );
            }
            return;
        }
        if circle.contains(&name) {
            return;
        }
        circle.push(name);
        next = parent_of(name);
    }
}
