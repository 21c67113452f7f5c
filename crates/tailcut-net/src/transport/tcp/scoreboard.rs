//! The sender's record of each segment in flight: its sending time, and under SACK the receiver's
//! reports (RFC 6675).

mod guesses;
#[cfg(test)]
mod tests;
mod time;

use std::collections::VecDeque;

use tailcut_engine::Time;

use crate::packet::SackBlocks;

const SACKED: u64 = 1;
const LOST: u64 = 2;
/// Sent again since it was last thought lost, and not known to have arrived.
const RESENT: u64 = 4;
/// Sent more than once, ever: useless as a round-trip sample.
const EVER_RESENT: u64 = 8;
const FLAGS: u32 = 4;

/// Segments `base..base + len`, sent and not yet cumulatively acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Scoreboard {
    base: u32,
    /// Send time in picoseconds above the flags.
    entries: VecDeque<u64>,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Every unsacked segment below this is marked lost.
    lost_below: u32,
    /// Sacked segments at or above `lost_below`.
    sacked_above: u32,
    /// End of the highest segment that time told to be lost.
    lost_end: u32,
    /// No segment below this is lost and waiting to be sent again.
    resend_from: u32,
    /// No retransmission still thought to be in the network is older than this, in picoseconds.
    oldest_resent: u64,
    /// Send time of the segment sent last among those ever sacked.
    newest_sacked: u64,
    /// End of the highest segment sacked so far.
    sacked_end: u32,
    /// No segment from here on has been sent again in this recovery (HighRxt + 1).
    fresh_from: u32,
    /// End of the highest segment ever sent again, but for rescues.
    resent_end: u32,
    /// A rescue retransmission is allowed once the cumulative ACK passes this (RescueRxt).
    rescue_after: Option<u32>,
    /// The segment that is to be sent to the rescue.
    rescuing: Option<u32>,
    /// Segments in the network taken for lost so far, retransmissions among them.
    ever_lost: u32,
    /// Send time of the segment sent last among those that the ACK in hand was the first to report,
    /// in doubt or not.
    newest_reported: u64,
    /// The previous ACK's blocks, so that only new ones are read.
    previous: SackBlocks,
}

/// The changes by an acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckProgress {
    /// Segments newly known to have arrived, cumulatively or selectively.
    pub delivered: u32,
    /// Age of the first newly acknowledged segment, unless it was ever sent again (Karn).
    pub rtt: Option<Time>,
    /// Retransmissions that were thought to be in the network and are acknowledged cumulatively.
    pub resent: u32,
}

impl Scoreboard {
    /// End of what has ever been sent.
    #[inline]
    pub fn end(&self) -> u32 {
        self.base + self.entries.len() as u32
    }

    /// Records that `seq`, in order or again, leaves at `now`.
    #[inline]
    pub fn on_send(&mut self, seq: u32, now: Time) {
        if seq == self.end() {
            self.entries.push_back(now.0 << FLAGS);
            return;
        }
        let entry = &mut self.entries[(seq - self.base) as usize];
        if *entry & RESENT == 0 {
            self.oldest_resent = if self.resent == 0 { now.0 } else { self.oldest_resent };
            self.resent += 1;
        }
        *entry = now.0 << FLAGS | (*entry & (SACKED | LOST)) | RESENT | EVER_RESENT;
        if self.rescuing.take() != Some(seq) {
            self.fresh_from = self.fresh_from.max(seq + 1);
            self.resent_end = self.resent_end.max(seq + 1);
        }
    }

    /// Age of segment `seq`, if it was sent once and lies below `ack`.
    pub fn age(&self, seq: u32, ack: u32, now: Time) -> Option<Time> {
        let entry = self.entries.get(seq.checked_sub(self.base)? as usize)?;
        (seq < ack && entry & EVER_RESENT == 0).then(|| now.since(Time(entry >> FLAGS)))
    }

    /// Takes a cumulative acknowledgement of everything below `ack`.
    #[inline]
    pub fn on_cumulative(&mut self, ack: u32, now: Time) -> AckProgress {
        let mut progress = AckProgress::default();
        let resent_before = self.resent;
        if self.base < ack {
            let first = self.entries.front().copied().unwrap_or(EVER_RESENT);
            if first & EVER_RESENT == 0 {
                progress.rtt = Some(now.since(Time(first >> FLAGS)));
            }
        }
        while self.base < ack {
            let Some(entry) = self.entries.pop_front() else { break };
            if entry & SACKED != 0 {
                self.sacked -= 1;
                if self.base >= self.lost_below {
                    self.sacked_above -= 1;
                }
            } else {
                progress.delivered += 1;
            }
            self.lost -= (entry & LOST != 0) as u32;
            self.resent -= (entry & RESENT != 0) as u32;
            self.base += 1;
        }
        self.lost_below = self.lost_below.max(self.base);
        self.resend_from = self.resend_from.max(self.base);
        progress.resent = resent_before - self.resent;
        progress
    }

    /// Returns true where nothing is reported beyond a gap, thought lost or sent again, and the
    /// previous ACK had no blocks.
    #[inline]
    pub fn is_undisturbed(&self) -> bool {
        self.sacked | self.lost | self.resent == 0 && self.previous.is_empty()
    }

    /// Takes selective acknowledgements; returns how many segments are newly known to have arrived.
    pub fn on_blocks(&mut self, blocks: &SackBlocks) -> u32 {
        let mut delivered = 0;
        self.newest_reported = 0;
        for &(start, end) in blocks.as_slice() {
            let known = self.previous.as_slice().iter().find(|&&(s, e)| s >= start && e <= end);
            match known.copied() {
                Some((s, e)) => delivered += self.mark(start, s) + self.mark(e, end),
                None => delivered += self.mark(start, end),
            }
        }
        self.previous = *blocks;
        delivered
    }

    fn mark(&mut self, start: u32, end: u32) -> u32 {
        let mut delivered = 0;
        for seq in start.max(self.base)..end.min(self.end()) {
            let entry = &mut self.entries[(seq - self.base) as usize];
            if *entry & SACKED != 0 {
                continue;
            }
            self.lost -= (*entry & LOST != 0) as u32;
            self.resent -= (*entry & RESENT != 0) as u32;
            // Whether a segment that was sent again in mere doubt arrived by its first or its
            // second sending is unknown: it says nothing of what the second has overtaken.
            let sent_at = *entry >> FLAGS;
            if *entry & (EVER_RESENT | LOST) != EVER_RESENT {
                self.newest_sacked = self.newest_sacked.max(sent_at);
            }
            self.newest_reported = self.newest_reported.max(sent_at);
            *entry = (*entry & !(LOST | RESENT)) | SACKED;
            self.sacked += 1;
            self.sacked_end = self.sacked_end.max(seq + 1);
            self.sacked_above += (seq >= self.lost_below) as u32;
            delivered += 1;
        }
        delivered
    }

    /// Calls `each` for every hole below the highest sacked segment that an ACK is about to fill:
    /// the segment and whether it was ever sent again.
    pub fn for_each_filled(&self, ack: u32, blocks: &SackBlocks, mut each: impl FnMut(u32, bool)) {
        let end = self.sacked_end.min(self.end());
        let mut scan = |from: u32, to: u32| {
            for seq in from.max(self.base)..to.min(end) {
                let entry = self.entries[(seq - self.base) as usize];
                if entry & SACKED == 0 {
                    each(seq, entry & EVER_RESENT != 0);
                }
            }
        };
        scan(self.base, ack);
        for &(start, stop) in blocks.as_slice() {
            scan(start.max(ack), stop);
        }
    }

    /// Segments beyond `seq` that have arrived.
    pub fn sacked_beyond(&self, seq: u32) -> u32 {
        let beyond = self.entries.range((seq - self.base) as usize..);
        beyond.filter(|entry| *entry & SACKED != 0).count() as u32
    }

    /// End of the highest segment ever sacked.
    pub fn sacked_end(&self) -> u32 {
        self.sacked_end
    }

    /// Segments from the first outstanding one to the highest sacked one, holes included
    /// (`fackets_out` of Linux).
    pub fn span(&self) -> u32 {
        self.sacked_end.saturating_sub(self.base)
    }

    /// Returns how often segments in the network were taken for lost so far, retransmissions among
    /// them.
    pub fn ever_lost(&self) -> u32 {
        self.ever_lost
    }

    /// Retransmissions thought to be in the network.
    pub fn resent(&self) -> u32 {
        self.resent
    }

    /// Whether anything outstanding was ever sent again.
    pub fn any_ever_resent(&self) -> bool {
        self.entries.iter().any(|entry| entry & EVER_RESENT != 0)
    }

    /// Nothing was lost after all: what is not sacked is only late. Retransmissions stay in the
    /// network.
    pub fn forget_losses(&mut self) {
        let end = self.lost_below.max(self.base + 1).max(self.lost_end).min(self.end());
        for entry in self.entries.range_mut(..(end - self.base) as usize) {
            *entry &= !LOST;
        }
        self.lost = 0;
        self.lost_end = 0;
        self.lost_below = self.base;
        self.sacked_above = self.sacked;
        self.resend_from = self.base;
    }

    /// Whether anything outstanding is thought lost, sent again or not.
    pub fn any_lost(&self) -> bool {
        self.lost > 0
    }

    /// Marks as lost every segment with `threshold` sacked segments above it
    /// (`IsLost` of RFC 6675, counted in segments); returns how many those are.
    pub fn mark_lost(&mut self, threshold: u32) -> u32 {
        let before = self.lost;
        while self.sacked_above >= threshold && self.lost_below < self.end() {
            self.mark_next_lost();
        }
        self.lost - before
    }

    /// Marks as lost every segment below `end` that is not sacked; returns how many those are.
    pub fn mark_lost_below(&mut self, end: u32) -> u32 {
        let before = self.lost;
        while self.lost_below < end.min(self.end()) {
            self.mark_next_lost();
        }
        self.lost - before
    }

    #[inline]
    fn mark_next_lost(&mut self) {
        let entry = &mut self.entries[(self.lost_below - self.base) as usize];
        if *entry & SACKED != 0 {
            self.sacked_above -= 1;
        } else if *entry & LOST == 0 {
            *entry |= LOST;
            self.lost += 1;
            self.ever_lost += 1;
        }
        self.lost_below += 1;
    }

    /// The retransmission of `seq` is lost as well. True where it was thought to be in the network.
    pub fn lose_again(&mut self, seq: u32) -> bool {
        let known = seq.checked_sub(self.base).and_then(|at| self.entries.get_mut(at as usize));
        let Some(entry) = known.filter(|entry| **entry & RESENT != 0) else { return false };
        *entry &= !RESENT;
        self.resent -= 1;
        self.ever_lost += 1;
        self.resend_from = self.resend_from.min(seq);
        true
    }

    /// Marks as lost again every retransmission that something sent later has overtaken: RFC 6675
    /// alone would wait for the timeout (compare RFC 8985). Returns how many those are.
    #[inline]
    pub fn mark_overtaken(&mut self) -> u32 {
        self.mark_sent_before(self.newest_sacked)
    }

    /// The same, where only what the ACK in hand was the first to report has overtaken anything, be
    /// it in doubt which of its sendings arrived.
    pub fn mark_overtaken_by_news(&mut self) -> u32 {
        self.mark_sent_before(self.newest_reported)
    }

    /// Marks as lost again every retransmission below the highest sacked segment that left before
    /// `newest`.
    #[inline]
    fn mark_sent_before(&mut self, newest: u64) -> u32 {
        if self.resent == 0 || newest <= self.oldest_resent {
            return 0;
        }
        self.mark_resent_before(newest)
    }

    #[cold]
    fn mark_resent_before(&mut self, newest: u64) -> u32 {
        let before = self.resent;
        let mut oldest = u64::MAX;
        for seq in self.base..self.resent_end.min(self.end()) {
            let entry = &mut self.entries[(seq - self.base) as usize];
            if *entry & RESENT == 0 {
                continue;
            }
            if seq < self.sacked_end && *entry >> FLAGS < newest {
                self.lost += u32::from(*entry & LOST == 0);
                *entry = (*entry & !RESENT) | LOST;
                self.resent -= 1;
                self.ever_lost += 1;
                self.resend_from = self.resend_from.min(seq);
                // Segments sent again in doubt lie above everything that was marked before.
                self.lost_end = self.lost_end.max(seq + 1);
            } else {
                oldest = oldest.min(*entry >> FLAGS);
            }
        }
        // A rescue retransmission lies beyond what was scanned; its own time bounds it.
        self.oldest_resent = if oldest == u64::MAX { newest } else { oldest };
        before - self.resent
    }

    /// True when the first outstanding segment is thought lost, sent again or not.
    pub fn first_is_lost(&self) -> bool {
        self.entries.front().is_some_and(|entry| entry & LOST != 0)
    }

    /// True when the first outstanding segment was sent again and is thought to be in the network.
    pub fn first_is_resent(&self) -> bool {
        self.entries.front().is_some_and(|entry| entry & RESENT != 0)
    }

    /// Marks the first outstanding segment lost: enough duplicate ACKs said so.
    pub fn mark_first_lost(&mut self) {
        if let Some(entry) = self.entries.front_mut() {
            if *entry & (LOST | SACKED) == 0 {
                *entry |= LOST;
                self.lost += 1;
                self.ever_lost += 1;
            }
            self.resend_from = self.base;
        }
    }

    /// After a timeout: whatever is not sacked is lost and may be sent again (RFC 6675 5.1).
    pub fn mark_all_lost(&mut self) {
        self.ever_lost += self.pipe();
        self.lost = 0;
        self.resent = 0;
        for entry in &mut self.entries {
            if *entry & SACKED == 0 {
                *entry = (*entry & !RESENT) | LOST;
                self.lost += 1;
            }
        }
        self.lost_below = self.end();
        self.sacked_above = 0;
        self.resend_from = self.base;
    }

    /// The first segment that is lost and has not been sent again (`NextSeg` rule 1).
    pub fn next_lost(&mut self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let end = self.lost_below.max(self.base + 1).max(self.lost_end).min(self.end());
        for seq in self.resend_from.max(self.base)..end {
            let entry = self.entries[(seq - self.base) as usize];
            if entry & (LOST | RESENT) == LOST {
                self.resend_from = seq;
                return Some(seq);
            }
        }
        self.resend_from = self.resend_from.max(self.lost_below).max(self.lost_end);
        None
    }

    /// Recovery begins: nothing has been sent again in it.
    pub fn begin_recovery(&mut self) {
        self.fresh_from = self.base;
        self.rescue_after = None;
    }

    /// The first segment below the highest sacked one that is not known to have
    /// arrived and was not sent again in this recovery (`NextSeg` rule 3).
    pub fn next_doubtful(&self) -> Option<u32> {
        let from = self.lost_below.max(self.fresh_from).max(self.base);
        (from..self.sacked_end.min(self.end()))
            .find(|seq| self.entries[(seq - self.base) as usize] & SACKED == 0)
    }

    /// The first segment that is not known to have arrived, is not thought lost and was not sent
    /// again: below the highest sacked one where anything above the first outstanding segment is,
    /// anywhere else (ns-3's `NextSeg` rule 3).
    pub fn next_unmarked(&self) -> Option<u32> {
        let last_sacked = self.sacked_end.saturating_sub(1);
        let end = if last_sacked > self.base { last_sacked } else { self.end() };
        let marked = |seq: u32| self.entries[(seq - self.base) as usize] & (SACKED | LOST | RESENT);
        (self.base..end.min(self.end())).find(|&seq| marked(seq) == 0)
    }

    /// The last segment that is not known to have arrived, unless one was sent to the
    /// rescue already and what was outstanding then is not yet acknowledged (`NextSeg` rule 4).
    pub fn rescue(&self) -> Option<u32> {
        if self.rescue_after.is_some_and(|point| self.base < point) {
            return None;
        }
        let at = self.entries.iter().rposition(|entry| entry & SACKED == 0)?;
        Some(self.base + at as u32)
    }

    /// Records that this segment is about to be sent as a rescue: what precedes it stays in doubt.
    pub fn rescue_with(&mut self, seq: u32) {
        self.rescue_after = Some(self.end());
        self.rescuing = Some(seq);
    }

    /// Segments thought to be in the network (`pipe` of RFC 6675).
    #[inline]
    pub fn pipe(&self) -> u32 {
        self.entries.len() as u32 - self.sacked - self.lost + self.resent
    }

    /// Returns how often a sent segment counts in the pipe: twice if it was sent again without
    /// being thought lost.
    pub fn times_in_pipe(&self, seq: u32) -> u32 {
        let known = seq.checked_sub(self.base).and_then(|at| self.entries.get(at as usize));
        let flag = |entry: u64, flag: u64| u32::from(entry & flag != 0);
        known.map_or(0, |&entry| 1 - flag(entry, SACKED) - flag(entry, LOST) + flag(entry, RESENT))
    }

    /// Whether the receiver is known to hold a segment that was sent, cumulatively or beyond a gap.
    pub fn has_arrived(&self, seq: u32) -> bool {
        seq < self.base || self.is_sacked(seq)
    }

    /// Whether the receiver holds a segment beyond a gap.
    pub fn is_sacked(&self, seq: u32) -> bool {
        let known = seq.checked_sub(self.base).and_then(|at| self.entries.get(at as usize));
        known.is_some_and(|entry| entry & SACKED != 0)
    }

    /// Segments that the receiver holds beyond a gap.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// True when `seq` was sent before.
    #[inline]
    pub fn was_sent(&self, seq: u32) -> bool {
        seq < self.end()
    }
}
