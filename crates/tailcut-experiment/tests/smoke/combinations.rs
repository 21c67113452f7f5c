//! Combines transports with topologies, queues, balancers, replication, shared buffers and
//! failures.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use tailcut_experiment::{no_table_reader, to_scenario};
use tailcut_net::topology::find::{link_name, node_name};
use tailcut_net::topology::{Graph, PortId};

use crate::smoke::cover::{Choice, pairs};
use crate::smoke::experiment::{carry_out, loaded};
use crate::smoke::factors;

/// Returns an experiment with short flows, which are replicated, and long ones, which are elephants
/// and switch to subflows.
fn experiment(row: &[(&'static str, Json)]) -> Json {
    let mut experiment = json!({
        "title": "smoke", "seeds": 1,
        "traffic": { "kind": "mix", "parts": [
            { "kind": "permutation", "sizes": "200KB" },
            { "kind": "permutation", "sizes": "30KB", "jitter": "500us" },
        ]},
        "horizon": { "arrivals": "1ms", "drain": "30s" },
    });
    for (section, value) in row {
        experiment[*section] = value.clone();
    }
    experiment
}

fn reacts_to_marks(transport: &Json) -> bool {
    let parts = transport["parts"].as_array();
    let parts = parts.into_iter().flatten().any(|part| reacts_to_marks(&part["transport"]));
    parts || transport["ecn"] == true || transport["congestion"]["kind"] == "dctcp"
}

fn has_subflows(transport: &Json) -> bool {
    let parts = transport["parts"].as_array();
    let parts = parts.into_iter().flatten().any(|part| has_subflows(&part["transport"]));
    parts || transport["kind"] == "mptcp" || transport["kind"] == "mmptcp"
}

/// Returns the codes for which a combination is refused; `None` is a component that is not chosen
/// yet.
fn reasons(
    transport: Option<&Json>,
    queue: Option<&Json>,
    replicate: Option<&Json>,
    switch: Option<&Json>,
) -> BTreeSet<String> {
    let is = |value: Option<&Json>, kind: &str| value.is_some_and(|value| value["kind"] == kind);
    let marks = is(queue, "ecn") || queue.is_some_and(|queue| queue["mark"] == true);
    let copied = replicate.is_some() && !is(replicate, "none");
    let shares = switch.is_some_and(|switch| switch.get("shared_buffer").is_some());
    let refusals = [
        (
            "pfabric-needs-priorities",
            is(queue, "pfabric") && transport.is_some() && !is(transport, "pfabric"),
        ),
        (
            "trimming-needs-ndp",
            is(queue, "trimming")
                && transport.is_some()
                && !is(transport, "ndp")
                && !is(transport, "uet"),
        ),
        ("ecn-needs-marks", transport.is_some_and(reacts_to_marks) && queue.is_some() && !marks),
        (
            "replicate-transport",
            copied
                && transport.is_some_and(|t| {
                    has_subflows(t)
                        || ["pfabric", "ndp", "uet"].iter().any(|kind| t["kind"] == *kind)
                }),
        ),
        (
            "pfc-queue",
            switch.is_some_and(|switch| switch.get("pfc").is_some())
                && queue.is_some()
                && !is(queue, "drop-tail")
                && !is(queue, "ecn"),
        ),
        ("shared-buffer-pfabric", shares && is(queue, "pfabric")),
        ("shared-buffer-drr", shares && is(queue, "drr")),
        ("shared-buffer-trimming", shares && is(queue, "trimming")),
    ];
    let refusals = refusals.into_iter().filter(|(_, refused)| *refused);
    refusals.map(|(code, _)| code.to_owned()).collect()
}

/// Returns the properties of a transport that decide whether it is refused.
fn character(transport: &Json) -> (String, bool, bool) {
    (transport["kind"].to_string(), reacts_to_marks(transport), has_subflows(transport))
}

/// Only these four sections decide whether a combination is valid. The first transport of each
/// character is tried with everything, the others with each queue and each replication policy.
#[test]
fn combinations_that_make_no_sense_are_refused_each_with_its_code_and_all_others_are_accepted() {
    let (mut accepted, mut refused) = (0, BTreeMap::<String, u32>::new());
    let mut characters = BTreeSet::new();
    for transport in factors::transports() {
        let first = characters.insert(character(&transport));
        for (q, queue) in factors::queues().into_iter().enumerate() {
            for (r, replicate) in factors::replications().into_iter().enumerate() {
                for (m, switch) in factors::memories().into_iter().enumerate() {
                    if !first && (m > 0 || q.min(r) > 0) {
                        continue;
                    }
                    let expected =
                        reasons(Some(&transport), Some(&queue), Some(&replicate), Some(&switch));
                    let found = loaded(&experiment(&[
                        ("topology", json!({ "kind": "dumbbell" })),
                        ("transport", transport.clone()),
                        ("queue", queue.clone()),
                        ("replicate", replicate.clone()),
                        ("switch", switch.clone()),
                    ]));
                    let found = found.err().unwrap_or_default();
                    assert_eq!(found, expected, "{transport} {queue} {replicate} {switch}");
                    accepted += u32::from(found.is_empty());
                    found.into_iter().for_each(|code| *refused.entry(code).or_default() += 1);
                }
            }
        }
    }
    println!("{} characters, {accepted} accepted, {refused:?}", characters.len());
    assert_eq!(refused.len(), 8, "every reason is met: {refused:?}");
    assert!(accepted > 500, "{accepted} are accepted");
}

/// Returns a link between switches, if there is one, and the switch at its end.
fn place(graph: &Graph) -> (String, String) {
    let is_switch = |node| graph.switch(node).is_some();
    let inner = graph.links.iter().position(|link| is_switch(link.a) && is_switch(link.b));
    let [port, _] = PortId::both_directions(inner.unwrap_or(0));
    (link_name(graph, port), node_name(graph, graph.far_end(port)))
}

/// Sets the link or switch of each incident.
fn located(mut failure: Json, (link, switch): &(String, String)) -> Json {
    let incidents = failure.get_mut("incidents").and_then(Json::as_array_mut);
    for incident in incidents.into_iter().flatten() {
        match incident["kind"] == "switch-down" {
            true => incident["switch"] = switch.clone().into(),
            false => incident["link"] = link.clone().into(),
        }
    }
    failure
}

/// Returns a place for failures on each topology.
fn places(topologies: &[Json]) -> Vec<(String, String)> {
    let graph = |topology: &Json| {
        let plain = experiment(&[("topology", topology.clone())]);
        let plan = loaded(&plain).unwrap_or_else(|codes| panic!("{plain}: {codes:?}"));
        place(&to_scenario(&plan.runs[0], &no_table_reader).expect("the plan is fresh").graph)
    };
    topologies.iter().map(graph).collect()
}

/// Returns whether a transport has both a congestion control and a treatment of reordering: two
/// components in one value.
fn is_a_pair(transport: &Json) -> bool {
    let chosen = |choice: &str, default: &str| {
        transport[choice]["kind"].as_str().is_some_and(|kind| kind != default)
    };
    chosen("congestion", "newreno") && chosen("reordering", "none")
}

/// Every two components meet in a run in which every flow finishes and no packet is unaccounted
/// for. A pair of a congestion control and a treatment of reordering runs once; those with only one
/// of the two run with all other components.
#[test]
fn every_two_components_run_together_or_are_refused() {
    run_pairs(|transport| !is_a_pair(transport));
}

/// Each topology of several interfaces with each choice of one meets every transport, queue and
/// balancer: the run ends, or the combination is refused for its interfaces.
#[test]
fn hosts_with_several_interfaces_run_with_every_component_or_are_refused() {
    let (mut ran, mut refused) = (0, 0);
    let one =
        |section: &'static str, values: Vec<Json>| values.into_iter().map(move |v| (section, v));
    let others = one("transport", factors::transports().into_iter().step_by(7).collect())
        .chain(one(
            "transport",
            ["mptcp", "mmptcp", "ndp", "uet"].map(|kind| json!({ "kind": kind })).to_vec(),
        ))
        .chain(one("queue", factors::queues()))
        .chain(one("balance", factors::balancers()))
        .chain(one("replicate", factors::replications()))
        .chain(one("switch", factors::memories()));
    for (section, value) in others {
        for (topology, interface) in factors::interfaces() {
            let queue = match (section, value["kind"].as_str()) {
                ("transport", Some("ndp" | "uet")) => json!({ "kind": "trimming" }),
                ("transport", _) => json!({ "kind": "ecn" }),
                _ => json!({ "kind": "drop-tail" }),
            };
            let mut parts =
                vec![("topology", topology), ("interface", interface), ("queue", queue)];
            parts.push((section, value.clone()));
            let experiment = experiment(&parts);
            match loaded(&experiment) {
                Ok(plan) => {
                    carry_out(&plan.runs[0], &experiment);
                    ran += 1;
                }
                Err(codes) => {
                    let known =
                        ["interface-single", "pfabric-needs-priorities", "trimming-needs-ndp"];
                    assert!(
                        codes.iter().all(|code| known.contains(&code.as_str())),
                        "{codes:?}: {experiment}"
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(ran > 60 && refused > 20, "{ran} ran, {refused} were refused");
}

#[test]
#[ignore = "a minute for what only three components do together"]
fn every_two_components_of_tcp_run_with_every_other_component_or_are_refused() {
    run_pairs(|_| true);
}

/// Runs every two components that are not transports, and each transport once, or with every other
/// component if `wanted`.
fn run_pairs(wanted: impl Fn(&Json) -> bool) {
    let sections = ["transport", "queue", "replicate", "switch", "topology", "balance", "faults"];
    let values = [
        factors::transports(),
        factors::queues(),
        factors::replications(),
        factors::memories(),
        factors::topologies(),
        factors::balancers(),
        factors::failures(),
    ];
    let places = places(&values[4]);
    let sizes = values.each_ref().map(Vec::len);
    let chosen = |row: &[Option<usize>], at: usize| row[at].map(|value| values[at][value].clone());
    let allowed = |row: &[Option<usize>]| {
        let [transport, queue, replicate, switch] = [0, 1, 2, 3].map(|at| chosen(row, at));
        reasons(transport.as_ref(), queue.as_ref(), replicate.as_ref(), switch.as_ref()).is_empty()
    };
    let wanted: Vec<bool> = values[0].iter().map(wanted).collect();
    // The other transports meet the few buffers and pauses.
    let meets = |&((factor, value), (other, _)): &(Choice, Choice)| {
        factor != 0 || wanted[value] || other == 3
    };
    let (rows, never) = pairs(&sizes, &meets, &allowed);
    for (a, b) in never {
        let mut pair = vec![("topology", json!({ "kind": "dumbbell" }))];
        pair.extend(
            [a, b].map(|(factor, value)| (sections[factor], values[factor][value].clone())),
        );
        let codes = loaded(&experiment(&pair)).err();
        assert!(codes.is_some(), "{pair:?} runs together");
    }
    let mut met = BTreeMap::<String, u64>::new();
    for row in &rows {
        let mut parts: Vec<_> =
            (0..7).map(|at| (sections[at], values[at][row[at]].clone())).collect();
        parts[6].1 = located(parts[6].1.clone(), &places[row[4]]);
        let experiment = experiment(&parts);
        let plan = loaded(&experiment)
            .unwrap_or_else(|codes| panic!("refused for {codes:?}: {experiment}"));
        let (outcome, seen) = carry_out(&plan.runs[0], &experiment);
        let mut note = |what: String, times: u64| *met.entry(what).or_default() += times;
        let kind = |at: usize| parts[at].1["kind"].as_str().unwrap_or_default().to_owned();
        let elephants = outcome.counters.further("elephants_found").unwrap_or(0);
        if kind(5) == "tinyflow" {
            note(format!("elephants by {}", parts[5].1["detect"]), elephants);
        }
        let copies = outcome.flows.iter().map(|flow| u64::from(flow.copies) - 1).sum();
        note(format!("copies by {}, {}", kind(0), kind(2)), copies);
        note(format!("marks by {}", kind(1)), seen.marked);
        note(format!("flows without some paths under {}", kind(1)), seen.of_flows_that_lost_paths);
        let incident = &parts[6].1["incidents"][0]["kind"];
        note(format!("losses by {incident}"), outcome.counters.lost_on_links);
        let undone = outcome.counters.recoveries_undone;
        note(format!("undone by {}", parts[0].1["reordering"]["kind"]), undone);
    }
    println!("{} rows: {met:#?}", rows.len());
    for what in [
        "copies by mmptcp, none",
        "copies by mptcp, none",
        "copies by tcp, repflow",
        "copies by tcp, repsyn",
        "copies by tcp, split",
        "copies by mixed, repflow",
        "elephants by \"random-skip\"",
        "elephants by \"random-skip-switch\"",
        "elephants by \"exact-port\"",
        "elephants by \"exact-switch\"",
        "elephants by \"polled-counters\"",
        "elephants by \"host-marked\"",
        "flows without some paths under selective-red",
        "losses by \"link-down\"",
        "losses by \"switch-down\"",
        "losses by \"loss\"",
        "marks by ecn",
        "marks by red",
        "undone by \"adaptive\"",
    ] {
        assert!(met.get(what).is_some_and(|times| *times > 0), "no {what}: {met:#?}");
    }
}
