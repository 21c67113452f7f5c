//! What TinyFlow's switches took for elephants, against what is known of the flows.

use super::Network;
use crate::measure::records::Elephants;
use crate::measure::Observer;

impl<O: Observer> Network<'_, O> {
    /// Looks up whose packets were taken for an elephant's, while their connections are still there.
    pub(super) fn note_elephants(&mut self) {
        let Some(tinyflow) = self.fabric.tinyflow() else { return };
        let least = tinyflow.elephant().0;
        let elephants = self.counters.elephants.get_or_insert_default();
        elephants.reroutes = tinyflow.reroutes;
        for detection in tinyflow.news.drain(..) {
            let connection = &self.connections[detection.connection as usize];
            let ours = [connection.key, connection.key.reversed()].contains(&detection.key);
            if !ours || !connection.live {
                continue;
            }
            let state = &mut self.flows[connection.flow as usize];
            if detection.acks {
                elephants.ack_streams += 1;
            } else if state.flow.bytes < least {
                elephants.mistaken += 1;
            } else if !state.detected {
                state.detected = true;
                elephants.found += 1;
                elephants.detection_time += detection.at - state.flow.start;
            }
        }
    }

    /// The elephants of the whole run. Only flows that leave their edge switch have paths to choose from.
    pub(super) fn count_elephants(&mut self) -> Option<Elephants> {
        let least = self.fabric.tinyflow()?.elephant().0;
        self.note_elephants();
        let missed = self.flows[..self.next_flow]
            .iter()
            .filter(|state| state.flow.bytes >= least && state.hops > 2 && !state.detected);
        let elephants = self.counters.elephants.unwrap_or_default();
        Some(Elephants { missed: missed.count() as u64, ..elephants })
    }
}
