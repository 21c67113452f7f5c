//! Transports: sans-I/O state machines that take (now, packet or timer) and yield packets and
//! deadlines. None sees the event queue.
//!
//! A new transport is one file (or folder) here and one line in the list below; where its ends are
//! not TCP's, one in the list after it as well.

pub(crate) mod custom_endpoints;
pub mod entropy;
pub(crate) mod grant_pace;
mod life;
pub mod mixed;
pub mod mmptcp;
pub mod mptcp;
pub mod ndp;
pub mod pfabric;
pub mod segment;
pub mod spread;
pub mod subflows;
pub mod tcp;
mod timers;
pub mod uet;

pub(crate) use life::segments_of;
pub use life::{ConnectionState, Transmit};
pub use segment::{DataAck, Mapping, Segment};
pub use timers::{SendLimit, Timer};

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use crate::component::SpecError;
use crate::packet::MAX_NUMBER;
use crate::registry::registry;
use crate::topology::Graph;
use crate::traffic::Flow;
use spread::MultipathSpec;

/// The parameters of a transport.
pub trait Transport {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a connection with them could not work.
    fn check(&self) -> Result<(), SpecError>;

    /// The parameters that decide the size and number of its packets: of the transport whose
    /// segments are the largest, where there are several.
    fn segment_spec(&self) -> tcp::TcpSpec;

    /// Returns the field that holds the segment size.
    fn mss_field(&self) -> &'static str {
        "mss"
    }

    /// Checks that the segments of all flows can be counted. `largest` returns the bytes of the
    /// largest flow above its first argument and up to its second.
    ///
    /// # Errors
    /// When a flow has more than packets can number.
    fn check_flows(&self, largest: &dyn Fn(u64, u64) -> Option<u64>) -> Result<(), SpecError> {
        let Some(bytes) = largest(0, u64::MAX) else { return Ok(()) };
        let mss = self.segment_spec().mss;
        let segments = bytes.div_ceil(mss.0);
        if segments <= u64::from(MAX_NUMBER) {
            return Ok(());
        }
        let message = format!(
            "a flow of {} has {segments} segments of {mss}: at most {MAX_NUMBER} can be told apart",
            Bytes(bytes)
        );
        Err(SpecError::new("transport-segments", self.mss_field(), message)
            .hint("raise the size of a segment, or make flows smaller"))
    }

    /// The parameter by which it waits for marks, and who does, if it does.
    fn marks_requirement(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns whether packets carry a priority for queues.
    fn stamps_priorities(&self) -> bool {
        false
    }

    /// Returns the number of packets that a flow of `segments` takes beside its data, if none is
    /// lost, marked or overtaken: to open and close its connection, to acknowledge, and to ask.
    fn packets_beside_data(&self, segments: u64) -> u64 {
        /// A SYN, its answer, and the acknowledgement of that.
        const OPENING: u64 = 3;
        let tcp = self.segment_spec();
        let closing = u64::from(tcp.close == tcp::Close::Fin);
        OPENING + segments.div_ceil(u64::from(tcp.ack_every)) + closing
    }

    /// Returns whether flows of a host share one window: they hand packets to its interface in turn.
    fn shares_window(&self) -> bool {
        false
    }

    /// Returns the most payload that a flow's sender has under way on `graph`, where so many
    /// interfaces of a host carry a flow side by side. Frames add `framing`.
    fn largest_window(&self, _graph: &Graph, _interfaces: u32, _framing: Bytes) -> u64 {
        self.segment_spec().receive_window.0
    }

    /// Returns whether receivers accept packets that a queue has trimmed to their headers.
    fn accepts_trimmed(&self) -> bool {
        false
    }

    /// Whether it imitates ns-3's order of events of one instant.
    fn ties_as_scheduled(&self) -> bool {
        self.segment_spec().imitate.ties_as_scheduled
    }

    /// Why its flows are not copied, if they are not.
    fn replication_conflict(&self) -> Option<String> {
        let why = "a multipath flow already uses several paths, and its subflows carry parts of it";
        self.multipath().map(|_| why.into())
    }

    /// Why it is no part of a mixture, and what to do, if it is none.
    fn mixture_conflict(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns the policy by which senders choose the source port of each packet; `None` if a
    /// connection keeps its port.
    fn entropy(&self) -> Option<&entropy::EntropySpec> {
        None
    }

    /// Returns the parameters of its subflows; `None` for one connection per flow.
    fn multipath(&self) -> Option<Arc<dyn MultipathSpec>> {
        None
    }
}

registry! {
    /// The transport that carries every flow.
    pub enum TransportSpec: Transport {
        /// TCP: SACK with PRR (RFC 6675, 9937), or NewReno without SACK (RFC 5681, 6582).
        Tcp(tcp::TcpSpec),
        /// pFabric's minimal transport, for queues that schedule by priority.
        ///
        /// It needs `queue = { kind = "pfabric" }`.
        Pfabric(pfabric::PfabricSpec),
        /// NDP: packets at line rate first, then as receivers pull; for queues that trim.
        ///
        /// It needs `queue = { kind = "trimming" }`.
        Ndp(ndp::NdpSpec),
        /// Ultra Ethernet's transport: packets sprayed by entropy values, windows or credits.
        ///
        /// Best with `queue = { kind = "trimming" }`.
        Uet(uet::UetSpec),
        /// Multipath TCP (RFC 8684): subflows on their own paths, coupled by LIA (RFC 6356).
        Mptcp(mptcp::MptcpSpec),
        /// MMPTCP: packets scattered under one window first, then Multipath TCP.
        Mmptcp(mmptcp::MmptcpSpec),
        /// Several transports side by side, chosen by the size of a flow and by lot.
        Mixed(mixed::MixedTransport),
    }
}

/// Writes what `$write` makes of the transports whose ends are not TCP's: a name and the parameters
/// of each.
macro_rules! other_ends {
    ($write:ident) => {
        $write! {
            Pfabric($crate::transport::pfabric::PfabricSpec),
            Ndp($crate::transport::ndp::NdpSpec),
            Uet($crate::transport::uet::UetSpec),
        }
    };
}
pub(crate) use other_ends;

impl Default for TransportSpec {
    fn default() -> Self {
        TransportSpec::Tcp(tcp::TcpSpec::default())
    }
}

impl TransportSpec {
    /// Returns the transports that carry flows: the parts of a mixture, or this one.
    pub fn carriers(&self) -> Vec<&TransportSpec> {
        match self {
            TransportSpec::Mixed(mixed) => mixed.parts.iter().map(|p| &p.transport).collect(),
            only => vec![only],
        }
    }

    /// Returns which of the [carriers](TransportSpec::carriers) has a flow of a run with this seed.
    pub fn carrier_of(&self, flow: &Flow, seed: u64) -> usize {
        match self {
            TransportSpec::Mixed(mixed) => mixed.choose(flow, seed),
            _ => 0,
        }
    }
}

impl Transport for tcp::TcpSpec {
    fn check(&self) -> Result<(), SpecError> {
        tcp::TcpSpec::check(self)
    }
    fn segment_spec(&self) -> tcp::TcpSpec {
        self.clone()
    }
    fn marks_requirement(&self) -> Option<(&'static str, &'static str)> {
        let field = if self.ecn { "ecn" } else { "congestion" };
        self.uses_ecn().then_some((field, "the transport"))
    }
    fn entropy(&self) -> Option<&entropy::EntropySpec> {
        self.entropy.as_ref()
    }
}
