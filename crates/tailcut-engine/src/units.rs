//! Quantities with units: integers inside, spelled out in text.
//!
//! A quantity is written as a decimal number and a unit (`"10Gbps"`, `"100KB"`,
//! `"32us"`). KB is 1000 B, KiB is 1024 B. A number without a unit is an error.
//! Parsing is exact: a value that is not a whole number of the base unit
//! (picoseconds, bits per second, bytes) is refused, never rounded.

use std::fmt;
use std::str::FromStr;

use schemars::{json_schema, Schema};

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A bare number where a unit is meant.
    #[error("{text:?} has no unit; write for example {example:?}")]
    MissingUnit {
        /// What was written.
        text: String,
        /// A well-formed value.
        example: String,
    },
    /// The unit is not one of this quantity's.
    #[error("{unit:?} is not a unit of {quantity}; use one of {known}")]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// "time", "rate" or "size".
        quantity: &'static str,
        /// Comma-separated units.
        known: String,
    },
    /// The part before the unit is not a decimal number.
    #[error("{text:?} does not start with a non-negative decimal number, such as {example:?}")]
    NotANumber {
        /// What was written.
        text: String,
        /// A well-formed value.
        example: String,
    },
    /// Too fine or too large for the base unit.
    #[error("{text:?} is not a whole number of {base} below 2^64")]
    NotRepresentable {
        /// What was written.
        text: String,
        /// Name of the base unit.
        base: &'static str,
    },
}

struct Quantity {
    name: &'static str,
    base: &'static str,
    example: &'static str,
    /// Units and their size in base units, largest first.
    units: &'static [(&'static str, u64)],
}

impl Quantity {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
        let not_a_number =
            || UnitError::NotANumber { text: text.to_owned(), example: self.example.to_owned() };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.is_empty() || fraction.contains('.') {
            return Err(not_a_number());
        }
        if unit.is_empty() {
            return Err(UnitError::MissingUnit {
                text: text.to_owned(),
                example: format!("{number}{}", self.units[self.units.len() / 2].0),
            });
        }
        let Some(&(_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::UnknownUnit {
                unit: unit.to_owned(),
                quantity: self.name,
                known: self.units.iter().map(|u| u.0).collect::<Vec<_>>().join(", "),
            });
        };
        let not_representable =
            || UnitError::NotRepresentable { text: text.to_owned(), base: self.base };
        let whole: u128 = whole.parse().map_err(|_| not_representable())?;
        let fraction = fraction.trim_end_matches('0');
        let (numerator, denominator) = if fraction.is_empty() {
            (0u128, 1u128)
        } else {
            let digits = u32::try_from(fraction.len()).map_err(|_| not_representable())?;
            let denominator = 10u128.checked_pow(digits).ok_or_else(not_representable)?;
            (fraction.parse().map_err(|_| not_representable())?, denominator)
        };
        let scaled = numerator * u128::from(scale);
        if scaled % denominator != 0 {
            return Err(not_representable());
        }
        whole
            .checked_mul(u128::from(scale))
            .and_then(|v| v.checked_add(scaled / denominator))
            .and_then(|v| u64::try_from(v).ok())
            .ok_or_else(not_representable)
    }

    fn format(&self, value: u64) -> String {
        let (unit, scale) = self
            .units
            .iter()
            .filter(|(name, _)| !name.contains('i'))
            .find(|(_, scale)| value >= *scale && value % scale == 0)
            .or_else(|| self.units.last())
            .expect("a quantity has units");
        format!("{}{unit}", value / scale)
    }

    fn schema(&self, description: &str) -> Schema {
        let units = self.units.iter().map(|u| u.0).collect::<Vec<_>>().join("|");
        json_schema!({
            "type": "string",
            "description": description,
            "pattern": format!(r"^[0-9][0-9_]*(\.[0-9]+)? ?({units})$"),
            "examples": [self.example],
        })
    }
}

static TIME: Quantity = Quantity {
    name: "time",
    base: "picoseconds",
    example: "32us",
    units: &[
        ("s", 1_000_000_000_000),
        ("ms", 1_000_000_000),
        ("us", 1_000_000),
        ("ns", 1_000),
        ("ps", 1),
    ],
};

static RATE: Quantity = Quantity {
    name: "rate",
    base: "bits per second",
    example: "10Gbps",
    units: &[
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("kbps", 1_000),
        ("bps", 1),
    ],
};

static BYTES: Quantity = Quantity {
    name: "size",
    base: "bytes",
    example: "100KB",
    units: &[
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1_000),
        ("B", 1),
    ],
};

macro_rules! quantity {
    ($type:ident, $table:ident, $description:literal) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $table.parse(text).map($type)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$table.format(self.0))
            }
        }

        $crate::text_serde!(
            $type,
            format_args!("a {} with its unit, such as {:?}", $table.name, $table.example),
            $table.schema($description)
        );
    };
}

/// A point in simulated time or a duration, in picoseconds (2^64 ps is 213 days).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A transmission rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(pub u64);

/// An amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

quantity!(Time, TIME, "A time with its unit: s, ms, us, ns or ps.");
quantity!(Rate, RATE, "A rate with its unit: Tbps, Gbps, Mbps, kbps or bps.");
quantity!(Bytes, BYTES, "A size with its unit: B, KB (1000 B), KiB (1024 B), MB, MiB, GB or GiB.");

impl Time {
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);
    /// The start of a run.
    pub const ZERO: Time = Time(0);

    /// `n` nanoseconds.
    pub const fn from_ns(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// `n` microseconds.
    pub const fn from_us(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// `n` milliseconds.
    pub const fn from_ms(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Seconds, for statistics and display only: never fed back into a run.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// `self - earlier`, or zero when `earlier` is later.
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl std::ops::AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl std::ops::Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Rate {
    /// How long `bytes` take to transmit, to the nearest picosecond.
    pub fn transmission_time(self, bytes: u64) -> Time {
        let bits_ps = u128::from(bytes) * 8_000_000_000_000;
        Time(((bits_ps + u128::from(self.0 / 2)) / u128::from(self.0)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_parsed_exactly() {
        assert_eq!("32us".parse(), Ok(Time(32_000_000)));
        assert_eq!("2.667 us".parse(), Ok(Time(2_667_000)));
        assert_eq!("0.5s".parse(), Ok(Time::from_ms(500)));
        assert_eq!("10Gbps".parse(), Ok(Rate(10_000_000_000)));
        assert_eq!("36KB".parse(), Ok(Bytes(36_000)));
        assert_eq!("36KiB".parse(), Ok(Bytes(36_864)));
    }

    #[test]
    fn a_number_without_a_unit_is_an_error_that_shows_one() {
        let error = "100".parse::<Bytes>().unwrap_err();
        assert!(matches!(error, UnitError::MissingUnit { .. }), "{error}");
        assert!(error.to_string().contains("100MiB") || error.to_string().contains("100"));
    }

    #[test]
    fn a_unit_of_another_quantity_is_named() {
        let error = "10Gbps".parse::<Time>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#""Gbps" is not a unit of time; use one of s, ms, us, ns, ps"#
        );
    }

    #[test]
    fn values_finer_than_the_base_unit_are_refused() {
        assert!(matches!("0.5ps".parse::<Time>(), Err(UnitError::NotRepresentable { .. })));
        assert!(matches!("0.1B".parse::<Bytes>(), Err(UnitError::NotRepresentable { .. })));
        assert!(matches!("99999999999s".parse::<Time>(), Err(UnitError::NotRepresentable { .. })));
    }

    #[test]
    fn transmission_times_match_the_wire() {
        assert_eq!(Rate(1_000_000_000).transmission_time(1502), Time::from_ns(12_016));
        assert_eq!(Rate(115_000_000).transmission_time(1502), Time(104_486_957));
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(value in any::<u64>()) {
            prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }
    }
}
