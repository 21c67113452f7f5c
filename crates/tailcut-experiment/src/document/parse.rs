//! Parses TOML text into a tree.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{Entry, Node, Sources, Span, Table, Value};
use crate::diagnostic::{Checked, Code, Problem};

/// Parses the text of a source.
///
/// # Errors
/// The first syntax error only: a parser can but guess what follows it.
pub fn parse_document(sources: &Sources, source: usize) -> Checked<Table> {
    let text = &sources.0[source].text;
    let tree = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        let hint = match error.message() {
            "duplicate key" => "remove this key or the one above it: a key may occur only once",
            _ => "check the place shown and the text just before it; strings and quantities need quotes",
        };
        Problem::new(Code::Syntax, place(source, span, text.len()), error.message()).hint(hint)
    })?;
    table(source, text, tree.get_ref())
}

/// Parses a dotted path as written in TOML, such as `schemes."RepFlow 2".replicate.copies`, into
/// its keys. Returns `None` if the text is not a path.
pub fn parse_key(text: &str) -> Option<Vec<String>> {
    let with_value = format!("{text} = 0");
    let tree = DeTable::parse(&with_value).ok()?;
    let mut path = Vec::new();
    let mut table = tree.get_ref();
    loop {
        let mut entries = table.iter();
        let (Some((key, value)), None) = (entries.next(), entries.next()) else { return None };
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

/// Writes a path of keys as text that [`parse_key`] reads.
pub fn write_key(path: &[impl AsRef<str>]) -> String {
    let bare = |key: &str| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let written = path.iter().map(AsRef::as_ref).map(|key| match bare(key) {
        true => key.to_owned(),
        false => toml::Value::from(key).to_string(),
    });
    written.collect::<Vec<_>>().join(".")
}

fn place(source: usize, span: std::ops::Range<usize>, length: usize) -> Span {
    let start = span.start.min(length);
    Span { source, start, end: span.end.clamp(start, length) }
}

fn table(source: usize, text: &str, tree: &DeTable) -> Checked<Table> {
    let mut entries = Vec::with_capacity(tree.len());
    for (key, value) in tree {
        entries.push(Entry {
            key: key.get_ref().to_string(),
            place: place(source, key.span(), text.len()),
            node: node(source, text, value)?,
        });
    }
    entries.sort_by_key(|e| e.place);
    Ok(Table { entries })
}

fn node(source: usize, text: &str, value: &Spanned<DeValue>) -> Checked<Node> {
    let place = place(source, value.span(), text.len());
    let value = match value.get_ref() {
        DeValue::String(s) => Value::Text(s.to_string()),
        DeValue::Integer(number) => Value::Integer(integer(number).ok_or_else(|| {
            Problem::new(Code::OutOfRange, place, format!("{number} does not fit into 64 bits"))
                .expected("an integer from -2^63 to 2^63 - 1")
        })?),
        DeValue::Float(number) => Value::Float(number.as_str().parse().map_err(|_| {
            Problem::new(Code::Syntax, place, format!("{} is not a number", number.as_str()))
        })?),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(time) => Value::Datetime(time.to_string()),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|v| node(source, text, v)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(inner) => Value::Table(table(source, text, inner)?),
    };
    Ok(Node { value, place })
}

fn integer(number: &DeInteger) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}
