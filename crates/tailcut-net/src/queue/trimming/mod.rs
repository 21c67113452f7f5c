//! Trimmed packets (Handley et al., SIGCOMM 2017, section 3.1, after "cut payload" of Cheng et al.,
//! NSDI 2014): a packet that finds the queue full loses its payload instead of being dropped, so
//! that its header reports to the receiver what is missing.
//!
//! Packets with data wait in one short queue; headers and other packets without data wait in
//! another. Weighted round robin serves them, with `ratio` headers per packet. A full queue trims
//! either the arriving packet or the last one that waits, by the toss of a coin, which keeps flows
//! from falling into step. If the header queue is full too, the header of a data packet returns to
//! its sender; any other packet without data is dropped. A host's own interface drops both.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, RandomStream, Rate, Time};

use super::{
    Headers, Never, PacketScheduler, PortContext, PortQueue, QueueKind, Ties, TransportFeatures,
    check_limit, fits,
};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::{Flags, Packet};

/// Parameters of a queue that trims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trimming {
    /// Most packets with data that may wait behind the one in transmission, which is not counted
    /// (NDP: 8).
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Most headers and other packets without data that may wait. By default as much memory as
    /// `limit` full packets, as in NDP: 146 headers beside 8 packets of 1,538 B.
    pub header_limit: Option<Limit>,
    /// Bytes of a trimmed packet on the wire: NDP's 64 bytes, preamble and gap.
    pub header: Bytes,
    /// Headers sent for each packet with data while both wait.
    pub ratio: u32,
    /// The same at the hosts' interfaces, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_ratio: Option<u32>,
    /// Whether a header without room returns to its sender, as in NDP; else it is dropped, as in
    /// Ultra Ethernet.
    #[serde(skip_serializing_if = "is_true")]
    pub returns: bool,
    /// Marks of packets that leave, by the data left behind; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// Whether limits and thresholds of a port shrink and grow with the rate of its link where that
    /// changes.
    #[serde(skip_serializing_if = "is_false")]
    pub follows_rate: bool,
    /// Whether the hosts' interfaces favour packets without data in the same way, within
    /// `host.nic_queue`.
    pub hosts: bool,
}

impl Default for Trimming {
    fn default() -> Self {
        Trimming {
            limit: Limit::AtMost(Amount::Packets(8)),
            ties: Ties::default(),
            header_limit: None,
            header: Bytes(84),
            ratio: 10,
            host_ratio: None,
            returns: true,
            marking: None,
            follows_rate: false,
            hosts: true,
        }
    }
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// Marks at departure: none up to `low`, all above `high`, and a share that grows linearly between
/// them, of the data that the departing packet leaves behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marking {
    /// The largest backlog without marks.
    pub low: Amount,
    /// The largest backlog at which a packet may leave unmarked.
    pub high: Amount,
    /// Whether ports to hosts mark too.
    #[serde(default = "yes")]
    pub last_hop: bool,
}

fn yes() -> bool {
    true
}

/// Allowed header sizes on the wire in bytes: at least the headers of a datagram, and less than
/// what is worth trimming.
const HEADERS: std::ops::RangeInclusive<u64> = 40..=512;
/// The largest `ratio`: with more, packets would starve.
const MOST: u32 = 100_000;

impl QueueKind for Trimming {
    fn check(&self) -> Result<(), SpecError> {
        if !HEADERS.contains(&self.header.0) {
            let message = format!(
                "header = \"{}\": must be from {} to {} bytes",
                self.header,
                HEADERS.start(),
                HEADERS.end()
            );
            return Err(SpecError::new("trimming-header", "header", message)
                .hint("the smallest Ethernet frame with preamble and gap has \"84B\""));
        }
        let ratios = [("ratio", Some(self.ratio)), ("host_ratio", self.host_ratio)];
        for (field, ratio) in ratios {
            let Some(ratio) = ratio.filter(|ratio| !(1..=MOST).contains(ratio)) else { continue };
            let message =
                format!("{field} = {ratio}: must be from 1 to {MOST} headers for each packet");
            return Err(SpecError::new("trimming-ratio", field, message).hint("NDP sends 10"));
        }
        self.check_marking()?;
        check_limit("trimming-limit", "limit", self.limit)?;
        let Some(limit) = self.header_limit else { return Ok(()) };
        check_limit("trimming-limit", "header_limit", limit)?;
        if matches!(limit, Limit::AtMost(Amount::Bytes(bytes)) if bytes < self.header.0) {
            let message = format!(
                "header_limit = \"{limit}\": must hold at least one header of {}",
                self.header
            );
            return Err(SpecError::new("trimming-limit", "header_limit", message)
                .hint("write for example \"12KB\""));
        }
        Ok(())
    }

    fn check_packets(&self, stamps: TransportFeatures) -> Result<(), SpecError> {
        if stamps.hears_headers {
            return Ok(());
        }
        let message = "a trimming queue forwards the headers of packets without room, which only the ndp and uet transports understand";
        Err(SpecError::new("trimming-needs-ndp", "kind", message).hint(
            "write transport = { kind = \"ndp\" } or { kind = \"uet\" } as well, or another queue",
        ))
    }

    fn shared_buffer_conflict(&self) -> Option<(&'static str, &'static str)> {
        Some(("shared-buffer-trimming", "a trimming queue trims waiting packets"))
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn ties(&self) -> Ties {
        self.ties
    }
    fn marks_packets(&self) -> bool {
        self.marking.is_some()
    }
    fn schedules_departures(&self) -> bool {
        true
    }
}

impl PortQueue for Trimming {
    type Admission = Never;
    type Schedule = Box<TrimmingQueue>;

    fn admission(&self, _: &PortContext) -> Option<Never> {
        None
    }
    fn schedule(&self, at: &PortContext) -> Option<Box<TrimmingQueue>> {
        (self.hosts || !at.host).then(|| Box::new(TrimmingQueue::new(self, at)))
    }
}

impl Trimming {
    /// Refuses thresholds without order, and of different units.
    fn check_marking(&self) -> Result<(), SpecError> {
        let Some(Marking { low, high, .. }) = self.marking else { return Ok(()) };
        let ordered = match (low, high) {
            (Amount::Packets(low), Amount::Packets(high)) => low < high,
            (Amount::Bytes(low), Amount::Bytes(high)) => low < high,
            _ => false,
        };
        if ordered {
            return Ok(());
        }
        let message = format!(
            "marking.low = \"{low}\", marking.high = \"{high}\": low must be less than high, both in packets or both in bytes"
        );
        Err(SpecError::new("trimming-marking", "marking", message)
            .hint("write for example { low = \"9packets\", high = \"35packets\" }"))
    }

    /// Returns the limit of packets without data at a port. In the interface of a host it is the
    /// limit of packets with data.
    fn headers_at(&self, at: &PortContext) -> Limit {
        match (self.header_limit, at.limit) {
            (_, limit) if at.host => limit,
            (Some(limit), _) => limit,
            (None, Limit::AtMost(Amount::Packets(packets))) => {
                Limit::AtMost(Amount::Bytes(u64::from(packets) * at.full_packet))
            }
            (None, limit) => limit,
        }
    }
}

/// Packets that wait in the order of their arrival.
#[derive(Debug, Clone)]
struct LimitedFifo {
    limit: Limit,
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl LimitedFifo {
    fn new(limit: Limit) -> LimitedFifo {
        LimitedFifo { limit, packets: VecDeque::new(), bytes: 0 }
    }

    fn fits(&self, more: u16) -> bool {
        fits(self.limit, self.packets.len(), self.bytes, more)
    }

    fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.wire_bytes);
        self.packets.push_back(packet);
    }

    fn first(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    fn last(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }
}

/// The waiting packets of one port.
#[derive(Debug, Clone)]
pub(crate) struct TrimmingQueue {
    data: LimitedFifo,
    headers: LimitedFifo,
    header: u16,
    ratio: u32,
    /// Headers sent since the last packet with data, while one waited.
    turn: u32,
    stream: RandomStream,
    /// Whether headers of data packets that have no room return to their senders.
    returns: bool,
    without_room: Headers,
    drops: u64,
    longest: u32,
    /// Thresholds in bytes between which marks grow from none to all.
    marking: Option<(u64, u64)>,
    /// Whether the port leads to a host.
    last_hop: bool,
    /// Limits and thresholds of the link as it was built, where they follow its rate.
    as_built: Option<Box<AsBuilt>>,
}

/// Limits and thresholds of a port at the rate that its link was built with.
#[derive(Debug, Clone)]
struct AsBuilt {
    data: Limit,
    headers: Limit,
    marking: Option<(u64, u64)>,
}

impl AsBuilt {
    /// Returns a limit at `now` of `built`. A packet always fits.
    fn limit(limit: Limit, now: Rate, built: Rate) -> Limit {
        match limit {
            Limit::Unlimited => limit,
            Limit::AtMost(Amount::Packets(most)) => {
                Limit::AtMost(Amount::Packets(share(most.into(), now, built).max(1) as u32))
            }
            Limit::AtMost(Amount::Bytes(most)) => {
                Limit::AtMost(Amount::Bytes(share(most, now, built)))
            }
        }
    }
}

/// Returns the part of `amount` that `now` is of `built`.
fn share(amount: u64, now: Rate, built: Rate) -> u64 {
    (u128::from(amount) * u128::from(now.0) / u128::from(built.0)) as u64
}

impl TrimmingQueue {
    fn new(spec: &Trimming, at: &PortContext) -> TrimmingQueue {
        let stream = RandomStream::new(at.seed, u64::from(at.number), "trim");
        let marking = spec.marking.as_ref().filter(|marking| {
            let idle = at.host || at.last_hop && !marking.last_hop;
            !idle
        });
        let marking = marking.map(|Marking { low, high, .. }| {
            (low.in_bytes(at.full_packet), high.in_bytes(at.full_packet))
        });
        let (data, headers) = (at.limit, spec.headers_at(at));
        TrimmingQueue {
            data: LimitedFifo::new(data),
            headers: LimitedFifo::new(headers),
            header: spec.header.0 as u16,
            ratio: if at.host { spec.host_ratio.unwrap_or(spec.ratio) } else { spec.ratio },
            marking,
            last_hop: at.last_hop,
            as_built: (spec.follows_rate && !at.host)
                .then(|| Box::new(AsBuilt { data, headers, marking })),
            turn: 0,
            stream,
            returns: spec.returns && !at.host,
            without_room: Headers::default(),
            drops: 0,
            longest: 0,
        }
    }

    /// Queues a packet without data if there is room for it; returns whether there was.
    fn push_header(&mut self, packet: Packet) -> bool {
        let fits = self.headers.fits(packet.wire_bytes);
        if fits {
            self.headers.push(packet);
        }
        fits
    }

    /// Returns a header without room to its sender if its packet was trimmed, here or before.
    /// Returns whether it was.
    fn turn_back(&mut self, header: Packet, displaced: &mut Vec<Packet>) -> bool {
        let goes_back = self.returns && header.is_trimmed();
        if goes_back {
            self.without_room.returned += 1;
            displaced.push(header.returned());
        }
        goes_back
    }

    /// Marks a packet that leaves, by the data behind it.
    #[inline]
    fn mark(&mut self, packet: Packet) -> Packet {
        let Some((low, high)) = self.marking else { return packet };
        let behind = self.data.bytes;
        if behind <= low || !packet.flags.has(Flags::ECN_CAPABLE) {
            return packet;
        }
        let marked = behind > high || self.stream.below(high - low) < behind - low;
        match marked {
            true => Packet { flags: packet.flags | Flags::CONGESTION_EXPERIENCED, ..packet },
            false => packet,
        }
    }

    fn drop_header(&mut self) {
        self.without_room.dropped += 1;
        self.drops += 1;
    }

    /// Chooses which data packet makes way, by the toss of a coin: the arriving one or the last
    /// that waits. Returns that packet, and queues the other.
    fn chosen(&mut self, arriving: Packet) -> Packet {
        if self.stream.below(2) == 0 {
            return arriving;
        }
        let Some(last) = self.data.last() else { return arriving };
        match self.data.fits(arriving.wire_bytes) {
            true => {
                self.data.push(arriving);
                last
            }
            false => {
                // The arriving packet is larger than the last one was.
                self.data.push(last);
                arriving
            }
        }
    }
}

impl PacketScheduler for TrimmingQueue {
    fn offer(&mut self, _: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        let mut waits = true;
        if !packet.flags.has(Flags::DATA) {
            waits = self.push_header(packet);
            if !waits && !self.turn_back(packet, displaced) {
                self.drop_header();
            }
        } else if self.data.fits(packet.wire_bytes) {
            self.data.push(packet);
        } else {
            let chosen = self.chosen(packet);
            let header = chosen.trimmed(self.header, self.last_hop);
            if !self.push_header(header) {
                waits = chosen != packet;
                if !self.turn_back(header, displaced) {
                    self.drop_header();
                    displaced.extend(waits.then_some(chosen));
                }
            }
        }
        self.longest = self.longest.max(self.len());
        waits
    }

    fn pop(&mut self, _: Time) -> Option<Packet> {
        if self.data.packets.is_empty() {
            return self.headers.first();
        }
        if self.turn < self.ratio
            && let Some(header) = self.headers.first()
        {
            self.turn += 1;
            return Some(header);
        }
        self.turn = 0;
        self.data.first().map(|packet| self.mark(packet))
    }

    fn change_rate(&mut self, now: Rate, built: Rate) {
        let Some(as_built) = &self.as_built else { return };
        self.data.limit = AsBuilt::limit(as_built.data, now, built);
        self.headers.limit = AsBuilt::limit(as_built.headers, now, built);
        let scaled = |(low, high)| (share(low, now, built), share(high, now, built));
        self.marking = as_built.marking.map(scaled);
    }

    #[inline]
    fn len(&self) -> u32 {
        (self.data.packets.len() + self.headers.packets.len()) as u32
    }

    fn first(&self) -> Option<&Packet> {
        self.headers.packets.front().or_else(|| self.data.packets.front())
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.headers.packets.iter().chain(&self.data.packets).for_each(see);
    }

    fn drops(&self) -> u64 {
        self.drops
    }

    fn headers(&self) -> Option<Headers> {
        Some(self.without_room)
    }

    fn longest(&self) -> u32 {
        self.longest
    }
}

#[cfg(test)]
mod tests;
