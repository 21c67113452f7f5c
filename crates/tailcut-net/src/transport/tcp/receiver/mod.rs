//! The receiving half of a connection: reassembly and acknowledgements
//! (RFC 9293 3.10.7.4, RFC 2018, RFC 1122 4.2.3.2).

mod answer;
mod last_ack;
mod listed;

use tailcut_engine::Time;

use self::last_ack::LastAck;
use self::listed::Listed;
use super::TcpSpec;
use crate::packet::SackBlocks;

/// Whether and when to acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckTiming {
    /// At once.
    Now,
    /// With the delayed-ACK timer, or on the next segment.
    Later,
}

/// Reassembly state of one connection, in segments.
#[derive(Debug, Clone)]
pub struct Receiver {
    next: u32,
    segments: u32,
    /// In-order segments not yet acknowledged.
    unacknowledged: u32,
    /// The time of the delayed ACK, or of the repetition of the SYN-ACK.
    deadline: Time,
    /// SYN-ACKs sent by the timer and not answered; 0 before the SYN and after the handshake.
    syn_acks: u8,
    /// The SYN has arrived.
    pub is_open: bool,
    /// The application has gone: whatever arrives is answered by a reset.
    pub closed: bool,
    /// ACKs carry an ECN echo.
    echo: bool,
    /// The next ACK is not to be delayed.
    hurry: bool,
    /// Segments that were acknowledged at once though the ACK might have been delayed.
    quick: u32,
    /// Flags of what is to be sent.
    owes: u8,
    /// The SYN-ACK to be sent was sent before.
    syn_ack_again: bool,
    /// The number that an acknowledgement owed from before a change of marks carries.
    before: u32,
    /// The timestamp to be echoed (TS.Recent of RFC 7323).
    recent: u32,
    /// A segment that had arrived before, to be reported by the next ACK.
    duplicate: Option<u32>,
    /// Segments that had arrived before.
    duplicates: u64,
    /// Data segments that PAWS discarded.
    discarded: u64,
    /// Half-open ranges beyond `next`, the most recently changed first.
    ranges: Vec<(u32, u32)>,
    /// The blocks to be reported, where those are not the latest of `ranges`.
    listed: Option<Box<Listed>>,
    /// The FIN was sent.
    fin_sent: bool,
    /// The repetition of the FIN, where ns-3's is imitated.
    last_ack: Option<Box<LastAck>>,
}

impl Receiver {
    /// A receiver of `segments` segments.
    pub fn new(segments: u32) -> Receiver {
        Receiver {
            next: 0,
            segments,
            unacknowledged: 0,
            deadline: Time::NEVER,
            syn_acks: 0,
            is_open: false,
            closed: false,
            echo: false,
            hurry: false,
            quick: 0,
            owes: 0,
            syn_ack_again: false,
            before: 0,
            recent: 0,
            duplicate: None,
            duplicates: 0,
            discarded: 0,
            ranges: Vec::new(),
            listed: None,
            fin_sent: false,
            last_ack: None,
        }
    }

    /// Returns true while a FIN is to be repeated until it is acknowledged.
    #[inline]
    pub fn repeats_fin(&self) -> bool {
        self.last_ack.as_ref().is_some_and(|last_ack| last_ack.is_waiting())
    }

    /// The next segment expected: what an ACK says.
    #[inline]
    pub fn next_expected(&self) -> u32 {
        self.next
    }

    /// Returns the number of the last ACK.
    pub fn last_acknowledged(&self) -> u32 {
        self.next - self.unacknowledged
    }

    /// True when every segment has arrived.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.next == self.segments
    }

    /// True when segment `seq` has arrived beyond a gap.
    pub fn holds(&self, seq: u32) -> bool {
        self.ranges.iter().any(|&(start, end)| start <= seq && seq < end)
    }

    /// Returns the time of the delayed ACK, or of the repetition of the SYN-ACK.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// A SYN has arrived, or nothing has answered the SYN-ACK in time: true when a SYN-ACK is to be
    /// sent. Until the handshake is over it is repeated with a growing timeout, like the SYN (RFC
    /// 6298 section 2, RFC 9293 section 3.8.1).
    pub fn on_syn(&mut self, spec: &TcpSpec, now: Time) -> bool {
        if self.is_open && self.syn_acks == 0 {
            return false;
        }
        self.is_open = true;
        if spec.imitate.fin_repeats && self.last_ack.is_none() {
            self.last_ack = Some(Box::new(LastAck::new(now)));
        }
        if self.deadline <= now || self.deadline == Time::NEVER {
            if u32::from(self.syn_acks) > spec.syn_retries {
                self.deadline = Time::NEVER;
                return false;
            }
            let wait = spec.initial_rto.0.saturating_mul(1 << self.syn_acks.min(30));
            self.deadline = now + Time(wait.min(spec.max_rto.0.max(spec.initial_rto.0)));
            self.syn_acks += 1;
        }
        true
    }

    /// Counts a SYN-ACK that is sent beside the timer; returns false if the tries are used up.
    fn count_syn_ack(&mut self, spec: &TcpSpec) -> bool {
        let left = u32::from(self.syn_acks) <= spec.syn_retries;
        self.syn_acks += u8::from(left);
        left
    }

    /// Whether the timer is that of the SYN-ACK.
    #[inline]
    pub fn in_handshake(&self) -> bool {
        self.syn_acks > 0
    }

    /// Ends the handshake: a packet other than a SYN shows that the SYN-ACK has arrived.
    #[inline]
    pub fn end_handshake(&mut self) {
        if self.syn_acks > 0 {
            self.syn_acks = 0;
            self.deadline = Time::NEVER;
        }
    }

    /// Returns true while ACKs carry an ECN echo.
    #[inline]
    pub fn echoes(&self) -> bool {
        self.echo
    }

    /// Handles a data segment's marks: `experienced` starts the echo, `reduced` ends it (RFC 3168
    /// section 6.1.3). DCTCP's receiver echoes
    /// each segment's mark, and acknowledges a change at once (RFC 8257 section 3.2).
    pub fn note_congestion(&mut self, spec: &TcpSpec, experienced: bool, reduced: bool) {
        if spec.echoes_marks() {
            self.hurry |= self.echo != experienced;
            self.echo = experienced;
        } else {
            self.echo = experienced || (self.echo && !reduced);
        }
    }

    /// Returns true if earlier segments must be acknowledged first, because this one's mark differs
    /// from theirs (DCTCP, RFC 8257 section 3.2).
    pub fn owes_ack_before(&self, spec: &TcpSpec, experienced: bool) -> bool {
        spec.echoes_marks() && self.echo != experienced && self.unacknowledged > 0
    }

    /// Takes segment `seq`.
    #[inline]
    pub fn on_segment(&mut self, spec: &TcpSpec, now: Time, seq: u32) -> AckTiming {
        if seq != self.next {
            if seq < self.next || self.holds(seq) {
                self.duplicates += 1;
                self.quick = 0;
                self.duplicate = spec.reports_duplicates().then_some(seq);
            }
            if seq > self.next {
                self.store(spec, seq);
            }
            return AckTiming::Now;
        }
        self.next += 1;
        if !self.ranges.is_empty() {
            // A segment that fills a gap is acknowledged at once (RFC 5681 4.2).
            self.absorb();
            if spec.imitate.window_announced {
                self.announce_window(spec, seq);
            }
            return AckTiming::Now;
        }
        self.unacknowledged += 1;
        if self.unacknowledged >= spec.ack_every || self.is_complete() || self.hurry {
            return AckTiming::Now;
        }
        if self.quick < spec.quick_acks {
            self.quick += 1;
            return AckTiming::Now;
        }
        if self.deadline == Time::NEVER {
            self.deadline = now + spec.delayed_ack_timeout;
        }
        AckTiming::Later
    }

    /// Clears what an ACK that leaves has settled: segments, hurry and the timer.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.hurry = false;
        self.deadline = Time::NEVER;
    }

    /// Selective acknowledgements for the next ACK, the most recent first (RFC 2018 section 4),
    /// after the report of a duplicate (RFC 2883 section 4).
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(seq) = self.duplicate {
            blocks.push(seq, seq + 1);
        }
        for &(start, end) in self.reported().iter().take(SackBlocks::MAX) {
            blocks.push(start, end);
        }
        blocks
    }

    /// The same; the duplicate is reported once.
    pub fn take_blocks(&mut self) -> SackBlocks {
        let blocks = self.sack_blocks();
        self.duplicate = None;
        blocks
    }

    /// True when the next ACK has blocks to carry: segments wait beyond a gap, or a duplicate is to
    /// be reported.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        !self.reported().is_empty() || self.duplicate.is_some()
    }

    /// The ranges beyond `next` that ACKs report, the most recently changed first.
    #[inline]
    fn reported(&self) -> &[(u32, u32)] {
        self.listed.as_ref().map_or(&self.ranges, |listed| listed.blocks())
    }

    /// Segments that arrived more than once.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Data segments discarded for an old timestamp (PAWS).
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    fn store(&mut self, spec: &TcpSpec, seq: u32) {
        if spec.imitate.four_blocks {
            if self.holds(seq) {
                return;
            }
            self.listed.get_or_insert_default().add(seq);
        }
        let mut merged = (seq, seq + 1);
        self.ranges.retain(|&(start, end)| {
            let joins = start <= merged.1 && merged.0 <= end;
            if joins {
                merged = (merged.0.min(start), merged.1.max(end));
            }
            !joins
        });
        self.ranges.insert(0, merged);
    }

    fn absorb(&mut self) {
        if let Some(at) = self.ranges.iter().position(|&(start, _)| start == self.next) {
            self.next = self.ranges.remove(at).1;
        }
        if let Some(listed) = &mut self.listed {
            listed.forget_below(self.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receiver_after(arrivals: &[u32]) -> Receiver {
        let mut receiver = Receiver::new(100);
        for &seq in arrivals {
            receiver.on_segment(&TcpSpec::default(), Time::ZERO, seq);
        }
        receiver
    }

    #[test]
    fn a_gap_is_reported_with_the_latest_block_first() {
        let receiver = receiver_after(&[0, 2, 5, 6]);
        assert_eq!(receiver.next_expected(), 1);
        assert_eq!(receiver.sack_blocks().as_slice(), [(5, 7), (2, 3)]);
    }

    #[test]
    fn filling_the_gap_acknowledges_what_waited() {
        assert_eq!(receiver_after(&[0, 2, 3, 1]).next_expected(), 4);
    }

    #[test]
    fn delayed_acks_cover_two_segments_or_the_timeout() {
        let spec = TcpSpec { ack_every: 2, ..TcpSpec::default() };
        let mut receiver = Receiver::new(100);
        assert_eq!(receiver.on_segment(&spec, Time::ZERO, 0), AckTiming::Later);
        assert_eq!(receiver.deadline(), spec.delayed_ack_timeout);
        assert_eq!(receiver.on_segment(&spec, Time::ZERO, 1), AckTiming::Now);
        receiver.on_ack_sent();
        assert_eq!(receiver.deadline(), Time::NEVER);
    }

    #[test]
    fn a_segment_out_of_order_is_acknowledged_at_once_under_delayed_acks() {
        let spec = TcpSpec { ack_every: 2, ..TcpSpec::default() };
        assert_eq!(Receiver::new(100).on_segment(&spec, Time::ZERO, 3), AckTiming::Now);
    }

    #[test]
    fn an_unanswered_syn_ack_is_repeated_with_a_doubling_timeout_until_the_tries_are_used_up() {
        let spec = TcpSpec { initial_rto: Time::from_ms(10), syn_retries: 2, ..TcpSpec::default() };
        let mut receiver = Receiver::new(3);
        let mut sent_at = vec![];
        assert!(receiver.on_syn(&spec, Time::ZERO));
        while receiver.deadline() != Time::NEVER {
            let now = receiver.deadline();
            if receiver.on_syn(&spec, now) {
                sent_at.push(now.as_ns() / 1_000_000);
            }
        }
        assert_eq!(sent_at, [10, 30]);
    }

    #[test]
    fn the_first_segment_or_ack_ends_the_handshake() {
        let spec = TcpSpec::default();
        let mut receiver = Receiver::new(3);
        receiver.on_syn(&spec, Time::ZERO);
        receiver.end_handshake();
        assert_eq!(receiver.deadline(), Time::NEVER);
        assert!(
            !receiver.on_syn(&spec, Time::from_ms(1)),
            "a late duplicate of the SYN gets no SYN-ACK"
        );
    }

    proptest! {
        #[test]
        fn any_order_with_duplicates_reassembles(order in Just((0..40u32).chain(0..40).collect::<Vec<_>>()).prop_shuffle()) {
            let mut receiver = Receiver::new(40);
            let mut seen = [false; 41];
            for seq in order {
                receiver.on_segment(&TcpSpec::default(), Time::ZERO, seq);
                seen[seq as usize] = true;
                let expected = seen.iter().position(|s| !s).unwrap() as u32;
                prop_assert_eq!(receiver.next_expected(), expected);
                for &(start, end) in receiver.sack_blocks().as_slice() {
                    prop_assert!(start > expected && (start..end).all(|s| seen[s as usize]));
                    prop_assert!(!seen[end as usize] && !seen[start as usize - 1]);
                }
            }
            prop_assert!(receiver.is_complete());
        }
    }
}
