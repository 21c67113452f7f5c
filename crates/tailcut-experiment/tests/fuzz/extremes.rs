//! Sets every number of the schema to extreme values, one at a time: it must be refused by name, or
//! the run must end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};
use tailcut_experiment::schema;

use crate::fuzz::carry::{Ending, carry_out};

pub const TIMES: &[&str] =
    &["0s", "1ps", "1us", "1s", "10s", "86400s", "999999s", "1000000s", "18446744s"];
pub const RATES: &[&str] = &["0bps", "1bps", "1kbps", "99999Gbps", "100Tbps", "18446744Tbps"];
/// The largest permitted window (2^20 segments of 64,000 B) and flow are among them.
pub const BYTES: &[&str] = &[
    "0B",
    "1B",
    "64000B",
    "65536B",
    "4294967296B",
    "67108864000B",
    "3000GB",
    "7000GB",
    "1000000GB",
    "18446744073GB",
];
pub const AMOUNTS: &[&str] = &[
    "0packets",
    "1packet",
    "65536packets",
    "1048576packets",
    "4294967295packets",
    "4294967296packets",
    "0B",
    "1B",
    "7000GB",
    "1000000GB",
];
pub const LIMITS: &[&str] = &["unlimited"];
pub const INTEGERS: &[i64] =
    &[-1, 0, 1, 256, 65_536, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, i64::MAX];
/// Written with an `@` in JSON, which lacks some of these numbers: see [`written`].
pub const NUMBERS: &[&str] =
    &["-1.0", "-0.0", "0.0", "5e-324", "1e-9", "1.0", "1e9", "1.7e308", "inf", "-inf", "nan"];

/// An extreme value of one number of a section.
struct Case {
    /// The number's place in the schema: definition and key.
    place: String,
    /// The number's key in an experiment.
    key: String,
    value: Json,
}

type Cases = Vec<Case>;

struct Walk<'a> {
    definitions: &'a Json,
    within: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    /// Returns values of `schema` with one number at an extreme each; `place` and `key` say where
    /// the schema stands.
    fn cases(&mut self, schema: &'a Json, place: &str, key: &str) -> Cases {
        let at = |value: Json| Case { place: place.into(), key: key.into(), value };
        let texts = |values: &[&str]| values.iter().map(|v| at(json!(v))).collect::<Cases>();
        if let Some(name) = schema["$ref"].as_str().and_then(|n| n.strip_prefix("#/$defs/")) {
            return match name {
                "Time" => texts(TIMES),
                "Rate" => texts(RATES),
                "Bytes" => texts(BYTES),
                "Amount" => texts(AMOUNTS),
                "Limit" => texts(&[LIMITS, AMOUNTS].concat()),
                _ if self.within.contains(&name) => vec![],
                _ => {
                    self.within.push(name);
                    let cases = self.cases(&self.definitions[name], name, key);
                    self.within.pop();
                    cases
                }
            };
        }
        if let Some(branches) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            let of = |branch| self.cases(branch, place, key);
            return branches.iter().flat_map(of).collect();
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            Some("integer") => INTEGERS.iter().map(|v| at(json!(v))).collect(),
            Some("number") => NUMBERS.iter().map(|v| at(json!(format!("@{v}")))).collect(),
            Some("array") => {
                let mut cases = self.cases(&schema["items"], place, &format!("{key}[0]"));
                cases.iter_mut().for_each(|case| case.value = json!([case.value]));
                cases
            }
            Some("object") => self.table(schema, place, key),
            _ => vec![],
        }
    }

    fn table(&mut self, schema: &'a Json, place: &str, key: &str) -> Cases {
        let kind = schema["properties"]["kind"]["const"].as_str();
        let place = kind.map_or(place.to_owned(), |kind| format!("{place} {kind}"));
        let base = self.least(schema);
        let properties = schema["properties"].as_object();
        let mut all = vec![];
        for (name, property) in properties.into_iter().flatten() {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            for mut case in self.cases(property, &format!("{place}.{name}"), &key) {
                let mut table = base.clone();
                table[name] = case.value;
                case.value = table;
                all.push(case);
            }
        }
        all
    }

    /// Returns a small valid value of the schema.
    fn least(&self, schema: &Json) -> Json {
        if let Some(name) = schema["$ref"].as_str().and_then(|n| n.strip_prefix("#/$defs/")) {
            return match name {
                "Time" => json!("10us"),
                "Rate" => json!("1Gbps"),
                "Bytes" => json!("20KB"),
                "TransportSpec" => json!({"kind": "tcp"}),
                "TrafficSpec" => json!({"kind": "poisson", "sizes": "20KB"}),
                _ => self.least(&self.definitions[name]),
            };
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        match schema["type"].as_str() {
            Some("integer") => json!(1),
            Some("number") => json!(0.5),
            Some("array") => json!([self.least(&schema["items"])]),
            Some("object") => {
                let mut table = json!({});
                if let Some(kind) = schema["properties"]["kind"].get("const") {
                    table["kind"] = kind.clone();
                }
                small(&mut table);
                for name in schema["required"].as_array().into_iter().flatten() {
                    let name = name.as_str().expect("keys are texts");
                    if !table[name].is_null() {
                        continue;
                    }
                    table[name] = match name {
                        "link" => json!("s0>s8"),
                        "switch" => json!("s8"),
                        "max" => json!("30KB"),
                        "dst" => json!(2),
                        _ => self.least(&schema["properties"][name]),
                    };
                }
                table
            }
            _ => json!("none"),
        }
    }
}

/// Adds to a table small values of its kind, where the defaults are large or missing. Keys that are
/// set stay.
pub fn small(table: &mut Json) {
    let further = match table["kind"].as_str() {
        Some("fat-tree") => json!({"k": 4}),
        Some("leaf-spine") => json!({"racks": 2, "hosts_per_rack": 2, "spines": 2}),
        Some("multi-plane") => json!({"leaves": 2, "hosts_per_leaf": 2, "rate": "1Gbps"}),
        Some("rail-optimised") => json!({"servers": 2, "rate": "1Gbps"}),
        Some("file") => json!({"file": "../../../../workloads/web-search.cdf", "unit": "packets"}),
        Some("node-link") => {
            json!({"file": "../../../tailcut-net/tests/fabric/data/fat_tree_k4_links.json"})
        }
        Some("permutation") => json!({"sizes": "40KB"}),
        Some("transfers") => json!({"bytes": "100KB", "sizes": "30KB"}),
        Some("shuffle") => json!({"bytes": "400KB"}),
        Some("bucket-sort") => json!({"numbers": 300, "jitter": "10us"}),
        Some("pings") => json!({"count": 5}),
        Some("partition-aggregate") => json!({"workers": 3, "queries_per_second": 4000.0}),
        Some("long-and-short") => json!({"short_flows_per_second": 9000.0, "long": "100KB"}),
        Some("incast") => json!({"fan_in": 3, "sizes": "20KB"}),
        _ => return,
    };
    let table = table.as_object_mut().expect("what has a kind is a table");
    for (key, value) in further.as_object().expect("it is a table") {
        table.entry(key).or_insert(value.clone());
    }
}

/// Returns the other sections that an experiment needs for this one to be valid.
fn companions(section: &str, place: &str, value: &Json) -> Json {
    let kind = value["kind"].as_str().unwrap_or("");
    match (section, kind) {
        ("queue", "pfabric") => json!({"transport": {"kind": "pfabric"}}),
        ("transport", "pfabric") => json!({"queue": {"kind": "pfabric"}}),
        ("queue", "trimming") => json!({"transport": {"kind": "ndp"}}),
        ("transport", "ndp" | "uet") => json!({"queue": {"kind": "trimming"}}),
        ("queue", "ecn") => json!({"transport": {"congestion": {"kind": "dctcp"}}}),
        ("interface", "by-rail") => json!({"topology": {"kind": "rail-optimised"}}),
        ("interface", _) => json!({"topology": {"kind": "multi-plane"}}),
        ("faults", _) if place.contains("plane-down") => {
            json!({"topology": {"kind": "multi-plane"}})
        }
        ("faults", _) if place.contains("rail-down") => {
            json!({"topology": {"kind": "rail-optimised"}})
        }
        ("transport", _) if place.contains("dctcp") => json!({"queue": {"kind": "ecn"}}),
        _ => json!({}),
    }
}

/// Writes an experiment as TOML; `"@nan"` stands for the number nan.
pub fn written(experiment: &Json) -> String {
    let toml = toml::Value::try_from(experiment).expect("it has no null");
    let text = toml::to_string(&toml).expect("tables become text");
    NUMBERS.iter().fold(text, |text, n| text.replace(&format!("\"@{n}\""), n))
}

const QUANTITIES: [&str; 5] = ["Time", "Rate", "Bytes", "Amount", "Limit"];

/// Collects the quantities and numbers of the schema, by definition and key.
fn numbers(schema: &Json, place: &str, found: &mut BTreeSet<String>) {
    let kind = schema["properties"]["kind"]["const"].as_str();
    let place = kind.map_or(place.to_owned(), |kind| format!("{place} {kind}"));
    let target = schema["$ref"].as_str().and_then(|n| n.strip_prefix("#/$defs/"));
    let number = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    if target.is_some_and(|name| QUANTITIES.contains(&name))
        || number.is_some_and(|name| ["integer", "number"].contains(&name))
    {
        found.insert(place.clone());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        numbers(property, &format!("{place}.{name}"), found);
    }
    for branch in ["oneOf", "anyOf"].iter().filter_map(|of| schema[of].as_array()).flatten() {
        numbers(branch, &place, found);
    }
    if schema["items"].is_object() {
        numbers(&schema["items"], &place, found);
    }
}

/// The sections that do not affect runs.
const DESCRIPTIVE: [&str; 5] = ["title", "question", "schemes", "sweep", "report"];

/// The outcome of an experiment, or its panic.
type Carried = std::thread::Result<Result<Ending, String>>;

/// Carries out each case's experiment, one per processor at a time, and returns the outcomes in the
/// cases' order.
fn carried_out(cases: &[(Case, String)]) -> Vec<Carried> {
    let next = AtomicUsize::new(0);
    let carry = || {
        let mut carried = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, text)) = cases.get(at) else { return carried };
            eprintln!("{} {}", case.place, case.value);
            carried.push((at, std::panic::catch_unwind(|| carry_out(text, 1))));
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, Carried)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(carry)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("panics are caught")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, carried)| carried).collect()
}

#[test]
fn every_number_at_its_edges_is_refused_by_name_or_runs_to_an_end() {
    let schema = schema();
    let mut walk = Walk { definitions: &schema["$defs"], within: vec![] };
    let sections = schema["properties"].as_object().expect("an experiment has sections");
    // Per number: whether an experiment with it ran, or was refused for it.
    let mut decided: BTreeMap<String, bool> = BTreeMap::new();
    let mut failures = vec![];
    let mut cases = vec![];
    for (section, described) in
        sections.iter().filter(|(name, _)| !DESCRIPTIVE.contains(&name.as_str()))
    {
        for case in walk.cases(described, section, section) {
            let mut experiment = json!({
                "title": "extremes", "seeds": [1],
                "topology": {"kind": "fat-tree", "k": 4},
                "traffic": {"kind": "poisson", "load": 0.3, "sizes": "20KB"},
                // Long enough that timers of a day expire; with series, a day would have too many
                // samples.
                "horizon": {
                    "arrivals": "200us",
                    "drain": if section == "series" { "5ms" } else { "86000s" },
                },
            });
            let with = companions(section, &case.place, &case.value);
            for (name, value) in with.as_object().expect("sections") {
                experiment[name] = value.clone();
            }
            experiment[section] = case.value.clone();
            if section == "series" && experiment[section]["links"].is_null() {
                experiment[section]["links"] = json!(["s0>s8"]);
            }
            cases.push((case, written(&experiment)));
        }
    }
    let endings = carried_out(&cases);
    for ((case, _), ending) in cases.into_iter().zip(endings) {
        match ending {
            Ok(Ok(ending)) => {
                let counts = match ending {
                    Ending::Refused(keys) => keys.iter().any(|key| key.starts_with(&case.key)),
                    Ending::Ran | Ending::Long => true,
                };
                *decided.entry(case.place).or_default() |= counts;
            }
            Ok(Err(why)) => failures.push(format!("{} {}: {why}", case.place, case.value)),
            Err(_) => failures.push(format!("{} {}: panics", case.place, case.value)),
        }
    }
    let idle: Vec<_> = decided.iter().filter(|(_, decided)| !**decided).collect();
    assert!(idle.is_empty(), "other keys are at fault wherever these are drawn: {idle:#?}");
    let mut all = BTreeSet::new();
    for (section, described) in
        sections.iter().filter(|(name, _)| !DESCRIPTIVE.contains(&name.as_str()))
    {
        numbers(described, section, &mut all);
    }
    for (name, described) in schema["$defs"].as_object().expect("there are definitions") {
        if !QUANTITIES.contains(&name.as_str()) && !name.ends_with("Change") {
            numbers(described, name, &mut all);
        }
    }
    let left: Vec<_> = all.iter().filter(|place| !decided.contains_key(*place)).collect();
    assert!(left.is_empty(), "never drawn: {left:#?}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
