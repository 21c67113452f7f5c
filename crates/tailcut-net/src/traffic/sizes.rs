//! Flow sizes as experiments give them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tailcut_engine::{Bytes, RandomStream};

use crate::component::{SpecError, read_text};
use crate::files::FileReader;
use crate::workload::{SizeTable, SizeUnit};

use super::MOST_BYTES;

/// Flow sizes: text for the common cases, a table for the others.
#[derive(Debug, Clone, PartialEq)]
pub enum SizesSpec {
    /// A built-in workload, such as `"web-search"`.
    Builtin(String),
    /// One size for all flows: `"70KB"`.
    Fixed(Bytes),
    /// Flows that outlast any run: `"endless"`.
    Endless,
    /// A distribution with parameters.
    Described(DescribedSizes),
}

/// A flow-size distribution with parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DescribedSizes {
    /// A file with two columns: size and cumulative probability.
    File(SizesFile),
    /// Uniform between two sizes.
    Uniform {
        /// Smallest size.
        min: Bytes,
        /// Largest size.
        max: Bytes,
    },
    /// Exponential.
    Exponential {
        /// Mean size.
        mean: Bytes,
    },
    /// Pareto, truncated at both ends.
    BoundedPareto {
        /// Smallest size.
        min: Bytes,
        /// Largest size.
        max: Bytes,
        /// Tail exponent: the smaller, the heavier the tail.
        shape: f64,
    },
}

/// A file with two columns: size and cumulative probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizesFile {
    /// Path of the file.
    pub file: String,
    /// Unit of the first column.
    #[serde(default)]
    pub unit: ColumnUnit,
    /// Bytes per packet if the first column counts packets.
    #[serde(default = "default_packet_size")]
    pub packet_size: Bytes,
}

fn default_packet_size() -> Bytes {
    Bytes(1460)
}

/// Unit of the first column of a size file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ColumnUnit {
    /// Bytes.
    #[default]
    #[serde(rename = "bytes")]
    Bytes,
    /// Thousands of bytes.
    #[serde(rename = "KB")]
    Kilobytes,
    /// Packets of `packet_size`.
    #[serde(rename = "packets")]
    Packets,
}

impl SizesSpec {
    /// Returns the file that decides the sizes, if any.
    pub fn file(&self) -> Option<&str> {
        match self {
            SizesSpec::Described(DescribedSizes::File(file)) => Some(&file.file),
            _ => None,
        }
    }

    /// Returns the distribution. `field` is its place in the experiment.
    ///
    /// # Errors
    /// Refuses unknown workloads, files that hold no distribution, and parameters out of range.
    pub fn resolve(&self, read: &dyn FileReader, field: &str) -> Result<FlowSizes, SpecError> {
        let bad = |key: &str, message: String| {
            Err(SpecError::new("sizes-parameter", format!("{field}.{key}"), message))
        };
        let too_large = |key: &str, value: u64, most: u64| {
            let field = [field, key].into_iter().filter(|part| !part.is_empty());
            let message = format!("{}: must be at most {}", Bytes(value), Bytes(most));
            SpecError::new("sizes-largest", field.collect::<Vec<_>>().join("."), message)
        };
        match self {
            SizesSpec::Builtin(name) => SizeTable::builtin(name, field).map(FlowSizes::Table),
            SizesSpec::Fixed(Bytes(0)) => {
                Err(SpecError::new("sizes-parameter", field, "a flow must have at least 1B"))
            }
            SizesSpec::Fixed(size) if size.0 > MOST_BYTES => Err(too_large("", size.0, MOST_BYTES)),
            SizesSpec::Fixed(size) => Ok(FlowSizes::Fixed(size.0)),
            SizesSpec::Endless => Ok(FlowSizes::Endless),
            SizesSpec::Described(DescribedSizes::File(spec)) => {
                let unit = match spec.unit {
                    ColumnUnit::Bytes => SizeUnit::Bytes,
                    ColumnUnit::Kilobytes => SizeUnit::Kilobytes,
                    ColumnUnit::Packets => SizeUnit::Packets(spec.packet_size.0),
                };
                let place = format!("{field}.file");
                let text = read_text(read, "workload-file", &place, &spec.file)?;
                let table = SizeTable::parse(&text, unit, &place).map_err(|mut error| {
                    error.message = format!("{}: {}", spec.file, error.message);
                    error
                })?;
                let largest = table.points().0.iter().fold(0.0, |a: f64, b| a.max(*b));
                if largest > MOST_BYTES as f64 {
                    let key = if spec.unit == ColumnUnit::Packets { "packet_size" } else { "file" };
                    return Err(too_large(key, largest as u64, MOST_BYTES));
                }
                Ok(FlowSizes::Table(table))
            }
            SizesSpec::Described(DescribedSizes::Uniform { min, max }) => {
                if min > max || max.0 == 0 {
                    return bad(
                        "max",
                        format!(
                            "max = \"{max}\": must be at least min = \"{min}\" and greater than 0B"
                        ),
                    );
                }
                if max.0 > MOST_BYTES {
                    return Err(too_large("max", max.0, MOST_BYTES));
                }
                Ok(FlowSizes::Table(SizeTable::uniform(min.0, max.0)))
            }
            SizesSpec::Described(DescribedSizes::Exponential { mean }) => {
                if mean.0 == 0 {
                    return bad("mean", "mean = \"0B\": must be at least 1B".into());
                }
                // The largest draw is 37 times the mean: the logarithm of 2^53.
                if mean.0 > MOST_BYTES / 37 {
                    return Err(too_large("mean", mean.0, MOST_BYTES / 37));
                }
                Ok(FlowSizes::Exponential { mean: mean.0 as f64 })
            }
            SizesSpec::Described(DescribedSizes::BoundedPareto { min, max, shape }) => {
                if min.0 == 0 || min >= max {
                    return bad(
                        "max",
                        format!("max = \"{max}\" must exceed min = \"{min}\", and min 0B"),
                    );
                }
                if max.0 > MOST_BYTES {
                    return Err(too_large("max", max.0, MOST_BYTES));
                }
                if !(shape.is_finite() && *shape > 0.0) {
                    return bad("shape", format!("shape = {shape}: must be greater than 0"));
                }
                Ok(FlowSizes::BoundedPareto { min: min.0 as f64, max: max.0 as f64, shape: *shape })
            }
        }
    }
}

/// A distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowSizes {
    /// Piecewise linear.
    Table(SizeTable),
    /// One size, in bytes.
    Fixed(u64),
    /// Exponential.
    Exponential {
        /// Mean in bytes.
        mean: f64,
    },
    /// Pareto between `min` and `max` bytes.
    BoundedPareto {
        /// Smallest size in bytes.
        min: f64,
        /// Largest size in bytes.
        max: f64,
        /// Tail exponent.
        shape: f64,
    },
    /// Flows that outlast any run.
    Endless,
}

impl FlowSizes {
    /// Draws a size by inversion: a whole number of bytes, at least 1. Consumes one random number.
    /// `endless` is the size of a flow that outlasts the run.
    pub fn sample(&self, stream: &mut RandomStream, endless: u64) -> u64 {
        let u = stream.unit();
        let bytes = match self {
            FlowSizes::Fixed(bytes) => return *bytes,
            FlowSizes::Endless => return endless,
            FlowSizes::Table(table) => table.quantile(u),
            FlowSizes::Exponential { mean } => -mean * libm::log1p(-u),
            FlowSizes::BoundedPareto { min, max, shape } => {
                let cut = libm::pow(min / max, *shape);
                min * libm::pow(1.0 - u * (1.0 - cut), -1.0 / shape)
            }
        };
        (libm::round(bytes) as u64).max(1)
    }

    /// Returns the mean in bytes; infinite for endless flows.
    pub fn mean(&self) -> f64 {
        match self {
            FlowSizes::Table(table) => table.mean(),
            FlowSizes::Fixed(bytes) => *bytes as f64,
            FlowSizes::Exponential { mean } => *mean,
            FlowSizes::BoundedPareto { min, max, shape } => {
                let cut = libm::pow(min / max, *shape);
                if (shape - 1.0).abs() < 1e-9 {
                    min * libm::log(max / min) / (1.0 - cut)
                } else {
                    shape * min / (shape - 1.0) * (1.0 - libm::pow(min / max, shape - 1.0))
                        / (1.0 - cut)
                }
            }
            FlowSizes::Endless => f64::INFINITY,
        }
    }
}

/// Parses the text forms of [`SizesSpec`]: text with a unit is a size, text with a dot or slash is
/// a path.
fn from_text(text: &str) -> SizesSpec {
    let text = text.trim();
    if text == "endless" {
        SizesSpec::Endless
    } else if let Ok(size) = text.parse() {
        SizesSpec::Fixed(size)
    } else if text.contains(['.', '/', '\\']) {
        let file = SizesFile {
            file: text.to_owned(),
            unit: ColumnUnit::Bytes,
            packet_size: default_packet_size(),
        };
        SizesSpec::Described(DescribedSizes::File(file))
    } else {
        SizesSpec::Builtin(text.to_owned())
    }
}

impl Serialize for SizesSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SizesSpec::Builtin(name) => serializer.serialize_str(name),
            SizesSpec::Fixed(size) => size.serialize(serializer),
            SizesSpec::Endless => serializer.serialize_str("endless"),
            SizesSpec::Described(described) => described.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SizesSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SizesSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a workload such as \"web-search\", a size such as \"70KB\", or a table with `kind`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<SizesSpec, E> {
                Ok(from_text(text))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<SizesSpec, E> {
                number.to_string().parse().map(SizesSpec::Fixed).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SizesSpec, E> {
                number.to_string().parse().map(SizesSpec::Fixed).map_err(E::custom)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<SizesSpec, A::Error> {
                DescribedSizes::deserialize(MapAccessDeserializer::new(map))
                    .map(SizesSpec::Described)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for SizesSpec {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let builtin: Vec<&str> =
            crate::workload::BUILTIN.iter().map(|builtin| builtin.name).collect();
        schemars::json_schema!({
            "description": "How large flows are: a built-in workload, one size for all, \"endless\", the path of a file with sizes in bytes, or a table that describes a distribution.",
            "anyOf": [
                { "enum": builtin },
                { "const": "endless" },
                generator.subschema_for::<Bytes>(),
                { "type": "string", "pattern": r"[./\\]" },
                generator.subschema_for::<DescribedSizes>(),
            ]
        })
    }
}
