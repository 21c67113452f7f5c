//! Values from the command line: `--set traffic.load=0.3`.

use super::{Node, Sources, Span, Table, Value, parse_document, parse_key};
use crate::diagnostic::{Checked, Code, Problem};

/// One `--set`: a path of keys and the new value.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The keys, outermost first.
    pub path: Vec<String>,
    /// The path as typed.
    pub key: String,
    /// The place of the path in the override's own source.
    pub place: Span,
    /// The value.
    pub node: Node,
}

impl Override {
    /// Reads one override and adds it as a source of its own.
    ///
    /// The value is written as in TOML. Text that is not a TOML value is taken as a string, because
    /// shells remove quotes: `--set queue.limit=25packets`.
    ///
    /// # Errors
    /// If the key is not a dotted path of keys.
    pub fn parse(sources: &mut Sources, key: &str, value: &str) -> Checked<Override> {
        let source = sources.add("--set", format!("{key}={value}"));
        let place = Span { source, start: 0, end: key.len() };
        let Some(path) = parse_key(key) else {
            return Err(Problem::new(Code::BadOverride, place, format!("{key:?} is not a key"))
                .expected("dotted keys and a value, such as traffic.load=0.3")
                .into());
        };
        let value_place = Span { source, start: key.len() + 1, end: key.len() + 1 + value.len() };
        let mut node = parse_document(sources, source)
            .ok()
            .as_ref()
            .and_then(|tree: &Table| tree.at(&path))
            .cloned()
            .unwrap_or_else(|| Node { value: Value::Text(value.to_owned()), place: value_place });
        node.place = value_place;
        Ok(Override { path, key: key.to_owned(), place, node })
    }
}
