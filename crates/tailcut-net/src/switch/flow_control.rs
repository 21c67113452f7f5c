//! Flow control from hop to hop: a link stops while the switch that it leads to holds too much of
//! what came by it, so that nothing has to be dropped.
//!
//! A kind of flow control says how much is too much, and what it takes to say so. Everything else
//! is the same for all and is the fabric's: it counts what came by each link and waits, sends
//! frames back along the link, stops its near end after the packet that is being sent, and finds
//! the links that wait for each other.

use std::fmt::Debug;

use crate::component::SpecError;

/// The parameters of a kind.
pub trait FlowControl: Debug + Send + Sync {
    /// Checks them.
    ///
    /// # Errors
    /// When a link would not go on, or not stop.
    fn check(&self) -> Result<(), SpecError>;
    /// Returns the names for error messages.
    fn said(&self) -> FlowControlNames;
    /// Whether a link stops of whose packets so many bytes wait at its far end. The fabric asks for
    /// one that was not told to stop before (`stopped`) when one packet more waits, and for one
    /// that was when one less does. What stops a link also keeps it stopped.
    fn should_pause(&self, held: u64, stopped: bool) -> bool;
    /// Bytes on the wire of what tells a link to stop or to go on.
    fn frame(&self) -> u16;
}

/// The names of a kind of flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowControlNames {
    /// The key in the section `switch`.
    pub key: &'static str,
    /// The code of the error where the ports of a switch share memory.
    pub shared_memory: &'static str,
    /// The code of the error where queues go by more than what waits.
    pub queue: &'static str,
}
