//! Waiting at a link, by whose packets are transmitted meanwhile.

use tailcut_engine::Time;

use super::chains::Chains;
use super::packets::Packets;
use super::queue::QueueClock;
use crate::packet::PacketId;
use crate::port::Port;

/// Time that a packet waits at one port, in picoseconds, by whose packets are transmitted
/// meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Waited {
    /// Transmissions of the packet's connection.
    pub same: u64,
    /// Transmissions of its flow's other connections.
    pub own: u64,
    /// Transmissions of other flows.
    pub others: u64,
}

impl Waited {
    /// Returns the time that counts waiting of a packet of the first (flow, connection) for one of
    /// the second.
    #[inline]
    pub fn of(&mut self, (flow, connection): (u32, u32), (whose, which): (u32, u32)) -> &mut u64 {
        match (flow == whose, connection == which) {
            (false, _) => &mut self.others,
            (true, false) => &mut self.own,
            (true, true) => &mut self.same,
        }
    }
}

/// Returns what packet `of` waits for from `now` until it begins, at a first-in-first-out port
/// `on`. Also returns the last packet of its connection that departs after `now`, if any: the
/// waiting counts from that departure.
#[inline]
pub(super) fn ahead(
    packets: &Packets,
    on: &Port,
    [now, begins]: [u64; 2],
    of: u32,
) -> (Waited, Option<u32>) {
    let (mut waited, mut since, mut found) = (Waited::default(), now, None);
    let record = &packets[of];
    for (packet, _) in on.latest().skip(1).take_while(|(_, departs)| departs.0 > now) {
        if packets.flow_of(packet.connection) != record.flow {
            continue;
        }
        let place = packet.seq.ticket().0;
        let other = &packets[place];
        if other.departs <= now || other.flow != record.flow {
            continue;
        }
        let same = other.is_of_connection_of(record);
        if same && !record.is_again() {
            (since, found) = (other.departs, Some(place));
            break;
        }
        let waiting = if same { &mut waited.same } else { &mut waited.own };
        *waiting += packets.takes(place).min(other.departs - now);
    }
    waited.others = begins - since - waited.same - waited.own;
    (waited, found)
}

/// Like [`ahead`], for a packet of an orderly connection: follows the connection's earlier packets
/// on `link` instead of scanning the port.
#[inline]
pub(super) fn ahead_in_order(
    packets: &Packets,
    link: u32,
    [now, begins]: [u64; 2],
    of: u32,
) -> (Waited, Option<u32>) {
    let (mut waited, mut since, mut found) = (Waited::default(), now, None);
    let record = &packets[of];
    let (mut at, mut until) = (record.before, u64::MAX);
    // Once one packet of the connection has left, so have all before it. A slot may be reused by a
    // packet behind this one, or by one before it that departs later than its follower.
    while let Some(other) = packets.get(at) {
        let there = other.link == link && other.departs > now && other.departs < until;
        if !(there && other.is_of_connection_of(record)) {
            break;
        }
        if !record.is_again() {
            (since, found) = (other.departs, Some(at));
            break;
        }
        waited.same += packets.takes(at).min(other.departs - now);
        (at, until) = (other.before, other.departs);
    }
    waited.others = begins - since - waited.same;
    (waited, found)
}

/// Applies new departure times to the packets on a link. Calls `tell` for each traced packet with
/// its remaining waiting before and after the change.
pub fn retime(
    mut queue: Option<&mut QueueClock>,
    packets: &mut Packets,
    chains: &mut Chains,
    now: u64,
    departures: &[(PacketId, Time)],
    mut tell: impl FnMut(&mut Packets, &mut Chains, u32, Waited, Waited),
) {
    let mut shares: Vec<((u32, u32), u64, u64)> = vec![];
    let mut free = None;
    for &(PacketId(packet), Time(departs)) in departures {
        let record = packets[packet];
        if record.departs <= now {
            continue;
        }
        let (whose, takes) = (record.whose(), packets.takes(packet));
        let before = takes.min(record.departs - now);
        if record.is_traced() {
            let (mut old, mut new) = (Waited::default(), Waited::default());
            for &(other, was, is) in &shares {
                *old.of(whose, other) += was;
                *new.of(whose, other) += is;
            }
            tell(packets, chains, packet, old, new);
        }
        let begins = free.unwrap_or(packets.begins(packet));
        packets.retime(packet, begins, departs, chains);
        free = Some(departs);
        merge(&mut shares, whose, before, departs - begins.max(now));
        if let Some(queue) = &mut queue {
            queue.takes_longer(packets, packet, takes);
        }
    }
}

/// Adds the remaining transmission of a packet, before and after the change, to its connection's
/// share.
fn merge(shares: &mut Vec<((u32, u32), u64, u64)>, whose: (u32, u32), old: u64, new: u64) {
    match shares.iter_mut().find(|share| share.0 == whose) {
        Some(share) => (share.1, share.2) = (share.1 + old, share.2 + new),
        None => shares.push((whose, old, new)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chains::Chains;
    use super::super::packets::{NOWHERE, TracedPacket};
    use super::*;
    use crate::packet::ConnectionId;

    /// Returns packets of an orderly connection on one link, back to back. `befores` gives each
    /// packet's slot and predecessor.
    fn sent(befores: &[(u32, u32)], again: u32) -> Packets {
        let (mut packets, mut chains) = (Packets::default(), Chains::default());
        (0..befores.len()).for_each(|place| packets.admit(place as u32, 0));
        let mut departs = 100;
        for &(place, before) in befores {
            let traced = TracedPacket {
                chain: chains.begin(0, 7).chain,
                flow: 7,
                connection: ConnectionId(3),
                again: place == again,
                before: Some(before),
            };
            packets.trace(place, &traced);
            packets.ride(place, 5, 0, [departs, departs + 10], &mut chains);
            departs += 10;
        }
        packets
    }

    #[test]
    fn in_order_the_predecessor_is_known_until_it_leaves() {
        let mut packets = sent(&[(0, NOWHERE), (1, 0), (2, 1)], NOWHERE);
        let ahead = |packets: &Packets, now| ahead_in_order(packets, 5, [now, 150], 2);
        let of = |same, others| Waited { same, own: 0, others };
        assert_eq!(ahead(&packets, 105), (of(0, 30), Some(1)));
        assert_eq!(ahead(&packets, 120), (of(0, 30), None), "it has left");
        packets.forget(1);
        assert_eq!(ahead(&packets, 105), (of(0, 45), None), "it has arrived");
    }

    #[test]
    fn a_retransmission_waits_for_its_connection_until_a_reused_slot() {
        // The first packet was sent after one whose slot the second now has.
        let packets = sent(&[(0, 1), (1, 0), (2, 1)], 2);
        let (waited, before) = ahead_in_order(&packets, 5, [105, 150], 2);
        assert_eq!((waited, before), (Waited { same: 15, own: 0, others: 30 }, None));
    }
}
