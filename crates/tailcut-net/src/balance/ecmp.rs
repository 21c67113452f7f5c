//! Equal-cost multipath by hashing the five-tuple (RFC 2992), salted per switch:
//! without the salt, switches of consecutive tiers make the same choice
//! and most paths stay unused (hash polarisation).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;

use super::{Fork, Layout, Pick, Strategy};
use crate::packet::{FlowKey, Packet};
use crate::topology::{Graph, PortId, Routes};

/// ECMP has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecmp {}

impl Strategy for Ecmp {
    type State = Ecmp;
    fn keeps_paths(&self) -> bool {
        true
    }
    fn state(&self, _: Layout<'_>) -> Ecmp {
        *self
    }
}

impl Pick for Ecmp {
    #[inline]
    fn pick(&mut self, fork: Fork<'_>, packet: &mut Packet) -> u32 {
        pick(packet.key.0, fork.salt, fork.choices)
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The salt of switch number `switch` (numbered over switches alone).
pub const fn salt(switch: u32) -> u64 {
    GOLDEN.wrapping_mul(switch as u64 + 1)
}

/// Which of `choices` equal-cost ports the flow `key` takes at a switch with this `salt`.
#[inline]
pub const fn pick(key: u64, salt: u64, choices: u32) -> u32 {
    let hash = (mix(key.wrapping_add(salt)) >> 32) as u32;
    // The same as the remainder, without a division.
    if choices.is_power_of_two() {
        hash & (choices - 1)
    } else {
        hash % choices
    }
}

/// The ports that packets with this key cross under ECMP: one of the shortest paths.
pub fn path(graph: &Graph, routes: &Routes, key: FlowKey) -> Vec<PortId> {
    let mut path = vec![routes.host_port(key.src())];
    while let Some(switch) = graph.far_end(path[path.len() - 1]).checked_sub(graph.hosts) {
        let candidates = routes.candidates(switch, key.dst());
        let pick = pick(key.0, salt(switch), candidates.len() as u32);
        path.push(candidates[pick as usize]);
    }
    path
}
