//! The parameters in the JSON Schema and in plans.

use schemars::schema_for;
use serde_json::{Value, json};
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::TrafficSpec;

/// Collects every property and every alternative below `schema`, as (path, has a description).
fn described(schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                if key == "properties" {
                    for (name, property) in value.as_object().expect("properties are an object") {
                        let described = property.get("description").is_some()
                            || property.get("const").is_some();
                        found.push((format!("{path}.{name}"), described));
                    }
                }
                described_below(key, value, path, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| described(value, path, found)),
        _ => {}
    }
}

fn described_below(key: &str, value: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    described(value, &format!("{path}.{key}"), found);
}

#[test]
fn every_parameter_is_described_in_the_json_schema() {
    for schema in [schema_for!(TopologySpec), schema_for!(TrafficSpec)] {
        let mut found = vec![];
        described(schema.as_value(), "", &mut found);
        assert!(found.len() > 30, "the schema lists {} parameters", found.len());
        let silent: Vec<_> = found.iter().filter(|(_, described)| !described).collect();
        assert!(silent.is_empty(), "not described: {silent:?}");
    }
}

#[test]
fn a_resolved_topology_reads_back_as_itself() {
    for kind in ["fat-tree", "leaf-spine", "dumbbell", "parallel-paths", "star", "chain"] {
        let spec: TopologySpec = serde_json::from_value(json!({"kind": kind})).unwrap();
        let resolved = serde_json::to_value(&spec).unwrap();
        assert!(
            resolved.as_object().unwrap().len() > 2,
            "every default of {kind} is explicit: {resolved}"
        );
        assert_eq!(serde_json::from_value::<TopologySpec>(resolved).unwrap(), spec);
    }
}

#[test]
fn resolved_traffic_reads_back_as_itself() {
    for spec in [
        json!({"kind": "poisson"}),
        json!({"kind": "poisson", "sizes": {"kind": "file", "file": "a.cdf", "unit": "KB"}}),
        json!({"kind": "poisson", "sizes": "sizes/a.cdf"}),
        json!({"kind": "poisson", "sizes": {"kind": "bounded-pareto", "min": "1KB", "max": "1MB", "shape": 1.2}}),
        json!({"kind": "permutation", "sizes": "endless"}),
        json!({"kind": "incast", "sizes": "70KB"}),
        json!({"kind": "trace", "file": "flows.csv"}),
        json!({"kind": "mix", "parts": [{"kind": "permutation"}, {"kind": "poisson", "load": 0.1}]}),
    ] {
        let parsed: TrafficSpec = serde_json::from_value(spec.clone()).unwrap();
        let resolved = serde_json::to_value(&parsed).unwrap();
        assert_eq!(serde_json::from_value::<TrafficSpec>(resolved).unwrap(), parsed, "{spec}");
    }
}

#[test]
fn an_unknown_key_and_a_missing_unit_are_refused() {
    let unknown =
        serde_json::from_value::<TopologySpec>(json!({"kind": "fat-tree", "pods": 4})).unwrap_err();
    assert!(unknown.to_string().contains("unknown field `pods`"), "{unknown}");
    let bare = serde_json::from_value::<TopologySpec>(json!({"kind": "fat-tree", "rate": 1000}))
        .unwrap_err();
    assert!(bare.to_string().contains("has no unit"), "{bare}");
    let tier = json!({"kind": "fat-tree", "rate": {"host": "1Gbps", "core": "1Gbps"}});
    let missing = serde_json::from_value::<TopologySpec>(tier).unwrap_err();
    assert!(missing.to_string().contains("missing field `aggregation`"), "{missing}");
}
