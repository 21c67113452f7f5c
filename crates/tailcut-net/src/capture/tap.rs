//! The observer that captures frames at chosen hosts and links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Rate, Time};

use super::frame::{Ecn, Endpoint, Frame, FrameError, TcpFlags, TcpOptions, encode};
use super::pcapng::{Bounds, Direction, Interface, Writer};
use crate::measure::{Loss, Observer, PacketView};
use crate::packet::{FIRST_SOURCE_PORT, Flags, SERVICE_PORT};
use crate::port::Retiming;
use crate::topology::find::{UnknownLink, find_link};
use crate::topology::{Graph, HostId, NodeId, PortId};
use crate::transport::tcp::options::UNSCALED_WINDOW;

/// Capture points and limits of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaptureSpec {
    /// Capture points: `"host:3"` or `"h3"` captures what host 3 sends and receives, `"link:h0>s0"`
    /// or `"h0>s0"` the traffic in one direction of a link.
    pub points: Vec<String>,
    /// Maximum packets in the file.
    pub max_packets: u64,
    /// Maximum bytes in the file.
    pub max_bytes: Bytes,
    /// Maximum bytes kept of one packet. The TCP checksum of a truncated packet cannot be verified.
    pub snapshot: Bytes,
}

impl Default for CaptureSpec {
    fn default() -> Self {
        CaptureSpec {
            points: vec![],
            max_packets: u64::MAX,
            max_bytes: Bytes(1_000_000_000),
            snapshot: Bytes(Bounds::NONE.snapshot.into()),
        }
    }
}

/// Reasons for which a capture fails.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A host that the topology does not have.
    #[error(
        "the topology has no host {host:?}; write \"host:0\" to \"host:{}\", or a link such as \"link:h0>s0\"", .hosts - 1
    )]
    UnknownHost {
        /// The host as written.
        host: String,
        /// Number of hosts in the graph.
        hosts: u32,
    },
    /// A link that the topology does not have.
    #[error(transparent)]
    UnknownLink(#[from] UnknownLink),
    /// A packet that no real network could carry.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The file could not be written.
    #[error("the capture file could not be written: {0}")]
    Io(#[from] io::Error),
}

/// Totals of a finished capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that passed the capture points after the file was full.
    pub left_out: u64,
}

/// A frame whose last bit has yet to leave. Ordered by time, then by the order in which frames were
/// noted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    time: Time,
    order: u64,
    interface: usize,
    wire_bytes: u16,
    bytes: Vec<u8>,
}

/// A captured link.
#[derive(Debug, Clone, Copy)]
struct Tapped {
    interface: usize,
    rate: Rate,
}

/// Observer that writes packets to a capture file as they pass.
///
/// A frame at a host bears the time at which it was handed to the interface or arrived; a frame on
/// a link bears the time at which its last bit left. The file is in order of time.
#[derive(Debug)]
pub struct Capture<W: Write> {
    writer: Writer<W>,
    hosts: BTreeMap<HostId, usize>,
    links: BTreeMap<PortId, Tapped>,
    pending: BinaryHeap<Reverse<Pending>>,
    noted: u64,
    scratch: Vec<u8>,
    failure: Option<CaptureError>,
}

impl<W: Write> Capture<W> {
    /// Prepares the capture that `spec` describes and writes the file's headers to `out`.
    ///
    /// # Errors
    /// Refuses points that `graph` does not have; returns the errors of `out`.
    pub fn new(spec: &CaptureSpec, graph: &Graph, out: W) -> Result<Self, CaptureError> {
        let (mut hosts, mut links) = (BTreeMap::new(), BTreeMap::new());
        let mut interfaces: Vec<Interface> = vec![];
        for point in &spec.points {
            let interface = match capture_point(point) {
                CapturePoint::Host(name) => {
                    let host = find_host(graph, name)?;
                    if hosts.contains_key(&host) {
                        continue;
                    }
                    hosts.insert(host, interfaces.len());
                    host_interface(graph, host)
                }
                CapturePoint::Link(name) => {
                    let link = find_link(graph, name)?;
                    if links.contains_key(&link) {
                        continue;
                    }
                    let rate = graph.links[link.link()].rate;
                    links.insert(link, Tapped { interface: interfaces.len(), rate });
                    link_interface(graph, name, link)
                }
            };
            interfaces.push(interface);
        }
        let bounds = Bounds {
            packets: spec.max_packets,
            bytes: spec.max_bytes.0,
            snapshot: spec.snapshot.0.try_into().unwrap_or(u32::MAX),
        };
        let application = concat!("Tailcut ", env!("CARGO_PKG_VERSION"));
        Ok(Capture {
            writer: Writer::new(out, application, &interfaces, bounds)?,
            hosts,
            links,
            pending: BinaryHeap::new(),
            noted: 0,
            scratch: vec![],
            failure: None,
        })
    }

    /// Ends the file of a run that ended at `end`. Frames that have not left their link by then are
    /// not in it.
    ///
    /// # Errors
    /// Returns the first error since the capture began. The file then ends before it.
    pub fn finish(mut self, end: Time) -> Result<CaptureSummary, CaptureError> {
        self.flush(end);
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let summary =
            CaptureSummary { packets: self.writer.packets(), left_out: self.writer.left_out() };
        self.writer.finish()?;
        Ok(summary)
    }

    /// Returns the hosts whose frames are captured.
    pub fn hosts(&self) -> Vec<HostId> {
        self.hosts.keys().copied().collect()
    }

    /// Captures a whole frame that a real host has sent or received. Frames must come in order of
    /// time.
    pub fn frame(&mut self, now: Time, host: HostId, direction: Direction, bytes: &[u8]) {
        if let Some(&interface) = self.hosts.get(&host) {
            self.write(interface, now, Some(direction), bytes);
        }
    }

    /// Writes every pending frame up to `now`.
    fn flush(&mut self, now: Time) {
        while self.pending.peek().is_some_and(|Reverse(first)| first.time <= now) {
            let Reverse(frame) = self.pending.pop().expect("a frame was seen");
            self.write(frame.interface, frame.time, None, &frame.bytes);
        }
    }

    fn write(&mut self, interface: usize, time: Time, direction: Option<Direction>, frame: &[u8]) {
        if self.failure.is_none() {
            let written = self.writer.packet(interface, time, direction, frame);
            self.failure = written.err().map(CaptureError::Io);
        }
    }

    fn at_host(&mut self, now: Time, host: HostId, direction: Direction, packet: &PacketView) {
        let Some(&interface) = self.hosts.get(&host) else { return };
        self.flush(now);
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        self.encode(packet, &mut bytes);
        self.write(interface, now, Some(direction), &bytes);
        self.scratch = bytes;
    }

    fn encode(&mut self, packet: &PacketView, bytes: &mut Vec<u8>) {
        let (blocks, count) = sack_ranges(packet);
        if let Err(error) = encode(&describe(packet, &blocks[..count]), bytes) {
            self.failure.get_or_insert(error.into());
        }
    }
}

impl<W: Write> Observer for Capture<W> {
    fn host_sends(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.at_host(now, host, Direction::Outbound, packet);
    }

    fn host_receives(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.at_host(now, host, Direction::Inbound, packet);
    }

    fn link_accepts(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        let Some(&Tapped { interface, .. }) = self.links.get(&link) else { return };
        self.flush(now);
        let mut bytes = vec![];
        self.encode(packet, &mut bytes);
        let order = self.noted;
        self.noted += 1;
        let wire_bytes = packet.wire_bytes;
        self.pending.push(Reverse(Pending { time: departs, order, interface, wire_bytes, bytes }));
    }

    /// Forgets frames that have not left a link that goes down.
    fn lost(&mut self, now: Time, link: PortId, loss: Loss, _: &PacketView) {
        let Some(&Tapped { interface, .. }) = self.links.get(&link) else { return };
        if loss == Loss::UnderWay {
            self.flush(now);
            self.pending.retain(|Reverse(frame)| frame.interface != interface);
        }
    }

    fn link_changes(&mut self, now: Time, link: PortId, rate: Rate, _: Time) {
        let Some(tapped) = self.links.get_mut(&link) else { return };
        let mut retiming = Retiming::new(now, tapped.rate, rate);
        tapped.rate = rate;
        let interface = tapped.interface;
        self.flush(now);
        // The next frame to leave is the last element.
        let pending = std::mem::take(&mut self.pending).into_sorted_vec();
        for Reverse(mut frame) in pending.into_iter().rev() {
            if frame.interface == interface {
                frame.time = retiming.next(frame.time, frame.wire_bytes).1;
            }
            self.pending.push(Reverse(frame));
        }
    }
}

enum CapturePoint<'a> {
    Host(&'a str),
    Link(&'a str),
}

/// Returns what a capture point names: with its kind (`"host:3"`), or by its form (`"h3"`,
/// `"h0>s0"`).
fn capture_point(point: &str) -> CapturePoint<'_> {
    let point = point.trim();
    if let Some(name) = point.strip_prefix("link:") {
        CapturePoint::Link(name.trim())
    } else if let Some(name) = point.strip_prefix("host:") {
        CapturePoint::Host(name.trim())
    } else if point.contains('>') {
        CapturePoint::Link(point)
    } else {
        CapturePoint::Host(point)
    }
}

/// Returns the port that captures show. It lies where no protocol is registered, so that readers do
/// not decode the payload. The simulator's own ports, which enter the ECMP hash, overlap many
/// registered ones.
fn shown_port(port: u16, service: bool) -> u16 {
    if service {
        40_000 + (port - SERVICE_PORT)
    } else {
        49_152 + (port - FIRST_SOURCE_PORT) % 16_384
    }
}

/// Returns the headers of a packet.
fn describe<'a>(packet: &PacketView, sack: &'a [(u32, u32)]) -> Frame<'a> {
    let has = |flag| packet.flags.has(flag);
    let shift = window_scale(packet.window);
    let (syn, ack) = (has(Flags::SYN), has(Flags::ACK));
    let from_service = has(Flags::TO_SENDER);
    let end_of_flow = packet.seq + u64::from(packet.payload) == packet.flow_bytes + 1;
    Frame {
        source: Endpoint { host: packet.src, port: shown_port(packet.sport, from_service) },
        destination: Endpoint { host: packet.dst, port: shown_port(packet.dport, !from_service) },
        // Sequence numbers are those of the stream modulo 2^32, from an initial sequence number of
        // 0.
        sequence: packet.seq as u32,
        acknowledgment: if ack { packet.ack as u32 } else { 0 },
        flags: TcpFlags {
            syn,
            ack,
            fin: has(Flags::FIN),
            rst: has(Flags::RST),
            psh: packet.payload > 0 && end_of_flow,
            ece: has(Flags::ECN_ECHO),
            cwr: has(Flags::WINDOW_REDUCED),
        },
        window: if has(Flags::RST) {
            0
        } else if syn {
            packet.window.min(UNSCALED_WINDOW) as u16
        } else {
            (packet.window >> shift) as u16
        },
        options: TcpOptions {
            maximum_segment: (syn && packet.mss_option).then_some(packet.mss),
            window_scale: syn.then_some(shift),
            sack_permitted: syn && packet.sack,
            timestamps: packet.timestamps.map(|stamps| (stamps.value, stamps.echo)),
            sack,
        },
        payload: packet.payload,
        ecn: if has(Flags::CONGESTION_EXPERIENCED) {
            Ecn::Experienced
        } else if has(Flags::ECN_CAPABLE) {
            Ecn::Capable
        } else {
            Ecn::NotCapable
        },
    }
}

/// Returns the smallest scale with which `window` fits into 16 bits (RFC 7323 section 2).
fn window_scale(window: u64) -> u8 {
    (0..14).find(|&shift| window >> shift <= UNSCALED_WINDOW).unwrap_or(14)
}

/// Returns the SACK blocks of a packet as sequence numbers, and how many there are.
fn sack_ranges(packet: &PacketView) -> ([(u32, u32); 4], usize) {
    let mut ranges = [(0, 0); 4];
    let blocks = packet.blocks.as_slice();
    let sequence = |segment: u32| {
        (1 + (u64::from(segment) * u64::from(packet.mss)).min(packet.flow_bytes)) as u32
    };
    for (range, &(start, end)) in ranges.iter_mut().zip(blocks) {
        *range = (sequence(start), sequence(end));
    }
    (ranges, blocks.len())
}

fn find_host(graph: &Graph, name: &str) -> Result<HostId, CaptureError> {
    let named = graph.names.iter().position(|known| known == name).map(NodeId::at);
    let numbered = || name.strip_prefix('h').unwrap_or(name).parse().ok().map(NodeId);
    named
        .or_else(numbered)
        .and_then(|node| graph.host(node))
        .ok_or_else(|| CaptureError::UnknownHost { host: name.to_owned(), hosts: graph.hosts })
}

fn host_interface(graph: &Graph, host: HostId) -> Interface {
    let links = graph.links.iter();
    let speed =
        links.clone().find(|link| [link.a, link.b].contains(&host.node())).map(|link| link.rate);
    Interface {
        name: format!("h{host}"),
        description: format!("what host {host} sends and receives"),
        speed: speed.unwrap_or_default(),
    }
}

fn link_interface(graph: &Graph, name: &str, link: PortId) -> Interface {
    Interface {
        name: name.to_owned(),
        description: format!("what the link {name} carries"),
        speed: graph.links[link.link()].rate,
    }
}
