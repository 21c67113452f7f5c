//! Captures of what hosts send and receive, by sockets that look on in their namespaces.

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

/// The type of what an Ethernet frame carries that is IPv4, and where it says so.
const IPV4: [u8; 2] = [8, 0];
const TYPE: std::ops::Range<usize> = 12..14;

/// A frame that came by.
struct CapturedFrame {
    /// When, by the monotonic clock.
    at_ns: u64,
    host: HostId,
    direction: Direction,
    bytes: Vec<u8>,
}

/// A capture under way.
pub struct HostCaptures {
    capture: FrameCapture,
    looks: Vec<(HostId, PacketRing)>,
    /// What another host may have had something before.
    passed: Vec<CapturedFrame>,
    /// When the run begins, by the monotonic clock.
    begin_ns: u64,
    /// The time of the last frame that was written.
    written: Time,
}

impl HostCaptures {
    /// Opens the file, and looks on at the hosts that are asked for.
    ///
    /// # Errors
    /// When the file cannot be written, when there is no such host, and the kernel's.
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
        Ok(HostCaptures { capture, looks, passed: vec![], begin_ns: u64::MAX, written: Time::ZERO })
    }

    /// The run begins then, by the monotonic clock: what came by before is not the run's.
    pub fn begin(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// Takes what came by since it was looked at last.
    pub fn poll(&mut self) {
        let now_ns = monotonic_ns();
        let ahead = real_ahead_ns();
        for (host, frames) in &mut self.looks {
            while frames.receive(|frame| {
                let at_ns = frame.real_ns.saturating_sub(ahead);
                if at_ns < self.begin_ns || frame.bytes.get(TYPE) != Some(&IPV4) {
                    return;
                }
                let direction =
                    if frame.outgoing { Direction::Outbound } else { Direction::Inbound };
                let bytes = frame.bytes.to_vec();
                self.passed.push(CapturedFrame { at_ns, host: *host, direction, bytes });
            }) {}
        }
        // One host after the other is looked at: what came by meanwhile may be later than what another one shows next.
        self.write(now_ns);
    }

    fn write(&mut self, until_ns: u64) {
        self.passed.sort_by_key(|passed| passed.at_ns);
        let until = self.passed.partition_point(|passed| passed.at_ns < until_ns);
        for CapturedFrame { at_ns, host, direction, bytes } in self.passed.drain(..until) {
            // The clocks are read one after the other, so that a look may tell times that are some microseconds before the last one's.
            self.written = self.written.max(Time((at_ns - self.begin_ns) * 1_000));
            self.capture.frame(self.written, host, direction, &bytes);
        }
    }

    /// Takes the rest, and completes the file.
    ///
    /// # Errors
    /// Those of writing it, and the kernel's.
    pub fn finish(mut self) -> io::Result<Captured> {
        self.poll();
        self.write(u64::MAX);
        let mut missed = 0;
        for (_, frames) in &mut self.looks {
            missed += frames.dropped()?;
        }
        let made = self.capture.finish(self.written).map_err(io::Error::other)?;
        Ok(Captured { packets: made.packets, left_out: made.left_out + missed })
    }
}
