//! Two ends without a fabric: a clock, two wires of one delay and no transmission times, and a list
//! of the packets that the wires lose.

use tailcut_engine::{Bytes, Time};

use super::{CustomEndpoints, PfabricReceiver, PfabricSender, PfabricSpec};
use crate::packet::{Flags, OptionStore};
use crate::transport::custom_endpoints::ReceivingEnd;
use crate::transport::tcp::{TcpSpec, WireSizes};
use crate::transport::{ConnectionState, Segment, Transport};

const MSS: u64 = 1_000;
/// The one-way delay. Data leaves from 100 us on, and the timer expires 1 ms later.
const DELAY: Time = Time::from_us(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Syn,
    SynAck,
    Data(u32),
    Ack(u32),
    Probe,
    Last,
    Reset,
}

/// A packet as it left.
struct Sent {
    us: u64,
    what: What,
    /// Least is best; none: control packets.
    priority: Option<u32>,
    wire_bytes: u16,
}

struct Pair {
    spec: PfabricSpec,
    segments: TcpSpec,
    sizes: WireSizes,
    now: Time,
    sender: PfabricSender,
    receiver: PfabricReceiver,
    options: OptionStore,
    /// Packets under way with their arrival times, in the order of sending.
    wires: Vec<(Time, Segment)>,
    lost: Vec<What>,
    twice: Vec<What>,
    log: Vec<Sent>,
    /// The arrival of the last byte, in microseconds.
    received: Option<u64>,
}

impl Pair {
    fn of(segments: u64) -> Pair {
        Pair::of_bytes(segments * MSS)
    }

    fn of_bytes(bytes: u64) -> Pair {
        let spec = PfabricSpec { mss: Bytes(MSS), ..PfabricSpec::default() };
        let sender = spec.sender(bytes, Time::ZERO);
        Pair {
            segments: spec.segment_spec(),
            sizes: WireSizes::new(&spec.segment_spec(), Bytes(0)),
            now: Time::ZERO,
            receiver: spec.receiver(sender.segments()),
            sender,
            spec,
            options: OptionStore::default(),
            wires: vec![],
            lost: vec![],
            twice: vec![],
            log: vec![],
            received: None,
        }
    }

    /// Loses the next `times` sendings of `what`.
    fn lose(mut self, what: What, times: usize) -> Pair {
        self.lost.extend(std::iter::repeat_n(what, times));
        self
    }

    /// The next sending of `what` arrives twice.
    fn duplicate(mut self, what: What) -> Pair {
        self.twice.push(what);
        self
    }

    fn next(&self) -> Time {
        let arrivals = self.wires.iter().map(|(time, _)| *time);
        let timers = [self.sender.deadline(), self.receiver.tcp().deadline()];
        arrivals.chain(timers).min().expect("two timers")
    }

    /// Lets everything happen up to a time.
    fn run_until(mut self, end: Time) -> Pair {
        while self.next() <= end {
            self.now = self.next();
            if let Some(at) = self.wires.iter().position(|(time, _)| *time == self.now) {
                let (_, segment) = self.wires.remove(at);
                self.arrive(segment);
            } else if self.receiver.tcp().deadline() == self.now {
                self.receiver.tcp_mut().on_timer(&self.segments, self.now);
            } else {
                self.sender.on_timer(&self.spec, self.now);
            }
            self.poll();
        }
        self
    }

    /// Lets everything happen, which is over within a second: the script is used up and no options
    /// are left.
    fn run(self) -> Pair {
        let pair = self.run_until(Time::from_ms(1_000));
        assert!(pair.next() == Time::NEVER, "the connection never ends");
        assert!(pair.lost.is_empty() && pair.twice.is_empty(), "never sent");
        assert_eq!(pair.options.live(), 0, "options leak");
        pair
    }

    fn arrive(&mut self, segment: Segment) {
        if segment.flags.has(Flags::TO_SENDER) {
            self.sender.on_packet(&self.spec, self.now, &segment, &self.options);
        } else if self.receiver.on_packet(&self.segments, self.now, &segment, &self.options) {
            assert_eq!(self.received.replace(self.now.as_ns() / 1_000), None, "complete once");
        }
        self.options.release(segment.options);
    }

    fn poll(&mut self) {
        loop {
            let (sizes, options) = (&self.sizes, &mut self.options);
            let answer =
                self.receiver.poll_transmit(&self.segments, sizes, self.now, None, options);
            if let Some(segment) = answer {
                self.send(segment);
            } else if let Some(transmit) = self.sender.poll_transmit(&self.spec, self.now) {
                self.send(self.sender.packet(&self.spec, &self.sizes, transmit));
            } else {
                return;
            }
        }
    }

    fn send(&mut self, segment: Segment) {
        let Segment { seq, flags, wire_bytes, .. } = segment;
        let what = match (flags.has(Flags::TO_SENDER), flags.has(Flags::SYN)) {
            _ if flags.has(Flags::RST) => What::Reset,
            (false, true) => What::Syn,
            (true, true) => What::SynAck,
            (true, false) => What::Ack(seq),
            (false, false) if flags.has(Flags::DATA) => What::Data(seq),
            (false, false) if flags.has(Flags::PROBE) => What::Probe,
            (false, false) => What::Last,
        };
        let priority = self.options.number(segment.options);
        let priority = priority.filter(|_| matches!(what, What::Data(_) | What::Probe));
        self.log.push(Sent { us: self.now.as_ns() / 1_000, what, priority, wire_bytes });
        let take = |pair: &mut Pair, script: fn(&mut Pair) -> &mut Vec<What>| {
            let script = script(pair);
            script.iter().position(|scripted| *scripted == what).map(|at| script.remove(at))
        };
        if take(self, |pair| &mut pair.lost).is_some() {
            return self.options.release(segment.options);
        }
        let copies = 1 + usize::from(take(self, |pair| &mut pair.twice).is_some());
        let arrives = self.now + DELAY;
        self.wires.extend(std::iter::repeat_n((arrives, segment), copies));
    }

    /// Returns when packets of this name left, in microseconds.
    fn times(&self, what: What) -> Vec<u64> {
        self.log.iter().filter(|sent| sent.what == what).map(|sent| sent.us).collect()
    }

    fn first(&self, what: What) -> &Sent {
        self.log.iter().find(|sent| sent.what == what).expect("it was sent")
    }

    /// Segments in the order in which they left.
    fn data(&self) -> Vec<u32> {
        let seq = |sent: &Sent| match sent.what {
            What::Data(seq) => Some(seq),
            _ => None,
        };
        self.log.iter().filter_map(seq).collect()
    }

    /// All data has arrived, then, and the sender knows.
    fn assert_received_at(&self, us: u64) {
        assert_eq!((self.received, self.sender.phase()), (Some(us), ConnectionState::Done));
    }
}

/// The handshake, a window of 12, and the rest as its acknowledgements come in.
#[test]
fn an_ideal_flow_takes_a_handshake_and_two_windows() {
    let pair = Pair::of(20).run();
    pair.assert_received_at(250);
    assert_eq!(pair.data(), Vec::from_iter(0..20));
    assert_eq!((pair.times(What::Data(11)), pair.times(What::Data(12))), (vec![100], vec![200]));
    assert_eq!((pair.sender.counters().timeouts, pair.sender.cwnd()), (0, 15));
}

#[test]
fn every_segment_is_acknowledged_at_once() {
    let pair = Pair::of(5).run();
    assert!((1..=5).all(|ack| pair.times(What::Ack(ack)) == [150]));
}

/// Selective acknowledgements let the flow go on; the timer runs from the last ACK that advanced,
/// at 200 us.
#[test]
fn a_lost_segment_waits_for_the_timer_and_goes_alone() {
    let pair = Pair::of(20).lose(What::Data(3), 1).run();
    pair.assert_received_at(1_250);
    assert_eq!(pair.times(What::Data(3)), [100, 1_200]);
    assert_eq!((pair.data().len(), pair.sender.counters().retransmissions), (21, 1));
}

/// Nothing comes after it that could tell: it costs the same.
#[test]
fn a_lost_last_segment_costs_no_more() {
    let pair = Pair::of(20).lose(What::Data(19), 1).run();
    pair.assert_received_at(1_350);
    assert_eq!(pair.times(What::Data(19)), [200, 1_300]);
}

/// The second half of the first window: the first hole at once, the others as it opens again.
#[test]
fn a_lost_half_window_comes_back_by_slow_start() {
    let lost = (6..12).fold(Pair::of(12), |pair, seq| pair.lose(What::Data(seq), 1));
    let pair = lost.run();
    assert_eq!(pair.data()[12..], [6, 7, 8, 9, 10, 11]);
    let again = |seq| pair.times(What::Data(seq))[1];
    assert_eq!([6, 7, 8, 9, 10, 11].map(again), [1_200, 1_300, 1_300, 1_400, 1_400, 1_400]);
    assert_eq!(
        pair.sender.ssthresh(),
        7,
        "half of the 15 that 12 and an ACK for each of 6 make at most"
    );
}

#[test]
fn a_lost_acknowledgement_is_made_up_for_by_the_next() {
    let pair = Pair::of(5).lose(What::Ack(2), 1).run();
    assert_eq!((pair.data().len(), pair.sender.counters().timeouts), (5, 0));
}

/// The receiver has everything; the sender asks again, and is told.
#[test]
fn the_last_acknowledgement_is_asked_for_again() {
    let pair = Pair::of(5).lose(What::Ack(5), 1).run();
    pair.assert_received_at(150);
    assert_eq!(
        (pair.times(What::Data(4)), pair.times(What::Ack(5))),
        (vec![100, 1_200], vec![150, 1_250])
    );
}

#[test]
fn a_lost_syn_is_repeated_without_back_off() {
    let pair = Pair::of(1).lose(What::Syn, 3).run();
    assert_eq!(pair.times(What::Syn), [0, 1_000, 2_000, 3_000]);
    pair.assert_received_at(3_150);
}

#[test]
fn a_segment_that_arrives_twice_changes_nothing() {
    let pair = Pair::of(5).duplicate(What::Data(2)).run();
    pair.assert_received_at(150);
    assert_eq!(pair.data(), [0, 1, 2, 3, 4]);
}

/// Four timeouts resend the segment, the fifth and those after it send a byte.
#[test]
fn a_starved_flow_probes_until_it_is_heard() {
    let pair = Pair::of(1).lose(What::Data(0), 5).lose(What::Probe, 2).run();
    assert_eq!(pair.times(What::Data(0)), [100, 1_100, 2_100, 3_100, 4_100, 7_200]);
    assert_eq!(pair.times(What::Probe), [5_100, 6_100, 7_100]);
    assert_eq!(pair.times(What::Ack(0)), [7_150]);
    pair.assert_received_at(7_250);
}

/// A flow heard again starts with a window of one and the largest threshold.
#[test]
fn after_probing_comes_slow_start() {
    let lost = (0..12).fold(Pair::of(12), |pair, seq| pair.lose(What::Data(seq), 1));
    let pair = lost.lose(What::Data(0), 4).run();
    assert_eq!(pair.data()[12..], [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(pair.sender.ssthresh(), 15);
    assert_eq!(
        (5_200, 5_300, 5_400),
        (pair.times(What::Data(0))[5], pair.times(What::Data(1))[1], pair.times(What::Data(6))[1])
    );
}

/// A probe is a byte, and as urgent as the flow.
#[test]
fn a_probe_carries_the_priority_of_its_flow() {
    let pair = Pair::of(1).lose(What::Data(0), 5).run();
    let (data, probe) = (pair.first(What::Data(0)), pair.first(What::Probe));
    assert_eq!((data.priority, probe.priority), (Some(1_000), Some(1_000)));
    assert_eq!(data.wire_bytes - probe.wire_bytes, 999);
}

/// Acknowledged bytes do not count in the priority; control packets carry none.
#[test]
fn packets_carry_what_is_left() {
    let pair = Pair::of_bytes(19_500).run();
    let priority = |what| pair.first(what).priority;
    assert_eq!(
        [0, 11, 12].map(|seq| priority(What::Data(seq))),
        [Some(19_500), Some(19_500), Some(18_500)]
    );
    assert_eq!([What::Syn, What::SynAck, What::Last, What::Ack(20)].map(priority), [None; 4]);
    assert_eq!(pair.first(What::Data(0)).wire_bytes - pair.first(What::Data(19)).wire_bytes, 500);
}

#[test]
fn a_receiver_that_has_gone_resets_the_sender() {
    let mut pair = Pair::of(40).run_until(Time::from_us(150));
    pair.receiver.reset();
    let pair = pair.run();
    assert_eq!((pair.received, pair.sender.phase()), (None, ConnectionState::Aborted));
    assert!(!pair.times(What::Reset).is_empty());
}

#[test]
fn a_sender_that_gives_up_resets_the_receiver_once() {
    let mut pair = Pair::of(40).run_until(Time::from_us(150));
    pair.sender.abort();
    pair.poll();
    assert_eq!(pair.times(What::Reset), [150]);
    let pair = pair.run_until(Time::from_ms(100));
    assert_eq!((pair.received, pair.sender.phase()), (None, ConnectionState::Aborted));
}
