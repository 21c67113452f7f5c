//! Any graph, from a NetworkX node-link JSON file (`networkx.node_link_data`).
//!
//! Hosts and switches are numbered in the order of the file, and the order of edges is the port
//! order of a switch. The attribute `tier` names the tier of a link; without it, the tier follows
//! from the link's distance from the nearest host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tailcut_engine::{Rate, Time, UnitError};

use super::build::size;
use super::{Graph, Link, NodeId, Topology, TopologyError};
use crate::amount::{Amount, Limit};
use crate::component::{did_you_mean, read_text};
use crate::files::FileReader;

/// Parameters of a graph from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLink {
    /// Path of the JSON file that `networkx.node_link_data` wrote. Nodes have `kind` ("host" or
    /// "switch"); edges have `rate` and `propagation` with units. Edges may also have
    /// `queue_limit`, `threshold` (of marking queues), `loss` (the probability that a packet is
    /// corrupted) and `tier`.
    pub file: String,
}

impl NodeLink {
    /// Reads and builds the graph.
    ///
    /// # Errors
    /// Refuses files that cannot be read or do not describe a usable network; the message names the
    /// node or edge.
    pub fn build(&self, read: &dyn FileReader) -> Result<Graph, TopologyError> {
        let text = read_text(read, "node-link-file", "file", &self.file)?;
        parse(&text).map_err(|mut error| {
            error.message = format!("{}: {}", self.file, error.message);
            error
        })
    }
}

impl Topology for NodeLink {
    fn graph(&self, read: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.build(read)
    }
    fn files(&self) -> Vec<&str> {
        vec![&self.file]
    }
}

/// The file as NetworkX writes it: edges are called `links` up to version 3.3, `edges` later.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    directed: bool,
    #[serde(default)]
    multigraph: bool,
    nodes: Vec<Map<String, Value>>,
    #[serde(alias = "links")]
    edges: Vec<Map<String, Value>>,
}

struct Node {
    name: String,
    host: bool,
}

/// An edge between two nodes, given by their positions in the file.
struct Edge {
    ends: [usize; 2],
    rate: Rate,
    propagation: Time,
    queue_limit: Option<Limit>,
    threshold: Option<Amount>,
    loss: f64,
    tier: Option<String>,
}

/// Node attributes that are read.
const OF_NODES: [&str; 2] = ["id", "kind"];

/// Edge attributes that are read.
const OF_EDGES: [&str; 9] =
    ["source", "target", "key", "rate", "propagation", "queue_limit", "threshold", "loss", "tier"];

/// Attributes of a link with their names in other programs, in lower case and without punctuation.
const CALLED_ELSEWHERE: [(&str, &[&str]); 5] = [
    ("rate", &["bandwidth", "bw", "capacity", "cap", "datarate", "linkrate", "linkspeed", "speed"]),
    (
        "propagation",
        &["delay", "lat", "latency", "linkdelay", "propagationdelay", "propdelay", "rtt"],
    ),
    (
        "queue_limit",
        &[
            "buffer",
            "bufferlimit",
            "buffersize",
            "limit",
            "maxqueue",
            "queue",
            "queuelen",
            "queuelength",
            "queuesize",
            "qlen",
        ],
    ),
    (
        "threshold",
        &[
            "ecn",
            "ecnk",
            "ecnkmax",
            "ecnkmin",
            "ecnthreshold",
            "k",
            "kmax",
            "kmin",
            "mark",
            "markingthreshold",
            "markthreshold",
            "pmax",
        ],
    ),
    (
        "loss",
        &["ber", "drop", "droprate", "errorrate", "lossprobability", "lossrate", "per", "plr"],
    ),
];

fn error(code: &'static str, message: impl Into<String>) -> TopologyError {
    TopologyError::new(code, "file", message)
}

fn parse(text: &str) -> Result<Graph, TopologyError> {
    let document: Document = serde_json::from_str(text).map_err(|cause| {
        error("node-link-json", format!("not node-link JSON: {cause}"))
            .hint("write it with json.dump(networkx.node_link_data(graph), file)")
    })?;
    if document.directed {
        return Err(error("node-link-directed", "the graph is directed: links are full duplex")
            .hint("write graph.to_undirected()"));
    }
    let nodes = document.nodes.iter().map(node).collect::<Result<Vec<_>, _>>()?;
    size(
        "node-link-size",
        "file",
        nodes.iter().filter(|n| n.host).count() as u64,
        nodes.len() as u64,
    )?;
    let mut position = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if position.insert(node.name.as_str(), index).is_some() {
            return Err(error("node-link-node", format!("two nodes have the id {:?}", node.name)));
        }
    }
    let edges = document
        .edges
        .iter()
        .map(|edge| read_edge(edge, &position))
        .collect::<Result<Vec<_>, _>>()?;
    let level = check(&nodes, &edges, document.multigraph)?;
    let mut graph = graph(&nodes, &edges, &level)?;
    let unread = [(&document.nodes, &OF_NODES[..]), (&document.edges, &OF_EDGES[..])];
    let all = unread.into_iter().flat_map(|(tables, known)| {
        let names = tables.iter().flat_map(Map::keys);
        names.filter(|name| !known.contains(&name.as_str()))
    });
    let ignored: BTreeSet<&String> = all.collect();
    graph.ignored = ignored.into_iter().cloned().collect();
    Ok(graph)
}

/// Returns an identifying attribute as messages show it.
fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn refuse_misspelt(
    attributes: &Map<String, Value>,
    known: &[&str],
    place: &str,
) -> Result<(), TopologyError> {
    for name in attributes.keys().filter(|name| !known.contains(&name.as_str())) {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let meant = CALLED_ELSEWHERE.iter().find(|(_, names)| names.contains(&plain.as_str()));
        if let Some((meant, _)) = meant.filter(|(meant, _)| known.contains(meant)) {
            return Err(error(
                "node-link-attribute",
                format!("{place}: {name:?} is not an attribute of links"),
            )
            .hint(format!("write {meant:?}")));
        }
        let absent = known.iter().copied().filter(|known| !attributes.contains_key(*known));
        if let Some(close) = did_you_mean(name, absent) {
            return Err(error(
                "node-link-attribute",
                format!("{place}: unknown attribute {name:?}"),
            )
            .hint(format!("did you mean {close:?}?")));
        }
    }
    Ok(())
}

fn node(attributes: &Map<String, Value>) -> Result<Node, TopologyError> {
    let name = attributes.get("id").map(label).ok_or_else(|| {
        error("node-link-node", format!("a node has no id: {}", Value::Object(attributes.clone())))
    })?;
    let place = format!("node {name:?}");
    refuse_misspelt(attributes, &OF_NODES, &place)?;
    let host = match attributes.get("kind") {
        Some(Value::String(kind)) if kind == "host" => true,
        Some(Value::String(kind)) if kind == "switch" => false,
        Some(other) => {
            return Err(error(
                "node-link-kind",
                format!("{place}: kind is {other}, not \"host\" or \"switch\""),
            ));
        }
        None => {
            return Err(error(
                "node-link-attribute",
                format!("{place}: the attribute kind is missing"),
            )
            .hint("add kind=\"host\" or kind=\"switch\""));
        }
    };
    Ok(Node { name, host })
}

fn read_edge(
    attributes: &Map<String, Value>,
    position: &BTreeMap<&str, usize>,
) -> Result<Edge, TopologyError> {
    let end = |key: &str| attributes.get(key).map(label);
    let (Some(source), Some(target)) = (end("source"), end("target")) else {
        let edge = Value::Object(attributes.clone());
        return Err(error("node-link-edge", format!("an edge lacks source or target: {edge}")));
    };
    let place = format!("edge {source:?} - {target:?}");
    refuse_misspelt(attributes, &OF_EDGES, &place)?;
    let find = |name: &str| {
        position
            .get(name)
            .copied()
            .ok_or_else(|| error("node-link-edge", format!("{place}: no node has the id {name:?}")))
    };
    let ends = [find(&source)?, find(&target)?];
    if ends[0] == ends[1] {
        return Err(error("node-link-edge", format!("{place}: a link joins two different nodes")));
    }
    let missing = |key: &str, example: &str| {
        error("node-link-attribute", format!("{place}: the attribute {key} is missing"))
            .hint(format!("add {key}=\"{example}\""))
    };
    let rate =
        quantity::<Rate>(attributes, "rate", &place)?.ok_or_else(|| missing("rate", "1Gbps"))?;
    if rate.0 == 0 {
        let message = format!("{place}: rate = \"0bps\": must be greater than 0");
        return Err(error("node-link-rate", message));
    }
    Ok(Edge {
        ends,
        rate,
        propagation: quantity(attributes, "propagation", &place)?
            .ok_or_else(|| missing("propagation", "2us"))?,
        queue_limit: quantity(attributes, "queue_limit", &place)?,
        threshold: quantity(attributes, "threshold", &place)?,
        loss: probability(attributes, &place)?,
        tier: attributes.get("tier").map(label),
    })
}

/// Returns the attribute `loss`, 0 if absent.
fn probability(attributes: &Map<String, Value>, place: &str) -> Result<f64, TopologyError> {
    let Some(value) = attributes.get("loss") else { return Ok(0.0) };
    let number = value.as_f64().or_else(|| label(value).parse().ok());
    number.filter(|loss| (0.0..=1.0).contains(loss)).ok_or_else(|| {
        let message = format!("{place}: loss = {value}: must be a probability from 0 to 1");
        error("node-link-attribute", message).hint("one packet in a hundred is loss=0.01")
    })
}

/// Parses the attribute `key` with its unit; returns `None` if absent.
fn quantity<T: std::str::FromStr<Err = UnitError>>(
    attributes: &Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<Option<T>, TopologyError> {
    attributes.get(key).map(|value| label(value).parse()).transpose().map_err(|cause: UnitError| {
        error("node-link-attribute", format!("{place}: {key}: {cause}"))
    })
}

/// Checks that the edges make a network; returns each node's distance from the nearest host in
/// hops.
fn check(nodes: &[Node], edges: &[Edge], multigraph: bool) -> Result<Vec<usize>, TopologyError> {
    let name = |index: usize| &nodes[index].name;
    let mut neighbours = vec![vec![]; nodes.len()];
    let mut multiplicity = BTreeMap::new();
    for edge in edges {
        let [a, b] = edge.ends;
        neighbours[a].push(b);
        neighbours[b].push(a);
        let count = multiplicity.entry((a.min(b), a.max(b))).or_insert(0);
        *count += 1;
        if *count == 2 && !multigraph {
            let message =
                format!("two edges join {:?} and {:?}, but multigraph is false", name(a), name(b));
            return Err(error("node-link-parallel", message)
                .hint("build it as networkx.MultiGraph, or join them once with the total rate"));
        }
    }
    let hosts: Vec<usize> = (0..nodes.len()).filter(|&index| nodes[index].host).collect();
    if hosts.len() < 2 {
        return Err(error(
            "node-link-hosts",
            format!("{} hosts: must be at least two", hosts.len()),
        ));
    }
    for &host in &hosts {
        let links = neighbours[host].len();
        if links != 1 {
            let message =
                format!("host {:?} has {links} links: a host must have exactly one", name(host));
            return Err(error("node-link-host", message).hint("put a switch in between"));
        }
        if nodes[neighbours[host][0]].host {
            let message =
                format!("host {:?} is joined to host {:?}", name(host), name(neighbours[host][0]));
            return Err(error("node-link-host", message).hint("put a switch in between"));
        }
    }
    let reached = distances(&neighbours, &hosts[..1]);
    let cut_off: Vec<&str> =
        (0..nodes.len()).filter(|&i| reached[i].is_none()).map(|i| name(i).as_str()).collect();
    if !cut_off.is_empty() {
        let listed =
            cut_off.iter().take(5).map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ");
        let more = if cut_off.len() > 5 {
            format!(" and {} more", cut_off.len() - 5)
        } else {
            String::new()
        };
        let message = format!(
            "the graph is disconnected: no path from {:?} to {listed}{more}",
            name(hosts[0])
        );
        return Err(error("node-link-disconnected", message));
    }
    Ok(distances(&neighbours, &hosts)
        .into_iter()
        .map(|d| d.expect("every node was reached"))
        .collect())
}

/// Returns each node's distance from the nearest of `sources` in hops; `None` if none is reachable.
fn distances(neighbours: &[Vec<usize>], sources: &[usize]) -> Vec<Option<usize>> {
    let mut distance = vec![None; neighbours.len()];
    let mut queue: VecDeque<usize> = sources.iter().copied().collect();
    for &source in sources {
        distance[source] = Some(0);
    }
    while let Some(node) = queue.pop_front() {
        for &peer in &neighbours[node] {
            if distance[peer].is_none() {
                distance[peer] = distance[node].map(|d| d + 1);
                queue.push_back(peer);
            }
        }
    }
    distance
}

fn graph(nodes: &[Node], edges: &[Edge], level: &[usize]) -> Result<Graph, TopologyError> {
    // Hosts first, then switches, each in file order.
    let order: Vec<usize> = (0..nodes.len())
        .filter(|&i| nodes[i].host)
        .chain((0..nodes.len()).filter(|&i| !nodes[i].host))
        .collect();
    let mut number = vec![0; nodes.len()];
    for (new, &old) in order.iter().enumerate() {
        number[old] = new as u32;
    }
    let hosts = nodes.iter().filter(|node| node.host).count() as u32;

    let tier_of = |edge: &Edge| {
        let height = level[edge.ends[0]].min(level[edge.ends[1]]);
        let name = edge.tier.clone().unwrap_or_else(|| match height {
            0 => "host".to_owned(),
            height => format!("tier{height}"),
        });
        (height, name)
    };
    let mut tiers: Vec<(usize, String)> = vec![];
    for (height, name) in edges.iter().map(tier_of) {
        match tiers.iter_mut().find(|tier| tier.1 == name) {
            Some(tier) => tier.0 = tier.0.min(height),
            None => tiers.push((height, name)),
        }
    }
    tiers.sort_by_key(|tier| tier.0);
    if tiers.len() > usize::from(u8::MAX) {
        let message = format!("the links have {} tiers: at most 255 are supported", tiers.len());
        return Err(
            error("node-link-tiers", message).hint("give edges a tier attribute to group them")
        );
    }
    let links = edges
        .iter()
        .map(|edge| {
            let [mut a, mut b] = edge.ends;
            if level[a] > level[b] {
                (a, b) = (b, a);
            }
            let name = tier_of(edge).1;
            let tier = tiers.iter().position(|tier| tier.1 == name).unwrap_or(0) as u8;
            let ends = [a, b].map(|end| NodeId(number[end]));
            Link {
                queue_limit: edge.queue_limit,
                threshold: edge.threshold,
                loss: edge.loss,
                ..Link::new(ends[0], ends[1], edge.rate, edge.propagation, tier)
            }
        })
        .collect();
    Ok(Graph {
        hosts,
        switches: nodes.len() as u32 - hosts,
        tiers: tiers.into_iter().map(|tier| tier.1).collect(),
        links,
        names: order.iter().map(|&i| nodes[i].name.clone()).collect(),
        ..Graph::default()
    })
}
