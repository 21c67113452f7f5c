//! An experiment as written: a tree of values in which every key and value knows its place in the
//! text.
//!
//! Inheritance, sweeps, overrides and the check against the schema work on this tree, so an error
//! found late still points at what was typed.

mod node;
mod overrides;
mod parse;

pub use node::{Entry, Node, Table, Value};
pub use overrides::Override;
pub use parse::{parse_document, parse_key, write_key};

/// A range of bytes in one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Index into [`Sources`].
    pub source: usize,
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

/// A text that values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file name as given, or `--set` for a value from the command line.
    pub name: String,
    /// The content of the file or of the override.
    pub text: String,
}

/// The texts that values come from: the file first, then one per override.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.0.push(Source { name: name.into(), text: text.into() });
        self.0.len() - 1
    }

    /// Returns the line and the column (in characters) at which `place` starts, both counted from
    /// 1.
    pub fn line_and_column(&self, place: Span) -> (usize, usize) {
        let before = &self.0[place.source].text[..place.start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
