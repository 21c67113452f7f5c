//! State of flows and of the ends of connections.

use tailcut_engine::Time;

use super::chains::Moment;
use super::parts::Part;
use crate::measure::ConnectionEnd;
use crate::transport::Timer;

/// State of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowBook {
    pub id: u64,
    pub start: u64,
    /// The moment at which its policy timer was armed.
    pub asked: Moment,
}

impl FlowBook {
    pub const NEW: FlowBook = FlowBook { id: 0, start: 0, asked: Moment::NONE };
}

/// The timer of one end of a connection, in a cache line of its own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Armed {
    pub deadline: Time,
    pub timer: Timer,
    /// The part that waiting for a window counts as, by the limit that held the sender back last.
    pub window: Part,
    /// The moment at which the timer was armed.
    pub since: Moment,
    /// The last packet that this end sent, `None` unless the connection is orderly. The packet may
    /// have arrived.
    pub last: Option<u32>,
}

/// State of a connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionBook {
    pub timers: [Armed; 2],
    /// The moment since which its receiver waits for its turn to pull.
    pub pull: Moment,
    /// The moment since which its sender waits for its turn at the interface.
    pub turn: Moment,
}

impl ConnectionBook {
    pub const NEW: ConnectionBook = {
        let idle = Armed {
            deadline: Time::NEVER,
            timer: Timer::Open,
            window: Part::SlowStart,
            since: Moment::NONE,
            last: None,
        };
        ConnectionBook { timers: [idle; 2], pull: Moment::NONE, turn: Moment::NONE }
    };

    /// Returns the part that the sender's waiting for a window counts as.
    #[inline]
    pub fn window(&self) -> Part {
        self.timers[ConnectionEnd::Sender as usize].window
    }
}
