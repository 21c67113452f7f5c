use super::*;
use Feedback::{Good, Lost, Marked};
use proptest::prelude::*;

/// The public simulator's parameters.
fn public_simulator() -> Reps {
    Reps {
        values: 64,
        frozen: FrozenOrder::InTurn,
        thaw: Thaw::Clear { packets: 16 },
        failure: Some(Failure::Timeout {}),
        ..Reps::default()
    }
}

/// A state whose random values are at least 1,000 where the parameters have as many.
fn state(spec: Reps) -> Recycling {
    assert_eq!(spec.check(), Ok(()));
    spec.state(RandomStream::new(1, 1, "entropy"))
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn good(state: &mut Recycling, values: &[u16]) {
    values.iter().for_each(|&value| state.feedback(us(1), Some(value), Good));
}

fn take(state: &mut Recycling, count: usize) -> Vec<u16> {
    (0..count).map(|_| state.next(us(1))).collect()
}

/// The values that a copy of the state's stream draws.
fn drawn(state: &Recycling, count: usize) -> Vec<u16> {
    let mut copy = state.clone();
    (0..count).map(|_| copy.draw()).collect()
}

#[test]
fn uses_unmarked_values_once_each_the_oldest_first() {
    let mut state = state(Reps::default());
    good(&mut state, &[1, 2]);
    state.feedback(us(1), Some(3), Marked);
    good(&mut state, &[4]);
    assert_eq!(take(&mut state, 3), [1, 2, 4]);
    let expected = drawn(&state, 2);
    assert_eq!(take(&mut state, 2), expected);
}

#[test]
fn a_full_ring_overwrites_the_oldest() {
    let mut state = state(Reps { ring: 3, ..Reps::default() });
    good(&mut state, &[1, 2, 3, 4]);
    assert_eq!(take(&mut state, 3), [2, 3, 4]);
    good(&mut state, &[5]);
    assert_eq!(take(&mut state, 1), [5]);
}

#[test]
fn values_may_be_used_several_times_each() {
    let mut state = state(Reps { uses: 2, ..Reps::default() });
    good(&mut state, &[1, 2]);
    assert_eq!(take(&mut state, 4), [1, 1, 2, 2]);
}

#[test]
fn frozen_it_uses_fresh_values_and_then_all_in_turn() {
    let mut state = state(Reps::default());
    good(&mut state, &[1, 2, 3]);
    assert_eq!(take(&mut state, 1), [1]);
    state.feedback(us(2), None, Lost);
    assert_eq!(take(&mut state, 6), [2, 3, 1, 2, 3, 1]);
    good(&mut state, &[4]);
    assert_eq!(take(&mut state, 2), [4, 2], "what comes back is fresh");
}

#[test]
fn frozen_it_may_use_all_in_turn_at_once() {
    let mut state = state(public_simulator());
    good(&mut state, &[1, 2, 3]);
    assert_eq!(take(&mut state, 1), [1]);
    state.feedback(us(2), None, Lost);
    assert_eq!(take(&mut state, 4), [1, 2, 3, 1]);
}

#[test]
fn an_empty_ring_draws_even_when_frozen() {
    let mut state = state(Reps::default());
    state.feedback(us(2), None, Lost);
    assert!(state.frozen_until.is_some());
    let expected = drawn(&state, 2);
    assert_eq!(take(&mut state, 2), expected);
}

#[test]
fn thaws_at_the_first_unmarked_acknowledgement_and_explores_with_every_eighth_packet() {
    let thaw = Thaw::Explore { packets: Some(16), every: 8 };
    let mut state = state(Reps { thaw, ..Reps::default() });
    good(&mut state, &[1; 8]);
    state.feedback(us(2), None, Lost);
    let after = us(10_003);
    state.feedback(us(10_002), Some(1), Good);
    assert!(state.frozen_until.is_some(), "it lasts 10 ms");
    state.feedback(after, Some(1), Marked);
    assert!(state.frozen_until.is_some(), "a marked one does not end it");
    state.feedback(after, Some(1), Good);
    assert_eq!((state.frozen_until, state.explores), (None, 16));
    let random: Vec<usize> = (1..=24)
        .filter(|_| {
            good(&mut state, &[1]);
            state.next(after) != 1
        })
        .collect();
    assert_eq!(random, [8, 16]);
    state.explores = 1;
    state.feedback(after, None, Lost);
    assert_eq!(state.frozen_until, None, "while it explores, a timeout does not freeze it");
}

#[test]
fn thaws_at_any_feedback_with_an_empty_ring_and_sixteen_random_values() {
    let mut state = state(public_simulator());
    good(&mut state, &[1, 2, 3]);
    state.feedback(us(2), None, Lost);
    state.feedback(us(10_003), Some(1), Marked);
    assert_eq!((state.frozen_until, state.explores), (None, 16));
    good(&mut state, &[9]);
    let expected = drawn(&state, 16);
    assert_eq!(take(&mut state, 16), expected);
    assert_eq!(take(&mut state, 1), [9]);
}

#[test]
fn without_trimming_a_timeout_freezes_only_after_low_round_trip_times() {
    let around = Surroundings { bdp_packets: 40, base_rtt: us(10), rto: us(100), trims: false };
    let mut spec = Reps::default();
    spec.fit(&around);
    let frozen_after = |rtts: &[(u64, u64)], at: u64| {
        let mut state = state(spec.clone());
        rtts.iter().for_each(|&(at, rtt)| state.note_rtt(us(at), us(rtt)));
        state.feedback(us(at), None, Lost);
        state.frozen_until.is_some()
    };
    assert!(frozen_after(&[], 300), "nothing has come back");
    assert!(frozen_after(&[(10, 16), (20, 12)], 120));
    assert!(!frozen_after(&[(10, 12), (20, 17), (30, 11)], 120), "16.5 us and more is congestion");
    assert!(!frozen_after(&[(20, 17), (30, 11)], 220));
    assert!(frozen_after(&[(20, 17), (30, 11)], 221), "it is more than two timeouts ago");
    let trims = Surroundings { trims: true, ..around };
    let mut spec = Reps::default();
    spec.fit(&trims);
    assert_eq!(spec.failure, Some(Failure::Timeout {}));
    assert_eq!(spec.thaw, Thaw::Explore { packets: Some(40), every: 8 });
}

#[test]
fn never_freezes_where_no_timeout_is_a_failure() {
    let mut state = state(Reps { failure: Some(Failure::Never {}), ..Reps::default() });
    good(&mut state, &[1]);
    state.feedback(us(2), None, Lost);
    assert_eq!(take(&mut state, 1), [1]);
    let expected = drawn(&state, 1);
    assert_eq!(take(&mut state, 1), expected);
}

proptest! {
    /// Without failures: each unmarked packet is followed by at most one use of its value, in order;
    /// a value of a marked packet is never recycled.
    #[test]
    fn recycles_only_values_whose_packets_came_back_unmarked(
        seed: u64,
        ring in 1..9u32,
        script in prop::collection::vec(0..4u8, 1..300),
    ) {
        let mut state = Reps { ring, ..Reps::default() }.state(RandomStream::new(seed, 1, "entropy"));
        let (mut waiting, mut serial) = (std::collections::VecDeque::new(), 0);
        for step in script {
            match step {
                0 => {
                    waiting.push_back(serial);
                    if waiting.len() > ring as usize {
                        waiting.pop_front();
                    }
                    state.feedback(us(1), Some(serial), Good);
                    serial += 1;
                }
                1 => {
                    state.feedback(us(1), Some(serial), Marked);
                    serial += 1;
                }
                2 => state.feedback(us(1), Some(serial), Feedback::Trimmed),
                _ => {
                    let random = drawn(&state, 1)[0];
                    prop_assert_eq!(state.next(us(1)), waiting.pop_front().unwrap_or(random));
                }
            }
        }
    }

    /// Frozen, every value that is used is one of the ring's.
    #[test]
    fn frozen_it_uses_no_other_values(
        paper: bool,
        first in prop::collection::vec(0..64u16, 1..20),
        script in prop::collection::vec((any::<bool>(), 0..64u16), 1..100),
    ) {
        let spec = if paper { Reps::default() } else { public_simulator() };
        let mut state = spec.state(RandomStream::new(1, 1, "entropy"));
        let mut known = first.clone();
        good(&mut state, &first);
        state.feedback(us(2), None, Lost);
        for (sends, value) in script {
            if sends {
                let used = state.next(us(3));
                prop_assert!(known[known.len().saturating_sub(8)..].contains(&used));
            } else {
                state.feedback(us(3), Some(value), Good);
                known.push(value);
            }
        }
    }
}
