//! Reads the unions that serde's enums become in a schema.

use serde_json::Value as Json;

/// Returns the branches of `oneOf` or `anyOf`.
pub fn branches(schema: &Json) -> Option<&[Json]> {
    let list = schema.get("oneOf").or_else(|| schema.get("anyOf"))?;
    list.as_array().map(Vec::as_slice)
}

/// Returns the words of a schema that is a choice among constant strings.
pub fn words(schema: &Json) -> Option<Vec<&str>> {
    if let Some(list) = schema.get("enum").and_then(Json::as_array) {
        return list.iter().map(Json::as_str).collect();
    }
    let mut all = Vec::new();
    for branch in branches(schema)? {
        match branch.get("const") {
            Some(word) => all.push(word.as_str()?),
            None => all.extend(branch.get("enum")?.as_array()?.iter().filter_map(Json::as_str)),
        }
    }
    Some(all)
}

/// Returns each word with the schema that describes it, if the schema is a choice among constant
/// strings.
pub fn described_words(schema: &Json) -> Option<Vec<(&str, &Json)>> {
    branches(schema)?.iter().map(|branch| Some((branch.get("const")?.as_str()?, branch))).collect()
}

/// Returns name and schema of each kind, if the schema is a choice among tables with a `kind`.
pub fn kinds(schema: &Json) -> Option<Vec<(&str, &Json)>> {
    branches(schema)?
        .iter()
        .map(|branch| Some((branch.pointer("/properties/kind/const")?.as_str()?, branch)))
        .collect()
}

/// Returns the kind that a table without `kind` has.
pub fn default_kind(schema: &Json) -> Option<&str> {
    schema.pointer("/default/kind")?.as_str()
}

/// Returns the constant strings among the branches.
pub fn constants(branches: &[Json]) -> Vec<&str> {
    branches.iter().filter_map(|branch| branch.get("const")?.as_str()).collect()
}
