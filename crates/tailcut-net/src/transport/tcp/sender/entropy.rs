//! Source ports of a sender's packets where an entropy policy chooses them, and the feedback that
//! its acknowledgements give.
//!
//! TCP's receiver echoes no value. The sender remembers the value of each segment, and takes an ACK
//! for news of the segments that it is the first to acknowledge: marked where it carries an ECN
//! echo, unmarked otherwise. Nobody knows which sending of a repeated segment has arrived: it is
//! reported without a value. A retransmission timeout reports the first outstanding segment lost.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::Sender;
use super::reordering::split;
use crate::packet::SackBlocks;
use crate::transport::entropy::{EntropyState, Feedback};
use crate::transport::life::Transmit;

/// The policy of a connection, and what it has to remember for it.
#[derive(Debug, Clone)]
pub(super) struct PortChoice {
    policy: EntropyState,
    /// The connection's port; a value is combined with it by exclusive or.
    port: u16,
    /// The value of the last sending of each outstanding segment.
    values: VecDeque<u16>,
    /// The first of these segments.
    first: u32,
    /// The round ends when all before this segment is acknowledged.
    round_end: u32,
    /// Bytes acknowledged in this round, and those of them with an echo.
    delivered: u64,
    marked: u64,
}

impl PortChoice {
    fn choose(&mut self, now: Time, transmit: Transmit) -> u16 {
        let value = self.policy.next(now);
        if let Transmit::Segment { seq, .. } = transmit {
            let at = (seq - self.first) as usize;
            match self.values.get_mut(at) {
                Some(old) => *old = value,
                None => self.values.push_back(value),
            }
        }
        self.port ^ value
    }

    /// Takes the round-trip time of an ACK, and ends the round when it is over. `una` and `end` are
    /// the first outstanding segment and the next new one after the ACK.
    pub fn on_ack(
        &mut self,
        now: Time,
        una: u32,
        end: u32,
        delivered: u64,
        echo: bool,
        rtt: Option<Time>,
    ) {
        if let Some(rtt) = rtt {
            self.policy.note_rtt(now, rtt);
        }
        self.delivered += delivered;
        self.marked += if echo { delivered } else { 0 };
        if una >= self.round_end {
            self.policy.end_round(now, self.delivered, self.marked);
            (self.delivered, self.marked, self.round_end) = (0, 0, end);
        }
    }
}

impl Sender {
    /// Lets a policy choose the source port of each packet from now on. `port` is the connection's.
    pub(crate) fn choose_ports(&mut self, policy: EntropyState, port: u16) {
        self.enable_sampling();
        let (first, values) = (self.una, VecDeque::new());
        let ports =
            PortChoice { policy, port, values, first, round_end: first, delivered: 0, marked: 0 };
        if let Some(senses) = &mut self.senses {
            senses.ports = Some(Box::new(ports));
        }
    }

    fn ports(&mut self) -> Option<&mut PortChoice> {
        self.senses.as_mut()?.ports.as_deref_mut()
    }

    /// Returns the source port of a packet.
    #[cold]
    pub(super) fn choose_port(&mut self, now: Time, transmit: Transmit) -> u16 {
        self.ports().map_or(0, |ports| ports.choose(now, transmit))
    }

    /// Announces the first segment after a time with nothing in flight.
    pub(super) fn note_restart(&mut self, now: Time) {
        if let Some(ports) = self.ports() {
            ports.policy.restart_after_idle(now);
        }
    }

    /// Reports the values of the segments that an ACK is about to deliver.
    pub(super) fn note_arrived_values(
        &mut self,
        now: Time,
        ack: u32,
        blocks: &SackBlocks,
        echo: bool,
    ) {
        let Sender { senses: Some(senses), board, .. } = self else { return };
        let Some(ports) = &mut senses.ports else { return };
        let what = if echo { Feedback::Marked } else { Feedback::Good };
        let PortChoice { policy, values, first, .. } = &mut **ports;
        board.for_each_delivered(ack, &split(ack, blocks).1, |seq, _, resent| {
            let value = values.get((seq - *first) as usize).copied().filter(|_| !resent);
            policy.feedback(now, value, what);
        });
        let gone = (ack.saturating_sub(*first) as usize).min(values.len());
        values.drain(..gone);
        *first += gone as u32;
    }

    /// Reports the first outstanding segment lost.
    pub(super) fn note_lost_value(&mut self, now: Time) {
        let una = self.una;
        let Some(ports) = self.ports() else { return };
        let value = ports.values.get((una - ports.first) as usize).copied();
        ports.policy.feedback(now, value, Feedback::Lost);
    }

    /// Reports that the SYN has not been answered in time.
    #[cold]
    pub(super) fn note_handshake_timeout(&mut self, now: Time) {
        if let Some(ports) = self.ports() {
            ports.policy.on_handshake_timeout(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::OptionStore;
    use crate::transport::entropy::EntropySpec;
    use crate::transport::tcp::{TcpSpec, WireSizes};
    use tailcut_engine::RandomStream;

    const PORT: u16 = 4_711;

    /// An established sender of a hundred segments, with its parameters.
    struct Script {
        spec: TcpSpec,
        sender: Sender,
        now: Time,
    }

    impl Script {
        fn new(entropy: serde_json::Value) -> Script {
            let entropy: EntropySpec = serde_json::from_value(entropy).expect("it is a policy");
            let policy = entropy.state(RandomStream::new(1, 1, "entropy"));
            let spec = TcpSpec { entropy: Some(entropy), ..TcpSpec::default() };
            let mut sender = Sender::new(&spec, 146_000, Time::ZERO);
            sender.choose_ports(policy, PORT);
            let mut script = Script { spec, sender, now: Time::ZERO };
            script.sender.on_timer(&script.spec, script.now);
            assert_eq!(script.sent().len(), 1, "the SYN");
            script.now = Time::from_us(10);
            script.sender.on_syn_ack(&script.spec, script.now);
            script
        }

        /// The values of the packets that the sender sends now, but for bare ACKs.
        fn sent(&mut self) -> Vec<u16> {
            let sizes = WireSizes::new(&self.spec, Default::default());
            let mut options = OptionStore::default();
            let mut values = vec![];
            while let Some(transmit) = self.sender.poll_transmit(&self.spec, self.now) {
                let packet =
                    self.sender.packet(&self.spec, &sizes, self.now, transmit, None, &mut options);
                if transmit != Transmit::Ack {
                    values.push(packet.entropy ^ PORT);
                }
            }
            values
        }

        fn ack(&mut self, ack: u32, sacked: &[(u32, u32)], echo: bool) -> Vec<u16> {
            self.now += Time::from_us(10);
            let mut blocks = SackBlocks::default();
            sacked.iter().for_each(|&(start, end)| blocks.push(start, end));
            self.sender.on_ack(&self.spec, self.now, ack, &blocks, echo);
            self.sent()
        }
    }

    #[test]
    fn recycles_the_values_of_segments_that_an_ack_is_the_first_to_report_unmarked() {
        let mut script = Script::new(serde_json::json!({ "kind": "reps" }));
        let first = script.sent();
        assert_eq!(first.len(), 8, "the initial window");
        let grown = script.ack(1, &[], false);
        assert_eq!((grown.len(), grown[0]), (2, first[0]));
        let marked = script.ack(2, &[], true);
        assert!(marked.iter().chain(&grown[1..]).all(|value| !first.contains(value)));
        assert_eq!(script.ack(2, &[(4, 5)], false), [first[4]], "one by limited transmit");
        assert_eq!(script.ack(2, &[(4, 6)], false), [first[5]]);
        let repaired = script.ack(2, &[(4, 7)], false);
        assert_eq!(repaired, [first[6]], "the third duplicate sends segment 2 again");
        assert!(script.ack(7, &[], false).is_empty(), "the window was halved");
        assert_eq!(script.ack(12, &[], false)[0], first[3], "segment 2 was sent twice, 3 once");
    }

    #[test]
    fn a_timeout_reports_the_first_outstanding_segment_lost() {
        let mut script = Script::new(serde_json::json!({ "kind": "plb" }));
        let value = script.sent()[0];
        assert_eq!(script.ack(1, &[], false), [value; 2]);
        script.now = script.sender.deadline();
        script.sender.on_timer(&script.spec, script.now);
        let repeated = script.sent();
        assert!(repeated.len() == 1 && repeated[0] != value, "{repeated:?}");
    }

    #[test]
    fn a_round_ends_when_all_that_was_sent_at_its_beginning_is_acknowledged() {
        let mut script = Script::new(serde_json::json!({ "kind": "plb", "rehash_rounds": 2 }));
        let value = script.sent()[0];
        let marked = |script: &mut Script, acks: std::ops::RangeInclusive<u32>| -> Vec<u16> {
            acks.flat_map(|ack| script.ack(ack, &[], true)).collect()
        };
        // The first round ends with the first ACK; the second with segments 1 to 7, sent before it.
        let second = marked(&mut script, 1..=7);
        assert!(second.iter().all(|kept| *kept == value));
        let third = marked(&mut script, 8..=8);
        assert!(!third.is_empty() && third.iter().all(|drawn| *drawn != value));
    }

    #[test]
    fn a_syn_that_is_sent_again_has_another_value_under_plb() {
        let entropy: EntropySpec =
            serde_json::from_value(serde_json::json!({ "kind": "plb" })).expect("it is a policy");
        let policy = entropy.state(RandomStream::new(1, 1, "entropy"));
        let spec = TcpSpec { entropy: Some(entropy), ..TcpSpec::default() };
        let mut sender = Sender::new(&spec, 1_460, Time::ZERO);
        sender.choose_ports(policy, PORT);
        let mut script = Script { spec, sender, now: Time::ZERO };
        let mut syn = || {
            script.sender.on_timer(&script.spec, script.now);
            let sent = script.sent();
            script.now = script.sender.deadline();
            sent[0]
        };
        let (first, second) = (syn(), syn());
        assert_ne!(first, second);
    }
}
