//! RepFlow (Xu and Li, INFOCOM 2014): every flow up to a threshold is carried
//! whole by further connections with other destination ports, so that ECMP
//! sends the copies over other paths; the flow ends when the first copy ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

/// Parameters of RepFlow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepFlow {
    /// Flows of at most this size are replicated (RepFlow III-A: 100 KB).
    pub threshold: Bytes,
    /// Connections per replicated flow, the original included.
    pub copies: u32,
    /// How much later each further copy starts (RepFlow's Mininet: about 1 ms).
    pub copy_delay: Time,
    /// What happens to the copies that lost.
    pub loser: Loser,
}

/// What happens to the slower connections of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loser {
    /// The receiver resets it; the reset travels as a packet.
    Reset,
    /// It is left to finish.
    Finish,
}

impl Default for RepFlow {
    fn default() -> Self {
        RepFlow {
            threshold: Bytes(100_000),
            copies: 2,
            copy_delay: Time::ZERO,
            loser: Loser::Reset,
        }
    }
}
