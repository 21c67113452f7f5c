//! One level of the queue: which of its buckets have events.

use super::{BUCKETS, MASK, NONE};

/// The buckets of a level, with the occupied ones in a bitmap of two stages.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// Per bucket: the buffer of all its events but one on level 0, its first entity on the others.
    pub(super) heads: Box<[u32; BUCKETS]>,
    occupied: [u64; BUCKETS / 64],
    summary: u64,
}

impl Level {
    pub(super) fn new() -> Level {
        Level { heads: Box::new([NONE; BUCKETS]), occupied: [0; BUCKETS / 64], summary: 0 }
    }

    #[inline]
    pub(super) fn mark(&mut self, bucket: usize) {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.summary |= 1 << (bucket / 64);
    }

    #[inline]
    pub(super) fn unmark(&mut self, bucket: usize) {
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        if self.occupied[bucket / 64] == 0 {
            self.summary &= !(1 << (bucket / 64));
        }
    }

    /// Distance from `from` to the first occupied bucket at or after it, going round.
    #[inline]
    pub(super) fn distance_to_next(&self, from: usize) -> Option<u64> {
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
