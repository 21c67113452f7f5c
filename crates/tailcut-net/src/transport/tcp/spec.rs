//! The parameters of TCP. Several decide results and stay hidden elsewhere;
//! here all of them are plan fields with stated defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::congestion::CongestionSpec;
use super::deviations::Imitation;
use super::hosts::{HostDefaults, Written};
use super::reordering::ReorderingSpec;
use crate::amount::{Amount, Limit};
use crate::transport::entropy::EntropySpec;

/// Parameters of TCP.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, from = "Written")]
#[schemars(!from)]
pub struct TcpSpec {
    /// Source of the other parameters' defaults.
    pub hosts: HostDefaults,
    /// Payload bytes of a full segment.
    pub mss: Bytes,
    /// Congestion window after the handshake (RepFlow: "12 KB" in V-B, 12 packets in IV).
    pub initial_window: Amount,
    /// Initial slow-start threshold; RFC 5681 wants it arbitrarily high.
    pub initial_ssthresh: Limit,
    /// Receive window. Bounds what a connection may have in flight (RepFlow's model: M = 64 KB);
    /// until the first acknowledgement at most 65,535 bytes of it, since the window of a SYN-ACK is
    /// not scaled.
    pub receive_window: Bytes,
    /// Duplicate ACKs that trigger a fast retransmit (RFC 5681).
    pub dupack_threshold: u32,
    /// Send a new segment on each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Amount that a fast retransmit under `recovery = "sack-prr"` halves, or reduces as
    /// `congestion` says.
    pub reduction_base: ReductionBase,
    /// By how much an acknowledgement opens the window under `recovery = "sack-prr"`.
    pub window_growth: WindowGrowth,
    /// Method that tells reordering from loss; needs `recovery = "sack-prr"`.
    pub reordering: ReorderingSpec,
    /// Congestion control.
    pub congestion: CongestionSpec,
    /// Ask queues to mark instead of drop, and react to marks as to losses (RFC 3168). DCTCP always
    /// does, in its own way.
    pub ecn: bool,
    /// Lower bound of the retransmission timeout. RFC 6298 says 1 s, Linux 200 ms, RepNet's testbed
    /// 10 ms.
    pub min_rto: Time,
    /// Upper bound of the retransmission timeout under back-off (RFC 6298).
    pub max_rto: Time,
    /// Timeout of the first SYN, doubled on each retry. RFC 6298 says 1 s, RepNet's testbed 3 s.
    pub initial_rto: Time,
    /// Timeout of the data until a data segment has given a round-trip sample, doubled on each
    /// retry. The handshake gives no sample then (MMPTCP's authors: 1.5 s). By default it gives one,
    /// as RFC 6298 wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_data_rto: Option<Time>,
    /// Clock granularity G of RFC 6298: RTO = SRTT + max(G, 4 RTTVAR).
    pub clock_granularity: Time,
    /// Substitute for 4 RTTVAR.
    pub rto_variation: RtoVariation,
    /// Give up after this many retransmissions of one SYN.
    pub syn_retries: u32,
    /// Acknowledge every n-th in-order segment at once (1: every segment; 2: RFC 1122 delayed ACK).
    pub ack_every: u32,
    /// Longest delay of an ACK when `ack_every` exceeds 1.
    pub delayed_ack_timeout: Time,
    /// Segments that are acknowledged at once before ACKs are delayed, at first and after one that
    /// had arrived before (Linux: 16).
    pub quick_acks: u32,
    /// Carry the timestamp option (RFC 7323): 12 bytes in every segment.
    pub timestamps: bool,
    /// A tick of the timestamps' clock (RFC 7323: 1 ms to 1 s; Linux: 1 ms, and 1 us by the route
    /// feature `tcp_usec_ts`). Delays one way are told in whole ticks.
    pub timestamp_tick: Time,
    /// Discard data segments whose timestamp is older than the newest one that came in order (RFC
    /// 7323 section 5), and answer them by an ACK; needs `timestamps`.
    #[serde(skip_serializing_if = "Paws::is_off")]
    pub paws: Paws,
    /// Announce the MSS in the SYN: 4 bytes (RFC 9293 requires it; ns-3 leaves it out).
    pub mss_option: bool,
    /// The end of a finished connection.
    pub close: Close,
    /// Departures from the RFCs, to compare with another simulator.
    pub imitate: Imitation,
    /// Policy by which the sender varies the source port of its packets, and so their path under
    /// ECMP. By default all packets have the connection's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<EntropySpec>,
}

/// Loss recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast retransmit and NewReno fast recovery (RFC 5681, 6582).
    Newreno,
    /// SACK scoreboard (RFC 6675) with proportional rate reduction (RFC 9937).
    SackPrr,
}

/// The amount that a fast retransmit under SACK reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReductionBase {
    /// The outstanding data, without limited transmit (RFC 5681 section 3.2).
    ///
    /// As in RFC 6675 step 4.2.
    FlightSize,
    /// The estimate of data in flight, without what arrived beyond the gap.
    ///
    /// As ns-3, and as Linux once moderated the window when reordering ended: the more a path
    /// reorders, the more a reduction costs.
    Pipe,
    /// The congestion window, as in Linux.
    ///
    /// At a timeout, too, unless that interrupts a recovery. The window grows only while it limits
    /// the sender: in slow start to at most twice the outstanding data, later by a segment. A flow
    /// that the receive window limits may thus keep its whole congestion window through a loss.
    Window,
}

/// By how much an acknowledgement opens the window under SACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowth {
    /// As the congestion control's specification counts.
    ///
    /// NewReno grows by a segment per ACK of new data, however much it covers (RFC 5681 section
    /// 3.1); CUBIC by the bytes covered (RFC 9438).
    Acks,
    /// By the data that an ACK is the first to report, as in Linux.
    ///
    /// Selective reports count, too; in slow start the window grows to the threshold at most. Once
    /// `dupack_threshold` segments have overtaken a segment, an ACK that only reports data beyond a
    /// gap opens the window as well. The two differ where ACKs overtake each other, cover several
    /// segments or are lost.
    Delivered,
}

/// Protection against wrapped sequence numbers: which timestamps are too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Paws {
    /// None: segments are taken whatever their timestamp.
    #[default]
    Off,
    /// Any older timestamp (RFC 7323 section 5.3).
    #[serde(rename = "rfc-7323")]
    Rfc7323,
    /// Timestamps older by more than a tick, as in Linux (`TCP_PAWS_WINDOW`).
    Linux,
}

impl Paws {
    /// Returns whether no segment is discarded.
    #[inline]
    pub fn is_off(&self) -> bool {
        *self == Paws::Off
    }

    /// Returns whether a segment with timestamp `value` is discarded after one with `recent`. The
    /// clock wraps around (RFC 7323 section 5.2).
    #[inline]
    pub(super) fn discards(self, value: u32, recent: u32) -> bool {
        let age = recent.wrapping_sub(value) as i32;
        match self {
            Paws::Off => false,
            Paws::Rfc7323 => age > 0,
            Paws::Linux => age > 1,
        }
    }
}

/// By how much round trips vary, in the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RtoVariation {
    /// Four mean deviations (RFC 6298 section 2).
    #[serde(rename = "rfc-6298")]
    Rfc6298,
    /// Four mean deviations, the largest of a window of data, as in Linux.
    ///
    /// Smaller deviations take over by a quarter per window, a round trip that shortens counts an
    /// eighth, and `clock_granularity` bounds each.
    #[serde(rename = "linux")]
    Linux,
}

/// The end of a finished connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Close {
    /// FIN on the last data segment, answered by a FIN on its ACK and one more ACK.
    Fin,
    /// Nothing is sent after the last ACK.
    None,
}

impl Default for TcpSpec {
    fn default() -> Self {
        TcpSpec {
            hosts: HostDefaults::Plain,
            mss: Bytes(1460),
            initial_window: Amount::Bytes(12_000),
            initial_ssthresh: Limit::Unlimited,
            receive_window: Bytes(64_000),
            dupack_threshold: 3,
            limited_transmit: true,
            recovery: Recovery::SackPrr,
            reduction_base: ReductionBase::FlightSize,
            window_growth: WindowGrowth::Acks,
            reordering: ReorderingSpec::default(),
            congestion: CongestionSpec::default(),
            ecn: false,
            min_rto: Time::from_ms(10),
            max_rto: Time::from_ms(60_000),
            initial_rto: Time::from_ms(10),
            first_data_rto: None,
            clock_granularity: Time::from_ms(1),
            rto_variation: RtoVariation::Rfc6298,
            syn_retries: 20,
            ack_every: 1,
            delayed_ack_timeout: Time::from_ms(40),
            quick_acks: 0,
            timestamps: false,
            timestamp_tick: Time::from_ms(1),
            paws: Paws::Off,
            mss_option: true,
            close: Close::Fin,
            imitate: Imitation::NONE,
            entropy: None,
        }
    }
}

impl TcpSpec {
    /// Whether connections negotiate ECN.
    #[inline]
    pub fn uses_ecn(&self) -> bool {
        self.ecn || self.echoes_marks()
    }

    /// Whether reductions go by the congestion window, which then grows only while it holds the
    /// sender back.
    #[inline]
    pub(super) fn reduces_window(&self) -> bool {
        self.reduction_base == ReductionBase::Window && self.recovery == Recovery::SackPrr
    }

    /// Whether windows grow by what is delivered, whichever ACK tells of it.
    #[inline]
    pub(crate) fn grows_by_delivery(&self) -> bool {
        self.window_growth == WindowGrowth::Delivered && self.recovery == Recovery::SackPrr
    }

    /// Whether recovery goes by ns-3's guesses of what has arrived.
    #[inline]
    pub(crate) fn guesses(&self) -> bool {
        self.recovery == Recovery::Newreno && self.imitate.guessed_scoreboard
    }

    /// Whether the receiver reports duplicates (D-SACK, RFC 2883).
    #[inline]
    pub fn reports_duplicates(&self) -> bool {
        !self.reordering.is_none()
    }

    /// Whether the receiver echoes the mark of each segment, as DCTCP wants it, or any mark until
    /// the sender has reduced its window.
    pub fn echoes_marks(&self) -> bool {
        self.congestion.echoes_marks()
    }
}

#[cfg(test)]
mod tests {
    use super::Paws;
    use proptest::prelude::*;

    proptest! {
        /// The clock counts in 32 bits: of two timestamps within half of its range the later is the
        /// newer, wherever the clock begins anew between them.
        #[test]
        fn age_is_told_across_the_clocks_wrap(recent in any::<u32>(), ticks in 0..=0x7fff_ffffu32) {
            let (older, newer) = (recent.wrapping_sub(ticks), recent.wrapping_add(ticks));
            prop_assert_eq!(Paws::Rfc7323.discards(older, recent), ticks > 0);
            prop_assert_eq!(Paws::Linux.discards(older, recent), ticks > 1);
            prop_assert!(!Paws::Off.discards(older, recent));
            for paws in [Paws::Off, Paws::Rfc7323, Paws::Linux] {
                prop_assert!(!paws.discards(newer, recent));
            }
        }
    }
}
