//! A scoreboard without selective acknowledgements, as ns-3 keeps it: each duplicate ACK says that
//! one segment has left the network, and the guess is that it was the first behind the gap. The
//! guesses stand in a row from the second outstanding segment on.

use super::{LOST, RESENT, SACKED, Scoreboard};

impl Scoreboard {
    /// A duplicate ACK: one segment more has arrived, unless the guesses have reached the end of
    /// what was sent.
    pub fn guess_arrival(&mut self) {
        let next = self.base + 1 + self.sacked;
        self.mark(next, next + 1);
    }

    /// The first outstanding segment was lost, and so was what was sent again in its place.
    pub fn lose_first(&mut self) {
        self.lose_again(self.base);
        self.mark_first_lost();
    }

    /// The cumulative ACK has stopped at a segment that was guessed to have arrived: the guess
    /// moves to the end of the row, and the segment is lost.
    pub fn correct_guesses(&mut self) {
        let Some(first) = self.entries.front_mut().filter(|first| **first & SACKED != 0) else {
            return;
        };
        *first &= !SACKED;
        self.sacked -= 1;
        self.sacked_above -= u32::from(self.base >= self.lost_below);
        self.guess_arrival();
        self.lose_first();
    }

    /// Takes everything for lost after a timeout, whatever was guessed or reported to have arrived.
    pub fn lose_all_and_guesses(&mut self) {
        for entry in &mut self.entries {
            *entry &= !(SACKED | LOST | RESENT);
        }
        self.sacked = 0;
        self.mark_all_lost();
    }
}
