//! Graphs from NetworkX node-link files.

use serde_json::{Value, json};
use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::SpecError;
use tailcut_net::topology::{Graph, TopologySpec};

fn read(text: &str) -> Result<Graph, SpecError> {
    let spec: TopologySpec =
        serde_json::from_value(json!({"kind": "node-link", "file": "net.json"})).unwrap();
    assert_eq!(spec.files(), ["net.json"]);
    spec.build(&|_: &str| Ok(text.as_bytes().to_vec()))
}

fn node(id: &str, kind: &str) -> Value {
    json!({"id": id, "kind": kind})
}

fn edge(source: &str, target: &str) -> Value {
    json!({"source": source, "target": target, "rate": "1Gbps", "propagation": "2us"})
}

/// Returns two hosts on two switches, with changes.
fn network(change: impl Fn(&mut Value)) -> Result<Graph, SpecError> {
    let mut document = json!({
        "directed": false, "multigraph": false, "graph": {},
        "nodes": [node("s0", "switch"), node("a", "host"), node("s1", "switch"), node("b", "host")],
        "edges": [edge("s0", "a"), edge("s0", "s1"), edge("b", "s1")],
    });
    change(&mut document);
    read(&document.to_string())
}

#[test]
fn hosts_and_switches_are_numbered_in_file_order() {
    let graph = network(|_| {}).unwrap();
    assert_eq!((graph.hosts, graph.switches), (2, 2));
    assert_eq!(graph.names, ["a", "b", "s0", "s1"]);
    assert_eq!(graph.tiers, ["host", "tier1"]);
    let links: Vec<_> = graph.links.iter().map(|link| (link.a.0, link.b.0, link.tier)).collect();
    assert_eq!(links, [(0, 2, 0), (2, 3, 1), (1, 3, 0)]);
}

/// Written by NetworkX 3 in both of its layouts: a 4-port fat-tree as a multigraph.
#[test]
fn files_written_by_networkx_are_the_built_in_fat_tree() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fabric/data/");
    let spec = json!({"kind": "fat-tree", "k": 4, "propagation": "2us"});
    let built_in = crate::fabric::topologies::build(spec).unwrap();
    for name in ["fat_tree_k4_links.json", "fat_tree_k4_edges.json"] {
        let graph = read(&std::fs::read_to_string(format!("{data}{name}")).unwrap()).unwrap();
        assert_eq!(graph.links, built_in.links, "{name}");
        assert_eq!(graph.names, built_in.names, "{name}");
        assert_eq!(graph.tiers, ["host", "tier1", "tier2"]);
    }
}

#[test]
fn edges_carry_rate_delay_queue_and_tier() {
    let graph = network(|document| {
        let edge = &mut document["edges"][1];
        edge["rate"] = json!("100Mbps");
        edge["propagation"] = json!("1ms");
        edge["queue_limit"] = json!("20packets");
        edge["tier"] = json!("trunk");
    })
    .unwrap();
    let trunk = &graph.links[1];
    assert_eq!((trunk.rate, trunk.propagation), (Rate(100_000_000), Time::from_ms(1)));
    assert_eq!(trunk.queue_limit, Some(Limit::AtMost(Amount::Packets(20))));
    assert_eq!(graph.tiers, ["host", "trunk"]);
}

#[test]
fn edges_carry_a_threshold_and_a_probability_of_loss() {
    let graph = network(|document| {
        let edge = &mut document["edges"][1];
        edge["threshold"] = json!("65packets");
        edge["loss"] = json!(0.25);
    })
    .unwrap();
    let [host, trunk] = [&graph.links[0], &graph.links[1]];
    assert_eq!((trunk.threshold, trunk.loss), (Some(Amount::Packets(65)), 0.25));
    assert_eq!((host.threshold, host.loss), (None, 0.0));
    assert!(graph.is_lossy());
}

#[test]
fn settings_under_other_programs_names_are_refused_with_ours() {
    for (theirs, ours) in [
        ("bandwidth", "rate"),
        ("Capacity", "rate"),
        ("delay", "propagation"),
        ("prop_delay", "propagation"),
        ("latency", "propagation"),
        ("limit", "queue_limit"),
        ("queue", "queue_limit"),
        ("buffer-size", "queue_limit"),
        ("ecn_threshold", "threshold"),
        ("kmin", "threshold"),
        ("loss_rate", "loss"),
        ("plr", "loss"),
    ] {
        let error = network(|document| document["edges"][1][theirs] = json!(1)).unwrap_err();
        assert_eq!(error.code, "node-link-attribute", "{theirs}");
        assert!(error.message.contains("edge \"s0\" - \"s1\""), "{}", error.message);
        assert_eq!(error.hint, Some(format!("write {ours:?}")), "{theirs}");
    }
}

#[test]
fn a_loss_that_is_no_probability_is_refused() {
    for loss in [json!(1.5), json!(-0.1), json!("often"), json!(null)] {
        let error = network(|document| document["edges"][1]["loss"] = loss.clone()).unwrap_err();
        assert!(error.message.contains("a probability from 0 to 1"), "{}", error.message);
    }
}

#[test]
fn unknown_attributes_are_noted() {
    let graph = network(|document| {
        document["nodes"][0]["pos"] = json!([1, 2]);
        document["edges"][0]["weight"] = json!(3);
        document["edges"][1]["label"] = json!("trunk");
    })
    .unwrap();
    assert_eq!(graph.ignored, ["label", "pos", "weight"]);
}

#[test]
fn numbers_may_name_nodes() {
    let graph = read(
        &json!({
            "nodes": [{"id": 0, "kind": "host"}, {"id": 1, "kind": "switch"}, {"id": 2, "kind": "host"}],
            "links": [
                {"source": 0, "target": 1, "rate": "1Gbps", "propagation": "2us"},
                {"source": 1, "target": 2, "rate": "1Gbps", "propagation": "2us"},
            ],
        })
        .to_string(),
    )
    .unwrap();
    assert_eq!(graph.names, ["0", "2", "1"]);
}

#[test]
fn parallel_links_need_a_multigraph() {
    let twice =
        |document: &mut Value| document["edges"].as_array_mut().unwrap().push(edge("s1", "s0"));
    let error = network(twice).unwrap_err();
    assert_eq!(error.code, "node-link-parallel");
    assert!(error.hint.unwrap().contains("MultiGraph"));
    let graph = network(|document| {
        twice(document);
        document["multigraph"] = json!(true);
    })
    .unwrap();
    assert_eq!(graph.links.len(), 4);
    assert_eq!(graph.racks().uplink, [Rate(2_000_000_000); 2]);
}

#[test]
fn refuses_invalid_graphs_and_names_node_or_edge() {
    type Change = fn(&mut Value);
    let cases: &[(Change, &str, &str)] = &[
        (
            |d| {
                d["edges"]
                    .as_array_mut()
                    .unwrap()
                    .retain(|e| e["target"] != "s1" || e["source"] != "s0")
            },
            "node-link-disconnected",
            "net.json: the graph is disconnected: no path from \"a\" to \"s1\", \"b\"",
        ),
        (
            |d| d["edges"].as_array_mut().unwrap().push(edge("a", "s1")),
            "node-link-host",
            "net.json: host \"a\" has 2 links: a host must have exactly one",
        ),
        (
            |d| d["edges"].as_array_mut().unwrap().truncate(2),
            "node-link-host",
            "net.json: host \"b\" has 0 links: a host must have exactly one",
        ),
        (
            |d| {
                d["nodes"] = json!([node("a", "host"), node("b", "host")]);
                d["edges"] = json!([edge("a", "b")]);
            },
            "node-link-host",
            "net.json: host \"a\" is joined to host \"b\"",
        ),
        (
            |d| drop(d["edges"][0].as_object_mut().unwrap().remove("rate")),
            "node-link-attribute",
            "net.json: edge \"s0\" - \"a\": the attribute rate is missing",
        ),
        (
            |d| d["edges"][0]["propagation"] = json!(2),
            "node-link-attribute",
            "net.json: edge \"s0\" - \"a\": propagation: \"2\" has no unit; write for example \"2us\"",
        ),
        (
            |d| d["edges"][0]["rate"] = json!("0bps"),
            "node-link-rate",
            "net.json: edge \"s0\" - \"a\": rate = \"0bps\": must be greater than 0",
        ),
        (
            |d| d["edges"][0]["queue_limt"] = json!("20packets"),
            "node-link-attribute",
            "net.json: edge \"s0\" - \"a\": unknown attribute \"queue_limt\"",
        ),
        (
            |d| d["edges"][0]["target"] = json!("c"),
            "node-link-edge",
            "net.json: edge \"s0\" - \"c\": no node has the id \"c\"",
        ),
        (
            |d| d["edges"][1]["target"] = json!("s0"),
            "node-link-edge",
            "net.json: edge \"s0\" - \"s0\": a link joins two different nodes",
        ),
        (
            |d| drop(d["nodes"][1].as_object_mut().unwrap().remove("kind")),
            "node-link-attribute",
            "net.json: node \"a\": the attribute kind is missing",
        ),
        (
            |d| d["nodes"][1]["kind"] = json!("router"),
            "node-link-kind",
            "net.json: node \"a\": kind is \"router\", not \"host\" or \"switch\"",
        ),
        (
            |d| d["nodes"][1]["id"] = json!("s0"),
            "node-link-node",
            "net.json: two nodes have the id \"s0\"",
        ),
        (
            |d| d["directed"] = json!(true),
            "node-link-directed",
            "net.json: the graph is directed: links are full duplex",
        ),
    ];
    for (change, code, message) in cases {
        let error = network(change).unwrap_err();
        assert_eq!((error.code, error.to_string().as_str()), (*code, *message));
        assert_eq!(error.field, "file");
    }
}

#[test]
fn text_that_is_not_node_link_json_is_refused() {
    assert_eq!(read("{").unwrap_err().code, "node-link-json");
    assert!(read("{}").unwrap_err().to_string().contains("missing field `nodes`"));
}

#[test]
fn attributes_for_drawing_are_ignored() {
    let graph = network(|document| {
        document["nodes"][0]["pos"] = json!([0.5, 1.0]);
        document["edges"][0]["weight"] = json!(1);
    });
    assert!(graph.is_ok());
}
