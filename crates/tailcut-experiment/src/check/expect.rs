//! Descriptions of what a schema expects, in words that fit after "expected".

use serde_json::{Map, Value as Json};

use crate::check::scalar;
use crate::document::{Node, Value};
use crate::schema::union;

/// Returns the names of the JSON types that a node has: an integer is also a number.
pub(super) fn type_of(node: &Node) -> &'static [&'static str] {
    match node.value {
        Value::Bool(_) => &["boolean"],
        Value::Integer(_) => &["integer", "number"],
        Value::Float(_) => &["number"],
        Value::Text(_) => &["string"],
        Value::Datetime(_) => &[],
        Value::Array(_) => &["array"],
        Value::Table(_) => &["object"],
    }
}

/// Returns whether the schema's `type`, `const` or `enum` admits the JSON type `name`.
pub(super) fn allows(schema: &Json, name: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(one)) => one == name,
        Some(Json::Array(several)) => several.iter().any(|one| one == name),
        _ => name == "string" && (schema.get("const").is_some() || schema.get("enum").is_some()),
    }
}

/// Describes the values that the schema accepts.
pub fn expectation(definitions: &Map<String, Json>, schema: &Json) -> String {
    if let Some(name) =
        schema.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix("#/$defs/"))
    {
        return match (scalar::quantity_words(name), definitions.get(name)) {
            (Some(words), _) => words.to_owned(),
            (None, Some(target)) => expectation(definitions, target),
            (None, None) => "a value".to_owned(),
        };
    }
    if let Some(words) = union::words(schema) {
        return format!("one of {}", quoted(&words));
    }
    if let Some(kinds) = union::kinds(schema) {
        let kinds: Vec<_> = kinds.iter().map(|k| k.0).collect();
        return format!("a table whose `kind` is one of {}", kinds.join(", "));
    }
    if let Some(branches) = union::branches(schema) {
        let mut parts: Vec<String> =
            union::constants(branches).iter().map(|word| format!("{word:?}")).collect();
        let open = |branch: &&Json| branch.get("const").is_none() && !allows(branch, "null");
        for part in branches.iter().filter(open).map(|branch| expectation(definitions, branch)) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        return parts.join(", or ");
    }
    if allows(schema, "integer") {
        return match (bound(schema, "minimum"), bound(schema, "maximum")) {
            (Some(least), Some(most)) => format!("an integer from {least} to {most}"),
            (Some(least), None) => format!("an integer of at least {least}"),
            (None, Some(most)) => format!("an integer of at most {most}"),
            (None, None) => "an integer".to_owned(),
        };
    }
    if allows(schema, "number") {
        let below = bound(schema, "exclusiveMaximum").map(|most| format!("below {most}"));
        return match (bound(schema, "minimum"), bound(schema, "maximum").or(below)) {
            (Some(least), Some(most)) => format!("a number from {least} to {most}"),
            (Some(least), None) => format!("a number of at least {least}"),
            (None, Some(most)) => format!("a number of at most {most}"),
            (None, None) => "a number".to_owned(),
        };
    }
    if allows(schema, "boolean") {
        return "true or false".to_owned();
    }
    if allows(schema, "array") {
        return match schema.get("items") {
            Some(items) => format!("a list; each element {}", expectation(definitions, items)),
            None => "a list".to_owned(),
        };
    }
    if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
        let names: Vec<_> = properties.keys().map(String::as_str).collect();
        return format!("a table of {}", names.join(", "));
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        return format!("a table; each value {}", expectation(definitions, values));
    }
    if allows(schema, "object") {
        return "a table".to_owned();
    }
    "a string".to_owned()
}

/// Returns the bound `name` of a number as text. The integer `format` gives the bound where the
/// schema has none.
pub(super) fn bound(schema: &Json, name: &str) -> Option<String> {
    if let Some(value) = schema.get(name).and_then(Json::as_f64) {
        return Some(value.to_string());
    }
    match (name, schema.get("format").and_then(Json::as_str)) {
        ("minimum", Some("uint8" | "uint16" | "uint32" | "uint64")) => Some("0".to_owned()),
        ("maximum", Some("uint8")) => Some(u8::MAX.to_string()),
        ("maximum", Some("uint16")) => Some(u16::MAX.to_string()),
        ("maximum", Some("uint32")) => Some(u32::MAX.to_string()),
        _ => None,
    }
}

/// Joins words, each in quotes.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|w| format!("{w:?}")).collect::<Vec<_>>().join(", ")
}
