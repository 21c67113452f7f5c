//! Composes the JSON Schema of experiment files from the parameter structs of all components.

pub(crate) mod union;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value as Json};

use crate::sections::{ExperimentFile, default_kinds};

/// Returns the JSON Schema of experiment files. It is composed once per process, because composing
/// takes longer than checking a file.
pub fn schema() -> Json {
    static SCHEMA: LazyLock<Json> = LazyLock::new(compose);
    SCHEMA.clone()
}

fn compose() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema: Json = generator.into_root_schema_for::<ExperimentFile>().into();
    let definitions =
        schema["$defs"].as_object_mut().expect("a schema of this size has definitions");
    default_kinds(definitions);
    schema["title"] = "Tailcut experiment".into();
    schema
}

/// Makes `kind` optional in the schema of `T`, if `T` is a union of kinds with a default.
pub(crate) fn default_kind<T: JsonSchema + Default + serde::Serialize>(
    definitions: &mut Map<String, Json>,
) {
    let default = serde_json::to_value(T::default()).expect("parameters are plain data");
    let definition = &mut definitions[T::schema_name().as_ref()];
    let Some(branches) = definition.get_mut("oneOf").and_then(Json::as_array_mut) else { return };
    for branch in branches {
        if branch.pointer("/properties/kind/const") == default.get("kind") {
            branch["properties"]["kind"]["default"] = default["kind"].clone();
            drop_required(branch, |name| name == "kind");
        }
    }
    definition["default"] = default;
}

fn drop_required(branch: &mut Json, which: impl Fn(&str) -> bool) {
    let Some(required) = branch.get_mut("required").and_then(Json::as_array_mut) else { return };
    required.retain(|name| !name.as_str().is_some_and(&which));
    if required.is_empty() {
        branch.as_object_mut().expect("a branch is an object").remove("required");
    }
}

/// The parameters of a component, all optional: a scheme's changes to them.
pub(crate) struct Partial<T>(PhantomData<T>);

impl<T> Default for Partial<T> {
    fn default() -> Self {
        Partial(PhantomData)
    }
}

impl<T: JsonSchema> JsonSchema for Partial<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Change", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(mut branches) = schema.remove("oneOf") {
            for branch in branches.as_array_mut().into_iter().flatten() {
                drop_required(branch, |_| true);
                for property in branch["properties"].as_object_mut().into_iter().flatten() {
                    if let Some(property) = property.1.as_object_mut() {
                        property.remove("default");
                    }
                }
            }
            // A change need not name its kind, and several kinds may share a parameter: more than
            // one branch may match.
            schema.insert("anyOf".to_owned(), branches);
        }
        schema
    }
}
