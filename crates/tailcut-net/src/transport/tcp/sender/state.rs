//! A sender's congestion state and counters.

/// A sender's congestion state (names as in Linux and ns-3).
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

/// Counters of a connection.
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
    /// Segments that the receiver reported as duplicates (RFC 2883): retransmissions that were
    /// needless.
    pub duplicates_reported: u64,
    /// Recoveries taken back because all their retransmissions were needless.
    pub recoveries_undone: u32,
    /// Timeouts taken back for the same reason.
    pub timeouts_undone: u32,
    /// ACKs discarded for an old timestamp (PAWS).
    pub paws_discarded: u64,
}
