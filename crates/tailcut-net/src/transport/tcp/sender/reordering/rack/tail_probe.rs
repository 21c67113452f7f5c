//! Tail loss probes (RFC 8985 section 7): the tail of a flight is probed before the retransmission
//! timer expires.

use tailcut_engine::Time;

use super::Rack;
use crate::transport::life::owed;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::sender::{CongestionState, Sender};

/// The probe timeout before any measurement (section 7.2).
const BLIND_PROBE: Time = Time::from_ms(1_000);

impl Rack {
    /// After an ACK, and after new data has left: when the tail is probed (section 7.2), not later
    /// than the retransmission timer would expire.
    pub(super) fn schedule_probe(&mut self, sender: &Sender, now: Time) {
        let calm = matches!(sender.state, CongestionState::Open | CongestionState::Disorder);
        let outstanding = sender.board.end() - sender.una;
        let wanted = calm
            && outstanding > 0
            && sender.board.sacked() == 0
            && sender.life.is_established()
            && sender.life.deadline < Time::NEVER;
        self.probe_at = Time::NEVER;
        if wanted && self.spec.tail_loss_probe && self.probe.is_none() {
            let smoothed = sender.rtt.smoothed();
            let mut timeout = Time(2 * smoothed.0);
            if smoothed == Time::ZERO {
                timeout = BLIND_PROBE;
            } else if outstanding == 1 {
                timeout += self.spec.max_ack_delay;
            }
            self.probe_at = (now + timeout).min(sender.life.deadline);
            self.probes_tail = sender.next == sender.segments && !sender.endless;
        }
    }

    /// Section 7.3: a probe leaves if a round trip was measured since the last.
    pub(super) fn probe_tail(&mut self, sender: &mut Sender) {
        if std::mem::take(&mut self.measured) {
            sender.life.set_pending(owed::PROBE);
        }
    }

    /// The probe: new data if there is any, else the last segment once more, whatever the window
    /// says.
    pub(super) fn tail_probe(&mut self, sender: &Sender, spec: &TcpSpec) -> Option<u32> {
        let end = sender.board.end();
        let more = sender.has_more(spec);
        let (seq, again) = if more { (sender.next, false) } else { (end.checked_sub(1)?, true) };
        if again && end == sender.una {
            return None;
        }
        self.probe = Some((end.max(seq + 1), again));
        Some(seq)
    }

    /// Section 7.4: whether the probe has repaired a loss that nobody else has noticed.
    pub(super) fn answer_probe(&mut self, sender: &mut Sender, spec: &TcpSpec, advanced: bool) {
        let una = sender.una;
        let Some((end, again)) = self.probe.filter(|(end, _)| una >= *end) else { return };
        let duplicate = self.reported.is_some_and(|(_, reported)| reported == end);
        let bare = !advanced && !self.blocks && self.reported.is_none();
        if !again || duplicate || bare {
            self.probe = None;
        } else if una > end {
            self.probe = None;
            self.answer_repaired_loss(sender, spec);
        }
    }

    /// A single loss was repaired: the window pays for it, whatever reductions before it were
    /// worth.
    fn answer_repaired_loss(&mut self, sender: &mut Sender, spec: &TcpSpec) {
        if matches!(sender.state, CongestionState::Open | CongestionState::Disorder) {
            sender.window.ssthresh = sender.threshold_after_loss(spec, sender.flight(spec));
            sender.window.cwnd = sender.window.cwnd.min(sender.window.ssthresh);
            sender.reduced();
            self.before = None;
        }
    }
}
