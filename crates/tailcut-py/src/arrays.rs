//! Makes NumPy arrays of columns by copying their bytes. The crate `numpy` would avoid the copy, at
//! the price of a tenth of the build time.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tailcut_experiment::{Column, Values};

/// An element type of arrays.
pub(crate) trait Element: Copy {
    /// The type's name in NumPy.
    const NAME: &'static str;
    /// The element's bytes in memory.
    type Bytes: AsRef<[u8]>;
    fn bytes(self) -> Self::Bytes;
}

macro_rules! number {
    ($type:ident, $name:literal) => {
        impl Element for $type {
            const NAME: &'static str = $name;
            type Bytes = [u8; size_of::<$type>()];
            fn bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
        }
    };
}

number!(u64, "uint64");
number!(i64, "int64");
number!(u32, "uint32");
number!(u8, "uint8");
number!(f64, "float64");

impl Element for bool {
    const NAME: &'static str = "bool";
    type Bytes = [u8; 1];
    fn bytes(self) -> [u8; 1] {
        [u8::from(self)]
    }
}

/// Returns a read-only NumPy array of these values.
pub(crate) fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyAny>> {
    let size = size_of::<T::Bytes>();
    let bytes = PyBytes::new_with(py, size * values.len(), |buffer| {
        for (place, value) in buffer.chunks_exact_mut(size).zip(&values) {
            place.copy_from_slice(value.bytes().as_ref());
        }
        Ok(())
    })?;
    py.import("numpy")?.call_method1("frombuffer", (bytes, T::NAME))
}

/// Returns a NumPy array of these texts.
fn texts(py: Python<'_>, values: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("array", (values, "str"))
}

/// Returns a column as a dictionary: `values`, `valid` and `categories`.
fn column(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    let (values, categories) = match column.values {
        Values::U64(v) => (array(py, v)?, None),
        Values::I64(v) => (array(py, v)?, None),
        Values::U32(v) => (array(py, v)?, None),
        Values::U8(v) => (array(py, v)?, None),
        Values::F64(v) => (array(py, v)?, None),
        Values::Bool(v) => (array(py, v)?, None),
        Values::Text(v) => (texts(py, v)?, None),
        Values::Label { codes, categories } => (array(py, codes)?, Some(categories)),
    };
    entry.set_item("values", values)?;
    entry.set_item("valid", column.valid.map(|v| array(py, v)).transpose()?)?;
    entry.set_item("categories", categories)?;
    Ok(entry)
}

/// Returns columns by name.
pub(crate) fn table(py: Python<'_>, columns: Vec<Column>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for c in columns {
        table.set_item(c.name, column(py, c)?)?;
    }
    Ok(table)
}
