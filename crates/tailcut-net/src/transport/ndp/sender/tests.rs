//! A sender, packet by packet.

use super::*;
use crate::transport::Transport;
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
        let rto = Some(Time::from_ms(5));
        let spec = NdpSpec { mss: Bytes(1_000), initial_window: 4, rto };
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
        let packet =
            Segment { seq, options: inline_number(number), wire_bytes: 78, flags, entropy: 0 };
        self.sender.on_packet(&self.spec, self.now, &packet, &OptionStore::default());
        self.sent()
    }

    fn acked(&mut self, next: u32, seq: u32) -> Vec<Transmit> {
        self.hear(Flags::ACK, next, seq)
    }

    fn cut(&mut self, next: u32, seq: u32) -> Vec<Transmit> {
        self.hear(Flags::ACK | Flags::TRIMMED, next, seq)
    }

    fn pull(&mut self, number: u32) -> Vec<Transmit> {
        self.hear(Flags::PULL, 0, number)
    }

    fn returned(&mut self, seq: u32) -> Vec<Transmit> {
        self.hear(Flags::CONGESTION_EXPERIENCED | Flags::ACK, seq, 0)
    }

    /// Returns the number of returned packets that a data packet reports.
    fn says(&self, seq: u32) -> Option<u32> {
        let transmit = Transmit::Segment { seq, retransmission: true };
        let sizes = WireSizes::new(&self.spec.segment_spec(), Bytes(38));
        OptionStore::default().number(self.sender.packet(&self.spec, &sizes, transmit).options)
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
fn what_was_cut_of_a_flow_shorter_than_its_window_waits_for_a_pull_as_well() {
    let mut script = Script::open(2);
    assert_eq!(script.cut(0, 1), []);
    assert_eq!(script.pull(1), [again(1)]);
}

#[test]
fn retransmits_trimmed_segments_before_new_data() {
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
    assert_eq!(script.sender.phase(), ConnectionState::SynSent);
    script.acked(3, 1);
    assert_eq!(
        (script.sender.phase(), script.sender.deadline()),
        (ConnectionState::Done, Time::NEVER)
    );
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
fn of_a_window_that_comes_back_one_packet_tells_the_receiver_of_the_others() {
    let mut script = Script::open(3);
    assert_eq!(script.returned(0), []);
    assert_eq!(script.says(0), Some(1));
    assert_eq!(script.returned(2), []);
    assert_eq!(script.returned(1), [again(0)]);
    assert_eq!(script.says(0), Some(2), "beside itself");
    // Its header arrives, and the receiver will pull all three.
    assert_eq!(script.cut(0, 0), []);
    assert_eq!(script.pull(3), [again(2), again(1), again(0)]);
    assert_eq!(script.sender.counters().timeouts, 0);
}

#[test]
fn a_packet_that_comes_back_again_and_again_is_sent_again_each_time() {
    let mut script = Script::open(1);
    for _ in 0..5 {
        assert_eq!(script.returned(0), [again(0)]);
        assert_eq!(script.says(0), None, "no other came back");
    }
}

#[test]
fn what_comes_back_waits_for_pulls_that_are_to_come() {
    let mut script = Script::open(10);
    for seq in 1..4 {
        assert_eq!(script.returned(seq), []);
    }
    // Six have not been sent, so that the receiver pulls once it has the first.
    assert_eq!(script.acked(1, 0), []);
    assert_eq!(script.pull(1), [again(1)]);
    assert_eq!(script.says(1), Some(3));
}

#[test]
fn what_comes_back_last_is_sent_when_all_others_are_answered_for() {
    let mut script = Script::open(4);
    assert_eq!(script.returned(3), []);
    assert_eq!((script.acked(1, 0), script.acked(2, 1)), (vec![], vec![]));
    assert_eq!(script.acked(3, 2), [again(3)]);
}

#[test]
fn a_header_of_what_has_arrived_since_says_nothing() {
    let mut script = Script::open(4);
    script.acked(1, 0);
    assert_eq!((script.returned(0), script.says(1)), (vec![], None));
}

#[test]
fn a_reset_ends_it() {
    let mut script = Script::open(10);
    assert_eq!(script.hear(Flags::RST, 0, 0), []);
    assert_eq!(script.sender.phase(), ConnectionState::Aborted);
    assert_eq!(script.pull(1), []);
}
