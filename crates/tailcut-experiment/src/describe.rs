//! A catalogue of all components and their parameters, for `tailcut list` and the documentation.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use tailcut_net::workload;

use crate::check::expectation;
use crate::schema::{schema, union};
use crate::sections::SECTIONS;

/// A component that an experiment can name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Component {
    /// The component's section, such as `queue`. A parameter with choices of its own is a group,
    /// too (`transport.congestion`, `balance.detect`); `sizes` is the group of built-in flow-size
    /// distributions.
    pub group: String,
    /// The `kind`, or the word that the parameter takes; the section's name if the section has no
    /// kinds.
    pub name: String,
    /// A description of one line: beside its name it fits into 100 columns.
    pub summary: String,
    /// What the summary leaves out; empty if nothing.
    pub details: String,
    /// Whether a section without `kind` means this component.
    pub default: bool,
    /// The parameters, in the order of their declaration.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a component.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// The parameter's key.
    pub name: String,
    /// The accepted values, in words.
    pub takes: String,
    /// The default; `None` if the parameter is required, or if its default follows from other
    /// settings.
    pub default: Option<Json>,
    /// Whether the parameter must be given.
    pub required: bool,
    /// A description, with the source of the default.
    pub doc: String,
}

/// Returns every component, by section, in the order of the registries.
pub fn describe() -> Vec<Component> {
    let schema = schema();
    let definitions = schema["$defs"].as_object().expect("the schema has definitions");
    let named = |group: &str| {
        reference(&schema["properties"][group]).expect("a section is a reference").to_owned()
    };
    let mut listed: BTreeSet<String> = SECTIONS.iter().map(|group| named(group)).collect();
    let mut components = Vec::new();
    for &group in SECTIONS {
        let property = &schema["properties"][group];
        let section = &definitions[&named(group)];
        match union::kinds(section) {
            Some(kinds) => {
                let default = section.get("default");
                components.extend(of_kinds(definitions, group, &kinds, default));
                for (_, branch) in kinds {
                    components.extend(chosen_within(definitions, group, branch, &mut listed));
                }
            }
            None => {
                components.push(Component {
                    group: group.to_owned(),
                    name: group.to_owned(),
                    summary: first_paragraph(property),
                    details: other_paragraphs(property),
                    default: true,
                    parameters: parameters(definitions, section, property.get("default")),
                });
                components.extend(chosen_within(definitions, group, section, &mut listed));
            }
        }
    }
    components.extend(workload::BUILTIN.iter().map(|table| Component {
        group: "sizes".to_owned(),
        name: table.name.to_owned(),
        summary: table.summary.to_owned(),
        details: String::new(),
        default: false,
        parameters: vec![],
    }));
    components
}

/// Returns a component for each kind of one choice.
fn of_kinds(
    definitions: &Map<String, Json>,
    group: &str,
    kinds: &[(&str, &Json)],
    default: Option<&Json>,
) -> Vec<Component> {
    let of_kind = |(kind, branch): &(&str, &Json)| {
        let defaults = default.filter(|d| d["kind"] == **kind);
        Component {
            group: group.to_owned(),
            name: (*kind).to_owned(),
            summary: first_paragraph(branch),
            details: other_paragraphs(branch),
            default: defaults.is_some(),
            parameters: parameters(definitions, branch, defaults),
        }
    };
    kinds.iter().map(of_kind).collect()
}

/// Returns the kinds and words that the parameters of `table` can be. A choice is listed where it
/// is met first; `listed` has the choices met so far.
fn chosen_within(
    definitions: &Map<String, Json>,
    group: &str,
    table: &Json,
    listed: &mut BTreeSet<String>,
) -> Vec<Component> {
    let mut found = Vec::new();
    for (parameter, property) in
        table.get("properties").and_then(Json::as_object).into_iter().flatten()
    {
        let optional = || property.get("anyOf")?.as_array()?.iter().find_map(reference);
        let of_list = || reference(property.get("items")?);
        let Some(name) = reference(property).or_else(of_list).or_else(optional) else {
            continue;
        };
        let target = &definitions[name];
        let group = format!("{group}.{parameter}");
        let default = property.get("default").or(target.get("default"));
        if let Some(kinds) = union::kinds(target) {
            if listed.insert(name.to_owned()) {
                found.extend(of_kinds(definitions, &group, &kinds, default));
                for (_, branch) in kinds {
                    found.extend(chosen_within(definitions, &group, branch, listed));
                }
            }
        } else if let Some(words) = union::described_words(target)
            && listed.insert(name.to_owned())
        {
            found.extend(words.into_iter().map(|(word, branch)| Component {
                group: group.clone(),
                name: word.to_owned(),
                summary: first_paragraph(branch),
                details: other_paragraphs(branch),
                default: default.is_some_and(|default| default == word),
                parameters: vec![],
            }));
        }
    }
    found
}

/// Returns the name of the definition that a schema refers to.
fn reference(schema: &Json) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn text(schema: &Json) -> &str {
    schema.get("description").and_then(Json::as_str).unwrap_or_default()
}

fn first_paragraph(schema: &Json) -> String {
    unwrapped(text(schema).split("\n\n").next().unwrap_or_default())
}

/// Returns what follows the first paragraph of a description, as one paragraph.
fn other_paragraphs(schema: &Json) -> String {
    unwrapped(text(schema).split_once("\n\n").map_or("", |(_, rest)| rest))
}

/// Joins the lines of a description, which is wrapped as in the source.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parameters(
    definitions: &Map<String, Json>,
    branch: &Json,
    defaults: Option<&Json>,
) -> Vec<Parameter> {
    let Some(properties) = branch.get("properties").and_then(Json::as_object) else {
        return vec![];
    };
    let required = |name: &str| {
        let list = branch.get("required").and_then(Json::as_array).into_iter().flatten();
        list.filter_map(Json::as_str).any(|r| r == name)
    };
    properties
        .iter()
        .filter(|(name, _)| *name != "kind")
        .map(|(name, property)| Parameter {
            name: name.clone(),
            takes: expectation(definitions, property),
            default: defaults
                .and_then(|d| d.get(name))
                .or(property.get("default"))
                .filter(|d| !d.is_null())
                .cloned(),
            required: required(name),
            doc: unwrapped(text(property)),
        })
        .collect()
}
