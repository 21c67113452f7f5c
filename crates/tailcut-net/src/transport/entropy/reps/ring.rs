//! The ring of values that came back unmarked.

/// A value of the ring.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    value: u16,
    /// Packets that may still use it again.
    uses: u32,
}

/// The last values that came back unmarked. The fresh ones, which may be used again, are the last
/// that were written.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    entries: Box<[Entry]>,
    /// The place of the next value.
    head: usize,
    /// Places that hold a value: all once the ring has been filled.
    filled: usize,
    fresh: usize,
    /// The place of the next value in turn.
    turn: usize,
    uses: u32,
}

impl Ring {
    /// Creates a ring of so many places, whose values are used so many times each.
    pub fn new(places: u32, uses: u32) -> Ring {
        let entries = vec![Entry::default(); places as usize].into();
        Ring { entries, head: 0, filled: 0, fresh: 0, turn: 0, uses }
    }

    pub fn clear(&mut self) {
        (self.head, self.filled, self.fresh, self.turn) = (0, 0, 0, 0);
    }

    /// Writes a value in place of the oldest.
    pub fn write(&mut self, value: u16) {
        let places = self.entries.len();
        self.entries[self.head] = Entry { value, uses: self.uses };
        self.head = (self.head + 1) % places;
        self.filled = (self.filled + 1).min(places);
        self.fresh = (self.fresh + 1).min(places);
    }

    /// Takes the oldest fresh value; `None` if no value is fresh.
    pub fn take_fresh(&mut self) -> Option<u16> {
        if self.fresh == 0 {
            return None;
        }
        let places = self.entries.len();
        let entry = &mut self.entries[(self.head + places - self.fresh) % places];
        entry.uses -= 1;
        self.fresh -= usize::from(entry.uses == 0);
        Some(entry.value)
    }

    /// Lets the turn begin at the oldest value.
    pub fn begin_turn(&mut self) {
        self.turn = if self.filled == self.entries.len() { self.head } else { 0 };
    }

    /// Takes the next value in turn, fresh or not; `None` if the ring is empty.
    pub fn take_in_turn(&mut self) -> Option<u16> {
        if self.filled == 0 {
            return None;
        }
        let entry = self.entries[self.turn % self.filled];
        self.turn = (self.turn + 1) % self.filled;
        Some(entry.value)
    }
}
