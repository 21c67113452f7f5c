//! Flow-size distributions for models and figures.

use std::path::Path;

use tailcut_net::component::SpecError;
use tailcut_net::workload::{SizeTable, SizeUnit};

use crate::diagnostic::{Code, Failure, Problem};
use crate::document::Sources;

/// Returns the points of a flow-size distribution: sizes in bytes and cumulative probabilities.
///
/// `name_or_path` is a built-in name, or the path of a two-column file if it contains `/` or `.`.
/// `unit` is the unit of the file's first column: `bytes`, `KB`, `packets` (of 1460 bytes) or
/// `packets of N` (of N bytes).
///
/// # Errors
/// If there is no such table, or it is not a distribution.
pub fn workload(name_or_path: &str, unit: &str) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let table = match name_or_path.contains(['/', '.']) {
        false => SizeTable::builtin(name_or_path, "sizes"),
        true => size_unit(unit).and_then(|unit| {
            let text = std::fs::read_to_string(Path::new(name_or_path)).map_err(|e| {
                SpecError::new(
                    "workload-file",
                    "file",
                    format!("{name_or_path}: cannot be read: {e}"),
                )
            })?;
            SizeTable::parse(&text, unit, "file").map_err(|mut error| {
                error.message = format!("{name_or_path}: {}", error.message);
                error
            })
        }),
    };
    match table {
        Ok(table) => {
            let (bytes, probability) = table.points();
            Ok((bytes.to_vec(), probability.to_vec()))
        }
        Err(error) => {
            let mut problem =
                Problem::without_place(Code::Unrealisable, &error.message).key(&error.field);
            problem.rule = Some(error.code);
            problem.hint = error.hint;
            Err(Failure::new(&Sources::default(), vec![problem]))
        }
    }
}

fn size_unit(unit: &str) -> Result<SizeUnit, SpecError> {
    match unit.trim() {
        "bytes" => Ok(SizeUnit::Bytes),
        "KB" => Ok(SizeUnit::Kilobytes),
        "packets" => Ok(SizeUnit::Packets(1460)),
        other => other
            .strip_prefix("packets of ")
            .and_then(|bytes| bytes.trim().parse().ok())
            .filter(|bytes| *bytes > 0)
            .map(SizeUnit::Packets)
            .ok_or_else(|| {
                let message = format!("unit = {unit:?}: use bytes, KB, packets, or packets of N");
                SpecError::new("workload-unit", "unit", message)
            }),
    }
}
