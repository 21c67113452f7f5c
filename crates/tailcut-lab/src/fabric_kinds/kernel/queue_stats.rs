//! Statistics of a namespace's queues over netlink, which takes a hundredth of the time of `tc`.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use tailcut_net::topology::PortId;

use super::ETHERNET;
use crate::sys::monotonic_ns;

/// Counters and backlog of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// When the queue was read, on the monotonic clock.
    pub at_ns: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, Ethernet headers included.
    pub bytes: u64,
    /// Packets dropped for lack of room.
    pub drops: u64,
    /// Queued packets.
    pub waiting: u64,
    /// Queued bytes, Ethernet headers included.
    pub waiting_bytes: u64,
}

impl QueueStats {
    /// Returns the difference to `before`; the backlog is the current one.
    pub fn since(self, before: QueueStats) -> QueueStats {
        QueueStats {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            drops: self.drops - before.drops,
            ..self
        }
    }

    /// Returns the bytes sent, with `framing` bytes around each IP packet.
    pub fn on_wire(self, framing: u64) -> u64 {
        self.bytes + self.packets * (framing - ETHERNET)
    }

    /// Returns the queued bytes, with `framing` bytes around each IP packet.
    pub fn waiting_on_wire(self, framing: u64) -> u64 {
        self.waiting_bytes + self.waiting * (framing - ETHERNET)
    }
}

/// Reads queue statistics of one network namespace over netlink. The socket stays in that namespace
/// when the process moves to another.
pub struct QueueStatsReader {
    socket: Socket,
    request: Vec<u8>,
    buffer: Vec<u8>,
    /// The ports, by the indices of their interfaces.
    ports: BTreeMap<i32, PortId>,
}

/// The largest part of an answer, whatever was requested.
const PIECE: usize = 1 << 15;

impl QueueStatsReader {
    /// Opens the reader for the current namespace; `ports` lists indices of interfaces and their
    /// ports.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(ports: Vec<(u32, PortId)>) -> io::Result<QueueStatsReader> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut message = NetlinkMessage::from(ask);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();
        let mut request = vec![0; message.buffer_len()];
        message.serialize(&mut request);
        let ports = ports.into_iter().map(|(number, port)| (number as i32, port)).collect();
        Ok(QueueStatsReader { socket, request, buffer: Vec::with_capacity(PIECE), ports })
    }

    /// Reads the statistics of each port's queue since its set-up, and passes them to `tell`.
    ///
    /// # Errors
    /// The kernel's error, or an invalid answer.
    pub fn read(&mut self, mut tell: impl FnMut(PortId, QueueStats)) -> io::Result<()> {
        self.socket.send(&self.request, 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            let at_ns = monotonic_ns();
            let mut rest = &self.buffer[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(one)) => {
                        let port = self.ports.get(&one.header.index);
                        if let Some((port, counts)) = port.zip(tbf_stats(&one.attributes, at_ns)) {
                            tell(*port, counts);
                        }
                    }
                    _ => {}
                }
                let aligned = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(aligned..).unwrap_or(&[]);
            }
        }
    }
}

/// Extracts the statistics of a tbf qdisc; they include those of its inner queue.
fn tbf_stats(attributes: &[TcAttribute], at_ns: u64) -> Option<QueueStats> {
    let is_tbf = |one: &TcAttribute| matches!(one, TcAttribute::Kind(kind) if kind == "tbf");
    attributes.iter().find(|one| is_tbf(one))?;
    let mut counts = QueueStats { at_ns, ..QueueStats::default() };
    let stats = attributes.iter().filter_map(|one| match one {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    });
    for one in stats.flatten() {
        match one {
            TcStats2::Basic(basic) => {
                (counts.packets, counts.bytes) = (basic.packets.into(), basic.bytes);
            }
            TcStats2::Queue(queue) => {
                counts.drops = queue.drops.into();
                counts.waiting = queue.qlen.into();
                counts.waiting_bytes = queue.backlog.into();
            }
            _ => {}
        }
    }
    Some(counts)
}
