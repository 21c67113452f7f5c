//! NDP (Handley et al., SIGCOMM 2017, section 3), for queues that trim: a sender starts with a
//! whole window at line rate and does not wait for a handshake; every packet or header that arrives
//! is answered at once, and from then on the receiver pulls packets from all its senders in turn,
//! at the rate of its own link.
//!
//! Which path a packet takes is the switches' matter here (`balance`), not the sender's.

mod receiver;
mod sender;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

pub use receiver::NdpReceiver;
pub use sender::NdpSender;

use super::Transport;
use super::custom_endpoints::{CustomEndpoints, one_by_one};
use super::tcp::{TcpSpec, WireSizes};
use crate::component::SpecError;
use crate::topology::Graph;

/// Parameters of NDP. Windows count packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NdpSpec {
    /// Payload bytes of a full segment.
    pub mss: Bytes,
    /// Packets that a sender sends unasked, and that are under way from then on: a bandwidth-delay
    /// product and the queues of the path. The paper: 30 packets.
    pub initial_window: u32,
    /// A packet that nothing was heard of for so long is sent again. Only answers, pulls and
    /// packets that are lost need it; it is to be longer than headers and packets can queue. Where
    /// nothing is said it is the time in which the network's slowest link sends 625 KB (5 ms at 1
    /// Gbps, 0.5 ms at 10 Gbps; the paper, with packets of 9 KB: 1 ms at 10 Gbps), and four times
    /// the propagation delay from the first host to the farthest one.
    pub rto: Option<Time>,
}

impl Default for NdpSpec {
    fn default() -> Self {
        NdpSpec { mss: Bytes(1460), initial_window: 30, rto: None }
    }
}

/// Larger windows are slips: they only fill the sender's own interface.
const MAX_WINDOW: u32 = 1 << 20;

impl Transport for NdpSpec {
    fn check(&self) -> Result<(), SpecError> {
        if self.initial_window == 0 || self.initial_window > MAX_WINDOW {
            let message = format!(
                "initial_window = {}: at least 1 packet and at most {MAX_WINDOW}",
                self.initial_window
            );
            return Err(SpecError::new("ndp-window", "initial_window", message));
        }
        let bounds = Time::from_us(10)..=TcpSpec::default().max_rto;
        if let Some(rto) = self.rto.filter(|rto| !bounds.contains(rto)) {
            let message = format!("rto = \"{rto}\": at least 10us and at most a minute");
            return Err(SpecError::new("ndp-rto", "rto", message)
                .hint("longer than queues of headers and packets, such as \"5ms\""));
        }
        self.segment_spec().check()
    }

    /// Every segment is acknowledged by itself, no FIN.
    fn segment_spec(&self) -> TcpSpec {
        one_by_one(self.mss, self.initial_window, self.initial_window, self.timeout())
    }

    /// A SYN and its answer, an acknowledgement of each packet, and a pull for each beyond the first
    /// window.
    fn packets_beside_data(&self, segments: u64) -> u64 {
        2 + segments + segments.saturating_sub(u64::from(self.initial_window))
    }

    fn accepts_trimmed(&self) -> bool {
        true
    }

    fn replication_conflict(&self) -> Option<String> {
        Some(
            "an ndp receiver asks for what its link can take: a copy would only compete with its original"
                .into(),
        )
    }

    fn mixture_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "ndp needs queues that trim, whose headers other transports do not understand",
            "run ndp as a scheme of its own",
        ))
    }
}

impl NdpSpec {
    /// Returns how long a packet may be under way, once that is known
    /// ([`CustomEndpoints::fitted`]).
    fn timeout(&self) -> Time {
        self.rto.unwrap_or(Time::from_ms(5))
    }
}

/// Bytes that the slowest link may have to send within a timeout: the headers and packets of
/// several full queues.
const QUEUED: u64 = 625_000;

impl CustomEndpoints for NdpSpec {
    type Sender = NdpSender;
    type Receiver = Box<NdpReceiver>;

    const HANDSHAKE: bool = false;
    const PULLS: bool = true;

    fn fitted(self, graph: &Graph, _: u32, _: &WireSizes) -> NdpSpec {
        let slowest = graph.links.iter().map(|link| link.rate).min();
        let fits = slowest.map(|rate| {
            let rto = rate.transmission_time(QUEUED).0.saturating_add(4 * graph.reach().0);
            Time(rto).clamp(Time::from_us(10), TcpSpec::default().max_rto)
        });
        NdpSpec { rto: self.rto.or(fits), ..self }
    }

    fn sender(&self, size: u64, open_at: Time) -> NdpSender {
        NdpSender::new(self, size, open_at)
    }
    fn receiver(&self, segments: u32) -> Box<NdpReceiver> {
        Box::new(NdpReceiver::new(segments, self.initial_window))
    }
    fn window(sender: &NdpSender) -> u32 {
        sender.window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::star::Star;
    use tailcut_engine::Rate;

    #[test]
    fn the_timer_follows_the_rate_and_the_distance() {
        let rto = |spec: NdpSpec, gbps: u64, propagation: Time| {
            let star = Star { hosts: 3, rate: Rate(gbps * 1_000_000_000), propagation };
            let sizes = WireSizes::new(&spec.segment_spec(), Bytes(38));
            spec.fitted(&star.build().expect("hosts are enough"), 1, &sizes).timeout()
        };
        let near = Time::from_ns(0);
        assert_eq!(rto(NdpSpec::default(), 1, near), Time::from_ms(5));
        assert_eq!(rto(NdpSpec::default(), 25, near), Time::from_us(200));
        assert_eq!(rto(NdpSpec::default(), 25, Time::from_ms(1)), Time::from_us(8_200));
        let said = NdpSpec { rto: Some(Time::from_ms(3)), ..NdpSpec::default() };
        assert_eq!(rto(said, 25, Time::from_ms(1)), Time::from_ms(3));
    }
}
