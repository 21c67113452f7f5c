//! What switches have guessed of flows, against what is known of them.

use super::{FlowState, Network};
use crate::balance::audit::Known;
use crate::measure::Observer;

fn known(flow: u32, state: &FlowState) -> Known {
    Known { flow, bytes: state.flow.bytes, start: state.flow.start, links: state.hops }
}

impl<O: Observer> Network<'_, O> {
    /// Looks up whose packets the guesses were about, while their connections are still there.
    pub(super) fn settle(&mut self) {
        let Some(audit) = self.fabric.audit() else { return };
        let (connections, flows) = (&self.connections, &self.flows);
        audit.settle(&|connection, key| {
            let connection = &connections[connection as usize];
            let ours = [connection.key, connection.key.reversed()].contains(&key);
            let flow = connection.flow;
            (ours && connection.live).then(|| known(flow, &flows[flow as usize]))
        });
    }

    /// The guesses of the whole run.
    pub(super) fn audit(&mut self) -> Vec<(&'static str, u64)> {
        self.settle();
        let Some(audit) = self.fabric.audit() else { return vec![] };
        let started = self.flows[..self.next_flow].iter().enumerate();
        audit.totals(&mut started.map(|(flow, state)| known(flow as u32, state)))
    }
}
