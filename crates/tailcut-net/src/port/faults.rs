//! Faults of a link: it goes down and comes up, loses packets, or changes its rate and its delay.
//!
//! A port has one pending event, the arrival of its first packet. Taking the link down withdraws
//! that event together with the packets, so that nothing from before can reach a link that has come
//! up again.

use tailcut_engine::{RandomStream, Rate, Time};

use super::{Port, SerializationRate};
use crate::packet::{Flags, Packet};

/// The state of a link under faults.
#[derive(Debug, Clone)]
pub(super) struct Faults {
    down: bool,
    lost: u64,
    /// Probability that a packet arrives corrupted.
    loss: f64,
    stream: RandomStream,
    /// Transmission time of all bytes accepted before the rate last changed, and their number.
    spent: u64,
    bytes_before: u64,
}

impl Faults {
    /// Whether an arrival has to be looked at for their sake.
    pub fn matter(&self) -> bool {
        self.down || self.loss > 0.0
    }

    /// Whether a packet offered now is lost; if so it is counted.
    pub fn swallow(&mut self) -> bool {
        self.lost += u64::from(self.down);
        self.down
    }

    /// Draws whether a packet will arrive corrupted.
    pub fn corrupt(&mut self) -> bool {
        self.loss > 0.0 && self.stream.unit() < self.loss
    }

    /// Packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Transmission time of all bytes accepted before the rate last changed, and their number.
    pub fn spent_before(&self) -> (u64, u64) {
        (self.spent, self.bytes_before)
    }
}

impl Port {
    /// Lets faults befall the link from now on; random losses draw from `stream`.
    pub fn expect_faults(&mut self, stream: RandomStream) {
        let faults = Faults { down: false, lost: 0, loss: 0.0, stream, spent: 0, bytes_before: 0 };
        self.cold.faults = Some(Box::new(faults));
    }

    fn faults(&mut self) -> &mut Faults {
        self.cold.faults.as_mut().expect("the port expects faults")
    }

    /// The link goes down: whatever is queued, in service or on the wire is lost, and returned;
    /// what is offered from now on is lost too. A packet that arrives at this very instant has been
    /// taken before.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn go_down(&mut self, now: Time) -> Vec<Packet> {
        let (busy, bytes) = (self.busy(now), self.bytes);
        let lost: Vec<Packet> = self.packets().copied().collect();
        (self.head, self.held) = (0, 0);
        self.busy_until = self.busy_until.min(now.0);
        let faults = self.faults();
        faults.lost += lost.len() as u64;
        (faults.spent, faults.bytes_before) = (busy.0, bytes);
        faults.down = true;
        self.tell_discipline(now.0);
        self.update_fast_path_limit();
        lost
    }

    /// Tells the discipline when the marked packets leave that the link has not sent by now.
    fn tell_discipline(&mut self, now: u64) {
        if self.cold.discipline.counts_marked(true) {
            let mut marked =
                self.latest().filter(|(packet, _)| packet.flags.has(Flags::LOST_PATHS));
            let leave = marked.next().map(|(_, at)| at.0).filter(|&at| at > now);
            drop(marked);
            self.cold.discipline.link_changed(now, leave);
        }
    }

    /// The link is up again, idle and empty.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn come_up(&mut self) {
        self.faults().down = false;
        self.update_fast_path_limit();
    }

    /// From now on a packet arrives corrupted with this probability, having taken its place in
    /// the queue and its time on the link.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn set_loss(&mut self, probability: f64) {
        self.faults().loss = probability;
        self.update_fast_path_limit();
    }

    /// A packet is lost beside the port: it has arrived corrupted, or waited in a queue before the
    /// port.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn note_lost(&mut self) {
        self.faults().lost += 1;
    }

    /// Counts a packet no more that was lost.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn take_back_loss(&mut self) {
        self.faults().lost -= 1;
    }

    /// Changes the rate and the propagation delay, and says when the first packet arrives now.
    ///
    /// The packet in service keeps the share of its bits that has left; the rest leaves at the new
    /// rate, and what waits follows. What is on the wire arrives at its departure plus the new
    /// delay, or at once where that has passed: a wire keeps its packets in order.
    ///
    /// # Panics
    /// Unless the port expects faults.
    pub fn retime(&mut self, now: Time, rate: Rate, propagation: Time) -> Option<Time> {
        let (busy, now, bytes) = (self.busy(now).0, now.0, self.bytes);
        let (old, old_propagation) = (self.cold.clocking.rate, self.propagation);
        self.cold.clocking = SerializationRate::new(rate);
        self.ps_per_byte = u32::try_from(self.cold.clocking.ps_per_byte).unwrap_or(0);
        self.propagation = propagation.0;
        let mut retiming = Retiming::new(Time(now), old, rate);
        for index in 0..self.held {
            let entry = *self.entry(index);
            let mut departs = entry.arrival.saturating_sub(old_propagation);
            if departs > now {
                departs = retiming.next(Time(departs), entry.packet.wire_bytes).1.0;
            }
            let mask = self.ring.len() - 1;
            self.ring[(self.head + index) as usize & mask].arrival =
                (departs + propagation.0).max(now);
        }
        self.busy_until = retiming.free.map_or(self.busy_until, |free| free.0);
        self.tell_discipline(now);
        let spent = busy + self.busy_until.saturating_sub(now);
        let faults = self.faults();
        (faults.spent, faults.bytes_before) = (spent, bytes);
        (self.held > 0).then(|| Time(self.entry(0).arrival))
    }
}

/// Departures of accepted packets after a change of rate. Call once per packet in order, from the
/// one in service: a transmitter never idles while packets wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retiming {
    now: Time,
    old: SerializationRate,
    new: SerializationRate,
    /// The departure of the packet before.
    free: Option<Time>,
}

impl Retiming {
    /// The rate changes now, from the first to the second.
    pub fn new(now: Time, old: Rate, new: Rate) -> Retiming {
        Retiming {
            now,
            old: SerializationRate::new(old),
            new: SerializationRate::new(new),
            free: None,
        }
    }

    /// A packet that was to depart later than now: when it begins, unless it has begun, and
    /// departs.
    pub fn next(&mut self, departs: Time, bytes: u16) -> (Option<Time>, Time) {
        let begins = self.free;
        let departs = match begins {
            None => self.now + Time(self.rest((departs - self.now).0, bytes)),
            Some(begins) => begins + Time(self.new.transmission(bytes)),
        };
        self.free = Some(departs);
        (begins, departs)
    }

    /// Returns how long the rest of the packet in service, which took `left` at the old rate, takes
    /// at the new one, to the nearest picosecond.
    fn rest(&self, left: u64, bytes: u16) -> u64 {
        let whole = self.new.transmission(bytes);
        // None has left: rounded twice it could be faster than alone on the link.
        if left >= self.old.transmission(bytes) {
            return whole;
        }
        let (old, new) = (u128::from(self.old.rate.0), u128::from(self.new.rate.0));
        (((u128::from(left) * old + new / 2) / new) as u64).min(whole)
    }
}
