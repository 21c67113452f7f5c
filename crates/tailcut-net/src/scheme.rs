//! A scheme: transport, queue, balancer and replication, and which of them make sense together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::balance::BalanceSpec;
use crate::component::SpecError;
use crate::interface::InterfaceSpec;
use crate::queue::{QueueSpec, TransportFeatures};
use crate::replicate::ReplicateSpec;
use crate::topology::Graph;
use crate::transport::TransportSpec;

/// A scheme: everything that the papers vary against each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheme {
    /// The transport of every flow.
    pub transport: TransportSpec,
    /// The queue of every switch port.
    pub queue: QueueSpec,
    /// The choice among equal-cost paths.
    pub balance: BalanceSpec,
    /// The replication of flows.
    pub replicate: ReplicateSpec,
    /// The choice of the interface of hosts with several.
    #[serde(skip_serializing_if = "InterfaceSpec::is_default")]
    pub interface: InterfaceSpec,
}

impl Scheme {
    /// A queue that schedules by priority needs a transport that stamps one, and one that trims
    /// another that hears of it.
    ///
    /// # Errors
    /// When every packet would have the same priority, or a trimmed packet would be taken for
    /// another.
    pub fn check_priorities(&self) -> Result<(), SpecError> {
        let priorities = self.transport.stamps_priorities();
        let hears_headers = self.transport.accepts_trimmed();
        self.queue.check_packets(TransportFeatures { priorities, hears_headers })
    }

    /// Transports that wait for marks need a queue that marks.
    ///
    /// # Errors
    /// When DCTCP or ECN meets a queue that only drops: no mark would ever come.
    pub fn check_marks(&self) -> Result<(), SpecError> {
        let Some((field, who)) = self.transport.marks_requirement() else { return Ok(()) };
        if self.queue.marks_packets() {
            return Ok(());
        }
        let message = format!("{who} reacts to marks, and the queue never sets any");
        Err(SpecError::new("ecn-needs-marks", field, message)
            .hint("write queue = { kind = \"ecn\" } as well, or { kind = \"red\", mark = true }"))
    }

    /// Replication copies TCP connections.
    ///
    /// # Errors
    /// When a transport spreads a flow over connections of its own, or shares by priorities that
    /// copies would distort.
    pub fn check_replication(&self) -> Result<(), SpecError> {
        if self.replicate == ReplicateSpec::None {
            return Ok(());
        }
        let Some(reason) = self.transport.replication_conflict() else { return Ok(()) };
        let message = format!("replication goes with tcp: {reason}");
        Err(SpecError::new("replicate-transport", "kind", message)
            .hint("write replicate = { kind = \"none\" }, or transport = { kind = \"tcp\" } for every flow"))
    }
}

impl Scheme {
    /// Hosts with several interfaces go with switches that do not need one link per host.
    ///
    /// # Errors
    /// Names the section, and the parameter that needs hosts with one interface.
    pub fn check_interfaces(&self, graph: &Graph) -> Result<(), (&'static str, SpecError)> {
        if graph.attachment.is_single() {
            return Ok(());
        }
        let refuse = |section, what: &str, hint: &str| {
            let message = format!("{what}: not simulated for hosts with several interfaces");
            Err((section, SpecError::new("interface-single", "kind", message).hint(hint)))
        };
        let (BalanceSpec::Ecmp(_)
        | BalanceSpec::Spray(_)
        | BalanceSpec::RoundRobin(_)
        | BalanceSpec::Flowlet(_)) = &self.balance
        else {
            let what = "switches that know the one edge switch of each host";
            return refuse("balance", what, "write ecmp, spray, round-robin or flowlet");
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn scheme(parts: Value) -> Scheme {
        serde_json::from_value(parts).expect("it is a scheme")
    }

    fn marks(transport: Value, queue: Value) -> Result<(), &'static str> {
        scheme(json!({ "transport": transport, "queue": queue }))
            .check_marks()
            .map_err(|error| error.code)
    }

    #[test]
    fn an_ecn_transport_needs_a_marking_queue() {
        let dctcp = json!({ "kind": "tcp", "congestion": { "kind": "dctcp" } });
        let mixed = json!({ "kind": "mixed", "parts": [
            { "transport": { "kind": "tcp" } }, { "transport": dctcp }
        ]});
        for transport in [dctcp, json!({ "kind": "tcp", "ecn": true }), mixed] {
            for queue in [
                json!({ "kind": "drop-tail" }),
                json!({ "kind": "red" }),
                json!({ "kind": "red", "mark": false }),
                json!({ "kind": "selective-red" }),
                json!({ "kind": "pfabric" }),
            ] {
                assert_eq!(marks(transport.clone(), queue), Err("ecn-needs-marks"), "{transport}");
            }
            assert_eq!(marks(transport.clone(), json!({ "kind": "ecn" })), Ok(()));
            assert_eq!(marks(transport, json!({ "kind": "red", "mark": true })), Ok(()));
        }
        assert_eq!(marks(json!({ "kind": "tcp" }), json!({ "kind": "red" })), Ok(()));
    }

    #[test]
    fn the_hint_suggests_mark_true_for_red() {
        let transport = json!({ "kind": "tcp", "ecn": true });
        let error = scheme(json!({ "transport": transport, "queue": { "kind": "red" } }))
            .check_marks()
            .expect_err("it does not mark");
        assert!(error.hint.is_some_and(|hint| hint.contains("mark = true")));
    }

    fn replicated(kinds: &[&str]) -> Result<(), String> {
        let parts: Vec<_> = kinds
            .iter()
            .map(|kind| match *kind {
                "cubic" => json!({ "kind": "tcp", "congestion": { "kind": "cubic" } }),
                kind => json!({ "kind": kind }),
            })
            .map(|transport| json!({ "transport": transport }))
            .collect();
        let transport = json!({ "kind": "mixed", "parts": parts });
        scheme(json!({ "transport": transport, "replicate": { "kind": "repflow" } }))
            .check_replication()
            .map_err(|error| format!("{}: {}", error.code, error.message))
    }

    #[test]
    fn a_mixture_is_replicated_if_every_part_is_tcp() {
        assert_eq!(replicated(&["tcp", "cubic"]), Ok(()));
        for other in ["mptcp", "mmptcp"] {
            let refusal = replicated(&["tcp", other]).expect_err("subflows carry parts");
            assert!(refusal.starts_with("replicate-transport: "), "{refusal}");
            assert!(refusal.contains("in this mixture, a multipath flow"), "{refusal}");
        }
    }
}
