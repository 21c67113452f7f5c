//! Uses of sending times: the segments that an ACK delivers, and those that are late (RFC 8985).

use tailcut_engine::Time;

use super::{EVER_RESENT, FLAGS, LOST, RESENT, SACKED, Scoreboard};
use crate::packet::SackBlocks;

impl Scoreboard {
    /// Calls `each` for every segment that an ACK is about to deliver: the segment, when it was
    /// last sent, and whether it was ever sent again. The blocks do not overlap.
    pub fn for_each_delivered(
        &self,
        ack: u32,
        blocks: &SackBlocks,
        mut each: impl FnMut(u32, Time, bool),
    ) {
        let mut scan = |from: u32, to: u32| {
            for seq in from.max(self.base)..to.min(self.end()) {
                let entry = self.entries[(seq - self.base) as usize];
                if entry & SACKED == 0 {
                    each(seq, Time(entry >> FLAGS), entry & EVER_RESENT != 0);
                }
            }
        };
        scan(self.base, ack);
        for &(start, stop) in blocks.as_slice() {
            scan(start.max(ack), stop);
        }
    }

    /// Marks as lost what left before `arrived`, which has (when it left, and its end), and has not
    /// arrived `patience` after it left itself (RFC 8985 section 6.2, step 5). Returns how many
    /// segments those are, and when the last of what is only late will be.
    pub fn mark_late(&mut self, arrived: (Time, u32), now: Time, patience: Time) -> (u32, Time) {
        let (mut lost, mut last) = (0, Time::NEVER);
        for seq in self.base..self.end() {
            let entry = self.entries[(seq - self.base) as usize];
            let left = Time(entry >> FLAGS);
            let known = entry & SACKED != 0 || entry & (LOST | RESENT) == LOST;
            if known || (left, seq + 1) >= arrived {
                continue;
            }
            let due = left + patience;
            if due <= now {
                self.lose(seq);
                lost += 1;
            } else if last == Time::NEVER || due > last {
                last = due;
            }
        }
        (lost, last)
    }

    /// After a timeout: marks as lost the first outstanding segment and whatever left `patience`
    /// ago or before (section 6.3).
    pub fn mark_expired(&mut self, now: Time, patience: Time) {
        for seq in self.base..self.end() {
            let entry = self.entries[(seq - self.base) as usize];
            let expired = seq == self.base || Time(entry >> FLAGS) + patience <= now;
            if entry & SACKED == 0 && expired {
                self.lose(seq);
            }
        }
    }

    fn lose(&mut self, seq: u32) {
        let entry = &mut self.entries[(seq - self.base) as usize];
        self.ever_lost += u32::from(*entry & (LOST | RESENT) != LOST);
        self.resent -= u32::from(*entry & RESENT != 0);
        self.lost += u32::from(*entry & LOST == 0);
        *entry = (*entry & !RESENT) | LOST;
        self.lost_end = self.lost_end.max(seq + 1);
        self.resend_from = self.resend_from.min(seq);
    }
}
