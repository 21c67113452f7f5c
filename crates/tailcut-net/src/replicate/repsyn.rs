//! RepSYN (Liu, Xu, Liu, Wang, RepNet): several SYNs on other paths, data only
//! on the connection that is established first; the others are reset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

/// Parameters of RepSYN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepSyn {
    /// Flows of at most this size are replicated (RepNet: 100 KB).
    pub threshold: Bytes,
    /// Connections opened per replicated flow, the original included.
    pub copies: u32,
    /// How much later each further SYN is sent.
    pub copy_delay: Time,
}

impl Default for RepSyn {
    fn default() -> Self {
        RepSyn { threshold: Bytes(100_000), copies: 2, copy_delay: Time::ZERO }
    }
}
