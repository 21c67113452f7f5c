//! Common parts of all components' parameters: errors, the files they name, and values that may
//! differ from place to place.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use crate::files::FileReader;

/// A parameter that cannot be realised: what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// Stable and unique: `"fat-tree-k"`.
    pub code: &'static str,
    /// The parameter, as a path below its section: `"k"`, `"rate.core"`.
    pub field: String,
    /// The value found, and the values allowed.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl SpecError {
    /// An error of `field` without a hint.
    pub fn new(
        code: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> SpecError {
        SpecError { code, field: field.into(), message: message.into(), hint: None }
    }

    /// The same error with a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> SpecError {
        self.hint = Some(hint.into());
        self
    }
}

/// The closest of `known` to a misspelt `word`, when one is close.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Reads the text file that `field` names.
pub(crate) fn read_text(
    read: &dyn FileReader,
    code: &'static str,
    field: &str,
    path: &str,
) -> Result<String, SpecError> {
    let bytes = read.file(path).map_err(|error| {
        SpecError::new(code, field, format!("{path}: cannot be read: {error}"))
            .hint("paths are relative to the experiment file")
    })?;
    String::from_utf8(bytes)
        .map_err(|_| SpecError::new(code, field, format!("{path}: is not text in UTF-8")))
}

/// A value for all places, or a table with a value per place (`S`, a struct).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OneOrEach<T, S> {
    /// The same value everywhere.
    One(T),
    /// A value for each place.
    Each(S),
}

impl<T: JsonSchema, S: JsonSchema> JsonSchema for OneOrEach<T, S> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_{}", T::schema_name(), S::schema_name()).into()
    }
    /// Tells types of one name apart: the tiers of a fat-tree are not those of a leaf-spine fabric.
    fn schema_id() -> Cow<'static, str> {
        format!("{}::OneOrEach<{}, {}>", module_path!(), T::schema_id(), S::schema_id()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [generator.subschema_for::<T>(), generator.subschema_for::<S>()]
        })
    }
}

/// Written out because serde's untagged enums forget why a value was refused.
impl<'de, T: Deserialize<'de>, S: Deserialize<'de>> Deserialize<'de> for OneOrEach<T, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T, S>(std::marker::PhantomData<(T, S)>);
        impl<'de, T: Deserialize<'de>, S: Deserialize<'de>> de::Visitor<'de> for Visitor<T, S> {
            type Value = OneOrEach<T, S>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value, or one for each place")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(OneOrEach::One)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(OneOrEach::One)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(OneOrEach::One)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(OneOrEach::One)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                S::deserialize(MapAccessDeserializer::new(map)).map(OneOrEach::Each)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                S::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrEach::Each)
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}
