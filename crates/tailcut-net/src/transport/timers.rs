//! The timers of a connection's ends, and the limits of a sender, as observers see them.

/// The purpose of a connection end's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// Opening the connection.
    Open,
    /// Repeating its SYN, or its SYN-ACK.
    Syn,
    /// Repeating what is not answered.
    Retransmission,
    /// Probing the tail of a flight, when all data has left.
    Probe,
    /// Probing a flight that the window holds back: new data leaves.
    WindowProbe,
    /// Taking what is late for lost.
    Reordering,
    /// Sending what pacing holds back.
    Pacing,
    /// Acknowledging what might have been acknowledged together with more.
    DelayedAck,
}

/// The limit that kept a sender from sending more after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLimit {
    /// The congestion window is full, and grows by what is acknowledged.
    SlowStart,
    /// The congestion window is full.
    CongestionWindow,
    /// The receiver's window has no room, that of the connection or, of a subflow, that of the
    /// whole flow; its congestion window has.
    ReceiveWindow,
}
