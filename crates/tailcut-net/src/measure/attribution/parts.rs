//! The parts that a completion time is split into.

use tailcut_engine::Time;

/// Writes the parts, their columns and what they mean.
macro_rules! parts {
    ($($(#[doc = $doc:literal])* $name:ident = $column:literal,)*) => {
        /// What a flow spent time on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Part {
            $($(#[doc = $doc])* $name,)*
        }

        impl Part {
            /// All of them.
            pub const ALL: &'static [Part] = &[$(Part::$name,)*];
            /// Their columns in the flow table, in the same order.
            pub const COLUMNS: &'static [&'static str] = &[$($column,)*];
        }
    };
}

parts! {
    /// On the wire, bit after bit: in the handshake and on the last path; and, wherever a packet was held up by one that its
    /// connection sent before, that one.
    Transmission = "part_transmission_ns",
    /// Along the wires, in the handshake and on the last path.
    Propagation = "part_propagation_ns",
    /// Transmission and propagation of the round trips before: the congestion window had no room, and was below its threshold.
    SlowStart = "part_window_slow_start_ns",
    /// The same where it was not: in congestion avoidance, in recovery, and of transports that know no slow start.
    CongestionWindow = "part_window_congestion_ns",
    /// The same where only the receiver's window had no room.
    ReceiveWindow = "part_window_receiver_ns",
    /// The sender's pacing held a segment back.
    Pacing = "part_pacing_ns",
    /// The receiver's turn to ask for more had not come (NDP).
    Pull = "part_pull_ns",
    /// An acknowledgement waited for company.
    DelayedAck = "part_delayed_ack_ns",
    /// In the interface of a host, behind other connections of the flow.
    InterfaceOwn = "part_interface_own_ns",
    /// In the interface of a host, behind other flows.
    InterfaceOthers = "part_interface_others_ns",
    /// In a queue of a switch before a link of the second tier, upwards, behind other connections of the flow.
    Up2Own = "part_queue_up2_own_ns",
    /// The same behind other flows.
    Up2Others = "part_queue_up2_others_ns",
    /// Before a link of the third tier or one above, upwards, behind other connections of the flow.
    Up3Own = "part_queue_up3_own_ns",
    /// The same behind other flows.
    Up3Others = "part_queue_up3_others_ns",
    /// Before a link of the third tier or one above, downwards, behind other connections of the flow.
    Down3Own = "part_queue_down3_own_ns",
    /// The same behind other flows.
    Down3Others = "part_queue_down3_others_ns",
    /// Before a link of the second tier, downwards, behind other connections of the flow.
    Down2Own = "part_queue_down2_own_ns",
    /// The same behind other flows.
    Down2Others = "part_queue_down2_others_ns",
    /// Before the link to a host, behind other connections of the flow.
    Down1Own = "part_queue_down1_own_ns",
    /// The same behind other flows.
    Down1Others = "part_queue_down1_others_ns",
    /// Before a link that was paused.
    Pause = "part_pause_ns",
    /// Transmission and propagation of round trips after which something was sent again.
    Recovery = "part_recovery_ns",
    /// The sender waited for what might only have been late.
    Reordering = "part_reordering_ns",
    /// The sender waited before it probed the tail of a flight.
    Probe = "part_probe_ns",
    /// A retransmission timer ran.
    Timeout = "part_timeout_ns",
    /// The timer of a SYN ran, or that of a SYN-ACK.
    SynTimeout = "part_syn_timeout_ns",
    /// The copy that won was opened later than the first.
    CopyDelay = "part_copy_delay_ns",
}

/// How many parts there are.
pub const PARTS: usize = Part::ALL.len();

/// Time spent on each part, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTimes(pub(super) [u64; PARTS]);

impl PartTimes {
    pub(super) const NONE: PartTimes = PartTimes([0; PARTS]);

    /// The time spent on one of them.
    pub fn of(&self, part: Part) -> Time {
        Time(self.0[part as usize])
    }

    /// All together: the completion time.
    pub fn total(&self) -> Time {
        Time(self.0.iter().sum())
    }

    /// Each in whole nanoseconds. They add up to the total in whole nanoseconds: what is rounded is where a part ends if they follow
    /// each other, so that each is less than a nanosecond off.
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
    fn nanoseconds_add_up_whatever_is_rounded() {
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
