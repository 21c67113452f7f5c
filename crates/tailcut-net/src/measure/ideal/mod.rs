//! The ideal completion time of a flow that has the network to itself, by recurrence over its
//! segments instead of events.
//!
//! With D(i, l) the time when segment i has left stage l, store-and-forward gives D(i, l) =
//! max(D(i, l-1) + propagation, D(i-c, l)) + transmission. Here c is the number of parallel links
//! in the stage: the i-th segment cannot leave it before the (i-c)-th has. Acknowledgements return
//! over idle links. The window decides when segment i may leave. After a while the pattern repeats;
//! from there on it is continued arithmetically.
//!
//! The result is a lower bound for the flow among other traffic: other flows' packets and
//! acknowledgements, losses and marks only delay it. Packets of the flow itself may overtake each
//! other or be lost in three cases: the flow has several paths, the network loses packets that find
//! room, or queues serve its connections in turn. In these cases the bound does not let the packets
//! wait for each other. Otherwise a flow with the network to itself takes exactly this time, if
//! every segment is acknowledged at once. A tail probe may leave although nothing is lost if full
//! segments take more than twice as long as the handshake; the bound then has room for it from the
//! start.

mod window;

use tailcut_engine::Time;

use crate::port::SerializationRate;
use window::Windows;
pub use window::{Subflows, TransportShape};

/// A stage of a path: parallel links of which every packet crosses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkStage {
    /// Serialization rate of the fastest link.
    pub clocking: SerializationRate,
    /// Shortest propagation delay of the links, in picoseconds.
    pub propagation: u64,
    /// Number of links.
    pub parallel_links: u32,
}

/// The stages that a flow's packets cross in both directions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundTripPath {
    /// From the sender to the receiver.
    pub forward: Vec<LinkStage>,
    /// From the receiver to the sender.
    pub backward: Vec<LinkStage>,
    /// Whether the network may lose a packet although there is room for it.
    pub lossy: bool,
    /// Whether queues may send a packet before earlier ones of the same flow, even on one link.
    pub overtaking: bool,
}

/// Times of the segments of an endless flow that has its path to itself, computed as far as needed.
/// All times in picoseconds.
#[derive(Debug, Clone)]
pub struct IdealFlow {
    shape: TransportShape,
    path: RoundTripPath,
    windows: Windows,
    /// Time at which the first segment may leave the sender.
    established: u64,
    /// Time from the sending of an ACK to its arrival.
    ack_trip: u64,
    /// Time from the sending of a SYN to the arrival of its answer.
    syn_round_trip: u64,
    /// D(i, l) per segment, flattened, after a row for the handshake's last ACK.
    sent: Vec<u64>,
    /// Per segment: when the window releases it to the NIC's queue, and when it arrives.
    released: Vec<u64>,
    arrived: Vec<u64>,
    /// The slowest stage, and how many segments in a row have passed it and all later stages back
    /// to back.
    bottleneck: usize,
    saturated: usize,
    /// Period in segments and its duration, once the pattern repeats.
    cycle: Option<(usize, u64)>,
}

impl IdealFlow {
    /// Creates the times of a flow that has `path` to itself.
    pub fn new(path: RoundTripPath, shape: TransportShape) -> IdealFlow {
        let trip = |stages: &[LinkStage], bytes: u16| -> u64 {
            stages.iter().map(|s| s.clocking.transmission(bytes) + s.propagation).sum()
        };
        let syn_round_trip = trip(&path.forward, shape.syn) + trip(&path.backward, shape.syn);
        let ack_trip = trip(&path.backward, shape.ack);
        // The smoothed round trip is never below the shortest one, and a probe waits for two of
        // them.
        let round_trip = trip(&path.forward, shape.full()) + ack_trip;
        let probed = shape.probes && round_trip > 2 * syn_round_trip.min(round_trip);
        let shape = if probed { shape.probing() } else { shape };
        // The SYN, or the handshake's own ACK, leaves before the first segment, which follows it
        // where there is only one path.
        let (established, before) = match shape.handshake {
            true => (syn_round_trip, shape.ack),
            false => (0, shape.syn),
        };
        let mut sent = vec![0; path.forward.len()];
        let mut at = established;
        let in_order = if path.lossy || path.overtaking { 1 } else { in_order(&path.forward) };
        for (stage, departure) in path.forward.iter().zip(&mut sent).take(in_order) {
            *departure = at + stage.clocking.transmission(before);
            at = *departure + stage.propagation;
        }
        IdealFlow {
            windows: Windows::new(shape),
            established,
            ack_trip,
            syn_round_trip,
            sent,
            released: vec![],
            arrived: vec![],
            bottleneck: slowest(&path.forward),
            saturated: 0,
            cycle: None,
            shape,
            path,
        }
    }

    /// Returns the times from the SYN handed to the NIC until the last of `bytes` bytes arrives,
    /// and until its ACK is back at the sender. The receiver acknowledges at once. `bytes` must be
    /// at least 1.
    pub fn completion(&mut self, bytes: u64) -> (Time, Time) {
        let last = (bytes - 1) / self.shape.mss;
        let payload = bytes - last * self.shape.mss;
        let (index, shift) = self.locate(last as usize);
        let received = if payload == self.shape.mss {
            self.arrived[index]
        } else {
            self.short_arrival(index, payload)
        };
        (Time(received + shift), Time(self.acknowledged(index, received) + shift))
    }

    /// Returns when everything has arrived if segment `index` is the last and carries only
    /// `payload` bytes.
    fn short_arrival(&mut self, index: usize, payload: u64) -> u64 {
        let size = payload as u16 + self.shape.header;
        let mut at = self.release(index, payload).0;
        let in_order = if self.path.overtaking { 0 } else { in_order(&self.path.forward) };
        for (l, stage) in self.path.forward.iter().enumerate() {
            let behind = if l < in_order { self.row(index)[l] } else { 0 };
            at = at.max(behind) + stage.clocking.transmission(size) + stage.propagation;
        }
        index.checked_sub(1).map_or(at, |before| at.max(self.arrived[before]))
    }

    /// Returns when the sender has the ACK of the last segment, number `index`, which arrived at
    /// `received`.
    fn acknowledged(&self, index: usize, received: u64) -> u64 {
        let RoundTripPath { forward, backward, lossy, overtaking } = &self.path;
        let one_path = in_order(forward) == forward.len() && in_order(backward) == backward.len();
        let follows = one_path && !lossy && !overtaking && self.shape.acks_each;
        // The segment before may still be on a slow link, if the last segment is short.
        let before = index.checked_sub(1).filter(|_| follows).map_or(0, |at| self.arrived[at]);
        let (mut at, mut ahead) = (received, before);
        for stage in backward {
            let transmission = stage.clocking.transmission(self.shape.ack);
            let busy_until = ahead + transmission;
            at = at.max(busy_until) + transmission + stage.propagation;
            ahead = busy_until + stage.propagation;
        }
        at
    }

    /// Extends the recurrence to segment `index`, or finds the earlier segment of the cycle that it
    /// repeats. Returns that segment and the time between the two.
    fn locate(&mut self, index: usize) -> (usize, u64) {
        while self.released.len() <= index {
            if let Some((period, duration)) = self.cycle {
                let beyond = index - (self.released.len() - 1);
                let cycles = beyond.div_ceil(period);
                // Saturates where the flow never ends in practice; half the range leaves room for
                // what is added.
                let shift = (cycles as u64).saturating_mul(duration).min(u64::MAX / 2);
                return (index - cycles * period, shift);
            }
            self.extend();
        }
        (index, 0)
    }

    /// Returns the departures of the segment before `index`, or of the handshake's ACK.
    fn row(&self, index: usize) -> &[u64] {
        let stages = self.path.forward.len();
        &self.sent[index * stages..(index + 1) * stages]
    }

    /// Returns when the window releases segment `index` of `payload` bytes, and how many ACKs that
    /// takes.
    fn release(&mut self, index: usize, payload: u64) -> (u64, usize) {
        let end = index as u64 * self.shape.mss + payload;
        let first = self.windows.acks_for(end);
        let alone = (self.heard(first), first);
        let Some(subflows) = self.shape.subflows else { return alone };
        // The other subflows open when this segment has its turn, and help the segments after it.
        let Some(&asked) = self.released.get(subflows.after as usize) else { return alone };
        let acks = self.windows.acks_for_all(end);
        let together = (self.heard(acks).max(asked + self.syn_round_trip), acks);
        alone.min(together)
    }

    /// Returns when the sender has received `acks` ACKs.
    fn heard(&self, acks: usize) -> u64 {
        acks.checked_sub(1).map_or(self.established, |last| self.arrived[last] + self.ack_trip)
    }

    fn extend(&mut self) {
        let index = self.released.len();
        let (release, acks) = self.release(index, self.shape.mss);
        self.released.push(release);
        let mut at = release;
        for (l, stage) in self.path.forward.iter().enumerate() {
            let ahead = (index + 1).checked_sub(stage.parallel_links as usize);
            let free = ahead.map_or(0, |row| self.row(row)[l]);
            let departure = at.max(free) + stage.clocking.transmission(self.shape.full());
            self.sent.push(departure);
            at = departure + stage.propagation;
        }
        self.arrived.push(at);
        self.find_cycle(acks);
    }

    /// Detects one of two patterns that repeat for ever. In a saturated bottleneck, once a whole
    /// window has passed back to back, every later segment does, because windows only grow; the
    /// period is one segment for each of the stage's links. With a full receive window, once it
    /// limits and one window repeats the previous one, so do all later ones.
    fn find_cycle(&mut self, acks: usize) {
        let last = self.released.len() - 1;
        let LinkStage { clocking, parallel_links: parallel, .. } =
            self.path.forward[self.bottleneck];
        let (spacing, parallel) = (clocking.transmission(self.shape.full()), parallel as usize);
        let back_to_back = last >= parallel && {
            let (here, before) = (self.row(last + 1), self.row(last + 1 - parallel));
            (self.bottleneck..here.len()).all(|l| here[l] == before[l] + spacing)
        };
        self.saturated = if back_to_back { self.saturated + 1 } else { 0 };
        // An unbounded window has no part in the pattern.
        let bounded = self.shape.initial_window.min(self.shape.receive_window) < u64::MAX;
        let in_flight = if bounded { last + 1 - acks } else { 0 };
        if self.saturated >= in_flight + parallel {
            self.cycle = Some((parallel, spacing));
            return;
        }
        let joined = self.shape.subflows.is_none_or(|subflows| {
            let asked = self.released.get(subflows.after as usize);
            asked.is_some_and(|asked| asked + self.syn_round_trip <= self.released[last])
        });
        let Some(period) = self.windows.full_at(acks).filter(|_| joined) else { return };
        if last / 2 < period || !last.is_multiple_of(period) {
            return;
        }
        let step = |i: usize| -> Option<u64> {
            let duration = self.released[i] - self.released[i - period];
            let (here, before) = (self.row(i + 1), self.row(i + 1 - period));
            let same = here.iter().zip(before).all(|(a, b)| a - b == duration);
            same.then_some(duration)
        };
        let Some(duration) = step(last) else { return };
        if (last - period + 1..last).all(|i| step(i) == Some(duration)) {
            self.cycle = Some((period, duration));
        }
    }
}

/// Returns how many stages, from the first on, keep a flow's packets in order.
fn in_order(stages: &[LinkStage]) -> usize {
    stages.iter().take_while(|stage| stage.parallel_links == 1).count()
}

/// Returns the first of the stages with the lowest packet rate.
fn slowest(stages: &[LinkStage]) -> usize {
    let longer = |a: &LinkStage, b: &LinkStage| {
        let (a_takes, b_takes) =
            (a.clocking.transmission(u16::MAX), b.clocking.transmission(u16::MAX));
        u128::from(a_takes) * u128::from(b.parallel_links)
            > u128::from(b_takes) * u128::from(a.parallel_links)
    };
    (1..stages.len()).fold(0, |slow, at| if longer(&stages[at], &stages[slow]) { at } else { slow })
}
