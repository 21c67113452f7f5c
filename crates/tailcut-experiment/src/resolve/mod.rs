//! Resolves a file into one configuration tree per scheme and sweep point.

mod merge;
mod schemes;
mod sweep;

use crate::document::{Entry, Node, Table, Value};
use crate::sections::RUN_SECTIONS;

pub use schemes::Schemes;
pub use sweep::{Axis, axes};

/// Returns the configuration of a scheme at a point of the sweep: the sections of [`RUN_SECTIONS`]
/// that are written.
///
/// A swept value replaces the one in the file before the scheme makes its changes. A scheme that
/// sets a swept key itself therefore keeps its own value.
pub fn configuration(
    root: &Table,
    schemes: &Schemes,
    scheme: usize,
    axes: &[Axis],
    point: &[usize],
) -> Table {
    let mut swept = root.clone();
    for (axis, &index) in axes.iter().zip(point) {
        swept.set(&axis.path, axis.place, axis.values[index].clone());
    }
    let changes = schemes.changes(&swept, scheme);
    let mut configuration = Table::default();
    for &name in RUN_SECTIONS {
        if let Some(entry) = swept.entry(name) {
            configuration.put(entry.clone());
        }
        if let Some(change) = changes.entry(name) {
            let merged = match (configuration.table(name), &change.node.value) {
                (Some(base), Value::Table(table)) => {
                    let merged = merge::merge(base, table, schemes.default_kind(name));
                    let base = configuration.entry(name).expect("the base is an entry");
                    let replaced = merged.get("kind") == table.get("kind");
                    let place = if replaced { change.place } else { base.place };
                    let node = Node { value: Value::Table(merged), place: base.node.place };
                    Entry { key: name.to_owned(), place, node }
                }
                _ => change.clone(),
            };
            configuration.put(merged);
        }
    }
    configuration
}

/// Returns every combination of value indices; the first axis varies slowest.
pub fn points(axes: &[Axis]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![vec![]], |points, axis| {
        points
            .into_iter()
            .flat_map(|point| {
                (0..axis.values.len()).map(move |i| [point.as_slice(), &[i]].concat())
            })
            .collect()
    })
}
