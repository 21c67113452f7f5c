//! Independent draws: each packet takes a uniform random value (random packet spraying by the
//! hosts, as MMPTCP's packet scatter does with source ports).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use super::{ChooseValue, EntropyPolicy, Feedback, MOST_VALUES, check_values};
use crate::component::SpecError;

/// Parameters of independent draws.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Random {
    /// Number of values, a power of two.
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
}

impl Default for Random {
    fn default() -> Self {
        Random { values: MOST_VALUES }
    }
}

impl EntropyPolicy for Random {
    type State = Draws;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)
    }
    fn values(&self) -> u32 {
        self.values
    }
    fn state(&self, stream: RandomStream) -> Draws {
        Draws::new(u64::from(self.values), stream)
    }
}

/// Draws of one connection.
#[derive(Debug, Clone)]
pub struct Draws {
    values: u64,
    stream: RandomStream,
}

impl Draws {
    /// Draws from `0..values`; at most 2^16 values.
    pub const fn new(values: u64, stream: RandomStream) -> Draws {
        Draws { values, stream }
    }

    /// Returns a value.
    pub fn draw(&mut self) -> u16 {
        self.stream.below(self.values) as u16
    }
}

impl ChooseValue for Draws {
    fn next(&mut self, _: Time) -> u16 {
        self.draw()
    }
    fn feedback(&mut self, _: Time, _: Option<u16>, _: Feedback) {}
}
