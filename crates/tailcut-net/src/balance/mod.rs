//! Load balancing: which of the equal-cost egress ports a packet takes.
//!
//! A new balancer is one file here and one line in each list of this file.

pub mod ecmp;
pub mod flowlet;
mod round_robin;
mod spray;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;
use crate::packet::Packet;

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
        }
    }

    /// True when all packets of a connection take one path.
    pub fn keeps_paths(&self) -> bool {
        matches!(self, BalanceSpec::Ecmp {})
    }
}

/// The state of every switch's balancer.
#[derive(Debug, Clone)]
pub(crate) enum Balancer {
    Ecmp,
    Spray(spray::Spray),
    RoundRobin(round_robin::RoundRobin),
    Flowlet(flowlet::Flowlets),
}

impl Balancer {
    pub fn new(spec: &BalanceSpec, switches: u32, hosts: u32, seed: u64) -> Balancer {
        match spec {
            BalanceSpec::Ecmp {} => Balancer::Ecmp,
            BalanceSpec::Spray {} => Balancer::Spray(spray::Spray::new(switches, seed)),
            BalanceSpec::RoundRobin {} => {
                Balancer::RoundRobin(round_robin::RoundRobin::new(switches, hosts, seed))
            }
            BalanceSpec::Flowlet(spec) => {
                Balancer::Flowlet(flowlet::Flowlets::new(spec, switches, seed))
            }
        }
    }

    /// Which of `choices` ports `packet` takes at `switch`, whose ECMP salt is `salt`.
    #[inline]
    pub fn pick(
        &mut self,
        now: Time,
        switch: u32,
        salt: u64,
        packet: &Packet,
        choices: u32,
    ) -> u32 {
        match self {
            Balancer::Ecmp => ecmp::pick(packet.key.0, salt, choices),
            Balancer::Spray(spray) => spray.pick(switch, choices),
            Balancer::RoundRobin(turns) => turns.pick(switch, packet.key.dst(), choices),
            Balancer::Flowlet(flowlets) => {
                flowlets.pick(now, switch, packet.key, packet.wire_bytes, choices)
            }
        }
    }
}
