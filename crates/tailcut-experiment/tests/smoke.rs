//! Every scheme on every topology with every queue: it runs, or is refused with a reason. Components join by being registered.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{json, Value as Json};
use tailcut_experiment::{describe, load_text, run};

/// The kinds of a section, as tables that choose them.
fn kinds(group: &str) -> Vec<Json> {
    let components = describe();
    let of_group = components.iter().filter(|component| component.group == group);
    of_group.map(|component| json!({ "kind": component.name })).collect()
}

/// What a kind needs to be small, or to exist at all.
fn completed(mut section: Json) -> Json {
    match section["kind"].as_str() {
        Some("fat-tree") => section["k"] = 4.into(),
        Some("node-link") => {
            section["file"] =
                "../../../tailcut-net/tests/fabric/data/fat_tree_k4_links.json".into();
        }
        Some("mixed") => {
            let kinds = ["tcp", "mptcp"].map(|kind| json!({"transport": {"kind": kind}}));
            section["parts"] = kinds.to_vec().into();
        }
        _ => {}
    }
    section
}

/// Runs the combination, or says why it is refused.
fn outcome(experiment: &Json) -> Result<(), Vec<String>> {
    let toml = toml::Value::try_from(experiment).expect("it has no null");
    let text = toml::to_string(&toml).expect("tables become text");
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    let plan = load_text("smoke.toml", &text, directory, &[]).map_err(|failure| {
        for diagnostic in &failure.diagnostics {
            assert!(diagnostic.code.starts_with("TC-E"), "{failure}");
            assert!(diagnostic.hint.is_some(), "a refusal says what to do:\n{failure}");
        }
        failure.diagnostics.iter().map(|diagnostic| diagnostic.code.clone()).collect::<Vec<_>>()
    })?;
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let result = run(&planned, None, &mut |_| ControlFlow::Continue(()));
    let result = result.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let counters = result.counters;
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    assert_eq!(counters.sent, accounted, "packets are lost:\n{text}");
    let unfinished = result.facts.iter().find(|(name, _)| *name == "unfinished_flows");
    assert_eq!(unfinished.map(|fact| fact.1), Some(0.0), "every flow finishes:\n{text}");
    Ok(())
}

#[test]
fn every_scheme_runs_on_every_topology_with_every_queue_or_is_refused() {
    let mut accepted = BTreeSet::new();
    let mut refused = BTreeSet::new();
    let (mut runs, mut refusals) = (0, 0);
    for topology in kinds("topology") {
        for queue in kinds("queue") {
            for transport in kinds("transport") {
                for balance in kinds("balance") {
                    for replicate in kinds("replicate") {
                        let experiment = json!({
                            "title": "smoke", "seeds": 1,
                            "topology": completed(topology.clone()), "queue": queue,
                            "transport": completed(transport.clone()),
                            "balance": balance, "replicate": replicate,
                            "traffic": { "kind": "permutation", "sizes": "50KB" },
                            "horizon": { "arrivals": "1ms", "drain": "30s" },
                        });
                        let parts = [&topology, &queue, &transport, &balance, &replicate];
                        match outcome(&experiment) {
                            Ok(()) => {
                                runs += 1;
                                accepted.extend(parts.map(ToString::to_string));
                            }
                            Err(codes) => {
                                refusals += 1;
                                refused.extend(codes);
                                refused.extend(parts.map(ToString::to_string));
                            }
                        }
                    }
                }
            }
        }
    }
    let never: Vec<_> =
        refused.iter().filter(|part| part.starts_with('{') && !accepted.contains(*part)).collect();
    assert!(never.is_empty(), "no combination with {never:?} is accepted");
    assert!(runs > 5 * 3 * 4, "{runs} combinations run, {refusals} are refused: {refused:?}");
}

/// Traffic of every kind, under a scheme of each transport.
#[test]
fn every_kind_of_traffic_runs() {
    for transport in kinds("transport") {
        let pfabric = transport["kind"] == "pfabric";
        for mut traffic in kinds("traffic") {
            let small = match traffic["kind"].as_str() {
                Some("permutation") => json!({"sizes": "50KB"}),
                Some("transfers") => json!({"bytes": "100KB", "sizes": "30KB"}),
                Some("shuffle") => json!({"bytes": "1MB"}),
                Some("bucket-sort") => json!({"numbers": 500, "jitter": "10us"}),
                Some("long-and-short") => {
                    json!({"long": "200KB", "short_flows_per_second": 20000.0})
                }
                Some("trace") => json!({"flows": [{"src": 0, "dst": 5, "bytes": "30KB"}]}),
                Some("mix") => {
                    json!({"parts": [{"kind": "poisson", "sizes": "20KB"}, {"kind": "pings"}]})
                }
                Some("poisson" | "hot-spots") => json!({"sizes": "20KB"}),
                _ => json!({}),
            };
            let small = small.as_object().expect("a table").clone();
            traffic.as_object_mut().expect("a table").extend(small);
            let queue = if pfabric { "pfabric" } else { "drop-tail" };
            let experiment = json!({
                "title": "smoke", "seeds": 1, "topology": {"kind": "fat-tree", "k": 4},
                "queue": { "kind": queue }, "transport": completed(transport.clone()),
                "traffic": traffic,
                "horizon": { "arrivals": "2ms", "drain": "30s" },
            });
            outcome(&experiment)
                .unwrap_or_else(|codes| panic!("{experiment} is refused: {codes:?}"));
        }
    }
}
