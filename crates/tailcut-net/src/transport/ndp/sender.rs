//! The sending half of an NDP connection.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::NdpSpec;
use crate::packet::{Flags, OptionStore, inline_number};
use crate::transport::life::{ConnectionState, Lifecycle, Transmit, owed, segments_of};
use crate::transport::segment::Segment;
use crate::transport::tcp::{SenderCounters, WireSizes};

/// The state of a segment that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    /// Sent at this time, and not answered. The packet says that so many came back before.
    UnderWay {
        at: Time,
        returned: u32,
    },
    /// Cut, returned or lost, and waiting to be sent again.
    Missing,
    Arrived,
}

impl SegmentState {
    fn is_under_way_since(&self, then: Time) -> bool {
        matches!(*self, SegmentState::UnderWay { at, .. } if at == then)
    }
}

/// The sending half of a connection that carries `size` bytes. Positions and windows count
/// segments.
#[derive(Debug, Clone)]
pub struct NdpSender {
    size: u64,
    segments: u32,
    life: Lifecycle,
    /// First unacknowledged segment.
    una: u32,
    /// States of the segments from there on that were ever sent.
    fates: VecDeque<SegmentState>,
    /// Sent segments in order; answered ones are skipped.
    sent: VecDeque<(Time, u32)>,
    /// Segments that are missing, in the order in which that was heard.
    missing: VecDeque<u32>,
    /// Packets that may be sent.
    credit: u32,
    /// The highest number of a pull.
    pulled: u32,
    /// Packets that the receiver has answered, and those among them that have arrived whole.
    answered: u32,
    arrived: u32,
    /// Packets whose headers came back, without those sent instead unasked; and how many of them
    /// the receiver has heard of.
    returned: u32,
    told: u32,
    /// The time of the last answer, and the timeouts since.
    heard: Time,
    silent: u32,
    counters: SenderCounters,
}

/// A silent connection waits up to 2^6 times as long.
const MOST_DOUBLINGS: u32 = 6;

impl NdpSender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &NdpSpec, size: u64, open_at: Time) -> NdpSender {
        let segments = segments_of(size, spec.mss);
        NdpSender {
            size,
            segments,
            life: Lifecycle::opening_at(open_at),
            una: 0,
            fates: VecDeque::new(),
            sent: VecDeque::new(),
            missing: VecDeque::new(),
            // A window that is larger than the flow sends nothing twice.
            credit: spec.initial_window.min(segments),
            pulled: 0,
            answered: 0,
            arrived: 0,
            returned: 0,
            told: 0,
            heard: open_at,
            silent: 0,
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
    /// First unacknowledged segment.
    pub fn una(&self) -> u32 {
        self.una
    }
    /// Packets under way and allowed to leave.
    pub fn window(&self) -> u32 {
        let under_way =
            self.fates.iter().filter(|fate| matches!(fate, SegmentState::UnderWay { .. }));
        under_way.count() as u32 + self.credit
    }
    /// Returns the counters of the connection.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// Returns when [`NdpSender::on_timer`] is due.
    pub fn deadline(&self) -> Time {
        self.life.deadline
    }
    /// True once nothing more can happen on this half.
    pub fn finished(&self) -> bool {
        self.life.is_finished()
    }
    /// Payload bytes of segment `seq`.
    pub fn payload(&self, spec: &NdpSpec, seq: u32) -> u64 {
        (self.size - u64::from(seq) * spec.mss.0).min(spec.mss.0)
    }

    /// The application gives the connection up.
    pub fn abort(&mut self) {
        self.life.abort();
    }

    fn next(&self) -> u32 {
        self.una + self.fates.len() as u32
    }

    fn fate(&mut self, seq: u32) -> Option<&mut SegmentState> {
        self.fates.get_mut(seq.checked_sub(self.una)? as usize)
    }

    /// A packet has arrived.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &NdpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) {
        let flags = packet.flags;
        if flags.has(Flags::RST) {
            return self.life.on_reset();
        }
        if self.finished() {
            return;
        }
        (self.heard, self.silent) = (now, 0);
        let number = options.number(packet.options);
        if flags.has(Flags::SYN) {
            self.life.on_syn_ack();
            self.life.clear_pending(owed::ACK);
        } else if flags.is_returned() {
            self.on_return(packet.seq);
        } else if flags.has(Flags::PULL) {
            self.on_pull(number.unwrap_or(0));
        } else {
            self.on_answer(packet.seq, number, flags.has(Flags::TRIMMED));
        }
        if self.una == self.segments {
            self.life.complete();
        } else {
            self.set_timer(spec);
            self.speak_up(spec);
        }
    }

    /// The header of a packet came back from a switch that had no room for it: the receiver has
    /// heard nothing of the packet.
    fn on_return(&mut self, seq: u32) {
        if let Some(fate @ SegmentState::UnderWay { .. }) = self.fate(seq) {
            *fate = SegmentState::Missing;
            self.missing.push_back(seq);
            self.returned += 1;
        }
    }

    /// Sends one of the packets that came back unasked, if nothing is under way and no pull will
    /// come (section 3.2.4 of the paper). It says how many came back, so that the receiver pulls
    /// the others. Called when `sent` begins with what is under way.
    fn speak_up(&mut self, spec: &NdpSpec) {
        if self.returned > 0 && self.credit == 0 && self.sent.is_empty() && !self.is_awaited(spec) {
            self.returned -= 1;
            self.credit = 1;
        }
    }

    /// Whether the receiver asks for more than it takes to be under way: by the rule that it
    /// follows (`NdpReceiver::want`), as far as is known here.
    fn is_awaited(&self, spec: &NdpSpec) -> bool {
        let granted = spec.initial_window.min(self.segments) + self.pulled;
        self.segments - self.arrived > granted.saturating_sub(self.answered + self.told)
    }

    /// The receiver has asked for `number` packets in all. A pull that is lost is made up for by
    /// the next, and one that was overtaken asks for nothing.
    fn on_pull(&mut self, number: u32) {
        self.credit += number.saturating_sub(self.pulled);
        self.pulled = self.pulled.max(number);
    }

    /// Everything before `next` has arrived, and `seq` has as well or was cut.
    fn on_answer(&mut self, next: u32, seq: Option<u32>, cut: bool) {
        if let Some(seq) = seq {
            self.settle(seq, cut);
        }
        while self.una < next.min(self.segments) && !self.fates.is_empty() {
            self.settle(self.una, false);
            self.fates.pop_front();
            self.una += 1;
        }
        while self.fates.front() == Some(&SegmentState::Arrived) {
            self.fates.pop_front();
            self.una += 1;
        }
    }

    /// The receiver has segment `seq`, or was told of it by its header.
    fn settle(&mut self, seq: u32, cut: bool) {
        let Some(fate) = self.fate(seq) else { return };
        let before = *fate;
        match (before, cut) {
            (SegmentState::Arrived, _) => return,
            (SegmentState::UnderWay { .. }, true) => {
                *fate = SegmentState::Missing;
                self.missing.push_back(seq);
            }
            (SegmentState::Missing, true) => {}
            (_, false) => {
                *fate = SegmentState::Arrived;
                self.arrived += 1;
            }
        }
        self.answered += 1;
        if let SegmentState::UnderWay { returned, .. } = before {
            self.told = self.told.max(returned);
        }
    }

    /// The timer is that of the packet that has been under way for the longest time, or, where none
    /// is, that of a sender that has not been asked for what it has.
    fn set_timer(&mut self, spec: &NdpSpec) {
        while let Some(&(at, seq)) = self.sent.front() {
            if self.fate(seq).is_some_and(|fate| fate.is_under_way_since(at)) {
                break;
            }
            self.sent.pop_front();
        }
        let since = self.sent.front().map_or(self.heard, |&(at, _)| at);
        self.life.deadline = since + self.wait(spec);
    }

    /// Returns how long a packet may be under way.
    fn wait(&self, spec: &NdpSpec) -> Time {
        Time(spec.timeout().0 << self.silent.min(MOST_DOUBLINGS))
    }

    /// The timer has reached [`NdpSender::deadline`].
    pub fn on_timer(&mut self, spec: &NdpSpec, now: Time) {
        match self.life.phase() {
            ConnectionState::Closed => {
                self.life.open();
                self.heard = now;
            }
            ConnectionState::SynSent | ConnectionState::Established => self.on_timeout(spec, now),
            ConnectionState::Done | ConnectionState::Aborted => {}
        }
        match self.finished() {
            true => self.life.deadline = Time::NEVER,
            false => self.set_timer(spec),
        }
    }

    /// Whatever has not been answered for so long is lost, and sent again at once, a window at the
    /// most; nobody pulls it.
    fn on_timeout(&mut self, spec: &NdpSpec, now: Time) {
        self.counters.timeouts += 1;
        if self.life.phase() == ConnectionState::SynSent && self.una == 0 {
            self.life.set_pending(owed::SYN);
        }
        let (mut lost, wait) = (0, self.wait(spec));
        while let Some(&(at, seq)) = self.sent.front().filter(|&&(at, _)| at + wait <= now) {
            self.sent.pop_front();
            if let Some(fate) = self.fate(seq).filter(|fate| fate.is_under_way_since(at)) {
                *fate = SegmentState::Missing;
                self.missing.push_back(seq);
                lost += 1;
            }
        }
        self.credit = self.credit.max(lost.clamp(1, spec.initial_window));
        self.heard = now;
        self.silent += 1;
    }

    /// Returns the next packet to send; call until `None`.
    pub fn poll_transmit(&mut self, spec: &NdpSpec, now: Time) -> Option<Transmit> {
        if self.life.has_output() {
            return self.life.poll_control();
        }
        if self.credit == 0
            || !matches!(self.phase(), ConnectionState::SynSent | ConnectionState::Established)
        {
            return None;
        }
        let again = self.next_missing();
        let retransmission = again.is_some();
        let seq = match again {
            Some(seq) => seq,
            None if self.next() < self.segments => self.next(),
            None => return None,
        };
        self.credit -= 1;
        let under_way = SegmentState::UnderWay { at: now, returned: self.returned };
        match self.fate(seq) {
            Some(fate) => *fate = under_way,
            None => self.fates.push_back(under_way),
        }
        self.sent.push_back((now, seq));
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        self.set_timer(spec);
        Some(Transmit::Segment { seq, retransmission })
    }

    fn next_missing(&mut self) -> Option<u32> {
        while let Some(seq) = self.missing.pop_front() {
            if self.fate(seq).is_some_and(|fate| *fate == SegmentState::Missing) {
                return Some(seq);
            }
        }
        None
    }

    /// The packet for what [`NdpSender::poll_transmit`] yields.
    #[inline]
    pub fn packet(&self, spec: &NdpSpec, sizes: &WireSizes, transmit: Transmit) -> Segment {
        let again = |again| if again { Flags::RETRANSMISSION } else { Flags(0) };
        match transmit {
            Transmit::Segment { seq, retransmission } => {
                let flags = Flags::DATA | Flags::ACK | again(retransmission);
                let data = Segment::bare(flags, seq, sizes.data(self.payload(spec, seq)));
                match self.returned {
                    0 => data,
                    returned => Segment { options: inline_number(returned), ..data },
                }
            }
            Transmit::Syn { retry } => Segment::bare(Flags::SYN | again(retry), 0, sizes.syn()),
            Transmit::Reset => Segment::bare(Flags::RST, 0, sizes.bare()),
            Transmit::Ack | Transmit::Probe => Segment::bare(Flags::ACK, 0, sizes.bare()),
        }
    }
}

#[cfg(test)]
mod tests;
