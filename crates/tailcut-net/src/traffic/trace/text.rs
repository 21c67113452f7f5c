//! Traces as text: one flow per line, with columns separated by commas, semicolons, tabs or spaces.

use tailcut_engine::Time;

use super::super::{Flow, TrafficError};
use super::Rows;
use super::columns::{Column, NO_UNIT, meanings, start};
use crate::component::read_text;
use crate::files::FileReader;
use crate::topology::HostId;

const WITHOUT_HEADER: [&str; 5] = ["id", "src", "dst", "bytes", "start_ns"];

/// Reads a trace; `names` are its columns if it has no header line.
pub(super) fn read(
    read: &dyn FileReader,
    file: &str,
    names: Option<&[String]>,
) -> Result<Rows, TrafficError> {
    let text = read_text(read, "trace-file", "file", file)?;
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default()))
        .map(|(line, content)| (line, fields(content)))
        .filter(|(_, fields)| !fields.is_empty())
        .peekable();

    let header =
        lines.next_if(|(_, first)| first[0].starts_with(|c: char| c.is_alphabetic() || c == '"'));
    let names: Vec<String> = match (header, names) {
        (Some((line, _)), Some(_)) => {
            let error =
                format!("{file}: line {line} names the columns, and so does traffic.columns");
            return Err(TrafficError::new("trace-columns", "columns", error)
                .hint("leave columns out: the file's own header decides"));
        }
        (Some((_, header)), None) => {
            header.iter().map(|name| name.trim_matches('"').to_owned()).collect()
        }
        (None, Some(names)) => names.to_vec(),
        (None, None) => WITHOUT_HEADER.map(str::to_owned).to_vec(),
    };
    let columns = meanings(&names, file)?;

    let (mut flows, mut numbers) = (Vec::new(), Vec::new());
    let (mut with_id, mut without_id) = (false, false);
    for (line, fields) in lines {
        let bad = |what: String| {
            TrafficError::new("trace-row", "file", format!("{file}: line {line}: {what}"))
        };
        if fields.len() != columns.len() {
            let (found, wanted) = (fields.len(), columns.len());
            return Err(bad(format!(
                "{found} columns where {wanted} are expected ({})",
                names.join(", ")
            )));
        }
        let mut flow = Flow {
            src: HostId(0),
            dst: HostId(0),
            bytes: 0,
            start: Time::ZERO,
            id: flows.len() as u64,
        };
        for ((column, name), field) in columns.iter().zip(&names).zip(fields) {
            let whole = |field: &str| {
                field
                    .parse::<u64>()
                    .map_err(|_| bad(format!("{name}: {field:?} is not a non-negative integer")))
            };
            let host = |field: &str| {
                field
                    .parse()
                    .map(HostId)
                    .map_err(|_| bad(format!("{name}: {field:?} is not a host number")))
            };
            match column {
                Column::Id if field.is_empty() && !with_id => without_id = true,
                Column::Id if without_id => {
                    return Err(bad(format!(
                        "{name}: earlier lines have none: give all flows an id, or none"
                    )));
                }
                Column::Id => {
                    with_id = true;
                    flow.id = whole(field)?;
                }
                Column::Src => flow.src = host(field)?,
                Column::Dst => flow.dst = host(field)?,
                Column::Bytes => flow.bytes = whole(field)?,
                Column::StartIn(unit) => {
                    let value = field
                        .parse()
                        .map_err(|_| bad(format!("{name}: {field:?} is not a number")))?;
                    flow.start =
                        start(value, *unit).map_err(|error| bad(format!("{name}: {error}")))?;
                }
                Column::StartWithUnit => {
                    flow.start = field
                        .parse()
                        .map_err(|error| bad(format!("{name}: {error}")).hint(NO_UNIT))?;
                }
                Column::Ignored => {}
            }
        }
        flows.push(flow);
        numbers.push(line);
    }
    let rows =
        Rows::of_file(file, &columns, flows, move |index| format!("line {}", numbers[index]))?;
    Ok(Rows { named: with_id, ..rows })
}

/// Splits a line into columns: at the first separator found in it, otherwise at white space.
fn fields(line: &str) -> Vec<&str> {
    let line = line.trim();
    match line.chars().find(|c| matches!(c, ',' | ';' | '\t')) {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}
