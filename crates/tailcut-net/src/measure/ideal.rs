//! The lone-flow closed form: the completion time of a flow that has the
//! network to itself, by recurrence over its segments instead of events.
//!
//! With D(i, l) the time when segment i has left link l, store-and-forward gives
//! D(i, l) = max(D(i, l-1) + propagation, D(i-1, l)) + transmission. ACKs of a lone
//! flow never queue behind each other once data has crossed the bottleneck, so
//! the same recurrence carries them back. The window (initial window, slow
//! start, receive window) decides when segment i may leave. After a while the
//! pattern repeats; from there on it is continued arithmetically.

use tailcut_engine::Time;

use crate::port::Clocking;

/// One link of the path.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    /// Serialisation.
    pub clocking: Clocking,
    /// Propagation delay in picoseconds.
    pub propagation: u64,
}

/// What the recurrence needs to know of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Payload of a full segment.
    pub mss: u64,
    /// Bytes that a data segment needs on the wire beyond its payload.
    pub header: u16,
    /// Wire size of an ACK.
    pub ack: u16,
    /// Wire size of a SYN and of a SYN-ACK.
    pub syn: u16,
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// Initial slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Receive window in bytes.
    pub receive_window: u64,
}

/// Times of the first segments of an endless flow on one path.
#[derive(Debug, Clone)]
pub struct LonePath {
    shape: Shape,
    forward: Vec<Hop>,
    /// When the first segment may leave the sender.
    established: u64,
    /// Forward and reverse D(i, l) per segment, flattened.
    sent: Vec<u64>,
    acked: Vec<u64>,
    /// Release time of segment i, before the NIC's own queue.
    released: Vec<u64>,
    /// The slowest link, and how many segments have passed it back to back.
    bottleneck: usize,
    saturated: usize,
    /// (period in segments, duration) once the pattern repeats.
    cycle: Option<(usize, u64)>,
    window: WindowClock,
}

/// Follows the window from ACK to ACK.
#[derive(Debug, Clone, Copy)]
struct WindowClock {
    cwnd: u64,
    acks: usize,
}

impl LonePath {
    /// A path of the links `forward`, back over the same rates and delays in reverse.
    pub fn new(forward: Vec<Hop>, shape: Shape) -> LonePath {
        let trip = |bytes: u16| -> u64 {
            forward.iter().map(|h| h.clocking.transmission(bytes) + h.propagation).sum()
        };
        // The handshake's own ACK leaves before the first segment and occupies the NIC.
        let established = 2 * trip(shape.syn);
        let handshake_ack: Vec<u64> = {
            let mut at = established;
            forward
                .iter()
                .map(|hop| {
                    let departure = at + hop.clocking.transmission(shape.ack);
                    at = departure + hop.propagation;
                    departure
                })
                .collect()
        };
        LonePath {
            shape,
            established,
            sent: handshake_ack,
            acked: vec![0; forward.len()],
            released: vec![],
            bottleneck: slowest(&forward),
            saturated: 0,
            cycle: None,
            window: WindowClock { cwnd: shape.initial_window, acks: 0 },
            forward,
        }
    }

    /// SYN handed to the NIC until the last of `bytes` bytes arrives, and until its ACK is back at the sender, which
    /// the receiver sends at once.
    pub fn completion(&mut self, bytes: u64) -> (Time, Time) {
        let last = (bytes - 1) / self.shape.mss;
        let payload = bytes - last * self.shape.mss;
        let (index, shift) = self.locate(last as usize);
        let later = |row: &[u64]| row.iter().map(|d| d + shift).collect::<Vec<u64>>();
        let release = self.released[index] + shift;
        let size = payload as u16 + self.shape.header;
        let received = carry(&self.forward, &later(self.departures(index)), release, size, |_| {});
        let hops = self.forward.len();
        let acks = later(&self.acked[index * hops..(index + 1) * hops]);
        let backward: Vec<Hop> = self.forward.iter().rev().copied().collect();
        let acknowledged = carry(&backward, &acks, received, self.shape.ack, |_| {});
        (Time(received), Time(acknowledged))
    }

    /// Extends the recurrence to segment `index`, or finds a segment of the cycle that it repeats.
    fn locate(&mut self, index: usize) -> (usize, u64) {
        while self.released.len() <= index {
            if let Some((period, duration)) = self.cycle {
                let beyond = index - (self.released.len() - 1);
                let cycles = beyond.div_ceil(period);
                return (index - cycles * period, cycles as u64 * duration);
            }
            self.extend();
        }
        (index, 0)
    }

    /// D(i - 1, l): the departures just before segment `index`.
    fn departures(&self, index: usize) -> &[u64] {
        let hops = self.forward.len();
        &self.sent[index * hops..(index + 1) * hops]
    }

    /// When segment `index`, at this offset, is let go by the window; consumes ACKs as needed.
    fn release(&mut self, index: usize) -> u64 {
        let hops = self.forward.len();
        let mut at = self.established;
        let mss = self.shape.mss;
        loop {
            let acked = self.window.acks as u64 * mss;
            let flight = index as u64 * mss - acked;
            if flight + mss <= self.window.cwnd.min(self.shape.receive_window) {
                break;
            }
            self.window.acks += 1;
            let cwnd = self.window.cwnd;
            self.window.cwnd +=
                if cwnd < self.shape.ssthresh { mss } else { (mss * mss / cwnd).max(1) };
        }
        if self.window.acks > 0 {
            let arrival = self.acked[self.window.acks * hops + hops - 1];
            at = arrival + self.forward[0].propagation;
        }
        at
    }

    fn extend(&mut self) {
        let hops = self.forward.len();
        let index = self.released.len();
        let release = self.release(index);
        self.released.push(release);
        let previous = self.departures(index).to_vec();
        let full = self.shape.mss as u16 + self.shape.header;
        let sent = &mut self.sent;
        let arrival = carry(&self.forward, &previous, release, full, |d| sent.push(d));
        let before = self.acked[index * hops..].to_vec();
        let backward: Vec<Hop> = self.forward.iter().rev().copied().collect();
        let acked = &mut self.acked;
        carry(&backward, &before, arrival, self.shape.ack, |d| acked.push(d));
        self.find_cycle();
    }

    /// Two patterns repeat for ever. A saturated bottleneck: once a whole window
    /// has passed it back to back, every later segment does, because windows only
    /// grow; the period is one segment. A full receive window: once it limits, and
    /// one window repeats the previous one, so do all later ones.
    fn find_cycle(&mut self) {
        let hops = self.forward.len();
        let last = self.released.len() - 1;
        let row = |i: usize| &self.sent[(i + 1) * hops..(i + 2) * hops];
        let full = self.shape.mss as u16 + self.shape.header;
        let spacing = self.forward[self.bottleneck].clocking.transmission(full);
        let back_to_back =
            last > 0 && row(last)[self.bottleneck] == row(last - 1)[self.bottleneck] + spacing;
        self.saturated = if back_to_back { self.saturated + 1 } else { 0 };
        let in_flight = last + 1 - self.window.acks;
        if self.saturated > in_flight {
            self.cycle = Some((1, spacing));
            return;
        }
        let period = (self.shape.receive_window / self.shape.mss) as usize;
        let open = self.window.cwnd >= self.shape.receive_window;
        if !open || last < 2 * period || last % period != 0 {
            return;
        }
        let step = |i: usize| -> Option<u64> {
            let duration = self.released[i] - self.released[i - period];
            let same = row(i).iter().zip(row(i - period)).all(|(a, b)| a - b == duration);
            same.then_some(duration)
        };
        let Some(duration) = step(last) else { return };
        if (last - period + 1..last).all(|i| step(i) == Some(duration)) {
            self.cycle = Some((period, duration));
        }
    }
}

/// The first of the links with the longest transmission.
fn slowest(hops: &[Hop]) -> usize {
    let longest = hops.iter().map(|h| h.clocking.transmission(u16::MAX)).max();
    hops.iter().position(|h| Some(h.clocking.transmission(u16::MAX)) == longest).unwrap_or(0)
}

/// Sends one packet over `hops` behind a packet that left them at `previous`; returns its arrival.
fn carry(
    hops: &[Hop],
    previous: &[u64],
    release: u64,
    size: u16,
    mut departed: impl FnMut(u64),
) -> u64 {
    let mut at = release;
    for (hop, &busy_until) in hops.iter().zip(previous) {
        let departure = at.max(busy_until) + hop.clocking.transmission(size);
        departed(departure);
        at = departure + hop.propagation;
    }
    at
}
