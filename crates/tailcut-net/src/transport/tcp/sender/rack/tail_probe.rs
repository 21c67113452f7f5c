//! Tail loss probes (RFC 8985 section 7): the tail of a flight is probed before the retransmission timer expires.

use tailcut_engine::Time;

use crate::transport::life::owed;
use crate::transport::tcp::sender::{CongestionState, Sender};
use crate::transport::tcp::TcpSpec;

/// The probe timeout before any measurement (section 7.2).
const BLIND_PROBE: Time = Time::from_ms(1_000);

impl Sender {
    /// After an ACK, and after new data has left: when the tail is probed (section 7.2), not later than the retransmission
    /// timer would expire.
    #[cold]
    pub(in crate::transport::tcp::sender) fn schedule_probe(&mut self, now: Time) {
        let calm = matches!(self.state, CongestionState::Open | CongestionState::Disorder);
        let outstanding = self.board.end() - self.una;
        let wanted = calm
            && outstanding > 0
            && self.board.sacked() == 0
            && self.life.established()
            && self.life.deadline < Time::NEVER;
        let (smoothed, expires) = (self.rtt.smoothed(), self.life.deadline);
        let Some(rack) = self.rack() else { return };
        rack.probe_at = Time::NEVER;
        if wanted && rack.spec.tail_loss_probe && rack.probe.is_none() {
            let mut timeout = Time(2 * smoothed.0);
            if smoothed == Time::ZERO {
                timeout = BLIND_PROBE;
            } else if outstanding == 1 {
                timeout += rack.spec.max_ack_delay;
            }
            rack.probe_at = (now + timeout).min(expires);
        }
        self.set_wake();
    }

    /// Section 7.3: a probe leaves if a round trip was measured since the last.
    pub(super) fn probe_tail(&mut self) {
        let measured = self.rack().is_some_and(|rack| std::mem::take(&mut rack.measured));
        if measured {
            self.life.owe(owed::PROBE);
        }
    }

    /// The probe: new data if there is any, else the last segment once more, whatever the window says.
    #[cold]
    pub(in crate::transport::tcp::sender) fn tail_probe(&mut self, spec: &TcpSpec) -> Option<u32> {
        let end = self.board.end();
        let more = self.next < self.segments
            && self.flight(spec) + self.payload(spec, self.next) <= spec.receive_window.0;
        let (seq, again) = if more { (self.next, false) } else { (end.checked_sub(1)?, true) };
        if again && end == self.una {
            return None;
        }
        let probe = Some((end.max(seq + 1), again));
        self.rack()?.probe = probe;
        Some(seq)
    }

    /// Section 7.4: whether the probe has repaired a loss that nobody else has noticed.
    pub(super) fn answer_probe(&mut self, spec: &TcpSpec, advanced: bool) {
        let una = self.una;
        let Some(rack) = self.rack() else { return };
        let Some((end, again)) = rack.probe.filter(|(end, _)| una >= *end) else { return };
        let duplicate = rack.reported.is_some_and(|(_, reported)| reported == end);
        let bare = !advanced && !rack.blocks && rack.reported.is_none();
        if !again || duplicate || bare {
            rack.probe = None;
        } else if una > end {
            rack.probe = None;
            self.answer_repaired_loss(spec);
        }
    }

    /// A single loss was repaired: the window pays for it.
    fn answer_repaired_loss(&mut self, spec: &TcpSpec) {
        if matches!(self.state, CongestionState::Open | CongestionState::Disorder) {
            self.window.ssthresh = self.threshold_after_loss(spec, self.flight(spec));
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            self.reduced();
        }
    }
}
