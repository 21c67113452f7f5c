//! The fullest state of a queue, which decides whether a threshold on it can ever act.
//!
//! All amounts are compared in full packets: a threshold that only acknowledgements could reach is
//! as good as none.

use crate::amount::{Amount, Limit};
use crate::switch::SwitchSpec;

/// Limits and thresholds around a queue.
#[derive(Debug, Clone)]
pub struct QueueEnvironment {
    /// Limit of the port's link, which replaces the kind's own limit.
    pub link_limit: Option<Limit>,
    /// Marking threshold of the port's link or table, if any.
    pub threshold: Option<Amount>,
    /// Bytes of a full packet on the wire.
    pub full_packet: u64,
    /// Limit of the hosts' interfaces.
    pub nic_queue: Limit,
    /// The switches, whose ports may share memory.
    pub switch: SwitchSpec,
}

/// The most that an admitted full packet can find waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fullest {
    pub packets: u64,
    pub bytes: u64,
}

impl QueueEnvironment {
    /// Returns the limit of the port; `own` is the limit of its queue kind.
    pub(super) fn limit(&self, own: Limit) -> Limit {
        self.link_limit.unwrap_or(own)
    }

    /// Returns the most that an admitted full packet finds waiting in a queue of its own with this
    /// `limit`.
    pub(super) fn port(&self, limit: Limit) -> Fullest {
        match limit {
            Limit::Unlimited => Fullest { packets: u64::MAX, bytes: u64::MAX },
            Limit::AtMost(Amount::Packets(limit)) => {
                let packets = u64::from(limit).saturating_sub(1);
                Fullest { packets, bytes: packets * self.full_packet }
            }
            Limit::AtMost(Amount::Bytes(limit)) => self.within(limit),
        }
    }

    /// Returns the same for the shared memory of a switch, if only one port is busy.
    pub(super) fn shared(&self) -> Fullest {
        match self.switch.shared_buffer {
            Limit::AtMost(Amount::Bytes(_)) => {
                self.within(self.switch.most_of_one_port(self.full_packet))
            }
            _ => self.port(Limit::Unlimited),
        }
    }

    /// Returns the plan fields that decide it, with their values.
    pub(super) fn shared_in_words(&self) -> String {
        let SwitchSpec { shared_buffer, alpha, .. } = &self.switch;
        format!("switch.shared_buffer = \"{shared_buffer}\", switch.alpha = {alpha}")
    }

    /// Returns the most that can wait if `bytes` may, the arriving packet included.
    fn within(&self, bytes: u64) -> Fullest {
        let bytes = bytes.saturating_sub(self.full_packet);
        Fullest { packets: bytes / self.full_packet.max(1), bytes }
    }
}
