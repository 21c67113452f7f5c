//! Counters of switch ports, as a run reports them.

use serde_json::{Value, json};
use tailcut_net::port::PortCounters;
use tailcut_net::topology::find::link_name;
use tailcut_net::topology::{Graph, NodeId, PortId};

/// Returns the node that sends into a directed link.
pub fn near_end(graph: &Graph, port: PortId) -> NodeId {
    graph.far_end(port.reversed())
}

/// Returns for each switch the counters of its ports, by the names of their links.
pub fn switch_counters(graph: &Graph, counts: impl Fn(PortId) -> PortCounters) -> Vec<Value> {
    let mut switches = vec![json!({ "ports": {} }); graph.switches as usize];
    for port in (0..graph.links.len()).flat_map(PortId::both_directions) {
        if let Some(switch) = graph.switch(near_end(graph, port)) {
            let PortCounters { packets, bytes, drops, .. } = counts(port);
            switches[switch.index()]["ports"][link_name(graph, port)] =
                json!({ "packets": packets, "bytes": bytes, "drops": drops });
        }
    }
    switches
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use tailcut_net::topology::chain::Chain;

    #[test]
    fn a_switch_lists_its_own_ports_and_none_of_a_host() {
        let chain: Chain = serde_json::from_value(json!({})).expect("it is a chain");
        let graph = chain.build().expect("it can be built");
        let counts =
            |port: PortId| PortCounters { packets: port.index() as u64, ..PortCounters::default() };
        let told = switch_counters(&graph, counts);
        let names = |switch: &Value| -> BTreeSet<String> {
            switch["ports"].as_object().expect("by name").keys().cloned().collect()
        };
        let named = |all: [&str; 2]| BTreeSet::from(all.map(str::to_owned));
        assert_eq!(names(&told[0]), named(["s0>h0", "s0>s1"]));
        assert_eq!(names(&told[1]), named(["s1>h1", "s1>s0"]));
        let port = (0..graph.links.len())
            .flat_map(PortId::both_directions)
            .find(|port| link_name(&graph, *port) == "s0>s1")
            .expect("there is one");
        assert_eq!(told[0]["ports"]["s0>s1"]["packets"], port.index());
    }
}
