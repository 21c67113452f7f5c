//! Checks a tree against the schema: every wrong key, type, word, number and unit, each at its
//! place.
//!
//! The schema is composed of the components' parameter structs, so a new component needs no new
//! check. Components themselves check what a schema cannot express, such as an even `k` or a window
//! of at least one segment.

mod expect;
mod scalar;

use serde_json::{Map, Value as Json};

use tailcut_net::component::did_you_mean;

use crate::diagnostic::{Code, Problem};
use crate::document::{Entry, Node, Span, Table, Value, write_key};
use crate::schema::union;

pub use expect::expectation;

/// Checks nodes against a schema and its definitions.
pub struct Checker<'a> {
    definitions: &'a Map<String, Json>,
    /// The problems found so far.
    pub problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    /// Creates a checker with the `$defs` of a schema.
    pub fn new(definitions: &'a Map<String, Json>) -> Checker<'a> {
        Checker { definitions, problems: Vec::new() }
    }

    /// Checks one value. `key` is its dotted path, `place` the place of its key in the text.
    pub fn check(&mut self, schema: &'a Json, key: &str, place: Span, node: &Node) {
        if let Some((name, target)) = self.reference(schema) {
            if scalar::is_quantity(name) {
                self.problems.extend(scalar::quantity(name, key, node));
            } else {
                self.check(target, key, place, node);
            }
        } else if let Some(branches) = union::branches(schema) {
            self.check_union(schema, branches, key, place, node);
        } else if let Some(parts) = schema.get("allOf").and_then(Json::as_array) {
            for part in parts {
                self.check(part, key, place, node);
            }
        } else if let (Value::Table(table), true) = (&node.value, expect::allows(schema, "object"))
        {
            self.check_table(schema, None, key, place, table);
        } else if let (Value::Array(items), true) = (&node.value, expect::allows(schema, "array")) {
            self.check_array(schema, key, node, items);
        } else {
            self.problems.extend(scalar::scalar(schema, key, node));
        }
    }

    /// Checks the entries of a table. `tag` is the key, already checked, that chose this kind of
    /// table.
    pub fn check_table(
        &mut self,
        schema: &'a Json,
        tag: Option<&str>,
        key: &str,
        place: Span,
        table: &Table,
    ) {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object);
        let additional = schema.get("additionalProperties");
        for entry in table.entries.iter().filter(|e| Some(e.key.as_str()) != tag) {
            let path = join(key, &entry.key);
            match (properties.and_then(|p| p.get(&entry.key)), additional) {
                (Some(property), _) => self.check(property, &path, entry.place, &entry.node),
                (None, Some(Json::Bool(true))) => {}
                (None, Some(other @ Json::Object(_))) => {
                    self.check(other, &path, entry.place, &entry.node)
                }
                (None, _) => {
                    self.problems.push(unknown_key(properties.unwrap_or(&none), &path, key, entry))
                }
            }
        }
        // A misspelt key has been reported as unknown: do not report it as missing, too.
        let names = || properties.into_iter().flatten().map(|p| p.0.as_str());
        let meant: Vec<_> = table
            .entries
            .iter()
            .filter(|e| !names().any(|name| name == e.key))
            .filter_map(|e| did_you_mean(&e.key, names()))
            .collect();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten();
        let missing = required.filter_map(Json::as_str).filter(|name| table.get(name).is_none());
        for name in missing.filter(|name| !meant.contains(name)) {
            let expected = properties
                .and_then(|p| p.get(name))
                .map(|property| format!("`{name}`: {}", expectation(self.definitions, property)));
            let what =
                if key.is_empty() { "the experiment".to_owned() } else { format!("`{key}`") };
            let mut problem =
                Problem::new(Code::MissingKey, place, format!("{what} has no `{name}`"))
                    .key(join(key, name));
            problem.expected = expected;
            self.problems.push(problem);
        }
    }

    fn check_array(&mut self, schema: &'a Json, key: &str, node: &Node, items: &[Node]) {
        let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            let message = format!("`{key}` has {} elements", items.len());
            self.problems.push(
                Problem::new(Code::OutOfRange, node.place, message).key(key).expected(format!(
                    "a list of at least {least} element{}",
                    if least == 1 { "" } else { "s" }
                )),
            );
        }
        let Some(element) = schema.get("items") else { return };
        for (i, item) in items.iter().enumerate() {
            self.check(element, &format!("{key}[{i}]"), item.place, item);
        }
    }

    /// Checks a value against a union, whose branches differ by `kind`, by constant or by type.
    fn check_union(
        &mut self,
        schema: &'a Json,
        branches: &'a [Json],
        key: &str,
        place: Span,
        node: &Node,
    ) {
        if let Some(words) = union::words(schema) {
            self.problems.extend(scalar::word(&words, key, node));
            return;
        }
        if let (Some(kinds), Value::Table(table)) = (union::kinds(schema), &node.value) {
            self.check_kind(schema, &kinds, key, place, table);
            return;
        }
        let words = union::constants(branches);
        if node.text().is_some_and(|text| words.contains(&text)) {
            return;
        }
        let open = |branch: &&Json| branch.get("const").is_none();
        let fitting = branches.iter().filter(open).find(|branch| self.takes(branch, node));
        match fitting {
            None if node.text().is_some() && !words.is_empty() => {
                self.problems.extend(scalar::word(&words, key, node));
            }
            Some(branch) => self.check(branch, key, place, node),
            None => self.problems.push(scalar::wrong_type(
                expectation(self.definitions, schema),
                key,
                node,
            )),
        }
    }

    fn check_kind(
        &mut self,
        schema: &'a Json,
        kinds: &[(&'a str, &'a Json)],
        key: &str,
        place: Span,
        table: &Table,
    ) {
        let names = || kinds.iter().map(|k| k.0);
        let list = || format!("one of {}", names().collect::<Vec<_>>().join(", "));
        let kind = match table.get("kind") {
            None => match union::default_kind(schema) {
                Some(kind) => kind,
                None => {
                    let message = format!("`{key}` has no `kind`");
                    self.problems.push(
                        Problem::new(Code::MissingKey, place, message)
                            .key(join(key, "kind"))
                            .expected(format!("`kind`: {}", list())),
                    );
                    return;
                }
            },
            Some(node) => match node.text() {
                Some(kind) => kind,
                None => {
                    self.problems.push(scalar::wrong_type(list(), &join(key, "kind"), node));
                    return;
                }
            },
        };
        match kinds.iter().find(|k| k.0 == kind) {
            Some((_, branch)) => self.check_table(branch, Some("kind"), key, place, table),
            None => {
                let at = table.get("kind").map_or(place, |node| node.place);
                let message = format!("`{key}` has no kind {kind:?}");
                let problem = Problem::new(Code::UnknownKind, at, message)
                    .key(join(key, "kind"))
                    .expected(list());
                let routes = key.split('.').any(|part| matches!(part, "topology" | "balance"));
                self.problems.push(match tailcut_net::topology::non_minimal(kind) {
                    Some(why) if routes => problem.hint(why),
                    _ => problem.did_you_mean(kind, names()),
                });
            }
        }
    }

    /// Returns whether `branch` accepts the type of the value, whatever its content.
    fn takes(&self, branch: &'a Json, node: &Node) -> bool {
        if let Some((name, target)) = self.reference(branch) {
            return match scalar::is_quantity(name) {
                // A bare number in place of a quantity lacks its unit: the quantity's message says
                // so best.
                true => matches!(node.value, Value::Text(_) | Value::Integer(_) | Value::Float(_)),
                false => self.takes(target, node),
            };
        }
        match union::branches(branch) {
            Some(branches) => branches.iter().any(|b| self.takes(b, node)),
            None => expect::type_of(node).iter().any(|name| expect::allows(branch, name)),
        }
    }

    fn reference(&self, schema: &'a Json) -> Option<(&'a str, &'a Json)> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        Some((name, self.definitions.get(name)?))
    }
}

fn unknown_key(known: &Map<String, Json>, path: &str, parent: &str, entry: &Entry) -> Problem {
    let what = if parent.is_empty() { "an experiment".to_owned() } else { format!("`{parent}`") };
    let names = || known.keys().map(String::as_str);
    let problem =
        Problem::new(Code::UnknownKey, entry.place, format!("{what} has no key `{}`", entry.key))
            .key(path)
            .did_you_mean(&entry.key, names());
    match names().any(|name| name != "kind") {
        true => problem.expected(format!("one of {}", names().collect::<Vec<_>>().join(", "))),
        false => problem.expected("no key but `kind`: it has no parameters"),
    }
}

fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { write_key(&[key]) } else { format!("{parent}.{}", write_key(&[key])) }
}
