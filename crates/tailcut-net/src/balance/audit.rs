//! What switches guess about flows, held against what hosts know of them.

use tailcut_engine::Time;

use crate::packet::{ConnectionId, FlowKey};
use crate::traffic::FlowIndex;

/// A flow, as its hosts know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditedFlow {
    /// Its number in the run.
    pub flow: FlowIndex,
    pub bytes: u64,
    pub start: Time,
    /// Links between its hosts.
    pub links: u8,
}

/// A strategy whose guesses are counted.
pub(crate) trait Audit {
    /// Judges what was guessed since the last call. `known` tells of a packet's connection and key whose they are; none
    /// when that connection is over.
    fn settle(&mut self, known: &dyn Fn(ConnectionId, FlowKey) -> Option<AuditedFlow>);

    /// What the guesses of a whole run were worth, as numbers with the names that they have in the results. `flows` are
    /// those of the run.
    fn totals(&self, flows: &mut dyn Iterator<Item = AuditedFlow>) -> Vec<(&'static str, u64)>;
}
