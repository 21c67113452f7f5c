//! The sending half of an NDP connection.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::NdpSpec;
use crate::packet::{Flags, OptionStore};
use crate::transport::life::{owed, segments_of, Life, Phase, Transmit};
use crate::transport::segment::Segment;
use crate::transport::tcp::{SenderCounters, WireSizes};

/// What is known of a segment that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Sent at this time, and not answered.
    UnderWay(Time),
    /// Cut or lost, and waiting to be sent again.
    Missing,
    Arrived,
}

/// The sending half of a connection that carries `size` bytes. Positions and windows count segments.
#[derive(Debug, Clone)]
pub struct NdpSender {
    size: u64,
    segments: u32,
    life: Life,
    /// First unacknowledged segment.
    una: u32,
    /// Of the segments from there on that were ever sent.
    fates: VecDeque<Fate>,
    /// What was sent, in that order; entries of segments that were answered since are skipped.
    sent: VecDeque<(Time, u32)>,
    /// Segments that are missing, in the order in which that was heard.
    missing: VecDeque<u32>,
    /// Packets that may be sent.
    credit: u32,
    /// The highest number of a pull.
    pulled: u32,
    /// When anything was last heard, and timeouts since.
    heard: Time,
    silent: u32,
    counters: SenderCounters,
}

/// A silent connection waits up to 2^6 times as long.
const MOST_DOUBLINGS: u32 = 6;

impl NdpSender {
    /// A sender of `size` bytes that opens its connection at `open_at`.
    pub fn new(spec: &NdpSpec, size: u64, open_at: Time) -> NdpSender {
        NdpSender {
            size,
            segments: segments_of(size, spec.mss),
            life: Life::opening_at(open_at),
            una: 0,
            fates: VecDeque::new(),
            sent: VecDeque::new(),
            missing: VecDeque::new(),
            credit: spec.initial_window,
            pulled: 0,
            heard: open_at,
            silent: 0,
            counters: SenderCounters::default(),
        }
    }

    /// Data segments in the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Where the connection is in its life.
    pub fn phase(&self) -> Phase {
        self.life.phase()
    }
    /// First unacknowledged segment.
    pub fn una(&self) -> u32 {
        self.una
    }
    /// Packets under way and allowed to leave.
    pub fn window(&self) -> u32 {
        let under_way = self.fates.iter().filter(|fate| matches!(fate, Fate::UnderWay(_)));
        under_way.count() as u32 + self.credit
    }
    /// What the connection has done so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
    /// When [`NdpSender::on_timer`] wants to be called.
    pub fn deadline(&self) -> Time {
        self.life.deadline
    }
    /// True once nothing more can happen on this half.
    pub fn finished(&self) -> bool {
        self.life.finished()
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

    fn fate(&mut self, seq: u32) -> Option<&mut Fate> {
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
            self.life.forgive(owed::ACK);
        } else if flags.has(Flags::PULL) {
            self.on_pull(number.unwrap_or(0));
        } else {
            self.on_answer(packet.seq, number, flags.has(Flags::CUT));
        }
        if self.una == self.segments {
            self.life.complete();
        } else {
            self.set_timer(spec);
        }
    }

    /// The receiver has asked for `number` packets in all. A pull that is lost is made up for by the next, and one that
    /// was overtaken asks for nothing.
    fn on_pull(&mut self, number: u32) {
        self.credit += number.saturating_sub(self.pulled);
        self.pulled = self.pulled.max(number);
    }

    /// Everything before `next` has arrived, and `seq` has as well or was cut.
    fn on_answer(&mut self, next: u32, seq: Option<u32>, cut: bool) {
        if let Some(fate) = seq.and_then(|seq| self.fate(seq)) {
            match (&fate, cut) {
                (Fate::UnderWay(_), true) => {
                    *fate = Fate::Missing;
                    self.missing.extend(seq);
                }
                (_, true) => {}
                (_, false) => *fate = Fate::Arrived,
            }
        }
        while self.una < next.min(self.segments) && self.fates.pop_front().is_some() {
            self.una += 1;
        }
        while self.fates.front() == Some(&Fate::Arrived) {
            self.fates.pop_front();
            self.una += 1;
        }
    }

    /// The timer is that of the packet that has been under way for the longest time, or, where none is, that of a sender that has
    /// not been asked for what it has.
    fn set_timer(&mut self, spec: &NdpSpec) {
        while let Some(&(at, seq)) = self.sent.front() {
            if self.fate(seq).is_some_and(|fate| *fate == Fate::UnderWay(at)) {
                break;
            }
            self.sent.pop_front();
        }
        let since = self.sent.front().map_or(self.heard, |&(at, _)| at);
        self.life.deadline = since + Time(spec.rto.0 << self.silent.min(MOST_DOUBLINGS));
    }

    /// The timer has reached [`NdpSender::deadline`].
    pub fn on_timer(&mut self, spec: &NdpSpec, now: Time) {
        match self.life.phase() {
            Phase::Closed => {
                self.life.open();
                self.heard = now;
            }
            Phase::SynSent | Phase::Established => self.on_timeout(spec, now),
            Phase::Done | Phase::Aborted => {}
        }
        match self.finished() {
            true => self.life.deadline = Time::NEVER,
            false => self.set_timer(spec),
        }
    }

    /// Whatever has not been answered for so long is lost, and sent again at once, a window at the most; nobody pulls it.
    fn on_timeout(&mut self, spec: &NdpSpec, now: Time) {
        self.counters.timeouts += 1;
        if self.life.phase() == Phase::SynSent && self.una == 0 {
            self.life.owe(owed::SYN);
        }
        let (mut lost, wait) = (0, Time(spec.rto.0 << self.silent.min(MOST_DOUBLINGS)));
        while let Some(&(at, seq)) = self.sent.front().filter(|&&(at, _)| at + wait <= now) {
            self.sent.pop_front();
            if let Some(fate) = self.fate(seq).filter(|fate| **fate == Fate::UnderWay(at)) {
                *fate = Fate::Missing;
                self.missing.push_back(seq);
                lost += 1;
            }
        }
        self.credit = self.credit.max(lost.clamp(1, spec.initial_window));
        self.heard = now;
        self.silent += 1;
    }

    /// What to send now, if anything; to be called until it has nothing.
    pub fn poll_transmit(&mut self, spec: &NdpSpec, now: Time) -> Option<Transmit> {
        if self.life.owes_anything() {
            return self.life.pay();
        }
        if self.credit == 0 || !matches!(self.phase(), Phase::SynSent | Phase::Established) {
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
        match self.fate(seq) {
            Some(fate) => *fate = Fate::UnderWay(now),
            None => self.fates.push_back(Fate::UnderWay(now)),
        }
        self.sent.push_back((now, seq));
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(retransmission);
        self.set_timer(spec);
        Some(Transmit::Segment { seq, retransmission })
    }

    fn next_missing(&mut self) -> Option<u32> {
        while let Some(seq) = self.missing.pop_front() {
            if self.fate(seq).is_some_and(|fate| *fate == Fate::Missing) {
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
                Segment::bare(flags, seq, sizes.data(self.payload(spec, seq)))
            }
            Transmit::Syn { retry } => Segment::bare(Flags::SYN | again(retry), 0, sizes.syn()),
            Transmit::Reset => Segment::bare(Flags::RST, 0, sizes.bare()),
            Transmit::Ack | Transmit::Probe => Segment::bare(Flags::ACK, 0, sizes.bare()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::inline_number;
    use tailcut_engine::Bytes;

    const RTT: Time = Time::from_us(100);

    struct Script {
        spec: NdpSpec,
        sender: NdpSender,
        now: Time,
    }

    impl Script {
        /// The SYN and the first window of four have just left.
        fn open(segments: u32) -> Script {
            let spec = NdpSpec { mss: Bytes(1_000), initial_window: 4, ..NdpSpec::default() };
            let sender = NdpSender::new(&spec, u64::from(segments) * 1_000, Time::ZERO);
            let mut script = Script { spec, sender, now: Time::ZERO };
            let mut first = vec![Transmit::Syn { retry: false }];
            first.extend(new(0..segments.min(4)));
            assert_eq!(script.expire(), first);
            script.now = RTT;
            script
        }

        fn hear(&mut self, flags: Flags, seq: u32, number: u32) -> Vec<Transmit> {
            let flags = flags | Flags::TO_SENDER;
            let packet = Segment { seq, options: inline_number(number), wire_bytes: 78, flags };
            self.sender.on_packet(&self.spec, self.now, &packet, &OptionStore::default());
            self.sent()
        }

        fn acked(&mut self, next: u32, seq: u32) -> Vec<Transmit> {
            self.hear(Flags::ACK, next, seq)
        }

        fn cut(&mut self, next: u32, seq: u32) -> Vec<Transmit> {
            self.hear(Flags::ACK | Flags::CUT, next, seq)
        }

        fn pull(&mut self, number: u32) -> Vec<Transmit> {
            self.hear(Flags::PULL, 0, number)
        }

        fn expire(&mut self) -> Vec<Transmit> {
            self.now = self.sender.deadline();
            assert!(self.now < Time::NEVER, "no timer runs");
            self.sender.on_timer(&self.spec, self.now);
            self.sent()
        }

        fn sent(&mut self) -> Vec<Transmit> {
            std::iter::from_fn(|| self.sender.poll_transmit(&self.spec, self.now)).collect()
        }
    }

    fn new(segments: std::ops::Range<u32>) -> Vec<Transmit> {
        segments.map(|seq| Transmit::Segment { seq, retransmission: false }).collect()
    }

    fn again(seq: u32) -> Transmit {
        Transmit::Segment { seq, retransmission: true }
    }

    #[test]
    fn the_first_window_waits_for_nothing_and_the_rest_for_pulls() {
        let mut script = Script::open(10);
        assert_eq!(script.acked(1, 0), []);
        assert_eq!(script.pull(1), new(4..5));
        assert_eq!(script.pull(3), new(5..7));
        // The second was overtaken.
        assert_eq!(script.pull(2), []);
    }

    #[test]
    fn what_was_cut_is_sent_before_anything_new() {
        let mut script = Script::open(10);
        assert_eq!(script.cut(0, 2), []);
        assert_eq!(script.cut(0, 1), []);
        assert_eq!(script.pull(3), [vec![again(2), again(1)], new(4..5)].concat());
        assert_eq!(script.sender.counters().retransmissions, 2);
    }

    #[test]
    fn a_pull_that_comes_before_the_answer_is_kept_for_it() {
        let mut script = Script::open(4);
        assert_eq!(script.pull(1), []);
        assert_eq!(script.cut(0, 3), [again(3)]);
    }

    #[test]
    fn the_flow_is_done_when_every_segment_is_answered_for() {
        let mut script = Script::open(3);
        script.acked(0, 2);
        script.acked(1, 0);
        assert_eq!(script.sender.phase(), Phase::SynSent);
        script.acked(3, 1);
        assert_eq!((script.sender.phase(), script.sender.deadline()), (Phase::Done, Time::NEVER));
    }

    #[test]
    fn a_packet_that_nothing_is_heard_of_is_sent_again_whatever_else_is_heard() {
        let mut script = Script::open(10);
        script.acked(0, 1);
        script.now = Time::from_us(4_900);
        script.pull(1);
        assert_eq!(script.sender.deadline(), Time::from_ms(5));
        assert_eq!(script.expire(), [Transmit::Syn { retry: true }, again(0), again(2), again(3)]);
        assert_eq!(script.sender.counters().timeouts, 1);
    }

    #[test]
    fn silence_doubles_the_wait_and_a_window_is_the_most_that_is_sent_again() {
        let mut script = Script::open(10);
        script.pull(4);
        assert_eq!(script.expire().len(), 1 + 4);
        script.expire();
        // What was pulled left 100 us after the first window.
        assert_eq!(script.now, RTT + Time::from_ms(10));
    }

    #[test]
    fn a_sender_that_is_not_pulled_asks_by_sending_one() {
        let mut script = Script::open(10);
        (0..4).for_each(|seq| drop(script.acked(seq + 1, seq)));
        assert_eq!(script.sender.deadline(), RTT + Time::from_ms(5));
        assert_eq!(script.expire(), new(4..5));
    }

    #[test]
    fn a_reset_ends_it() {
        let mut script = Script::open(10);
        assert_eq!(script.hear(Flags::RST, 0, 0), []);
        assert_eq!(script.sender.phase(), Phase::Aborted);
        assert_eq!(script.pull(1), []);
    }
}
