//! Priority flow control (IEEE 802.1Qbb) with one priority: above `xoff` a switch sends a pause
//! frame back along the link, at `xon` or below another one that ends the pause. Pauses last until
//! they are ended: in reality frames repeat them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use super::flow_control::{FlowControl, FlowControlNames};
use crate::component::SpecError;

/// Parameters of priority flow control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pfc {
    /// A link is paused when more than this came by it and waits. What still comes then has to find
    /// room beside it: three packets and what both ways of the wire hold, 5.3 KB at 1 Gbps and 2
    /// us.
    pub xoff: Bytes,
    /// Bytes at or below which the link resumes.
    pub xon: Bytes,
}

impl Default for Pfc {
    fn default() -> Self {
        Pfc { xoff: Bytes(20_000), xon: Bytes(10_000) }
    }
}

/// A pause frame on the wire: 64 bytes, preamble and gap.
const FRAME: u16 = 84;

impl FlowControl for Pfc {
    fn check(&self) -> Result<(), SpecError> {
        if self.xon.0 < self.xoff.0 {
            return Ok(());
        }
        let message = format!("xoff = \"{}\" and xon = \"{}\": xon is less", self.xoff, self.xon);
        Err(SpecError::new("pfc-thresholds", "pfc.xon", message)
            .hint("a pause ends a few packets below where it begins"))
    }

    fn said(&self) -> FlowControlNames {
        FlowControlNames { key: "pfc", shared_memory: "pfc-shared-buffer", queue: "pfc-queue" }
    }

    fn should_pause(&self, held: u64, stopped: bool) -> bool {
        held > if stopped { self.xon.0 } else { self.xoff.0 }
    }

    fn frame(&self) -> u16 {
        FRAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_above_one_threshold_and_ends_at_the_other() {
        let pfc = Pfc { xoff: Bytes(20_000), xon: Bytes(10_000) };
        assert_eq!([20_000, 20_001].map(|held| pfc.should_pause(held, false)), [false, true]);
        assert_eq!([10_000, 10_001].map(|held| pfc.should_pause(held, true)), [false, true]);
    }

    #[test]
    fn refuses_xon_not_below_xoff() {
        let pfc = |xoff, xon| Pfc { xoff: Bytes(xoff), xon: Bytes(xon) };
        assert_eq!(pfc(2, 1).check(), Ok(()));
        assert_eq!(pfc(2, 2).check().expect_err("they are one").code, "pfc-thresholds");
    }
}
