//! The parts of a completion time.

use tailcut_engine::Time;

/// Writes the parts and their columns in the flow table.
macro_rules! parts {
    ($($(#[doc = $doc:literal])* $name:ident = $column:literal,)*) => {
        /// A cause on which a flow spends time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Part {
            $($(#[doc = $doc])* $name,)*
        }

        impl Part {
            /// All parts.
            pub const ALL: &'static [Part] = &[$(Part::$name,)*];
            /// Columns of the parts in the flow table, in the same order.
            pub const COLUMNS: &'static [&'static str] = &[$($column,)*];
        }
    };
}

parts! {
    /// Transmission, in the handshake and on the last path. Includes the transmission of earlier
    /// packets of the same connection that held a packet up.
    Transmission = "part_transmission_ns",
    /// Propagation, in the handshake and on the last path.
    Propagation = "part_propagation_ns",
    /// Transmission and propagation of earlier round trips, where the congestion window was full
    /// and below its threshold.
    SlowStart = "part_window_slow_start_ns",
    /// Transmission and propagation of earlier round trips, where the congestion window was full
    /// otherwise: in congestion avoidance, in recovery, and with transports without slow start.
    CongestionWindow = "part_window_congestion_ns",
    /// Transmission and propagation of earlier round trips, where only the receiver's window was
    /// full.
    ReceiveWindow = "part_window_receiver_ns",
    /// Waiting for the sender's pacing.
    Pacing = "part_pacing_ns",
    /// Waiting for the receiver's turn to pull (NDP).
    Pull = "part_pull_ns",
    /// Waiting of a delayed acknowledgement.
    DelayedAck = "part_delayed_ack_ns",
    /// Waiting in the interface of a host behind other connections of the flow.
    InterfaceOwn = "part_interface_own_ns",
    /// Waiting in the interface of a host behind other flows.
    InterfaceOthers = "part_interface_others_ns",
    /// Waiting before a link of the second tier, upwards, behind other connections of the flow.
    Up2Own = "part_queue_up2_own_ns",
    /// Waiting before a link of the second tier, upwards, behind other flows.
    Up2Others = "part_queue_up2_others_ns",
    /// Waiting before a link of the third tier or above, upwards, behind other connections of the
    /// flow.
    Up3Own = "part_queue_up3_own_ns",
    /// Waiting before a link of the third tier or above, upwards, behind other flows.
    Up3Others = "part_queue_up3_others_ns",
    /// Waiting before a link of the third tier or above, downwards, behind other connections of the
    /// flow.
    Down3Own = "part_queue_down3_own_ns",
    /// Waiting before a link of the third tier or above, downwards, behind other flows.
    Down3Others = "part_queue_down3_others_ns",
    /// Waiting before a link of the second tier, downwards, behind other connections of the flow.
    Down2Own = "part_queue_down2_own_ns",
    /// Waiting before a link of the second tier, downwards, behind other flows.
    Down2Others = "part_queue_down2_others_ns",
    /// Waiting before the link to a host, behind other connections of the flow.
    Down1Own = "part_queue_down1_own_ns",
    /// Waiting before the link to a host, behind other flows.
    Down1Others = "part_queue_down1_others_ns",
    /// Waiting before a paused link.
    Pause = "part_pause_ns",
    /// Transmission and propagation of round trips after which a segment was retransmitted.
    Recovery = "part_recovery_ns",
    /// Waiting of the sender for a segment that might only have been reordered.
    Reordering = "part_reordering_ns",
    /// Waiting of the sender before it probed the tail of a flight.
    Probe = "part_probe_ns",
    /// Waiting for a retransmission timeout.
    Timeout = "part_timeout_ns",
    /// Waiting for the timeout of a SYN or a SYN-ACK.
    SynTimeout = "part_syn_timeout_ns",
    /// Delay until the copy that won was opened.
    CopyDelay = "part_copy_delay_ns",
}

/// Number of parts.
pub const PARTS: usize = Part::ALL.len();

/// Time spent on each part, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTimes(pub(super) [u64; PARTS]);

impl PartTimes {
    pub(super) const NONE: PartTimes = PartTimes([0; PARTS]);

    /// Returns the time spent on `part`.
    pub fn of(&self, part: Part) -> Time {
        Time(self.0[part as usize])
    }

    /// Returns the sum of all parts: the completion time.
    pub fn total(&self) -> Time {
        Time(self.0.iter().sum())
    }

    /// Returns each part in whole nanoseconds. The values add up to the total in whole nanoseconds:
    /// the times at which parts would end in sequence are rounded, so that each value is less than
    /// a nanosecond off.
    pub fn in_ns(&self) -> [u64; PARTS] {
        let (mut until, mut before) = (Time::ZERO, 0);
        self.0.map(|part| {
            until += Time(part);
            let now = until.as_ns();
            now - std::mem::replace(&mut before, now)
        })
    }

    #[inline]
    pub(super) fn add(&mut self, part: Part, time: u64) {
        self.0[part as usize] += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_nanoseconds_add_up_to_the_total() {
        let mut parts = PartTimes::NONE;
        for (index, part) in Part::ALL.iter().enumerate() {
            parts.add(*part, 999 + 501 * index as u64);
        }
        let ns = parts.in_ns();
        assert_eq!(ns.iter().sum::<u64>(), parts.total().as_ns());
        for (part, ns) in Part::ALL.iter().zip(ns) {
            assert!(ns.abs_diff(parts.of(*part).as_ns()) <= 1);
        }
    }

    #[test]
    fn every_part_has_a_column_of_its_own() {
        let columns: std::collections::BTreeSet<_> = Part::COLUMNS.iter().collect();
        assert_eq!((columns.len(), Part::ALL.len()), (PARTS, PARTS));
    }
}
