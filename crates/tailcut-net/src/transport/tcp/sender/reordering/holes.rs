//! The extent of reordering. Two reports reveal it: holes that fill without having been resent,
//! with the number of segments that had arrived beyond them (their extent); and duplicates (D-SACK,
//! RFC 2883), by which the last filling of a resent hole was reordering as well.

use std::collections::VecDeque;

use super::split;
use crate::packet::SackBlocks;
use crate::transport::tcp::scoreboard::Scoreboard;
use crate::transport::tcp::sender::Sender;

/// Remembered fillings of resent holes.
const REMEMBERED: usize = 64;

/// Whoever moves the threshold by extents.
pub(super) trait Extents {
    /// Returns the extent of segment `seq` if it fills a hole now.
    fn extent(&self, board: &Scoreboard, seq: u32) -> u32;
    /// A hole of this extent was reordering: the new threshold, if it moves.
    fn learn(&mut self, extent: u32, threshold: u32) -> u32;
    /// The receiver had segment `seq` already.
    fn was_duplicate(&mut self, _seq: u32) {}
}

/// Resent segments that arrived lately, with their extent.
#[derive(Debug, Clone, Default)]
pub(super) struct Holes {
    filled: VecDeque<(u32, u32)>,
}

impl Holes {
    /// Moves the threshold by an ACK, before the scoreboard reads it. Returns its blocks without a
    /// duplicate report, and whether there was one.
    pub fn learn(
        &mut self,
        method: &mut impl Extents,
        sender: &mut Sender,
        ack: u32,
        blocks: &SackBlocks,
    ) -> (SackBlocks, bool) {
        let (duplicate, blocks) = split(ack, blocks);
        let mut threshold = sender.threshold;
        if let Some((start, end)) = duplicate {
            sender.counters.duplicates_reported += u64::from(end - start);
            for seq in start..end {
                method.was_duplicate(seq);
                // What filled the hole before was late, not resent.
                if let Some(at) = self.filled.iter().position(|&(known, _)| known == seq) {
                    let (_, extent) = self.filled.remove(at).expect("it was found");
                    threshold = method.learn(extent, threshold);
                }
            }
        }
        let board = &sender.board;
        board.for_each_filled(ack, &blocks, |seq, resent| {
            let extent = method.extent(board, seq);
            if resent {
                if self.filled.len() == REMEMBERED {
                    self.filled.pop_front();
                }
                self.filled.push_back((seq, extent));
            } else {
                threshold = method.learn(extent, threshold);
            }
        });
        sender.threshold = threshold;
        (blocks, duplicate.is_some())
    }
}
