//! A sender on a stage: scripts feed it acknowledgements and let time pass, and see what it sends.

use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::Amount;
use tailcut_net::packet::SackBlocks;
use tailcut_net::transport::Transmit;
use tailcut_net::transport::tcp::{Recovery, Sender, TcpSpec};

pub const MSS: u64 = 1_000;
/// What the handshake takes.
pub const RTT: Time = Time::from_ms(1);
/// More segments than any script sends.
pub const ENDLESS: u64 = 1_000;

/// NewReno with segments of `MSS` and an initial window of that many.
pub fn newreno(initial_window: u32) -> TcpSpec {
    TcpSpec {
        mss: Bytes(MSS),
        initial_window: Amount::Packets(initial_window),
        receive_window: Bytes(1_000 * MSS),
        recovery: Recovery::Newreno,
        ..TcpSpec::default()
    }
}

/// The same with selective acknowledgements.
pub fn sack(initial_window: u32) -> TcpSpec {
    TcpSpec { recovery: Recovery::SackPrr, ..newreno(initial_window) }
}

/// A segment sent for the first time.
pub fn new(seq: u32) -> Transmit {
    Transmit::Segment { seq, retransmission: false }
}

/// Segments sent for the first time.
pub fn news(segments: std::ops::Range<u32>) -> Vec<Transmit> {
    segments.map(new).collect()
}

/// A segment sent again.
pub fn again(seq: u32) -> Transmit {
    Transmit::Segment { seq, retransmission: true }
}

pub struct Script {
    pub spec: TcpSpec,
    pub sender: Sender,
    pub now: Time,
}

impl Script {
    /// The SYN has just left.
    pub fn opening(spec: TcpSpec, segments: u64) -> Script {
        let sender = Sender::new(&spec, segments * spec.mss.0, Time::ZERO);
        let mut script = Script { spec, sender, now: Time::ZERO };
        assert_eq!(script.expire(), [Transmit::Syn { retry: false }]);
        script
    }

    /// The handshake is over and the initial window has just left.
    pub fn established(spec: TcpSpec, segments: u64) -> Script {
        let mut script = Script::opening(spec, segments);
        script.pass(RTT);
        script.syn_ack();
        script
    }

    /// Fast recovery has just begun: of an initial window, the first segment is lost.
    pub fn recovering(initial_window: u32) -> Script {
        let mut script = Script::established(newreno(initial_window), ENDLESS);
        (0..3).for_each(|_| drop(script.ack(0)));
        script
    }

    /// Everything of an initial window is lost and the timer has just expired.
    pub fn timed_out(spec: TcpSpec) -> Script {
        let mut script = Script::established(spec, ENDLESS);
        script.expire();
        script
    }

    /// The SYN-ACK arrives.
    pub fn syn_ack(&mut self) -> Vec<Transmit> {
        self.sender.on_syn_ack(&self.spec, self.now);
        self.sent()
    }

    /// An acknowledgement of every segment below `ack` arrives.
    pub fn ack(&mut self, ack: u32) -> Vec<Transmit> {
        self.sack(ack, &[])
    }

    /// The same, with blocks.
    pub fn sack(&mut self, ack: u32, ranges: &[(u32, u32)]) -> Vec<Transmit> {
        self.hear(ack, ranges, false)
    }

    /// An acknowledgement with an ECN echo.
    pub fn echo(&mut self, ack: u32) -> Vec<Transmit> {
        self.hear(ack, &[], true)
    }

    /// An acknowledgement with whatever it may carry.
    pub fn hear(&mut self, ack: u32, ranges: &[(u32, u32)], echo: bool) -> Vec<Transmit> {
        let mut blocks = SackBlocks::default();
        ranges.iter().for_each(|&(start, end)| blocks.push(start, end));
        self.sender.on_ack(&self.spec, self.now, ack, &blocks, echo);
        self.sent()
    }

    /// Time passes; no timer expires.
    pub fn pass(&mut self, time: Time) {
        self.now += time;
        assert!(self.now < self.sender.deadline(), "the timer would have expired");
    }

    /// Time passes until the timer expires.
    pub fn expire(&mut self) -> Vec<Transmit> {
        self.now = self.sender.deadline();
        assert!(self.now < Time::NEVER, "no timer runs");
        self.sender.on_timer(&self.spec, self.now);
        self.sent()
    }

    /// Whatever the sender has to send.
    pub fn sent(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.sender.poll_transmit(&self.spec, self.now)).collect()
    }

    /// How long until the timer expires.
    pub fn timer(&self) -> Time {
        self.sender.deadline() - self.now
    }

    /// The congestion window in segments.
    pub fn window(&self) -> u64 {
        assert_eq!(self.sender.cwnd() % MSS, 0, "whole segments");
        self.sender.cwnd() / MSS
    }

    /// The slow-start threshold in segments.
    pub fn threshold(&self) -> u64 {
        self.sender.ssthresh() / MSS
    }
}
