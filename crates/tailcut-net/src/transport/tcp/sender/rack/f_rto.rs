//! F-RTO (RFC 5682 section 3.1): whether what a timeout thought lost arrives after all.

use crate::transport::tcp::sender::Sender;
use crate::transport::tcp::TcpSpec;

/// Where F-RTO is after a timeout (RFC 5682 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The timeout is believed.
    None,
    /// Step 2: the first segment was sent again; its ACK is awaited.
    Waiting,
    /// Step 3: so many new segments may leave, and the next ACK decides. What was sent ends here (`RecoveryPoint`).
    Trying { left: u32, recovery_point: u32 },
}

impl Sender {
    /// F-RTO's steps 2 and 3, for an ACK after a timeout.
    pub(super) fn doubt_timeout(&mut self, spec: &TcpSpec, advanced: bool) {
        let (una, recover, mss) = (self.una, self.recover, spec.mss.0);
        let (end, sacked_end) = (self.board.end(), self.board.sacked_end());
        let more = self.next < self.segments
            && self.flight(spec) + self.payload(spec, self.next) <= spec.receive_window.0;
        let Some(rack) = self.rack() else { return };
        let delivered = rack.delivered > 0;
        let most = match rack.doubt {
            Doubt::Waiting if advanced && una >= recover => {
                rack.doubt = Doubt::None;
                2
            }
            Doubt::Waiting if advanced && more => {
                rack.doubt = Doubt::Trying { left: 2, recovery_point: end };
                return;
            }
            Doubt::Waiting if advanced => {
                rack.doubt = Doubt::None;
                return;
            }
            Doubt::None | Doubt::Waiting => return,
            Doubt::Trying { recovery_point, .. } => {
                rack.doubt = Doubt::None;
                let beyond = una > recovery_point || sacked_end > recovery_point;
                if !beyond && delivered {
                    return self.rack_restore();
                }
                3
            }
        };
        self.window.cwnd = self.window.cwnd.min(most * mss);
    }

    /// What may leave while a timeout is doubted; none where it is not.
    #[cold]
    pub(in crate::transport::tcp::sender) fn next_in_doubt(
        &mut self,
        spec: &TcpSpec,
    ) -> Option<Option<u32>> {
        let una = self.una;
        let first = self.board.first_is_lost() && !self.board.first_is_resent();
        let more = self.next < self.segments
            && self.flight(spec) + self.payload(spec, self.next) <= spec.receive_window.0;
        let next = self.next;
        match &mut self.rack()?.doubt {
            Doubt::None => None,
            Doubt::Waiting => Some(first.then_some(una)),
            Doubt::Trying { left, .. } if *left > 0 && more => {
                *left -= 1;
                Some(Some(next))
            }
            Doubt::Trying { .. } => Some(None),
        }
    }
}
