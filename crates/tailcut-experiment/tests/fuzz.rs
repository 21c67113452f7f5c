//! Random small experiments, drawn from the schema: none panics, hangs or loses a packet. What the schema gains is drawn too.

use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use serde_json::{json, Map, Value as Json};
use tailcut_experiment::{load_text, run, schema, RunError};

/// Experiments that are carried out.
const EXPERIMENTS: u32 = 2_000;
/// Larger ones are not carried out: there are enough small ones.
const MOST_PACKET_HOPS: u64 = 30_000;
const MOST_FLOWS: u64 = 500;
/// A run that goes on for longer than this, a thousand times what was expected of it, does not end.
const ENDLESS_PACKET_HOPS: u64 = 100 * MOST_PACKET_HOPS * 10;

type Values = BoxedStrategy<Json>;

fn words(words: &'static [&'static str]) -> Values {
    prop::sample::select(words).prop_map(Json::from).boxed()
}

/// Values of the types that are written with a unit.
fn with_unit(name: &str) -> Option<Values> {
    Some(match name {
        "Time" => {
            words(&["0s", "1ns", "500ns", "3us", "10us", "80us", "1ms", "4ms", "10ms", "200ms"])
        }
        "Rate" => words(&["10Mbps", "100Mbps", "333Mbps", "1Gbps", "1Gbps", "10Gbps"]),
        "Bytes" => {
            words(&["0B", "1B", "536B", "1460B", "3KB", "9000B", "20KB", "64KiB", "100KB", "1MB"])
        }
        "Amount" => {
            words(&["0packets", "1packet", "3packets", "12packets", "100packets", "1B", "30KB"])
        }
        "Limit" => {
            words(&["unlimited", "1packet", "3packets", "20packets", "100packets", "3KB", "36KB"])
        }
        _ => return None,
    })
}

/// The definitions of a schema, and the names of those that are being drawn: some hold themselves, such as parts of a mix.
#[derive(Clone)]
struct Definitions<'a> {
    all: &'a Json,
    within: Vec<&'a str>,
}

/// How often a definition may stand within itself.
const NESTED: usize = 2;

/// Values that a schema allows, and a few that it does not.
fn values<'a>(definitions: &Definitions<'a>, schema: &'a Json) -> Values {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        if definitions.within.iter().filter(|outer| **outer == name).count() == NESTED {
            return Just(json!({})).boxed();
        }
        let mut inner = definitions.clone();
        inner.within.push(name);
        return with_unit(name).unwrap_or_else(|| values(&inner, &definitions.all[name]));
    }
    if let Some(constant) = schema.get("const") {
        return Just(constant.clone()).boxed();
    }
    if let Some(several) = schema["enum"].as_array() {
        return prop::sample::select(several.clone()).boxed();
    }
    if let Some(branches) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let branches = branches.iter().filter(|branch| branch["type"] != "null");
        let branches: Vec<Values> = branches.map(|branch| values(definitions, branch)).collect();
        return prop::strategy::Union::new(branches).boxed();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => table(definitions, schema),
        Some("array") => {
            let items = values(definitions, &schema["items"]);
            prop::collection::vec(items, 0..4).prop_map(Json::from).boxed()
        }
        Some("integer") => {
            prop_oneof![12 => 1..9u64, 1 => Just(0), 2 => 9..300u64].prop_map(Json::from).boxed()
        }
        Some("number") => prop_oneof![8 => 1..100u32, 1 => Just(0), 1 => 100..500u32]
            .prop_map(|percent| (f64::from(percent) / 100.0).into())
            .boxed(),
        Some("boolean") => any::<bool>().prop_map(Json::from).boxed(),
        _ => words(&["h0>s0", "h0>h1", "s0>s1", "none.csv", ""]),
    }
}

/// Some switches of each topology that has several.
const SWITCHES: [&str; 8] = ["edge0", "edge3", "agg1", "core0", "leaf0", "spine1", "s0", "s5"];

/// A table with what is required and now and then something else; one without names of its own is of switches.
fn table<'a>(definitions: &Definitions<'a>, schema: &'a Json) -> Values {
    let Some(properties) = schema["properties"].as_object() else {
        if !schema["additionalProperties"].is_object() {
            return Just(json!({})).boxed();
        }
        let of_each = values(definitions, &schema["additionalProperties"]);
        let switches = prop::sample::select(SWITCHES.map(String::from).to_vec());
        return prop::collection::btree_map(switches, of_each, 0..3)
            .prop_map(|entries| Json::Object(entries.into_iter().collect()))
            .boxed();
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let entries: Vec<BoxedStrategy<Option<(String, Json)>>> = properties
        .iter()
        .map(|(name, property)| {
            let (key, always) = (name.clone(), name == "kind" || required.contains(&name.as_str()));
            let entry = values(definitions, property).prop_map(move |value| (key.clone(), value));
            if always {
                entry.prop_map(Some).boxed()
            } else {
                prop::option::weighted(0.12, entry).boxed()
            }
        })
        .collect();
    entries
        .prop_map(|entries| Json::Object(entries.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

/// Sections that say nothing of a run, or are drawn below.
const FIXED: [&str; 8] =
    ["title", "question", "seeds", "horizon", "model", "schemes", "sweep", "report"];

/// An experiment that takes milliseconds, unless what was drawn says otherwise.
fn experiments() -> Values {
    let schema = schema();
    let definitions = Definitions { all: &schema["$defs"], within: vec![] };
    let sections = schema["properties"].as_object().expect("an experiment has sections");
    let drawn = sections.iter().filter(|(name, _)| !FIXED.contains(&name.as_str()));
    let drawn: Vec<BoxedStrategy<(String, Json)>> = drawn
        .map(|(name, section)| {
            let name = name.clone();
            values(&definitions, section).prop_map(move |value| (name.clone(), value)).boxed()
        })
        .collect();
    let parts = (
        drawn,
        prop::sample::select(vec!["20us", "300us", "1ms"]),
        prop::sample::select(vec!["0s", "1ms", "10ms", "40ms"]),
        1..1_000u64,
    );
    parts
        .prop_map(|(sections, arrivals, drain, seed)| {
            let mut experiment = json!({
                "title": "fuzz", "seeds": [seed],
                "horizon": { "arrivals": arrivals, "drain": drain },
            });
            let table = experiment.as_object_mut().expect("an experiment is a table");
            table.extend(sections);
            make_small(&mut experiment);
            experiment
        })
        .boxed()
}

/// Gives what is large by default a small value where none was drawn.
fn make_small(experiment: &mut Json) {
    let mut defaults = |section: &str, kind: &str, values: Json| {
        if experiment[section]["kind"] == kind {
            let table = experiment[section].as_object_mut().expect("a section is a table");
            for (key, value) in values.as_object().expect("defaults are a table") {
                table.entry(key).or_insert(value.clone());
            }
        }
    };
    defaults("topology", "fat-tree", json!({"k": 4}));
    defaults("traffic", "permutation", json!({"sizes": "40KB"}));
    defaults("traffic", "transfers", json!({"bytes": "100KB", "sizes": "30KB"}));
    defaults("traffic", "shuffle", json!({"bytes": "400KB"}));
    defaults("traffic", "bucket-sort", json!({"numbers": 300, "jitter": "10us"}));
    defaults("traffic", "pings", json!({"count": 5}));
    defaults("traffic", "partition-aggregate", json!({"workers": 3, "queries_per_second": 4000.0}));
    defaults(
        "traffic",
        "long-and-short",
        json!({"short_flows_per_second": 9000.0, "long": "100KB"}),
    );
    defaults("traffic", "incast", json!({"fan_in": 3, "sizes": "20KB"}));
}

/// Loads and runs an experiment; refused or large ones are rejected.
fn carry_out(experiment: &Json) -> Result<(), TestCaseError> {
    let reject = |why: String| Err(TestCaseError::reject(why));
    let toml = toml::Value::try_from(experiment).expect("it has no null");
    let text = toml::to_string(&toml).expect("tables become text");
    let plan = match load_text("fuzz.toml", &text, Path::new("tests/files"), &[]) {
        Ok(plan) => plan,
        Err(failure) => {
            for diagnostic in &failure.diagnostics {
                prop_assert!(diagnostic.code.starts_with("TC-E"), "{failure}");
                prop_assert!(!diagnostic.message.is_empty());
            }
            return reject(failure.to_string());
        }
    };
    let facts = &plan.runs[0].facts;
    if facts.expected_packet_hops > MOST_PACKET_HOPS || facts.flows > MOST_FLOWS {
        return reject("too large".into());
    }
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let outcome =
        run(&planned, None, &mut |progress| match progress.packet_hops > ENDLESS_PACKET_HOPS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(RunError::Interrupted) => {
            return Err(TestCaseError::fail(format!("it does not end:\n{text}")))
        }
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
    };
    let counters = outcome.counters;
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    prop_assert_eq!(counters.sent, accounted, "packets are lost:\n{}", text);
    Ok(())
}

#[test]
fn random_small_experiments_neither_panic_nor_hang_nor_lose_a_packet() {
    let config = Config {
        cases: EXPERIMENTS,
        max_global_rejects: 50 * EXPERIMENTS,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(4),
        max_shrink_iters: 400,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&experiments(), |experiment| carry_out(&experiment));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
