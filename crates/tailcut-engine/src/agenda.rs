//! The event queue: a hierarchical timing wheel (Varghese and Lauck 1987) over
//! entities, each of which has at most one pending event.
//!
//! That restriction is what makes it fast. An event needs no allocation: its
//! list links live in a per-entity slot. Rescheduling and cancelling take
//! constant time. The queue's size is bounded by the number of active entities
//! (a link with a thousand packets queued is one entity), so it stays in cache.
//!
//! Events leave in the order (time, entity number), whatever the order in
//! which they were scheduled. Entities whose numbers are places that are used
//! again have ranks: among themselves they leave in the order (time, rank).

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::units::Time;

const BITS: u32 = 10;
const BUCKETS: usize = 1 << BITS;
const MASK: u64 = BUCKETS as u64 - 1;
/// With the narrowest buckets they reach over all 64 bits of a time.
const LEVELS: usize = 6;
const NARROWEST: u32 = u64::BITS - BITS * LEVELS as u32;
const NONE: u32 = u32::MAX;
/// In `prev`: the entity heads the bucket whose index is in the low bits.
const HEAD: u32 = 1 << 31;
/// In `prev`: the entity waits in `Agenda::current`.
const CURRENT: u32 = NONE - 1;
/// In `prev`: the entity has no pending event.
const IDLE: u32 = NONE;

#[derive(Debug, Clone, Copy)]
struct Slot {
    time: u64,
    next: u32,
    prev: u32,
}

#[derive(Debug, Clone)]
struct Level {
    heads: Box<[u32; BUCKETS]>,
    occupied: [u64; BUCKETS / 64],
    summary: u64,
}

impl Level {
    fn new() -> Level {
        Level { heads: Box::new([NONE; BUCKETS]), occupied: [0; BUCKETS / 64], summary: 0 }
    }

    #[inline]
    fn mark(&mut self, bucket: usize) {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.summary |= 1 << (bucket / 64);
    }

    #[inline]
    fn unmark(&mut self, bucket: usize) {
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        if self.occupied[bucket / 64] == 0 {
            self.summary &= !(1 << (bucket / 64));
        }
    }

    /// Distance from `from` to the first occupied bucket at or after it, going round.
    #[inline]
    fn distance_to_next(&self, from: usize) -> Option<u64> {
        let (word, bit) = (from / 64, from % 64);
        let here = self.occupied[word] & (!0 << bit);
        if here != 0 {
            return Some(u64::from(here.trailing_zeros()) - bit as u64);
        }
        if self.summary == 0 {
            return None;
        }
        // Words after this one, then those before it and this one's low bits.
        let after = self.summary & (!0 << word << 1);
        let turned = if after != 0 { after } else { self.summary };
        let next = turned.trailing_zeros() as usize;
        let bits = self.occupied[next];
        let bucket = next * 64 + bits.trailing_zeros() as usize;
        Some((bucket as u64).wrapping_sub(from as u64) & MASK)
    }
}

/// When an event is due, and whose it is.
type Entry = (u64, u32);

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

    /// Which of two events leaves first. Where one of them has no rank the order of entries says the same.
    fn order(&self, a: Entry, b: Entry) -> Ordering {
        a.0.cmp(&b.0).then_with(|| match self.has(a.1.min(b.1)) {
            true => self.rank(a.1).cmp(&self.rank(b.1)),
            false => a.1.cmp(&b.1),
        })
    }

    fn rank(&self, entity: u32) -> u64 {
        self.ranks[(entity - self.first) as usize]
    }
}

/// Pending events, at most one per entity.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// log2 of the width of a level-0 bucket in picoseconds.
    shift: u32,
    /// The level-0 bucket under the cursor; everything in it is in `current`.
    tick: u64,
    /// Events of the bucket under the cursor, latest first.
    current: Vec<Entry>,
    levels: [Level; LEVELS],
    slots: Vec<Slot>,
    ranks: Ranks,
    pending: usize,
}

impl Agenda {
    /// An empty agenda. `typical_delay` is how far ahead most events are
    /// scheduled; it tunes speed, never order. Entities from `ranked` on
    /// have ranks.
    pub fn new(typical_delay: Time, ranked: u32) -> Agenda {
        // A few events to a bucket: few enough to sort quickly, enough to see what comes.
        let wanted = (typical_delay.0 / (BUCKETS as u64 / 4)).max(1);
        Agenda {
            shift: wanted.next_power_of_two().trailing_zeros().clamp(NARROWEST, 16),
            tick: 0,
            current: Vec::with_capacity(64),
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

    /// When `entity` is due, if it is.
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
    #[inline]
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
            CURRENT => {
                let at = self.current.iter().position(|&(_, e)| e == entity);
                self.current.remove(at.expect("a slot marked current is in the current bucket"));
            }
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

    /// Takes the first event in the order of times, then of entities or their ranks.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        loop {
            if let Some((time, entity)) = self.current.pop() {
                self.slots[entity as usize].prev = IDLE;
                self.pending -= 1;
                return Some((Time(time), entity));
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
        Some(self.current[index].1)
    }

    #[inline]
    fn place(&mut self, entity: u32, time: u64) {
        let tick = time >> self.shift;
        debug_assert!(tick >= self.tick, "an event lies in the past");
        let distance = tick - self.tick;
        if distance == 0 {
            self.place_current(entity, time);
        } else if distance < BUCKETS as u64 {
            self.link(0, (tick & MASK) as usize, entity, time);
        } else {
            self.place_far(entity, time, tick);
        }
    }

    fn place_current(&mut self, entity: u32, time: u64) {
        let (entry, ranks, mut current) = ((time, entity), &self.ranks, self.current.iter());
        let after = match ranks.has(entity) {
            true => current.rposition(|&other| ranks.order(other, entry).is_gt()),
            false => current.rposition(|&other| other > entry),
        };
        self.current.insert(after.map_or(0, |i| i + 1), entry);
        self.slots[entity as usize] = Slot { time, next: NONE, prev: CURRENT };
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
                // A bucket of this level comes before anything of the next level unless it lies past that level's next bucket.
                let start = (at + distance) << shift;
                let boundary = ((self.tick >> (shift + BITS)) + 1) << (shift + BITS);
                return if start < boundary || level == LEVELS - 1 { start } else { boundary };
            }
        }
        unreachable!("something is pending")
    }

    /// Puts the cursor at `tick`, the first of a lap, and brings down what higher levels hold for it.
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
        if self.levels[0].heads[bucket] != NONE {
            self.load(tick);
        }
    }

    #[inline]
    fn load(&mut self, tick: u64) {
        self.tick = tick;
        let bucket = (tick & MASK) as usize;
        let mut entity = std::mem::replace(&mut self.levels[0].heads[bucket], NONE);
        self.levels[0].unmark(bucket);
        let mut ranked = 0;
        while entity != NONE {
            let slot = &mut self.slots[entity as usize];
            slot.prev = CURRENT;
            self.current.push((slot.time, entity));
            ranked += u32::from(self.ranks.has(entity));
            entity = slot.next;
        }
        if ranked > 1 {
            let ranks = &self.ranks;
            self.current.sort_unstable_by(|&a, &b| ranks.order(b, a));
        } else if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}
