//! Checks of single values.

use std::str::FromStr;

use serde_json::Value as Json;
use tailcut_engine::{Bytes, Rate, Time, UnitError};
use tailcut_net::amount::{Amount, Limit};

use super::expect::{allows, bound, quoted, type_of};
use crate::diagnostic::{Code, Problem};
use crate::document::{Node, Value};

/// Describes a quantity in words that fit after "expected"; `None` if `name` is not a quantity of
/// the schema.
pub(super) fn quantity_words(name: &str) -> Option<&'static str> {
    Some(match name {
        "Time" => "a time with its unit, such as \"32us\"",
        "Rate" => "a rate with its unit, such as \"10Gbps\"",
        "Bytes" => "a size with its unit, such as \"100KB\"",
        "Amount" => "an amount such as \"100packets\" or \"36KB\"",
        "Limit" => "\"unlimited\", or an amount such as \"100packets\" or \"36KB\"",
        _ => return None,
    })
}

pub(super) fn is_quantity(name: &str) -> bool {
    quantity_words(name).is_some()
}

/// Checks a quantity and its unit.
pub(super) fn quantity(name: &str, key: &str, node: &Node) -> Option<Problem> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => return Some(wrong_type(quantity_words(name)?, key, node)),
    };
    let error = match name {
        "Time" => Time::from_str(&text).err(),
        "Rate" => Rate::from_str(&text).err(),
        "Bytes" => Bytes::from_str(&text).err(),
        "Amount" => Amount::from_str(&text).err(),
        _ => Limit::from_str(&text).err(),
    }?;
    let problem = Problem::new(Code::BadQuantity, node.place, message(&error, key))
        .key(key)
        .expected(quantity_words(name)?);
    Some(match error {
        UnitError::MissingUnit { text, .. } => {
            problem.hint(format!("write for example \"{}{}\"", text.trim(), usual_unit(name)))
        }
        UnitError::UnknownUnit { unit, known, .. } => {
            let nearest = known.split(", ").find(|k| k.eq_ignore_ascii_case(&unit));
            match nearest {
                Some(nearest) => problem.hint(format!("did you mean `{nearest}`?")),
                None => problem.hint(format!("write one of the units {known}")),
            }
        }
        UnitError::NotANumber { .. }
        | UnitError::NotRepresentable { .. }
        | UnitError::TooLarge { .. } => problem,
    })
}

/// Returns the unit that a bare number most likely lacks.
fn usual_unit(name: &str) -> &'static str {
    match name {
        "Time" => "us",
        "Rate" => "Gbps",
        "Bytes" => "B",
        _ => "packets",
    }
}

fn message(error: &UnitError, key: &str) -> String {
    match error {
        UnitError::MissingUnit { text, .. } => format!("`{key}` = {text} has no unit"),
        UnitError::UnknownUnit { unit, quantity, .. } => {
            format!("{unit:?} is not a unit of {quantity}")
        }
        other => other.to_string(),
    }
}

/// Checks that the value is one of `words`.
pub(super) fn word(words: &[&str], key: &str, node: &Node) -> Option<Problem> {
    let expected = format!("one of {}", quoted(words));
    let Some(text) = node.text() else { return Some(wrong_type(expected, key, node)) };
    if words.contains(&text) {
        return None;
    }
    Some(
        Problem::new(Code::UnknownWord, node.place, format!("{text:?} is not a value of `{key}`"))
            .key(key)
            .expected(expected)
            .did_you_mean(text, words.iter().copied()),
    )
}

/// Checks a value where the schema expects a scalar.
pub(super) fn scalar(schema: &Json, key: &str, node: &Node) -> Option<Problem> {
    let expected = || super::expectation(&serde_json::Map::new(), schema);
    if let Some(word_) = schema.get("const").and_then(Json::as_str) {
        return word(&[word_], key, node);
    }
    if !type_of(node).iter().any(|name| allows(schema, name)) {
        return Some(wrong_type(expected(), key, node));
    }
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return None,
    };
    let out_of_range = || {
        Some(
            Problem::new(Code::OutOfRange, node.place, format!("`{key}` is {}", plain(node)))
                .key(key)
                .expected(expected()),
        )
    };
    let limit = |name| bound(schema, name).and_then(|text| text.parse::<f64>().ok());
    let fits = number.is_finite()
        && limit("minimum").is_none_or(|least| number >= least)
        && limit("maximum").is_none_or(|most| number <= most)
        && limit("exclusiveMinimum").is_none_or(|least| number > least)
        && limit("exclusiveMaximum").is_none_or(|most| number < most);
    if fits { None } else { out_of_range() }
}

fn plain(node: &Node) -> String {
    match &node.value {
        Value::Integer(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
        _ => node.describe(),
    }
}

/// Returns the problem of a value whose type is not the expected one.
pub(super) fn wrong_type(expected: impl Into<String>, key: &str, node: &Node) -> Problem {
    Problem::new(Code::WrongType, node.place, format!("`{key}` is {}", node.describe()))
        .key(key)
        .expected(expected)
}
