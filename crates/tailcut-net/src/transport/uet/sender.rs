//! The sending half: which packets are under way, which are missing, and what may leave next.

use std::collections::{BTreeSet, VecDeque};

use tailcut_engine::{RandomStream, Time};

use super::UetSpec;
use super::nscc::Nscc;
use super::rccc::Credit;
use crate::packet::{Flags, OptionStore, SelectiveAck, inline_number};
use crate::transport::entropy::{EntropyState, Feedback};
use crate::transport::life::{ConnectionState, Lifecycle, Transmit, owed, segments_of};
use crate::transport::segment::Segment;
use crate::transport::tcp::{SenderCounters, WireSizes};

/// The state of a packet that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketState {
    UnderWay,
    /// Trimmed or lost, and waiting to be sent again.
    Missing,
    Arrived,
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
struct PacketRecord {
    state: PacketState,
    /// The time at which it was last sent.
    at: Time,
    /// The number of times that it was sent.
    tries: u32,
    /// The entropy value of its last copy.
    entropy: u16,
}

/// The sending half of a connection that carries `size` bytes.
#[derive(Debug, Clone)]
pub struct UetSender {
    size: u64,
    segments: u32,
    life: Lifecycle,
    /// First unacknowledged packet.
    una: u32,
    /// The packets from there on that were ever sent.
    records: VecDeque<PacketRecord>,
    /// Sent packets in order; answered ones are skipped.
    sent: VecDeque<(Time, u32)>,
    missing: BTreeSet<u32>,
    /// Bytes on the wire under way, as far as is known.
    in_flight: u64,
    /// Bytes on the wire that were never sent.
    unsent: u64,
    /// Bytes on the wire that wait to be sent again.
    missing_bytes: u64,
    /// Bytes that the receiver has reported.
    reported: u64,
    nscc: Option<Nscc>,
    credit: Option<Credit>,
    entropy: EntropyState,
    /// The interface has asked for a packet; so many senders of the host wait for it.
    has_turn: bool,
    contenders: u32,
    /// The entropy value of the last request without data, and the time from which on the next may
    /// leave.
    request_entropy: u16,
    next_request: Time,
    /// The time of the last answer.
    heard: Time,
    counters: SenderCounters,
}

impl UetSender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &UetSpec, size: u64, open_at: Time) -> UetSender {
        let segments = segments_of(size, spec.mss);
        let has = spec.control;
        UetSender {
            size,
            segments,
            life: Lifecycle::opening_at(open_at),
            una: 0,
            records: VecDeque::new(),
            sent: VecDeque::new(),
            missing: BTreeSet::new(),
            in_flight: 0,
            unsent: size + u64::from(segments) * spec.derived.header,
            missing_bytes: 0,
            reported: 0,
            nscc: has.has_window().then(|| Nscc::new(spec, open_at)),
            credit: has.has_credits().then(|| Credit::new(spec)),
            entropy: spec.entropy.state(RandomStream::new(0, 0, "entropy")),
            has_turn: false,
            contenders: 1,
            request_entropy: 0,
            next_request: Time::ZERO,
            heard: open_at,
            counters: SenderCounters::default(),
        }
    }

    /// Seeds the choice of entropy values.
    pub fn draw_from(&mut self, spec: &UetSpec, seed: u64, entity: u64) {
        self.entropy = spec.entropy.state(RandomStream::new(seed, entity, "entropy"));
    }

    /// Data packets in the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Returns the state of the connection.
    pub fn phase(&self) -> ConnectionState {
        self.life.phase()
    }
    /// First unacknowledged packet.
    pub fn una(&self) -> u32 {
        self.una
    }
    /// Packets under way.
    pub fn window(&self) -> u32 {
        let under_way = self.records.iter().filter(|r| r.state == PacketState::UnderWay);
        under_way.count() as u32
    }
    /// Returns the counters of the connection.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// Returns when [`UetSender::on_timer`] is due.
    pub fn deadline(&self) -> Time {
        self.life.deadline
    }
    /// True once nothing more can happen on this half.
    pub fn finished(&self) -> bool {
        self.life.is_finished()
    }
    /// Payload bytes of packet `seq`.
    pub fn payload(&self, spec: &UetSpec, seq: u32) -> u64 {
        (self.size - u64::from(seq) * spec.mss.0).min(spec.mss.0)
    }
    /// The application gives the connection up.
    pub fn abort(&mut self) {
        self.life.abort();
    }

    fn next(&self) -> u32 {
        self.una + self.records.len() as u32
    }

    fn record(&mut self, seq: u32) -> Option<&mut PacketRecord> {
        self.records.get_mut(seq.checked_sub(self.una)? as usize)
    }

    /// A packet has arrived.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &UetSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) {
        let flags = packet.flags;
        if flags.has(Flags::RST) {
            return self.life.on_reset();
        }
        if !self.life.is_established() {
            return;
        }
        self.heard = now;
        if flags.has(Flags::PULL) {
            let granted = options.number(packet.options).unwrap_or(0);
            if let Some(credit) = &mut self.credit {
                credit.on_grant(spec, granted);
            }
        } else if let Some(&ack) = options.ack(packet.options) {
            match flags.has(Flags::TRIMMED) {
                true => self.on_trimmed(spec, now, &ack),
                false => self.on_ack(spec, now, packet.seq, &ack),
            }
        }
        match self.una == self.segments {
            true => self.life.complete(),
            false => self.set_timer(spec),
        }
    }

    /// Returns the queueing delay in ps that an answer to a packet tells, if the packet is under
    /// way and the answer is known to be its last copy's.
    fn delay(&mut self, now: Time, ack: &SelectiveAck) -> Option<f64> {
        let &mut PacketRecord { state, at, tries, .. } = self.record(ack.packet)?;
        let is_last = tries == 1 || tries == 2 && ack.again;
        let is_known = state == PacketState::UnderWay && is_last;
        self.nscc.as_mut().filter(|_| is_known).map(|nscc| nscc.sample(now - at))
    }

    fn on_ack(&mut self, spec: &UetSpec, now: Time, next: u32, ack: &SelectiveAck) {
        let delay = self.delay(now, ack);
        let bytes = ack.bytes.saturating_sub(self.reported);
        self.reported += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.settle(spec, next, ack);
        if let Some(credit) = &mut self.credit {
            credit.on_feedback();
        }
        if let Some(nscc) = &mut self.nscc {
            nscc.on_ack(spec, now, delay, ack.marked, bytes, self.in_flight);
        }
        let what = if ack.marked { Feedback::Marked } else { Feedback::Good };
        if ack.packet != SelectiveAck::NO_PACKET {
            self.entropy.feedback(now, Some(ack.entropy), what);
        }
    }

    /// Everything before `next` has arrived, and what `ack` lists.
    fn settle(&mut self, spec: &UetSpec, next: u32, ack: &SelectiveAck) {
        let before = next.min(self.segments).saturating_sub(self.una);
        for _ in 0..before.min(self.records.len() as u32) {
            self.arrived(spec, self.una);
            self.records.pop_front();
            self.una += 1;
        }
        let mut map = ack.map;
        while map != 0 {
            self.arrived(spec, ack.base.saturating_add(map.trailing_zeros()));
            map &= map - 1;
        }
    }

    fn arrived(&mut self, spec: &UetSpec, seq: u32) {
        let Some(record) = self.record(seq) else { return };
        let before = std::mem::replace(&mut record.state, PacketState::Arrived);
        if before == PacketState::Missing {
            self.missing.remove(&seq);
            self.missing_bytes -= spec.wire_bytes(self.size, seq);
        }
    }

    /// A packet was trimmed: it is missing.
    fn on_trimmed(&mut self, spec: &UetSpec, now: Time, ack: &SelectiveAck) {
        let seq = ack.packet;
        let is_under_way = |r: &mut PacketRecord| r.state == PacketState::UnderWay;
        if !self.record(seq).is_some_and(is_under_way) {
            return;
        }
        let delay = self.delay(now, ack);
        let bytes = spec.wire_bytes(self.size, seq);
        let alone = self.credit.is_none();
        if let Some(credit) = &mut self.credit {
            credit.on_feedback();
        }
        if let Some(nscc) = &mut self.nscc {
            let counts = alone || !ack.last_hop;
            nscc.on_trimmed(spec, now, delay, bytes, counts, self.in_flight);
        }
        self.miss(seq, bytes);
        let what = match (ack.last_hop, ack.marked) {
            (false, _) => Feedback::Trimmed,
            (true, true) => Feedback::Marked,
            (true, false) => Feedback::Good,
        };
        self.entropy.feedback(now, Some(ack.entropy), what);
    }

    /// A packet of `bytes` that was under way is to be sent again.
    fn miss(&mut self, seq: u32, bytes: u64) {
        if let Some(record) = self.record(seq) {
            record.state = PacketState::Missing;
        }
        self.missing.insert(seq);
        self.missing_bytes += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// The timer is that of the packet that has been under way for the longest time, or, where none
    /// is, that of a sender that nothing has been heard of.
    fn set_timer(&mut self, spec: &UetSpec) {
        while let Some(&(at, seq)) = self.sent.front() {
            let waits = |r: &mut PacketRecord| r.state == PacketState::UnderWay && r.at == at;
            if self.record(seq).is_some_and(waits) {
                break;
            }
            self.sent.pop_front();
        }
        let since = self.sent.front().map_or(self.heard, |&(at, _)| at);
        self.life.deadline = since + spec.derived.rto;
    }

    /// The timer has reached [`UetSender::deadline`].
    pub fn on_timer(&mut self, spec: &UetSpec, now: Time) {
        match self.life.phase() {
            ConnectionState::Closed => {
                self.life.open_established();
                self.heard = now;
            }
            ConnectionState::Established => self.on_timeout(spec, now),
            _ => {}
        }
        match self.finished() {
            true => self.life.deadline = Time::NEVER,
            false => self.set_timer(spec),
        }
    }

    /// The oldest packet under way is lost. Where nothing may be sent, a request without data says
    /// that something waits.
    fn on_timeout(&mut self, spec: &UetSpec, now: Time) {
        self.counters.timeouts += 1;
        self.heard = now;
        let oldest = self.sent.front().filter(|(at, _)| *at + spec.derived.rto <= now).copied();
        if let Some((_, seq)) = oldest {
            self.sent.pop_front();
            let bytes = spec.wire_bytes(self.size, seq);
            self.entropy.feedback(now, None, Feedback::Lost);
            if let Some(nscc) = &mut self.nscc {
                nscc.on_timeout(spec, bytes);
            }
            self.miss(seq, bytes);
        }
        let waits = self.credit.is_some() && self.contenders > 1;
        let may_ask = self.credit.is_some() && self.nscc.is_none() || now >= self.next_request;
        if (!self.may_send(spec) || waits) && may_ask {
            self.next_request = now + spec.derived.round_trip;
            self.request_entropy = self.entropy.next(now);
            self.life.set_pending(owed::PROBE);
        }
    }

    /// The packet to be sent next, if any is left.
    fn upcoming(&self) -> Option<(u32, bool)> {
        let again = self.missing.first().map(|&seq| (seq, true));
        again.or_else(|| (self.next() < self.segments).then(|| (self.next(), false)))
    }

    /// Whether window and credit allow the next packet.
    fn may_send(&self, spec: &UetSpec) -> bool {
        let Some((seq, _)) = self.upcoming() else { return false };
        let bytes = spec.wire_bytes(self.size, seq);
        self.credit.as_ref().is_none_or(Credit::allows)
            && self.nscc.as_ref().is_none_or(|nscc| self.in_flight + bytes <= nscc.window())
    }

    /// Whether it wants the next turn at its interface.
    #[inline]
    pub fn wants_turn(&self, spec: &UetSpec) -> bool {
        self.life.is_established() && self.may_send(spec)
    }

    /// The interface asks for a packet; `contenders` senders of the host wait for it.
    pub fn grant_turn(&mut self, contenders: u32) {
        (self.has_turn, self.contenders) = (true, contenders);
    }

    /// Returns the next packet to send; call until `None`. Data leaves in turns alone.
    pub fn poll_transmit(&mut self, spec: &UetSpec, now: Time) -> Option<Transmit> {
        if self.life.has_output() {
            if self.life.take_pending(owed::PROBE) {
                return Some(Transmit::Probe);
            }
            return self.life.poll_control();
        }
        if !std::mem::take(&mut self.has_turn) || !self.wants_turn(spec) {
            return None;
        }
        let (seq, retransmission) = self.upcoming()?;
        let bytes = spec.wire_bytes(self.size, seq);
        let entropy = self.entropy.next(now);
        match retransmission {
            true => {
                self.missing.remove(&seq);
                self.missing_bytes -= bytes;
                if let Some(record) = self.record(seq) {
                    let tries = record.tries + 1;
                    let state = PacketState::UnderWay;
                    *record = PacketRecord { state, at: now, tries, entropy };
                }
            }
            false => {
                self.unsent -= bytes;
                let state = PacketState::UnderWay;
                self.records.push_back(PacketRecord { state, at: now, tries: 1, entropy });
            }
        }
        self.sent.push_back((now, seq));
        self.in_flight += bytes;
        if let Some(credit) = &mut self.credit {
            credit.spend(bytes);
        }
        self.ask(spec);
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        self.set_timer(spec);
        Some(Transmit::Segment { seq, retransmission })
    }

    /// Notes what the next packet asks of the receiver.
    fn ask(&mut self, spec: &UetSpec) {
        let backlog = self.unsent + self.missing_bytes;
        let window = self.nscc.as_ref().map(Nscc::window);
        if let Some(credit) = &mut self.credit {
            credit.ask(spec, backlog, self.contenders, window);
        }
    }

    /// Whether a packet that has just been sent asks for an acknowledgement at once: nothing
    /// follows it soon.
    fn asks(&self, spec: &UetSpec, seq: u32, retransmission: bool) -> bool {
        let full = spec.full_packet();
        retransmission
            || seq + 1 == self.segments
            || self.credit.as_ref().is_some_and(|credit| !credit.allows())
            || self.nscc.as_ref().is_some_and(|nscc| self.in_flight + full > nscc.window())
    }

    /// The packet for what [`UetSender::poll_transmit`] yields.
    #[inline]
    pub fn packet(&self, spec: &UetSpec, sizes: &WireSizes, transmit: Transmit) -> Segment {
        let set = |condition, flag: Flags| if condition { flag } else { Flags(0) };
        let packet = match transmit {
            Transmit::Segment { seq, retransmission } => {
                let flags = Flags::DATA
                    | Flags::ECN_CAPABLE
                    | set(retransmission, Flags::RETRANSMISSION)
                    | set(self.asks(spec, seq, retransmission), Flags::ACK_REQUEST);
                let record = self.records.get((seq - self.una) as usize);
                let entropy = record.map_or(0, |record| record.entropy);
                let wire_bytes = sizes.data(self.payload(spec, seq));
                Segment { entropy, ..Segment::bare(flags, seq, wire_bytes) }
            }
            Transmit::Probe => {
                let bare = Segment::bare(Flags::ACK_REQUEST, self.una, sizes.bare());
                Segment { entropy: self.request_entropy, ..bare }
            }
            Transmit::Reset => Segment::bare(Flags::RST, 0, sizes.bare()),
            Transmit::Syn { .. } | Transmit::Ack => Segment::bare(Flags::ACK, 0, sizes.bare()),
        };
        match &self.credit {
            Some(credit) => Segment { options: inline_number(credit.target), ..packet },
            None => packet,
        }
    }
}
