//! The end of ns-3's receiver (`TcpSocketBase`, state LAST_ACK): two timers repeat its FIN
//! until it is acknowledged.

use tailcut_engine::Time;

use crate::transport::tcp::TcpSpec;

/// The receiver's FIN from its first sending to its acknowledgement.
#[derive(Debug, Clone)]
pub(super) struct LastAck {
    /// When the first SYN-ACK left.
    syn_ack_at: Time,
    /// The receiver's only round-trip sample: from the SYN-ACK to the first packet after it.
    round_trip: Option<Time>,
    /// When the retransmission timer sends the FIN again; never before the FIN has left.
    retransmission: Time,
    /// When the timer of the state sends it again, or gives up.
    last_ack: Time,
    /// Repetitions by the second timer that are left.
    tries: u8,
    /// FINs to be sent now.
    due: u8,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Receiving,
    /// The FIN has left, its acknowledgement has not come.
    Waiting,
    Over,
}

impl LastAck {
    /// `DataRetries` of ns-3.
    const TRIES: u8 = 6;
    /// `ClockGranularity` of ns-3.
    const GRANULARITY: Time = Time::from_ms(1);

    /// Starts at the first SYN-ACK.
    pub fn new(now: Time) -> LastAck {
        LastAck {
            syn_ack_at: now,
            round_trip: None,
            retransmission: Time::NEVER,
            last_ack: Time::NEVER,
            tries: LastAck::TRIES,
            due: 0,
            state: State::Receiving,
        }
    }

    /// Takes the round-trip sample from the first packet that follows the SYN.
    pub fn measure(&mut self, now: Time) {
        self.round_trip.get_or_insert(now - self.syn_ack_at);
    }

    /// Arms both timers: the FIN leaves. The variation of one sample is half of it (RFC 6298 2.2).
    pub fn on_fin_sent(&mut self, spec: &TcpSpec, now: Time) {
        let interval = self.interval();
        self.state = State::Waiting;
        self.retransmission = now + interval.max(spec.min_rto);
        self.last_ack = now + interval;
    }

    fn interval(&self) -> Time {
        let round_trip = self.round_trip.unwrap_or(Time::ZERO);
        round_trip + Time(4 * (round_trip.0 / 2)).max(LastAck::GRANULARITY)
    }

    /// Returns true from the FIN to the end of the connection.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// Returns true once the FIN has left.
    pub fn has_sent_fin(&self) -> bool {
        self.state != State::Receiving
    }

    /// Ends the connection.
    pub fn end(&mut self) {
        self.state = State::Over;
        self.retransmission = Time::NEVER;
        self.last_ack = Time::NEVER;
        self.due = 0;
    }

    /// The earlier of both timers.
    pub fn deadline(&self) -> Time {
        self.retransmission.min(self.last_ack)
    }

    /// Fires the timers that are due. The second ends the connection when its tries are used up.
    pub fn on_timer(&mut self, spec: &TcpSpec, now: Time) {
        if self.retransmission <= now {
            self.due += 1;
            self.retransmission = now + self.interval().max(spec.min_rto);
        }
        if self.last_ack <= now {
            if self.tries == 0 {
                let due = self.due;
                self.end();
                self.due = due;
                return;
            }
            self.tries -= 1;
            self.due += 1;
            self.last_ack = now + self.interval();
        }
    }

    /// Takes one of the FINs that are due; returns true if another one follows.
    pub fn take_fin(&mut self) -> bool {
        self.due -= 1;
        self.due > 0
    }

    /// Returns true if a FIN is due.
    pub fn owes_fin(&self) -> bool {
        self.due > 0
    }
}
