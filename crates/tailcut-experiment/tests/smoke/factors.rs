//! The components of the experiments: every kind of each choice, with the options that change what
//! it does.

use serde_json::{Value as Json, json};
use tailcut_experiment::describe;

/// Returns the names of a choice, in the order of the registry.
pub fn names(group: &str) -> Vec<String> {
    let components = describe().into_iter().filter(|component| component.group == group);
    let names: Vec<_> = components.map(|component| component.name).collect();
    assert!(!names.is_empty(), "{group} offers nothing");
    names
}

/// Returns a table for each kind of a choice.
pub fn kinds(group: &str) -> Vec<Json> {
    names(group).into_iter().map(|kind| json!({ "kind": kind })).collect()
}

fn with(table: &Json, key: &str, value: impl Into<Json>) -> Json {
    let mut table = table.clone();
    table[key] = value.into();
    table
}

/// Returns every treatment of reordering, NCR in each variant. All but `none` need selective
/// acknowledgements, as do Swift and BBR.
fn reorderings() -> Vec<Json> {
    let one = |method: Json| match method["kind"].as_str() {
        Some("ncr") => names("transport.reordering.variant")
            .into_iter()
            .map(|variant| with(&method, "variant", variant))
            .collect(),
        _ => vec![method],
    };
    kinds("transport.reordering").into_iter().flat_map(one).collect()
}

fn tcps(tcp: &Json) -> Vec<Json> {
    let mut all: Vec<Json> = names("transport.recovery")
        .into_iter()
        .map(|recovery| with(&with(tcp, "recovery", recovery), "ecn", true))
        .collect();
    for congestion in kinds("transport.congestion") {
        for reordering in reorderings() {
            let wanted = ["swift", "bbr"].map(Json::from).contains(&congestion["kind"]);
            let sack = reordering["kind"] != "none" || wanted;
            let recovery = if sack { "sack-prr" } else { "newreno" };
            let one = with(&with(tcp, "congestion", congestion.clone()), "reordering", reordering);
            all.push(with(&one, "recovery", recovery));
        }
    }
    all
}

fn mmptcps(mmptcp: &Json) -> Vec<Json> {
    let mut all = vec![];
    for mut switch in kinds("transport.switch") {
        if switch["kind"] == "volume" {
            switch["bytes"] = "60KB".into();
        }
        for threshold in names("transport.dupack_threshold") {
            let mut one = with(mmptcp, "switch", switch.clone());
            if threshold == "tcp" {
                one["tcp"] = json!({ "recovery": "sack-prr", "reordering": { "kind": "rr-tcp" } });
            }
            all.push(with(&one, "dupack_threshold", threshold));
        }
    }
    all
}

/// Returns transports with every congestion control and treatment of reordering.
pub fn transports() -> Vec<Json> {
    let part = |transport: Json| json!({ "transport": transport });
    let tcp = || part(json!({ "kind": "tcp" }));
    let adaptive = json!({ "recovery": "sack-prr", "reordering": { "kind": "adaptive" } });
    let one = |transport: Json| match transport["kind"].as_str() {
        Some("tcp") => tcps(&transport),
        Some("mptcp") => vec![transport.clone(), with(&transport, "tcp", adaptive.clone())],
        Some("mmptcp") => mmptcps(&transport),
        Some("mixed") => vec![
            with(&transport, "parts", vec![tcp(), part(json!({ "kind": "mptcp" }))]),
            with(
                &transport,
                "parts",
                vec![tcp(), part(json!({ "kind": "tcp", "congestion": { "kind": "cubic" } }))],
            ),
            with(
                &transport,
                "parts",
                vec![tcp(), part(json!({ "kind": "tcp", "congestion": { "kind": "dctcp" } }))],
            ),
        ],
        _ => vec![transport],
    };
    kinds("transport").into_iter().flat_map(one).collect()
}

pub fn topologies() -> Vec<Json> {
    let one = |topology: Json| match topology["kind"].as_str() {
        Some("fat-tree") => with(&topology, "k", 4),
        Some("node-link") => {
            let file = "../../../tailcut-net/tests/fabric/data/fat_tree_k4_links.json";
            with(&topology, "file", file)
        }
        _ => topology,
    };
    kinds("topology").into_iter().filter(|it| !has_several_interfaces(it)).map(one).collect()
}

/// Returns whether hosts have several interfaces, which not every component knows.
fn has_several_interfaces(topology: &Json) -> bool {
    topology["kind"] == "multi-plane" || topology["kind"] == "rail-optimised"
}

/// Returns each topology whose hosts have several interfaces with each choice of one.
pub fn interfaces() -> Vec<(Json, Json)> {
    let choices = |topology: &Json| match topology["kind"] == "multi-plane" {
        true => ["by-flow", "by-packet"],
        false => ["by-flow", "by-rail"],
    };
    let rate = |topology: Json| with(&topology, "rate", "1Gbps");
    let several = kinds("topology").into_iter().filter(has_several_interfaces).map(rate);
    several
        .flat_map(|topology| {
            choices(&topology).map(|kind| (topology.clone(), json!({ "kind": kind })))
        })
        .collect()
}

pub fn queues() -> Vec<Json> {
    let one = |queue: Json| match queue["kind"].as_str() {
        Some("red") => [true, false].map(|mark| with(&early(&queue), "mark", mark)).to_vec(),
        Some("selective-red") => {
            names("queue.form").into_iter().map(|form| with(&early(&queue), "form", form)).collect()
        }
        _ => vec![queue],
    };
    kinds("queue").into_iter().flat_map(one).collect()
}

/// Makes RED react early: small flows end before an average of weight 0.002 moves.
fn early(red: &Json) -> Json {
    let red = with(&with(red, "min", 3.0), "max", 9.0);
    with(&red, "weight", 0.1)
}

/// Returns balancers, set so that the flows of this experiment soon become elephants.
pub fn balancers() -> Vec<Json> {
    let one = |balance: Json| match balance["kind"].as_str() {
        Some("tinyflow") => {
            let mut eager = balance;
            eager["sample_every"] = "12KB".into();
            eager["elephant"] = "100KB".into();
            eager["poll_every"] = "200us".into();
            let detect = names("balance.detect").into_iter().map(|w| with(&eager, "detect", w));
            let reroute = names("balance.reroute").into_iter().map(|w| with(&eager, "reroute", w));
            detect.chain(reroute.skip(1)).collect()
        }
        Some("by-tier") => {
            let core = json!({ "kind": "round-robin" });
            vec![with(&balance, "core", core)]
        }
        _ => vec![balance],
    };
    kinds("balance").into_iter().flat_map(one).collect()
}

pub fn replications() -> Vec<Json> {
    kinds("replicate")
}

/// Returns switches with separate buffers, with a shared buffer, and with flow control.
pub fn memories() -> Vec<Json> {
    vec![json!({}), json!({ "shared_buffer": "200KB" }), json!({ "pfc": {} })]
}

/// Returns no failure and one of each kind. Their link or switch is set later.
pub fn failures() -> Vec<Json> {
    let one = |incident: Json| {
        let mut incident = with(&with(&incident, "at", "300us"), "until", "4ms");
        match incident["kind"].as_str() {
            Some("rate") => incident["rate"] = "100Mbps".into(),
            Some("loss") => incident["probability"] = 0.02.into(),
            Some("delay") => incident["extra"] = "100us".into(),
            _ => {}
        }
        json!({ "reconvergence": "300us", "incidents": [incident] })
    };
    let of_links =
        |incident: &Json| incident["kind"] != "plane-down" && incident["kind"] != "rail-down";
    let failures = kinds("faults.incidents").into_iter().filter(of_links).map(one);
    [json!({})].into_iter().chain(failures).collect()
}
