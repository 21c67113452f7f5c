//! The hash of a packet's key at switches: equal keys and salts give equal choices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;

use crate::topology::SwitchId;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Source of the switches' salts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Salting {
    /// A salt per switch, drawn from the run's seed and equal for all schemes.
    #[default]
    Seed,
    /// A salt for each switch, the same in every run.
    Fixed,
    /// No salts: switches of consecutive tiers choose alike (hash polarisation).
    ///
    /// Most paths then remain unused.
    None,
}

/// The salts of the switches of one run.
#[derive(Debug, Clone, Copy)]
pub struct Salts {
    base: u64,
    step: u64,
}

impl Salts {
    /// Returns the salts drawn in a run with this seed.
    pub const fn drawn(seed: u64) -> Salts {
        Salts { base: mix(mix(seed) ^ GOLDEN), step: GOLDEN }
    }

    /// Returns the salts of a run with this seed.
    pub const fn of_run(salting: Salting, seed: u64) -> Salts {
        match salting {
            Salting::Seed => Salts::drawn(seed),
            Salting::Fixed => Salts { base: 0, step: GOLDEN },
            Salting::None => Salts { base: 0, step: 0 },
        }
    }

    /// Returns the salt of a switch.
    #[inline]
    pub const fn of(self, switch: SwitchId) -> u64 {
        self.base.wrapping_add(self.step.wrapping_mul(switch.0 as u64 + 1))
    }
}

/// Returns the hash of a key at a switch with this `salt`.
#[inline]
pub const fn hash(key: u64, salt: u64) -> u32 {
    (mix(key.wrapping_add(salt)) >> 32) as u32
}

/// Returns the region of a hash among `choices` equal regions of its range (hash-threshold, RFC
/// 2992).
#[inline]
pub const fn region(hash: u32, choices: u32) -> u32 {
    ((hash as u64 * choices as u64) >> 32) as u32
}

/// Returns the remainder of a hash by `choices` (modulo-N, RFC 2991).
#[inline]
pub const fn remainder(hash: u32, choices: u32) -> u32 {
    // A mask saves the division.
    if choices.is_power_of_two() { hash & (choices - 1) } else { hash % choices }
}

/// Returns which of `choices` equal-cost ports the flow `key` takes at a switch with this `salt`,
/// by the region of its hash.
#[inline]
pub const fn pick(key: u64, salt: u64, choices: u32) -> u32 {
    region(hash(key, salt), choices)
}
