//! Explicit congestion notification at the sender (RFC 3168 section 6.1.2).

use super::{CongestionState, Sender};
use crate::transport::tcp::TcpSpec;

impl Sender {
    /// Handles an ACK's echo on an ECN-capable connection: at most one reduction per window of
    /// data, and none where a loss has reduced the window already.
    #[cold]
    pub(super) fn on_ecn_feedback(&mut self, spec: &TcpSpec, ack: u32, echo: bool) {
        let bytes = self.offset(spec, ack) - self.offset(spec, self.una);
        self.congestion.on_ecn_feedback(bytes, echo, ack, self.board.end());
        self.pauses = echo && self.congestion.echo_pauses_growth();
        if !echo || !self.congestion.answers_echoes() {
            return;
        }
        let undisturbed = matches!(self.state, CongestionState::Open | CongestionState::Disorder);
        let reduces = undisturbed && ack >= self.reduced_until;
        if let Some(method) = &mut self.reordering {
            method.congestion_echoed(reduces);
        }
        if !reduces {
            return;
        }
        let usable = self.usable(spec);
        self.window.ssthresh = self.congestion.on_echo(&usable, spec.mss.0);
        self.window.cwnd = self.window.ssthresh;
        self.reduced();
        self.counters.echo_reductions += 1;
    }

    /// The window was reduced for what is in flight now: an echo by its last ACK still speaks of
    /// it. The receiver is told, whatever the reason was, so that it echoes no more marks of the
    /// time before.
    pub(super) fn reduced(&mut self) {
        self.reduced_until = self.board.end() + 1;
        self.owes_cwr = self.ecn;
    }

    /// Whether the new segment in hand carries CWR; it is asked once for each.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.owes_cwr)
    }
}
