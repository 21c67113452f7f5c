//! Failures: links and switches that go down and come up, links that slow down, lose packets or
//! take longer, and how long routing takes to learn of it.
//!
//! What is queued, in service or on the wire of a link that goes down is lost, and so is what is
//! sent to it until routes avoid it: both are counted apart from drops at full queues. Routing
//! learns of a failure, or of a repair, `reconvergence` after it; of what is down when the run
//! begins it knows at once, unless `known_at_start` is false. Then every switch uses the shortest
//! paths of what is left, per destination, so that remote edge switches stop using the core
//! switches behind a failed link. Slow, lossy and long links are never avoided: no routing protocol
//! sees them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use crate::component::SpecError;
use crate::topology::find::{find_link, find_node};
use crate::topology::{Graph, PortId};

/// The faults of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultsSpec {
    /// Whether anything fails at all: sweep it to compare a healthy network with a broken one.
    pub active: bool,
    /// From a failure or a repair until every switch routes by it. Until then packets for a dead
    /// link are lost.
    pub reconvergence: Time,
    /// Whether routing knows at 0 s what is down then. Otherwise it learns of it `reconvergence`
    /// later.
    pub known_at_start: bool,
    /// The incidents.
    pub incidents: Vec<Incident>,
}

impl Default for FaultsSpec {
    fn default() -> Self {
        FaultsSpec {
            active: true,
            reconvergence: Time::from_ms(10),
            known_at_start: true,
            incidents: vec![],
        }
    }
}

/// A fault. Links are written `"from>to"` in node names or numbers, as in time series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Incident {
    /// A link goes down, in both directions.
    LinkDown {
        /// The link: `"s0>s8"`.
        link: String,
        /// The time at which it goes down.
        at: Time,
        /// The time at which it comes up again; never when left out.
        until: Option<Time>,
    },
    /// A switch goes down, and every link of it.
    SwitchDown {
        /// The switch: `"s8"`.
        switch: String,
        /// The time at which it goes down.
        at: Time,
        /// The time at which it comes up again; never when left out.
        until: Option<Time>,
    },
    /// A plane of a `multi-plane` topology goes down: every link of it.
    PlaneDown {
        /// The plane, counted from 0.
        plane: u32,
        /// The time at which it goes down.
        at: Time,
        /// The time at which it comes up again; never when left out.
        until: Option<Time>,
    },
    /// A rail of a `rail-optimised` topology goes down: its hosts' links to their leaves.
    RailDown {
        /// The rail, counted from 0.
        rail: u32,
        /// The time at which it goes down.
        at: Time,
        /// The time at which it comes up again; never when left out.
        until: Option<Time>,
    },
    /// A link runs at another rate.
    Rate {
        /// The link: `"s0>s8"`.
        link: String,
        /// Only in the direction named.
        #[serde(default)]
        one_way: bool,
        /// The rate meanwhile.
        rate: Rate,
        /// From when on.
        at: Time,
        /// Until when; for good when left out.
        until: Option<Time>,
    },
    /// A link corrupts packets at random; they are lost at its far end.
    Loss {
        /// The link: `"s0>s8"`.
        link: String,
        /// Only in the direction named.
        #[serde(default)]
        one_way: bool,
        /// The probability that a packet is lost.
        #[schemars(range(min = 0.0, max = 1.0))]
        probability: f64,
        /// From when on.
        at: Time,
        /// Until when; for good when left out.
        until: Option<Time>,
    },
    /// A link takes longer: its propagation delay grows.
    Delay {
        /// The link: `"s0>s8"`.
        link: String,
        /// Only in the direction named.
        #[serde(default)]
        one_way: bool,
        /// The additional propagation delay.
        extra: Time,
        /// From when on.
        at: Time,
        /// Until when; for good when left out.
        until: Option<Time>,
    },
}

/// Longer delays and lower rates leave the range of simulated time when they add up.
const LONGEST_DELAY: Time = Time::from_ms(10_000);
const LOWEST_RATE: Rate = Rate(1_000);
/// A day, the longest horizon.
const LONGEST_TIME: Time = Time::from_ms(24 * 3_600 * 1_000);

impl Incident {
    fn times(&self) -> (Time, Option<Time>) {
        match self {
            Incident::LinkDown { at, until, .. }
            | Incident::SwitchDown { at, until, .. }
            | Incident::PlaneDown { at, until, .. }
            | Incident::RailDown { at, until, .. }
            | Incident::Rate { at, until, .. }
            | Incident::Loss { at, until, .. }
            | Incident::Delay { at, until, .. } => (*at, *until),
        }
    }

    fn check(&self, place: &str) -> Result<(), SpecError> {
        let (at, until) = self.times();
        if let Some(until) = until.filter(|until| *until <= at) {
            let message = format!("until = \"{until}\" is not after at = \"{at}\"");
            return Err(SpecError::new("fault-times", format!("{place}.until"), message)
                .hint("leave `until` out for a failure that lasts"));
        }
        if at > LONGEST_TIME || until.is_some_and(|until| until > LONGEST_TIME) {
            let message = format!("no run lasts longer than {LONGEST_TIME}");
            return Err(SpecError::new("fault-times", format!("{place}.at"), message));
        }
        match self {
            Incident::Rate { rate, .. } if *rate < LOWEST_RATE => {
                let message = format!("rate = \"{rate}\": at least {LOWEST_RATE}");
                Err(SpecError::new("fault-rate", format!("{place}.rate"), message)
                    .hint("kind = \"link-down\" is a link that carries nothing"))
            }
            Incident::Loss { probability, .. } if !(*probability > 0.0 && *probability <= 1.0) => {
                let message = format!("probability = {probability}: above 0 and at most 1");
                Err(SpecError::new("fault-loss", format!("{place}.probability"), message))
            }
            Incident::Delay { extra, .. } if *extra > LONGEST_DELAY => {
                let message = format!("extra = \"{extra}\": at most {LONGEST_DELAY}");
                Err(SpecError::new("fault-delay", format!("{place}.extra"), message))
            }
            _ => Ok(()),
        }
    }
}

/// A change of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The time.
    pub at: Time,
    /// The change.
    pub what: ChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeKind {
    /// Adds or removes a reason for a link, both its directions, to be down.
    Down {
        /// The link's place in the graph.
        link: u32,
        /// Whether it is one more.
        down: bool,
    },
    /// Routing learns of it.
    Learned {
        /// The link's place in the graph.
        link: u32,
        /// Whether it is one more.
        down: bool,
    },
    /// The senders of hosts with several interfaces learn of it.
    Noticed {
        /// The link's place in the graph.
        link: u32,
        /// Whether it is one more.
        down: bool,
    },
    /// Another rate, or that of the graph again.
    Rate(PortId, Option<Rate>),
    /// The probability that a packet is lost, or that of the graph again.
    Loss(PortId, Option<f64>),
    /// Adds to a port's propagation delay.
    Delay(PortId, Time),
}

impl FaultsSpec {
    /// True when nothing will fail.
    pub fn is_fault_free(&self) -> bool {
        !self.active || self.incidents.is_empty()
    }

    /// Returns when routing learns of a link that goes down or comes up at `at`.
    pub fn learned(&self, at: Time) -> Time {
        self.known_after(at, self.reconvergence)
    }

    fn known_after(&self, at: Time, delay: Time) -> Time {
        match self.known_at_start && at == Time::ZERO {
            true => at,
            false => at + delay,
        }
    }

    /// Returns when the senders of hosts with several interfaces learn of links that go down or
    /// come up: `detection` after `changes`, or with routing.
    pub fn noticed(&self, changes: &[Change], detection: Option<Time>) -> Vec<Change> {
        let delay = detection.unwrap_or(self.reconvergence);
        let of = |change: &Change| match change.what {
            ChangeKind::Down { link, down } => Some(Change {
                at: self.known_after(change.at, delay),
                what: ChangeKind::Noticed { link, down },
            }),
            _ => None,
        };
        changes.iter().filter_map(of).collect()
    }

    /// Checks what concerns the parameters alone.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.reconvergence > LONGEST_DELAY {
            let message =
                format!("reconvergence = \"{}\": at most {LONGEST_DELAY}", self.reconvergence);
            return Err(SpecError::new("fault-reconvergence", "reconvergence", message));
        }
        let mut places = (0..).map(|index| format!("incidents[{index}]"));
        self.incidents
            .iter()
            .zip(&mut places)
            .try_for_each(|(incident, place)| incident.check(&place))
    }

    /// Checks the incidents against a network.
    ///
    /// # Errors
    /// When a link or switch does not exist, or two incidents want different things of one link at
    /// one time.
    pub fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        self.changes(graph).map(|_| ())
    }

    /// The changes in order of time.
    ///
    /// # Errors
    /// See [`FaultsSpec::check_topology`].
    pub fn changes(&self, graph: &Graph) -> Result<Vec<Change>, SpecError> {
        let mut changes = vec![];
        // Per kind and port: when it is taken.
        let mut taken: BTreeMap<(&str, PortId), Vec<(Time, Time)>> = BTreeMap::new();
        let incidents = if self.active { self.incidents.as_slice() } else { &[] };
        for (index, incident) in incidents.iter().enumerate() {
            let place = |field: &str| format!("incidents[{index}].{field}");
            let find = |name: &str| {
                find_link(graph, name)
                    .map_err(|error| SpecError::new("fault-link", place("link"), error.to_string()))
            };
            let (at, until) = incident.times();
            let mut add = |at, what| changes.push(Change { at, what });
            let links: Vec<u32> = match incident {
                Incident::LinkDown { link, .. } => vec![find(link)?.link() as u32],
                Incident::SwitchDown { switch, .. } => {
                    let node =
                        find_node(graph, switch).filter(|&node| graph.switch(node).is_some());
                    let node = node.ok_or_else(|| {
                        let message = format!("the topology has no switch {switch:?}");
                        SpecError::new("fault-switch", place("switch"), message)
                            .hint("write a name of the topology, or \"s3\" for switch 3")
                    })?;
                    let ends = |l: &crate::topology::Link| l.a == node || l.b == node;
                    let links = graph.links.iter().enumerate().filter(|(_, link)| ends(link));
                    links.map(|(index, _)| index as u32).collect()
                }
                Incident::PlaneDown { plane, .. } => {
                    let links = graph.links_of_plane(*plane);
                    if links.is_empty() {
                        let message = format!("the topology has no plane {plane}");
                        return Err(SpecError::new("fault-plane", place("plane"), message)
                            .hint("planes of topology.kind = \"multi-plane\" count from 0"));
                    }
                    links
                }
                Incident::RailDown { rail, .. } => {
                    let links = graph.links_of_rail(*rail);
                    if links.is_empty() {
                        let message = format!("the topology has no rail {rail}");
                        return Err(SpecError::new("fault-rail", place("rail"), message)
                            .hint("rails of topology.kind = \"rail-optimised\" count from 0"));
                    }
                    links
                }
                _ => vec![],
            };
            for link in links {
                for (at, down) in [(Some(at), true), (until, false)] {
                    let Some(at) = at else { continue };
                    add(at, ChangeKind::Down { link, down });
                    add(self.learned(at), ChangeKind::Learned { link, down });
                }
            }
            let (kind, name, one_way) = match incident {
                Incident::Rate { link, one_way, .. } => ("rate", link, *one_way),
                Incident::Loss { link, one_way, .. } => ("loss", link, *one_way),
                Incident::Delay { link, one_way, .. } => ("delay", link, *one_way),
                _ => continue,
            };
            let port = find(name)?;
            let ports = if one_way { vec![port] } else { vec![port, port.reversed()] };
            for port in ports {
                let end = until.unwrap_or(Time::NEVER);
                let before = taken.entry((kind, port)).or_default();
                if before.iter().any(|&(from, to)| at < to && from < end) {
                    let message = format!(
                        "link {name:?} has another incident of kind \"{kind}\" at that time"
                    );
                    return Err(SpecError::new("fault-overlap", place("at"), message)
                        .hint("let one end before the next begins"));
                }
                before.push((at, end));
                let (begin, restore) = match incident {
                    Incident::Rate { rate, .. } => {
                        (ChangeKind::Rate(port, Some(*rate)), ChangeKind::Rate(port, None))
                    }
                    Incident::Loss { probability, .. } => {
                        (ChangeKind::Loss(port, Some(*probability)), ChangeKind::Loss(port, None))
                    }
                    Incident::Delay { extra, .. } => {
                        (ChangeKind::Delay(port, *extra), ChangeKind::Delay(port, Time::ZERO))
                    }
                    Incident::LinkDown { .. }
                    | Incident::SwitchDown { .. }
                    | Incident::PlaneDown { .. }
                    | Incident::RailDown { .. } => continue,
                };
                add(at, begin);
                if let Some(until) = until {
                    add(until, restore);
                }
            }
        }
        // What ends at an instant comes before what begins then, so that the beginning stays.
        let ends = |change: &Change| match change.what {
            ChangeKind::Rate(_, rate) => rate.is_none(),
            ChangeKind::Loss(_, probability) => probability.is_none(),
            ChangeKind::Delay(_, extra) => extra == Time::ZERO,
            ChangeKind::Down { .. } | ChangeKind::Learned { .. } | ChangeKind::Noticed { .. } => {
                false
            }
        };
        changes.sort_by_key(|change| (change.at, !ends(change)));
        Ok(changes)
    }
}
