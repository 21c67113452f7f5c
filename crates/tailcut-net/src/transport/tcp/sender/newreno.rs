//! Fast retransmit and NewReno fast recovery, without SACK (RFC 5681 3.2, RFC 6582, RFC 3042).

use tailcut_engine::Time;

use super::{CongestionState, Sender};
use crate::transport::life::owed;
use crate::transport::tcp::TcpSpec;

impl Sender {
    #[inline]
    pub(super) fn on_ack_newreno(&mut self, spec: &TcpSpec, now: Time, ack: u32) {
        if ack == self.una {
            return self.on_duplicate_newreno(spec);
        }
        let mss = spec.mss.0;
        let acked = self.offset(spec, ack) - self.offset(spec, self.una);
        let rtt = self.advance(spec, now, ack).rtt;
        if self.state != CongestionState::Recovery {
            if self.state == CongestionState::Disorder || self.una >= self.recover {
                self.state = CongestionState::Open;
            }
            self.duplicates = 0;
            self.grow(spec, now, acked, None, rtt);
            self.rearm(now);
        } else if ack >= self.recover {
            // Full acknowledgement (RFC 6582 step 3, first option).
            self.window.cwnd = self.window.ssthresh.min(self.flight(spec).max(mss) + mss);
            self.state = CongestionState::Open;
            self.duplicates = 0;
            self.rearm(now);
        } else {
            // Partial acknowledgement: the next hole is lost too; deflate.
            self.life.set_pending(owed::RESEND);
            self.window.cwnd = self.window.cwnd.saturating_sub(acked);
            if acked >= mss {
                self.window.cwnd += mss;
            }
            if !self.rearmed {
                self.rearmed = true;
                self.rearm(now);
            }
        }
    }

    fn on_duplicate_newreno(&mut self, spec: &TcpSpec) {
        if self.una == self.board.end() {
            return;
        }
        let mss = spec.mss.0;
        self.counters.duplicate_acks += 1;
        // Of what the last recovery or timeout covered, needless retransmissions may be the cause
        // (RFC 6582 step 2).
        let guarded = !spec.imitate.duplicates_after_timeout;
        let ended_here = self.una == self.recover && self.una > 0;
        if guarded && ended_here && self.state != CongestionState::Recovery {
            return;
        }
        self.duplicates += 1;
        if self.duplicates == 1 {
            self.limited_from = self.next;
        }
        match self.state {
            CongestionState::Recovery => self.window.cwnd += mss,
            // Until what the timeout lost is acknowledged, duplicate ACKs tell nothing new (RFC
            // 6582 step 1).
            CongestionState::Loss if guarded => {}
            CongestionState::Open | CongestionState::Disorder | CongestionState::Loss
                if self.duplicates >= self.threshold =>
            {
                // Segments sent by limited transmit do not count as flight (RFC 5681 3.2).
                let regular = self.limited_from.clamp(self.una, self.next);
                let flight = self.offset(spec, regular) - self.offset(spec, self.una);
                self.window.ssthresh = self.threshold_after_loss(spec, flight);
                self.window.cwnd = self.window.ssthresh + 3 * mss;
                self.enter_recovery();
                self.life.set_pending(owed::RESEND);
            }
            CongestionState::Open => self.state = CongestionState::Disorder,
            CongestionState::Disorder | CongestionState::Loss => {}
        }
    }

    /// Segments that limited transmit has allowed beyond the window (RFC 3042).
    #[inline]
    fn limited(&self, spec: &TcpSpec) -> u32 {
        if spec.limited_transmit { (self.threshold - 1).min(self.duplicates) } else { 0 }
    }

    #[inline]
    pub(super) fn next_by_window(&self, spec: &TcpSpec) -> Option<u32> {
        if self.next >= self.segments {
            return None;
        }
        self.fits_window(spec, self.payload(spec, self.next)).then_some(self.next)
    }

    /// Whether a segment of `payload` bytes may follow what is in flight.
    #[inline]
    pub(super) fn fits_window(&self, spec: &TcpSpec, payload: u64) -> bool {
        let wanted = self.flight(spec) + payload;
        let mut window = self.window.cwnd;
        if self.state == CongestionState::Disorder {
            window += u64::from(self.limited(spec)) * spec.mss.0;
        }
        wanted <= window.min(self.receive_window(spec))
    }
}
