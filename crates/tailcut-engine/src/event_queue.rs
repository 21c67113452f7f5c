//! The event queue: a hierarchical timing wheel (Varghese and Lauck 1987) over
//! entities, each of which has at most one pending event.
//!
//! That restriction is what makes it fast. The queue's size is bounded by the
//! number of active entities (a link with a thousand packets queued is one
//! entity), so it stays in cache. Near events lie side by side in buffers that
//! are used again; far ones are lists whose links live in a slot of each entity.
//! Once the buffers have grown none needs an allocation, and rescheduling and
//! cancelling look at no more than one bucket.
//!
//! Events leave in the order (time, entity number), whatever the order in
//! which they were scheduled. Entities whose numbers are places that are used
//! again have ranks: among themselves they leave in the order (time, rank).

mod level;
#[cfg(test)]
mod tests;
mod windows;

use std::cmp::Ordering;

use crate::units::Time;
use level::Level;

const BITS: u32 = 10;
const BUCKETS: usize = 1 << BITS;
const MASK: u64 = BUCKETS as u64 - 1;
/// With the narrowest buckets they reach over all 64 bits of a time.
const LEVELS: usize = 6;
const NARROWEST: u32 = u64::BITS - BITS * LEVELS as u32;
const NONE: u32 = u32::MAX;
/// In `prev`: the entity heads the far bucket whose index is in the low bits.
const HEAD: u32 = 1 << 31;
/// In `prev`: the entity waits in `Agenda::current` or in the level-0 bucket of its time.
const NEAR: u32 = NONE - 1;
/// In `prev`: the entity has no pending event.
const IDLE: u32 = NONE;

#[derive(Debug, Clone, Copy)]
struct Slot {
    time: u64,
    next: u32,
    prev: u32,
}

/// An event of a level-0 bucket: the bits of its time that the bucket does not say, and whose it
/// is. Without ranks they leave in the order of these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u64);

impl Event {
    #[inline]
    fn new(offset: u64, entity: u32) -> Event {
        Event(offset << 32 | u64::from(entity))
    }
    #[inline]
    fn offset(self) -> u64 {
        self.0 >> 32
    }
    #[inline]
    fn entity(self) -> u32 {
        self.0 as u32
    }
}

/// No event: no entity has this number.
const NOTHING: Event = Event(u64::MAX);
/// log2 of the widest buckets of level 0: what a time has beyond them fits into an [`Event`].
const WIDEST: u32 = 32;
/// Busy entities from which they no longer fit into the nearest cache. Buckets with a few events
/// each then show the next ones, so that these can be prefetched. Below, a bucket for each event
/// saves sorting.
const MANY: u32 = 128;
/// Events to a bucket where all of many entities were at work.
const FEW: u64 = 16;
/// Buckets of few entities are not wider than this.
const NEAREST: u64 = 1 << 16;
/// Number of next events that are compared one by one with an event that is due among them.
const NEXT: usize = 8;
/// A buffer that had to hold more events than this is given back.
const LARGE: usize = 1 << 10;

/// The ranks of the entities from `first` on.
#[derive(Debug, Clone)]
struct Ranks {
    first: u32,
    ranks: Vec<u64>,
}

impl Ranks {
    #[inline]
    fn has(&self, entity: u32) -> bool {
        entity >= self.first
    }

    /// Returns the order of two events; without ranks their numbers decide.
    fn order(&self, a: Event, b: Event) -> Ordering {
        a.offset().cmp(&b.offset()).then_with(|| match self.has(a.entity().min(b.entity())) {
            true => self.rank(a.entity()).cmp(&self.rank(b.entity())),
            false => a.cmp(&b),
        })
    }

    fn rank(&self, entity: u32) -> u64 {
        self.ranks[(entity - self.first) as usize]
    }
}

/// The times that most events are apart by. Tunes speed, never order.
#[derive(Debug, Clone, Copy)]
pub struct Typical {
    /// The largest lookahead of most events.
    pub delay: Time,
    /// The time between two events of an entity that is at work.
    pub spacing: Time,
    /// The number of entities with an event at a time.
    pub busy: u32,
}

/// Pending events, at most one per entity.
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// log2 of the width of a level-0 bucket in picoseconds.
    shift: u32,
    /// The level-0 bucket under the cursor; everything in it is in `current`.
    tick: u64,
    /// Events of the bucket under the cursor, latest first.
    current: Vec<Event>,
    /// Per level-0 bucket: one of its events, or `NOTHING`.
    firsts: Box<[Event; BUCKETS]>,
    /// The other events of level-0 buckets that have more than one.
    buffers: Vec<Vec<Event>>,
    /// Buffers that no bucket has, the last used last.
    vacant: Vec<u32>,
    levels: [Level; LEVELS],
    slots: Vec<Slot>,
    ranks: Ranks,
    pending: usize,
}

/// Returns the place in a bucket, latest event first, behind all events that `is_later`.
#[inline]
fn place_in(current: &[Event], is_later: impl Fn(Event) -> bool) -> usize {
    let (far, next) = current.split_at(current.len().saturating_sub(NEXT));
    match next.iter().rposition(|&other| is_later(other)) {
        Some(place) => far.len() + place + 1,
        None => far.partition_point(|&other| is_later(other)),
    }
}

impl EventQueue {
    /// Returns an empty agenda. Entities from `ranked` on have ranks.
    pub fn new(typical: Typical, ranked: u32) -> EventQueue {
        let Typical { delay, spacing, busy } = typical;
        let width = if busy < MANY {
            (delay.0 / (BUCKETS as u64 / 4)).min(NEAREST)
        } else {
            // Level 0 reaches as far as most events lie ahead.
            (delay.0 / BUCKETS as u64).max(spacing.0 / u64::from(busy) * FEW)
        };
        EventQueue {
            shift: width.max(1).next_power_of_two().trailing_zeros().clamp(NARROWEST, WIDEST),
            tick: 0,
            current: Vec::with_capacity(64),
            firsts: Box::new([NOTHING; BUCKETS]),
            buffers: Vec::new(),
            vacant: Vec::new(),
            levels: std::array::from_fn(|_| Level::new()),
            slots: Vec::new(),
            ranks: Ranks { first: ranked, ranks: Vec::new() },
            pending: 0,
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.pending
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Makes room for entities `0..count`.
    pub fn grow_to(&mut self, count: usize) {
        if count > self.slots.len() {
            self.slots.resize(count, Slot { time: 0, next: NONE, prev: IDLE });
            self.ranks.ranks.resize(count.saturating_sub(self.ranks.first as usize), 0);
        }
    }

    /// Gives an entity that has ranks, and no pending event, its rank. No two
    /// with pending events may have the same.
    pub fn rank(&mut self, entity: u32, rank: u64) {
        debug_assert_eq!(self.slots[entity as usize].prev, IDLE, "entity {entity} is already due");
        self.ranks.ranks[(entity - self.ranks.first) as usize] = rank;
    }

    /// Returns the rank of an entity that has one.
    #[inline]
    pub fn rank_of(&self, entity: u32) -> u64 {
        self.ranks.rank(entity)
    }

    /// Returns the time of `entity`'s event, if it has one.
    #[inline]
    pub fn due(&self, entity: u32) -> Option<Time> {
        let slot = self.slots[entity as usize];
        (slot.prev != IDLE).then_some(Time(slot.time))
    }

    /// Schedules the event of `entity`, which has none pending, at `time`,
    /// which is not earlier than the last event taken.
    ///
    /// # Panics
    /// In debug builds, when either condition is broken.
    // A call costs a run of plain TCP 3 % more instructions.
    #[inline(always)]
    pub fn schedule(&mut self, entity: u32, time: Time) {
        debug_assert_eq!(self.slots[entity as usize].prev, IDLE, "entity {entity} is already due");
        self.pending += 1;
        self.place(entity, time.0);
    }

    /// Schedules the event of `entity` at `time` whether or not one was pending.
    pub fn reschedule(&mut self, entity: u32, time: Time) {
        self.cancel(entity);
        self.schedule(entity, time);
    }

    /// Removes the pending event of `entity`, if any.
    pub fn cancel(&mut self, entity: u32) {
        let slot = self.slots[entity as usize];
        match slot.prev {
            IDLE => return,
            NEAR => self.cancel_near(entity, slot.time),
            head if head & HEAD != 0 => {
                let (level, bucket) = ((head >> BITS) & 0xf, (head & MASK as u32) as usize);
                let level = &mut self.levels[level as usize];
                level.heads[bucket] = slot.next;
                if slot.next == NONE {
                    level.unmark(bucket);
                } else {
                    self.slots[slot.next as usize].prev = head;
                }
            }
            prev => {
                self.slots[prev as usize].next = slot.next;
                if slot.next != NONE {
                    self.slots[slot.next as usize].prev = prev;
                }
            }
        }
        self.slots[entity as usize].prev = IDLE;
        self.pending -= 1;
    }

    fn cancel_near(&mut self, entity: u32, time: u64) {
        let tick = time >> self.shift;
        let at = |events: &[Event]| {
            let at = events.iter().position(|event| event.entity() == entity);
            at.expect("a near event is in the bucket of its time")
        };
        if tick == self.tick {
            self.current.remove(at(&self.current));
            return;
        }
        let bucket = (tick & MASK) as usize;
        let buffer = self.levels[0].heads[bucket];
        let mut others = self.buffers.get_mut(buffer as usize);
        if self.firsts[bucket].entity() == entity {
            self.firsts[bucket] =
                others.as_mut().and_then(|events| events.pop()).unwrap_or(NOTHING);
        } else if let Some(events) = &mut others {
            events.swap_remove(at(events));
        }
        if others.is_some_and(|events| events.is_empty()) {
            self.levels[0].heads[bucket] = NONE;
            self.vacant.push(buffer);
        }
        if self.firsts[bucket] == NOTHING {
            self.levels[0].unmark(bucket);
        }
    }

    /// Takes the first event in the order of times, then of entities or their ranks.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        loop {
            if let Some(event) = self.current.pop() {
                let entity = event.entity();
                self.slots[entity as usize].prev = IDLE;
                self.pending -= 1;
                return Some((Time(self.tick << self.shift | event.offset()), entity));
            }
            if self.pending == 0 {
                return None;
            }
            self.advance();
        }
    }

    /// The entity whose event comes after `ahead` others, if it is known without
    /// moving the cursor: a hint for whoever wants to fetch its state early.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<u32> {
        let index = self.current.len().checked_sub(1 + ahead)?;
        Some(self.current[index].entity())
    }

    #[inline(always)]
    fn place(&mut self, entity: u32, time: u64) {
        let tick = time >> self.shift;
        debug_assert!(tick >= self.tick, "an event lies in the past");
        let distance = tick - self.tick;
        if distance >= BUCKETS as u64 {
            return self.place_far(entity, time, tick);
        }
        let event = Event::new(time - (tick << self.shift), entity);
        if distance == 0 {
            self.place_current(event);
        } else {
            self.place_near((tick & MASK) as usize, event);
        }
        self.slots[entity as usize] = Slot { time, next: NONE, prev: NEAR };
    }

    fn place_current(&mut self, event: Event) {
        let EventQueue { ranks, current, .. } = self;
        let place = match ranks.has(event.entity()) {
            true => place_in(current, |other| ranks.order(other, event).is_gt()),
            false => place_in(current, |other| other > event),
        };
        current.insert(place, event);
    }

    #[inline]
    fn place_near(&mut self, bucket: usize, event: Event) {
        if self.firsts[bucket] == NOTHING {
            self.firsts[bucket] = event;
            self.levels[0].mark(bucket);
        } else {
            self.place_beside(bucket, event);
        }
    }

    /// The bucket has an event already.
    #[inline]
    fn place_beside(&mut self, bucket: usize, event: Event) {
        let mut buffer = self.levels[0].heads[bucket];
        if buffer == NONE {
            buffer = self.lend_buffer(bucket);
        }
        self.buffers[buffer as usize].push(event);
    }

    /// Gives a bucket a buffer.
    #[inline(never)]
    fn lend_buffer(&mut self, bucket: usize) -> u32 {
        let buffer = self.vacant.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        });
        self.levels[0].heads[bucket] = buffer;
        buffer
    }

    #[cold]
    fn place_far(&mut self, entity: u32, time: u64, tick: u64) {
        for level in 1..LEVELS {
            let shift = BITS * level as u32;
            if (tick >> shift) - (self.tick >> shift) < BUCKETS as u64 {
                self.link(level, ((tick >> shift) & MASK) as usize, entity, time);
                return;
            }
        }
        unreachable!("the last level reaches as far as a time can be")
    }

    #[inline]
    fn link(&mut self, level: usize, bucket: usize, entity: u32, time: u64) {
        let head = HEAD | (level as u32) << BITS | bucket as u32;
        let next = self.levels[level].heads[bucket];
        self.levels[level].heads[bucket] = entity;
        if next == NONE {
            self.levels[level].mark(bucket);
        } else {
            self.slots[next as usize].prev = entity;
        }
        self.slots[entity as usize] = Slot { time, next, prev: head };
    }

    /// Moves the cursor to the next occupied level-0 bucket and loads it, or
    /// brings a bucket of a higher level down; the caller tries again.
    fn advance(&mut self) {
        let lap = self.tick >> BITS;
        let near = self.levels[0].distance_to_next((self.tick & MASK) as usize);
        match near.map(|distance| self.tick + distance) {
            Some(tick) if tick >> BITS == lap => self.load(tick),
            // Level 0 reaches into the next lap, for which level 1 may hold earlier events.
            Some(_) => self.enter((lap + 1) << BITS),
            None => {
                let start = self.next_far_start();
                self.enter(start);
            }
        }
    }

    /// Start of the earliest higher-level bucket after the cursor.
    fn next_far_start(&self) -> u64 {
        for level in 1..LEVELS {
            let shift = BITS * level as u32;
            let at = self.tick >> shift;
            if let Some(distance) = self.levels[level].distance_to_next((at & MASK) as usize) {
                // A bucket of this level comes before anything of the next level unless it lies
                // past that level's next bucket.
                let start = (at + distance) << shift;
                let boundary = ((self.tick >> (shift + BITS)) + 1) << (shift + BITS);
                return if start < boundary || level == LEVELS - 1 { start } else { boundary };
            }
        }
        unreachable!("something is pending")
    }

    /// Puts the cursor at `tick`, the first of a lap, and brings down what higher levels hold for
    /// it.
    fn enter(&mut self, tick: u64) {
        let before = self.tick;
        self.tick = tick;
        for level in (1..LEVELS).rev() {
            let shift = BITS * level as u32;
            if before >> shift == tick >> shift {
                continue;
            }
            let bucket = ((tick >> shift) & MASK) as usize;
            let mut entity = std::mem::replace(&mut self.levels[level].heads[bucket], NONE);
            if entity != NONE {
                self.levels[level].unmark(bucket);
            }
            while entity != NONE {
                let Slot { time, next, .. } = self.slots[entity as usize];
                self.place(entity, time);
                entity = next;
            }
        }
        // Level 0 may hold events of the very first bucket of the lap.
        let bucket = (tick & MASK) as usize;
        if self.firsts[bucket] != NOTHING {
            self.load(tick);
        }
    }

    #[inline]
    fn load(&mut self, tick: u64) {
        self.tick = tick;
        let bucket = (tick & MASK) as usize;
        self.levels[0].unmark(bucket);
        let buffer = std::mem::replace(&mut self.levels[0].heads[bucket], NONE);
        if let Some(events) = self.buffers.get_mut(buffer as usize) {
            // Most were scheduled in the order of their times: backwards there is little to sort.
            self.current.extend(events.drain(..).rev());
            if events.capacity() > LARGE {
                *events = Vec::new();
            }
            self.vacant.push(buffer);
        }
        self.current.push(std::mem::replace(&mut self.firsts[bucket], NOTHING));
        if self.current.len() == 1 {
            return;
        }
        let ranked = self.current.iter().filter(|event| self.ranks.has(event.entity())).count();
        if ranked > 1 {
            let ranks = &self.ranks;
            self.current.sort_unstable_by(|&a, &b| ranks.order(b, a));
        } else {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}
