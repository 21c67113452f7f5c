//! Traces as tables (Parquet files): one flow per row.

use tailcut_engine::Time;

use super::super::{Flow, TrafficError};
use super::Rows;
use super::columns::{Column, KNOWN, NO_UNIT, meanings, start};
use crate::files::{Cells, FileReader};
use crate::topology::HostId;

/// Reads a trace.
pub(super) fn read(read: &dyn FileReader, file: &str) -> Result<Rows, TrafficError> {
    let bad = |what: String| TrafficError::new("trace-file", "file", format!("{file}: {what}"));
    let content = read.file(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let table = read.columns(&content, &KNOWN).map_err(|error| {
        bad(format!("not a readable Parquet file: {error}"))
            .hint("write it as Parquet, or name a text file without the suffix .parquet")
    })?;
    let names: Vec<String> = table.iter().map(|column| column.name.clone()).collect();
    let columns = meanings(&names, file)?;
    let known: Vec<(Column, &str, &Cells)> = columns
        .iter()
        .zip(&table)
        .filter_map(|(&meaning, column)| Some((meaning, &*column.name, column.cells.as_ref()?)))
        .collect();

    let rows = known.iter().map(|(_, _, cells)| cells.len()).min().unwrap_or(0);
    let flows = (0..rows).map(|row| flow(file, &known, row)).collect::<Result<_, _>>()?;
    Rows::of_file(file, &columns, flows, |index| format!("row {index}"))
}

fn flow(file: &str, columns: &[(Column, &str, &Cells)], row: usize) -> Result<Flow, TrafficError> {
    let mut flow =
        Flow { src: HostId(0), dst: HostId(0), bytes: 0, start: Time::ZERO, id: row as u64 };
    for (meaning, name, cells) in columns {
        let bad = |what: String| {
            let message = format!("{file}: row {row}: {name}: {what}");
            TrafficError::new("trace-row", "file", message)
        };
        let shown = || cells.shown(row);
        let whole = || {
            let whole = cells.whole(row);
            whole.ok_or_else(|| bad(format!("{} is not a non-negative integer", shown())))
        };
        let host = || {
            let host = u32::try_from(whole()?);
            host.map(HostId).map_err(|_| bad(format!("{} is not a host number", shown())))
        };
        match meaning {
            Column::Id => flow.id = whole()?,
            Column::Src => flow.src = host()?,
            Column::Dst => flow.dst = host()?,
            Column::Bytes => flow.bytes = whole()?,
            Column::StartIn(unit) => {
                let value = cells.real(row);
                let value = value.ok_or_else(|| bad(format!("{} is not a number", shown())))?;
                flow.start = start(value, *unit).map_err(bad)?;
            }
            Column::StartWithUnit => {
                let text = cells.text(row);
                let text =
                    text.ok_or_else(|| bad(format!("{} has no unit", shown())).hint(NO_UNIT))?;
                flow.start = text.parse().map_err(|error| bad(format!("{error}")))?;
            }
            Column::Ignored => {}
        }
    }
    Ok(flow)
}
