//! The order in which events leave, against an ordered set.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const UNRANKED: u32 = u32::MAX;

/// An agenda of so many busy entities, each of which has its events that far apart.
fn agenda(delay: Time, busy: u32, ranked: u32) -> EventQueue {
    EventQueue::new(Typical { delay, spacing: delay, busy }, ranked)
}

fn drain(agenda: &mut EventQueue) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| agenda.pop()).map(|(t, e)| (t.0, e)).collect()
}

#[test]
fn equal_times_leave_by_entity_number_not_by_insertion() {
    let mut agenda = agenda(Time::from_us(16), 1, UNRANKED);
    agenda.grow_to(4);
    for entity in [2, 0, 3, 1] {
        agenda.schedule(entity, Time(5_000_000));
    }
    assert_eq!(drain(&mut agenda).iter().map(|e| e.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_reused_entity_takes_its_new_rank() {
    let mut agenda = agenda(Time::from_us(16), 1, 2);
    agenda.grow_to(5);
    let mut order = |ranks: [u64; 3], time: u64| {
        (2..).zip(ranks).for_each(|(entity, rank)| agenda.rank(entity, rank));
        (0..5).for_each(|entity| agenda.schedule(entity, Time(time)));
        drain(&mut agenda).iter().map(|e| e.1).collect::<Vec<_>>()
    };
    assert_eq!(order([8, 5, 9], 77), [0, 1, 3, 2, 4]);
    assert_eq!(order([8, 10, 9], 78), [0, 1, 2, 4, 3]);
}

#[test]
fn a_cancelled_event_never_happens() {
    let mut agenda = agenda(Time::from_us(16), 1, UNRANKED);
    agenda.grow_to(3);
    for entity in 0..3 {
        agenda.schedule(entity, Time(77));
    }
    agenda.cancel(1);
    assert_eq!(agenda.due(1), None);
    assert_eq!(drain(&mut agenda), [(77, 0), (77, 2)]);
}

#[test]
fn events_as_far_ahead_as_a_time_can_be_wait_for_their_turn() {
    let mut agenda = agenda(Time(1), 1, UNRANKED);
    agenda.grow_to(3);
    agenda.schedule(0, Time::NEVER);
    agenda.schedule(1, Time(1 << 61));
    agenda.schedule(2, Time(7));
    assert_eq!(drain(&mut agenda), [(7, 2), (1 << 61, 1), (u64::MAX, 0)]);
}

#[test]
fn thousands_of_events_at_one_instant_leave_in_order_time_and_again() {
    let mut agenda = agenda(Time::from_us(16), 4_000, UNRANKED);
    agenda.grow_to(4_000);
    for lap in 1..4 {
        let at = Time::from_us(16 * lap);
        (0..4_000).rev().for_each(|entity| agenda.schedule(entity, at));
        (0..4_000).step_by(2).for_each(|entity| agenda.cancel(entity));
        let expected: Vec<_> = (1..4_000).step_by(2).map(|entity| (at.0, entity)).collect();
        assert_eq!(drain(&mut agenda), expected);
    }
}

/// Widths of buckets in picoseconds.
#[test]
fn buckets_hold_few_events_however_long_the_links_are() {
    let width = |rate_gbps: u64, propagation: Time, busy: u32| {
        let spacing = Time(1_538 * 8 * 1_000 / rate_gbps);
        let typical = Typical { delay: spacing + propagation, spacing, busy };
        1u64 << EventQueue::new(typical, UNRANKED).shift
    };
    let us = Time::from_us(1);
    assert_eq!(width(1, us, 1_536), 1 << 17, "a fat-tree of k = 16");
    assert_eq!(width(100, us, 1_536), 1 << 11);
    assert_eq!(width(100, Time::from_ns(10), 1_536), 1 << 11);
    assert_eq!(width(1, us, 48), 1 << 16, "few links");
}

/// Hundreds of events fall into one bucket where links are short and slow.
#[test]
fn an_event_that_is_due_among_hundreds_of_its_bucket_finds_its_place() {
    let mut agenda = agenda(Time(1 << 40), 200, 500);
    agenda.grow_to(1_000);
    (500..1_000).for_each(|entity| agenda.rank(entity, u64::from(1_000 - entity)));
    let at = |entity: u32| u64::from(entity * 7 % 1_000 / 2);
    let key = |entity: u32| {
        (at(entity), entity >= 500, if entity < 500 { entity } else { 1_000 - entity })
    };
    agenda.schedule(0, Time(0));
    assert_eq!(agenda.pop(), Some((Time(0), 0)));
    (0..1_000).for_each(|entity| agenda.schedule(entity, Time(at(entity))));
    let mut expected: Vec<_> = (0..1_000).collect();
    expected.sort_by_key(|&entity| key(entity));
    let expected: Vec<_> = expected.into_iter().map(|entity| (at(entity), entity)).collect();
    assert_eq!(drain(&mut agenda), expected);
}

#[derive(Debug, Clone)]
enum Step {
    Schedule(u32, u64),
    Cancel(u32),
    Pop,
    /// Pops what is earlier than so far ahead, or then and of an entity before that.
    PopBefore(u64, u32),
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..10u64,
        0..100_000u64,
        0..100_000_000u64,
        0..1_000_000_000_000u64,
        Just(60_000_000_000_000u64)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..50u32, delay()).prop_map(|(e, d)| Step::Schedule(e, d)),
        1 => (0..50u32).prop_map(Step::Cancel),
        3 => Just(Step::Pop),
        2 => (delay(), 0..50u32).prop_map(|(ahead, first)| Step::PopBefore(ahead, first)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn event_queue_behaves_as_an_ordered_set(
        steps in prop::collection::vec(step(), 1..400),
        typical in 1..10_000_000_000u64,
        spacing in 1..10_000_000_000u64,
        busy in 0..10_000u32,
        ranked in 0..=50u32,
        turn in 0..50u32,
    ) {
        // Which come first at one instant: those without ranks, then those with, by ranks in
        // another order than theirs.
        let rank = |entity: u32| (entity * 7 + turn) % 50;
        let key = |entity: u32| (entity >= ranked, if entity < ranked { entity } else { rank(entity) }, entity);
        let typical = Typical { delay: Time(typical), spacing: Time(spacing), busy };
        let mut agenda = EventQueue::new(typical, ranked);
        agenda.grow_to(50);
        (ranked..50).for_each(|entity| agenda.rank(entity, u64::from(rank(entity))));
        let mut reference = BTreeSet::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Schedule(entity, delay) => {
                    reference.retain(|&(_, (_, _, e))| e != entity);
                    reference.insert((now + delay, key(entity)));
                    agenda.reschedule(entity, Time(now + delay));
                }
                Step::Cancel(entity) => {
                    reference.retain(|&(_, (_, _, e))| e != entity);
                    agenda.cancel(entity);
                }
                Step::Pop => {
                    let popped = agenda.pop().map(|(t, e)| (t.0, e));
                    let first = reference.pop_first().map(|(time, (_, _, entity))| (time, entity));
                    prop_assert_eq!(popped, first);
                    now = popped.map_or(now, |p| p.0);
                }
                Step::PopBefore(ahead, first) => {
                    // Entities without ranks come in the order of their numbers.
                    let (limit, first) = (now + ahead, first.min(ranked));
                    let is_before = |&(time, (_, _, entity)): &(u64, (bool, u32, u32))| {
                        time < limit || time == limit && entity < first
                    };
                    let bound = agenda.earliest().map(|time| time.0);
                    prop_assert_eq!(bound.is_some(), !reference.is_empty());
                    prop_assert!(bound <= reference.first().map(|&(time, _)| time));
                    while let Some((time, entity)) = agenda.pop_before(Time(limit), first) {
                        prop_assert!(reference.first().is_some_and(is_before));
                        let next = reference.pop_first().map(|(time, (_, _, entity))| (time, entity));
                        prop_assert_eq!(Some((time.0, entity)), next);
                    }
                    prop_assert!(!reference.first().is_some_and(is_before));
                    now = limit;
                }
            }
            prop_assert_eq!(agenda.len(), reference.len());
        }
        let rest = reference.into_iter().map(|(time, (_, _, entity))| (time, entity));
        prop_assert_eq!(drain(&mut agenda), rest.collect::<Vec<_>>());
    }
}
