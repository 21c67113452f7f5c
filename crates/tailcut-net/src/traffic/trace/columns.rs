//! Names and meanings of the columns of a trace.

use tailcut_engine::Time;

use super::super::TrafficError;
use crate::component::did_you_mean;

/// Meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    Src,
    Dst,
    Bytes,
    /// Start time as a number; the unit is this many nanoseconds.
    StartIn(u32),
    /// Start time with a unit in each value.
    StartWithUnit,
    Ignored,
}

/// The column names with a meaning.
pub(super) const KNOWN: [&str; 10] = [
    "id",
    "src",
    "dst",
    "bytes",
    "size_bytes",
    "start_ns",
    "start_us",
    "start_ms",
    "start_s",
    "start",
];

/// Hint for start times without a unit.
pub(super) const NO_UNIT: &str =
    "name the column start_ns, start_us, start_ms or start_s to give its unit once";

impl Column {
    pub fn from_name(name: &str) -> Column {
        match name {
            "id" => Column::Id,
            "src" => Column::Src,
            "dst" => Column::Dst,
            "bytes" | "size_bytes" => Column::Bytes,
            "start_ns" => Column::StartIn(1),
            "start_us" => Column::StartIn(1_000),
            "start_ms" => Column::StartIn(1_000_000),
            "start_s" => Column::StartIn(1_000_000_000),
            "start" => Column::StartWithUnit,
            _ => Column::Ignored,
        }
    }

    fn is_start(self) -> bool {
        matches!(self, Column::StartIn(_) | Column::StartWithUnit)
    }
}

/// Returns the meaning of each of `names`. Refuses names that together do not describe flows.
pub(super) fn meanings(names: &[String], file: &str) -> Result<Vec<Column>, TrafficError> {
    let columns: Vec<Column> = names.iter().map(|name| Column::from_name(name)).collect();
    let count =
        |test: &dyn Fn(Column) -> bool| columns.iter().filter(|column| test(**column)).count();
    let counts = [
        ("id", count(&|c| c == Column::Id)),
        ("src", count(&|c| c == Column::Src)),
        ("dst", count(&|c| c == Column::Dst)),
        ("bytes", count(&|c| c == Column::Bytes)),
        ("start_ns", count(&Column::is_start)),
    ];
    let listed = names.join(", ");
    for (wanted, count) in counts {
        if count > 1 {
            let error =
                format!("{file}: more than one column has the meaning {wanted} (found: {listed})");
            return Err(TrafficError::new("trace-columns", "file", error));
        }
        if count == 0 && wanted != "id" {
            let error = TrafficError::new(
                "trace-columns",
                "file",
                format!("{file}: no column is called {wanted} (found: {listed})"),
            );
            let unknown = names.iter().filter(|name| Column::from_name(name) == Column::Ignored);
            return Err(match unknown.filter_map(|name| did_you_mean(name, KNOWN).map(|k| (name, k))).next() {
                Some((name, known)) => error.hint(format!("did you mean {known} instead of {name}?")),
                None => error.hint("needed: src, dst, bytes and one of start_ns, start_us, start_ms, start_s, start"),
            });
        }
    }
    Ok(columns)
}

/// Converts a start time of `value` times `unit` nanoseconds, rounded to the nearest nanosecond.
pub(super) fn start(value: f64, unit: u32) -> Result<Time, String> {
    let ns = libm::round(value * f64::from(unit));
    // Above 2^53, a number of nanoseconds is not exact.
    if ns >= 0.0 && ns < (1u64 << 53) as f64 {
        return Ok(Time::from_ns(ns as u64));
    }
    Err(format!("{value} is not a start time of 0 or later"))
}
