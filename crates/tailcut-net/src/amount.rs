//! Amounts that the field counts either in packets or in bytes.

use std::fmt;
use std::str::FromStr;

use schemars::json_schema;
use tailcut_engine::{Bytes, UnitError};

/// An amount in packets (`"100packets"`) or bytes (`"36KB"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A number of packets, whatever their size.
    Packets(u32),
    /// A number of bytes.
    Bytes(u64),
}

/// An [`Amount`], or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// At most this much.
    AtMost(Amount),
}

impl Amount {
    /// The amount in bytes, a packet counting as `packet` bytes.
    pub fn in_bytes(self, packet: u64) -> u64 {
        match self {
            Amount::Packets(n) => u64::from(n) * packet,
            Amount::Bytes(n) => n,
        }
    }
}

impl FromStr for Amount {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        for unit in ["packets", "packet"] {
            if let Some(number) = trimmed.strip_suffix(unit) {
                let number = number.trim();
                let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
                return number.parse().map(Amount::Packets).map_err(|_| match digits {
                    true => UnitError::TooLarge {
                        text: text.to_owned(),
                        quantity: "amount",
                        most: Amount::Packets(u32::MAX).to_string(),
                    },
                    false => UnitError::NotANumber {
                        text: text.to_owned(),
                        example: "100packets".into(),
                    },
                });
            }
        }
        trimmed.parse::<Bytes>().map(|b| Amount::Bytes(b.0)).map_err(|error| match error {
            UnitError::MissingUnit { text, .. } => {
                UnitError::MissingUnit { example: format!("{}packets", text.trim()), text }
            }
            UnitError::UnknownUnit { unit, known, .. } => UnitError::UnknownUnit {
                unit,
                quantity: "amount",
                known: format!("packets, {known}"),
            },
            other => other,
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Packets(n) => write!(f, "{n}packets"),
            Amount::Bytes(n) => Bytes(*n).fmt(f),
        }
    }
}

impl FromStr for Limit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim() {
            "unlimited" => Ok(Limit::Unlimited),
            amount => amount.parse().map(Limit::AtMost),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Unlimited => f.pad("unlimited"),
            Limit::AtMost(amount) => amount.fmt(f),
        }
    }
}

tailcut_engine::text_serde!(
    Amount,
    "an amount such as \"100packets\" or \"36KB\"",
    json_schema!({
        "type": "string",
        "description": "An amount in packets (\"100packets\") or bytes (\"36KB\").",
        "pattern": r"^[0-9][0-9_]*(\.[0-9]+)? ?(packets?|GiB|GB|MiB|MB|KiB|KB|B|kB)$",
    })
);
tailcut_engine::text_serde!(
    Limit,
    "a limit such as \"100packets\", \"36KB\" or \"unlimited\"",
    json_schema!({
        "type": "string",
        "description": "An amount in packets (\"100packets\") or bytes (\"36KB\"), or \"unlimited\".",
        "pattern": r"^(unlimited|[0-9][0-9_]*(\.[0-9]+)? ?(packets?|GiB|GB|MiB|MB|KiB|KB|B|kB))$",
    })
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_bytes_are_told_apart() {
        assert_eq!("100packets".parse(), Ok(Amount::Packets(100)));
        assert_eq!("36KB".parse(), Ok(Amount::Bytes(36_000)));
        assert_eq!("36.0 kB".parse(), Ok(Amount::Bytes(36_000)));
        assert_eq!("unlimited".parse(), Ok(Limit::Unlimited));
        assert_eq!(Limit::AtMost(Amount::Packets(5)).to_string(), "5packets");
    }

    #[test]
    fn refuses_too_many_packets_and_names_the_maximum() {
        let error = "99999999999packets".parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("more than 4294967295packets"), "{error}");
    }

    #[test]
    fn a_bare_number_is_refused_with_both_readings() {
        let error = "100".parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("100packets"), "{error}");
    }
}
