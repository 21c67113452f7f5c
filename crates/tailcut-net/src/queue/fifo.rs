//! First in, first out where departures are not known on arrival, because flow control may stop a
//! port. Limits and marks are the same as where they are known.

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::{Arrival, Discipline, Headers, PacketScheduler, Verdict, fits};
use crate::amount::Limit;
use crate::packet::{Flags, Packet};

/// The waiting packets of one port.
#[derive(Debug, Clone)]
pub(crate) struct Fifo {
    limit: Limit,
    /// Admission, which depends on the backlog alone.
    discipline: Discipline,
    packets: VecDeque<Packet>,
    bytes: u64,
    drops: u64,
    longest: u32,
}

impl Fifo {
    pub fn new(limit: Limit, discipline: Discipline) -> Fifo {
        let packets = VecDeque::new();
        Fifo { limit, discipline, packets, bytes: 0, drops: 0, longest: 0 }
    }
}

impl PacketScheduler for Fifo {
    fn offer(&mut self, now: Time, mut packet: Packet, _: &mut Vec<Packet>) -> bool {
        let arrival = Arrival {
            now: now.0,
            busy: true,
            wire_bytes: packet.wire_bytes,
            waiting: self.len(),
            waiting_bytes: self.bytes,
            ecn_capable: packet.flags.has(Flags::ECN_CAPABLE),
            ..Arrival::default()
        };
        let room = fits(self.limit, self.packets.len(), self.bytes, packet.wire_bytes);
        let verdict = if room {
            self.discipline.admit(&arrival)
        } else {
            self.discipline.on_overflow(&arrival);
            Verdict::Drop
        };
        match verdict {
            Verdict::Accept => {}
            Verdict::Mark => packet.flags = packet.flags | Flags::CONGESTION_EXPERIENCED,
            Verdict::Drop => {
                self.drops += 1;
                return false;
            }
        }
        self.bytes += u64::from(packet.wire_bytes);
        self.packets.push_back(packet);
        self.longest = self.longest.max(self.len());
        true
    }

    fn pop(&mut self, _: Time) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    #[inline]
    fn len(&self) -> u32 {
        self.packets.len() as u32
    }

    fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.packets.iter().for_each(see);
    }

    fn drops(&self) -> u64 {
        self.drops
    }

    fn headers(&self) -> Option<Headers> {
        None
    }

    fn longest(&self) -> u32 {
        self.longest
    }
}
