//! Files of graphs as records of texts: CSV, JSON, Parquet.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::super::TrafficError;
use crate::component::{did_you_mean, read_text};
use crate::files::{Cells, FileReader};

/// The columns of a graph.
pub(super) const COLUMNS: [&str; 12] = [
    "id",
    "src",
    "dst",
    "bytes",
    "start_ns",
    "pool",
    "at_once",
    "until",
    "host",
    "processor",
    "duration_ns",
    "after",
];

/// A row as texts, in the order of [`COLUMNS`].
#[derive(Debug, Clone, Default)]
pub(super) struct Record<'a> {
    /// The number of the line, from 1, or of the row, from 0.
    pub number: u32,
    pub cells: [Option<Cow<'a, str>>; COLUMNS.len()],
}

/// Takes the records of a file one by one.
pub(super) type Take<'a> = &'a mut dyn FnMut(&Record) -> Result<(), TrafficError>;

/// Returns the word for a row of a file in messages.
pub(super) fn unit(file: &str) -> &'static str {
    match file.ends_with(".parquet") || file.ends_with(".json") {
        true => "row",
        false => "line",
    }
}

/// Reads a file and hands its records over in order.
pub(super) fn read(read: &dyn FileReader, file: &str, take: Take) -> Result<(), TrafficError> {
    if file.ends_with(".parquet") {
        return table(read, file, take);
    }
    let text = read_text(read, "graph-file", "file", file)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match file.ends_with(".json") {
        true => json(text, file, take),
        false => delimited(text, file, take),
    }
}

fn column(name: &str, file: &str) -> Result<usize, TrafficError> {
    COLUMNS.iter().position(|known| *known == name).ok_or_else(|| {
        let message = format!("{file}: unknown column {name:?}");
        let error = TrafficError::new("graph-columns", "file", message);
        match did_you_mean(name, COLUMNS) {
            Some(close) => error.hint(format!("did you mean {close}?")),
            None => error.hint(format!("columns are {}", COLUMNS.join(", "))),
        }
    })
}

fn delimited(text: &str, file: &str, take: Take) -> Result<(), TrafficError> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(at, line)| (at as u32 + 1, line.split('#').next().unwrap_or("")));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else {
        let message = format!("{file}: contains no message");
        return Err(TrafficError::new("graph-empty", "file", message));
    };
    let separator = header.chars().find(|c| matches!(c, ',' | ';' | '\t')).unwrap_or(',');
    let names = header.split(separator).map(|name| name.trim().trim_matches('"'));
    let columns = names.map(|name| column(name, file)).collect::<Result<Vec<_>, _>>()?;
    let repeated = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at]));
    if let Some(at) = repeated {
        let message = format!("{file}: column {} is given twice", COLUMNS[columns[at]]);
        return Err(TrafficError::new("graph-columns", "file", message).hint("remove one of them"));
    }
    for (number, line) in lines {
        let mut record = Record { number, ..Record::default() };
        let (wanted, mut found) = (columns.len(), 0);
        for field in line.split(separator) {
            if let Some(&column) = columns.get(found) {
                record.cells[column] = Some(Cow::Borrowed(field.trim().trim_matches('"')));
            }
            found += 1;
        }
        if found != wanted {
            let what =
                format!("{file}: line {number}: {found} columns where {wanted} are expected");
            return Err(TrafficError::new("graph-row", "file", what)
                .hint("separate the rows of after by blanks"));
        }
        take(&record)?;
    }
    Ok(())
}

fn json(text: &str, file: &str, take: Take) -> Result<(), TrafficError> {
    let rows: Vec<Members> = serde_json::from_str(text).map_err(|cause| {
        let message = format!("{file}: not a list of objects in JSON: {cause}");
        TrafficError::new("graph-file", "file", message)
    })?;
    for (number, Members(row)) in rows.into_iter().enumerate() {
        let mut record = Record { number: number as u32, ..Record::default() };
        let mut known = [false; COLUMNS.len()];
        for (name, value) in row {
            let at = column(&name, file)?;
            if std::mem::replace(&mut known[at], true) {
                let message = format!("{file}: row {number}: {name} is given twice");
                let error = TrafficError::new("graph-columns", "file", message);
                return Err(error.hint("remove one of them"));
            }
            record.cells[at] = match value {
                Value::Null => None,
                Value::Array(values) => {
                    let words: Vec<String> = values.iter().map(plain).collect();
                    Some(Cow::Owned(words.join(" ")))
                }
                other => Some(Cow::Owned(plain(&other))),
            };
        }
        take(&record)?;
    }
    Ok(())
}

/// The members of an object as they are written: a map would keep the last of two with one name.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Members, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut of: M) -> Result<Members, M::Error> {
                let mut members = vec![];
                while let Some(member) = of.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(Reader)
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn table(read: &dyn FileReader, file: &str, take: Take) -> Result<(), TrafficError> {
    let bad = |what: String| TrafficError::new("graph-file", "file", format!("{file}: {what}"));
    let content = read.file(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let columns = read
        .columns(&content, &COLUMNS)
        .map_err(|error| bad(format!("not a readable Parquet file: {error}")))?;
    for found in &columns {
        column(&found.name, file)?;
    }
    let known: Vec<(usize, &Cells)> = columns
        .iter()
        .filter_map(|found| {
            let at = COLUMNS.iter().position(|known| *known == found.name)?;
            Some((at, found.cells.as_ref()?))
        })
        .collect();
    let count = known.iter().map(|(_, cells)| cells.len()).min().unwrap_or(0);
    for row in 0..count {
        let mut record = Record { number: row as u32, ..Record::default() };
        for (at, cells) in &known {
            record.cells[*at] = match (cells.text(row), cells.real(row)) {
                (Some(text), _) => Some(Cow::Borrowed(text)),
                (None, Some(number)) if number.is_nan() => None,
                // Integers with gaps are floating point in other programs.
                (None, Some(number)) if matches!(cells, Cells::Real(_)) => {
                    Some(Cow::Owned(number.to_string()))
                }
                _ => Some(cells.shown(row)).filter(|text| text != "null").map(Cow::Owned),
            };
        }
        take(&record)?;
    }
    Ok(())
}
