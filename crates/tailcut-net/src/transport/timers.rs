//! What the ends of a connection wait for, and what a sender has stopped for: what they say to whoever wants to know.

/// What an end of a connection waits for by its clock.
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

/// What a sender has stopped for: why nothing more left when it had handled an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLimit {
    /// Its congestion window has no room, and grows by what is acknowledged.
    SlowStart,
    /// Its congestion window has no room.
    CongestionWindow,
    /// The receiver's window has no room, that of the connection or, of a subflow, that of the whole flow; its congestion window has.
    ReceiveWindow,
}
