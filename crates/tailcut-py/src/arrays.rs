//! Makes NumPy arrays of columns by copying their bytes. The crate `numpy` would avoid the copy, at
//! the price of a tenth of the build time.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

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
pub(crate) fn texts(py: Python<'_>, values: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("array", (values, "str"))
}
