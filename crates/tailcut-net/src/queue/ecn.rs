//! Step marking on the instantaneous queue, as DCTCP wants it (RFC 8257 section 3.1):
//! an ECN-capable packet that finds more than K waiting is marked, and so never
//! dropped before the queue is full. Packets that are not ECN-capable (SYNs, pure
//! ACKs) are queued like any other, not dropped at K as some switches do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limit, Arrival, Verdict};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of a marking queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// What may wait behind the packet being transmitted, which is not counted.
    pub limit: Limit,
    /// K: packets that find more than this waiting are marked (RepFlow: 5 % of a 100-packet buffer).
    pub threshold: Amount,
}

impl Default for Ecn {
    fn default() -> Self {
        Ecn { limit: Limit::AtMost(Amount::Packets(100)), threshold: Amount::Packets(5) }
    }
}

impl Ecn {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        check_limit("ecn-limit", "limit", self.limit)
    }
}

/// Decides for one packet.
pub(super) fn admit(threshold: Amount, arrival: &Arrival) -> Verdict {
    let beyond = match threshold {
        Amount::Packets(k) => arrival.waiting > k,
        Amount::Bytes(k) => arrival.waiting_bytes > k,
    };
    if beyond && arrival.ecn_capable {
        Verdict::Mark
    } else {
        Verdict::Accept
    }
}
