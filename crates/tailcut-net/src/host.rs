//! Hosts: the network interface and what frames cost on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use crate::amount::Limit;
use crate::component::SpecError;
use crate::queue::check_limit;

/// Parameters of every host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostSpec {
    /// Limit of the host's own interface queue. With a limit a lone large flow drops its own
    /// packets unless the receive window is smaller: real hosts push back on the socket instead.
    pub nic_queue: Limit,
    /// Bytes that each packet occupies on the wire beyond its IP datagram
    /// (Ethernet header and FCS 18, preamble and gap 20; PPP as in ns-3 2).
    pub framing_overhead: Bytes,
    /// For so long at most an interface holds each packet back before it begins to send it, drawn
    /// evenly from a stream of the host's own; packets keep their order. Real hosts do so; without
    /// it senders of equal links stay in step for ever.
    pub jitter: Time,
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec { nic_queue: Limit::Unlimited, framing_overhead: Bytes(38), jitter: Time::ZERO }
    }
}

/// Frames with more than this around the datagram are a slip of the unit.
const MAX_FRAMING: u64 = 1_000;
/// No interface holds a packet longer.
const MAX_JITTER: Time = Time::from_ms(1_000);

impl HostSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When an interface could hold nothing, or framing dwarfs what it frames.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.framing_overhead.0 > MAX_FRAMING {
            let message = format!(
                "framing_overhead = \"{}\": at most {MAX_FRAMING}B per packet",
                self.framing_overhead
            );
            return Err(SpecError::new("host-framing-overhead", "framing_overhead", message)
                .hint("Ethernet costs \"38B\", preamble and gap included"));
        }
        if self.jitter > MAX_JITTER {
            let message = format!("jitter = \"{}\": at most {MAX_JITTER}", self.jitter);
            return Err(SpecError::new("host-jitter", "jitter", message)
                .hint("interfaces take a few microseconds, such as \"2us\""));
        }
        check_limit("host-nic-queue", "nic_queue", self.nic_queue)
    }
}
