//! Calls of the method that tells reordering from loss ([`super::reordering`]), if the sender has
//! one.

use tailcut_engine::Time;

use super::reordering::{LossDetector, LossVerdict, SendChoice};
use super::{CongestionState, Sender};
use crate::packet::SackBlocks;
use crate::transport::Timer;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::options::end_of_tick;

impl Sender {
    /// The method answers, with the sender in its hands; nothing where a fixed threshold tells loss
    /// from reordering.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut dyn LossDetector, &mut Sender) -> T,
    ) -> Option<T> {
        let mut method = self.reordering.take()?;
        let answer = question(&mut **method, self);
        self.reordering = Some(method);
        Some(answer)
    }

    /// Records the duration of a handshake without repetitions.
    pub(super) fn note_handshake(&mut self, rtt: Time) {
        if let Some(method) = &mut self.reordering {
            method.note_handshake(rtt);
        }
    }

    /// The ACK in hand echoes this timestamp.
    pub fn note_timestamp(&mut self, spec: &TcpSpec, now: Time, echoed: u32) {
        if let Some(method) = &mut self.reordering {
            method.note_echo(end_of_tick(spec.timestamp_tick, echoed, now));
        }
    }

    /// An ACK, before the scoreboard hears of it. Returns its blocks without a duplicate report.
    #[cold]
    pub(super) fn learn(&mut self, now: Time, ack: u32, blocks: &SackBlocks) -> SackBlocks {
        self.ask(|method, sender| method.before_ack(sender, now, ack, blocks)).unwrap_or(*blocks)
    }

    /// Judges the ACK in hand, once the scoreboard has read it.
    #[cold]
    pub(super) fn judge(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        from: u32,
        duplicate: bool,
    ) -> LossVerdict {
        self.ask(|method, sender| method.detect_losses(sender, spec, now, from, duplicate))
            .expect("there is a method")
    }

    /// The ACK in hand has had its effect.
    #[cold]
    pub(super) fn end_ack(&mut self, now: Time) {
        self.ask(|method, sender| method.ack_ends(sender, now));
        self.set_wake();
    }

    /// The first duplicate ACK has arrived.
    #[inline]
    pub(super) fn begin_disorder(&mut self, spec: &TcpSpec) {
        if self.reordering.is_some() {
            self.ask(|method, sender| method.disorder_begins(sender, spec));
        }
    }

    /// New data is acknowledged outside recovery. True where the method has set the window, which
    /// does not grow besides.
    #[inline]
    pub(super) fn disorder_ends(&mut self, spec: &TcpSpec) -> bool {
        self.state == CongestionState::Disorder
            && self.reordering.is_some()
            && self.ask(|method, sender| method.disorder_ends(sender, spec)) == Some(true)
    }

    /// A recovery is about to begin, by an ACK that has advanced or not. Whether it takes the first
    /// segment for lost.
    #[cold]
    pub(super) fn begin_with_first(&mut self, advanced: bool) -> bool {
        self.ask(|method, sender| method.recovery_begins(sender, advanced)).unwrap_or(true)
    }

    /// Returns what may leave while the window has this much room.
    #[cold]
    pub(super) fn choose(&mut self, spec: &TcpSpec, room: u64) -> SendChoice {
        self.ask(|method, sender| method.choose(sender, spec, room)).expect("there is a method")
    }

    /// The segment of a probe that is owed.
    #[cold]
    pub(super) fn next_probe(&mut self, spec: &TcpSpec) -> Option<u32> {
        self.ask(|method, sender| method.probe(sender, spec)).flatten()
    }

    /// A segment has left, `again` or for the first time.
    #[cold]
    pub(super) fn note_departure(&mut self, seq: u32, again: bool, now: Time) {
        self.ask(|method, sender| method.on_send(sender, seq, again, now));
        if !again {
            self.set_wake();
        }
    }

    /// The retransmission timer has expired, and nothing has changed yet.
    #[cold]
    pub(super) fn begin_timeout(&mut self, spec: &TcpSpec) {
        self.ask(|method, sender| method.timeout_begins(sender, spec));
    }

    /// Marks the segments that a timeout takes for lost, under selective acknowledgements.
    pub(super) fn lose_by_timeout(&mut self, spec: &TcpSpec, now: Time) {
        if self.ask(|method, sender| method.lose(sender, spec, now)).is_none() {
            self.board.mark_all_lost();
        }
    }

    /// Returns when the method's timer is due.
    pub(super) fn method_wakes(&self) -> Time {
        self.reordering.as_ref().map_or(Time::NEVER, |method| method.wake())
    }

    /// Returns what that timer is for.
    pub(super) fn method_waits_for(&self) -> Timer {
        self.reordering.as_ref().map_or(Timer::Reordering, |method| method.timer())
    }

    /// The method wakes.
    pub(super) fn wake_method(&mut self, spec: &TcpSpec, now: Time) {
        if self.ask(|method, sender| method.on_wake(sender, spec, now)) == Some(true) {
            // As if one more segment had been delivered (as Linux), so that the reduction begins.
            self.begin_sack_recovery(spec, spec.mss.0, false);
        }
    }

    /// The threshold for the ACK in hand. Where nothing more can be sent, so many duplicate ACKs
    /// may never come.
    #[cold]
    pub(super) fn threshold_in_reach(&self, spec: &TcpSpec) -> u32 {
        if self.has_more(spec) {
            return self.threshold;
        }
        let outstanding = self.board.end() - self.una;
        self.threshold.min((outstanding / 2).max(spec.dupack_threshold))
    }

    /// Whether there is new data that the receiver has room for.
    pub(super) fn has_more(&self, spec: &TcpSpec) -> bool {
        self.next < self.segments
            && self.flight(spec) + self.payload(spec, self.next) <= self.receive_window(spec)
    }
}
