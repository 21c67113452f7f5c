//! Traces as Parquet files: one flow per row.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tailcut_engine::Time;

use super::super::{Flow, TrafficError};
use super::columns::{meanings, start, Column, NO_UNIT};
use super::Rows;
use crate::component::ReadFile;

/// Reads a trace.
pub(super) fn read(read: &ReadFile, file: &str) -> Result<Rows, TrafficError> {
    let bad = |what: String| TrafficError::new("trace-file", "file", format!("{file}: {what}"));
    let bytes = read(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let parquet = |error: parquet::errors::ParquetError| {
        bad(format!("not a readable Parquet file: {error}"))
            .hint("write it without compression, or with zstd or snappy")
    };
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(parquet)?;
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let columns = meanings(&names, file)?;

    let mut flows = Vec::new();
    for row in reader.get_row_iter(None).map_err(parquet)? {
        let row = row.map_err(parquet)?;
        let number = flows.len();
        let mut flow = Flow { src: 0, dst: 0, bytes: 0, start: Time::ZERO, id: number as u64 };
        for (column, (name, field)) in columns.iter().zip(row.get_column_iter()) {
            let bad = |what: String| {
                TrafficError::new(
                    "trace-row",
                    "file",
                    format!("{file}: row {number}: {name}: {what}"),
                )
            };
            let whole = || {
                whole(field).ok_or_else(|| bad(format!("{field} is not a whole number from 0 on")))
            };
            let host = || {
                whole().and_then(|n| {
                    u32::try_from(n).map_err(|_| bad(format!("{n} is not a host number")))
                })
            };
            match column {
                Column::Id => flow.id = whole()?,
                Column::Src => flow.src = host()?,
                Column::Dst => flow.dst = host()?,
                Column::Bytes => flow.bytes = whole()?,
                Column::StartIn(unit) => {
                    let value =
                        real(field).ok_or_else(|| bad(format!("{field} is not a number")))?;
                    flow.start = start(value, *unit).map_err(bad)?;
                }
                Column::StartWithUnit => {
                    let Field::Str(text) = field else {
                        return Err(bad(format!("{field} has no unit")).hint(NO_UNIT));
                    };
                    flow.start = text.parse().map_err(|error| bad(format!("{error}")))?;
                }
                Column::Ignored => {}
            }
        }
        flows.push(flow);
    }
    Rows::of_file(file, &columns, flows, |index| format!("row {index}"))
}

fn whole(field: &Field) -> Option<u64> {
    match *field {
        Field::Byte(n) => u64::try_from(n).ok(),
        Field::Short(n) => u64::try_from(n).ok(),
        Field::Int(n) => u64::try_from(n).ok(),
        Field::Long(n) => u64::try_from(n).ok(),
        Field::UByte(n) => Some(n.into()),
        Field::UShort(n) => Some(n.into()),
        Field::UInt(n) => Some(n.into()),
        Field::ULong(n) => Some(n),
        _ => None,
    }
}

fn real(field: &Field) -> Option<f64> {
    match *field {
        Field::Float(value) => Some(value.into()),
        Field::Double(value) => Some(value),
        Field::Long(n) => Some(n as f64),
        _ => whole(field).map(|n| n as f64),
    }
}
