//! Ports whose queue decides the order at departure: a queue before the port, and a second event per packet.

use super::{Entities, Network};
use crate::measure::Observer;
use crate::packet::Packet;
use crate::queue::pfabric::Room;

impl<O: Observer> Network<'_, O> {
    /// Offers a packet to the scheduled queue of a port; false if the port has none.
    pub(super) fn enqueue(&mut self, port: u32, packet: Packet) -> bool {
        if self.fabric.scheduled[port as usize].is_none() {
            return false;
        }
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.link_queues(self.now, port, &view);
        }
        // Packets without data carry no number and come first.
        let priority = self.fabric.options.number(packet.options).unwrap_or(0);
        let busy = self.fabric.ports[port as usize].busy_until() > self.now;
        loop {
            let Some(queue) = &mut self.fabric.scheduled[port as usize] else { return false };
            if !busy && queue.is_empty() {
                self.offer(port, packet);
                return true;
            }
            match queue.make_room(priority, packet.wire_bytes) {
                Room::Enough => break queue.push(priority, packet),
                Room::After(victim) => self.drop_packet(port, victim),
                Room::None => {
                    self.drop_packet(port, packet);
                    return true;
                }
            }
        }
        let entity = Entities::of(&self.fabric).dequeues + port;
        if self.agenda.due(entity).is_none() {
            let idle = self.fabric.ports[port as usize].busy_until();
            self.agenda.schedule(entity, idle.max(self.now));
        }
        true
    }

    /// The transmitter of a scheduled port falls idle.
    pub(super) fn dequeue(&mut self, port: u32) {
        let queue = self.fabric.scheduled[port as usize].as_mut();
        let Some(packet) = queue.and_then(|queue| queue.pop()) else { return };
        self.offer(port, packet);
        let waits = self.fabric.scheduled[port as usize].as_ref().is_some_and(|q| !q.is_empty());
        if waits {
            let idle = self.fabric.ports[port as usize].busy_until();
            self.agenda.schedule(Entities::of(&self.fabric).dequeues + port, idle);
        }
    }
}
