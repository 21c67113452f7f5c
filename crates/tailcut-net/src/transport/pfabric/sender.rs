//! The sending half of a pFabric connection.

use tailcut_engine::Time;

use super::PfabricSpec;
use crate::packet::SackBlocks;
use crate::transport::life::{ConnectionState, Lifecycle, Transmit, owed, segments_of};
use crate::transport::tcp::SenderCounters;
use crate::transport::tcp::scoreboard::Scoreboard;

/// The sending half of a connection that carries `size` bytes. Positions and windows count
/// segments.
#[derive(Debug, Clone)]
pub struct PfabricSender {
    size: u64,
    segments: u32,
    life: Lifecycle,
    /// First unacknowledged segment.
    una: u32,
    /// Next segment never sent.
    next: u32,
    cwnd: u32,
    ssthresh: u32,
    /// Acknowledgements since the window last grew, above the threshold.
    acks: u32,
    /// Timeouts since anything was last heard.
    silent_timeouts: u32,
    /// Starved: only probes are sent.
    probing: bool,
    board: Scoreboard,
    counters: SenderCounters,
}

impl PfabricSender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &PfabricSpec, size: u64, open_at: Time) -> PfabricSender {
        PfabricSender {
            size,
            segments: segments_of(size, spec.mss),
            life: Lifecycle::opening_at(open_at),
            una: 0,
            next: 0,
            cwnd: spec.initial_window,
            ssthresh: spec.max_window,
            acks: 0,
            silent_timeouts: 0,
            probing: false,
            board: Scoreboard::default(),
            counters: SenderCounters::default(),
        }
    }

    /// Data segments in the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Returns the state of the connection.
    pub fn phase(&self) -> ConnectionState {
        self.life.phase()
    }
    /// Window in packets.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }
    /// Slow-start threshold in packets.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }
    /// True while only probes are sent.
    pub fn probing(&self) -> bool {
        self.probing
    }
    /// First unacknowledged segment.
    pub fn una(&self) -> u32 {
        self.una
    }
    /// Returns the counters of the connection.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// Returns when [`PfabricSender::on_timer`] is due.
    pub fn deadline(&self) -> Time {
        self.life.deadline
    }
    /// True once nothing more can happen on this half.
    pub fn finished(&self) -> bool {
        self.life.is_finished()
    }
    /// Payload bytes of segment `seq`.
    pub fn payload(&self, spec: &PfabricSpec, seq: u32) -> u64 {
        (self.size - u64::from(seq) * spec.mss.0).min(spec.mss.0)
    }

    /// The priority of a packet sent now: the bytes that the receiver is not known to have (section
    /// 4.1, "remaining flow size"); least is best.
    pub fn remaining(&self, spec: &PfabricSpec) -> u64 {
        let arrived = u64::from(self.una + self.board.sacked()) * spec.mss.0;
        self.size.saturating_sub(arrived).max(1)
    }

    /// The timer has reached [`PfabricSender::deadline`].
    pub fn on_timer(&mut self, spec: &PfabricSpec, now: Time) {
        match self.life.phase() {
            ConnectionState::Closed => self.life.open(),
            ConnectionState::SynSent => {
                self.counters.timeouts += 1;
                self.life.set_pending(owed::SYN);
            }
            ConnectionState::Established => self.on_timeout(spec),
            ConnectionState::Done | ConnectionState::Aborted => {}
        }
        self.life.deadline = if self.finished() { Time::NEVER } else { now + spec.rto };
    }

    fn on_timeout(&mut self, spec: &PfabricSpec) {
        self.counters.timeouts += 1;
        self.silent_timeouts += 1;
        // Held while the timer only repeats itself (RFC 5681, equation 4): the flow is starved, not
        // the network congested.
        if self.silent_timeouts == 1 {
            self.ssthresh = (self.cwnd / 2).max(2);
        }
        self.cwnd = 1;
        self.acks = 0;
        self.board.mark_all_lost();
        if self.silent_timeouts >= spec.probe_after {
            self.probing = true;
            self.life.set_pending(owed::PROBE);
        }
    }

    /// The SYN-ACK has arrived.
    pub fn on_syn_ack(&mut self) {
        self.life.on_syn_ack();
    }

    /// The receiver reset the connection.
    pub fn on_reset(&mut self) {
        self.life.on_reset();
    }

    /// The application gives the connection up.
    pub fn abort(&mut self) {
        self.life.abort();
    }

    /// An acknowledgement of every segment below `ack`, and of the blocks, has arrived.
    pub fn on_ack(&mut self, spec: &PfabricSpec, now: Time, ack: u32, blocks: &SackBlocks) {
        if !self.life.hears_acks() || ack < self.una || ack > self.board.end() {
            return;
        }
        self.silent_timeouts = 0;
        if self.probing {
            // Section 4.2: a flow that is heard again starts anew, from slow start.
            self.probing = false;
            self.life.clear_pending(owed::PROBE);
            self.ssthresh = spec.max_window;
        }
        self.board.on_blocks(blocks);
        if ack > self.una {
            self.board.on_cumulative(ack, now);
            self.una = ack;
            self.grow(spec);
            self.life.deadline =
                if self.una == self.board.end() { Time::NEVER } else { now + spec.rto };
        }
        if self.una == self.segments {
            self.life.complete();
        }
    }

    /// Grows the window: by a packet per ACK below the threshold, per window above it.
    fn grow(&mut self, spec: &PfabricSpec) {
        self.acks += 1;
        if self.cwnd < self.ssthresh || self.acks >= self.cwnd {
            self.cwnd = (self.cwnd + 1).min(spec.max_window);
            self.acks = 0;
        }
    }

    /// Returns the next packet to send; call until `None`.
    pub fn poll_transmit(&mut self, spec: &PfabricSpec, now: Time) -> Option<Transmit> {
        if self.life.has_output() {
            let due = self.life.poll_control();
            return due.or_else(|| self.life.take_pending(owed::PROBE).then_some(Transmit::Probe));
        }
        if !self.life.is_established() || self.probing || self.board.pipe() >= self.cwnd {
            return None;
        }
        let new = (self.next < self.segments).then_some(self.next);
        let seq = self.board.next_lost().or(new)?;
        self.next = self.next.max(seq + 1);
        let retransmission = self.board.was_sent(seq);
        self.board.on_send(seq, now);
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        if self.life.deadline == Time::NEVER {
            self.life.deadline = now + spec.rto;
        }
        Some(Transmit::Segment { seq, retransmission })
    }
}
