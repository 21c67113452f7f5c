//! Looking at a run while it goes on: how far it is, which queues are long, which flows are over.

use std::ops::ControlFlow;

use crate::measure::records::FlowRecord;
use crate::scenario::Progress;
use crate::topology::PortId;

/// Is shown a run every so many events.
pub trait RunWatcher {
    /// Events between two looks, at least one. Timers alone must be stoppable, so that packets are
    /// not what counts.
    fn interval_events(&self) -> u64 {
        1 << 20
    }

    /// A look at the run; to break off ends it.
    fn on_interval(&mut self, progress: &Progress, run: &mut dyn RunView) -> ControlFlow<()>;
}

/// A read-only view of a run. Watching changes no result: the run yields the same tables.
pub trait RunView {
    /// Packets that wait at a directed link, without the one that is being sent.
    fn queue(&mut self, port: PortId) -> u32;

    /// Returns the number of flows in the scenario.
    fn flows(&self) -> usize;

    /// Returns the record of a flow, by its index in the scenario.
    fn flow(&self, index: usize) -> FlowRecord;
}

/// Whoever only wants to know how far a run is.
impl<F: FnMut(&Progress) -> ControlFlow<()>> RunWatcher for F {
    fn on_interval(&mut self, progress: &Progress, _run: &mut dyn RunView) -> ControlFlow<()> {
        self(progress)
    }
}
