//! Quantities with units: integers inside, spelled out in text.
//!
//! A quantity is written as a decimal number and a unit (`"10Gbps"`, `"100KB"`,
//! `"32us"`). KB is 1000 B, KiB is 1024 B. A number without a unit is an error.
//! Units are also read as they are shown to people: `"4.2 µs"`, `"12.0 kB"`.
//! Parsing is exact: a value that is not a whole number of the base unit
//! (picoseconds, bits per second, bytes) is refused, never rounded. So is one
//! beyond what can be meant: the largest leave room for sums of a dozen below 2^64.

use std::fmt;
use std::str::FromStr;

use schemars::{Schema, json_schema};

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A bare number where a unit is meant.
    #[error("{text:?} has no unit; write for example {example:?}")]
    MissingUnit {
        /// The text that was written.
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
        /// The text that was written.
        text: String,
        /// A well-formed value.
        example: String,
    },
    /// Too fine for the base unit.
    #[error("{text:?} is not a whole number of {base}")]
    NotRepresentable {
        /// The text that was written.
        text: String,
        /// Name of the base unit.
        base: &'static str,
    },
    /// Larger than can be meant.
    #[error("{text:?} is more than {most}, the largest {quantity} possible")]
    TooLarge {
        /// The text that was written.
        text: String,
        /// "time", "rate" or "size".
        quantity: &'static str,
        /// The largest value possible.
        most: String,
    },
}

struct Quantity {
    name: &'static str,
    base: &'static str,
    example: &'static str,
    /// Units and their size in base units, largest first.
    units: &'static [(&'static str, u64)],
    /// Other spellings that are read, and the units that they stand for.
    spellings: &'static [(&'static str, &'static str)],
    /// The largest value that can be written, in base units.
    most: u64,
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
        let spelled = self.spellings.iter().find(|(spelling, _)| *spelling == unit);
        let name = spelled.map_or(unit, |(_, name)| name);
        let Some(&(_, scale)) = self.units.iter().find(|(known, _)| *known == name) else {
            return Err(UnitError::UnknownUnit {
                unit: unit.to_owned(),
                quantity: self.name,
                known: self.units.iter().map(|u| u.0).collect::<Vec<_>>().join(", "),
            });
        };
        let not_representable =
            || UnitError::NotRepresentable { text: text.to_owned(), base: self.base };
        let too_large = || UnitError::TooLarge {
            text: text.to_owned(),
            quantity: self.name,
            most: self.format(self.most),
        };
        // Digits alone are left, so that parsing fails for their number only.
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let part = part(fraction, scale).ok_or_else(not_representable)?;
        whole
            .checked_mul(scale)
            .and_then(|value| value.checked_add(part))
            .filter(|value| *value <= self.most)
            .ok_or_else(too_large)
    }

    fn format(&self, value: u64) -> String {
        let (unit, scale) = self
            .units
            .iter()
            .filter(|(name, _)| !name.contains('i'))
            .find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale))
            .or_else(|| self.units.last())
            .expect("a quantity has units");
        format!("{}{unit}", value / scale)
    }

    fn schema(&self, description: &str) -> Schema {
        let names = self.units.iter().map(|unit| unit.0);
        let spellings = self.spellings.iter().map(|spelling| spelling.0);
        let units = names.chain(spellings).collect::<Vec<_>>().join("|");
        json_schema!({
            "type": "string",
            "description": description,
            "pattern": format!(r"^[0-9][0-9_]*(\.[0-9]+)? ?({units})$"),
            "examples": [self.example],
        })
    }
}

/// `scale` times the decimal fraction `0.digits`, if that is a whole number.
fn part(digits: &str, scale: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let numerator: u128 = digits.parse().ok()?;
    let denominator = 10u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    // Without common factors of the other two, all of the denominator must divide the numerator;
    // nothing can overflow.
    let common = greatest_common_divisor(u128::from(scale), denominator);
    let (scale, denominator) = (u128::from(scale) / common, denominator / common);
    numerator.is_multiple_of(denominator).then(|| (numerator / denominator * scale) as u64)
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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
    // The micro sign, and the Greek letter that looks the same.
    spellings: &[("\u{b5}s", "us"), ("\u{3bc}s", "us")],
    most: 1_000_000_000_000_000_000,
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
    spellings: &[],
    most: 100_000_000_000_000,
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
    spellings: &[("kB", "KB")],
    most: 1_000_000_000_000_000,
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

/// A point in simulated time or a duration, in picoseconds (2^64 ps is 213 days, and 11 days can be
/// written).
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
    /// Returns the transmission time of `bytes`, to the nearest picosecond.
    pub fn transmission_time(self, bytes: u64) -> Time {
        let bits_ps = u128::from(bytes) * 8_000_000_000_000;
        Time(((bits_ps + u128::from(self.0 / 2)) / u128::from(self.0)) as u64)
    }

    /// Returns the bytes that are sent in `time`, rounded to the nearest.
    pub fn bytes_in(self, time: Time) -> u64 {
        let bits_ps = 8_000_000_000_000_u128;
        ((u128::from(time.0) * u128::from(self.0) + bits_ps / 2) / bits_ps) as u64
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
    fn units_are_read_as_they_are_shown_to_people() {
        for text in ["493 µs", "493 μs", "493µs", "0.493 ms"] {
            assert_eq!(text.parse(), Ok(Time::from_us(493)), "{text}");
        }
        assert_eq!("12.0 kB".parse(), Ok(Bytes(12_000)));
        assert_eq!("9.87 kbps".parse(), Ok(Rate(9_870)));
        assert_eq!(Time::from_us(2).to_string(), "2us", "written as before");
        assert_eq!(Bytes(12_000).to_string(), "12KB");
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
    }

    #[test]
    fn a_fraction_of_any_length_is_exact_or_refused() {
        let wraps = "0.00083076749736557242056487941267521536s";
        assert!(matches!(wraps.parse::<Time>(), Err(UnitError::NotRepresentable { .. })));
        let digits = format!("0.{}1s", "0".repeat(60));
        assert!(matches!(digits.parse::<Time>(), Err(UnitError::NotRepresentable { .. })));
        assert_eq!("0.000000000931322574615478515625GiB".parse(), Ok(Bytes(1)));
        assert_eq!("0.999999999068677425384521484375GiB".parse(), Ok(Bytes((1 << 30) - 1)));
        assert_eq!(format!("0.5{}s", "0".repeat(60)).parse(), Ok(Time::from_ms(500)));
    }

    #[test]
    fn refuses_values_above_the_maximum_and_names_it() {
        let error = "1000000.000000000001s".parse::<Time>().unwrap_err().to_string();
        assert!(error.ends_with("is more than 1000000s, the largest time possible"), "{error}");
        assert_eq!("1000000s".parse(), Ok(Time(TIME.most)));
        for text in [
            "18446744073709551616s",
            "18446744073709551615s",
            "340282366920938463463374607431768211456ps",
        ] {
            assert!(matches!(text.parse::<Time>(), Err(UnitError::TooLarge { .. })), "{text}");
        }
        assert!(matches!("101Tbps".parse::<Rate>(), Err(UnitError::TooLarge { .. })));
        assert!(matches!("1000001GB".parse::<Bytes>(), Err(UnitError::TooLarge { .. })));
    }

    #[test]
    fn transmission_times_match_the_wire() {
        assert_eq!(Rate(1_000_000_000).transmission_time(1502), Time::from_ns(12_016));
        assert_eq!(Rate(115_000_000).transmission_time(1502), Time(104_486_957));
    }

    proptest! {
        #[test]
        fn printed_values_parse_back(time in 0..=TIME.most, rate in 0..=RATE.most, bytes in 0..=BYTES.most) {
            prop_assert_eq!(Time(time).to_string().parse(), Ok(Time(time)));
            prop_assert_eq!(Rate(rate).to_string().parse(), Ok(Rate(rate)));
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }

        #[test]
        fn decimals_are_exact(value in 0..=TIME.most) {
            let text = format!("{}.{:012}s", value / 1_000_000_000_000, value % 1_000_000_000_000);
            prop_assert_eq!(text.parse(), Ok(Time(value)));
        }
    }
}
