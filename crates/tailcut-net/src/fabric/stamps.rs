//! Headers that a balancer writes on packets ([`OverlayHeader`]) while they are on links: a header
//! travels with its packet from switch to switch, and no host sees it.
//!
//! A packet fills half a cache line, so that headers lie beside the links in the same order, and
//! only where the balancer asks for them.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::{Fabric, FabricQueues, OfferOutcome};
use crate::balance::{OverlayHeader, PassContext};
use crate::packet::{ConnectionId, Flags, Packet, SeqField};
use crate::topology::{PortId, SwitchId};

/// Identifies packets in one queue; equal ones may exchange their headers.
type Name = (ConnectionId, SeqField, bool);

/// A header that goes back has the name of its packet.
fn name(packet: &Packet) -> Name {
    let answers = packet.flags.has(Flags::TO_SENDER) && !packet.is_returned();
    (packet.connection, packet.seq, answers)
}

/// The stamps of one link.
#[derive(Debug, Clone, Default)]
struct Link {
    /// Headers of packets in the port and on the wire, the first to arrive first.
    under_way: VecDeque<OverlayHeader>,
    /// Headers of packets in a queue that decides the order at departure.
    waiting: Vec<(Name, OverlayHeader)>,
}

impl Link {
    fn leave(&mut self, packet: &Packet) -> Option<OverlayHeader> {
        let name = name(packet);
        let at = self.waiting.iter().position(|(waits, _)| *waits == name)?;
        Some(self.waiting.remove(at).1)
    }
}

/// All stamps.
#[derive(Debug, Clone, Default)]
pub(super) struct OverlayHeaders {
    links: Vec<Link>,
    /// Headers of packets that a switch has forwarded and that have not been offered to a port, in
    /// that order.
    forwarded: VecDeque<OverlayHeader>,
}

impl OverlayHeaders {
    pub fn new(ports: usize) -> OverlayHeaders {
        OverlayHeaders { links: vec![Link::default(); ports], forwarded: VecDeque::new() }
    }

    /// A packet with this stamp was offered to a port.
    fn offered(
        &mut self,
        port: PortId,
        packet: &Packet,
        stamp: OverlayHeader,
        became: OfferOutcome,
    ) {
        let link = &mut self.links[port.index()];
        match became {
            OfferOutcome::AcceptedFirst(_) | OfferOutcome::AcceptedBehind => {
                link.under_way.push_back(stamp)
            }
            OfferOutcome::Queued(_) => link.waiting.push((name(packet), stamp)),
            OfferOutcome::Returned | OfferOutcome::Dropped | OfferOutcome::Lost => {}
        }
    }

    /// The link has failed with all that was on it.
    pub fn forget(&mut self, port: PortId) {
        self.links[port.index()] = Link::default();
    }

    /// A packet that waited at a port is sent, or was lost after all.
    fn depart(&mut self, port: PortId, packet: &Packet, became: OfferOutcome) {
        let stamp = self.links[port.index()].leave(packet).unwrap_or_default();
        self.offered(port, packet, stamp, became);
    }
}

// None of these returns anything but by reference: where there are no stamps, what the loop has in
// registers stays there.
impl Fabric {
    /// A packet was offered to a port.
    #[cold]
    pub(super) fn offer_stamp(
        &mut self,
        port: PortId,
        ingress: Option<PortId>,
        packet: &Packet,
        became: OfferOutcome,
    ) {
        let stamps = self.stamps.as_mut().expect("packets have stamps");
        let stamp = ingress.and_then(|_| stamps.forwarded.pop_front()).unwrap_or_default();
        stamps.offered(port, packet, stamp, became);
        for displaced in self.scheduled.pop_displaced() {
            stamps.links[port.index()].leave(displaced);
        }
    }

    /// A packet that waited at a port is sent, or was lost after all.
    #[cold]
    pub(super) fn depart_stamp(&mut self, port: PortId, packet: &Packet, became: OfferOutcome) {
        self.stamps.as_mut().expect("packets have stamps").depart(port, packet, became);
    }

    /// A packet that was just taken from a link goes no further.
    #[inline]
    pub(super) fn drop_stamp(&mut self, port: PortId) {
        if self.stamped {
            let stamps = self.stamps.as_mut().expect("packets have stamps");
            stamps.links[port.index()].under_way.pop_front();
        }
    }

    /// A packet that was just taken from a link passes a switch.
    #[cold]
    pub(super) fn pass_stamp(
        &mut self,
        now: Time,
        switch: SwitchId,
        ingress: PortId,
        egress: PortId,
        packet: &Packet,
    ) {
        let stamps = self.stamps.as_mut().expect("packets have stamps");
        let stamp = stamps.links[ingress.index()].under_way.pop_front().unwrap_or_default();
        self.pass(now, switch, ingress, egress, packet, stamp);
    }

    /// A packet with this stamp passes a switch.
    pub(super) fn pass(
        &mut self,
        now: Time,
        switch: SwitchId,
        ingress: PortId,
        egress: PortId,
        packet: &Packet,
        mut stamp: OverlayHeader,
    ) {
        let queues = &FabricQueues::at(&self.ports, &self.scheduled);
        self.balancer.pass(
            PassContext { now, switch, ingress, egress, queues },
            packet,
            &mut stamp,
        );
        let stamps = self.stamps.as_mut().expect("packets have stamps");
        stamps.forwarded.push_back(stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowKey, NO_OPTIONS};
    use crate::topology::HostId;

    fn packet(seq: u32) -> Packet {
        let key = FlowKey::new(HostId(0), HostId(1), 1_024, 5_000);
        let connection = ConnectionId(0);
        Packet {
            key,
            connection,
            seq: SeqField::new(seq),
            options: NO_OPTIONS,
            wire_bytes: 100,
            flags: Flags(0),
        }
    }

    fn under_way(stamps: &OverlayHeaders) -> Vec<u64> {
        stamps.links[0].under_way.iter().map(|stamp| stamp.0).collect()
    }

    #[test]
    fn stamps_leave_a_queue_in_the_order_of_their_packets() {
        let (port, mut stamps) = (PortId(0), OverlayHeaders::new(1));
        for seq in 1..=3 {
            stamps.offered(
                port,
                &packet(seq),
                OverlayHeader(seq.into()),
                OfferOutcome::Queued(None),
            );
        }
        for seq in [3, 1, 2] {
            stamps.depart(port, &packet(seq), OfferOutcome::AcceptedBehind);
        }
        assert_eq!(under_way(&stamps), [3, 1, 2]);
        assert!(stamps.links[0].waiting.is_empty());
    }

    #[test]
    fn a_dropped_packet_takes_its_stamp_with_it() {
        let (port, mut stamps) = (PortId(0), OverlayHeaders::new(1));
        stamps.offered(port, &packet(1), OverlayHeader(1), OfferOutcome::Dropped);
        stamps.offered(port, &packet(2), OverlayHeader(2), OfferOutcome::AcceptedBehind);
        assert_eq!(under_way(&stamps), [2]);
        stamps.forget(port);
        assert_eq!(under_way(&stamps), [0; 0]);
    }
}
