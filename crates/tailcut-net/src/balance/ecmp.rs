//! Equal-cost multipath by hashing the five-tuple (RFC 2992), salted per switch:
//! without the salt, switches of consecutive tiers make the same choice
//! and most paths stay unused (hash polarisation).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{hash, Fork, Layout, Pick, Strategy};
use crate::packet::{FlowKey, Packet};
use crate::topology::SwitchId;

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
        hash::pick(packet.key.0, hash::salt(fork.switch), fork.choices)
    }

    fn foretell(&self, switch: SwitchId, choices: u32, key: FlowKey) -> Option<u32> {
        Some(hash::pick(key.0, hash::salt(switch), choices))
    }
}
