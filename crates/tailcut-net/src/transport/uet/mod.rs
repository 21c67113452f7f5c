//! Ultra Ethernet's transport: every packet is acknowledged by its number, trimmed packets are
//! asked for again at once, and an entropy value per packet chooses its path. Windows follow delays
//! and marks at the sender (NSCC), credits come from the receiver (RCCC), or both bound what is
//! under way.
//!
//! Constants and order of events are those of the consortium's public simulator as far as they
//! decide completion times; `docs/components/uet.md` says what is left out of UET 1.0.

mod nscc;
mod rccc;
mod receiver;
mod sender;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Rate, Time};

pub use receiver::UetReceiver;
pub use sender::UetSender;

use super::Transport;
use super::custom_endpoints::{CustomEndpoints, one_by_one};
use super::entropy::{EntropySpec, Surroundings, mixed::Mixed};
use super::grant_pace::GrantPace;
use super::tcp::{TcpSpec, WireSizes};
use crate::component::SpecError;
use crate::packet::MAX_NUMBER;
use crate::topology::Graph;

/// What bounds the packets under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UetControl {
    /// The sender's window, by delays and marks.
    Nscc,
    /// The receiver's credits.
    Rccc,
    /// Window and credits.
    Both,
}

impl UetControl {
    fn has_window(self) -> bool {
        self != UetControl::Rccc
    }
    fn has_credits(self) -> bool {
        self != UetControl::Nscc
    }
}

/// Parameters of Ultra Ethernet's transport. What is not given follows from the longest path of the
/// network: its round trip of a full packet and an acknowledgement, and the bandwidth-delay product
/// of that (BDP).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UetSpec {
    /// Payload bytes of a full packet.
    pub mss: Bytes,
    /// Window, credits, or both.
    pub control: UetControl,
    /// The choice of paths.
    pub entropy: EntropySpec,
    /// Bytes on the wire that may arrive before an acknowledgement is due. Marks, trimmed packets,
    /// duplicates and requests are answered at once.
    pub ack_threshold: Bytes,
    /// First window of NSCC in bytes on the wire; 1.5 BDP where nothing is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Bytes>,
    /// Most bytes on the wire that a credit or a first window allows; 1.5 BDP where nothing is
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<Bytes>,
    /// Queueing delay that NSCC aims at; 0.75 round trips where nothing is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Time>,
    /// A packet of which nothing is heard for so long is sent again; 15 us and six queues of a BDP
    /// on the slowest link where nothing is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<Time>,
    /// With `control = "rccc"`: how many times more all hosts can send than the fabric carries.
    /// Receivers then slow their grants by what their arrivals have met before the last link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1_000.0))]
    pub oversubscription: Option<f64>,
    /// What follows from the network; set when a run begins.
    #[serde(skip)]
    #[schemars(skip)]
    pub derived: Derived,
}

/// Constants of a network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Derived {
    /// Bytes of headers on the wire, and of a packet without data.
    pub header: u64,
    /// Round trip of a full packet and its acknowledgement over the longest path without queues.
    pub round_trip: Time,
    /// Rate of a host's link, or of all that packets choose among.
    pub rate: Rate,
    /// Bytes under way in a round trip at that rate.
    pub bdp: u64,
    /// Most bytes of a credit.
    pub max_window: u64,
    /// Bytes of a first window.
    pub initial_window: u64,
    /// Queueing delay that NSCC aims at.
    pub target_delay: Time,
    /// Retransmission timeout.
    pub rto: Time,
}

impl Default for UetSpec {
    fn default() -> Self {
        UetSpec {
            mss: Bytes(4086),
            control: UetControl::Nscc,
            entropy: EntropySpec::Mixed(Mixed::default()),
            ack_threshold: Bytes(16_384),
            initial_window: None,
            max_window: None,
            target_delay: None,
            rto: None,
            oversubscription: None,
            derived: Derived::default(),
        }
    }
}

/// Bytes of a packet's headers without framing.
const HEADERS: u64 = 40;
/// Shortest and longest timeout, and longest target delay.
const TIMEOUTS: std::ops::RangeInclusive<Time> = Time::from_us(10)..=Time::from_ms(60_000);

impl Transport for UetSpec {
    fn check(&self) -> Result<(), SpecError> {
        self.entropy.check()?;
        for (field, value) in [("rto", self.rto), ("target_delay", self.target_delay)] {
            let refused = |value: &Time| match field {
                "rto" => !TIMEOUTS.contains(value),
                _ => *value == Time::ZERO || value > TIMEOUTS.end(),
            };
            let Some(value) = value.filter(refused) else { continue };
            let message = format!("{field} = \"{value}\": out of its bounds");
            return Err(SpecError::new("uet-time", field, message)
                .hint("a timeout of 10us to a minute, a target delay above 0"));
        }
        let windows = [("initial_window", self.initial_window), ("max_window", self.max_window)];
        for (field, window) in windows {
            let most = u64::from(u32::MAX);
            let Some(window) = window.filter(|w| w.0 < self.mss.0 || w.0 > most) else { continue };
            let message = format!("{field} = \"{window}\": at least one packet and at most 4 GB");
            return Err(SpecError::new("uet-window", field, message)
                .hint("about 1.5 bandwidth-delay products, such as \"260KB\" at 100 Gbps"));
        }
        if self.ack_threshold.0 == 0 {
            let message = "ack_threshold = 0: an acknowledgement needs a packet";
            return Err(SpecError::new("uet-acks", "ack_threshold", message)
                .hint("write \"1B\" for an acknowledgement of each packet"));
        }
        if let Some(ratio) = self.oversubscription {
            let message = match self.control {
                UetControl::Rccc if (1.0..=1_000.0).contains(&ratio) => String::new(),
                UetControl::Rccc => format!("oversubscription = {ratio}: from 1 to 1000"),
                _ => "oversubscription slows credits: control must be \"rccc\"".into(),
            };
            if !message.is_empty() {
                return Err(SpecError::new("uet-oversubscription", "oversubscription", message)
                    .hint("write for example control = \"rccc\", oversubscription = 4"));
            }
        }
        self.segment_spec().check()
    }

    /// Every packet is acknowledged by itself, no FIN.
    fn segment_spec(&self) -> TcpSpec {
        let rto = self.rto.unwrap_or(Time::from_us(100)).max(*TIMEOUTS.start());
        one_by_one(self.mss, 1, MAX_NUMBER.min(1 << 20), rto)
    }

    /// An acknowledgement of the first packet and of as many bytes as one answers, and a grant of
    /// credit for as many as that is for.
    fn packets_beside_data(&self, segments: u64) -> u64 {
        let packet = self.mss.0 + HEADERS;
        let each = |bytes: u64| bytes.div_ceil(packet);
        let acks = 1 + segments.saturating_sub(1).div_ceil(each(self.ack_threshold.0));
        let grants = segments.div_ceil(each(rccc::GRANT_BYTES));
        acks + if self.control.has_credits() { grants } else { 0 }
    }

    fn shares_window(&self) -> bool {
        true
    }

    /// Follows from rates and delays unless it is given.
    fn largest_window(&self, graph: &Graph, interfaces: u32, framing: Bytes) -> u64 {
        let sizes = WireSizes::new(&self.segment_spec(), framing);
        self.clone().fitted(graph, interfaces, &sizes).derived.max_window
    }

    fn accepts_trimmed(&self) -> bool {
        true
    }

    fn entropy(&self) -> Option<&EntropySpec> {
        Some(&self.entropy)
    }

    fn replication_conflict(&self) -> Option<String> {
        Some(
            "uet sprays each flow over all paths: a copy would only compete with its original"
                .into(),
        )
    }

    fn mixture_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "uet needs queues that trim, whose headers other transports do not understand",
            "run uet as a scheme of its own",
        ))
    }
}

impl UetSpec {
    /// Bytes on the wire of packet `seq` of a flow of `size` bytes.
    #[inline]
    fn wire_bytes(&self, size: u64, seq: u32) -> u64 {
        (size - u64::from(seq) * self.mss.0).min(self.mss.0) + self.derived.header
    }

    /// Bytes on the wire of a full packet.
    #[inline]
    fn full_packet(&self) -> u64 {
        self.mss.0 + self.derived.header
    }
}

impl CustomEndpoints for UetSpec {
    type Sender = Box<UetSender>;
    type Receiver = Box<UetReceiver>;

    const HANDSHAKE: bool = false;
    const SYN: bool = false;
    const PULLS: bool = true;
    const ENTROPY: bool = true;
    const TURNS: bool = true;

    fn fitted(self, graph: &Graph, interfaces: u32, sizes: &WireSizes) -> UetSpec {
        let (full, bare) = (u64::from(sizes.data(self.mss.0)), u64::from(sizes.bare()));
        let round_trip = graph.farthest(|link| {
            let bytes = link.rate.transmission_time(full) + link.rate.transmission_time(bare);
            bytes + link.propagation + link.propagation
        });
        let of_a_host = graph.links.iter().find(|link| graph.host(link.a).is_some());
        let rate = of_a_host.map_or(Rate(100_000_000_000), |link| link.rate);
        let slowest = graph.links.iter().map(|link| link.rate).min().unwrap_or(rate);
        let queue = rate.bytes_in(round_trip).div_ceil(full) * full;
        let rate = Rate(rate.0 * u64::from(interfaces));
        let bdp = rate.bytes_in(round_trip);
        let rto = Time::from_us(15) + Time(6 * slowest.transmission_time(queue).0);
        let max_window = self.max_window.map_or(bdp * 3 / 2, |window| window.0);
        let derived = Derived {
            header: bare,
            round_trip,
            rate,
            bdp,
            max_window,
            initial_window: self.initial_window.map_or(max_window, |window| window.0),
            target_delay: self.target_delay.unwrap_or(Time(round_trip.0 * 3 / 4)),
            rto: self.rto.unwrap_or(rto),
        };
        let surroundings = Surroundings {
            bdp_packets: bdp.div_ceil(full) as u32,
            base_rtt: round_trip,
            rto: derived.rto,
            trims: true,
        };
        let entropy = self.entropy.fitted(&surroundings);
        UetSpec { derived, entropy, ..self }
    }

    fn sender(&self, size: u64, open_at: Time) -> Box<UetSender> {
        Box::new(UetSender::new(self, size, open_at))
    }
    fn receiver(&self, segments: u32) -> Box<UetReceiver> {
        Box::new(UetReceiver::new(self, segments))
    }
    fn window(sender: &Box<UetSender>) -> u32 {
        sender.window()
    }
    fn draw_from(&self, sender: &mut Box<UetSender>, seed: u64, entity: u64) {
        sender.draw_from(self, seed, entity);
    }
    fn wants_turn(&self, sender: &Box<UetSender>) -> bool {
        sender.wants_turn(self)
    }
    fn grant_pace(&self, seed: u64, host: u32) -> Option<GrantPace> {
        let stream = || RandomStream::new(seed, u64::from(host), "grants");
        let new = |ratio| GrantPace::new(ratio, self.derived.round_trip, stream());
        self.oversubscription.map(new)
    }
    fn grants_unasked(&self) -> bool {
        self.control.has_credits()
    }
    fn grant_turn(sender: &mut Box<UetSender>, contenders: u32) {
        sender.grant_turn(contenders);
    }
}
