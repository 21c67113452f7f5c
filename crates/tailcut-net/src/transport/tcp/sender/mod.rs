//! The sending half of a connection (RFC 9293, 5681, 6298, 6582, 3042, 6675, 9937).
//!
//! Sans-I/O: [`Sender::on_ack`] and [`Sender::on_timer`] take what happened,
//! [`Sender::poll_transmit`] yields what to send, [`Sender::deadline`] says when
//! to wake it. Positions count segments; windows count bytes, as in the RFCs.

mod ecn;
mod newreno;
mod reordering;
mod sack;
mod state;
mod subflow;

use tailcut_engine::Time;

pub use state::{CongestionState, Phase, SenderCounters, Transmit};

use super::congestion::{Acked, Congestion, Window};
use super::prr::Prr;
use super::reordering::Reordering;
use super::rtt::Rtt;
use super::scoreboard::{Progress, Scoreboard};
use super::{Imitation, Recovery, TcpSpec};
use crate::packet::SackBlocks;

const OWES_SYN: u8 = 1;
const OWES_ACK: u8 = 2;
const OWES_RESET: u8 = 4;
/// NewReno: the first outstanding segment is to be sent again.
const OWES_RESEND: u8 = 8;
/// SACK: one segment is due whatever the window says.
const OWES_NEXT: u8 = 16;

/// The sending half of a connection that carries `size` bytes.
#[derive(Debug, Clone)]
pub struct Sender {
    size: u64,
    segments: u32,
    /// More segments may be assigned (a subflow).
    endless: bool,
    phase: Phase,
    state: CongestionState,
    owes: u8,
    /// First unacknowledged segment.
    una: u32,
    /// Next segment to send; below the scoreboard's end after a timeout without SACK.
    next: u32,
    /// What must be acknowledged to leave recovery (RFC 6582 "recover").
    recover: u32,
    window: Window,
    congestion: Congestion,
    /// Duplicate ACKs that start recovery.
    threshold: u32,
    /// The connection uses ECN.
    ecn: bool,
    /// The ACK in hand opens no window, for its ECN echo.
    pauses: bool,
    /// The next new segment says that the window was reduced (CWR of RFC 3168).
    owes_cwr: bool,
    /// An ECN echo up to here belongs to a window of data that has had its reduction.
    reduced_until: u32,
    duplicates: u32,
    /// A partial ACK of this recovery has already re-armed the timer (RFC 6582 step 3).
    rearmed: bool,
    syn_tries: u32,
    opened: Time,
    deadline: Time,
    /// The first outstanding segment at the last timeout.
    timed_out: Option<u32>,
    rtt: Rtt,
    board: Scoreboard,
    prr: Prr,
    /// None where a fixed threshold tells loss from reordering.
    reordering: Option<Box<Reordering>>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &TcpSpec, size: u64, open_at: Time) -> Sender {
        Sender {
            size,
            segments: u32::try_from(size.div_ceil(spec.mss.0))
                .expect("a flow has fewer than 2^32 segments"),
            endless: false,
            phase: Phase::Closed,
            state: CongestionState::Open,
            owes: 0,
            una: 0,
            next: 0,
            recover: 0,
            window: Window::initial(spec),
            congestion: spec.congestion.start(),
            threshold: spec.dupack_threshold,
            ecn: spec.uses_ecn(),
            pauses: false,
            owes_cwr: false,
            reduced_until: 0,
            duplicates: 0,
            rearmed: false,
            syn_tries: 0,
            opened: open_at,
            deadline: open_at,
            timed_out: None,
            rtt: Rtt::new(spec),
            board: Scoreboard::default(),
            prr: Prr::default(),
            reordering: spec.reordering.start(),
            counters: SenderCounters::default(),
        }
    }

    /// Data segments in the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Where the connection is in its life.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// How the sender regards the network.
    pub fn state(&self) -> CongestionState {
        self.state
    }
    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd
    }
    /// Slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
    /// The congestion control.
    pub fn congestion(&self) -> &Congestion {
        &self.congestion
    }
    /// Puts another congestion control in place of the one that the parameters name.
    pub fn set_congestion(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }
    /// Sets how much a coupled window grows: bytes per byte acknowledged. No effect on other windows.
    pub fn couple(&mut self, increase: f64) {
        if let Congestion::Coupled(coupled) = &mut self.congestion {
            coupled.increase = increase;
        }
    }
    /// Duplicate ACKs that start recovery now.
    pub fn dupack_threshold(&self) -> u32 {
        self.threshold
    }
    /// Sets how many duplicate ACKs start recovery, at least 1.
    pub fn set_dupack_threshold(&mut self, threshold: u32) {
        self.threshold = threshold.max(1);
    }
    /// First unacknowledged segment.
    pub fn una(&self) -> u32 {
        self.una
    }
    /// Round-trip time and timeout.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }
    /// What the connection has done so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// When [`Sender::on_timer`] wants to be called.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }
    /// True once nothing more can happen on this half.
    #[inline]
    pub fn finished(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Aborted)
    }

    /// Payload bytes of segment `seq`.
    #[inline]
    pub fn payload(&self, spec: &TcpSpec, seq: u32) -> u64 {
        (self.size - u64::from(seq) * spec.mss.0).min(spec.mss.0)
    }

    /// Bytes before segment `seq`.
    #[inline]
    fn offset(&self, spec: &TcpSpec, seq: u32) -> u64 {
        (u64::from(seq) * spec.mss.0).min(self.size)
    }

    /// The timer has reached [`Sender::deadline`].
    pub fn on_timer(&mut self, spec: &TcpSpec, now: Time) {
        match self.phase {
            Phase::Closed => {
                self.phase = Phase::SynSent;
                self.owes |= OWES_SYN;
            }
            Phase::SynSent => {
                self.counters.timeouts += 1;
                if self.syn_tries > spec.syn_retries {
                    self.phase = Phase::Aborted;
                    self.deadline = Time::NEVER;
                    return;
                }
                self.rtt.back_off(spec);
                self.owes |= OWES_SYN;
            }
            Phase::Established => self.on_timeout(spec),
            Phase::Done | Phase::Aborted => self.deadline = Time::NEVER,
        }
        if self.phase == Phase::SynSent || self.phase == Phase::Established {
            self.deadline = now + self.rtt.rto();
        }
    }

    /// RFC 5681 section 3.1 and RFC 6298 section 5.
    fn on_timeout(&mut self, spec: &TcpSpec) {
        self.counters.timeouts += 1;
        // Held constant while the timer resends one segment again and again (equation 4).
        if self.timed_out != Some(self.una) {
            self.timed_out = Some(self.una);
            let flight = match spec.recovery {
                Recovery::Newreno => self.flight(spec),
                Recovery::SackPrr => self.pipe(spec),
            };
            self.window.ssthresh =
                self.congestion.on_timeout(&self.usable(spec), flight, spec.mss.0);
        }
        self.rtt.back_off(spec);
        self.window.cwnd = spec.mss.0;
        self.state = CongestionState::Loss;
        if let Some(reordering) = &mut self.reordering {
            reordering.undo = None;
        }
        self.recover = self.board.end();
        self.reduced();
        self.duplicates = 0;
        self.owes &= !(OWES_RESEND | OWES_NEXT);
        match spec.recovery {
            Recovery::Newreno => self.next = self.una,
            Recovery::SackPrr => self.board.mark_all_lost(),
        }
    }

    /// The SYN-ACK has arrived.
    pub fn on_syn_ack(&mut self, spec: &TcpSpec, now: Time) {
        match self.phase {
            Phase::SynSent => {
                self.phase = Phase::Established;
                if self.syn_tries == 1 || spec.imitate == Imitation::Ns3 {
                    self.rtt.sample(spec, now.since(self.opened));
                } else {
                    self.rtt.established_late(spec);
                }
                self.deadline = Time::NEVER;
                self.owes = OWES_ACK;
            }
            // Our ACK of an earlier SYN-ACK was lost.
            Phase::Established | Phase::Done => {
                self.owes |= OWES_ACK;
                if spec.imitate == Imitation::Ns3 {
                    self.window = Window::initial(spec);
                }
            }
            Phase::Aborted => self.owes |= OWES_RESET,
            Phase::Closed => {}
        }
    }

    /// The receiver closed its side: one more ACK ends the connection.
    pub fn on_fin(&mut self) {
        self.owes |= OWES_ACK;
    }

    /// The receiver reset the connection.
    pub fn on_reset(&mut self) {
        if !self.finished() {
            self.phase = Phase::Aborted;
        }
        self.owes = 0;
        self.deadline = Time::NEVER;
    }

    /// The application gives the connection up. A connection that is not yet
    /// established falls silent and answers a late SYN-ACK by a reset (RFC 9293 3.10.7.1).
    pub fn abort(&mut self) {
        if self.phase == Phase::Established {
            self.owes = OWES_RESET;
        } else {
            self.owes = 0;
        }
        if !self.finished() {
            self.phase = Phase::Aborted;
        }
        self.deadline = Time::NEVER;
    }

    /// An acknowledgement of every segment below `ack` has arrived, with or without an ECN echo (ECE of RFC 3168).
    #[inline]
    pub fn on_ack(&mut self, spec: &TcpSpec, now: Time, ack: u32, blocks: &SackBlocks, echo: bool) {
        match self.phase {
            Phase::Established => {}
            Phase::Aborted => {
                self.owes |= OWES_RESET;
                return;
            }
            _ => return,
        }
        if ack < self.una || ack > self.board.end() {
            return;
        }
        if self.ecn {
            self.hear(spec, ack, echo);
        }
        match spec.recovery {
            Recovery::Newreno => self.on_ack_newreno(spec, now, ack),
            Recovery::SackPrr => self.on_ack_sack(spec, now, ack, blocks),
        }
        if self.una == self.segments && !self.endless {
            self.phase = Phase::Done;
            self.deadline = Time::NEVER;
        }
    }

    fn enter_recovery(&mut self) {
        self.state = CongestionState::Recovery;
        self.recover = self.board.end();
        self.reduced();
        self.board.begin_recovery();
        self.rearmed = false;
        self.counters.fast_recoveries += 1;
    }

    /// The threshold after a loss of which the first segment in flight is part.
    fn threshold_after_loss(&mut self, spec: &TcpSpec, flight: u64) -> u64 {
        let had_its_reduction = self.ecn && self.una + 1 < self.reduced_until;
        if had_its_reduction && self.congestion.echo_counts_as_loss() {
            return self.window.ssthresh;
        }
        self.congestion.on_loss(&self.usable(spec), flight, spec.mss.0)
    }

    /// The window without what the receiver's forbids: that was never in use.
    fn usable(&self, spec: &TcpSpec) -> Window {
        Window { cwnd: self.window.cwnd.min(spec.receive_window.0), ..self.window }
    }

    /// Moves `una` to `ack`.
    #[inline]
    fn advance(&mut self, spec: &TcpSpec, now: Time, ack: u32) -> Progress {
        let progress = self.board.on_cumulative(ack, now);
        match progress.rtt {
            Some(rtt) => self.rtt.sample(spec, rtt),
            None => self.rtt.collapse(spec),
        }
        self.una = ack;
        self.next = self.next.max(ack);
        progress
    }

    /// New data is acknowledged outside recovery.
    #[inline]
    fn grow(&mut self, spec: &TcpSpec, now: Time, bytes: u64, rtt: Option<Time>) {
        if self.pauses {
            return;
        }
        let acked = Acked {
            now,
            bytes,
            flight: self.flight(spec) + bytes,
            rtt,
            smoothed: self.rtt.smoothed(),
            una: self.una,
            end: self.board.end(),
        };
        self.congestion.grow(&mut self.window, spec.mss.0, &acked);
    }

    /// Restarts the retransmission timer (RFC 6298 5.2, 5.3).
    #[inline]
    fn rearm(&mut self, now: Time) {
        self.deadline =
            if self.una == self.board.end() { Time::NEVER } else { now + self.rtt.rto() };
    }

    /// Bytes sent and not cumulatively acknowledged; after a timeout without SACK, only those sent since.
    #[inline]
    fn flight(&self, spec: &TcpSpec) -> u64 {
        self.offset(spec, self.next) - self.offset(spec, self.una)
    }

    /// What to send now, if anything; to be called until it has nothing.
    #[inline]
    pub fn poll_transmit(&mut self, spec: &TcpSpec, now: Time) -> Option<Transmit> {
        if self.owes != 0 {
            if let Some(transmit) = self.pay(now) {
                return Some(transmit);
            }
        }
        if self.phase != Phase::Established {
            return None;
        }
        let seq = match spec.recovery {
            Recovery::Newreno => self.next_by_window(spec),
            Recovery::SackPrr => self.next_by_pipe(spec),
        }?;
        self.next = self.next.max(seq + 1);
        Some(self.send(spec, now, seq))
    }

    #[cold]
    fn pay(&mut self, now: Time) -> Option<Transmit> {
        let due = self.owes & self.owes.wrapping_neg();
        if due == OWES_NEXT {
            return None;
        }
        self.owes &= !due;
        match due {
            OWES_SYN => {
                self.syn_tries += 1;
                Some(Transmit::Syn { retry: self.syn_tries > 1 })
            }
            OWES_ACK => Some(Transmit::Ack),
            OWES_RESET => Some(Transmit::Reset),
            _ if self.phase != Phase::Established => None,
            _ => {
                self.board.on_send(self.una, now);
                self.counters.data_packets += 1;
                self.counters.retransmissions += 1;
                Some(Transmit::Segment { seq: self.una, retransmission: true })
            }
        }
    }

    #[inline]
    fn send(&mut self, spec: &TcpSpec, now: Time, seq: u32) -> Transmit {
        let retransmission = self.board.was_sent(seq);
        self.board.on_send(seq, now);
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        if retransmission && self.reordering.is_some() {
            self.note_retransmission();
        }
        if self.state == CongestionState::Recovery {
            self.prr.on_send(self.payload(spec, seq));
        }
        if self.deadline == Time::NEVER {
            self.deadline = now + self.rtt.rto();
        }
        Transmit::Segment { seq, retransmission }
    }
}
