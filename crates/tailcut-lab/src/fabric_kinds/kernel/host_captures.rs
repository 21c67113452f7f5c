//! Captures of hosts' traffic, by sockets that observe the interfaces of their namespaces.

use std::io;

use tailcut_engine::Time;
use tailcut_experiment::CaptureRequest;
use tailcut_net::capture::pcapng::Direction;
use tailcut_net::topology::HostId;

use super::switches::Switches;
use crate::fabric::carrier::{FrameCapture, RING_FRAMES};
use crate::messages::Captured;
use crate::sys::packet_ring::{FrameDirections, PacketRing};
use crate::sys::{monotonic_ns, process, real_ahead_ns};

/// The EtherType of IPv4, and its place in a frame.
const IPV4: [u8; 2] = [8, 0];
const TYPE: std::ops::Range<usize> = 12..14;

/// An observed frame.
struct CapturedFrame {
    /// The time of the frame, on the monotonic clock.
    at_ns: u64,
    host: HostId,
    direction: Direction,
    bytes: Vec<u8>,
}

/// A capture that is being written.
pub struct HostCaptures {
    capture: FrameCapture,
    rings: Vec<(HostId, PacketRing)>,
    /// Observed frames that an earlier frame of another host may still precede.
    pending: Vec<CapturedFrame>,
    /// The start of the run, on the monotonic clock.
    begin_ns: u64,
    /// The time of the last frame written.
    written: Time,
}

impl HostCaptures {
    /// Opens the file, and observes the requested hosts.
    ///
    /// # Errors
    /// The file cannot be written, a host does not exist, or the kernel's error.
    pub fn open(asked: &CaptureRequest, switches: &Switches<'_>) -> io::Result<HostCaptures> {
        let prepared = switches.prepared;
        let capture = asked.open(&prepared.scenario.graph).map_err(io::Error::other)?;
        let mtu = prepared.hosts.mtu as usize;
        let mut looks = vec![];
        for host in capture.hosts() {
            let frames = switches
                .within(host.node(), || PacketRing::new(FrameDirections::Both, mtu, RING_FRAMES))?;
            looks.push((host, frames));
        }
        process::join_network(&switches.home)?;
        Ok(HostCaptures {
            capture,
            rings: looks,
            pending: vec![],
            begin_ns: u64::MAX,
            written: Time::ZERO,
        })
    }

    /// Sets the start of the run, on the monotonic clock; earlier frames are ignored.
    pub fn begin(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// Collects the frames observed since the last call.
    pub fn poll(&mut self) {
        let now_ns = monotonic_ns();
        let ahead = real_ahead_ns();
        for (host, frames) in &mut self.rings {
            while frames.receive(|frame| {
                let at_ns = frame.real_ns.saturating_sub(ahead);
                if at_ns < self.begin_ns || frame.bytes.get(TYPE) != Some(&IPV4) {
                    return;
                }
                let direction =
                    if frame.outgoing { Direction::Outbound } else { Direction::Inbound };
                let bytes = frame.bytes.to_vec();
                self.pending.push(CapturedFrame { at_ns, host: *host, direction, bytes });
            }) {}
        }
        // Hosts are read one after the other: a frame observed meanwhile may be later than one that
        // another host still holds.
        self.write(now_ns);
    }

    fn write(&mut self, until_ns: u64) {
        self.pending.sort_by_key(|passed| passed.at_ns);
        let until = self.pending.partition_point(|passed| passed.at_ns < until_ns);
        for CapturedFrame { at_ns, host, direction, bytes } in self.pending.drain(..until) {
            // The two clocks are read at different instants, so times may step back by some
            // microseconds between calls.
            self.written = self.written.max(Time((at_ns - self.begin_ns) * 1_000));
            self.capture.frame(self.written, host, direction, &bytes);
        }
    }

    /// Collects the remaining frames, and completes the file.
    ///
    /// # Errors
    /// The file cannot be written, or the kernel's error.
    pub fn finish(mut self) -> io::Result<Captured> {
        self.poll();
        self.write(u64::MAX);
        let mut missed = 0;
        for (_, frames) in &mut self.rings {
            missed += frames.dropped()?;
        }
        let made = self.capture.finish(self.written).map_err(io::Error::other)?;
        Ok(Captured { packets: made.packets, left_out: made.left_out + missed })
    }
}
