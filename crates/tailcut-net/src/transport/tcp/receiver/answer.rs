//! Answers of a receiver: SYN-ACKs, acknowledgements, FINs and resets.

use tailcut_engine::Time;

use super::{AckTiming, Receiver};
use crate::packet::{Flags, NO_OPTIONS, OptionStore, SackBlocks, inline_number};
use crate::transport::segment::{DataAck, Segment};
use crate::transport::tcp::options::{WireSizes, stamp};
use crate::transport::tcp::{Close, Paws, Recovery, TcpSpec};

/// Flags of what a receiver is to send, in the order in which it leaves.
mod owed {
    /// An acknowledgement of what came before a change of marks (DCTCP).
    pub const BEFORE: u8 = 1;
    /// ns-3's acknowledgement of data that came with the FIN, before its own FIN.
    pub const FIRST: u8 = 2;
    pub const SYN_ACK: u8 = 4;
    pub const ACK: u8 = 8;
    /// ns-3's acknowledgement after its own FIN.
    pub const LAST: u8 = 16;
    pub const RESET: u8 = 32;
    /// ns-3's announcement of a window that was nearly closed, before the acknowledgement itself.
    pub const WINDOW: u8 = 64;
    /// ns-3's repetition of its FIN.
    pub const FIN_AGAIN: u8 = 128;
}

impl Receiver {
    /// A packet has arrived. True when it completes the data: all of it is here, in order.
    #[inline]
    pub fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        let flags = packet.flags;
        if spec.imitate.fin_repeats && self.after_fin(now, flags) {
            return false;
        }
        if spec.timestamps && !self.note_timestamp(spec, packet, options) {
            return false;
        }
        if spec.uses_ecn() {
            self.hear_marks(spec, flags);
        }
        if !flags.has(Flags::SYN) && self.in_handshake() {
            let early = flags.has(Flags::DATA | Flags::FIN) && packet.seq != self.next_expected();
            if early && spec.imitate.early_fin_is_ignored {
                return false;
            }
            self.end_handshake();
        }
        if flags.has(Flags::DATA) && !self.closed {
            let complete_before = self.is_complete();
            if self.on_segment(spec, now, packet.seq) == AckTiming::Now {
                self.owes |= owed::ACK;
            }
            let completed = !complete_before && self.is_complete();
            if completed && spec.imitate.three_packet_close {
                self.close_in_three(spec, flags.has(Flags::FIN));
            }
            return completed;
        }
        self.on_other(spec, now, flags);
        false
    }

    /// Handles a packet that arrives at ns-3's receiver after its FIN; returns false if the packet
    /// takes its usual way. Late data is acknowledged until an acknowledgement of the FIN ends the
    /// connection, and nothing is answered from then on.
    #[cold]
    fn after_fin(&mut self, now: Time, flags: Flags) -> bool {
        let Some(last_ack) = &mut self.last_ack else { return false };
        if !flags.has(Flags::SYN) {
            last_ack.measure(now);
        }
        if !last_ack.has_sent_fin() || (last_ack.is_waiting() && flags.has(Flags::DATA)) {
            return false;
        }
        if flags.has(Flags::SYN) && last_ack.is_waiting() {
            self.owes |= owed::RESET;
        }
        last_ack.end();
        self.deadline = Time::NEVER;
        true
    }

    fn on_other(&mut self, spec: &TcpSpec, now: Time, flags: Flags) {
        if flags.has(Flags::RST) {
            self.closed = true;
        } else if self.closed {
            if flags.has(Flags::SYN) || flags.has(Flags::DATA) {
                self.owes |= owed::RESET;
            }
        } else if flags.has(Flags::SYN) {
            let beside = spec.imitate.syns_beside_timer && self.in_handshake();
            if !beside {
                self.answer_syn(spec, now);
            } else if self.count_syn_ack(spec) {
                self.syn_ack_again = true;
                self.owes |= owed::SYN_ACK;
            }
        }
    }

    /// A SYN has arrived, or the answer to one is due again.
    fn answer_syn(&mut self, spec: &TcpSpec, now: Time) {
        self.syn_ack_again = self.in_handshake();
        if self.on_syn(spec, now) {
            self.owes |= owed::SYN_ACK;
        } else if !self.in_handshake() {
            // A SYN of a connection that is established: an old duplicate (RFC 9293 section
            // 3.10.7.4).
            self.owes |= owed::ACK;
        }
    }

    /// Handles the congestion marks of a data segment.
    #[cold]
    fn hear_marks(&mut self, spec: &TcpSpec, flags: Flags) {
        if !flags.has(Flags::DATA) || self.closed {
            return;
        }
        let experienced = flags.has(Flags::CONGESTION_EXPERIENCED);
        if self.owes_ack_before(spec, experienced) {
            // Nothing waits beyond a gap while in-order segments are unacknowledged: there are no
            // blocks to carry.
            self.owes |= owed::BEFORE;
            self.before = self.next_expected();
            self.on_ack_sent();
        }
        self.note_congestion(spec, experienced, flags.has(Flags::WINDOW_REDUCED));
    }

    /// Updates the timestamp to echo (RFC 7323 section 4.3): that of a segment at or before the
    /// last acknowledgement sent, under PAWS unless it is older. Returns false for a data segment
    /// that PAWS discards and answers by an ACK (section 5.3, R1).
    #[cold]
    fn note_timestamp(&mut self, spec: &TcpSpec, packet: &Segment, options: &OptionStore) -> bool {
        let value = options.get(packet.options).timestamps.value;
        let data = packet.flags.has(Flags::DATA);
        if self.is_open && data && !self.closed && spec.paws.discards(value, self.recent) {
            self.discarded += 1;
            self.owes |= owed::ACK;
            return false;
        }
        let older =
            self.is_open && !spec.paws.is_off() && Paws::Rfc7323.discards(value, self.recent);
        if !older && (!data || packet.seq <= self.last_acknowledged()) {
            self.recent = value;
        }
        true
    }

    /// ns-3's answer to everything up to the FIN: an ACK if it comes with the FIN, a FIN of its
    /// own, and one more ACK.
    #[cold]
    fn close_in_three(&mut self, spec: &TcpSpec, came_with_fin: bool) {
        if spec.close == Close::Fin {
            self.owes |= owed::LAST;
            self.owes |= if came_with_fin { owed::FIRST } else { 0 };
        }
    }

    /// Announces the window after segment `seq` has filled a gap, as ns-3 does when its application
    /// reads what was waiting: before the read, the window field was below the bytes of an MSS.
    /// Nothing is announced once the FIN has arrived.
    #[cold]
    pub(super) fn announce_window(&mut self, spec: &TcpSpec, seq: u32) {
        let read = u64::from(self.next_expected() - seq) * spec.mss.0;
        let last = self.segments.saturating_sub(1);
        let fin_known = self.next_expected() > last || self.holds(last);
        let window = spec.receive_window.0;
        let field = window.saturating_sub(read) >> window_scale(window);
        if !fin_known && field < spec.mss.0 {
            self.owes |= owed::WINDOW;
        }
    }

    /// The timer has reached [`Receiver::deadline`]: a delayed ACK is due, or a SYN-ACK again.
    pub fn on_timer(&mut self, spec: &TcpSpec, now: Time) {
        if self.in_handshake() {
            self.answer_syn(spec, now);
        } else if self.repeats_fin() {
            self.repeat_fin(spec, now);
        } else {
            self.owes |= owed::ACK;
        }
    }

    #[cold]
    fn repeat_fin(&mut self, spec: &TcpSpec, now: Time) {
        let Some(last_ack) = &mut self.last_ack else { return };
        last_ack.on_timer(spec, now);
        self.deadline = last_ack.deadline();
        self.owes |= if last_ack.owes_fin() { owed::FIN_AGAIN } else { 0 };
    }

    /// Acknowledges at once what has arrived.
    #[inline]
    pub fn acknowledge_now(&mut self) {
        self.owes |= owed::ACK;
    }

    /// The receiving application resets the connection. Nobody knows of one whose SYN has not
    /// arrived.
    pub fn reset(&mut self) {
        self.closed = true;
        self.on_ack_sent();
        if let Some(last_ack) = &mut self.last_ack {
            last_ack.end();
        }
        if self.is_open {
            self.owes |= owed::RESET;
        }
    }

    /// Whether [`Receiver::poll_transmit`] has anything.
    #[inline]
    pub fn has_output(&self) -> bool {
        self.owes != 0
    }

    /// Returns the next packet to send; call until `None`. `data` is the data-level
    /// acknowledgement.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Option<Segment> {
        let mut segment = match self.owes {
            0 => return None,
            owed::ACK => {
                self.owes = 0;
                self.acknowledgement(spec, sizes, now, data, options)
            }
            _ => self.other(spec, sizes, now, data, options),
        };
        segment.flags = segment.flags | Flags::TO_SENDER;
        if spec.timestamps {
            stamp(&mut segment, spec, now, self.recent, options);
        }
        Some(segment)
    }

    #[cold]
    fn other(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Segment {
        let due = match self.owes & owed::WINDOW {
            0 => self.owes & self.owes.wrapping_neg(),
            window => window,
        };
        self.owes &= !due;
        let plain = |seq, echo| {
            let echo = if echo { Flags::ECN_ECHO } else { Flags(0) };
            Segment::bare(Flags::ACK | echo, seq, sizes.bare())
        };
        match due {
            // What came before met the opposite of what changed the echo.
            owed::BEFORE => {
                let ack = plain(self.before, !self.echoes());
                Segment { options: data.map_or(NO_OPTIONS, |d| inline_number(d.number)), ..ack }
            }
            owed::FIRST | owed::LAST => plain(self.next_expected(), false),
            owed::SYN_ACK => {
                let again = if self.syn_ack_again { Flags::RETRANSMISSION } else { Flags(0) };
                // An ECN-setup SYN-ACK carries ECE alone (RFC 3168 section 6.1.1).
                let setup = if spec.uses_ecn() { Flags::ECN_ECHO } else { Flags(0) };
                Segment::bare(Flags::SYN | Flags::ACK | setup | again, 0, sizes.syn())
            }
            owed::RESET => Segment::bare(Flags::RST, 0, sizes.bare()),
            owed::FIN_AGAIN => {
                let more = self.last_ack.as_mut().is_some_and(|last_ack| last_ack.take_fin());
                self.owes |= if more { owed::FIN_AGAIN } else { 0 };
                Segment::bare(Flags::ACK | Flags::FIN, self.next_expected(), sizes.bare())
            }
            _ => self.acknowledgement(spec, sizes, now, data, options),
        }
    }

    /// Acknowledges everything received so far.
    #[inline]
    fn acknowledgement(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Segment {
        self.on_ack_sent();
        let mut flags = Flags::ACK;
        let complete = data.map_or(self.is_complete(), |data| data.complete);
        // A late segment is acknowledged without another FIN.
        if complete && spec.close == Close::Fin {
            if !self.fin_sent {
                self.fin_sent = true;
                flags = flags | Flags::FIN;
                if let Some(last_ack) = &mut self.last_ack {
                    last_ack.on_fin_sent(spec, now);
                }
            }
            self.deadline = self.last_ack.as_ref().map_or(Time::NEVER, |end| end.deadline());
        }
        if self.echoes() {
            flags = flags | Flags::ECN_ECHO;
        }
        let mut ack = Segment::bare(flags, self.next_expected(), sizes.bare());
        if self.has_blocks() && spec.recovery == Recovery::SackPrr {
            let limit = if spec.timestamps { 3 } else { SackBlocks::MAX };
            let blocks = self.take_blocks().first(limit);
            ack.wire_bytes = sizes.ack(blocks.as_slice().len());
            ack.options = options.insert(blocks);
            if let Some(data) = data {
                ack.options = options.set_number(ack.options, data.number);
            }
        } else if let Some(data) = data {
            ack.options = inline_number(data.number);
        }
        ack
    }
}

/// Returns the shift with which a window of `bytes` fits its field (RFC 7323 section 2.2).
fn window_scale(bytes: u64) -> u32 {
    (u64::BITS - bytes.leading_zeros()).saturating_sub(16).min(14)
}

#[cfg(test)]
mod tests {
    use tailcut_engine::Bytes;

    use super::*;
    use crate::transport::tcp::Imitation;

    /// A receiver with what it needs to hear and answer.
    struct Stage {
        spec: TcpSpec,
        receiver: Receiver,
        options: OptionStore,
    }

    impl Stage {
        fn new(names: &[&str], segments: u32) -> Stage {
            let imitate = Imitation::of(names).expect("they are departures");
            let initial_rto = Time::from_ms(10);
            let spec = TcpSpec { imitate, initial_rto, ..TcpSpec::default() };
            let (receiver, options) = (Receiver::new(segments), OptionStore::default());
            Stage { spec, receiver, options }
        }

        fn answers(&mut self, now: Time) -> Vec<Segment> {
            let sizes = WireSizes::new(&self.spec, Bytes(0));
            let Stage { spec, receiver, options } = self;
            std::iter::from_fn(|| receiver.poll_transmit(spec, &sizes, now, None, options))
                .collect()
        }

        fn hear(&mut self, ms: u64, flags: Flags, seq: u32) -> Vec<Segment> {
            let packet = Segment::bare(flags, seq, 100);
            self.receiver.on_packet(&self.spec, Time::from_ms(ms), &packet, &self.options);
            self.answers(Time::from_ms(ms))
        }

        fn data(&mut self, seq: u32) -> Vec<Segment> {
            self.hear(1, Flags::DATA | Flags::ACK, seq)
        }

        /// The blocks of the only answer to a segment.
        fn blocks(&mut self, seq: u32) -> Vec<(u32, u32)> {
            let answers = self.data(seq);
            assert_eq!(answers.len(), 1);
            self.options.get(answers[0].options).blocks.as_slice().to_vec()
        }

        fn expire(&mut self) -> Vec<Segment> {
            let now = self.receiver.deadline();
            self.receiver.on_timer(&self.spec, now);
            self.answers(now)
        }
    }

    #[test]
    fn the_fin_is_sent_once_and_late_segments_get_an_ack_without_it() {
        for names in [&[][..], &["three-packet-close"]] {
            let mut stage = Stage::new(names, 2);
            stage.data(0);
            let last = stage.hear(1, Flags::DATA | Flags::ACK | Flags::FIN, 1);
            assert_eq!(last.iter().filter(|ack| ack.flags.has(Flags::FIN)).count(), 1);
            let late = stage.data(0);
            assert_eq!(late.len(), 1);
            assert!(late[0].seq == 2 && !late[0].flags.has(Flags::FIN));
        }
    }

    /// The only sample is 2 ms, the interval 2 ms + 4 times half of that, the minimum 10 ms: FINs
    /// every 6 and every 10 ms, two after 30, and the end after 42 ms.
    #[test]
    fn ns3_repeats_its_fin_by_two_timers_until_six_repetitions_are_used_up() {
        let mut stage = Stage::new(&["fin-repeats"], 1);
        stage.hear(0, Flags::SYN, 0);
        stage.hear(2, Flags::DATA | Flags::ACK | Flags::FIN, 0);
        let mut fins = vec![];
        while stage.receiver.deadline() != Time::NEVER {
            let after = stage.receiver.deadline().as_ns() / 1_000_000 - 2;
            let sent = stage.expire();
            assert!(sent.iter().all(|fin| fin.flags.has(Flags::FIN)));
            fins.push((after, sent.len()));
        }
        let singles = [6, 10, 12, 18, 20, 24].map(|after| (after, 1));
        assert_eq!(fins, [&singles[..], &[(30, 2), (36, 1), (40, 1), (42, 0)]].concat());
    }

    #[test]
    fn an_acknowledgement_of_the_fin_ends_ns3s_repetition() {
        let mut stage = Stage::new(&["fin-repeats"], 1);
        stage.hear(0, Flags::SYN, 0);
        stage.hear(2, Flags::DATA | Flags::ACK | Flags::FIN, 0);
        assert_eq!(stage.hear(3, Flags::DATA | Flags::ACK, 0).len(), 1, "late data meanwhile");
        assert!(stage.receiver.repeats_fin());
        stage.hear(4, Flags::ACK, 0);
        assert!(!stage.receiver.repeats_fin());
        assert_eq!(stage.receiver.deadline(), Time::NEVER);
        assert!(stage.hear(5, Flags::DATA | Flags::ACK, 0).is_empty());
    }

    #[test]
    fn ns3_reports_four_blocks_and_forgets_the_fifth() {
        let last = |names: &[&str]| {
            let mut stage = Stage::new(names, 100);
            [1, 3, 5, 7].iter().for_each(|&seq| drop(stage.data(seq)));
            (stage.blocks(9), stage.blocks(5), stage.blocks(2))
        };
        let all = vec![(9, 10), (7, 8), (5, 6), (3, 4)];
        let rfc = (
            all.clone(),
            vec![(5, 6), (9, 10), (7, 8), (3, 4)],
            vec![(1, 4), (5, 6), (9, 10), (7, 8)],
        );
        let ns3 = (all.clone(), all, vec![(2, 4), (9, 10), (7, 8), (5, 6)]);
        assert_eq!((last(&[]), last(&["four-blocks"])), (rfc, ns3));
    }

    /// A SYN again after 4 ms, and one as the timer expires at 10 ms.
    #[test]
    fn ns3_answers_syns_beside_the_timer_which_backs_off_for_them() {
        let syns = |names: &[&str]| {
            let mut stage = Stage::new(names, 100);
            let answers = [0, 4, 10].map(|ms| stage.hear(ms, Flags::SYN, 0).len());
            let due = stage.receiver.deadline() <= Time::from_ms(10);
            let by_timer = if due { stage.expire().len() } else { 0 };
            (answers, by_timer, stage.receiver.deadline())
        };
        assert_eq!(syns(&[]), ([1; 3], 0, Time::from_ms(30)));
        assert_eq!(syns(&["syns-beside-timer"]), ([1; 3], 1, Time::from_ms(10 + 80)));
    }

    #[test]
    fn ns3_ignores_a_fin_out_of_order_before_the_handshake_ends() {
        let heard = |names: &[&str]| {
            let mut stage = Stage::new(names, 3);
            stage.hear(0, Flags::SYN, 0);
            stage.hear(1, Flags::DATA | Flags::ACK | Flags::FIN, 2).len()
        };
        assert_eq!((heard(&[]), heard(&["early-fin-is-ignored"])), (1, 0));
    }

    /// A window of 1 MiB has a scale of 5: its field is below 1,460 while less than 46,720 B are
    /// left, which 686 segments beyond a gap of one bring about.
    #[test]
    fn ns3_announces_a_window_that_was_nearly_closed() {
        let acks = |names: &[&str], waiting: u32| {
            let mut stage = Stage::new(names, 10_000);
            stage.spec.receive_window = Bytes(1 << 20);
            (1..=waiting).for_each(|seq| drop(stage.data(seq)));
            let acks = stage.data(0);
            assert!(acks.iter().all(|ack| ack.seq == waiting + 1));
            acks.len()
        };
        assert_eq!(acks(&[], 686), 1);
        assert_eq!([686, 685].map(|waiting| acks(&["window-announced"], waiting)), [2, 1]);
    }
}
