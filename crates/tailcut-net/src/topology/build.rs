//! What the built-in topologies share: numbering, naming and range checks.

use tailcut_engine::{Rate, Time};

use super::{Graph, Link, NodeId, TopologyError};

/// Packets carry host numbers in 16 bits.
const MAX_HOSTS: u64 = 1 << 16;
/// More nodes than this are a slip of the keyboard rather than a network to simulate on one machine.
const MAX_NODES: u64 = 1 << 17;
/// As many links take a gigabyte.
const MAX_LINKS: u64 = 1 << 21;
/// Equal-cost ports of a switch are counted in 10 bits.
pub(super) const MAX_PATHS: u32 = 1_023;

pub(super) struct Builder {
    graph: Graph,
}

impl Builder {
    /// `switches` gives the name prefix and number of each kind of switch, in numbering order.
    pub fn new(hosts: u32, switches: &[(&str, u32)], tiers: &[&str]) -> Builder {
        let mut names: Vec<String> = (0..hosts).map(|i| format!("h{i}")).collect();
        for (prefix, count) in switches {
            names.extend((0..*count).map(|i| format!("{prefix}{i}")));
        }
        let switches = switches.iter().map(|s| s.1).sum();
        let tiers = tiers.iter().map(|t| (*t).to_owned()).collect();
        Builder { graph: Graph { hosts, switches, tiers, names, ..Graph::default() } }
    }

    /// Joins `lower` and `upper`, both node numbers.
    pub fn link(
        &mut self,
        lower: u32,
        upper: u32,
        tier: u8,
        rate: Rate,
        propagation: Time,
    ) -> &mut Link {
        let (a, b) = (NodeId(lower), NodeId(upper));
        self.graph.links.push(Link::new(a, b, rate, propagation, tier));
        self.graph.links.last_mut().expect("a link was just added")
    }

    pub fn finish(self) -> Graph {
        self.graph
    }
}

/// Checks that `field` is at least `minimum`.
pub(super) fn at_least(
    code: &'static str,
    field: &str,
    value: u32,
    minimum: u32,
    of_what: &str,
) -> Result<(), TopologyError> {
    if value >= minimum {
        return Ok(());
    }
    Err(TopologyError::new(
        code,
        field,
        format!("{field} = {value}: at least {minimum} {of_what} needed"),
    ))
}

/// Checks that a rate is positive: nothing ever crosses a link of rate zero.
pub(super) fn positive(code: &'static str, field: &str, rate: Rate) -> Result<Rate, TopologyError> {
    if rate.0 > 0 {
        return Ok(rate);
    }
    Err(TopologyError::new(
        code,
        field,
        format!("{field} = \"0bps\": a link needs a positive rate"),
    ))
}

/// Checks that the network stays within what one machine can hold.
pub(super) fn size(
    code: &'static str,
    field: &str,
    hosts: u64,
    nodes: u64,
) -> Result<(), TopologyError> {
    if hosts > MAX_HOSTS {
        return Err(TopologyError::new(
            code,
            field,
            format!("{hosts} hosts: at most {MAX_HOSTS} can be told apart"),
        ));
    }
    if nodes > MAX_NODES {
        return Err(TopologyError::new(
            code,
            field,
            format!("{nodes} hosts and switches: at most {MAX_NODES} fit"),
        ));
    }
    Ok(())
}

/// Checks that the links stay within what one machine can hold.
pub(super) fn links(code: &'static str, field: &str, links: u64) -> Result<(), TopologyError> {
    if links <= MAX_LINKS {
        return Ok(());
    }
    Err(TopologyError::new(code, field, format!("{links} links: at most {MAX_LINKS} fit")))
}

/// Checks the number of equal-cost paths that one switch chooses from.
pub(super) fn paths(code: &'static str, field: &str, paths: u32) -> Result<(), TopologyError> {
    if (1..=MAX_PATHS).contains(&paths) {
        return Ok(());
    }
    Err(TopologyError::new(
        code,
        field,
        format!("{field} = {paths}: from 1 to {MAX_PATHS} are possible"),
    ))
}
