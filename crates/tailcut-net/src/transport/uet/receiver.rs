//! The receiving half: which packets have arrived, when that is said, and how much credit the
//! sender gets.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::UetSpec;
use super::rccc::{Grants, QUANTUM};
use crate::packet::{Flags, OptionStore, SelectiveAck, inline_number};
use crate::transport::custom_endpoints::{Pull, PullPace, PullRequest, ReceivingEnd, Rejoin};
use crate::transport::segment::{DataAck, Segment};
use crate::transport::tcp::{Receiver, TcpSpec, WireSizes};

/// Packets that a map covers.
const MAP: u32 = 64;
/// Grants leave at this share of the link's rate, in percent.
const PACE: u64 = 99;
/// Pulls take these many entropy values in turn.
const PULL_VALUES: u16 = 128;

/// An answer that waits to leave.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// The next expected number, and what else has arrived.
    Ack(u32, SelectiveAck),
    /// A packet was trimmed.
    Nack(u32, SelectiveAck),
    Reset,
}

/// Packets that have arrived, by number.
#[derive(Debug, Clone, Default)]
struct Arrived {
    /// The word of the first number that is missing.
    first: u32,
    words: VecDeque<u64>,
}

impl Arrived {
    fn word(&self, index: u32) -> u64 {
        let place = index.checked_sub(self.first);
        place.map_or(u64::MAX, |place| self.words.get(place as usize).copied().unwrap_or(0))
    }

    fn has(&self, seq: u32) -> bool {
        self.word(seq / MAP) >> (seq % MAP) & 1 == 1
    }

    fn insert(&mut self, seq: u32) {
        let place = (seq / MAP - self.first) as usize;
        if self.words.len() <= place {
            self.words.resize(place + 1, 0);
        }
        self.words[place] |= 1 << (seq % MAP);
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.first += 1;
        }
    }

    /// Returns the map of the [`MAP`] numbers from `base` on.
    fn map(&self, base: u32) -> u64 {
        let (word, shift) = (base / MAP, base % MAP);
        let low = self.word(word) >> shift;
        if shift == 0 { low } else { low | self.word(word + 1) << (MAP - shift) }
    }
}

/// The receiving half of a connection. Reassembly is TCP's.
#[derive(Debug, Clone)]
pub struct UetReceiver {
    reassembly: Receiver,
    arrived: Arrived,
    /// Packets that have arrived, and their bytes on the wire.
    packets: u32,
    bytes: u64,
    /// Bytes since the last acknowledgement, and how many there may be.
    since_ack: u64,
    threshold: u64,
    /// An acknowledgement is owed once no hole is left.
    owes_last: bool,
    answers: VecDeque<Answer>,
    grants: Option<Grants>,
    /// The connection has to join its host's queue of grants.
    joins: bool,
    /// Whether the connection is in that queue, and whether it is among the idle ones.
    queued: bool,
    idles: bool,
    pull_entropy: u16,
}

impl UetReceiver {
    /// A receiver of `segments` packets.
    pub fn new(spec: &UetSpec, segments: u32) -> UetReceiver {
        UetReceiver {
            reassembly: Receiver::new(segments),
            arrived: Arrived::default(),
            packets: 0,
            bytes: 0,
            since_ack: 0,
            threshold: spec.ack_threshold.0,
            owes_last: false,
            answers: VecDeque::new(),
            grants: spec.control.has_credits().then(|| Grants::new(spec)),
            joins: false,
            queued: false,
            idles: false,
            pull_entropy: 0,
        }
    }

    /// A packet has arrived, and asks for `target` units of credit in all. True when it completes
    /// the data.
    fn receive(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        target: Option<u32>,
    ) -> bool {
        let flags = packet.flags;
        if flags.has(Flags::RST) {
            self.reassembly.closed = true;
            return false;
        }
        if self.reassembly.closed {
            self.answers.push_back(Answer::Reset);
            return false;
        }
        self.reassembly.is_open = true;
        let more = match (&mut self.grants, target) {
            (Some(grants), Some(target)) => grants.on_target(target),
            _ => false,
        };
        let hurries = flags.is_trimmed() || !flags.has(Flags::DATA);
        self.joins |= self.grants.is_some() && (more || hurries);
        if flags.is_trimmed() {
            self.on_header(packet);
            return false;
        }
        if !flags.has(Flags::DATA) {
            let none = Segment { seq: SelectiveAck::NO_PACKET, ..*packet };
            self.acknowledge(&none, false);
            return false;
        }
        self.on_data(spec, now, packet)
    }

    /// A packet came without its payload.
    fn on_header(&mut self, packet: &Segment) {
        if self.arrived.has(packet.seq) {
            return self.acknowledge(packet, packet.flags.has(Flags::MARKED_BEFORE));
        }
        let ack = SelectiveAck {
            packet: packet.seq,
            entropy: packet.entropy,
            marked: packet.flags.has(Flags::MARKED_BEFORE),
            again: packet.flags.has(Flags::RETRANSMISSION),
            last_hop: packet.flags.has(Flags::LAST_HOP),
            bytes: self.bytes,
            ..SelectiveAck::default()
        };
        self.answers.push_back(Answer::Nack(self.reassembly.next_expected(), ack));
    }

    fn on_data(&mut self, spec: &TcpSpec, now: Time, packet: &Segment) -> bool {
        let &Segment { seq, flags, .. } = packet;
        let marked = flags.has(Flags::CONGESTION_EXPERIENCED);
        if self.arrived.has(seq) {
            self.acknowledge(packet, marked);
            return false;
        }
        self.arrived.insert(seq);
        self.reassembly.on_segment(spec, now, seq);
        self.reassembly.on_ack_sent();
        self.packets += 1;
        self.bytes += u64::from(packet.wire_bytes);
        self.since_ack += u64::from(packet.wire_bytes);
        let asked = flags.has(Flags::ACK_REQUEST);
        self.owes_last |= asked;
        let whole = self.packets == self.reassembly.next_expected();
        let closes = whole && self.owes_last;
        if self.packets == 1 || marked || asked || closes || self.since_ack >= self.threshold {
            self.owes_last &= !closes;
            self.acknowledge(packet, marked);
        }
        self.reassembly.is_complete()
    }

    /// Owes an acknowledgement that answers `packet`.
    fn acknowledge(&mut self, packet: &Segment, marked: bool) {
        let &Segment { seq, entropy, flags, .. } = packet;
        let next = self.reassembly.next_expected();
        let precise = marked || flags.has(Flags::ACK_REQUEST);
        let base = match seq {
            SelectiveAck::NO_PACKET => next,
            _ if precise => seq,
            _ => seq.saturating_sub(MAP - 1).max(next + 1),
        };
        self.since_ack = 0;
        let ack = SelectiveAck {
            packet: seq,
            base,
            map: self.arrived.map(base),
            bytes: self.bytes,
            entropy,
            marked,
            again: flags.has(Flags::RETRANSMISSION),
            last_hop: false,
        };
        self.answers.push_back(Answer::Ack(next, ack));
    }

    fn answer(
        &self,
        next: u32,
        ack: SelectiveAck,
        sizes: &WireSizes,
        options: &mut OptionStore,
    ) -> Segment {
        let flags = Flags::ACK | Flags::TO_SENDER;
        let bare = Segment::bare(flags, next, sizes.bare());
        Segment { options: options.insert_ack(ack), entropy: ack.entropy, ..bare }
    }
}

impl ReceivingEnd for Box<UetReceiver> {
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
        self.receive(spec, now, packet, options.number(packet.options))
    }

    #[inline]
    fn poll_transmit(
        &mut self,
        _: &TcpSpec,
        sizes: &WireSizes,
        _: Time,
        _: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Option<Segment> {
        Some(match self.answers.pop_front()? {
            Answer::Ack(next, ack) => self.answer(next, ack, sizes, options),
            Answer::Nack(next, ack) => {
                let nack = self.answer(next, ack, sizes, options);
                Segment { flags: nack.flags | Flags::TRIMMED, ..nack }
            }
            Answer::Reset => Segment::bare(Flags::RST | Flags::TO_SENDER, 0, sizes.bare()),
        })
    }

    #[inline]
    fn has_output(&self) -> bool {
        !self.answers.is_empty()
    }

    fn reset(&mut self) {
        self.reassembly.closed = true;
        self.joins = false;
        if self.reassembly.is_open {
            self.answers.push_back(Answer::Reset);
        }
    }

    #[inline]
    fn pulls(&mut self) -> Option<&mut dyn Pull> {
        self.grants.is_some().then_some(&mut **self as &mut dyn Pull)
    }
}

impl Pull for UetReceiver {
    fn join_pull_queue(&mut self) -> bool {
        let joins = std::mem::take(&mut self.joins) && !self.queued;
        self.queued |= joins;
        joins
    }

    fn leave_pull_queue(&mut self) -> bool {
        std::mem::take(&mut self.queued) | std::mem::take(&mut self.idles)
    }

    fn pull(&mut self, sizes: &WireSizes, pace: PullPace, unasked: bool) -> Option<PullRequest> {
        match unasked {
            true => self.idles = false,
            false => self.queued = false,
        }
        let grants = self.grants.as_mut().filter(|_| !self.reassembly.closed)?;
        if unasked && !grants.may_idle() {
            return None;
        }
        let units = if unasked { grants.grant_unasked() } else { grants.grant() };
        let rejoin = match grants.is_wanted() {
            true => Rejoin::Queue,
            false if grants.may_idle() && !self.idles => Rejoin::Idle,
            false => Rejoin::Leave,
        };
        self.queued |= rejoin == Rejoin::Queue;
        self.idles |= rejoin == Rejoin::Idle;
        self.pull_entropy = (self.pull_entropy + 1) % PULL_VALUES;
        let bare = Segment::bare(
            Flags::PULL | Flags::TO_SENDER,
            self.reassembly.next_expected(),
            sizes.bare(),
        );
        let options = inline_number(grants.granted());
        let segment = Segment { options, entropy: self.pull_entropy, ..bare };
        let unit = QUANTUM * 8_000_000_000_000 * 100 / (pace.rate.0 * PACE);
        Some(PullRequest { segment, pause: Time(u64::from(units) * unit), rejoin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_covers_64_numbers_from_any_base() {
        let mut arrived = Arrived::default();
        for seq in (0..64).chain([70, 130]) {
            arrived.insert(seq);
        }
        assert_eq!((arrived.first, arrived.has(63), arrived.has(64)), (1, true, false));
        assert_eq!(arrived.map(62), 0b11 | 1 << 8);
        assert_eq!(arrived.map(67), 1 << 3 | 1 << 63);
        assert_eq!(arrived.map(128), 1 << 2);
    }
}
