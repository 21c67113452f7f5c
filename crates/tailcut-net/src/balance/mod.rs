//! Load balancing: which of the equal-cost egress ports a packet takes.
//!
//! A new balancer is one file here and one line in each list of this file.

pub mod by_tier;
pub mod ecmp;
pub mod flowlet;
mod round_robin;
mod spray;
pub mod tinyflow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::{Graph, Routes};

/// How switches choose among equal-cost paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BalanceSpec {
    /// A hash of the five-tuple, salted per switch, picks the path of a flow.
    Ecmp {},
    /// Every packet takes a port of its own, uniformly at random (random packet spraying).
    Spray {},
    /// The packets towards one host take the ports in turn: spraying without chance.
    RoundRobin {},
    /// A flow may change its port after a gap or so many bytes (flowlets, as in FLARE).
    Flowlet(flowlet::Flowlet),
    /// Edge switches detect elephants and give each a new path every few kilobytes; all else is ECMP.
    #[serde(rename = "tinyflow")]
    TinyFlow(tinyflow::TinyFlow),
    /// Switches of each tier choose in their own way, and so do switches by name.
    ByTier(by_tier::ByTier),
}

impl Default for BalanceSpec {
    fn default() -> Self {
        BalanceSpec::Ecmp {}
    }
}

impl BalanceSpec {
    /// Refuses parameters that no switch can work with.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            BalanceSpec::Ecmp {} | BalanceSpec::Spray {} | BalanceSpec::RoundRobin {} => Ok(()),
            BalanceSpec::Flowlet(spec) => spec.check(),
            BalanceSpec::TinyFlow(spec) => spec.check(),
            BalanceSpec::ByTier(spec) => spec.check(),
        }
    }

    /// True when all packets of a connection take one path.
    pub fn keeps_paths(&self) -> bool {
        match self {
            BalanceSpec::Ecmp {} => true,
            BalanceSpec::ByTier(spec) => spec.keeps_paths(),
            _ => false,
        }
    }

    /// Checks the switches that the parameters name against a network.
    ///
    /// # Errors
    /// When the network has no such switch, or one is named twice.
    pub fn check_on(&self, graph: &Graph) -> Result<(), SpecError> {
        match self {
            BalanceSpec::ByTier(spec) => spec.named(graph).map(|_| ()),
            BalanceSpec::Flowlet(spec) => spec.check_on(graph.switches),
            _ => Ok(()),
        }
    }
}

/// A switch that has several equal-cost ports for a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fork {
    pub now: Time,
    pub switch: u32,
    /// The switch's ECMP salt.
    pub salt: u64,
    /// How many ports there are.
    pub choices: u32,
}

/// The state of every switch's balancer.
#[derive(Debug, Clone)]
pub(crate) enum Balancer {
    Ecmp,
    Spray(spray::Spray),
    RoundRobin(round_robin::RoundRobin),
    Flowlet(flowlet::Flowlets),
    TinyFlow(Box<tinyflow::TinyFlows>),
    ByTier(by_tier::Mixture),
}

impl Balancer {
    pub fn new(spec: &BalanceSpec, graph: &Graph, routes: &Routes, seed: u64) -> Balancer {
        let (switches, hosts) = (graph.switches, graph.hosts);
        match spec {
            BalanceSpec::Ecmp {} => Balancer::Ecmp,
            BalanceSpec::Spray {} => Balancer::Spray(spray::Spray::new(switches, seed)),
            BalanceSpec::RoundRobin {} => {
                Balancer::RoundRobin(round_robin::RoundRobin::new(switches, hosts, seed))
            }
            BalanceSpec::Flowlet(spec) => {
                Balancer::Flowlet(flowlet::Flowlets::new(spec, switches, seed))
            }
            BalanceSpec::TinyFlow(spec) => Balancer::TinyFlow(Box::new(tinyflow::TinyFlows::new(
                spec, switches, hosts, routes, seed,
            ))),
            BalanceSpec::ByTier(spec) => {
                Balancer::ByTier(by_tier::Mixture::new(spec, graph, routes, seed))
            }
        }
    }

    /// TinyFlow's state, where edge switches run it.
    pub fn tinyflow(&mut self) -> Option<&mut tinyflow::TinyFlows> {
        match self {
            Balancer::TinyFlow(flows) => Some(flows),
            Balancer::ByTier(mixture) => mixture.edge().tinyflow(),
            _ => None,
        }
    }

    /// Which of the ports at `fork` `packet` takes.
    #[inline]
    pub fn pick(&mut self, fork: Fork, packet: &mut Packet) -> u32 {
        let Fork { now, switch, salt, choices } = fork;
        match self {
            Balancer::Ecmp => ecmp::pick(packet.key.0, salt, choices),
            Balancer::Spray(spray) => spray.pick(switch, choices),
            Balancer::RoundRobin(turns) => turns.pick(switch, packet.key.dst(), choices),
            Balancer::Flowlet(flowlets) => {
                flowlets.pick(now, switch, packet.key, packet.wire_bytes, choices)
            }
            Balancer::TinyFlow(flows) => flows.pick(fork, packet),
            Balancer::ByTier(mixture) => mixture.of(switch).pick(fork, packet),
        }
    }
}
