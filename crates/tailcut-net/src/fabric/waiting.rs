//! The switches' view of their ports when they choose one; ports keep nothing extra for it.

use tailcut_engine::Time;

use super::scheduled::Scheduled;
use crate::balance::PortQueues;
use crate::packet::Packet;
use crate::port::Port;
use crate::topology::PortId;

/// The queues of a fabric's ports, and the time of each port's last use.
pub(super) struct FabricQueues<'a> {
    ports: &'a [Port],
    scheduled: &'a Scheduled,
}

impl<'a> FabricQueues<'a> {
    #[inline(always)]
    pub fn at(ports: &'a [Port], scheduled: &'a Scheduled) -> FabricQueues<'a> {
        FabricQueues { ports, scheduled }
    }
}

impl PortQueues for FabricQueues<'_> {
    fn last_use(&self, port: PortId) -> Time {
        self.ports[port.index()].busy_until()
    }

    fn queued(&self, port: PortId) -> Time {
        let Some(queue) = self.scheduled.queue(port) else { return Time::ZERO };
        let link = &self.ports[port.index()];
        let transmission = |packet: &Packet| link.transmission_time(packet.wire_bytes);
        let mut queued = 0;
        queue.visit(&mut |packet| queued += transmission(packet));
        Time(queued)
    }

    fn transmission(&self, port: PortId, bytes: u16) -> Time {
        Time(self.ports[port.index()].transmission_time(bytes))
    }
}

#[cfg(test)]
mod tests {
    use tailcut_engine::Rate;

    use super::*;
    use crate::balance::{Pick, PickContext};
    use crate::fabric::{Fabric, FabricSpec, OfferOutcome};
    use crate::faults::Incident;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, SeqField};
    use crate::queue::QueueSpec;
    use crate::queue::pfabric::PfabricQueue;
    use crate::topology::star::Star;
    use crate::topology::{Graph, HostId, SwitchId};

    /// 1,250 bytes take 10 us on each link of 1 Gbps.
    fn star() -> Graph {
        let (rate, propagation) = (Rate(1_000_000_000), Time::from_us(1));
        Star { hosts: 4, rate, propagation }.build().expect("hosts are enough")
    }

    fn packet(wire_bytes: u16) -> Packet {
        let key = FlowKey::new(HostId(0), HostId(1), 1_024, 5_000);
        let (connection, options, flags) = (ConnectionId(0), NO_OPTIONS, Flags(0));
        Packet { key, connection, seq: SeqField::new(0), options, wire_bytes, flags }
    }

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// Last use, and how long a packet would wait at 5 us.
    fn seen(fabric: &Fabric, port: PortId) -> (Time, Time) {
        let waiting = FabricQueues::at(&fabric.ports, &fabric.scheduled);
        (waiting.last_use(port), waiting.wait(port, us(5)))
    }

    #[test]
    fn a_port_is_in_use_until_its_last_bit_has_left() {
        let graph = star();
        let mut fabric = Fabric::new(&FabricSpec::with_defaults(&graph)).expect("it is connected");
        let port = PortId(0);
        assert_eq!(seen(&fabric, port), (Time::ZERO, Time::ZERO), "never");
        assert_eq!(
            fabric.offer(us(3), port, None, packet(1_250)),
            OfferOutcome::AcceptedFirst(us(14))
        );
        assert_eq!(seen(&fabric, port), (us(13), us(8)));
        assert_eq!(fabric.offer(us(4), port, None, packet(1_250)), OfferOutcome::AcceptedBehind);
        assert_eq!(seen(&fabric, port), (us(23), us(18)));
        fabric.take_arrived(port);
        fabric.take_arrived(port);
        assert_eq!(seen(&fabric, port), (us(23), us(18)), "what has arrived has left before");
        let unused = PortId(2);
        assert_eq!(seen(&fabric, unused), (Time::ZERO, Time::ZERO), "another is not in use");
    }

    #[test]
    fn packets_in_a_scheduled_queue_are_waiting_but_not_busy_time() {
        let graph = star();
        let queue = QueueSpec::Pfabric(PfabricQueue::default());
        let parts = FabricSpec { queue, ..FabricSpec::with_defaults(&graph) };
        let mut fabric = Fabric::new(&parts).expect("it is connected");
        let port = fabric.host_port(HostId(0)).reversed();
        assert_eq!(
            fabric.offer(us(3), port, None, packet(1_250)),
            OfferOutcome::AcceptedFirst(us(14))
        );
        for at in [3, 4] {
            assert!(matches!(
                fabric.offer(us(at), port, None, packet(125)),
                OfferOutcome::Queued(_)
            ));
        }
        assert_eq!(seen(&fabric, port), (us(13), us(10)), "two of 1 us behind it");
    }

    #[test]
    fn last_use_of_a_failed_link_is_the_failure() {
        let graph = star();
        let mut parts = FabricSpec::with_defaults(&graph);
        parts.faults.incidents =
            vec![Incident::LinkDown { link: "h0>s0".into(), at: us(6), until: None }];
        let mut fabric = Fabric::new(&parts).expect("it is connected");
        let port = fabric.host_port(HostId(0));
        assert_eq!(
            fabric.offer(us(3), port, None, packet(1_250)),
            OfferOutcome::AcceptedFirst(us(14))
        );
        fabric.apply_incidents(us(6), &graph).expect("routes stay small");
        assert_eq!(seen(&fabric, port).0, us(6));
    }

    /// Every packet takes the port that was used longest ago: among idle ports, the one that has
    /// been idle longest.
    struct LongestIdle;

    impl Pick for LongestIdle {
        fn pick(&mut self, fork: PickContext<'_>, _: &mut Packet) -> u32 {
            let last_use = |place: &u32| fork.queues.last_use(fork.ports[*place as usize]);
            (0..fork.choices).min_by_key(last_use).expect("there are ports")
        }
    }

    #[test]
    fn a_balancer_may_go_by_the_last_use_of_ports() {
        let graph = star();
        let mut fabric = Fabric::new(&FabricSpec::with_defaults(&graph)).expect("it is connected");
        let ports = [PortId(0), PortId(2), PortId(4)];
        let mut send = |at: u64, wire_bytes: u16| {
            let mut packet = packet(wire_bytes);
            let queues = &FabricQueues::at(&fabric.ports, &fabric.scheduled);
            let (now, switch, ingress) = (us(at), SwitchId(0), PortId(1));
            let fork = PickContext { now, switch, ingress, choices: 3, ports: &ports, queues };
            let place = LongestIdle.pick(fork, &mut packet);
            let _ = fabric.offer(now, ports[place as usize], None, packet);
            place
        };
        // All are idle whenever a packet comes; those of 125 bytes leave 1 us after it.
        let picked = [(1, 125), (3, 1_250), (5, 125), (20, 125), (22, 125), (24, 125), (26, 125)];
        assert_eq!(picked.map(|(at, bytes)| send(at, bytes)), [0, 1, 2, 0, 2, 1, 0]);
    }
}
