//! Non-congestion robustness (RFC 4653): recovery waits for about a window of
//! duplicate ACKs, and new segments keep the ACK clock going meanwhile (extended limited transmit).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of NCR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NcrSpec {
    /// How much is sent while it waits.
    pub variant: NcrVariant,
}

impl Default for NcrSpec {
    fn default() -> Self {
        NcrSpec { variant: NcrVariant::Careful }
    }
}

/// The two variants of RFC 4653 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcrVariant {
    /// A new segment for every two that arrived; recovery after two thirds of a window.
    Careful,
    /// A new segment for each that arrived; recovery after half a window.
    Aggressive,
}

#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Ncr {
    variant: NcrVariant,
    /// Bytes in flight when the first duplicate ACK arrived (`FlightSizePrev`).
    pub flight_before: u64,
}

impl Ncr {
    pub fn new(spec: &NcrSpec) -> Ncr {
        Ncr { variant: spec.variant, flight_before: 0 }
    }

    /// Section 3.1 step 1 and 3.2 step 4: the threshold when so many segments are in flight.
    pub fn threshold(&self, segments: u32) -> u32 {
        let share = match self.variant {
            NcrVariant::Careful => 2 * segments / 3,
            NcrVariant::Aggressive => segments / 2,
        };
        share.max(3)
    }

    /// Segments beyond the hole for which none is sent.
    pub fn unanswered(&self, sacked: u32) -> u32 {
        match self.variant {
            NcrVariant::Careful => sacked.div_ceil(2),
            NcrVariant::Aggressive => 0,
        }
    }
}
