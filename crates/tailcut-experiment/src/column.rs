//! Result tables as typed columns, ready to be handed to any data frame.

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Floating point.
    F64(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Labels: `codes[i]` indexes `categories`.
    Label {
        /// One code per row.
        codes: Vec<u8>,
        /// The labels, in their natural order.
        categories: Vec<String>,
    },
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name in `flows.parquet`.
    pub name: &'static str,
    /// One value per row; rows that are not valid hold zero.
    pub values: Values,
    /// False where the value is missing; none when every row has one.
    pub valid: Option<Vec<bool>>,
}
