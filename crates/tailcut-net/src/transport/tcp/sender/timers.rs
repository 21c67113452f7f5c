//! The timers of a sender: its deadlines, and what it does when they expire (RFC 6298, RFC 5681
//! section 3.1).

use tailcut_engine::Time;

use super::{CongestionState, Sender};
use crate::trace::trace;
use crate::transport::Timer;
use crate::transport::life::{ConnectionState, owed};
use crate::transport::tcp::{Recovery, TcpSpec};

impl Sender {
    /// Returns the time at which [`Sender::on_timer`] is to be called.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.life.deadline.min(self.wake)
    }

    /// Returns the timer of an established connection that expires first.
    pub fn timer(&self) -> Timer {
        if self.life.deadline <= self.wake {
            Timer::Retransmission
        } else if self.paced_until() <= self.wake {
            Timer::Pacing
        } else {
            self.method_waits_for()
        }
    }

    /// Fires the timers that are due by now. Returns true where the one that opens connections and
    /// retransmits is among them.
    pub fn on_timer(&mut self, spec: &TcpSpec, now: Time) -> bool {
        if self.wake <= now {
            self.on_wake(spec, now);
        }
        let expired = self.life.deadline <= now;
        if expired {
            self.on_expiry(spec, now);
        }
        expired
    }

    #[cold]
    fn on_wake(&mut self, spec: &TcpSpec, now: Time) {
        if self.method_wakes() <= now {
            self.wake_method(spec, now);
        }
        self.pause_pacing();
        self.set_wake();
    }

    pub(super) fn set_wake(&mut self) {
        self.wake = self.paced_until().min(self.method_wakes());
    }

    fn on_expiry(&mut self, spec: &TcpSpec, now: Time) {
        self.life.clear_pending(owed::SILENCE);
        match self.life.phase() {
            ConnectionState::Closed => self.life.open(),
            ConnectionState::SynSent => {
                self.counters.timeouts += 1;
                if self.life.syn_tries > spec.syn_retries {
                    return self.life.give_up();
                }
                self.rtt.back_off(spec);
                self.note_handshake_timeout(now);
                self.life.set_pending(owed::SYN);
            }
            ConnectionState::Established => self.on_timeout(spec, now),
            ConnectionState::Done | ConnectionState::Aborted => {
                return self.life.deadline = Time::NEVER;
            }
        }
        self.life.deadline = now + self.rtt.rto();
    }

    /// RFC 5681 section 3.1 and RFC 6298 section 5.
    fn on_timeout(&mut self, spec: &TcpSpec, now: Time) {
        self.counters.timeouts += 1;
        trace!("retransmission timeout: segment {} is not acknowledged", self.una);
        if self.reordering.is_some() {
            self.begin_timeout(spec);
        }
        // Held constant while the timer resends one segment again and again (equation 4).
        if spec.imitate.timeout_halves_anew || self.timed_out != Some(self.una) {
            self.timed_out = Some(self.una);
            let flight = match spec.recovery {
                Recovery::SackPrr if spec.reduces_window() => self.window.cwnd,
                Recovery::Newreno if !spec.guesses() => self.flight(spec),
                Recovery::Newreno | Recovery::SackPrr => self.pipe(spec),
            };
            let interrupts = spec.reduces_window() && self.state == CongestionState::Recovery;
            if !interrupts {
                let usable = self.usable(spec);
                self.window.ssthresh = self.congestion.on_timeout(&usable, flight, spec.mss.0);
            }
        }
        self.rtt.back_off(spec);
        self.window.cwnd = spec.mss.0;
        self.state = CongestionState::Loss;
        self.recover = self.board.end();
        self.reduced();
        self.duplicates = 0;
        self.life.clear_pending(owed::RESEND | owed::NEXT | owed::PROBE);
        match spec.recovery {
            Recovery::Newreno if spec.guesses() => self.board.lose_all_and_guesses(),
            Recovery::Newreno => self.next = self.una,
            Recovery::SackPrr => {
                self.lose_by_timeout(spec, now);
                if spec.imitate.go_back_n {
                    self.board.lose_all_and_guesses();
                }
            }
        }
        if self.senses.is_some() {
            self.tell_timeout(spec, now);
        }
    }

    /// Restarts the retransmission timer (RFC 6298 5.2, 5.3).
    #[inline]
    pub(super) fn rearm(&mut self, now: Time) {
        self.life.deadline =
            if self.una == self.board.end() { Time::NEVER } else { now + self.rtt.rto() };
    }
}
