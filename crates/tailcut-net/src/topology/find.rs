//! Names of nodes, links and pairs of hosts in a graph.

use super::{Graph, HostId, NodeId, PortId, SwitchId};

/// A requested link that the graph does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the topology has no link {0:?}; write \"from>to\" with node names or numbers, such as \"h0>s0\""
)]
pub struct UnknownLink(pub String);

/// Finds the directed link that `text` (`"from>to"`) names. Nodes are named as in the graph, or
/// `h<n>` for host n and `s<n>` for switch n.
///
/// # Errors
/// Refuses text that names no link of the graph.
pub fn find_link(graph: &Graph, text: &str) -> Result<PortId, UnknownLink> {
    let unknown = || UnknownLink(text.to_owned());
    let (from, to) = text.split_once('>').ok_or_else(unknown)?;
    let node = |name| find_node(graph, name).ok_or_else(unknown);
    let (from, to) = (node(from)?, node(to)?);
    graph
        .links
        .iter()
        .enumerate()
        .find_map(|(index, link)| {
            let [of_a, of_b] = PortId::both_directions(index);
            (link.a == from && link.b == to)
                .then_some(of_a)
                .or((link.b == from && link.a == to).then_some(of_b))
        })
        .ok_or_else(unknown)
}

/// Returns the name of a directed link, in the form that [`find_link`] accepts.
pub fn link_name(graph: &Graph, link: PortId) -> String {
    format!(
        "{}>{}",
        node_name(graph, graph.far_end(link.reversed())),
        node_name(graph, graph.far_end(link))
    )
}

/// Returns the name of a node in the graph; without one, `h<n>` for host n and `s<n>` for switch n.
pub fn node_name(graph: &Graph, node: NodeId) -> String {
    match (graph.names.get(node.index()), graph.switch(node)) {
        (Some(name), _) => name.clone(),
        (None, Some(switch)) => format!("s{switch}"),
        (None, None) => format!("h{node}"),
    }
}

/// Finds a node by its name in the graph, or as `h<n>` for host n and `s<n>` for switch n. `None`
/// if there is no such node.
pub fn find_node(graph: &Graph, name: &str) -> Option<NodeId> {
    let name = name.trim();
    if let Some(index) = graph.names.iter().position(|n| n == name) {
        return Some(NodeId::at(index));
    }
    let number = name.get(1..)?.parse::<u32>().ok()?;
    match name.as_bytes()[0] {
        b'h' if number < graph.hosts => Some(NodeId(number)),
        b's' if number < graph.switches => Some(SwitchId(number).node(graph.hosts)),
        _ => None,
    }
}

/// A requested pair of hosts that the graph does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the topology has no two hosts {0:?}; write \"from>to\" with host names or numbers, such as \"h0>h5\""
)]
pub struct UnknownHosts(pub String);

/// Finds the two hosts that `text` (`"h0>h15"`) names.
///
/// # Errors
/// Refuses text that does not name two different hosts of the graph.
pub fn find_hosts(graph: &Graph, text: &str) -> Result<(HostId, HostId), UnknownHosts> {
    let host = |name: &str| find_node(graph, name).and_then(|node| graph.host(node));
    let both = text.split_once('>').and_then(|(from, to)| host(from).zip(host(to)));
    both.filter(|(from, to)| from != to).ok_or_else(|| UnknownHosts(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::star::Star;

    fn star() -> Graph {
        Star { hosts: 3, ..Star::default() }.build().expect("hosts are enough")
    }

    #[test]
    fn finds_each_direction_of_a_link_by_its_two_ends() {
        let graph = star();
        let (up, down) = (find_link(&graph, "h1>s0"), find_link(&graph, "s0>h1"));
        let (up, down) = (up.expect("it is there"), down.expect("it is there"));
        assert_eq!(
            (up, graph.far_end(up), graph.far_end(down)),
            (down.reversed(), NodeId(3), NodeId(1))
        );
        for unknown in ["h1", "h1>h2", "h7>s0", "s0>s0", ""] {
            assert_eq!(find_link(&graph, unknown), Err(UnknownLink(unknown.into())));
        }
    }

    #[test]
    fn find_link_finds_every_link_name() {
        let mut graph = star();
        let named =
            |graph: &Graph| (0..6).map(|link| link_name(graph, PortId(link))).collect::<Vec<_>>();
        assert_eq!(named(&graph), ["h0>s0", "s0>h0", "h1>s0", "s0>h1", "h2>s0", "s0>h2"]);
        graph.names = ["a", "b", "c", "tor"].map(String::from).into();
        assert_eq!(named(&graph)[..2], ["a>tor", "tor>a"]);
        let found = named(&graph).iter().map(|name| find_link(&graph, name)).collect::<Vec<_>>();
        assert_eq!(found, (0..6).map(|link| Ok(PortId(link))).collect::<Vec<_>>());
    }

    #[test]
    fn names_of_the_graph_come_before_numbers() {
        let mut graph = star();
        graph.names = ["h1", "client", "server", "tor"].map(String::from).into();
        let found = ["h1", "h2", "tor", "s0", "s1"].map(|name| find_node(&graph, name));
        assert_eq!(found, [Some(0), Some(2), Some(3), Some(3), None].map(|n| n.map(NodeId)));
    }

    #[test]
    fn find_hosts_refuses_equal_and_unknown_hosts() {
        let graph = star();
        assert_eq!(find_hosts(&graph, "h2>h0"), Ok((HostId(2), HostId(0))));
        for wrong in ["h0>h0", "h0>s0", "h0", "h0>h3"] {
            assert_eq!(find_hosts(&graph, wrong), Err(UnknownHosts(wrong.into())));
        }
    }
}
