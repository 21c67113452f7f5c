//! Taking events up to a limit: for an owner who learns of further ones before it goes on.

use crate::units::Time;

use super::{BITS, EventQueue, IDLE, MASK};

impl EventQueue {
    /// Takes the first event as [`EventQueue::pop`] does, if it is earlier than `limit`, or at
    /// `limit` and of an entity before `first`. Events that are not may still be scheduled
    /// afterwards.
    #[inline]
    pub fn pop_before(&mut self, limit: Time, first: u32) -> Option<(Time, u32)> {
        loop {
            if let Some(&event) = self.current.last() {
                let (time, entity) =
                    (Time(self.tick << self.shift | event.offset()), event.entity());
                if time > limit || time == limit && entity >= first {
                    return None;
                }
                self.current.pop();
                self.slots[entity as usize].prev = IDLE;
                self.pending -= 1;
                return Some((time, entity));
            }
            if !self.advance_before(limit, first) {
                return None;
            }
        }
    }

    /// Moves the cursor as `advance` does. Returns false where no event comes before `limit`, or at
    /// `limit` and of an entity before `first`.
    fn advance_before(&mut self, limit: Time, first: u32) -> bool {
        if self.pending == 0 {
            return false;
        }
        let start = self.next_tick() << self.shift;
        let may_be = start < limit.0 || start == limit.0 && first > 0;
        if may_be {
            self.advance();
        }
        may_be
    }

    /// Returns a time that no pending event precedes: that of the first event where it is known,
    /// the start of its bucket otherwise. `None` when nothing is pending.
    pub fn earliest(&self) -> Option<Time> {
        if let Some(&event) = self.current.last() {
            return Some(Time(self.tick << self.shift | event.offset()));
        }
        (self.pending > 0).then(|| Time(self.next_tick() << self.shift))
    }

    /// Returns where [`EventQueue::advance`] would move the cursor.
    fn next_tick(&self) -> u64 {
        let next_lap = ((self.tick >> BITS) + 1) << BITS;
        match self.levels[0].distance_to_next((self.tick & MASK) as usize) {
            Some(distance) => (self.tick + distance).min(next_lap),
            None => self.next_far_start(),
        }
    }
}
