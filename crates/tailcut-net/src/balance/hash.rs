//! How switches hash a packet's key, so that whoever hashes the same key chooses the same port.

use tailcut_engine::random::mix;

use crate::topology::SwitchId;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The salt of a switch.
pub const fn salt(switch: SwitchId) -> u64 {
    GOLDEN.wrapping_mul(switch.0 as u64 + 1)
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
