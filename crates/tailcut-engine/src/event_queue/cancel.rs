//! Taking an event back, wherever it lies.

use super::{BITS, BUCKETS, Event, EventQueue, HEAD, IDLE, MASK, NEAR, NONE, NOTHING};

impl EventQueue {
    /// Removes the pending event of `entity`, if any.
    pub fn cancel(&mut self, entity: u32) {
        let slot = self.slots[entity as usize];
        match slot.prev {
            IDLE => match self.search_near(entity) {
                Some(time) => self.cancel_near(entity, time),
                None => return,
            },
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

    /// Returns the time of a near event that has no slot, if the entity has one.
    fn search_near(&self, entity: u32) -> Option<u64> {
        if entity >= self.tracked {
            return None;
        }
        let is_its = |event: &&Event| event.entity() == entity;
        let time = |tick: u64| move |event: &Event| tick << self.shift | event.offset();
        let current = self.current.iter().find(is_its).map(time(self.tick));
        current.or_else(|| {
            (self.tick..self.tick + BUCKETS as u64).find_map(|tick| {
                let bucket = (tick & MASK) as usize;
                let others = self.buffers.get(self.levels[0].heads[bucket] as usize);
                let mut events = others.into_iter().flatten().chain([&self.firsts[bucket]]);
                events.find(is_its).map(time(tick))
            })
        })
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
}
