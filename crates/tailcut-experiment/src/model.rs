//! The `[model]` section.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The queueing analysis (`--on model`, RepFlow section IV). The simulator ignores this section,
/// which is not part of a run's identity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// The share of all bytes that short flows carry, by which replication adds to the load (the
    /// paper's epsilon). `workload` takes the share from the flow sizes; RepFlow's figures use
    /// 0.05.
    pub short_byte_share: ShortByteShare,
}

/// The share of all bytes that short flows carry.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ShortByteShare {
    /// The share that the flow-size distribution has.
    #[default]
    Workload,
    /// A given share, from 0 to below 1.
    Given(f64),
}

const WORKLOAD: &str = "workload";

impl Serialize for ShortByteShare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ShortByteShare::Workload => serializer.serialize_str(WORKLOAD),
            ShortByteShare::Given(share) => serializer.serialize_f64(*share),
        }
    }
}

impl<'de> Deserialize<'de> for ShortByteShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = ShortByteShare;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"workload\" or a number from 0 to below 1")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ShortByteShare, E> {
                if text == WORKLOAD {
                    return Ok(ShortByteShare::Workload);
                }
                Err(E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_f64<E: de::Error>(self, share: f64) -> Result<ShortByteShare, E> {
                if (0.0..1.0).contains(&share) {
                    return Ok(ShortByteShare::Given(share));
                }
                Err(E::invalid_value(de::Unexpected::Float(share), &self))
            }
            fn visit_u64<E: de::Error>(self, share: u64) -> Result<ShortByteShare, E> {
                self.visit_f64(share as f64)
            }
            fn visit_i64<E: de::Error>(self, share: i64) -> Result<ShortByteShare, E> {
                self.visit_f64(share as f64)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for ShortByteShare {
    fn schema_name() -> Cow<'static, str> {
        "ShortByteShare".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`workload` for the share that the flow sizes have, or a number.",
            "anyOf": [
                { "type": "string", "const": WORKLOAD },
                { "type": "number", "minimum": 0, "exclusiveMaximum": 1 }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_word_or_a_number_below_one() {
        let read = |text: &str| serde_json::from_str::<ShortByteShare>(text).ok();
        assert_eq!(read("\"workload\""), Some(ShortByteShare::Workload));
        assert_eq!(read("0.05"), Some(ShortByteShare::Given(0.05)));
        assert_eq!(read("0"), Some(ShortByteShare::Given(0.0)));
        for wrong in ["1", "1.5", "-0.1", "\"paper\""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for share in [ShortByteShare::Workload, ShortByteShare::Given(0.05)] {
            let text = serde_json::to_string(&share).unwrap();
            assert_eq!(serde_json::from_str::<ShortByteShare>(&text).unwrap(), share);
        }
    }
}
