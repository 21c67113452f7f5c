//! The files that parameters name. Whoever knows where files live supplies them; the network itself
//! opens nothing.

use std::io;

/// Gives the content of files, and takes apart those that are tables. A function from a path to a
/// content does where no table is read.
pub trait FileReader {
    /// The content of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn file(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The columns of a Parquet file with this content, in its order: the cells of those called as
    /// in `wanted`, the names of all.
    ///
    /// # Errors
    /// What is wrong with the content.
    fn columns(&self, content: &[u8], wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
        let _ = (content, wanted);
        Err("tables are not read here".to_owned())
    }
}

impl<F: Fn(&str) -> io::Result<Vec<u8>>> FileReader for F {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        self(path)
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// The column's name in the table.
    pub name: String,
    /// The cells; `None` if they were not asked for.
    pub cells: Option<Cells>,
}

/// The cells of a column, one per row; none where the table has no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Unsigned integers.
    Unsigned(Vec<Option<u64>>),
    /// Signed integers.
    Signed(Vec<Option<i64>>),
    /// Floating point.
    Real(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
    /// Anything else, as it is written in a message.
    Other(Vec<Option<String>>),
}

impl Cells {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Cells::Unsigned(cells) => cells.len(),
            Cells::Signed(cells) => cells.len(),
            Cells::Real(cells) => cells.len(),
            Cells::Text(cells) | Cells::Other(cells) => cells.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a cell as a non-negative integer, if it is one.
    pub fn whole(&self, row: usize) -> Option<u64> {
        match self {
            Cells::Unsigned(cells) => cells[row],
            Cells::Signed(cells) => cells[row].and_then(|n| n.try_into().ok()),
            _ => None,
        }
    }

    /// A cell as a number, if it is one.
    pub fn real(&self, row: usize) -> Option<f64> {
        match self {
            Cells::Unsigned(cells) => cells[row].map(|n| n as f64),
            Cells::Signed(cells) => cells[row].map(|n| n as f64),
            Cells::Real(cells) => cells[row],
            _ => None,
        }
    }

    /// A cell as a text, if it is one.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Cells::Text(cells) => cells[row].as_deref(),
            _ => None,
        }
    }

    /// A cell as a message shows it.
    pub fn shown(&self, row: usize) -> String {
        let cell = match self {
            Cells::Unsigned(cells) => cells[row].map(|n| n.to_string()),
            Cells::Signed(cells) => cells[row].map(|n| n.to_string()),
            Cells::Real(cells) => cells[row].map(|value| format!("{value:?}")),
            Cells::Text(cells) => cells[row].as_ref().map(|text| format!("{text:?}")),
            Cells::Other(cells) => cells[row].clone(),
        };
        cell.unwrap_or_else(|| "null".to_owned())
    }
}
