//! Oblivious spraying: every value once in each round, in an order drawn for the round, whatever
//! becomes of the packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use super::walk::Walk;
use super::{ChooseValue, EntropyPolicy, Feedback, MOST_VALUES, check_values};
use crate::component::SpecError;

/// Parameters of oblivious spraying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oblivious {
    /// Number of values, a power of two.
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
}

impl Default for Oblivious {
    fn default() -> Self {
        Oblivious { values: MOST_VALUES }
    }
}

impl EntropyPolicy for Oblivious {
    type State = Rounds;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)
    }
    fn values(&self) -> u32 {
        self.values
    }
    fn state(&self, stream: RandomStream) -> Rounds {
        Rounds(Walk::new(self.values, stream))
    }
}

/// The rounds of one connection.
#[derive(Debug, Clone)]
pub struct Rounds(Walk);

impl ChooseValue for Rounds {
    fn next(&mut self, _: Time) -> u16 {
        let value = self.0.value();
        self.0.advance();
        value
    }
    fn feedback(&mut self, _: Time, _: Option<u16>, _: Feedback) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn takes_every_value_once_in_a_round(bits in 0..10u32, seed: u64) {
            let values = 1 << bits;
            let mut state = Oblivious { values }.state(RandomStream::new(seed, 1, "entropy"));
            for _ in 0..3 {
                let mut round: Vec<u16> = (0..values).map(|_| state.next(Time::ZERO)).collect();
                let upper = round[0] & !(values - 1) as u16;
                round.sort_unstable();
                let expected: Vec<u16> = (0..values).map(|value| upper | value as u16).collect();
                prop_assert_eq!(round, expected);
            }
        }
    }

    #[test]
    fn rounds_differ_in_their_order() {
        let mut state = Oblivious { values: 256 }.state(RandomStream::new(1, 1, "entropy"));
        let mut round = || (0..256).map(|_| state.next(Time::ZERO)).collect::<Vec<_>>();
        let (first, second) = (round(), round());
        assert_ne!(first, second);
    }
}
