//! What a sender is, says and counts.

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
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

/// How the sender regards the network (names as in Linux and ns-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionState {
    /// All is well.
    Open,
    /// Duplicate ACKs have arrived, fewer than the threshold.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// A timeout has happened and what it lost is not yet acknowledged.
    Loss,
}

/// Something to put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transmit {
    /// The opening SYN, or a retry.
    Syn {
        /// It was sent before.
        retry: bool,
    },
    /// A bare acknowledgement: the end of the handshake, or of the connection.
    Ack,
    /// A data segment.
    Segment {
        /// Its index.
        seq: u32,
        /// It was sent before.
        retransmission: bool,
    },
    /// The connection is reset.
    Reset,
    /// One byte that only asks to be heard (pFabric).
    Probe,
}

/// What a connection has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub data_packets: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer, the SYN's included.
    pub timeouts: u32,
    /// Fast recoveries entered.
    pub fast_recoveries: u32,
    /// Duplicate ACKs received.
    pub duplicate_acks: u64,
    /// Reductions of the window that an ECN echo asked for.
    pub echo_reductions: u32,
    /// Segments that the receiver reported as duplicates (RFC 2883): retransmissions that were needless.
    pub duplicates_reported: u64,
    /// Recoveries taken back because all their retransmissions were needless.
    pub recoveries_undone: u32,
}
