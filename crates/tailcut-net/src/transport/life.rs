//! The life of a connection's sending half, whatever its transport: opening, being established,
//! ending, and what it owes the network beside its data (RFC 9293 section 3.10).

use tailcut_engine::{Bytes, Time};

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// Not opened yet.
    Closed,
    /// A SYN is on its way.
    SynSent,
    /// Data may flow.
    Established,
    /// Every byte is acknowledged.
    Done,
    /// Reset by either side, or given up.
    Aborted,
}

/// Something to put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transmit {
    /// The opening SYN, or a retry.
    Syn {
        /// Whether it is a repetition.
        retry: bool,
    },
    /// A bare acknowledgement: the end of the handshake, or of the connection.
    Ack,
    /// A data segment.
    Segment {
        /// The index of the segment.
        seq: u32,
        /// Whether it is a retransmission.
        retransmission: bool,
    },
    /// The connection is reset.
    Reset,
    /// A byte that only probes for an answer (pFabric).
    Probe,
}

/// Flags of what a connection sends before other data, in order of urgency. Every transport has the
/// first three.
pub(crate) mod owed {
    pub const SYN: u8 = 1;
    pub const ACK: u8 = 2;
    pub const RESET: u8 = 4;
    /// The first outstanding segment again (NewReno).
    pub const RESEND: u8 = 8;
    /// One segment regardless of the window (SACK).
    pub const NEXT: u8 = 16;
    /// A byte that asks to be heard (pFabric).
    pub const PROBE: u8 = 32;
    /// Nothing more than the above, until the next ACK or timeout.
    pub const SILENCE: u8 = 64;
}

/// The meaning of a SYN-ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SynAck {
    /// The connection is established now.
    Opens,
    /// The connection is established already: our ACK was lost.
    Repeated,
    /// Nothing: it was not asked for, or the connection is over.
    Unwanted,
}

/// Phase, timer and debts of a connection's sending half.
#[derive(Debug, Clone)]
pub(crate) struct Lifecycle {
    phase: ConnectionState,
    owes: u8,
    /// SYNs sent.
    pub syn_tries: u32,
    /// The time at which the timer expires.
    pub deadline: Time,
}

impl Lifecycle {
    /// A connection that opens at `open_at`.
    pub fn opening_at(open_at: Time) -> Lifecycle {
        Lifecycle { phase: ConnectionState::Closed, owes: 0, syn_tries: 0, deadline: open_at }
    }

    #[inline]
    pub fn phase(&self) -> ConnectionState {
        self.phase
    }

    #[inline]
    pub fn is_established(&self) -> bool {
        self.phase == ConnectionState::Established
    }

    /// True once nothing more can happen on this half.
    #[inline]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, ConnectionState::Done | ConnectionState::Aborted)
    }

    /// The time to open has come.
    pub fn open(&mut self) {
        self.phase = ConnectionState::SynSent;
        self.owes |= owed::SYN;
    }

    /// The time to open has come, of a connection that its first data packet opens.
    pub fn open_established(&mut self) {
        self.phase = ConnectionState::Established;
    }

    /// The SYN-ACK has arrived.
    pub fn on_syn_ack(&mut self) -> SynAck {
        match self.phase {
            ConnectionState::SynSent => {
                self.phase = ConnectionState::Established;
                self.deadline = Time::NEVER;
                self.owes = owed::ACK;
                SynAck::Opens
            }
            ConnectionState::Established | ConnectionState::Done => {
                self.owes |= owed::ACK;
                SynAck::Repeated
            }
            ConnectionState::Aborted => {
                self.owes |= owed::RESET;
                SynAck::Unwanted
            }
            ConnectionState::Closed => SynAck::Unwanted,
        }
    }

    /// Whether an acknowledgement means anything; one of a connection given up is answered by a
    /// reset.
    #[inline]
    pub fn hears_acks(&mut self) -> bool {
        if self.phase == ConnectionState::Aborted {
            self.owes |= owed::RESET;
        }
        self.is_established()
    }

    /// Every byte is acknowledged.
    pub fn complete(&mut self) {
        self.phase = ConnectionState::Done;
        self.deadline = Time::NEVER;
    }

    /// Nothing has answered for too long.
    pub fn give_up(&mut self) {
        self.phase = ConnectionState::Aborted;
        self.deadline = Time::NEVER;
    }

    /// The receiver reset the connection.
    pub fn on_reset(&mut self) {
        self.end(0);
    }

    /// The application gives the connection up. A connection that is not yet established falls
    /// silent and answers a late SYN-ACK by a reset (RFC 9293 3.10.7.1).
    pub fn abort(&mut self) {
        self.end(if self.is_established() { owed::RESET } else { 0 });
    }

    fn end(&mut self, owes: u8) {
        if !self.is_finished() {
            self.phase = ConnectionState::Aborted;
        }
        self.owes = owes;
        self.deadline = Time::NEVER;
    }

    /// Whether nothing but debts may be sent.
    pub fn is_silent(&self) -> bool {
        self.owes & owed::SILENCE != 0
    }

    #[inline]
    pub fn has_output(&self) -> bool {
        self.owes != 0
    }

    pub fn set_pending(&mut self, what: u8) {
        self.owes |= what;
    }

    pub fn clear_pending(&mut self, what: u8) {
        self.owes &= !what;
    }

    /// Takes `what` off the debts; true if it was among them.
    #[inline]
    pub fn take_pending(&mut self, what: u8) -> bool {
        let owed = self.owes & what != 0;
        self.owes &= !what;
        owed
    }

    /// Pays the most urgent of the debts that every transport has.
    #[cold]
    pub fn poll_control(&mut self) -> Option<Transmit> {
        if self.take_pending(owed::SYN) {
            self.syn_tries += 1;
            Some(Transmit::Syn { retry: self.syn_tries > 1 })
        } else if self.take_pending(owed::ACK) {
            Some(Transmit::Ack)
        } else if self.take_pending(owed::RESET) {
            Some(Transmit::Reset)
        } else {
            None
        }
    }
}

/// Segments of `mss` that `size` bytes fill.
///
/// # Panics
/// When they are 2^32 or more.
pub(crate) fn segments_of(size: u64, mss: Bytes) -> u32 {
    u32::try_from(size.div_ceil(mss.0)).expect("a flow has fewer than 2^32 segments")
}
