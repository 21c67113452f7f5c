//! ns-3's sender without selective acknowledgements, in place of RFC 6582: it keeps a scoreboard by
//! guesses, leaves the window alone in recovery and compares it with what the scoreboard leaves in
//! the network (docs/validation/ns3.md follows the logs). Three of its rules send much again that
//! has arrived:
//!
//! - Guesses outlive the recovery or the disorder that they were made in. When the cumulative ACK
//!   stops at a segment that was guessed to have arrived, that segment is lost: one needless
//!   retransmission for each ACK, and the next duplicate ACK begins a recovery.
//! - Duplicate ACKs of the very segment at which the last recovery or timeout ended count (RFC 6582
//!   step 2 leaves them out, because needless retransmissions cause them).
//! - After a timeout everything outstanding is sent again as the window allows.

use tailcut_engine::Time;

use super::{CongestionState, Sender};
use crate::transport::life::owed;
use crate::transport::tcp::{Close, TcpSpec};

impl Sender {
    pub(super) fn on_ack_guessing(&mut self, spec: &TcpSpec, now: Time, ack: u32) {
        if ack == self.una {
            return self.on_duplicate_guessing(spec);
        }
        let una = self.una;
        let acked = self.offset(spec, ack) - self.offset(spec, una);
        let rtt = self.advance(spec, now, ack).rtt;
        self.board.correct_guesses();
        self.duplicates = 0;
        match self.state {
            CongestionState::Recovery if ack < self.recover => {
                self.board.lose_first();
                self.life.set_pending(owed::RESEND);
                if !std::mem::replace(&mut self.rearmed, true) {
                    self.rearm(now);
                }
                return;
            }
            CongestionState::Recovery => {
                self.window.cwnd = self.window.ssthresh;
                self.grow_by_segments(spec, now, acked, ack - una, rtt);
            }
            // Of what ends the loss only what was sent since opens the window.
            CongestionState::Loss if ack >= self.recover => {
                self.grow_by_segments(spec, now, acked, ack - self.recover, rtt);
            }
            _ => self.grow_by_segments(spec, now, acked, ack - una, rtt),
        }
        if self.state != CongestionState::Loss || ack >= self.recover {
            self.state = CongestionState::Open;
        }
        self.rearm(now);
    }

    fn on_duplicate_guessing(&mut self, spec: &TcpSpec) {
        if self.una == self.board.end() {
            return;
        }
        self.counters.duplicate_acks += 1;
        match self.state {
            CongestionState::Loss => {}
            CongestionState::Recovery => self.board.guess_arrival(),
            CongestionState::Open | CongestionState::Disorder => {
                self.state = CongestionState::Disorder;
                self.duplicates += 1;
                let enough = self.duplicates == self.threshold && self.una >= self.recover;
                let corrected = self.board.sacked() > 0 && self.board.first_is_lost();
                if enough || corrected {
                    self.begin_guessing(spec);
                } else if spec.limited_transmit {
                    self.board.guess_arrival();
                }
            }
        }
    }

    fn begin_guessing(&mut self, spec: &TcpSpec) {
        self.board.guess_arrival();
        self.board.lose_first();
        // The first segment counts as in the network once more.
        let flight = self.pipe(spec) + spec.mss.0;
        self.window.ssthresh = self.threshold_after_loss(spec, flight);
        self.window.cwnd = self.window.ssthresh;
        self.enter_recovery();
        self.life.set_pending(owed::RESEND);
    }

    /// In slow start an ACK of several segments opens the window by one, and what is left of it
    /// counts in congestion avoidance if that has been reached.
    pub(super) fn grow_by_segments(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        acked: u64,
        segments: u32,
        rtt: Option<Time>,
    ) {
        if segments == 0 {
            return;
        }
        let slow_start = self.window.cwnd < self.window.ssthresh;
        self.grow(spec, now, acked, None, rtt);
        let reached = slow_start && self.window.cwnd >= self.window.ssthresh;
        if reached && segments > 1 && self.congestion.grows_twice_in_ns3() {
            self.grow(spec, now, acked, None, rtt);
        }
    }

    /// Returns the next lost segment, or else new data, as far as the window exceeds the estimated
    /// pipe. After its FIN a sender without duplicate ACKs sends nothing.
    pub(super) fn next_by_guesses(&mut self, spec: &TcpSpec) -> Option<u32> {
        let all_sent = self.next == self.segments;
        if all_sent && self.state == CongestionState::Open && spec.close == Close::Fin {
            return None;
        }
        let room = self.window.cwnd.min(self.receive_window(spec)).saturating_sub(self.pipe(spec));
        if room == 0 {
            return None;
        }
        let seq = match self.board.next_lost() {
            Some(lost) => lost,
            None if all_sent => return None,
            None => {
                let outstanding = self.flight(spec) + self.payload(spec, self.next);
                if outstanding > self.receive_window(spec) {
                    return None;
                }
                self.next
            }
        };
        (self.payload(spec, seq) <= room).then_some(seq)
    }
}
