//! Ports whose queue decides the order at departure: a queue before the port, and a second event per packet.

use super::{Entities, Network};
use crate::measure::Observer;
use crate::packet::Packet;
use crate::queue::pfabric::{PriorityQueue, Room};
use crate::topology::PortId;

/// A port without such a queue, in [`Scheduled::backlog`].
const NONE: u32 = u32::MAX;

/// The queues of the ports that have one.
///
/// A packet that finds the transmitter idle and nothing waiting goes past the queue; whether it does is kept apart,
/// because the queues of a large fabric do not fit into the nearest cache.
#[derive(Default)]
pub(super) struct Scheduled {
    /// Per port; empty where no port has such a queue.
    queues: Vec<Option<PriorityQueue>>,
    /// Per port: how many packets wait in its queue.
    backlog: Vec<u32>,
}

impl Scheduled {
    /// The next port is the one of this queue, or has none.
    pub fn push(&mut self, queue: Option<PriorityQueue>) {
        self.backlog.push(queue.as_ref().map_or(NONE, PriorityQueue::len));
        self.queues.push(queue);
    }

    /// True when no port has such a queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Per port, its queue; empty where no port has one.
    pub fn queues(&self) -> &[Option<PriorityQueue>] {
        &self.queues
    }

    /// Asks for the queue whose turn comes soon.
    #[inline]
    pub fn fetch(&self, port: PortId) {
        tailcut_engine::fetch_early(&self.queues[port as usize]);
    }

    /// Asks for what waits in it.
    #[inline]
    pub fn fetch_first(&self, port: PortId) {
        if let Some(first) =
            self.queues[port as usize].as_ref().and_then(|queue| queue.packets().next())
        {
            tailcut_engine::fetch_early(first);
        }
    }

    /// Does something with a port's queue, and counts what waits afterwards.
    #[inline]
    fn with<T>(&mut self, port: PortId, act: impl FnOnce(&mut PriorityQueue) -> T) -> Option<T> {
        let queue = self.queues[port as usize].as_mut()?;
        let result = act(queue);
        self.backlog[port as usize] = queue.len();
        Some(result)
    }

    /// Takes the packet that a port is to send next.
    pub fn pop(&mut self, port: PortId) -> Option<Packet> {
        self.with(port, PriorityQueue::pop)?
    }
}

impl<O: Observer> Network<'_, O> {
    /// Offers a packet to the scheduled queue of a port; false if the port has none.
    pub(super) fn enqueue(&mut self, port: PortId, packet: Packet) -> bool {
        let waiting = self.fabric.scheduled.backlog[port as usize];
        if waiting == NONE {
            return false;
        }
        if O::ACTIVE {
            let view = self.view(&packet);
            self.observer.link_queues(self.now, port, &view);
        }
        let idle = self.fabric.ports[port as usize].busy_until();
        if waiting == 0 && idle <= self.now {
            self.offer(port, packet);
            return true;
        }
        // Packets without data carry no number and come first.
        let priority = self.fabric.options.number(packet.options).unwrap_or(0);
        loop {
            let room = self.fabric.scheduled.with(port, |queue| {
                let room = queue.make_room(priority, packet.wire_bytes);
                if let Room::Enough = room {
                    queue.push(priority, packet);
                }
                room
            });
            match room.expect("the port has a queue") {
                Room::Enough => break,
                Room::After(victim) => self.drop_packet(port, victim),
                Room::None => {
                    self.drop_packet(port, packet);
                    return true;
                }
            }
        }
        let entity = Entities::of(&self.fabric).dequeues + port;
        if self.agenda.due(entity).is_none() {
            self.agenda.schedule(entity, idle.max(self.now));
        }
        true
    }

    /// The transmitter of a scheduled port falls idle.
    pub(super) fn dequeue(&mut self, port: PortId) {
        let Some(packet) = self.fabric.scheduled.pop(port) else { return };
        self.offer(port, packet);
        if self.fabric.scheduled.backlog[port as usize] > 0 {
            let idle = self.fabric.ports[port as usize].busy_until();
            self.agenda.schedule(Entities::of(&self.fabric).dequeues + port, idle);
        }
    }
}
