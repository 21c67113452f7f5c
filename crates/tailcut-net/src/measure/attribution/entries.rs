//! What is known of flows, and of the ends of connections.

use tailcut_engine::Time;

use super::chains::Moment;
use super::parts::Part;
use crate::measure::ConnectionEnd;
use crate::transport::Timer;

/// What is known of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowBook {
    pub id: u64,
    pub start: u64,
    /// The moment since which it waits to be asked again.
    pub asked: Moment,
}

impl FlowBook {
    pub const NEW: FlowBook = FlowBook { id: 0, start: 0, asked: Moment::NONE };
}

/// What an end of a connection waits for: a cache line of its own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Armed {
    pub deadline: Time,
    pub timer: Timer,
    /// What waiting for a window counts as, by what it stopped for last.
    pub window: Part,
    /// The moment since which it does, or waits for nothing.
    pub since: Moment,
    /// Where the connection is orderly, the last packet that it has sent; it may have arrived.
    pub last: Option<u32>,
}

/// What is known of a connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionBook {
    pub timers: [Armed; 2],
    /// The moment since which its receiver waits for its turn.
    pub pull: Moment,
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
        ConnectionBook { timers: [idle; 2], pull: Moment::NONE }
    };

    /// What its sender's waiting for a window counts as.
    #[inline]
    pub fn window(&self) -> Part {
        self.timers[ConnectionEnd::Sender as usize].window
    }
}
