//! Random small experiments, drawn from the schema: none panics, hangs or loses track of a packet.
//! New parameters are drawn by themselves. One number in sixty is extreme.
//!
//! Every run draws the same 200 experiments, so that a failure is due to a change. `make explore`
//! draws 100 others, `make fuzz` 2,000.

mod carry;
mod extremes;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use serde_json::{Map, Value as Json, json};
use tailcut_experiment::{describe, schema};

use self::carry::{Ending, carry_out};
use self::extremes::small;

/// The number of experiments that are carried out, unless the environment sets another.
const EXPERIMENTS: u32 = 200;
/// The most experiments drawn until each component was part of a run.
const DRAWS: u32 = 100_000;

type Values = BoxedStrategy<Json>;

fn words(words: &'static [&'static str]) -> Values {
    prop::sample::select(words).prop_map(Json::from).boxed()
}

/// Returns mostly small values, and one in 61 at an extreme.
fn mostly(small: &'static [&'static str], edges: &'static [&'static str]) -> Values {
    prop_oneof![60 => words(small), 1 => words(edges)].boxed()
}

/// Returns values of a quantity with its unit; `None` for other types.
fn with_unit(name: &str) -> Option<Values> {
    use extremes::{AMOUNTS, BYTES, RATES, TIMES};
    Some(match name {
        "Time" => mostly(
            &["0s", "1ns", "500ns", "3us", "10us", "80us", "1ms", "4ms", "10ms", "200ms"],
            TIMES,
        ),
        "Rate" => mostly(&["10Mbps", "100Mbps", "333Mbps", "1Gbps", "1Gbps", "10Gbps"], RATES),
        "Bytes" => mostly(
            &["0B", "1B", "536B", "1460B", "3KB", "9000B", "20KB", "64KiB", "100KB", "1MB"],
            BYTES,
        ),
        "Amount" => mostly(
            &["0packets", "1packet", "3packets", "12packets", "100packets", "1B", "30KB"],
            AMOUNTS,
        ),
        "Limit" => mostly(
            &["unlimited", "1packet", "3packets", "20packets", "100packets", "3KB", "36KB"],
            AMOUNTS,
        ),
        _ => return None,
    })
}

/// The definitions of a schema, and the names of those being drawn: some contain themselves, such
/// as the parts of a mix.
#[derive(Clone)]
struct Definitions<'a> {
    all: &'a Json,
    within: Vec<&'a str>,
}

/// How often a definition may occur within itself.
const NESTED: usize = 2;

/// Returns values that a schema allows, and a few that it does not.
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
            let edges = prop::sample::select(extremes::INTEGERS);
            prop_oneof![48 => 1..9i64, 4 => Just(0), 8 => 9..300i64, 1 => edges]
                .prop_map(Json::from)
                .boxed()
        }
        Some("number") => {
            let usual = prop_oneof![8 => 1..100u32, 1 => Just(0), 1 => 100..500u32];
            let usual = usual.prop_map(|percent| Json::from(f64::from(percent) / 100.0));
            let edges = prop::sample::select(extremes::NUMBERS);
            prop_oneof![60 => usual, 1 => edges.prop_map(|n| json!(format!("@{n}")))].boxed()
        }
        Some("boolean") => any::<bool>().prop_map(Json::from).boxed(),
        _ => words(&["none", ""]),
    }
}

/// Returns names of links, switches or files: mostly existing ones of some network or of the tests'
/// folder.
fn names(key: &str, kind: Option<&str>) -> Option<Values> {
    Some(match (key, kind) {
        // Links of a host, of the two lower tiers of a fat-tree, a leaf-spine, a chain and a
        // dumbbell, and some that do not exist.
        ("link", _) => link(),
        ("links", _) => prop::collection::vec(link(), 0..3).prop_map(Json::from).boxed(),
        ("differentials", _) => {
            words(&["h0>h1", "h1>h3", "h0>s0"]).prop_map(|pair| json!([pair])).boxed()
        }
        ("switch", Some("switch-down")) => words(&["s0", "s0", "s1", "s2", "s8", "s16", "h0", ""]),
        ("file", Some("node-link")) => words(&[
            "../../../tailcut-net/tests/fabric/data/fat_tree_k4_links.json",
            "../../../tailcut-net/tests/fabric/data/fat_tree_k4_edges.json",
            "two-flows.csv",
            "none.json",
        ]),
        ("file", Some("trace")) => {
            words(&["two-flows.csv", "three-flows.csv", "same-two-flows.csv", "none.csv"])
        }
        ("file", Some("graph")) => words(&["job.csv", "job.csv", "two-flows.csv", "none.csv"]),
        _ => return None,
    })
}

fn link() -> Values {
    words(&["h0>s0", "s0>s1", "s0>s1", "s1>s2", "s0>s2", "s0>s8", "s8>s0", "s8>s16", "h0>h1", ""])
}

/// Some switches of each topology that has several.
const SWITCHES: [&str; 8] = ["edge0", "edge3", "agg1", "core0", "leaf0", "spine1", "s0", "s5"];

/// Returns a table with its required keys and now and then another one. A table without fixed keys
/// is keyed by switches.
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
    let kind = properties.get("kind").and_then(|kind| kind["const"].as_str());
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let entries: Vec<BoxedStrategy<Option<(String, Json)>>> = properties
        .iter()
        .map(|(name, property)| {
            let (key, always) = (name.clone(), name == "kind" || required.contains(&name.as_str()));
            let drawn = names(name, kind).unwrap_or_else(|| values(definitions, property));
            let entry = drawn.prop_map(move |value| (key.clone(), value));
            if always {
                entry.prop_map(Some).boxed()
            } else {
                // Failures are drawn more often, because few of them are valid on the network.
                let often = if name == "incidents" { 0.4 } else { 0.12 };
                prop::option::weighted(often, entry).boxed()
            }
        })
        .collect();
    entries
        .prop_map(|entries| Json::Object(entries.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

/// The sections that do not affect runs, or are drawn separately.
const FIXED: [&str; 11] = [
    "title", "question", "seeds", "horizon", "model", "lab", "schemes", "sweep", "report", "small",
    "medium",
];

/// Returns experiments that take milliseconds, unless extremes are drawn.
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
            // The run asserts that the parts of completion times add up.
            experiment["measure"]["attribution"] = true.into();
            small(&mut experiment["topology"]);
            small(&mut experiment["traffic"]);
            fit_interface(&mut experiment);
            experiment
        })
        .boxed()
}

/// Leaves out a choice of interfaces that hosts of this topology do not have.
fn fit_interface(experiment: &mut Json) {
    let other = match experiment["topology"]["kind"].as_str() {
        Some("multi-plane") => "by-rail",
        Some("rail-optimised") => "by-packet",
        _ => "",
    };
    if other.is_empty() || experiment["interface"]["kind"] == other {
        experiment.as_object_mut().expect("an experiment is a table").remove("interface");
    }
}

/// Returns the parts of an experiment: each section's kind, and each incident's kind with
/// whether it is between switches.
fn parts(experiment: &Json) -> Vec<String> {
    let sections = SECTIONS.map(|section| (section, &experiment[section]["kind"]));
    let mut parts: Vec<_> = sections.into_iter().filter_map(part).collect();
    for incident in experiment["faults"]["incidents"].as_array().into_iter().flatten() {
        parts.extend(part(("incident", &incident["kind"])));
        let place = incident["link"].as_str().or(incident["switch"].as_str());
        let all_of_plane = incident["kind"] == "plane-down";
        if all_of_plane || place.is_some_and(|place| !place.contains('h')) {
            parts.extend(part(("inner incident", &incident["kind"])));
        }
    }
    parts
}

fn part((section, kind): (&str, &Json)) -> Option<String> {
    kind.as_str().map(|kind| format!("{section} {kind}"))
}

/// The sections that choose one of several kinds.
const SECTIONS: [&str; 7] =
    ["topology", "queue", "transport", "balance", "replicate", "interface", "traffic"];

/// Returns all parts of which experiments can consist.
fn every_part() -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    for component in describe() {
        let (group, kind) = (component.group.as_str(), component.name);
        if SECTIONS.contains(&group) {
            parts.insert(format!("{group} {kind}"));
        } else if group == "faults.incidents" {
            parts.insert(format!("incident {kind}"));
            // A rail fails between hosts and their leaves.
            if kind != "rail-down" {
                parts.insert(format!("inner incident {kind}"));
            }
        }
    }
    parts
}

/// Loads and runs an experiment; refused or large ones are rejected.
fn try_one(experiment: &Json) -> Result<(), TestCaseError> {
    match carry_out(&extremes::written(experiment), 0) {
        Ok(Ending::Ran) => Ok(()),
        Ok(Ending::Long | Ending::Refused(_)) => Err(TestCaseError::reject("refused or large")),
        Err(why) => Err(TestCaseError::fail(why)),
    }
}

/// Returns a number from the environment, or `otherwise` if it is not set.
fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Returns a configuration whose draws depend on the seed only.
fn config(seed: u64) -> Config {
    Config { failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

/// Draws and carries out `cases` experiments.
fn carry_out_many(cases: u32, seed: u64) {
    let config = Config {
        cases,
        // One in 27 is carried out, so this many refusals are not chance.
        max_global_rejects: 100 * cases,
        max_shrink_iters: 400,
        ..config(seed)
    };
    let outcome = TestRunner::new(config).run(&experiments(), |experiment| try_one(&experiment));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Two threads have half of them each.
#[test]
fn random_small_experiments_neither_panic_nor_hang_nor_lose_a_packet() {
    let seed = number("TAILCUT_FUZZ_SEED", 4);
    let experiments = number("TAILCUT_FUZZ_EXPERIMENTS", EXPERIMENTS.into()) as u32;
    println!("TAILCUT_FUZZ_SEED={seed} TAILCUT_FUZZ_EXPERIMENTS={experiments}");
    std::thread::scope(|scope| {
        let half = |apart| scope.spawn(move || carry_out_many(experiments / 2, seed + apart));
        for half in [0, 1_000_000].map(half) {
            half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Runs only the drawn experiments that have a part which no earlier one had.
#[test]
fn every_component_is_drawn_into_an_experiment_that_runs() {
    let mut missing = every_part();
    let (mut runner, experiments) = (TestRunner::new(config(4)), experiments());
    for _ in 0..DRAWS {
        let experiment = experiments.new_tree(&mut runner).expect("it can be drawn").current();
        let parts = parts(&experiment);
        if parts.iter().any(|part| missing.contains(part)) && try_one(&experiment).is_ok() {
            missing.retain(|part| !parts.contains(part));
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("no experiment with these was carried out: {missing:?}");
}
