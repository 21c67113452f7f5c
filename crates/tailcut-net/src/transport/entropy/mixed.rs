//! Recycling before a bitmap: values whose packets came back unmarked wait, without a limit, and
//! are used once each; when none waits, the bitmap chooses. Both hear all feedback (the default of
//! Ultra Ethernet's public simulator).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use super::bitmap::{PenalisedWalk, Penalties};
use super::{ChooseValue, EntropyPolicy, Feedback, check_values};
use crate::component::SpecError;

/// Parameters of recycling before a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mixed {
    /// Number of values, a power of two; a connection keeps a byte for each.
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
    /// Increases of a value's penalty in the bitmap.
    pub penalties: Penalties,
}

impl Default for Mixed {
    fn default() -> Self {
        Mixed { values: 64, penalties: Penalties::default() }
    }
}

impl EntropyPolicy for Mixed {
    type State = RecyclingWalk;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)?;
        self.penalties.check()
    }
    fn values(&self) -> u32 {
        self.values
    }
    fn state(&self, stream: RandomStream) -> RecyclingWalk {
        let bitmap = PenalisedWalk::new(self.values, self.penalties, stream);
        RecyclingWalk { good: VecDeque::new(), bitmap }
    }
}

/// The values of one connection that wait to be used again, and its bitmap.
#[derive(Debug, Clone)]
pub struct RecyclingWalk {
    good: VecDeque<u16>,
    bitmap: PenalisedWalk,
}

impl ChooseValue for RecyclingWalk {
    fn next(&mut self, now: Time) -> u16 {
        self.good.pop_front().unwrap_or_else(|| self.bitmap.next(now))
    }

    fn feedback(&mut self, now: Time, value: Option<u16>, what: Feedback) {
        if what == Feedback::Good {
            self.good.extend(value);
        }
        self.bitmap.feedback(now, value, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_good_values_once_each_in_their_order_and_then_the_bitmap() {
        let mut state = Mixed::default().state(RandomStream::new(1, 1, "entropy"));
        let now = Time::ZERO;
        let mut bitmap = state.bitmap.clone();
        assert_eq!(state.next(now), bitmap.next(now));
        for (value, what) in
            [(9, Feedback::Good), (8, Feedback::Marked), (7, Feedback::Good), (9, Feedback::Good)]
        {
            state.feedback(now, Some(value), what);
            bitmap.feedback(now, Some(value), what);
        }
        assert_eq!([(); 3].map(|()| state.next(now)), [9, 7, 9]);
        assert_eq!([(); 5].map(|()| state.next(now)), [(); 5].map(|()| bitmap.next(now)));
        state.feedback(now, None, Feedback::Good);
        assert!(state.good.is_empty(), "an unknown value is not recycled");
    }
}
