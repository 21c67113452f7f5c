//! Step marking on the instantaneous queue, as DCTCP requires it (RFC 8257 section 3.1). An
//! ECN-capable packet that finds more than K waiting is marked, and never dropped before the queue
//! is full. Packets that are not ECN-capable (SYNs, pure ACKs) are queued like any other, not
//! dropped at K as some switches do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Rate;

use super::environment::{Fullest, QueueEnvironment};
use super::thresholds::Thresholds;
use super::{Admit, Arrival, Never, PortContext, PortQueue, QueueKind, Ties, Verdict, check_limit};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::topology::Graph;

/// Parameters of a marking queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// Most that may wait behind the packet in transmission, which is not counted.
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// K: packets that find more than this waiting are marked (RepFlow: 5 % of a 100-packet
    /// buffer). Either one for all ports, or one for each tier or rate of links: `{ "1Gbps" =
    /// "20packets", "10Gbps" = "65packets" }` (DCTCP, section 3.5).
    pub threshold: Thresholds,
    /// Whether the hosts' interfaces mark too, within `host.nic_queue`, as where every device gets
    /// the same queue (ns-3). Otherwise only switches mark, and what a window holds beyond the path
    /// waits in the sender's own interface.
    pub hosts: bool,
}

impl Default for Ecn {
    fn default() -> Self {
        Ecn {
            limit: Limit::AtMost(Amount::Packets(100)),
            ties: Ties::default(),
            threshold: Thresholds::One(Amount::Packets(5)),
            hosts: false,
        }
    }
}

impl QueueKind for Ecn {
    fn check(&self) -> Result<(), SpecError> {
        self.threshold.check()?;
        check_limit("ecn-limit", "limit", self.limit)
    }

    fn check_thresholds(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
        match around.threshold {
            Some(threshold) => self.check_threshold("", threshold, around),
            None => {
                let mut each = self.threshold.each().into_iter();
                each.try_for_each(|(key, threshold)| self.check_threshold(&key, threshold, around))
            }
        }
    }

    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        self.threshold.check_topology(graph)
    }

    fn threshold(&self, tier: &str, rate: Rate) -> Option<Amount> {
        self.threshold.at(tier, rate)
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn ties(&self) -> Ties {
        self.ties
    }

    fn marks_packets(&self) -> bool {
        true
    }
}

impl PortQueue for Ecn {
    type Admission = Threshold;
    type Schedule = Never;

    fn admission(&self, at: &PortContext) -> Option<Threshold> {
        let threshold = at.threshold.filter(|_| self.hosts || !at.host);
        threshold.map(Threshold)
    }
    fn schedule(&self, _: &PortContext) -> Option<Never> {
        None
    }
}

impl Ecn {
    /// Refuses a threshold that no queue can exceed. `key` is the path of its entry in a table,
    /// empty for a threshold of all ports.
    fn check_threshold(
        &self,
        key: &str,
        threshold: Amount,
        around: &QueueEnvironment,
    ) -> Result<(), SpecError> {
        let Ecn { limit, hosts, .. } = self;
        let limit = around.limit(*limit);
        let refuse = |field: &str, written: String, what: &str, hint: &str| {
            let message = format!(
                "threshold{key} = \"{threshold}\", {written}: {what} that is full before it marks never marks"
            );
            Err(SpecError::new("ecn-threshold", field, message).hint(hint))
        };
        if never_passed(threshold, &around.port(limit)) {
            let hint = "give a threshold at least two packets below the limit; for a queue without marks write kind = \"drop-tail\"";
            return refuse(
                &format!("threshold{key}"),
                format!("limit = \"{limit}\""),
                "a queue",
                hint,
            );
        }
        if never_passed(threshold, &around.shared()) {
            let written = around.shared_in_words();
            let hint = "give a lower threshold, or more switch.shared_buffer or switch.alpha";
            return refuse(&format!("threshold{key}"), written, "a queue", hint);
        }
        if *hosts && never_passed(threshold, &around.port(around.nic_queue)) {
            let written = format!("hosts = true, host.nic_queue = \"{}\"", around.nic_queue);
            let hint = "give host.nic_queue at least two packets more than the threshold, or leave hosts out";
            return refuse("hosts", written, "an interface", hint);
        }
        Ok(())
    }
}

/// Returns whether no admitted packet can find more than the threshold waiting.
fn never_passed(threshold: Amount, fullest: &Fullest) -> bool {
    match threshold {
        Amount::Packets(k) => u64::from(k) >= fullest.packets,
        Amount::Bytes(k) => k >= fullest.bytes,
    }
}

/// The marking threshold of one port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threshold(pub Amount);

impl Admit for Threshold {
    fn active_from_backlog(&self) -> Option<u32> {
        match self.0 {
            Amount::Packets(k) => Some(k),
            Amount::Bytes(_) => Some(0),
        }
    }

    fn counts_bytes(&self) -> bool {
        matches!(self.0, Amount::Bytes(_))
    }

    fn counts_marked(&self, _: bool) -> bool {
        false
    }

    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        let beyond = match self.0 {
            Amount::Packets(k) => arrival.waiting > k,
            Amount::Bytes(k) => arrival.waiting_bytes > k,
        };
        if beyond && arrival.ecn_capable { Verdict::Mark } else { Verdict::Accept }
    }

    fn on_overflow(&mut self, _: &Arrival) {}

    fn link_changed(&mut self, _: u64, _: Option<u64>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchSpec;

    fn around() -> QueueEnvironment {
        QueueEnvironment {
            link_limit: None,
            threshold: None,
            full_packet: 1_538,
            nic_queue: Limit::Unlimited,
            switch: SwitchSpec::default(),
        }
    }

    fn refusal(limit: &str, threshold: &str) -> Option<&'static str> {
        let limit = limit.parse().expect("it is a limit");
        let threshold = Thresholds::One(threshold.parse().expect("it is an amount"));
        let spec = Ecn { limit, threshold, ..Ecn::default() };
        spec.check_thresholds(&around()).err().map(|error| error.code)
    }

    #[test]
    fn refuses_a_threshold_that_the_queue_cannot_exceed() {
        let refused = Some("ecn-threshold");
        assert_eq!(refusal("100packets", "98packets"), None);
        assert_eq!(refusal("100packets", "99packets"), refused);
        assert_eq!(refusal("150000B", "148461B"), None);
        assert_eq!(refusal("150000B", "148462B"), refused, "a full packet has to fit as well");
    }

    /// 99 full packets are 152,262 B; 150,000 B hold 97 of them.
    #[test]
    fn compares_a_threshold_with_its_limit_in_full_packets() {
        let refused = Some("ecn-threshold");
        assert_eq!(refusal("100packets", "152261B"), None);
        assert_eq!(refusal("100packets", "152262B"), refused);
        assert_eq!(refusal("100packets", "1MB"), refused);
        assert_eq!(refusal("150KB", "95packets"), None);
        assert_eq!(refusal("150KB", "96packets"), refused);
    }

    #[test]
    fn refuses_a_threshold_above_what_a_marking_nic_queue_holds() {
        let with = |hosts, nic_queue| {
            let spec =
                Ecn { threshold: Thresholds::One(Amount::Packets(50)), hosts, ..Ecn::default() };
            spec.check_thresholds(&QueueEnvironment { nic_queue, ..around() })
                .map_err(|e| (e.code, e.field))
        };
        let short = Limit::AtMost(Amount::Packets(20));
        assert_eq!(with(true, short), Err(("ecn-threshold", "hosts".into())));
        assert_eq!(with(true, Limit::Unlimited), Ok(()));
        assert_eq!(with(false, short), Ok(()));
    }

    /// One port gets half of 100 KB: 32 full packets, the arriving one included.
    #[test]
    fn refuses_a_threshold_above_one_ports_share_of_the_shared_buffer() {
        let with = |threshold: &str, alpha| {
            let shared_buffer = Limit::AtMost(Amount::Bytes(100_000));
            let switch = SwitchSpec { shared_buffer, alpha, pfc: None };
            let threshold = Thresholds::One(threshold.parse().expect("it is an amount"));
            let spec = Ecn { threshold, limit: Limit::Unlimited, ..Ecn::default() };
            spec.check_thresholds(&QueueEnvironment { switch, ..around() }).map_err(|e| e.code)
        };
        assert_eq!(with("300packets", 1.0), Err("ecn-threshold"));
        assert_eq!(with("31packets", 1.0), Ok(()));
        assert_eq!(with("32packets", 1.0), Err("ecn-threshold"));
        assert_eq!(with("49KB", 1.0), Ok(()));
        assert_eq!(with("50KB", 1.0), Err("ecn-threshold"));
        assert_eq!(with("50KB", 2.0), Ok(()));
    }

    #[test]
    fn an_unlimited_queue_takes_any_threshold() {
        assert_eq!(refusal("unlimited", "1000000packets"), None);
    }
}
