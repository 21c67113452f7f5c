//! Files of graphs as records of texts: CSV, JSON, Parquet.

use serde_json::{Map, Value};

use super::super::TrafficError;
use crate::component::{did_you_mean, read_text};
use crate::files::{Cells, FileReader};

/// The columns of a graph.
pub(super) const COLUMNS: [&str; 9] =
    ["id", "src", "dst", "bytes", "start_ns", "host", "processor", "duration_ns", "after"];

/// A row as texts, in the order of [`COLUMNS`].
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// The number of the line, from 1, or of the row, from 0.
    pub number: u32,
    pub cells: [Option<String>; COLUMNS.len()],
}

/// The rows of a file.
pub(super) struct Records {
    /// The word for a row in messages.
    pub unit: &'static str,
    pub records: Vec<Record>,
}

impl Records {
    pub fn read(read: &dyn FileReader, file: &str) -> Result<Records, TrafficError> {
        if file.ends_with(".parquet") {
            return table(read, file);
        }
        let text = read_text(read, "graph-file", "file", file)?;
        match file.ends_with(".json") {
            true => json(&text, file),
            false => delimited(&text, file),
        }
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

fn delimited(text: &str, file: &str) -> Result<Records, TrafficError> {
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
    let mut records = vec![];
    for (number, line) in lines {
        let mut record = Record { number, ..Record::default() };
        let fields: Vec<&str> = line.split(separator).collect();
        if fields.len() != columns.len() {
            let (found, wanted) = (fields.len(), columns.len());
            let what =
                format!("{file}: line {number}: {found} columns where {wanted} are expected");
            return Err(TrafficError::new("graph-row", "file", what)
                .hint("separate the rows of after by blanks"));
        }
        for (&column, field) in columns.iter().zip(fields) {
            record.cells[column] = Some(field.trim().trim_matches('"').to_owned());
        }
        records.push(record);
    }
    Ok(Records { unit: "line", records })
}

fn json(text: &str, file: &str) -> Result<Records, TrafficError> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(|cause| {
        let message = format!("{file}: not a list of objects in JSON: {cause}");
        TrafficError::new("graph-file", "file", message)
    })?;
    let mut records = vec![];
    for (number, row) in rows.into_iter().enumerate() {
        let mut record = Record { number: number as u32, ..Record::default() };
        for (name, value) in row {
            record.cells[column(&name, file)?] = match value {
                Value::Null => None,
                Value::Array(values) => {
                    let words: Vec<String> = values.iter().map(plain).collect();
                    Some(words.join(" "))
                }
                other => Some(plain(&other)),
            };
        }
        records.push(record);
    }
    Ok(Records { unit: "row", records })
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn table(read: &dyn FileReader, file: &str) -> Result<Records, TrafficError> {
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
    let text = |cells: &Cells, row: usize| match cells.text(row) {
        Some(text) => Some(text.to_owned()),
        None => Some(cells.shown(row)).filter(|text| text != "null"),
    };
    let record = |row: usize| {
        let mut record = Record { number: row as u32, ..Record::default() };
        for (at, cells) in &known {
            record.cells[*at] = text(cells, row);
        }
        record
    };
    Ok(Records { unit: "row", records: (0..count).map(record).collect() })
}
