//! Protective load balancing (Qureshi et al., SIGCOMM 2022), as in Linux since 6.2
//! (`net/ipv4/tcp_plb.c`, `tcp_dctcp.c`): a connection keeps one value, and draws a new one after
//! several rounds in a row in which many bytes were marked, sooner if it is idle then. A timeout
//! draws one too, and suspends PLB.
//!
//! With `rounds = { kind = "clock" }` it is as the artifact of REPS runs it: rounds by the clock, by
//! the share of feedback that is not good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use super::{
    ChooseValue, EntropyPolicy, Feedback, MOST_VALUES, Surroundings, check_range, check_values,
};
use crate::component::SpecError;

/// Parameters of PLB; those of Linux have the names of its sysctls without `tcp_plb_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Plb {
    /// Number of values, a power of two (Linux's flow labels: 2^20).
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
    /// Congested rounds in a row after which an idle connection draws a new value; 0: never.
    #[schemars(range(max = 31))]
    pub idle_rehash_rounds: u32,
    /// Congested rounds in a row after which any connection draws a new value; 0: never.
    #[schemars(range(max = 31))]
    pub rehash_rounds: u32,
    /// Share of a round's bytes that must be marked for it to be congested, in 256ths.
    #[schemars(range(max = 256))]
    pub cong_thresh: u32,
    /// Least time in seconds for which a timeout suspends PLB; a random time up to as much is
    /// added.
    pub suspend_rto_sec: u32,
    /// Rounds that are counted.
    pub rounds: PlbRounds,
}

/// Rounds that PLB counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PlbRounds {
    /// Until all that was sent at a round's beginning is acknowledged, as DCTCP's.
    Window {},
    /// By the clock, as in REPS's artifact.
    ///
    /// A round ends at the first feedback after its length. Timeouts within one retransmission
    /// timeout draw one new value together.
    Clock {
        /// Length; by default the round-trip time without queues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        length: Option<Time>,
        /// Least time between new values because of timeouts; by default the least retransmission
        /// timeout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_gap: Option<Time>,
    },
}

impl Default for Plb {
    fn default() -> Self {
        Plb {
            values: MOST_VALUES,
            idle_rehash_rounds: 3,
            rehash_rounds: 12,
            cong_thresh: 128,
            suspend_rto_sec: 60,
            rounds: PlbRounds::Window {},
        }
    }
}

/// The most rounds that Linux counts.
const MOST_ROUNDS: u32 = 31;
/// A share of all.
const SCALE: u64 = 256;
/// The longest suspension: a day.
const LONGEST_SUSPENSION: u32 = 86_400;

impl EntropyPolicy for Plb {
    type State = Rehashing;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)?;
        let rounds = 0..=MOST_ROUNDS;
        check_range("entropy-plb", "idle_rehash_rounds", self.idle_rehash_rounds, rounds.clone())?;
        check_range("entropy-plb", "rehash_rounds", self.rehash_rounds, rounds)?;
        check_range("entropy-plb", "cong_thresh", self.cong_thresh, 0..=SCALE as u32)?;
        check_range("entropy-plb", "suspend_rto_sec", self.suspend_rto_sec, 0..=LONGEST_SUSPENSION)
    }

    fn values(&self) -> u32 {
        self.values
    }

    fn scatters(&self) -> bool {
        false
    }

    fn fit(&mut self, around: &Surroundings) {
        if let PlbRounds::Clock { length, timeout_gap } = &mut self.rounds {
            length.get_or_insert(around.base_rtt);
            timeout_gap.get_or_insert(around.rto);
        }
    }

    fn state(&self, stream: RandomStream) -> Rehashing {
        let clock = match self.rounds {
            PlbRounds::Window {} => None,
            PlbRounds::Clock { length, timeout_gap } => Some(Clock {
                length: length.unwrap_or(Time::ZERO),
                timeout_gap: timeout_gap.unwrap_or(Time::ZERO),
                round_ends: None,
                good: 0,
                bad: 0,
                last_timeout: None,
            }),
        };
        let mut state = Rehashing {
            value: 0,
            congested: 0,
            suspended_until: Time::ZERO,
            clock,
            spec: self.clone(),
            stream,
        };
        state.rehash();
        state
    }
}

/// Rounds by the clock.
#[derive(Debug, Clone)]
struct Clock {
    length: Time,
    timeout_gap: Time,
    /// `None` before the first feedback.
    round_ends: Option<Time>,
    good: u64,
    bad: u64,
    last_timeout: Option<Time>,
}

/// The value of one connection.
#[derive(Debug, Clone)]
pub struct Rehashing {
    value: u16,
    /// Congested rounds in a row, at most `rehash_rounds`.
    congested: u32,
    suspended_until: Time,
    /// Rounds by the clock, if they go by it.
    clock: Option<Clock>,
    spec: Plb,
    stream: RandomStream,
}

impl Rehashing {
    fn rehash(&mut self) {
        self.value = self.stream.below(u64::from(self.spec.values)) as u16;
        self.congested = 0;
    }

    fn count_round(&mut self, total: u64, congested: u64) {
        if total > 0 && congested * SCALE >= u64::from(self.spec.cong_thresh) * total {
            let most = self.spec.rehash_rounds.max(self.spec.idle_rehash_rounds);
            self.congested = (self.congested + 1).min(most);
        } else {
            self.congested = 0;
        }
    }

    /// Draws a new value after so many congested rounds, unless PLB is suspended.
    fn rehash_after(&mut self, now: Time, rounds: u32) {
        if rounds > 0 && self.congested >= rounds && now >= self.suspended_until {
            self.rehash();
        }
    }

    fn on_timeout(&mut self, now: Time) {
        if let Some(clock) = &mut self.clock {
            let again = clock.last_timeout.is_some_and(|last| now.since(last) < clock.timeout_gap);
            if again {
                return;
            }
            clock.last_timeout = Some(now);
        }
        self.rehash();
        let least = Time::from_ms(1_000).0 * u64::from(self.spec.suspend_rto_sec);
        if least > 0 {
            let more = self.stream.below(least);
            self.suspended_until = now + Time(least + more);
        }
    }
}

impl ChooseValue for Rehashing {
    fn next(&mut self, _: Time) -> u16 {
        self.value
    }

    fn feedback(&mut self, now: Time, _: Option<u16>, what: Feedback) {
        if let Some(clock) = &mut self.clock {
            let ends = *clock.round_ends.get_or_insert(now + clock.length);
            let good = what == Feedback::Good;
            clock.good += u64::from(good);
            clock.bad += u64::from(!good);
            if now >= ends {
                let (all, bad) = (clock.good + clock.bad, clock.bad);
                (clock.good, clock.bad, clock.round_ends) = (0, 0, Some(now + clock.length));
                self.count_round(all, bad);
                self.rehash_after(now, self.spec.rehash_rounds);
            }
        }
        if what == Feedback::Lost {
            self.on_timeout(now);
        }
    }

    fn end_round(&mut self, now: Time, delivered: u64, marked: u64) {
        if self.clock.is_none() {
            self.count_round(delivered, marked);
            self.rehash_after(now, self.spec.rehash_rounds);
        }
    }

    fn on_handshake_timeout(&mut self, now: Time) {
        self.on_timeout(now);
    }

    fn restart_after_idle(&mut self, now: Time) {
        self.rehash_after(now, self.spec.idle_rehash_rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(spec: Plb) -> Rehashing {
        spec.state(RandomStream::new(1, 1, "entropy"))
    }

    /// Rounds of 100 bytes, with so many of them marked; returns how many values were drawn.
    fn rounds(state: &mut Rehashing, now: Time, marked: &[u64]) -> usize {
        let mut drawn = 0;
        for &marked in marked {
            let before = state.next(now);
            state.end_round(now, 100, marked);
            drawn += usize::from(state.next(now) != before);
        }
        drawn
    }

    #[test]
    fn draws_a_new_value_after_twelve_congested_rounds_in_a_row() {
        let mut state = state(Plb::default());
        assert_eq!(rounds(&mut state, Time::ZERO, &[50; 11]), 0);
        assert_eq!(rounds(&mut state, Time::ZERO, &[49]), 0, "less than half is marked");
        assert_eq!(rounds(&mut state, Time::ZERO, &[50; 11]), 0);
        assert_eq!(rounds(&mut state, Time::ZERO, &[100]), 1);
        assert_eq!(rounds(&mut state, Time::ZERO, &[100; 11]), 0, "the count begins anew");
    }

    #[test]
    fn an_idle_connection_draws_a_new_value_after_three_congested_rounds() {
        let mut state = state(Plb::default());
        let first = state.next(Time::ZERO);
        rounds(&mut state, Time::ZERO, &[50; 2]);
        state.restart_after_idle(Time::ZERO);
        assert_eq!(state.next(Time::ZERO), first);
        rounds(&mut state, Time::ZERO, &[50]);
        state.restart_after_idle(Time::ZERO);
        assert_ne!(state.next(Time::ZERO), first);
    }

    #[test]
    fn zero_rounds_never_draw_a_new_value() {
        let mut state = state(Plb { rehash_rounds: 0, idle_rehash_rounds: 0, ..Plb::default() });
        let first = state.next(Time::ZERO);
        rounds(&mut state, Time::ZERO, &[100; 40]);
        state.restart_after_idle(Time::ZERO);
        assert_eq!(state.next(Time::ZERO), first);
    }

    #[test]
    fn a_timeout_draws_a_new_value_and_suspends_plb_while_rounds_still_count() {
        let mut state = state(Plb::default());
        let first = state.next(Time::ZERO);
        rounds(&mut state, Time::ZERO, &[50; 5]);
        state.feedback(Time::ZERO, None, Feedback::Lost);
        let second = state.next(Time::ZERO);
        assert_ne!(first, second);
        assert_eq!(state.congested, 0);
        let second_long = Time::from_ms(1_000);
        let until = state.suspended_until.0 / second_long.0;
        assert!((60..120).contains(&until), "{until}");
        assert_eq!(rounds(&mut state, Time(59 * second_long.0), &[50; 20]), 0);
        assert_eq!(rounds(&mut state, Time(120 * second_long.0), &[50]), 1, "it had counted");
        state.feedback(Time(121 * second_long.0), None, Feedback::Lost);
        assert_ne!(state.next(Time::ZERO), second, "a timeout draws during a suspension too");
    }

    /// REPS's artifact: 25 %, two rounds of 10 us, and a timeout.
    #[test]
    fn rounds_may_go_by_the_clock() {
        let length = Some(Time::from_us(10));
        let rounds = PlbRounds::Clock { length, timeout_gap: Some(Time::from_us(100)) };
        let (cong_thresh, suspend_rto_sec) = (64, 0);
        let spec = Plb { rounds, cong_thresh, suspend_rto_sec, rehash_rounds: 2, ..Plb::default() };
        let mut state = state(Plb { idle_rehash_rounds: 0, ..spec });
        let values = |state: &mut Rehashing, from: u64, to: u64, marked_each: u64| -> Vec<u16> {
            let step = |us: u64| {
                let (now, bad) = (Time::from_us(us), us.is_multiple_of(marked_each));
                state.feedback(now, None, if bad { Feedback::Marked } else { Feedback::Good });
                state.next(now)
            };
            (from..=to).map(step).collect()
        };
        let few = values(&mut state, 1, 21, 5);
        assert!(few.iter().all(|value| *value == few[0]), "every fifth is not enough");
        let many = values(&mut state, 22, 50, 3);
        let changes = many.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 1, "every third is");
        let mut timed_out = |us| {
            let before = state.next(Time::ZERO);
            state.feedback(Time::from_us(us), None, Feedback::Lost);
            state.next(Time::ZERO) != before
        };
        assert_eq!([60, 159, 160].map(&mut timed_out), [true, false, true]);
    }
}
