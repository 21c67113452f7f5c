//! Equal-cost multipath by hashing the five-tuple (RFC 2991, RFC 2992), salted per switch.
//!
//! A hash chooses a port in one of three ways ([`Spread`]). They differ in how many flows that did
//! not use a failed port move: modulo-N moves (n - 2)/(n - 1) of them, resilient hashing none.
//! Hash-threshold moves a third where the last of four ports fails, and a ninth where the second
//! does.

mod resilient;
mod shares;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use self::resilient::Resilient;
use self::shares::Shares;
use super::hash::{self, Salting, Salts};
use super::{Layout, Pick, PickContext, Strategy};
use crate::component::SpecError;
use crate::packet::{FlowKey, Packet};
use crate::topology::{Graph, PortId, Routes, SwitchId};

/// How a hash chooses one of the available ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Remainder of the hash by the number of ports (RFC 2991).
    Modulo,
    /// Each port has a region of the hash's range (RFC 2992), as in Linux.
    ///
    /// Hash-threshold.
    #[default]
    Threshold,
    /// Each port has buckets; a failure moves only those of the failed port.
    ///
    /// The number of buckets is fixed.
    Resilient,
}

/// Shares of the traffic that ports get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Equal shares.
    #[default]
    Equal,
    /// Shares in proportion to the links' rates as built (weighted-cost multipath).
    Rate,
}

/// Parameters of ECMP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecmp {
    /// Source of the switches' salts.
    pub salt: Salting,
    /// How a hash chooses one of the ports.
    pub spread: Spread,
    /// Shares of the traffic that ports get.
    pub weights: Weights,
    /// Buckets of each group of ports, with `spread = "resilient"`; 128 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub buckets: Option<u32>,
    /// With `spread = "resilient"`: idle time after which a bucket returns to a repaired port; with
    /// `"0s"` at once. 120 s by default, as in Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timer: Option<Time>,
}

const BUCKETS: u32 = 128;
const MOST_BUCKETS: u32 = 65_536;
const IDLE_TIMER: Time = Time::from_ms(120_000);

impl Strategy for Ecmp {
    type State = Hashing;

    fn check(&self) -> Result<(), SpecError> {
        if self.buckets.is_some_and(|buckets| !(1..=MOST_BUCKETS).contains(&buckets)) {
            let message = format!("buckets: must be from 1 to {MOST_BUCKETS}");
            return Err(SpecError::new("ecmp-buckets", "buckets", message));
        }
        let idle = [("buckets", self.buckets.is_some()), ("idle_timer", self.idle_timer.is_some())];
        match idle.into_iter().find(|(_, written)| *written) {
            Some((field, _)) if self.spread != Spread::Resilient => {
                let message =
                    format!("{field} has no effect here: only resilient hashing has buckets");
                Err(SpecError::new("ecmp-resilient", field, message)
                    .hint("write spread = \"resilient\""))
            }
            _ => Ok(()),
        }
    }

    fn is_per_connection(&self) -> bool {
        true
    }

    fn draws(&self) -> bool {
        self.salt == Salting::Seed
    }

    fn has_equal_shares(&self) -> bool {
        self.weights == Weights::Equal
    }

    fn state(&self, layout: Layout<'_>) -> Hashing {
        let shares = match self.weights {
            Weights::Equal => Shares::default(),
            Weights::Rate => Shares::by_rate(layout.graph),
        };
        let resilient = (self.spread == Spread::Resilient).then(|| {
            let buckets = self.buckets.unwrap_or(BUCKETS);
            Box::new(Resilient::new(buckets, self.idle_timer.unwrap_or(IDLE_TIMER), layout.routes))
        });
        Hashing {
            salts: Salts::of_run(self.salt, layout.seed),
            plain: self.spread == Spread::Threshold && shares.are_equal(),
            spread: self.spread,
            shares,
            resilient,
        }
    }
}

/// Hashing at every switch.
#[derive(Debug, Clone)]
pub struct Hashing {
    salts: Salts,
    /// Whether the spread is by threshold and all shares are equal.
    plain: bool,
    spread: Spread,
    shares: Shares,
    /// Buckets, with [`Spread::Resilient`] only.
    resilient: Option<Box<Resilient>>,
}

impl Pick for Hashing {
    #[inline]
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        let hash = hash::hash(packet.key.0, self.salts.of(fork.switch));
        if self.plain {
            return hash::region(hash, fork.choices);
        }
        self.pick_by_share(fork, packet.key, hash)
    }

    fn plain_hash(&self) -> Option<Salts> {
        self.plain.then_some(self.salts)
    }

    fn predict(&self, switch: SwitchId, ports: &[PortId], key: FlowKey) -> Option<u32> {
        let hash = hash::hash(key.0, self.salts.of(switch));
        Some(match &self.resilient {
            Some(resilient) => resilient.look(switch, ports, key.dst(), hash, &self.shares),
            None => self.place(hash, ports),
        })
    }

    fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        if let Some(resilient) = &mut self.resilient {
            resilient.reroute(graph, routes, &self.shares);
        }
    }
}

impl Hashing {
    /// Returns the port of a hash among unequal shares or by resilient hashing. Out of line, so
    /// that plain hashing pays nothing for it.
    #[inline(never)]
    fn pick_by_share(&mut self, fork: PickContext<'_>, key: FlowKey, hash: u32) -> u32 {
        match &mut self.resilient {
            Some(resilient) => {
                let PickContext { now, switch, ports, .. } = fork;
                resilient.pick(now, switch, ports, key.dst(), hash, &self.shares)
            }
            None => self.place(hash, fork.ports),
        }
    }

    /// Returns the position of the port that a hash chooses, without buckets.
    fn place(&self, hash: u32, ports: &[PortId]) -> u32 {
        let total = self.shares.total(ports);
        let at = match self.spread {
            Spread::Modulo => hash::remainder(hash, total),
            Spread::Threshold | Spread::Resilient => hash::region(hash, total),
        };
        self.shares.at(ports, at)
    }
}
