//! The table `[small]`: what a file changes of itself to be run in seconds (`tailcut run FILE --small`).

use super::{Loader, apply};
use crate::diagnostic::{Checked, Code, Problem};
use crate::document::{Entry, Node, Override, Table, Value, parse_key};
use crate::schema::schema;

const SMALL: &str = "small";

/// Takes `[small]` out of the tree, and applies it where it is `wanted`: its keys override others as `--set` does.
///
/// Returns what is wrong with the table. Where it is not wanted its keys are checked all the same.
pub(super) fn take(root: &mut Table, wanted: bool) -> Vec<Problem> {
    let Some(small) = root.remove(SMALL) else {
        let message = "the file has no table [small]";
        let hint = "write [small] with the keys to change, such as \"horizon.arrivals\" = \"20ms\", or leave --small out";
        let missing = || Problem::without_place(Code::MissingKey, message).key(SMALL).hint(hint);
        return wanted.then(missing).into_iter().collect();
    };
    let changes = match changes(&small) {
        Ok(changes) => changes,
        Err(problem) => return vec![*problem],
    };
    if wanted {
        let problems = changes.into_iter().filter_map(|change| apply(root, change)).collect();
        mark_title(root);
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

/// The table's entries as overrides; inner tables are paths.
fn changes(small: &Entry) -> Checked<Vec<Override>> {
    let Value::Table(table) = &small.node.value else {
        let message = format!("`{SMALL}` is {}", small.node.describe());
        return Err(Problem::new(Code::WrongType, small.node.place, message)
            .key(SMALL)
            .expected("a table of keys and values")
            .into());
    };
    let mut found = vec![];
    collect(table, &[], &mut found)?;
    Ok(found)
}

fn collect(table: &Table, outer: &[String], found: &mut Vec<Override>) -> Checked<()> {
    for Entry { key, place, node } in &table.entries {
        let Some(inner) = parse_key(key) else {
            let message = format!("{key:?} is not a key");
            return Err(Problem::new(Code::BadOverride, *place, message)
                .key(SMALL)
                .expected("dotted keys, such as \"traffic.load\"")
                .into());
        };
        let path = [outer, &inner].concat();
        match &node.value {
            Value::Table(table) => collect(table, &path, found)?,
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

/// Marks the title as that of the small variant.
fn mark_title(root: &mut Table) {
    let title = root.entries.iter_mut().find(|entry| entry.key == "title");
    if let Some(Entry { node: Node { value: Value::Text(title), .. }, .. }) = title {
        title.push_str(" (small)");
    }
}
