//! Queues of ports: which packet is admitted, marked or dropped, and which is sent next.
//!
//! A new kind is one file here, with its parameters as a [`Queueing`], and one line in the list below. Where the order is
//! fixed on arrival, a kind only says what is admitted ([`Admit`]), and a hop stays one event; where it is decided at
//! departure, it keeps what waits itself ([`Schedule`]), for a second event per packet.

pub mod drop_tail;
pub mod drr;
pub mod ecn;
mod fifo;
pub mod pfabric;
pub mod red;
mod room;
pub mod selective_red;
pub mod trimming;

pub use self::room::Around;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;

/// A port that gets a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// Its number.
    pub number: u32,
    /// It is the interface of a host.
    pub host: bool,
    /// What may wait there.
    pub limit: Limit,
    /// Seed of the run.
    pub seed: u64,
}

/// The parameters of a kind of queue.
pub(crate) trait Queueing {
    /// What decides at each port which packets are admitted, besides the limit.
    type Admission: Admit;
    /// What keeps the packets that wait at a port, where their order is decided at departure.
    type Schedule: Schedule;

    /// Refuses parameters with which a queue could hold nothing, or would do nothing.
    fn check(&self) -> Result<(), SpecError>;
    /// Refuses those that do not suit what surrounds the queue.
    fn check_room(&self, _: &Around) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses a transport whose packets it can do nothing with.
    fn check_packets(&self, _: Stamps) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses buffers that the ports of a switch share, which decide on arrival what may wait.
    fn check_shared(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Whether pause frames may hold its ports back: it goes by what waits, and by nothing that is known of departures.
    fn can_pause(&self) -> bool {
        false
    }
    /// What may wait at a switch port.
    fn limit(&self) -> Limit;
    /// What may wait at a port in all, where `at.limit` is that of a queue.
    fn limit_in_all(&self, at: &At) -> Limit {
        at.limit
    }
    /// Whether it ever marks a packet.
    fn marks(&self) -> bool {
        false
    }
    /// Whether chance may drop a packet for which there is room.
    fn drops_early(&self) -> bool {
        false
    }
    /// The state of a port that may refuse or mark what there is room for; none for drop-tail.
    fn admission(&self, at: &At) -> Option<Self::Admission>;
    /// The state of a port whose order is decided at departure; none where it is first in, first out.
    fn schedule(&self, at: &At) -> Option<Self::Schedule>;
}

/// What the transport writes into its packets, and reads from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// A priority.
    pub priorities: bool,
    /// Its receivers make sense of a header without its payload.
    pub hears_headers: bool,
}

/// Decides on packets that there is room for, at a port whose order is fixed on arrival.
pub(crate) trait Admit {
    /// Fewest waiting packets at which it may do anything but accept; none when it must see every packet.
    fn acts_from(&self) -> Option<u32> {
        None
    }
    /// True when it must know the bytes that wait.
    fn counts_bytes(&self) -> bool {
        false
    }
    /// True when it must know what marked packets wait, for an arrival that is marked itself or not.
    fn counts_marked(&self, _marked: bool) -> bool {
        false
    }
    /// Decides on one packet.
    fn admit(&mut self, arrival: &Arrival) -> Verdict;
}

/// Keeps the packets that wait at a port, and says which is sent next.
pub(crate) trait Schedule {
    /// Lets a packet wait, as it is or changed; false if it is dropped. What is dropped for it goes to `displaced`.
    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool;
    /// Takes the packet to be sent next.
    fn pop(&mut self, now: Time) -> Option<Packet>;
    /// Packets waiting.
    fn len(&self) -> u32;
    /// One that is sent soon, if any waits: its memory is asked for early.
    fn first(&self) -> Option<&Packet>;
    /// Shows every packet that waits.
    fn visit(&self, see: &mut dyn FnMut(&Packet));
    /// Packets dropped so far.
    fn drops(&self) -> u64;
    /// Most packets ever waiting.
    fn longest(&self) -> u32;
}

impl<A: Admit> Admit for Box<A> {
    fn acts_from(&self) -> Option<u32> {
        A::acts_from(self)
    }
    fn counts_bytes(&self) -> bool {
        A::counts_bytes(self)
    }
    fn counts_marked(&self, marked: bool) -> bool {
        A::counts_marked(self, marked)
    }
    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        A::admit(self, arrival)
    }
}

/// What is large lies elsewhere: the queues of all ports are in one table, and each is to fill one line of the cache.
impl<S: Schedule> Schedule for Box<S> {
    fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
        S::offer(self, now, packet, displaced)
    }
    fn pop(&mut self, now: Time) -> Option<Packet> {
        S::pop(self, now)
    }
    fn len(&self) -> u32 {
        S::len(self)
    }
    fn first(&self) -> Option<&Packet> {
        S::first(self)
    }
    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        S::visit(self, see);
    }
    fn drops(&self) -> u64 {
        S::drops(self)
    }
    fn longest(&self) -> u32 {
        S::longest(self)
    }
}

/// Of kinds that have no such state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Never {}

impl Admit for Never {
    fn admit(&mut self, _: &Arrival) -> Verdict {
        match *self {}
    }
}

impl Schedule for Never {
    fn offer(&mut self, _: Time, _: Packet, _: &mut Vec<Packet>) -> bool {
        match *self {}
    }
    fn pop(&mut self, _: Time) -> Option<Packet> {
        match *self {}
    }
    fn len(&self) -> u32 {
        match *self {}
    }
    fn first(&self) -> Option<&Packet> {
        match *self {}
    }
    fn visit(&self, _: &mut dyn FnMut(&Packet)) {
        match *self {}
    }
    fn drops(&self) -> u64 {
        match *self {}
    }
    fn longest(&self) -> u32 {
        match *self {}
    }
}

/// Writes the section `queue` of the experiment file, and the state of every port.
macro_rules! queues {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// The queue of every switch port.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum QueueSpec {
            $($(#[$about])* $name($parameters),)*
        }

        /// What admits packets to a port.
        #[derive(Debug, Clone)]
        pub(crate) enum Discipline {
            /// Its limit alone.
            Plain,
            $($name(<$parameters as Queueing>::Admission),)*
        }

        /// What keeps the packets that wait at a port whose order is decided at departure.
        #[derive(Debug, Clone)]
        pub(crate) enum Scheduler {
            /// In the order of arrival, where pauses decide when.
            Fifo(Box<fifo::Fifo>),
            $($name(<$parameters as Queueing>::Schedule),)*
        }

        impl QueueSpec {
            /// Checks the parameters.
            ///
            /// # Errors
            /// When a queue with them could hold nothing.
            pub fn check(&self) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => Queueing::check(spec),)* }
            }

            /// Checks what the kind has to say of what surrounds the queue.
            fn check_thresholds(&self, around: &Around) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => Queueing::check_room(spec, around),)* }
            }

            /// Checks it against what the transport stamps.
            pub(crate) fn check_packets(&self, stamps: Stamps) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => Queueing::check_packets(spec, stamps),)* }
            }

            /// Checks it against buffers that the ports of a switch share.
            ///
            /// # Errors
            /// When what waits is not decided on arrival.
            pub fn check_shared(&self) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => Queueing::check_shared(spec),)* }
            }

            /// Whether it ever marks a packet.
            pub fn marks(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => Queueing::marks(spec),)* }
            }

            /// Whether chance may drop a packet for which there is room.
            pub(crate) fn drops_early(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => Queueing::drops_early(spec),)* }
            }

            /// Whether pause frames may hold its ports back.
            fn can_pause(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => Queueing::can_pause(spec),)* }
            }

            /// What may wait at a switch port.
            pub fn limit(&self) -> Limit {
                match self { $(QueueSpec::$name(spec) => Queueing::limit(spec),)* }
            }

            /// What may wait at a port in all.
            pub(crate) fn limit_in_all(&self, at: &At) -> Limit {
                match self { $(QueueSpec::$name(spec) => Queueing::limit_in_all(spec, at),)* }
            }

            /// What admits packets to a port.
            pub(crate) fn discipline(&self, at: &At) -> Discipline {
                match self {
                    $(QueueSpec::$name(spec) => {
                        spec.admission(at).map_or(Discipline::Plain, Discipline::$name)
                    })*
                }
            }

            /// What keeps the packets of a port, where their order is decided at departure.
            pub(crate) fn scheduler(&self, at: &At) -> Option<Scheduler> {
                match self {
                    $(QueueSpec::$name(spec) => spec.schedule(at).map(Scheduler::$name),)*
                }
            }
        }

        impl Admit for Discipline {
            fn acts_from(&self) -> Option<u32> {
                match self {
                    Discipline::Plain => Some(u32::MAX),
                    $(Discipline::$name(state) => state.acts_from(),)*
                }
            }
            fn counts_bytes(&self) -> bool {
                match self {
                    Discipline::Plain => false,
                    $(Discipline::$name(state) => state.counts_bytes(),)*
                }
            }
            fn counts_marked(&self, marked: bool) -> bool {
                match self {
                    Discipline::Plain => false,
                    $(Discipline::$name(state) => state.counts_marked(marked),)*
                }
            }
            fn admit(&mut self, arrival: &Arrival) -> Verdict {
                match self {
                    Discipline::Plain => Verdict::Accept,
                    $(Discipline::$name(state) => state.admit(arrival),)*
                }
            }
        }

        impl Schedule for Scheduler {
            #[inline]
            fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool {
                match self {
                    Scheduler::Fifo(state) => state.offer(now, packet, displaced),
                    $(Scheduler::$name(state) => state.offer(now, packet, displaced),)*
                }
            }
            #[inline]
            fn pop(&mut self, now: Time) -> Option<Packet> {
                match self {
                    Scheduler::Fifo(state) => state.pop(now),
                    $(Scheduler::$name(state) => state.pop(now),)*
                }
            }
            #[inline]
            fn len(&self) -> u32 {
                match self {
                    Scheduler::Fifo(state) => state.len(),
                    $(Scheduler::$name(state) => state.len(),)*
                }
            }
            #[inline]
            fn first(&self) -> Option<&Packet> {
                match self {
                    Scheduler::Fifo(state) => state.first(),
                    $(Scheduler::$name(state) => state.first(),)*
                }
            }
            fn visit(&self, see: &mut dyn FnMut(&Packet)) {
                match self {
                    Scheduler::Fifo(state) => state.visit(see),
                    $(Scheduler::$name(state) => state.visit(see),)*
                }
            }
            fn drops(&self) -> u64 {
                match self {
                    Scheduler::Fifo(state) => state.drops(),
                    $(Scheduler::$name(state) => state.drops(),)*
                }
            }
            fn longest(&self) -> u32 {
                match self {
                    Scheduler::Fifo(state) => state.longest(),
                    $(Scheduler::$name(state) => state.longest(),)*
                }
            }
        }
    };
}

queues! {
    /// First in, first out; a packet that finds the queue full is dropped.
    DropTail(drop_tail::DropTail),
    /// Drop-tail that marks ECN-capable packets beyond a threshold on the instantaneous queue (DCTCP).
    Ecn(ecn::Ecn),
    /// Random early detection on the average queue (Floyd and Jacobson).
    Red(red::Red),
    /// Drops the packet of the flow with the most left to send, and sends that of the flow with the least first (pFabric).
    Pfabric(pfabric::PfabricQueue),
    /// RED for the packets of flows that have lost paths to a failure, drop-tail for all others (RPS).
    SelectiveRed(selective_red::SelectiveRed),
    /// Every flow waits in a line of its own, and the lines send in turn, so many bytes each (deficit round robin).
    Drr(drr::Drr),
    /// A packet without room loses its payload and goes on as a header, before those with data (NDP's trimming).
    Trimming(trimming::Trimming),
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(drop_tail::DropTail::default())
    }
}

impl QueueSpec {
    /// What keeps the packets of a port that pause frames may hold back.
    pub(crate) fn pausable(&self, at: &At) -> Scheduler {
        Scheduler::Fifo(Box::new(fifo::Fifo::new(at.limit, self.discipline(at))))
    }

    /// Checks it against pause frames.
    ///
    /// # Errors
    /// When it is not first in, first out, or goes by departures.
    pub fn check_pauses(&self) -> Result<(), SpecError> {
        if self.can_pause() {
            return Ok(());
        }
        let message =
            "pause frames hold ports back that are first in, first out, and admit by what waits";
        Err(SpecError::new("pfc-queue", "pfc", message)
            .hint("write queue = { kind = \"drop-tail\" } or { kind = \"ecn\" }, or leave pfc out"))
    }

    /// Checks the parameters against what surrounds the queue.
    ///
    /// # Errors
    /// When not even one full packet fits, or a queue is full before its thresholds act.
    pub fn check_room(&self, around: &Around) -> Result<(), SpecError> {
        let (limit, packet) = (self.limit(), around.full_packet);
        if matches!(limit, Limit::AtMost(Amount::Bytes(bytes)) if bytes < packet) {
            let message = format!(
                "limit = \"{limit}\" holds not even one full packet of {packet} B (mss, headers and framing)"
            );
            return Err(SpecError::new("queue-frame", "limit", message)
                .hint("write at least a few packets, such as \"36KB\" or \"25packets\""));
        }
        self.check_thresholds(around)
    }
}

/// What a queue sees of an arriving packet that it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrival {
    /// When it arrives, and when its last bit leaves if it is accepted, in picoseconds.
    pub now: u64,
    pub leaves: u64,
    /// The transmitter is at work.
    pub busy: bool,
    /// Its size.
    pub wire_bytes: u16,
    /// It belongs to a flow that has lost paths.
    pub marked: bool,
    /// How many of the packets waiting do, and their bytes; counted where the discipline asks for it.
    pub marked_waiting: u32,
    pub marked_bytes: u64,
    /// Transmission time of a full packet.
    pub full_packet: u64,
    /// Packets waiting behind the one in service.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// The packet may be marked instead of dropped (RFC 3168).
    pub ecn_capable: bool,
    /// Full packets that could have been sent since the transmitter fell idle.
    pub idle_packets: u64,
}

/// What a queue does with a packet that it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Accept it with the congestion-experienced mark.
    Mark,
    Drop,
}

/// Whether a packet of so many bytes may wait behind others.
pub(crate) fn fits(limit: Limit, packets: usize, bytes: u64, more: u16) -> bool {
    match limit {
        Limit::Unlimited => true,
        Limit::AtMost(Amount::Packets(limit)) => packets < limit as usize,
        Limit::AtMost(Amount::Bytes(limit)) => bytes + u64::from(more) <= limit,
    }
}

/// Checks that a queue holds something.
pub(crate) fn check_limit(code: &'static str, field: &str, limit: Limit) -> Result<(), SpecError> {
    match limit {
        Limit::AtMost(amount @ (Amount::Packets(0) | Amount::Bytes(0))) => {
            let message = format!("{field} = \"{amount}\": a queue holds at least one packet");
            Err(SpecError::new(code, field, message)
                .hint("write for example \"100packets\", or \"unlimited\""))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_the_packets_of_a_port_fills_one_cache_line() {
        assert!(std::mem::size_of::<Option<Scheduler>>() <= 64);
    }
}
