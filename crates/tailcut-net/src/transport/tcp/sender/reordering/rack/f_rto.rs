//! F-RTO (RFC 5682 section 3.1): whether what a timeout thought lost arrives after all.

use super::Rack;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::sender::Sender;

/// The step of F-RTO after a timeout (RFC 5682 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FRtoState {
    /// The timeout is believed.
    None,
    /// Step 2: the first segment was sent again; its ACK is awaited.
    Waiting,
    /// Step 3: so many new segments may leave, and the next ACK decides. What was sent ends here
    /// (`RecoveryPoint`).
    Trying { left: u32, recovery_point: u32 },
}

impl Rack {
    /// F-RTO's steps 2 and 3, for an ACK after a timeout.
    pub(super) fn doubt_timeout(&mut self, sender: &mut Sender, spec: &TcpSpec, advanced: bool) {
        let (una, recover, mss) = (sender.una, sender.recover, spec.mss.0);
        let (end, sacked_end) = (sender.board.end(), sender.board.sacked_end());
        let more = sender.has_more(spec);
        let most = match self.doubt {
            FRtoState::Waiting if advanced && una >= recover => {
                self.doubt = FRtoState::None;
                2
            }
            FRtoState::Waiting if advanced && more => {
                self.doubt = FRtoState::Trying { left: 2, recovery_point: end };
                return;
            }
            FRtoState::Waiting if advanced => {
                self.doubt = FRtoState::None;
                return;
            }
            FRtoState::None | FRtoState::Waiting => return,
            FRtoState::Trying { recovery_point, .. } => {
                self.doubt = FRtoState::None;
                let beyond = una > recovery_point || sacked_end > recovery_point;
                if !beyond && self.delivered > 0 {
                    return self.restore(sender);
                }
                3
            }
        };
        sender.window.cwnd = sender.window.cwnd.min(most * mss);
    }

    /// Returns what may leave while a timeout is in doubt; `None` if none is.
    pub(super) fn next_in_doubt(&mut self, sender: &Sender, spec: &TcpSpec) -> Option<Option<u32>> {
        match &mut self.doubt {
            FRtoState::None => None,
            FRtoState::Waiting => {
                let first = sender.board.first_is_lost() && !sender.board.first_is_resent();
                Some(first.then_some(sender.una))
            }
            FRtoState::Trying { left, .. } if *left > 0 && sender.has_more(spec) => {
                *left -= 1;
                Some(Some(sender.next))
            }
            FRtoState::Trying { .. } => Some(None),
        }
    }
}
