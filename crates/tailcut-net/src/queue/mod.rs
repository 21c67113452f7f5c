//! Queues of ports: which packet is admitted, marked or dropped, and which is sent next.
//!
//! A new kind is one file here, with its parameters as a [`QueueKind`], and one line in the list
//! below. Where the order is fixed on arrival, a kind only decides on admission ([`Admit`]), and a
//! hop remains one event. Where the order is decided at departure, a kind holds the waiting packets
//! itself ([`PacketScheduler`]), which costs a second event per packet.

pub mod drop_tail;
pub mod drr;
pub mod ecn;
mod environment;
mod fifo;
mod kind;
pub mod pfabric;
pub mod red;
mod red_core;
pub mod selective_red;
pub mod thresholds;
mod ties;
pub mod trimming;

pub use self::environment::QueueEnvironment;
pub(crate) use self::kind::{
    Admit, Arrival, Headers, LostPaths, Never, PacketScheduler, PortContext, QueueKind,
    TransportFeatures, Verdict,
};
pub(crate) use self::ties::Order;
pub use self::ties::Ties;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Rate, Time};

use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::switch::flow_control::{FlowControl, FlowControlNames};
use crate::topology::Graph;

/// Writes the section `queue` of the experiment file, and the state of every port.
macro_rules! queues {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// The queue of every switch port.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum QueueSpec {
            $($(#[$about])* $name($parameters),)*
        }

        /// Admission at one port.
        #[derive(Debug, Clone)]
        pub(crate) enum Discipline {
            /// The limit alone decides.
            Plain,
            $($name(<$parameters as QueueKind>::Admission),)*
        }

        /// Scheduler of a port whose order is decided at departure.
        #[derive(Debug, Clone)]
        pub(crate) enum Scheduler {
            /// In the order of arrival, where departures are not known on arrival.
            Fifo(Box<fifo::Fifo>),
            $($name(<$parameters as QueueKind>::Schedule),)*
        }

        impl QueueSpec {
            /// Checks the parameters.
            ///
            /// # Errors
            /// Refuses parameters with which a queue could hold nothing, or would have no effect.
            pub fn check(&self) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => QueueKind::check(spec),)* }
            }

            /// Checks the thresholds of the kind against the limits around the queue.
            fn check_thresholds(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => QueueKind::check_environment(spec, around),)* }
            }

            /// Checks the queue against the features of the transport.
            pub(crate) fn check_packets(&self, stamps: TransportFeatures) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => QueueKind::check_packets(spec, stamps),)* }
            }

            /// Checks the queue against buffers that the ports of a switch share.
            ///
            /// # Errors
            /// Refuses kinds that drop or trim packets that wait already.
            pub fn check_shared(&self) -> Result<(), SpecError> {
                let changes = match self {
                    $(QueueSpec::$name(spec) => QueueKind::shared_buffer_conflict(spec),)*
                };
                let Some((code, does)) = changes else { return Ok(()) };
                let message = format!("{does}, so its ports cannot share a buffer");
                Err(SpecError::new(code, "shared_buffer", message)
                    .hint("leave shared_buffer \"unlimited\""))
            }

            /// Returns whether the queue ever marks a packet.
            pub fn marks_packets(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => QueueKind::marks_packets(spec),)* }
            }

            /// Returns whether the queue may drop a packet at random although there is room for it.
            pub fn drops_early(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => QueueKind::drops_early(spec),)* }
            }

            /// Returns whether the queue works with flow control, which stops its ports at times.
            fn may_stop(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => may_stop(spec),)* }
            }

            /// Returns which packets of flows that have lost paths hosts mark; `None` if the queue
            /// ignores the mark.
            pub(crate) fn lost_paths(&self) -> Option<LostPaths> {
                match self { $(QueueSpec::$name(spec) => QueueKind::lost_paths(spec),)* }
            }

            /// Returns whether ports hold their packets until departure, because the order is
            /// decided then.
            pub fn schedules_departures(&self) -> bool {
                match self { $(QueueSpec::$name(spec) => schedules_departures(spec),)* }
            }

            /// Checks the queue against a network.
            ///
            /// # Errors
            /// Refuses thresholds that leave out the ports of a link, or name a tier or rate that
            /// no link has.
            pub fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
                match self { $(QueueSpec::$name(spec) => QueueKind::check_topology(spec, graph),)* }
            }

            /// Returns the threshold beyond which the ports of a link mark; `None` for kinds that
            /// do not mark by a threshold.
            pub fn threshold(&self, tier: &str, rate: Rate) -> Option<Amount> {
                match self { $(QueueSpec::$name(spec) => QueueKind::threshold(spec, tier, rate),)* }
            }

            /// Returns the limit of a switch port.
            pub fn limit(&self) -> Limit {
                match self { $(QueueSpec::$name(spec) => QueueKind::limit(spec),)* }
            }

            /// Returns the order of an arrival at a full queue and the end of a transmission at the
            /// same instant.
            pub fn ties(&self) -> Ties {
                match self { $(QueueSpec::$name(spec) => QueueKind::ties(spec),)* }
            }

            /// Returns the limit of a port as a whole, over all its queues.
            pub(crate) fn limit_in_all(&self, at: &PortContext) -> Limit {
                match self { $(QueueSpec::$name(spec) => QueueKind::limit_in_all(spec, at),)* }
            }

            /// Creates the admission state of a port.
            pub(crate) fn discipline(&self, at: &PortContext) -> Discipline {
                match self {
                    $(QueueSpec::$name(spec) => {
                        spec.admission(at).map_or(Discipline::Plain, Discipline::$name)
                    })*
                }
            }

            /// Creates the scheduler of a port; `None` if the port is first in, first out.
            pub(crate) fn scheduler(&self, at: &PortContext) -> Option<Scheduler> {
                match self {
                    $(QueueSpec::$name(spec) => spec.schedule(at).map(Scheduler::$name),)*
                }
            }
        }

        impl Admit for Discipline {
            const BY_WAITING: bool = false;

            fn active_from_backlog(&self) -> Option<u32> {
                match self {
                    Discipline::Plain => Some(u32::MAX),
                    $(Discipline::$name(state) => state.active_from_backlog(),)*
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
            fn on_overflow(&mut self, arrival: &Arrival) {
                match self {
                    Discipline::Plain => {}
                    $(Discipline::$name(state) => state.on_overflow(arrival),)*
                }
            }
            fn link_changed(&mut self, now: u64, marked_leave: Option<u64>) {
                match self {
                    Discipline::Plain => {}
                    $(Discipline::$name(state) => state.link_changed(now, marked_leave),)*
                }
            }
        }

        impl PacketScheduler for Scheduler {
            const KEEPS: bool = true;

            #[inline]
            fn offer(&mut self, now: Time, packet: Packet, pop_displaced: &mut Vec<Packet>) -> bool {
                match self {
                    Scheduler::Fifo(state) => state.offer(now, packet, pop_displaced),
                    $(Scheduler::$name(state) => state.offer(now, packet, pop_displaced),)*
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
            fn headers(&self) -> Option<Headers> {
                match self {
                    Scheduler::Fifo(state) => state.headers(),
                    $(Scheduler::$name(state) => state.headers(),)*
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
    /// Drop-tail that marks ECN-capable packets beyond a queue length (DCTCP).
    ///
    /// The threshold applies to the instantaneous queue.
    Ecn(ecn::Ecn),
    /// Random early detection on the average queue (Floyd and Jacobson).
    Red(red::Red),
    /// Serves the flow with the least left to send, drops from that with most.
    ///
    /// pFabric: a full queue drops the packet of the flow with the most left to send, and sends
    /// that of the flow with the least first.
    Pfabric(pfabric::PfabricQueue),
    /// RED for packets of flows that lost paths to a failure, else drop-tail (RPS).
    SelectiveRed(selective_red::SelectiveRed),
    /// A queue per flow, each sending a quantum of bytes in turn (deficit RR).
    ///
    /// Deficit round robin.
    Drr(drr::Drr),
    /// A packet without room loses its payload; its header goes first (NDP).
    ///
    /// NDP's trimming: headers are sent ahead of packets with data.
    Trimming(trimming::Trimming),
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(drop_tail::DropTail::default())
    }
}

impl QueueSpec {
    /// Creates the scheduler of a port that sends in the order of arrival, where departures are not
    /// known on arrival.
    pub(crate) fn fifo(&self, at: &PortContext) -> Scheduler {
        Scheduler::Fifo(Box::new(fifo::Fifo::new(at.limit, self.discipline(at))))
    }

    /// Checks the queue against flow control, which stops its ports.
    ///
    /// # Errors
    /// Refuses kinds that are not first in, first out, or whose admission depends on departures.
    pub fn check_flow_control(&self, control: &dyn FlowControl) -> Result<(), SpecError> {
        if self.may_stop() {
            return Ok(());
        }
        let FlowControlNames { key, queue, .. } = control.said();
        let message = "flow control needs queues that are first in, first out and admit packets by the backlog alone";
        Err(SpecError::new(queue, key, message).hint(format!(
            "write queue = {{ kind = \"drop-tail\" }} or {{ kind = \"ecn\" }}, or leave {key} out"
        )))
    }

    /// Checks the parameters against the limits and thresholds around the queue.
    ///
    /// # Errors
    /// Refuses limits below one full packet, and thresholds that a full queue cannot exceed.
    pub fn check_environment(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
        let (limit, packet) = (around.limit(self.limit()), around.full_packet);
        check_limit("queue-frame", "limit", limit)?;
        if matches!(limit, Limit::AtMost(Amount::Bytes(bytes)) if bytes < packet) {
            let message = format!(
                "limit = \"{limit}\": must hold at least one full packet of {packet} B (mss, headers and framing)"
            );
            return Err(SpecError::new("queue-frame", "limit", message)
                .hint("write at least a few packets, such as \"36KB\" or \"25packets\""));
        }
        self.check_thresholds(around)
    }
}

/// Returns whether the ports of a kind of queue hold their packets until departure.
fn schedules_departures<Q: QueueKind>(_: &Q) -> bool {
    Q::Schedule::KEEPS
}

/// Returns whether a kind of queue works with flow control: first in, first out, with admission by
/// backlog alone.
fn may_stop<Q: QueueKind>(_: &Q) -> bool {
    !Q::Schedule::KEEPS && Q::Admission::BY_WAITING
}

/// Returns whether a packet of `more` bytes may wait behind `packets` packets of `bytes` bytes.
pub(crate) fn fits(limit: Limit, packets: usize, bytes: u64, more: u16) -> bool {
    match limit {
        Limit::Unlimited => true,
        Limit::AtMost(Amount::Packets(limit)) => packets < limit as usize,
        Limit::AtMost(Amount::Bytes(limit)) => bytes + u64::from(more) <= limit,
    }
}

/// Refuses a limit of 0. `code` and `field` go into the error.
pub(crate) fn check_limit(code: &'static str, field: &str, limit: Limit) -> Result<(), SpecError> {
    match limit {
        Limit::AtMost(amount @ (Amount::Packets(0) | Amount::Bytes(0))) => {
            let message = format!("{field} = \"{amount}\": must hold at least one packet");
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
    fn a_scheduler_fits_in_one_cache_line() {
        assert!(std::mem::size_of::<Option<Scheduler>>() <= 64);
    }
}
