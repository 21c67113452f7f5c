//! Several transports in one run: which one carries a flow is decided by its size and by lot.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream};

use super::entropy::EntropySpec;
use super::spread::MultipathSpec;
use super::tcp::TcpSpec;
use super::{Transport, TransportSpec};
use crate::component::SpecError;
use crate::topology::Graph;
use crate::traffic::Flow;

/// Parameters of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixedTransport {
    /// The transports, and which flows each may carry. A flow that several may carry goes to one of
    /// them by lot.
    pub parts: Vec<TransportPart>,
    /// Who draws the transport.
    #[serde(default)]
    pub by: Lot,
}

/// A transport of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransportPart {
    /// The transport.
    pub transport: TransportSpec,
    /// Weight of the draw, relative to the other transports.
    #[serde(default = "one")]
    pub weight: u32,
    /// Flows up to this size are carried by other transports.
    #[serde(default = "nothing")]
    pub above: Bytes,
    /// Flows beyond this size are carried by other transports.
    #[serde(default)]
    pub up_to: Option<Bytes>,
}

fn one() -> u32 {
    1
}

fn nothing() -> Bytes {
    Bytes(0)
}

/// Who draws the transport of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lot {
    /// Every flow for itself.
    #[default]
    Flows,
    /// Every sending host once: all its flows of a size use one transport.
    Hosts,
}

impl MixedTransport {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a transport does not work, or flows of some size would have none.
    pub fn check(&self) -> Result<(), SpecError> {
        let bad = |message: &str, hint: &str| {
            Err(SpecError::new("mixed-parts", "parts", message).hint(hint))
        };
        if self.parts.is_empty() || self.parts.len() > 64 {
            return bad(
                "parts: 1 to 64 transports make a mixture",
                "write parts = [{ transport = { kind = \"tcp\" } }]",
            );
        }
        for (at, part) in self.parts.iter().enumerate() {
            if let Some((message, hint)) = part.transport.mixture_conflict() {
                return bad(message, hint);
            }
            part.transport.check().map_err(|error| SpecError {
                field: format!("parts[{at}].transport.{}", error.field),
                ..error
            })?;
        }
        // Sizes at which what may carry a flow changes, and the sizes just beyond.
        let bounds = self.parts.iter().flat_map(|p| [Some(p.above), p.up_to]).flatten();
        for bytes in bounds.flat_map(|b| [b.0.max(1), b.0.saturating_add(1)]).chain([1, u64::MAX]) {
            if self.candidates(bytes).map(|(_, part)| u64::from(part.weight)).sum::<u64>() == 0 {
                let message = format!("no part carries flows of {bytes} B");
                return bad(
                    &message,
                    "let the ranges `above` to `up_to` cover every size, with a weight of at least 1",
                );
            }
        }
        Ok(())
    }

    fn candidates(&self, bytes: u64) -> impl Iterator<Item = (usize, &TransportPart)> {
        let fits = move |part: &TransportPart| {
            bytes > part.above.0 && part.up_to.is_none_or(|most| bytes <= most.0)
        };
        self.parts.iter().enumerate().filter(move |(_, part)| fits(part))
    }

    /// Returns the index of the part that carries a flow. The draw depends on the seed and on who
    /// draws alone.
    pub fn choose(&self, flow: &Flow, seed: u64) -> usize {
        let drawer = match self.by {
            Lot::Flows => flow.id,
            Lot::Hosts => u64::from(flow.src.0),
        };
        let weights: u64 = self.candidates(flow.bytes).map(|(_, p)| u64::from(p.weight)).sum();
        let mut lot = RandomStream::new(seed, drawer, "transport").below(weights.max(1));
        for (at, part) in self.candidates(flow.bytes) {
            if lot < u64::from(part.weight) {
                return at;
            }
            lot -= u64::from(part.weight);
        }
        0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Transport for MixedTransport {
    fn check(&self) -> Result<(), SpecError> {
        MixedTransport::check(self)
    }

    /// Returns the part with the largest segments, by which room is checked. A flow's own segments
    /// are those of its part.
    fn segment_spec(&self) -> TcpSpec {
        let parts = self.parts.iter().map(|part| part.transport.segment_spec());
        parts.max_by_key(|tcp| tcp.mss).unwrap_or_default()
    }

    fn mss_field(&self) -> &'static str {
        "parts"
    }

    fn check_flows(&self, largest: &dyn Fn(u64, u64) -> Option<u64>) -> Result<(), SpecError> {
        let carries = |(_, part): &(usize, &TransportPart)| part.weight > 0;
        self.parts.iter().enumerate().filter(carries).try_for_each(|(at, part)| {
            let (least, most) = (part.above.0, part.up_to.map_or(u64::MAX, |most| most.0));
            let within = |above: u64, up_to: u64| largest(above.max(least), up_to.min(most));
            part.transport.check_flows(&within).map_err(|error| SpecError {
                field: format!("parts[{at}].transport.{}", error.field),
                ..error
            })
        })
    }

    fn marks_requirement(&self) -> Option<(&'static str, &'static str)> {
        let waits = self.parts.iter().any(|part| part.transport.marks_requirement().is_some());
        waits.then_some(("parts", "a transport of the mixture"))
    }

    fn stamps_priorities(&self) -> bool {
        self.parts.iter().all(|part| part.transport.stamps_priorities())
    }

    /// The most that a part takes; plans ask each part.
    fn packets_beside_data(&self, segments: u64) -> u64 {
        let of_parts = self.parts.iter().map(|part| part.transport.packets_beside_data(segments));
        of_parts.max().unwrap_or(0)
    }

    fn shares_window(&self) -> bool {
        self.parts.iter().all(|part| part.transport.shares_window())
    }

    fn largest_window(&self, graph: &Graph, interfaces: u32, framing: Bytes) -> u64 {
        let of = |part: &TransportPart| part.transport.largest_window(graph, interfaces, framing);
        self.parts.iter().map(of).max().unwrap_or(0)
    }

    fn accepts_trimmed(&self) -> bool {
        self.parts.iter().all(|part| part.transport.accepts_trimmed())
    }

    fn ties_as_scheduled(&self) -> bool {
        self.parts.iter().any(|part| part.transport.ties_as_scheduled())
    }

    fn replication_conflict(&self) -> Option<String> {
        let reason = self.parts.iter().find_map(|part| part.transport.replication_conflict());
        reason.map(|reason| format!("in this mixture, {reason}"))
    }

    fn mixture_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some(("a mixture within a mixture", "list its parts in this one"))
    }

    /// Each part has its own policy.
    fn entropy(&self) -> Option<&EntropySpec> {
        None
    }

    /// Each part spreads its own flows.
    fn multipath(&self) -> Option<Arc<dyn MultipathSpec>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;
    use tailcut_engine::Time;

    fn part(kind: &str, weight: u32, above: u64, up_to: Option<u64>) -> TransportPart {
        let transport =
            serde_json::from_value(serde_json::json!({ "kind": kind })).expect("it is a kind");
        TransportPart { transport, weight, above: Bytes(above), up_to: up_to.map(Bytes) }
    }

    fn flow(id: u64, src: u32, bytes: u64) -> Flow {
        Flow { id, src: HostId(src), dst: HostId(99), bytes, start: Time::ZERO }
    }

    #[test]
    fn sizes_choose_among_ranges() {
        let parts = vec![part("mmptcp", 1, 0, Some(100_000)), part("mptcp", 1, 100_000, None)];
        let mixed = MixedTransport { parts, by: Lot::Flows };
        assert_eq!(mixed.check(), Ok(()));
        assert_eq!([100_000, 100_001].map(|bytes| mixed.choose(&flow(1, 2, bytes), 1)), [0, 1]);
    }

    #[test]
    fn weights_are_kept_and_a_host_draws_once() {
        let parts = vec![part("tcp", 1, 0, None), part("mptcp", 3, 0, None)];
        let mixed = MixedTransport { parts, by: Lot::Hosts };
        let count = (0..4_000).filter(|host| mixed.choose(&flow(1, *host, 1), 7) == 1).count();
        // Four standard deviations of 4,000 draws at 3/4.
        assert!((count as f64 - 3_000.0).abs() < 4.0 * 27.4, "{count}");
        assert_eq!(mixed.choose(&flow(1, 5, 10), 7), mixed.choose(&flow(2, 5, 999), 7));
    }

    #[test]
    fn a_part_is_asked_only_about_flows_that_it_may_carry() {
        let tiny = |weight, up_to| {
            let mut part = part("tcp", weight, 0, up_to);
            let TransportSpec::Tcp(tcp) = &mut part.transport else { panic!("it is TCP") };
            tcp.mss = Bytes(1);
            part
        };
        let refused = |short, flows: &[u64]| {
            let mixed =
                MixedTransport { parts: vec![short, part("tcp", 1, 0, None)], by: Lot::Flows };
            let largest = |above, up_to| {
                flows.iter().copied().filter(|&bytes| bytes > above && bytes <= up_to).max()
            };
            mixed.check_flows(&largest).err().map(|error| error.field)
        };
        let field = Some("parts[0].transport.mss".to_owned());
        assert_eq!(refused(tiny(1, Some(1_000)), &[900, 3_000_000_000]), None);
        assert_eq!(refused(tiny(1, Some(2_500_000_000)), &[2_400_000_000, 3_000_000_000]), field);
        assert_eq!(refused(tiny(0, None), &[3_000_000_000]), None, "no lot falls on it");
        assert_eq!(refused(tiny(1, None), &[3_000_000_000]), field);
    }

    #[test]
    fn a_size_that_no_part_carries_is_refused() {
        let parts = vec![part("tcp", 1, 0, Some(1_000)), part("mptcp", 1, 2_000, None)];
        let error =
            MixedTransport { parts, by: Lot::Flows }.check().expect_err("1,500 B have none");
        assert!(error.message.contains("1001 B"), "{}", error.message);
    }
}
