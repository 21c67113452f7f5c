//! The audit of what switches guess about flows against what hosts know.

use tailcut_engine::Time;

use crate::packet::{ConnectionId, FlowKey};
use crate::traffic::FlowIndex;

/// A flow as its hosts know it.
#[derive(Debug, Clone, Copy)]
pub struct AuditedFlow {
    /// Index in the scenario.
    pub flow: FlowIndex,
    /// Size in bytes.
    pub bytes: u64,
    /// When it starts.
    pub start: Time,
    /// Number of links between its hosts.
    pub links: u8,
}

/// A strategy whose guesses are audited.
pub trait Audit {
    /// Judges the guesses since the last call. `known` returns the flow of a packet's connection
    /// and key, or `None` if that connection is over.
    fn settle(&mut self, known: &dyn Fn(ConnectionId, FlowKey) -> Option<AuditedFlow>);

    /// Returns the totals of a run, each with its name in the results. `flows` are all flows of the
    /// run.
    fn totals(&self, flows: &mut dyn Iterator<Item = AuditedFlow>) -> Vec<(&'static str, u64)>;
}
