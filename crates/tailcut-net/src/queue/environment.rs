//! How full a queue can get: what decides whether a threshold on it can ever act.
//!
//! All amounts are compared in full packets, those that queues are made of: a queue that only acknowledgements could
//! bring to its threshold is no better than one without.

use crate::amount::{Amount, Limit};
use crate::switch::SwitchSpec;

/// What surrounds a queue.
#[derive(Debug, Clone)]
pub struct QueueEnvironment {
    /// What the link of the port holds instead of the kind's own limit.
    pub link_limit: Option<Limit>,
    /// Beyond what the port marks, where its link or a table says so.
    pub threshold: Option<Amount>,
    /// Bytes of a full packet on the wire.
    pub full_packet: u64,
    /// What the hosts' interfaces hold.
    pub nic_queue: Limit,
    /// The switches, whose ports may share memory.
    pub switch: SwitchSpec,
}

/// The most that a full packet which is admitted can find waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fullest {
    pub packets: u64,
    pub bytes: u64,
}

impl QueueEnvironment {
    /// What the port holds, whose kind has the limit `own`.
    pub(super) fn limit(&self, own: Limit) -> Limit {
        self.link_limit.unwrap_or(own)
    }

    /// In a queue of its own that holds `limit`.
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

    /// In the shared memory of a switch, at the only port that is busy.
    pub(super) fn shared(&self) -> Fullest {
        match self.switch.shared_buffer {
            Limit::AtMost(Amount::Bytes(_)) => {
                self.within(self.switch.most_of_one_port(self.full_packet))
            }
            _ => self.port(Limit::Unlimited),
        }
    }

    /// The plan fields that decide it.
    pub(super) fn shared_in_words(&self) -> String {
        let SwitchSpec { shared_buffer, alpha, .. } = &self.switch;
        format!("switch.shared_buffer = \"{shared_buffer}\", switch.alpha = {alpha}")
    }

    /// Where so many bytes may wait, the arriving packet among them.
    fn within(&self, bytes: u64) -> Fullest {
        let bytes = bytes.saturating_sub(self.full_packet);
        Fullest { packets: bytes / self.full_packet.max(1), bytes }
    }
}
