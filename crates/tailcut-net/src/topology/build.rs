//! Numbering, naming and range checks for the built-in topologies.

use tailcut_engine::{Rate, Time};

use super::attachment::MOST_INTERFACES;
use super::{Attachment, Graph, Link, MAX_HOSTS, NodeId, TopologyError};

/// Maximum number of hosts and switches that one machine is meant to simulate.
const MAX_NODES: u64 = 1 << 20;
/// Maximum number of links: they take a gigabyte.
const MAX_LINKS: u64 = 1 << 21;
/// Maximum number of equal-cost ports of a switch, which routes count in 10 bits.
pub(super) const MAX_PATHS: u32 = 1_023;

pub(super) struct Builder {
    graph: Graph,
}

impl Builder {
    /// Begins a graph. `switches` gives the name prefix and number of each kind of switch, in
    /// numbering order.
    pub fn new(hosts: u32, switches: &[(&str, u32)], tiers: &[&str]) -> Builder {
        let mut names: Vec<String> = (0..hosts).map(|i| format!("h{i}")).collect();
        for (prefix, count) in switches {
            names.extend((0..*count).map(|i| format!("{prefix}{i}")));
        }
        let switches = switches.iter().map(|s| s.1).sum();
        let tiers = tiers.iter().map(|t| (*t).to_owned()).collect();
        Builder { graph: Graph { hosts, switches, tiers, names, ..Graph::default() } }
    }

    /// Joins nodes `lower` and `upper`; returns the link for further settings.
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

    /// Sets how hosts attach to switches.
    pub fn attach(&mut self, attachment: Attachment) {
        self.graph.attachment = attachment;
    }

    /// Joins `leaves` leaves, numbered from `first`, to each of `spines` spines after them by
    /// `parallel` links.
    pub fn join_leaves(
        &mut self,
        first: u32,
        [leaves, spines, parallel]: [u32; 3],
        tier: u8,
        rate: Rate,
        propagation: Time,
    ) {
        for leaf in 0..leaves {
            for spine in 0..spines {
                for _ in 0..parallel {
                    self.link(first + leaf, first + leaves + spine, tier, rate, propagation);
                }
            }
        }
    }

    pub fn finish(self) -> Graph {
        self.graph
    }
}

/// Refuses a `field` below `minimum`. `of_what` names the things counted.
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
        format!("{field} = {value}: must be at least {minimum} {of_what}"),
    ))
}

/// Refuses a rate of 0, at which nothing ever crosses a link.
pub(super) fn positive(code: &'static str, field: &str, rate: Rate) -> Result<Rate, TopologyError> {
    if rate.0 > 0 {
        return Ok(rate);
    }
    Err(TopologyError::new(code, field, format!("{field} = \"0bps\": must be greater than 0")))
}

/// Refuses networks with more hosts or nodes than one machine can hold.
pub(super) fn size(
    code: &'static str,
    field: &str,
    hosts: u64,
    nodes: u64,
) -> Result<(), TopologyError> {
    if hosts > u64::from(MAX_HOSTS) {
        return Err(TopologyError::new(
            code,
            field,
            format!("{hosts} hosts: at most {MAX_HOSTS} are supported"),
        ));
    }
    if nodes > MAX_NODES {
        return Err(TopologyError::new(
            code,
            field,
            format!("{nodes} hosts and switches: at most {MAX_NODES} are supported"),
        ));
    }
    Ok(())
}

/// Refuses networks with more links than one machine can hold.
pub(super) fn links(code: &'static str, field: &str, links: u64) -> Result<(), TopologyError> {
    if links <= MAX_LINKS {
        return Ok(());
    }
    Err(TopologyError::new(
        code,
        field,
        format!("{links} links: at most {MAX_LINKS} are supported"),
    ))
}

/// Refuses fewer than two interfaces per host, and more than [`MOST_INTERFACES`].
pub(super) fn interfaces(code: &'static str, field: &str, value: u32) -> Result<(), TopologyError> {
    if (2..=MOST_INTERFACES).contains(&value) {
        return Ok(());
    }
    let message = format!("{field} = {value}: must be from 2 to {MOST_INTERFACES}");
    let error = TopologyError::new(code, field, message);
    Err(match value {
        1 => error.hint("hosts with one interface are those of kind = \"leaf-spine\""),
        _ => error,
    })
}

/// Refuses a number of equal-cost paths at one switch that is 0 or too large.
pub(super) fn paths(code: &'static str, field: &str, paths: u32) -> Result<(), TopologyError> {
    if (1..=MAX_PATHS).contains(&paths) {
        return Ok(());
    }
    Err(TopologyError::new(
        code,
        field,
        format!("{field} = {paths}: must be from 1 to {MAX_PATHS}"),
    ))
}

/// Returns the number of links between a leaf and all spines.
///
/// # Errors
/// Refuses more links than a switch has equal-cost ports, with the field `links_per_spine`.
pub(super) fn uplinks(
    code: &'static str,
    spines: u32,
    links_per_spine: u32,
) -> Result<u32, TopologyError> {
    let links = spines.saturating_mul(links_per_spine);
    if links <= MAX_PATHS {
        return Ok(links);
    }
    let message = format!(
        "links_per_spine = {links_per_spine}: with spines = {spines}, a leaf has more than \
         {MAX_PATHS} links to spines"
    );
    Err(TopologyError::new(code, "links_per_spine", message))
}
