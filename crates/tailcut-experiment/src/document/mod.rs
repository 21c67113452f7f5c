//! An experiment as written: a tree of values in which every key and value knows its place in the text.
//!
//! Everything between the text and the typed configuration works on this tree (inheritance, sweeps, overrides,
//! the check against the schema), so that an error found late still points at what the reader typed.

mod node;
mod overrides;
mod parse;

pub use node::{Entry, Node, Table, Value};
pub use overrides::Override;
pub use parse::{parse_document, parse_key, write_key};

/// A stretch of one of the [`Sources`], in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Index into [`Sources`].
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

/// One text that values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file name as given, or `--set` for a value from the command line.
    pub name: String,
    /// The text itself.
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

    /// Line and column (in characters) of the start of a place, counted from 1.
    pub fn line_and_column(&self, place: Span) -> (usize, usize) {
        let before = &self.0[place.source].text[..place.start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
