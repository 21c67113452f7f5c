//! Queues of ports: which packet is admitted, marked or dropped, and which is sent next.
//!
//! A new kind is one file here, with its parameters as a [`QueueKind`] and its state as a [`PortQueue`], and one line in the list
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
    Admit, Arrival, Headers, Never, PacketScheduler, Plain, PortQueue, Verdict,
};
pub use self::kind::{LostPaths, PortContext, QueueKind, TransportFeatures};
pub(crate) use self::ties::Order;
pub use self::ties::Ties;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::registry::{Inline, registry};
use crate::switch::flow_control::{FlowControl, FlowControlNames};

registry! {
    /// The queue of every switch port.
    pub enum QueueSpec: QueueKind {
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

    /// Admission at one port.
    pub(crate) enum Discipline: Admit = Inline<PortQueue::Admission>, admission(at: &PortContext)
    [
        /// The limit alone decides.
        Plain(Plain)
    ]
    {
        static pub fn counts_bytes(&self) -> bool;
        static pub fn counts_marked(&self, marked: bool) -> bool;
        static pub fn admit(&mut self, arrival: &Arrival) -> Verdict;
        static pub fn on_overflow(&mut self, arrival: &Arrival);
    }

    /// Scheduler of a port whose order is decided at departure.
    pub(crate) enum Scheduler: PacketScheduler = Inline<PortQueue::Schedule>, schedule(at: &PortContext)
    [
        /// In the order of arrival, where departures are not known on arrival.
        Fifo(Box<fifo::Fifo>)
    ]
    {
        static pub fn offer(&mut self, now: Time, packet: Packet, displaced: &mut Vec<Packet>) -> bool;
        static pub fn pop(&mut self, now: Time) -> Option<Packet>;
        static pub fn len(&self) -> u32;
        static pub fn first(&self) -> Option<&Packet>;
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(drop_tail::DropTail::default())
    }
}

impl QueueSpec {
    /// Creates the admission state of a port.
    pub(crate) fn discipline(&self, at: &PortContext) -> Discipline {
        Discipline::of(self, at).unwrap_or(Discipline::Plain(Plain))
    }

    /// Creates the scheduler of a port; `None` if the port is first in, first out.
    pub(crate) fn scheduler(&self, at: &PortContext) -> Option<Scheduler> {
        Scheduler::of(self, at)
    }

    /// Checks the queue against buffers that the ports of a switch share.
    ///
    /// # Errors
    /// Refuses kinds that drop or trim packets that wait already.
    pub fn check_shared(&self) -> Result<(), SpecError> {
        let Some((code, does)) = self.shared_buffer_conflict() else { return Ok(()) };
        let message = format!("{does}, so its ports cannot share a buffer");
        Err(SpecError::new(code, "shared_buffer", message)
            .hint("leave shared_buffer \"unlimited\""))
    }

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
        if self.admits_by_backlog() && !self.schedules_departures() {
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
