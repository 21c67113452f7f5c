//! Step marking on the instantaneous queue, as DCTCP wants it (RFC 8257 section 3.1):
//! an ECN-capable packet that finds more than K waiting is marked, and so never
//! dropped before the queue is full. Packets that are not ECN-capable (SYNs, pure
//! ACKs) are queued like any other, not dropped at K as some switches do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limit, Arrival, Verdict};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of a marking queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// What may wait behind the packet being transmitted, which is not counted.
    pub limit: Limit,
    /// K: packets that find more than this waiting are marked (RepFlow: 5 % of a 100-packet buffer).
    pub threshold: Amount,
    /// The hosts' interfaces mark too, within `host.nic_queue`, as where every device gets the same queue (ns-3). Otherwise
    /// only switches do, and what a window holds beyond the path waits in the sender's own interface.
    pub hosts: bool,
}

impl Default for Ecn {
    fn default() -> Self {
        Ecn {
            limit: Limit::AtMost(Amount::Packets(100)),
            threshold: Amount::Packets(5),
            hosts: false,
        }
    }
}

impl Ecn {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        check_limit("ecn-limit", "limit", self.limit)?;
        if !never_passed(self.threshold, self.limit) {
            return Ok(());
        }
        let Ecn { threshold, limit, .. } = self;
        let message = format!("threshold = \"{threshold}\", limit = \"{limit}\": a queue that is full before it marks never marks");
        Err(SpecError::new("ecn-threshold", "threshold", message)
            .hint("give a threshold at least two below the limit; for a queue without marks write kind = \"drop-tail\""))
    }

    pub(super) fn check_hosts(&self, nic_queue: Limit) -> Result<(), SpecError> {
        if !self.hosts || !never_passed(self.threshold, nic_queue) {
            return Ok(());
        }
        let threshold = self.threshold;
        let message = format!(
            "hosts = true, threshold = \"{threshold}\", host.nic_queue = \"{nic_queue}\": an interface that is full before it marks never marks"
        );
        Err(SpecError::new("ecn-threshold", "hosts", message)
            .hint("give host.nic_queue at least two more than the threshold, or leave hosts out"))
    }
}

/// The packet that finds the limit waiting is dropped, so that none marked has found more than limit - 1.
fn never_passed(threshold: Amount, limit: Limit) -> bool {
    match (threshold, limit) {
        (Amount::Packets(k), Limit::AtMost(Amount::Packets(limit))) => k.saturating_add(1) >= limit,
        (Amount::Bytes(k), Limit::AtMost(Amount::Bytes(limit))) => k.saturating_add(1) >= limit,
        _ => false,
    }
}

/// Decides for one packet.
pub(super) fn admit(threshold: Amount, arrival: &Arrival) -> Verdict {
    let beyond = match threshold {
        Amount::Packets(k) => arrival.waiting > k,
        Amount::Bytes(k) => arrival.waiting_bytes > k,
    };
    if beyond && arrival.ecn_capable {
        Verdict::Mark
    } else {
        Verdict::Accept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(limit: Limit, threshold: Amount) -> Option<&'static str> {
        Ecn { limit, threshold, ..Ecn::default() }.check().err().map(|error| error.code)
    }

    #[test]
    fn a_threshold_that_the_queue_cannot_pass_is_refused() {
        let hundred = Limit::AtMost(Amount::Packets(100));
        assert_eq!(refusal(hundred, Amount::Packets(98)), None);
        assert_eq!(refusal(hundred, Amount::Packets(99)), Some("ecn-threshold"));
        let kilobytes = Limit::AtMost(Amount::Bytes(150_000));
        assert_eq!(refusal(kilobytes, Amount::Bytes(149_998)), None);
        assert_eq!(refusal(kilobytes, Amount::Bytes(149_999)), Some("ecn-threshold"));
    }

    #[test]
    fn so_is_one_that_no_marking_interface_can_pass() {
        let with = |hosts| Ecn { threshold: Amount::Packets(50), hosts, ..Ecn::default() };
        let short = Limit::AtMost(Amount::Packets(20));
        assert_eq!(with(true).check_hosts(short).map_err(|e| e.code), Err("ecn-threshold"));
        assert_eq!(with(true).check_hosts(Limit::Unlimited).map_err(|e| e.code), Ok(()));
        assert_eq!(with(false).check_hosts(short).map_err(|e| e.code), Ok(()));
    }

    #[test]
    fn an_unlimited_queue_takes_any_threshold() {
        assert_eq!(refusal(Limit::Unlimited, Amount::Packets(1_000_000)), None);
    }
}
