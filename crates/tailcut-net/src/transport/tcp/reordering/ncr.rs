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

/// The two variants of RFC 4653 section 3: about a window of data leaves the network before recovery under either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcrVariant {
    /// A new segment for every two that arrived; recovery after duplicate ACKs for two thirds of what is then in flight.
    Careful,
    /// A new segment for each that arrived; recovery after duplicate ACKs for half of what is then in flight.
    Aggressive,
}

#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Ncr {
    variant: NcrVariant,
    /// Bytes in flight when the first duplicate ACK arrived (`FlightSizePrev`).
    pub flight_before: u64,
    /// End of what had been sent then, or when a hole was last filled.
    end_before: u32,
}

impl Ncr {
    pub fn new(spec: &NcrSpec) -> Ncr {
        Ncr { variant: spec.variant, flight_before: 0, end_before: 0 }
    }

    /// Extended limited transmit begins, with `flight` bytes outstanding up to segment `end`.
    pub fn begin(&mut self, flight: u64, end: u32) {
        (self.flight_before, self.end_before) = (flight, end);
    }

    /// The first hole has filled, others are left: limited transmit goes on from `end` (step T.4).
    pub fn go_on(&mut self, end: u32) {
        self.end_before = end;
    }

    /// The threshold when so many segments are in flight (steps I.3 and E.5).
    pub fn threshold(&self, segments: u32) -> u32 {
        let share = match self.variant {
            NcrVariant::Careful => (2 * segments).div_ceil(3),
            NcrVariant::Aggressive => segments.div_ceil(2),
        };
        share.max(3)
    }

    /// Segments that have arrived beyond the hole and for which none is sent: the careful variant lets one go by for
    /// each that it sends. `end` is the end of what has been sent.
    pub fn skipped(&self, end: u32) -> u32 {
        match self.variant {
            NcrVariant::Careful => end - self.end_before,
            NcrVariant::Aggressive => 0,
        }
    }
}
