//! Queues of switch ports: which packet is admitted, marked or dropped.
//!
//! A new discipline is one file here and one line in [`QueueSpec`].

pub mod drop_tail;
pub mod ecn;
pub mod pfabric;
pub mod red;
mod room;
pub mod selective_red;

pub use self::room::Around;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Stream;

use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// The queue of every switch port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueSpec {
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
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(drop_tail::DropTail::default())
    }
}

impl QueueSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a queue with them could hold nothing.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            QueueSpec::DropTail(spec) => check_limit("drop-tail-limit", "limit", spec.limit),
            QueueSpec::Ecn(spec) => spec.check(),
            QueueSpec::Red(spec) => spec.check(),
            QueueSpec::Pfabric(spec) => spec.check(),
            QueueSpec::SelectiveRed(spec) => spec.check(),
        }
    }

    /// Checks them against what surrounds the queue.
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
        match self {
            QueueSpec::DropTail(_) | QueueSpec::Pfabric(_) => Ok(()),
            QueueSpec::Ecn(spec) => spec.check_room(around),
            QueueSpec::Red(spec) => spec.check_room(around),
            QueueSpec::SelectiveRed(spec) => spec.check_room(around),
        }
    }

    /// Whether it ever marks a packet.
    pub fn marks(&self) -> bool {
        match self {
            QueueSpec::Ecn(_) => true,
            QueueSpec::Red(spec) => spec.mark,
            QueueSpec::DropTail(_) | QueueSpec::Pfabric(_) | QueueSpec::SelectiveRed(_) => false,
        }
    }

    /// What may wait at a port.
    pub fn limit(&self) -> Limit {
        match self {
            QueueSpec::DropTail(spec) => spec.limit,
            QueueSpec::Ecn(spec) => spec.limit,
            QueueSpec::Red(spec) => spec.limit,
            QueueSpec::Pfabric(spec) => spec.limit,
            QueueSpec::SelectiveRed(spec) => spec.limit,
        }
    }

    /// What may wait at a port in all, where `limit` is that of its queue.
    pub(crate) fn limit_in_all(&self, limit: Limit) -> Limit {
        match self {
            QueueSpec::SelectiveRed(spec) if spec.form == selective_red::Form::TwoQueues => {
                Limit::Unlimited
            }
            _ => limit,
        }
    }

    /// The discipline of the hosts' interfaces.
    pub(crate) fn discipline_of_hosts(&self) -> Discipline {
        match self {
            QueueSpec::Ecn(spec) if spec.hosts => Discipline::Ecn(spec.threshold),
            _ => Discipline::DropTail,
        }
    }

    /// The discipline of port number `port`, which holds `limit`.
    pub(crate) fn discipline(&self, port: u32, limit: Limit, seed: u64) -> Discipline {
        match self {
            // A queue that is scheduled at departure hands its port one packet at a time.
            QueueSpec::DropTail(_) | QueueSpec::Pfabric(_) => Discipline::DropTail,
            QueueSpec::Ecn(spec) => Discipline::Ecn(spec.threshold),
            QueueSpec::Red(spec) => {
                let stream = Stream::new(seed, u64::from(port), "red");
                Discipline::Red(Box::new(red::RedState::new(spec, stream)))
            }
            QueueSpec::SelectiveRed(spec) => {
                let stream = Stream::new(seed, u64::from(port), "red");
                let state = selective_red::SelectiveState::new(spec, limit, stream);
                Discipline::SelectiveRed(Box::new(state))
            }
        }
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

/// The part of a discipline that has state at each port.
#[derive(Debug, Clone)]
pub(crate) enum Discipline {
    DropTail,
    Ecn(Amount),
    Red(Box<red::RedState>),
    SelectiveRed(Box<selective_red::SelectiveState>),
}

impl Discipline {
    /// Fewest waiting packets at which it may do anything but accept; none when it must see every packet.
    pub fn acts_from(&self) -> Option<u32> {
        match self {
            Discipline::DropTail => Some(u32::MAX),
            Discipline::Ecn(Amount::Packets(k)) => Some(*k),
            Discipline::Ecn(Amount::Bytes(_)) => Some(0),
            Discipline::Red(_) | Discipline::SelectiveRed(_) => None,
        }
    }

    pub fn admit(&mut self, arrival: &Arrival) -> Verdict {
        match self {
            Discipline::DropTail => Verdict::Accept,
            Discipline::Ecn(threshold) => ecn::admit(*threshold, arrival),
            Discipline::Red(red) => red.admit(arrival),
            Discipline::SelectiveRed(selective) => selective.admit(arrival),
        }
    }

    /// True when it must know what marked packets wait, for an arrival that is marked itself or not.
    pub fn counts_marked(&self, marked: bool) -> bool {
        matches!(self, Discipline::SelectiveRed(selective) if marked || selective.separates())
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
