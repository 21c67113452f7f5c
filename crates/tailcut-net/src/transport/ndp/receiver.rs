//! The receiving half of an NDP connection: it answers every packet and every header at once, and
//! asks for more in its turn.

use std::collections::VecDeque;

use tailcut_engine::Time;

use crate::packet::{Flags, OptionStore, inline_number};
use crate::transport::custom_endpoints::{Pull, PullPace, PullRequest, ReceivingEnd, Rejoin};
use crate::transport::segment::{DataAck, Segment};
use crate::transport::tcp::{Receiver, TcpSpec, WireSizes};

/// The answer to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NdpReply {
    SynAck,
    /// The segment has arrived.
    Arrived(u32),
    /// The header has arrived.
    Cut(u32),
    Reset,
}

/// The receiving half of a connection. Reassembly is TCP's.
#[derive(Debug, Clone)]
pub struct NdpReceiver {
    reassembly: Receiver,
    segments: u32,
    /// The number of them that have arrived.
    arrived: u32,
    /// Packets that the window or pulls have allowed, and how many of them have arrived, whole or
    /// as a header.
    granted: u32,
    came: u32,
    /// Pulls that wait for their turn, and those that have left.
    wanted: u32,
    pulls: u32,
    /// Packets that went back to the sender, as far as that was heard.
    returned: u32,
    /// Whether it has a turn among its host's receivers that want pulls.
    queued: bool,
    answers: VecDeque<NdpReply>,
}

impl NdpReceiver {
    /// A receiver of `segments` segments, the first `window` of which are sent unasked.
    pub fn new(segments: u32, window: u32) -> NdpReceiver {
        NdpReceiver {
            reassembly: Receiver::new(segments),
            segments,
            arrived: 0,
            granted: window.min(segments),
            came: 0,
            wanted: 0,
            pulls: 0,
            returned: 0,
            queued: false,
            answers: VecDeque::new(),
        }
    }

    /// A packet has arrived, and says that so many went back to its sender. True when it completes
    /// the data. `spec` is [`segments`](super::NdpSpec).
    pub fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        returned: Option<u32>,
    ) -> bool {
        let &Segment { seq, flags, .. } = packet;
        if flags.has(Flags::RST) {
            self.close();
            return false;
        }
        if self.reassembly.closed {
            self.answers.push_back(NdpReply::Reset);
            return false;
        }
        self.reassembly.is_open = true;
        self.note_returned(returned.unwrap_or(0));
        if flags.has(Flags::SYN) {
            self.answers.push_back(NdpReply::SynAck);
        } else if flags.is_trimmed() {
            match self.has(seq) {
                true => self.answers.push_back(NdpReply::Arrived(seq)),
                false => {
                    self.answers.push_back(NdpReply::Cut(seq));
                    self.want();
                }
            }
        } else if flags.has(Flags::DATA) {
            return self.take(spec, now, seq);
        }
        false
    }

    fn take(&mut self, spec: &TcpSpec, now: Time, seq: u32) -> bool {
        let new = !self.has(seq);
        self.reassembly.on_segment(spec, now, seq);
        self.reassembly.on_ack_sent();
        self.answers.push_back(NdpReply::Arrived(seq));
        if new {
            self.arrived += 1;
            self.want();
        }
        new && self.reassembly.is_complete()
    }

    fn has(&self, seq: u32) -> bool {
        seq < self.reassembly.next_expected() || self.reassembly.holds(seq)
    }

    /// Notes that so many packets have gone back to the sender: they are under way no more.
    fn note_returned(&mut self, returned: u32) {
        for _ in self.returned..returned {
            self.want();
        }
        self.returned = self.returned.max(returned);
    }

    /// Something has come of a packet that was sent: another is asked for if more is missing than
    /// is under way.
    fn want(&mut self) {
        self.came += 1;
        let coming = self.granted.saturating_sub(self.came) + self.wanted;
        if self.segments - self.arrived > coming {
            self.wanted += 1;
        }
    }

    /// True when it wants a pull and has no turn yet: from now on it has one.
    pub fn joins(&mut self) -> bool {
        let joins = self.wanted > 0 && !self.queued;
        self.queued |= joins;
        joins
    }

    /// True when it has a turn: it gives it up.
    pub fn leaves(&mut self) -> bool {
        std::mem::take(&mut self.queued)
    }

    /// Takes the receiver's turn: returns the pull, if it still wants one. Pulls are numbered, so
    /// that a later one makes up for a lost one.
    pub fn pull(&mut self, sizes: &WireSizes) -> Option<Segment> {
        self.queued = false;
        self.wanted = self.wanted.checked_sub(1)?;
        self.pulls += 1;
        self.granted += 1;
        let flags = Flags::PULL | Flags::TO_SENDER;
        Some(Segment { options: inline_number(self.pulls), ..self.bare(flags, sizes) })
    }

    /// Whether [`NdpReceiver::poll_transmit`] has anything.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Returns the next packet to send; call until `None`.
    pub fn poll_transmit(&mut self, sizes: &WireSizes) -> Option<Segment> {
        let answer = self.answers.pop_front()?;
        let flags = Flags::ACK | Flags::TO_SENDER;
        Some(match answer {
            NdpReply::SynAck => Segment::bare(flags | Flags::SYN, 0, sizes.syn()),
            NdpReply::Reset => self.bare(Flags::RST | Flags::TO_SENDER, sizes),
            NdpReply::Arrived(seq) => {
                Segment { options: inline_number(seq), ..self.bare(flags, sizes) }
            }
            NdpReply::Cut(seq) => {
                Segment { options: inline_number(seq), ..self.bare(flags | Flags::TRIMMED, sizes) }
            }
        })
    }

    fn bare(&self, flags: Flags, sizes: &WireSizes) -> Segment {
        Segment::bare(flags, self.reassembly.next_expected(), sizes.bare())
    }

    /// The receiving application resets the connection.
    pub fn reset(&mut self) {
        self.close();
        if self.reassembly.is_open {
            self.answers.push_back(NdpReply::Reset);
        }
    }

    fn close(&mut self) {
        self.reassembly.closed = true;
        self.wanted = 0;
    }
}

impl Pull for NdpReceiver {
    fn join_pull_queue(&mut self) -> bool {
        NdpReceiver::joins(self)
    }
    fn leave_pull_queue(&mut self) -> bool {
        NdpReceiver::leaves(self)
    }
    fn pull(&mut self, sizes: &WireSizes, pace: PullPace, _: bool) -> Option<PullRequest> {
        let segment = NdpReceiver::pull(self, sizes)?;
        let rejoin = if self.joins() { Rejoin::Queue } else { Rejoin::Leave };
        Some(PullRequest { segment, pause: pace.full_packet, rejoin })
    }
}

impl ReceivingEnd for Box<NdpReceiver> {
    #[inline]
    fn tcp(&self) -> &Receiver {
        &self.reassembly
    }
    #[inline]
    fn tcp_mut(&mut self) -> &mut Receiver {
        &mut self.reassembly
    }

    #[inline]
    fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool {
        NdpReceiver::on_packet(self, spec, now, packet, options.number(packet.options))
    }
    #[inline]
    fn poll_transmit(
        &mut self,
        _: &TcpSpec,
        sizes: &WireSizes,
        _: Time,
        _: Option<DataAck>,
        _: &mut OptionStore,
    ) -> Option<Segment> {
        NdpReceiver::poll_transmit(self, sizes)
    }
    #[inline]
    fn has_output(&self) -> bool {
        NdpReceiver::has_output(self)
    }
    fn reset(&mut self) {
        NdpReceiver::reset(self);
    }
    #[inline]
    fn pulls(&mut self) -> Option<&mut dyn Pull> {
        Some(&mut **self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostSpec;
    use crate::packet::{ConnectionId, FlowKey, NO_OPTIONS, Packet, SeqField};
    use crate::topology::HostId;
    use crate::transport::Transport;
    use crate::transport::ndp::NdpSpec;

    struct Script {
        spec: TcpSpec,
        sizes: WireSizes,
        receiver: NdpReceiver,
    }

    impl Script {
        fn of(segments: u32, window: u32) -> Script {
            let spec = NdpSpec::default().segment_spec();
            let sizes = WireSizes::new(&spec, HostSpec::default().framing_overhead);
            Script { sizes, spec, receiver: NdpReceiver::new(segments, window) }
        }

        /// A packet arrives: whether it completes the data, and the flags, place and segment of
        /// every answer.
        fn arrives(&mut self, flags: Flags, seq: u32) -> (bool, Vec<(Flags, u32, u32)>) {
            self.arrives_and_says(flags, seq, None)
        }

        fn arrives_and_says(
            &mut self,
            flags: Flags,
            seq: u32,
            returned: Option<u32>,
        ) -> (bool, Vec<(Flags, u32, u32)>) {
            let packet = Segment::bare(flags, seq, 1_538);
            let complete = self.receiver.on_packet(&self.spec, Time::ZERO, &packet, returned);
            let answers = std::iter::from_fn(|| self.receiver.poll_transmit(&self.sizes));
            let answers =
                answers.map(|s| (s.flags, s.seq, s.options.wrapping_sub(inline_number(0))));
            (complete, answers.collect())
        }

        fn data(&mut self, seq: u32) -> bool {
            let (complete, answers) = self.arrives(Flags::DATA, seq);
            let flags = Flags::ACK | Flags::TO_SENDER;
            assert_eq!(answers, [(flags, self.receiver.reassembly.next_expected(), seq)]);
            complete
        }

        fn header(&mut self, seq: u32) {
            let key = FlowKey::new(HostId(1), HostId(2), 3, 4);
            let options = NO_OPTIONS;
            let flags = Flags::DATA;
            let packet = Packet {
                key,
                connection: ConnectionId(0),
                seq: SeqField::new(seq),
                options,
                wire_bytes: 1_538,
                flags,
            };
            let (complete, answers) = self.arrives(packet.trimmed(84, false).flags, seq);
            let flags = Flags::ACK | Flags::TO_SENDER | Flags::TRIMMED;
            assert_eq!(
                (complete, answers),
                (false, vec![(flags, self.receiver.reassembly.next_expected(), seq)])
            );
        }

        fn pulls(&mut self) -> u32 {
            let mut pulls = 0;
            while self.receiver.joins() {
                pulls += u32::from(self.receiver.pull(&self.sizes).is_some());
            }
            pulls
        }
    }

    #[test]
    fn every_packet_and_every_header_is_answered_at_once() {
        let mut script = Script::of(3, 3);
        assert!(!script.data(1));
        script.header(0);
        assert!(!script.data(2));
        assert!(script.data(0), "that was the last");
        assert!(!script.data(0), "complete once");
    }

    #[test]
    fn a_syn_may_come_late() {
        let mut script = Script::of(3, 3);
        script.data(0);
        let flags = Flags::SYN | Flags::ACK | Flags::TO_SENDER;
        assert_eq!(script.arrives(Flags::SYN, 0).1[0].0, flags);
        assert_eq!(script.receiver.reassembly.deadline(), Time::NEVER);
    }

    #[test]
    fn no_more_is_asked_for_than_is_missing() {
        let mut script = Script::of(6, 4);
        script.data(0);
        assert_eq!(script.pulls(), 1);
        script.data(1);
        assert_eq!(script.pulls(), 1);
        // The other four are under way.
        script.data(2);
        assert_eq!(script.pulls(), 0);
        script.header(3);
        assert_eq!(script.pulls(), 1);
    }

    #[test]
    fn packets_that_went_back_are_asked_for_once() {
        let mut script = Script::of(4, 4);
        script.arrives_and_says(Flags::DATA, 0, Some(2));
        assert_eq!(script.pulls(), 2);
        script.arrives_and_says(Flags::DATA, 1, Some(2));
        assert_eq!(script.pulls(), 0);
        // What the first pull asked for came back as well, and arrives by the second.
        script.arrives_and_says(Flags::DATA, 2, Some(3));
        assert_eq!(script.pulls(), 1);
    }

    #[test]
    fn a_copy_of_what_has_arrived_asks_for_nothing() {
        let mut script = Script::of(9, 1);
        script.data(0);
        script.data(0);
        assert_eq!(script.pulls(), 1);
    }

    #[test]
    fn a_reset_receiver_answers_with_resets() {
        let mut script = Script::of(9, 4);
        script.data(0);
        script.receiver.reset();
        assert_eq!(script.pulls(), 0);
        let (_, answers) = script.arrives(Flags::DATA, 1);
        assert!(answers.iter().all(|answer| answer.0.has(Flags::RST)) && answers.len() == 2);
    }
}
