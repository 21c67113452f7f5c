//! The sending half of a connection (RFC 9293, 5681, 6298, 6582, 3042, 6675, 9937).
//!
//! Sans-I/O: [`Sender::on_ack`] and [`Sender::on_timer`] take what happened,
//! [`Sender::poll_transmit`] yields what to send, [`Sender::deadline`] says when
//! to wake it. Positions count segments; windows count bytes, as in the RFCs.

mod ecn;
mod entropy;
mod method;
mod newreno;
mod ns3_newreno;
pub mod reordering;
mod sack;
mod sampling;
mod state;
mod subflow;
mod timers;
mod wire;

use tailcut_engine::Time;

pub use state::{CongestionState, SenderCounters};

use super::congestion::{Acked, Congestion, Window};
use super::options::UNSCALED_WINDOW;
use super::prr::Prr;
use super::rtt::Rtt;
use super::scoreboard::{AckProgress, Scoreboard};
use super::{Recovery, TcpSpec};
use crate::packet::SackBlocks;
use crate::trace::trace;
use crate::transport::life::{ConnectionState, Lifecycle, SynAck, Transmit, owed, segments_of};
use reordering::Reordering;
use sampling::{News, Senses};

/// The sending half of a connection that carries `size` bytes.
#[derive(Debug, Clone)]
pub struct Sender {
    size: u64,
    segments: u32,
    /// More segments may be assigned (a subflow).
    endless: bool,
    life: Lifecycle,
    state: CongestionState,
    /// First unacknowledged segment.
    una: u32,
    /// Next segment to send; below the scoreboard's end after a timeout without SACK.
    next: u32,
    /// The number that ends recovery once acknowledged (RFC 6582 "recover").
    recover: u32,
    window: Window,
    congestion: Congestion,
    /// Duplicate ACKs that start recovery.
    threshold: u32,
    /// The connection uses ECN.
    ecn: bool,
    /// The ACK in hand opens no window, for its ECN echo.
    pauses: bool,
    /// An acknowledgement has arrived: the receiver's window is scaled from then on.
    scaled: bool,
    /// The next new segment says that the window was reduced (CWR of RFC 3168).
    /// The receiver's FIN has arrived.
    fin_received: bool,
    owes_cwr: bool,
    /// An ECN echo up to here belongs to a window of data that has had its reduction.
    reduced_until: u32,
    duplicates: u32,
    /// Under SACK, what has been sent from here on was let out by duplicate ACKs (limited
    /// transmit).
    limited_from: u32,
    /// A partial ACK of this recovery has already re-armed the timer (RFC 6582 step 3).
    rearmed: bool,
    opened: Time,
    /// The first outstanding segment at the last timeout.
    timed_out: Option<u32>,
    rtt: Rtt,
    board: Scoreboard,
    prr: Prr,
    /// Bytes that PRR counts once more when the first segment has been sent again.
    prr_again: u64,
    /// None where a fixed threshold tells loss from reordering.
    reordering: Option<Box<Reordering>>,
    counters: SenderCounters,
    /// The timestamp to be echoed (TS.Recent of RFC 7323).
    recent: u32,
    /// The time of another timer than retransmission's: pacing, or losses by time.
    wake: Time,
    /// None where the congestion control asks for nothing more.
    senses: Option<Box<Senses>>,
}

impl Sender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &TcpSpec, size: u64, open_at: Time) -> Sender {
        let mut sender = Sender {
            size,
            segments: segments_of(size, spec.mss),
            endless: false,
            life: Lifecycle::opening_at(open_at),
            state: CongestionState::Open,
            una: 0,
            next: 0,
            recover: 0,
            window: Window::initial(spec),
            congestion: Congestion::new(&spec.congestion),
            threshold: spec.dupack_threshold,
            ecn: spec.uses_ecn(),
            pauses: false,
            scaled: false,
            fin_received: false,
            owes_cwr: false,
            reduced_until: 0,
            duplicates: 0,
            limited_from: 0,
            rearmed: false,
            opened: open_at,
            timed_out: None,
            rtt: Rtt::new(spec),
            board: Scoreboard::default(),
            prr: Prr::default(),
            prr_again: 0,
            reordering: spec.reordering.method(),
            counters: SenderCounters::default(),
            recent: 0,
            wake: Time::NEVER,
            senses: None,
        };
        if sender.congestion.wants_samples() {
            sender.enable_sampling();
        }
        sender
    }

    /// Data segments in the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Returns the state of the connection.
    #[inline]
    pub fn phase(&self) -> ConnectionState {
        self.life.phase()
    }
    /// Returns the congestion state.
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
    /// The path has so many switches.
    pub fn set_switches(&mut self, switches: u32) {
        self.congestion.set_switches(switches);
    }
    /// Sets how much a coupled window grows: bytes per byte acknowledged. No effect on other
    /// windows.
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
    /// Returns the counters of the connection.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// True once nothing more can happen on this half.
    #[inline]
    pub fn finished(&self) -> bool {
        self.life.is_finished()
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

    /// The SYN-ACK has arrived.
    pub fn on_syn_ack(&mut self, spec: &TcpSpec, now: Time) {
        let answer = self.life.on_syn_ack();
        match answer {
            SynAck::Opens if self.life.syn_tries == 1 || spec.imitate.repeated_syn_measures => {
                let rtt = now.since(self.opened);
                match spec.first_data_rto {
                    Some(timeout) => self.rtt.await_data(timeout),
                    None => self.rtt.sample(spec, rtt, self.una, self.board.end()),
                }
                self.note_handshake(rtt);
            }
            SynAck::Opens => {
                match spec.first_data_rto {
                    Some(timeout) => self.rtt.await_data(timeout),
                    None => self.rtt.established_late(spec),
                }
                // One repeated SYN may have been needless, or chance; two are congestion (RFC 6928
                // section 2).
                if self.life.syn_tries > 2 {
                    self.window.cwnd = spec.mss.0;
                }
            }
            SynAck::Repeated => {
                if spec.imitate.repeated_syn_ack_resets {
                    self.window = Window::initial(spec);
                }
                if spec.imitate.repeated_syn_ack_is_ignored {
                    self.life.clear_pending(owed::ACK);
                }
                if spec.imitate.repeated_syn_ack_is_silent {
                    self.life.set_pending(owed::SILENCE);
                }
            }
            SynAck::Unwanted => {}
        }
        if self.senses.is_some() && answer == SynAck::Opens {
            self.tell_open(spec, now);
        }
    }

    /// The receiver closed its side: one more ACK ends the connection.
    pub fn on_fin(&mut self, spec: &TcpSpec) {
        if !(spec.imitate.fin_repeats && self.fin_received) {
            self.life.set_pending(owed::ACK);
        }
        self.fin_received = true;
    }

    /// The receiver reset the connection.
    pub fn on_reset(&mut self) {
        self.life.on_reset();
    }

    /// The application gives the connection up.
    pub fn abort(&mut self) {
        self.life.abort();
    }

    /// An acknowledgement of every segment below `ack` has arrived, with or without an ECN echo
    /// (ECE of RFC 3168).
    #[inline]
    pub fn on_ack(&mut self, spec: &TcpSpec, now: Time, ack: u32, blocks: &SackBlocks, echo: bool) {
        if !self.life.hears_acks() || ack > self.board.end() {
            return;
        }
        self.scaled = true;
        self.life.clear_pending(owed::SILENCE);
        let overtaken = ack < self.una;
        // What an ACK that another has overtaken tells of single segments, above all of duplicates,
        // no other tells.
        if overtaken && (spec.recovery != Recovery::SackPrr || blocks.is_empty()) {
            return;
        }
        if self.ecn && !overtaken {
            self.on_ecn_feedback(spec, ack, echo);
        }
        let senses = self.senses.is_some();
        let news = match senses {
            true => self.preview_ack(spec, now, ack, blocks, echo),
            false => News::default(),
        };
        match spec.recovery {
            Recovery::Newreno if spec.guesses() => self.on_ack_guessing(spec, now, ack),
            Recovery::Newreno => self.on_ack_newreno(spec, now, ack),
            Recovery::SackPrr => self.on_ack_sack(spec, now, ack, blocks),
        }
        if self.una == self.segments && !self.endless {
            self.life.complete();
            self.wake = Time::NEVER;
        }
        if senses {
            self.report_sample(spec, now, echo, news);
        }
    }

    fn enter_recovery(&mut self) {
        trace!("recovery begins: segment {} is taken for lost", self.una);
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
        let usable = self.usable(spec);
        let reduced = if spec.reduces_window() { usable.cwnd } else { flight };
        self.congestion.on_loss(&usable, reduced, spec.mss.0)
    }

    /// The window without what the receiver's forbids: that was never in use.
    fn usable(&self, spec: &TcpSpec) -> Window {
        if spec.reduces_window() {
            return self.window;
        }
        Window { cwnd: self.window.cwnd.min(self.receive_window(spec)), ..self.window }
    }

    /// The receiver's window in bytes. Until the first acknowledgement it is the SYN-ACK's, which
    /// is never scaled (RFC 7323, section 2.2).
    #[inline]
    fn receive_window(&self, spec: &TcpSpec) -> u64 {
        match self.scaled {
            true => spec.receive_window.0,
            false => spec.receive_window.0.min(UNSCALED_WINDOW),
        }
    }

    /// Moves `una` to `ack`.
    #[inline]
    fn advance(&mut self, spec: &TcpSpec, now: Time, ack: u32) -> AckProgress {
        // A timeout makes ns-3 forget when what is outstanding was sent: the first segment sent
        // since gives the sample.
        let forgets =
            spec.imitate.timeout_forgets_send_times && self.state == CongestionState::Loss;
        let since = forgets.then(|| self.board.age(self.recover, ack, now));
        let mut progress = self.board.on_cumulative(ack, now);
        progress.rtt = since.unwrap_or(progress.rtt);
        match progress.rtt {
            Some(rtt) => self.rtt.sample(spec, rtt, ack, self.board.end()),
            None if spec.imitate.any_ack_ends_back_off => self.rtt.recompute_rto(spec),
            None => {}
        }
        self.una = ack;
        self.next = self.next.max(ack);
        progress
    }

    /// `bytes` of new data are acknowledged outside recovery; the window grows by what is
    /// `delivered`, where that is given.
    #[inline]
    fn grow(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        bytes: u64,
        delivered: Option<u64>,
        rtt: Option<Time>,
    ) {
        let counted = delivered.unwrap_or(bytes);
        self.grow_by(spec, now, bytes, counted, delivered.is_some(), rtt);
    }

    /// Grows the window as [`Sender::grow`] does, by `counted` bytes.
    #[inline]
    fn grow_by(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        bytes: u64,
        counted: u64,
        by_delivery: bool,
        rtt: Option<Time>,
    ) {
        if self.pauses {
            return;
        }
        let acked = Acked {
            now,
            bytes: counted,
            by_delivery,
            flight: self.flight(spec) + bytes,
            rtt,
            smoothed: self.rtt.smoothed(),
            una: self.una,
            end: self.board.end(),
        };
        let before = self.window;
        self.congestion.grow(&mut self.window, spec.mss.0, &acked);
        if spec.reduces_window() && !before.is_cwnd_limited(acked.flight, spec.mss.0) {
            self.window.cwnd = self.window.cwnd.min(before.cwnd);
        }
    }

    /// Bytes sent and not cumulatively acknowledged; after a timeout without SACK, only those sent
    /// since.
    #[inline]
    fn flight(&self, spec: &TcpSpec) -> u64 {
        self.offset(spec, self.next) - self.offset(spec, self.una)
    }

    /// Returns the next packet to send; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, spec: &TcpSpec, now: Time) -> Option<Transmit> {
        if self.life.has_output() {
            if let Some(transmit) = self.pay(spec, now) {
                return Some(transmit);
            }
            if self.life.is_silent() {
                return None;
            }
        }
        if !self.life.is_established() || self.senses.is_some() && !self.released(now) {
            return None;
        }
        let seq = match spec.recovery {
            Recovery::Newreno if spec.guesses() => self.next_by_guesses(spec),
            Recovery::Newreno => self.next_by_window(spec),
            Recovery::SackPrr => self.next_by_pipe(spec),
        };
        let Some(seq) = seq else {
            if self.senses.is_some() {
                self.sense_silence(spec);
            }
            return None;
        };
        self.next = self.next.max(seq + 1);
        Some(self.send(spec, now, seq))
    }

    #[cold]
    fn pay(&mut self, spec: &TcpSpec, now: Time) -> Option<Transmit> {
        let due = self.life.poll_control();
        if due.is_some() || !self.life.take_pending(owed::RESEND) || !self.life.is_established() {
            return due;
        }
        let transmit = self.send(spec, now, self.una);
        let news = std::mem::take(&mut self.prr_again);
        self.reduce(spec, news, false);
        Some(transmit)
    }

    #[inline]
    fn send(&mut self, spec: &TcpSpec, now: Time, seq: u32) -> Transmit {
        let retransmission = self.board.was_sent(seq);
        if self.senses.is_some() {
            self.sense_departure(spec, seq, now);
        }
        self.board.on_send(seq, now);
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        if self.state == CongestionState::Recovery {
            self.prr.on_send(self.payload(spec, seq));
        }
        if self.life.deadline == Time::NEVER {
            self.life.deadline = now + self.rtt.rto();
        }
        if self.reordering.is_some() {
            self.note_departure(seq, retransmission, now);
        }
        Transmit::Segment { seq, retransmission }
    }
}
