//! Merges tables key by key.

use crate::document::{Entry, Node, Table, Value};

/// Returns `base` with the entries of `change` put over it; tables are merged key by key.
///
/// A change of `kind` discards `base`, because the parameters of one component mean nothing to
/// another. `default` is the kind of a `base` that names none.
pub fn merge(base: &Table, change: &Table, default: Option<&str>) -> Table {
    let kind = |table: &Table| table.get("kind").and_then(Node::text).map(str::to_owned);
    let base_kind = kind(base).or(default.map(str::to_owned));
    if kind(change).is_some_and(|kind| Some(kind) != base_kind) {
        return change.clone();
    }
    let mut merged = base.clone();
    for entry in &change.entries {
        let node = match (base.table(&entry.key), &entry.node.value) {
            (Some(inner), Value::Table(change)) => {
                Node { value: Value::Table(merge(inner, change, None)), place: entry.node.place }
            }
            _ => entry.node.clone(),
        };
        merged.put(Entry { key: entry.key.clone(), place: entry.place, node });
    }
    merged
}
