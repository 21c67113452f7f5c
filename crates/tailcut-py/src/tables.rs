//! Reads the tables that an experiment names, by a Python callable.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tailcut_net::files::{Cells, TableColumn};

/// Reads tables by `callable(content, wanted)`, which returns a list of (name, kind of cells,
/// cells) or raises ValueError.
pub(crate) struct Tables {
    callable: Option<Py<PyAny>>,
    /// Any other exception that the callable raised, which is not a fault of the table.
    raised: Mutex<Option<PyErr>>,
}

impl Tables {
    pub fn new(callable: Option<Py<PyAny>>) -> Tables {
        Tables { callable, raised: Mutex::default() }
    }

    /// Returns the columns of a table with this content; see `tailcut_net::files::FileReader`.
    pub fn columns(&self, content: &[u8], wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
        let Some(callable) = &self.callable else {
            return tailcut_experiment::no_table_reader(content, wanted);
        };
        Python::attach(|py| {
            let columns = callable.call1(py, (content, wanted));
            columns.and_then(|columns| extract(columns.bind(py))).map_err(|error| {
                let message = error.value(py).to_string();
                if !error.is_instance_of::<PyValueError>(py) {
                    *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                message
            })
        })
    }

    /// Returns the exception that is not a fault of a table, if there was one.
    pub fn check(self) -> PyResult<()> {
        match self.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn extract(columns: &Bound<'_, PyAny>) -> PyResult<Vec<TableColumn>> {
    columns
        .try_iter()?
        .map(|column| {
            let (name, kind, cells): (String, String, Bound<'_, PyAny>) = column?.extract()?;
            let cells = match kind.as_str() {
                "unsigned" => Some(Cells::Unsigned(cells.extract()?)),
                "signed" => Some(Cells::Signed(cells.extract()?)),
                "real" => Some(Cells::Real(cells.extract()?)),
                "text" => Some(Cells::Text(cells.extract()?)),
                "other" => Some(Cells::Other(cells.extract()?)),
                _ => None,
            };
            Ok(TableColumn { name, cells })
        })
        .collect()
}
