//! The duration of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Horizon {
    /// New flows start in `[0, arrivals)`.
    pub arrivals: Time,
    /// After the last arrival time, how long flows may take to finish. The run ends earlier when
    /// all have.
    pub drain: Time,
}

impl Default for Horizon {
    fn default() -> Self {
        Horizon { arrivals: Time::from_ms(500), drain: Time::from_ms(1_000) }
    }
}

/// Longer runs than a day of simulated time are slips of the unit.
pub(crate) const LONGEST: Time = Time::from_ms(24 * 3_600 * 1_000);

impl Horizon {
    /// Checks the times.
    ///
    /// # Errors
    /// When no flow could start, or the run would last longer than a day.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.arrivals == Time::ZERO {
            return Err(SpecError::new(
                "horizon-arrivals",
                "arrivals",
                "arrivals = \"0s\": no flow could start",
            ));
        }
        for (field, time) in [("arrivals", self.arrivals), ("drain", self.drain)] {
            if time > LONGEST {
                let message = format!("{field} = \"{time}\": at most a day can be simulated");
                return Err(SpecError::new("horizon-length", field, message));
            }
        }
        Ok(())
    }
}
