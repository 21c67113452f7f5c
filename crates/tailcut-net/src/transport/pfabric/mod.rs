//! pFabric's minimal transport (Alizadeh et al., SIGCOMM 2013, section 4.2), for queues that
//! schedule and drop by priority: it starts at line rate, stamps every packet with the bytes its
//! flow still has to deliver, learns of losses by a short fixed timeout only, and probes with
//! single bytes when it is starved.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod wire;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

pub use receiver::PfabricReceiver;
pub use sender::PfabricSender;

use super::Transport;
use super::custom_endpoints::{CustomEndpoints, one_by_one};
use super::tcp::{TcpSpec, WireSizes};
use crate::component::SpecError;
use crate::topology::Graph;

/// Parameters of pFabric's transport. Windows count packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PfabricSpec {
    /// Payload bytes of a full segment.
    pub mss: Bytes,
    /// Window after the handshake, about one bandwidth-delay product. At 1 Gbps and 32 us of
    /// propagation over 12 links a full packet and its ACK take 110 us: 9 packets (reference codes:
    /// 12 and 70 at 10 Gbps).
    pub initial_window: u32,
    /// The window grows no further. Beyond a bandwidth-delay product it only fills the sender's own
    /// interface (reference code: 15).
    pub max_window: u32,
    /// Retransmission timeout, fixed and without back-off. The paper wants about three round trips
    /// (reference codes: 45 us and 250 us at 10 Gbps, 3 and 17 of them), which is 330 us here; but
    /// packets that merely wait behind better ones are then resent too. From 1 ms on a bottleneck
    /// comes within 10 % of shortest remaining first.
    pub rto: Time,
    /// After so many timeouts in a row the flow is starved: it sends one byte per timeout until it
    /// is heard.
    pub probe_after: u32,
}

impl Default for PfabricSpec {
    fn default() -> Self {
        PfabricSpec {
            mss: Bytes(1460),
            initial_window: 12,
            max_window: 15,
            rto: Time::from_ms(1),
            probe_after: 5,
        }
    }
}

/// Larger windows are slips: they only fill the sender's own interface.
const MAX_WINDOW: u32 = 1 << 20;

impl Transport for PfabricSpec {
    fn check(&self) -> Result<(), SpecError> {
        if self.initial_window == 0 || self.max_window < self.initial_window {
            let message = format!(
                "initial_window = {} and max_window = {}: the first is at least 1 packet and at most the second",
                self.initial_window, self.max_window
            );
            return Err(SpecError::new("pfabric-window", "initial_window", message));
        }
        if self.max_window > MAX_WINDOW {
            let message = format!("max_window = {}: at most {MAX_WINDOW} packets", self.max_window);
            return Err(SpecError::new("pfabric-window", "max_window", message));
        }
        if self.probe_after == 0 {
            let message = "probe_after = 0: every timeout would send a probe and nothing else";
            return Err(SpecError::new("pfabric-probe-after", "probe_after", message)
                .hint("pFabric says 5"));
        }
        // Nothing backs off: what is shorter than a packet's transmission floods the queues with
        // copies.
        if self.rto < Time::from_us(10) || self.rto > TcpSpec::default().max_rto {
            let message = format!("rto = \"{}\": at least 10us and at most a minute", self.rto);
            return Err(SpecError::new("pfabric-rto", "rto", message)
                .hint("a few round trips, such as \"1ms\""));
        }
        self.segment_spec().check()
    }

    /// Selective acknowledgements of every segment, no FIN.
    fn segment_spec(&self) -> TcpSpec {
        one_by_one(self.mss, self.initial_window, self.max_window, self.rto)
    }

    fn stamps_priorities(&self) -> bool {
        true
    }

    fn replication_conflict(&self) -> Option<String> {
        Some("pfabric serves the flow with the least remaining first: a copy would only compete with its original".into())
    }

    fn mixture_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "pfabric needs queues that serve by priority, which the packets of other transports do not carry",
            "run pfabric as a scheme of its own",
        ))
    }
}

impl CustomEndpoints for PfabricSpec {
    type Sender = PfabricSender;
    type Receiver = PfabricReceiver;

    fn fitted(self, _: &Graph, _: u32, _: &WireSizes) -> PfabricSpec {
        self
    }

    fn sender(&self, size: u64, open_at: Time) -> PfabricSender {
        PfabricSender::new(self, size, open_at)
    }
    fn receiver(&self, segments: u32) -> PfabricReceiver {
        PfabricReceiver::new(segments)
    }
    fn window(sender: &PfabricSender) -> u32 {
        sender.cwnd()
    }
}
