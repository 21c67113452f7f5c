//! Traces as Parquet files.

use super::super::TrafficError;
use super::Rows;
use crate::component::ReadFile;

/// Reads a trace.
pub(super) fn read(read: &ReadFile, file: &str) -> Result<Rows, TrafficError> {
    let _ = read;
    Err(TrafficError::new("trace-file", "file", format!("{file}: Parquet is not read yet")))
}
