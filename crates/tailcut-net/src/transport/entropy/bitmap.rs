//! A penalty per value: the walk of oblivious spraying that leaves out values whose packets met
//! congestion or were lost (the bitmap of Ultra Ethernet's public simulator).
//!
//! Before a packet, if the next value has a penalty, 1 is taken off it, and the walk moves on to the
//! first value without a penalty; the values between keep theirs. After one step more than there
//! are values it takes the value that it has reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use super::walk::Walk;
use super::{ChooseValue, EntropyPolicy, Feedback, check_range, check_values};
use crate::component::SpecError;

/// Parameters of a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bitmap {
    /// Number of values, a power of two; a connection keeps a byte for each.
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
    /// Increases of a value's penalty.
    pub penalties: Penalties,
}

impl Default for Bitmap {
    fn default() -> Self {
        Bitmap { values: 64, penalties: Penalties::default() }
    }
}

/// Increases of a value's penalty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Penalties {
    /// For a marked packet.
    pub marked: u8,
    /// For a trimmed packet.
    pub trimmed: u8,
    /// For a packet lost until the retransmission timeout.
    pub lost: u8,
    /// The most that a penalty grows to.
    pub most: u8,
    /// The value that pays for a packet whose value the sender does not know.
    pub unknown: UnknownValue,
}

/// The value that pays for a packet whose value the sender does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownValue {
    /// None.
    #[default]
    None,
    /// The first, with all lower bits zero, as in Ultra Ethernet's public simulator.
    First,
}

impl Default for Penalties {
    fn default() -> Self {
        Penalties { marked: 1, trimmed: 4, lost: 15, most: 15, unknown: UnknownValue::None }
    }
}

impl Penalties {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        check_range("entropy-penalties", "penalties.most", u32::from(self.most), 1..=255)
    }
}

impl EntropyPolicy for Bitmap {
    type State = PenalisedWalk;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)?;
        self.penalties.check()
    }
    fn values(&self) -> u32 {
        self.values
    }
    fn state(&self, stream: RandomStream) -> PenalisedWalk {
        PenalisedWalk::new(self.values, self.penalties, stream)
    }
}

/// The walk of one connection.
#[derive(Debug, Clone)]
pub struct PenalisedWalk {
    walk: Walk,
    rules: Penalties,
    /// By the index of the value.
    penalties: Box<[u8]>,
}

impl PenalisedWalk {
    pub(super) fn new(values: u32, rules: Penalties, stream: RandomStream) -> PenalisedWalk {
        let penalties = vec![0; values as usize].into();
        PenalisedWalk { walk: Walk::new(values, stream), rules, penalties }
    }

    fn penalty(&mut self) -> &mut u8 {
        &mut self.penalties[self.walk.index(self.walk.value())]
    }
}

impl ChooseValue for PenalisedWalk {
    fn next(&mut self, _: Time) -> u16 {
        let first = self.penalty();
        if *first > 0 {
            *first -= 1;
            self.walk.advance();
            let mut steps = 1;
            while steps <= self.penalties.len() && *self.penalty() > 0 {
                self.walk.advance();
                steps += 1;
            }
        }
        let value = self.walk.value();
        self.walk.advance();
        value
    }

    fn feedback(&mut self, _: Time, value: Option<u16>, what: Feedback) {
        let Penalties { marked, trimmed, lost, most, unknown } = self.rules;
        let more = match what {
            Feedback::Good => return,
            Feedback::Marked => marked,
            Feedback::Trimmed => trimmed,
            Feedback::Lost => lost,
        };
        let index = match (value, unknown) {
            (Some(value), _) => self.walk.index(value),
            (None, UnknownValue::First) => 0,
            (None, UnknownValue::None) => return,
        };
        self.penalties[index] = self.penalties[index].saturating_add(more).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(values: u32, penalties: Penalties) -> PenalisedWalk {
        Bitmap { values, penalties }.state(RandomStream::new(1, 1, "entropy"))
    }

    fn take(state: &mut PenalisedWalk, count: usize) -> Vec<u16> {
        (0..count).map(|_| state.next(Time::ZERO)).collect()
    }

    fn punish(state: &mut PenalisedWalk, value: u16, what: Feedback) {
        state.feedback(Time::ZERO, Some(value), what);
    }

    /// With 4 values and the order drawn for the first round: the second value is marked twice and
    /// the third once. The walk takes 1 off the second only, because it comes to that one first.
    #[test]
    fn only_the_next_value_pays_and_those_between_keep_their_penalties() {
        let mut state = state(4, Penalties::default());
        let order = take(&mut state.clone(), 4);
        assert_eq!(take(&mut state, 1), [order[0]]);
        punish(&mut state, order[1], Feedback::Marked);
        punish(&mut state, order[1], Feedback::Marked);
        punish(&mut state, order[2], Feedback::Marked);
        assert_eq!(take(&mut state, 1), [order[3]]);
        let penalty = |value: u16| state.penalties[usize::from(value & 3)];
        assert_eq!(order.iter().map(|&value| penalty(value)).collect::<Vec<_>>(), [0, 1, 1, 0]);
    }

    /// The value that falls to no penalty by being passed over is passed over all the same.
    #[test]
    fn a_penalty_of_one_costs_one_turn() {
        let mut state = state(1, Penalties::default());
        let only = take(&mut state, 1);
        punish(&mut state, only[0], Feedback::Marked);
        assert_eq!(take(&mut state, 1), only, "there is no other value");
        assert_eq!(*state.penalties, [0]);
    }

    #[test]
    fn takes_what_comes_when_every_value_has_a_penalty() {
        let mut state = state(8, Penalties::default());
        let order = take(&mut state, 8);
        order.iter().for_each(|&value| punish(&mut state, value, Feedback::Lost));
        let next = state.walk.value();
        // Nine steps: the whole round from its first value, and the first of the next round.
        take(&mut state, 1);
        assert_eq!((state.walk.step, state.penalties[usize::from(next & 7)]), (2, 14));
        assert_eq!(state.penalties.iter().map(|&p| u32::from(p)).sum::<u32>(), 8 * 15 - 1);
    }

    #[test]
    fn penalties_add_up_to_the_most() {
        let mut state = state(4, Penalties::default());
        let penalty = |state: &PenalisedWalk| state.penalties[2];
        let mut seen = vec![];
        for what in [Feedback::Good, Feedback::Marked, Feedback::Trimmed, Feedback::Lost] {
            punish(&mut state, 2, what);
            seen.push(penalty(&state));
        }
        assert_eq!(seen, [0, 1, 5, 15]);
    }

    #[test]
    fn the_first_value_pays_for_unknown_ones_where_that_is_imitated() {
        let mut state = state(4, Penalties::default());
        state.feedback(Time::ZERO, None, Feedback::Lost);
        assert_eq!(*state.penalties, [0, 0, 0, 0]);
        state.rules.unknown = UnknownValue::First;
        state.feedback(Time::ZERO, None, Feedback::Lost);
        assert_eq!(*state.penalties, [15, 0, 0, 0]);
    }

    proptest! {
        /// The value taken is the first of the walk without a penalty after one that has a penalty,
        /// or where n + 1 steps lead; at most 1 is taken off the penalties.
        #[test]
        fn takes_the_first_value_without_a_penalty(
            seed: u64,
            script in prop::collection::vec((any::<bool>(), 0..8u16, 0..4usize), 1..300),
        ) {
            let mut state =
                Bitmap { values: 8, ..Bitmap::default() }.state(RandomStream::new(seed, 1, "entropy"));
            for (sends, value, what) in script {
                if !sends {
                    let kinds =
                        [Feedback::Good, Feedback::Marked, Feedback::Trimmed, Feedback::Lost];
                    punish(&mut state, value, kinds[what]);
                    prop_assert!(state.penalties.iter().all(|&penalty| penalty <= 15));
                    continue;
                }
                let (mut walk, before) = (state.walk.clone(), state.penalties.clone());
                let ahead: Vec<u16> = (0..10)
                    .map(|_| {
                        let value = walk.value();
                        walk.advance();
                        value
                    })
                    .collect();
                let value = state.next(Time::ZERO);
                let total = |of: &[u8]| of.iter().map(|&penalty| u32::from(penalty)).sum::<u32>();
                let pays = u32::from(before[usize::from(ahead[0] & 7)] > 0);
                prop_assert_eq!(total(&before) - total(&state.penalties), pays);
                let is_free = |value: &&u16| state.penalties[usize::from(**value & 7)] == 0;
                let expected = ahead[pays as usize..].iter().find(is_free).unwrap_or(&ahead[9]);
                prop_assert_eq!(value, *expected);
            }
        }
    }
}
