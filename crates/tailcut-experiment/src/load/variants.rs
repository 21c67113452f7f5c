//! The tables `[small]` and `[medium]`: what a file changes of itself to be run in seconds or in a
//! minute (`tailcut run FILE --small`).

use super::{Loader, apply};
use crate::diagnostic::{Checked, Code, Problem};
use crate::document::{Entry, Node, Override, Table, Value, parse_key};
use crate::schema::schema;

/// A variant that a file may have of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// For a run in seconds, to see that an experiment works.
    Small,
    /// For a figure in about a minute; its `about` says what it leaves out.
    Medium,
}

impl Variant {
    /// Every variant.
    pub const ALL: [Variant; 2] = [Variant::Small, Variant::Medium];

    /// Returns the variant of this name.
    pub fn named(name: &str) -> Option<Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// Returns the table's name, which is the option's, too.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Small => "small",
            Variant::Medium => "medium",
        }
    }
}

/// Takes the tables of all variants out of the tree, and applies that of `wanted`: its keys
/// override others as `--set` does.
///
/// Returns what is wrong with the tables; those that are not wanted are checked all the same.
pub(super) fn take(root: &mut Table, wanted: Option<Variant>) -> Vec<Problem> {
    let tables = Variant::ALL.map(|variant| (variant, root.remove(variant.name())));
    let mut problems = vec![];
    for (variant, table) in tables {
        let is_wanted = wanted == Some(variant);
        match table {
            Some(table) => problems.extend(take_one(root, variant, table, is_wanted)),
            None if is_wanted => problems.push(absent(variant)),
            None => {}
        }
    }
    problems
}

fn absent(variant: Variant) -> Problem {
    let name = variant.name();
    Problem::without_place(Code::MissingKey, format!("the file has no table [{name}]")).key(name).hint(
        format!(
            "write [{name}] with the keys to change, such as \"horizon.arrivals\" = \"20ms\", or leave --{name} out"
        ),
    )
}

fn take_one(root: &mut Table, variant: Variant, mut table: Entry, wanted: bool) -> Vec<Problem> {
    let label = match label(variant, &mut table) {
        Ok(label) => label,
        Err(problem) => return vec![*problem],
    };
    let changes = match changes(variant.name(), &table) {
        Ok(changes) => changes,
        Err(problem) => return vec![*problem],
    };
    if wanted {
        let problems = changes.into_iter().filter_map(|change| apply(root, change)).collect();
        mark_title(root, &label);
        return problems;
    }
    let places: Vec<_> = changes.iter().flat_map(|one| [one.place, one.node.place]).collect();
    let mut tried = root.clone();
    let applied = changes.into_iter().filter_map(|change| apply(&mut tried, change)).collect();
    let files = super::Files::new(std::path::Path::new(""), &super::no_table_reader);
    let mut loader = Loader { schema: schema(), root: tried, problems: applied, files };
    loader.check_root();
    loader.problems.retain(|problem| problem.place.is_some_and(|place| places.contains(&place)));
    loader.problems
}

/// Returns the words with which the variant marks the title: its name, or the table's `about`,
/// which is taken out.
fn label(variant: Variant, table: &mut Entry) -> Checked<String> {
    let (place, name) = (table.node.place, variant.name());
    let Value::Table(inner) = &mut table.node.value else { return Ok(name.into()) };
    if variant == Variant::Small {
        return Ok(name.into());
    }
    match inner.remove("about") {
        Some(Entry { node: Node { value: Value::Text(about), .. }, .. }) => Ok(about),
        Some(entry) => {
            let message = format!("`{name}.about` is {}", entry.node.describe());
            Err(Problem::new(Code::WrongType, entry.node.place, message)
                .key("medium.about")
                .expected("a text")
                .into())
        }
        None => {
            let message = "[medium] does not say what it leaves out";
            Err(Problem::new(Code::MissingKey, place, message)
                .key("medium.about")
                .hint("add about = \"8 pods, 4 of 8 loads, 3 seeds\": it becomes part of the title")
                .into())
        }
    }
}

/// The table's entries as overrides; inner tables are paths.
fn changes(name: &'static str, variant: &Entry) -> Checked<Vec<Override>> {
    let Value::Table(table) = &variant.node.value else {
        let message = format!("`{name}` is {}", variant.node.describe());
        return Err(Problem::new(Code::WrongType, variant.node.place, message)
            .key(name)
            .expected("a table of keys and values")
            .into());
    };
    let mut found = vec![];
    collect(name, table, &[], &mut found)?;
    Ok(found)
}

fn collect(
    name: &'static str,
    table: &Table,
    outer: &[String],
    found: &mut Vec<Override>,
) -> Checked<()> {
    for Entry { key, place, node } in &table.entries {
        let Some(inner) = parse_key(key) else {
            let message = format!("{key:?} is not a key");
            return Err(Problem::new(Code::BadOverride, *place, message)
                .key(name)
                .expected("dotted keys, such as \"traffic.load\"")
                .into());
        };
        let path = [outer, &inner].concat();
        match &node.value {
            Value::Table(table) => collect(name, table, &path, found)?,
            _ => found.push(Override {
                key: path.join("."),
                path,
                place: *place,
                node: node.clone(),
            }),
        }
    }
    Ok(())
}

/// Marks the title as that of a variant.
fn mark_title(root: &mut Table, label: &str) {
    let title = root.entries.iter_mut().find(|entry| entry.key == "title");
    if let Some(Entry { node: Node { value: Value::Text(title), .. }, .. }) = title {
        title.push_str(&format!(" ({label})"));
    }
}
