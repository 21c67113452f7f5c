//! Choice of the interface by which a host with several sends a packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use crate::component::SpecError;
use crate::registry::registry;
use crate::topology::{Attachment, Graph};

/// The parameters of a choice.
pub trait ChooseInterface {
    /// Returns the choice that senders make.
    fn choice(&self) -> InterfaceChoice;
    /// Returns the delay from a failure or a repair until senders choose by it; `None` for that of
    /// routing.
    fn detection(&self) -> Option<Time> {
        None
    }
}

/// How a sender chooses among the interfaces that reach the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceChoice {
    /// By a hash of the five-tuple. In servers of accelerators, each sends by its own interface.
    Flow,
    /// The interface that is free first, in turn among equal ones.
    Packet,
    /// By the interface of the sender's server that is on the receiver's rail.
    Rail,
}

impl InterfaceChoice {
    /// Returns how many interfaces of a host carry the packets of one connection side by side.
    pub fn width(self, attachment: Attachment) -> u32 {
        match (attachment, self) {
            (Attachment::Planes { planes }, InterfaceChoice::Packet) => planes,
            _ => 1,
        }
    }
}

/// Parameters of the choice by flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByFlow {
    /// From a failure or a repair until senders choose by it; as long as `faults.reconvergence`
    /// when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<Time>,
}

impl ChooseInterface for ByFlow {
    fn choice(&self) -> InterfaceChoice {
        InterfaceChoice::Flow
    }
    fn detection(&self) -> Option<Time> {
        self.detection
    }
}

/// Parameters of the choice by packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByPacket {
    /// From a failure or a repair until senders choose by it; as long as `faults.reconvergence`
    /// when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<Time>,
}

impl ChooseInterface for ByPacket {
    fn choice(&self) -> InterfaceChoice {
        InterfaceChoice::Packet
    }
    fn detection(&self) -> Option<Time> {
        self.detection
    }
}

/// Parameters of the choice by rail: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByRail {}

impl ChooseInterface for ByRail {
    fn choice(&self) -> InterfaceChoice {
        InterfaceChoice::Rail
    }
}

registry! {
    /// Choice of the interface by which a host with several sends a packet.
    pub enum InterfaceSpec: ChooseInterface {
        /// A hash of the five-tuple picks a flow's plane; on rails, hosts use their own.
        ByFlow(ByFlow),
        /// Every packet takes the interface that is free first, in turn among equal ones.
        ByPacket(ByPacket),
        /// Packets first cross the server to the interface of the receiver's rail (PXN).
        ByRail(ByRail),
    }
}

impl Default for InterfaceSpec {
    fn default() -> Self {
        InterfaceSpec::ByFlow(ByFlow::default())
    }
}

/// The longest delay of detection: longer ones are taken for a wrong unit.
const LONGEST_DETECTION: Time = Time::from_ms(10_000);

impl InterfaceSpec {
    /// Returns whether all packets of a connection leave by one interface.
    pub fn is_per_connection(&self) -> bool {
        self.choice() != InterfaceChoice::Packet
    }

    /// Returns how many interfaces of a host carry the packets of one connection side by side.
    pub fn width(&self, graph: &Graph) -> u32 {
        self.choice().width(graph.attachment)
    }

    /// Returns whether nothing is said of interfaces.
    pub fn is_default(&self) -> bool {
        *self == InterfaceSpec::default()
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Refuses a delay of detection that is too long.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.detection().filter(|detection| *detection > LONGEST_DETECTION) {
            None => Ok(()),
            Some(detection) => {
                let message = format!("detection = \"{detection}\": at most {LONGEST_DETECTION}");
                Err(SpecError::new("interface-detection", "detection", message))
            }
        }
    }

    /// Checks the choice against a network.
    ///
    /// # Errors
    /// Refuses a choice that hosts of this network do not have.
    pub fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let (message, hint) = match (graph.attachment, self) {
            (Attachment::Single, _) if !self.is_default() => (
                "the hosts of this topology have one interface each",
                "leave out interface, or write topology.kind = \"multi-plane\" or \"rail-optimised\"",
            ),
            (Attachment::Planes { .. }, InterfaceSpec::ByRail(_)) => (
                "planes are no rails: each interface reaches every host in its own plane",
                "write kind = \"by-flow\" or \"by-packet\"",
            ),
            (Attachment::Rails { .. }, InterfaceSpec::ByPacket(_)) => (
                "an interface of a rail-optimised server belongs to one accelerator, so that packets cannot take turns",
                "write kind = \"by-flow\" (its own interface) or \"by-rail\" (the receiver's rail)",
            ),
            (Attachment::Rails { .. }, InterfaceSpec::ByFlow(ByFlow { detection: Some(_) })) => (
                "an accelerator of a rail-optimised server has one interface and cannot avoid a failed one",
                "leave out detection",
            ),
            _ => return Ok(()),
        };
        Err(SpecError::new("interface-topology", "kind", message).hint(hint))
    }
}
