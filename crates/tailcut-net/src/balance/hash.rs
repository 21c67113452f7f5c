//! How switches hash a packet's key, so that whoever hashes the same key chooses the same port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;

use crate::topology::SwitchId;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Source of the switches' salts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Salting {
    /// A salt for each switch, drawn by the run's seed: all schemes of one seed have the same.
    #[default]
    Seed,
    /// A salt for each switch, the same in every run.
    Fixed,
    /// No salts: switches of consecutive tiers choose alike, and most paths stay unused (hash polarisation).
    None,
}

/// The salts of the switches of one run.
#[derive(Debug, Clone, Copy)]
pub struct Salts {
    base: u64,
    step: u64,
}

impl Salts {
    /// The salts that a run with this seed draws.
    pub const fn drawn(seed: u64) -> Salts {
        Salts { base: mix(mix(seed) ^ GOLDEN), step: GOLDEN }
    }

    /// The salts of a run with this seed.
    pub const fn of_run(salting: Salting, seed: u64) -> Salts {
        match salting {
            Salting::Seed => Salts::drawn(seed),
            Salting::Fixed => Salts { base: 0, step: GOLDEN },
            Salting::None => Salts { base: 0, step: 0 },
        }
    }

    /// The salt of a switch.
    #[inline]
    pub const fn of(self, switch: SwitchId) -> u64 {
        self.base.wrapping_add(self.step.wrapping_mul(switch.0 as u64 + 1))
    }
}

/// The hash of a key at a switch with this `salt`.
#[inline]
pub const fn hash(key: u64, salt: u64) -> u32 {
    (mix(key.wrapping_add(salt)) >> 32) as u32
}

/// Returns which of `choices` equal regions of the hash's range a hash is in (hash-threshold, RFC 2992).
#[inline]
pub const fn region(hash: u32, choices: u32) -> u32 {
    ((hash as u64 * choices as u64) >> 32) as u32
}

/// The remainder of a hash (modulo-N, RFC 2991).
#[inline]
pub const fn remainder(hash: u32, choices: u32) -> u32 {
    // The same, without a division.
    if choices.is_power_of_two() { hash & (choices - 1) } else { hash % choices }
}

/// Returns which of `choices` equal-cost ports the flow `key` takes at a switch with this `salt`, by the region of its hash.
#[inline]
pub const fn pick(key: u64, salt: u64, choices: u32) -> u32 {
    region(hash(key, salt), choices)
}
