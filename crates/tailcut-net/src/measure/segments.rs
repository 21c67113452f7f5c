//! Observation of segments: duplicate ACKs, reordering, needless retransmissions.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{Observer, PacketView};
use crate::packet::Flags;
use crate::topology::HostId;

/// Number of occurrences of each value.
pub type Histogram = BTreeMap<u64, u64>;

/// Observer of every data segment and its acknowledgement.
#[derive(Debug, Clone, Default)]
pub struct SegmentObserver {
    connections: BTreeMap<(u64, u8), ConnectionSegments>,
    /// Segments by the number of duplicate ACKs that their sender received while they were the
    /// first unacknowledged one (RPS, INFOCOM 2013, figure 4b).
    pub duplicate_acks: Histogram,
    /// First transmissions by reordering extent: the distance in segments to the highest that had
    /// already arrived, 0 in order (after RFC 4737, section 4.2.1, in segments instead of packets).
    pub reordering: Histogram,
    /// Data segments that arrived although the receiver had their bytes. The only key is 1.
    pub duplicates: Histogram,
}

/// Worst values of one flow, over all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worst {
    /// Most duplicate ACKs for one segment.
    pub duplicate_acks: u64,
    /// Largest reordering extent of a first transmission.
    pub reordering: u64,
}

#[derive(Debug, Clone, Default)]
struct ConnectionSegments {
    acknowledged: u64,
    run: u64,
    worst: Worst,
    /// One more than the highest segment that has arrived.
    highest: u64,
    /// Bitmap of the segments that have arrived.
    arrived: Vec<u64>,
}

impl Observer for SegmentObserver {
    fn host_receives(&mut self, _now: Time, _host: HostId, packet: &PacketView) {
        if packet.flags.has(Flags::DATA) {
            self.data(packet);
        } else if packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::TO_SENDER) {
            // A new SYN on this connection starts the next piece of a split flow, whose segments
            // count from 0.
            let connection = (packet.flow, packet.copy);
            if let Some(seen) = self.connections.get_mut(&connection)
                && seen.acknowledged > 0
            {
                *seen = ConnectionSegments { worst: seen.worst, ..ConnectionSegments::default() };
            }
        } else if packet.flags.has(Flags::TO_SENDER)
            && packet.flags.has(Flags::ACK)
            && !packet.flags.has(Flags::SYN)
        {
            self.acknowledgement(packet);
        }
    }
}

impl SegmentObserver {
    fn data(&mut self, packet: &PacketView) {
        let seen = self.connections.entry((packet.flow, packet.copy)).or_default();
        let segment = (packet.seq - 1) / u64::from(packet.mss);
        let (word, bit) = ((segment / 64) as usize, 1u64 << (segment % 64));
        if seen.arrived.len() <= word {
            seen.arrived.resize(word + 1, 0);
        }
        if seen.arrived[word] & bit != 0 {
            *self.duplicates.entry(1).or_default() += 1;
        }
        seen.arrived[word] |= bit;
        if !packet.flags.has(Flags::RETRANSMISSION) {
            let extent = seen.highest.saturating_sub(segment + 1);
            *self.reordering.entry(extent).or_default() += 1;
            seen.worst.reordering = seen.worst.reordering.max(extent);
        }
        seen.highest = seen.highest.max(segment + 1);
    }

    fn acknowledgement(&mut self, packet: &PacketView) {
        let seen = self.connections.entry((packet.flow, packet.copy)).or_default();
        // In segments; an acknowledged FIN counts no byte of the flow.
        let bytes = (packet.ack - 1).min(packet.flow_bytes);
        let segment = bytes.div_ceil(u64::from(packet.mss));
        if segment > seen.acknowledged {
            *self.duplicate_acks.entry(seen.run).or_default() += 1;
            let together = segment - seen.acknowledged - 1;
            if together > 0 {
                *self.duplicate_acks.entry(0).or_default() += together;
            }
            (seen.acknowledged, seen.run) = (segment, 0);
        } else if segment == seen.acknowledged && bytes < packet.flow_bytes {
            seen.run += 1;
            seen.worst.duplicate_acks = seen.worst.duplicate_acks.max(seen.run);
        }
    }

    /// Returns the worst values of a flow; all 0 if it never sent.
    pub fn worst_of(&self, flow: u64) -> Worst {
        let connections = self.connections.range((flow, 0)..=(flow, u8::MAX));
        connections.fold(Worst::default(), |worst, (_, seen)| Worst {
            duplicate_acks: worst.duplicate_acks.max(seen.worst.duplicate_acks),
            reordering: worst.reordering.max(seen.worst.reordering),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SackBlocks;

    fn packet(flags: Flags, segment: u64) -> PacketView {
        PacketView {
            flow: 1,
            copy: 0,
            src: HostId(0),
            dst: HostId(1),
            sport: 1,
            dport: 2,
            seq: 1 + segment * 1_000,
            data: None,
            ack: 1 + segment * 1_000,
            flags,
            payload: 1_000,
            window: 64_000,
            mss: 1_000,
            mss_option: true,
            flow_bytes: 10_000,
            sack: false,
            timestamps: None,
            blocks: SackBlocks::default(),
            wire_bytes: 1_078,
        }
    }

    fn after(arrivals: &[(Flags, u64)]) -> SegmentObserver {
        let mut segments = SegmentObserver::default();
        for &(flags, segment) in arrivals {
            segments.host_receives(Time::ZERO, HostId(0), &packet(flags, segment));
        }
        segments
    }

    const ACK: Flags = Flags(Flags::ACK.0 | Flags::TO_SENDER.0);

    #[test]
    fn duplicate_acks_count_for_the_first_unacknowledged_segment() {
        let segments = after(&[(ACK, 1), (ACK, 1), (ACK, 1), (ACK, 4), (ACK, 10), (ACK, 10)]);
        let counts: Vec<_> = segments.duplicate_acks.into_iter().collect();
        assert_eq!(counts, [(0, 9), (2, 1)], "ten segments, one of them asked for twice more");
    }

    #[test]
    fn the_reordering_extent_is_the_distance_to_the_highest_earlier_segment() {
        let retransmission = Flags::DATA | Flags::RETRANSMISSION;
        let data = Flags::DATA;
        let segments = after(&[(data, 0), (data, 3), (data, 1), (retransmission, 2), (data, 4)]);
        let counts: Vec<_> = segments.reordering.into_iter().collect();
        assert_eq!(counts, [(0, 3), (2, 1)]);
        assert!(segments.duplicates.is_empty());
    }

    #[test]
    fn two_swapped_segments_have_a_reordering_extent_of_one() {
        let segments = after(&[(Flags::DATA, 1), (Flags::DATA, 0)]);
        assert_eq!(segments.reordering.into_iter().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }

    #[test]
    fn counts_duplicate_arrivals_as_needless() {
        let retransmission = Flags::DATA | Flags::RETRANSMISSION;
        let late_original = after(&[(retransmission, 0), (Flags::DATA, 0)]);
        assert_eq!(late_original.duplicates.get(&1), Some(&1));
        let spurious = after(&[(Flags::DATA, 0), (retransmission, 0), (retransmission, 0)]);
        assert_eq!(spurious.duplicates.get(&1), Some(&2));
    }

    #[test]
    fn the_worst_values_of_a_flow_cover_its_connections_and_pieces() {
        let mut segments =
            after(&[(Flags::DATA, 4), (Flags::DATA, 1), (ACK, 1), (ACK, 1), (ACK, 1)]);
        let receive = |segments: &mut SegmentObserver, copy: u8, flags: Flags, segment: u64| {
            let packet = PacketView { copy, ..packet(flags, segment) };
            segments.host_receives(Time::ZERO, HostId(0), &packet);
        };
        // The next piece starts from 0 and fares better; another connection has one duplicate ACK.
        receive(&mut segments, 0, Flags::SYN, 0);
        receive(&mut segments, 0, Flags::DATA, 0);
        receive(&mut segments, 1, ACK, 2);
        receive(&mut segments, 1, ACK, 2);
        assert_eq!(segments.worst_of(1), Worst { duplicate_acks: 2, reordering: 3 });
        assert_eq!(segments.worst_of(2), Worst::default());
    }
}
