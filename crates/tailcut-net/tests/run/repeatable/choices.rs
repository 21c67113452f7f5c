//! The choices that a schema offers, and those that an experiment makes: kinds, words, switches
//! that are on or off, and parts that are present or left out.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns every choice, by the place of its parameter.
pub fn offered(schema: &Value) -> BTreeSet<String> {
    chosen(schema, None)
}

/// Returns the choices that a value makes, defaults included.
pub fn made(schema: &Value, value: &Value) -> BTreeSet<String> {
    chosen(schema, Some(value))
}

fn chosen<'a>(schema: &'a Value, value: Option<&'a Value>) -> BTreeSet<String> {
    let mut walk =
        Walk { definitions: &schema["$defs"], entered: BTreeSet::new(), found: BTreeSet::new() };
    walk.node(schema, value, "");
    walk.found
}

struct Walk<'a> {
    definitions: &'a Value,
    /// The definitions entered without a value: some contain themselves.
    entered: BTreeSet<&'a str>,
    found: BTreeSet<String>,
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema[key].as_array().map_or(&[], Vec::as_slice)
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf", "allOf"].into_iter().flat_map(|key| list(schema, key))
}

impl<'a> Walk<'a> {
    fn definition(&self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        Some((name, &self.definitions[name]))
    }

    /// Collects the choices of a value, or every choice below the schema without one.
    fn node(&mut self, schema: &'a Value, value: Option<&'a Value>, place: &str) {
        if let Some((name, definition)) = self.definition(schema)
            && (value.is_some() || self.entered.insert(name))
        {
            self.node(definition, value, name);
        }
        let switch = [Value::Bool(false), Value::Bool(true)];
        let switch = switch.iter().filter(|_| schema["type"] == "boolean");
        let words = schema.get("const").into_iter().chain(list(schema, "enum")).chain(switch);
        for word in words.filter(|word| value.is_none_or(|value| value == *word)) {
            let word = word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            self.found.insert(format!("{place} {word}"));
        }
        for branch in branches(schema) {
            if value.is_none_or(|value| self.accepts(branch, value)) {
                self.node(branch, value, place);
            }
        }
        self.table(schema, value, place);
        let each = value.map(|value| value.as_array().map_or(&[][..], Vec::as_slice));
        self.several(&schema["items"], each.map(|each| each.iter().collect()), place);
        let values = |value: &'a Value| value.as_object().into_iter().flat_map(|of| of.values());
        let each = value.map(|value| values(value).collect());
        self.several(&schema["additionalProperties"], each, place);
    }

    fn table(&mut self, schema: &'a Value, value: Option<&'a Value>, place: &str) {
        let mut place = place.to_owned();
        if let Some(kind) = schema["properties"]["kind"]["const"].as_str() {
            place = format!("{place} {kind}");
            self.found.insert(place.clone());
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if name == "kind" {
                continue;
            }
            let place = format!("{place}.{name}");
            let given = value
                .map(|value| value.get(name).or(property.get("default")).unwrap_or(&Value::Null));
            if let Some(absent) = self.absent(property) {
                if given.is_none_or(|given| *given == absent) {
                    self.found.insert(format!("{place} left out"));
                }
                if given.is_none_or(|given| *given != absent) {
                    self.found.insert(format!("{place} given"));
                }
            }
            self.node(property, given, &place);
        }
    }

    fn several(&mut self, schema: &'a Value, values: Option<Vec<&'a Value>>, place: &str) {
        if !schema.is_object() {
            return;
        }
        match values {
            None => self.node(schema, None, place),
            Some(values) => values.into_iter().for_each(|v| self.node(schema, Some(v), place)),
        }
    }

    /// Returns the value of a parameter that is left out, if it may be left out altogether.
    fn absent(&self, property: &Value) -> Option<Value> {
        let nothing = |schema: &Value| {
            schema["type"] == "null" || list(schema, "type").iter().any(|one| one == "null")
        };
        if nothing(property) || branches(property).any(nothing) {
            return Some(Value::Null);
        }
        property.get("default").filter(|default| *default == "unlimited").cloned()
    }

    /// Returns whether a branch accepts a value, judged by kinds, words and types.
    fn accepts(&self, schema: &'a Value, value: &Value) -> bool {
        let defined = self.definition(schema).is_none_or(|(_, schema)| self.accepts(schema, value));
        let word = schema.get("const").is_none_or(|word| word == value);
        let one_of = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        let kind = schema["properties"].get("kind");
        let kind = kind.is_none_or(|kind| self.accepts(kind, &value["kind"]));
        let mut several = branches(schema).peekable();
        let branch = several.peek().is_none() || several.any(|branch| self.accepts(branch, value));
        let typed = match schema["type"].as_str() {
            Some("null") => value.is_null(),
            Some("boolean") => value.is_boolean(),
            Some("string") => value.is_string(),
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("integer" | "number") => value.is_number(),
            _ => true,
        };
        defined && word && one_of && kind && branch && typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::{JsonSchema, schema_for};
    use serde::Serialize;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[allow(dead_code, reason = "the schema alone is of interest")]
    enum Animal {
        Cat(Cat),
        Herd { of: Vec<Animal>, shepherd: Option<String> },
    }

    #[derive(Serialize, JsonSchema)]
    struct Cat {
        #[serde(default)]
        asleep: bool,
        colour: Colour,
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code, reason = "the schema alone is of interest")]
    enum Colour {
        Black,
        /// Of this and that.
        Mixed,
    }

    fn words(found: BTreeSet<String>) -> Vec<String> {
        found.into_iter().collect()
    }

    #[test]
    fn a_schema_offers_kinds_words_switches_and_what_may_be_left_out() {
        let schema = schema_for!(Vec<Animal>);
        let all = words(offered(schema.as_value()));
        let expected = [
            "Animal cat",
            "Animal herd",
            "Animal herd.shepherd given",
            "Animal herd.shepherd left out",
            "Cat.asleep false",
            "Cat.asleep true",
            "Colour black",
            "Colour mixed",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_value_makes_the_choices_that_it_names_and_those_of_defaults() {
        let schema = schema_for!(Vec<Animal>);
        let cat = json!({ "kind": "cat", "colour": "mixed" });
        let of = |value: Value| words(made(schema.as_value(), &value));
        assert_eq!(of(json!([cat])), ["Animal cat", "Cat.asleep false", "Colour mixed"]);
        let herd = json!({ "kind": "herd", "of": [cat], "shepherd": "Ann" });
        let found = of(json!([herd]));
        assert!(found.contains(&"Animal herd.shepherd given".to_owned()), "{found:?}");
        assert!(found.contains(&"Colour mixed".to_owned()), "{found:?}");
        assert!(!found.contains(&"Colour black".to_owned()), "{found:?}");
    }
}
