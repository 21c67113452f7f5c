//! Splitting in the application (an alternative design of TinyFlow, section III-C): a large flow is
//! sent as a sequence of small ones, one after another, each with a source port of its own, so that
//! ECMP gives each its own path without any change to switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Bytes;

use super::Policy;
use super::machine::{
    OpenConnection, PolicyAction, PolicyEvent, ReceiverAction, Receiving, Replicate,
    ReplicationPlan, Sending,
};
use crate::component::SpecError;

/// Parameters of splitting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Split {
    /// Larger flows than this are split: the application knows how much it will send.
    pub threshold: Bytes,
    /// Bytes of each piece (TinyFlow: 10 KB).
    pub piece: Bytes,
}

impl Default for Split {
    fn default() -> Self {
        Split { threshold: Bytes(100_000), piece: Bytes(10_000) }
    }
}

impl Policy for Split {
    fn check(&self) -> Result<(), SpecError> {
        if self.piece == Bytes(0) {
            let message = "piece = \"0B\": a piece carries at least a byte";
            return Err(SpecError::new("split-piece", "piece", message));
        }
        if self.piece > self.threshold {
            let message = format!(
                "piece = \"{}\" is more than threshold = \"{}\": some flows would be split into one piece",
                self.piece, self.threshold
            );
            return Err(SpecError::new("split-piece", "piece", message)
                .hint("write a threshold of at least one piece"));
        }
        Ok(())
    }

    fn replication_plan(&self, bytes: u64) -> ReplicationPlan {
        let piece = (bytes > self.threshold.0).then_some(self.piece.0);
        ReplicationPlan { piece, ..ReplicationPlan::SINGLE }
    }

    fn instantiate(&self, _: u32) -> Box<dyn Replicate> {
        Box::new(self.clone())
    }
}

impl Split {
    fn open_piece(&self, view: &mut Sending<'_>, actions: &mut Vec<PolicyAction>) {
        let from = view.sent.handed;
        let bytes = self.piece.0.min(view.flow.bytes - from);
        let piece = from / self.piece.0;
        view.sent.handed += bytes;
        actions.push(PolicyAction::Open(OpenConnection {
            copy: 0,
            piece,
            from,
            bytes,
            at: view.now,
        }));
    }
}

impl Replicate for Split {
    fn on_event(
        &mut self,
        event: PolicyEvent,
        mut view: Sending<'_>,
        actions: &mut Vec<PolicyAction>,
    ) {
        match event {
            PolicyEvent::Started if view.flow.bytes > self.threshold.0 => {
                self.open_piece(&mut view, actions);
            }
            PolicyEvent::Started => view.open_whole(0, view.now, actions),
            PolicyEvent::Acknowledged { .. } if view.sent.handed < view.flow.bytes => {
                self.open_piece(&mut view, actions);
            }
            event => drop(view.first_wins(event, actions)),
        }
    }

    fn received(&self, copy: u8, mut view: Receiving<'_>, answers: &mut Vec<ReceiverAction>) {
        view.arrived.connections += 1;
        let whole = view.flow.bytes <= self.threshold.0;
        if whole || view.arrived.connections * self.piece.0 >= view.flow.bytes {
            view.first_wins(copy, answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicate::machine::Script;
    use PolicyAction::Confirm;
    use PolicyEvent::{Acknowledged, Started};
    use ReceiverAction::Finish;
    use tailcut_engine::Time;

    fn piece(piece: u64, from: u64, bytes: u64, us: u64) -> PolicyAction {
        PolicyAction::Open(OpenConnection { copy: 0, piece, from, bytes, at: Time::from_us(us) })
    }

    #[test]
    fn a_piece_opens_when_the_one_before_is_acknowledged_and_the_last_one_ends_the_flow() {
        let spec = Split { threshold: Bytes(20_000), piece: Bytes(10_000) };
        let mut script = Script::new(&spec, 25_000);
        assert_eq!(script.at(0, Started), [piece(0, 0, 10_000, 0)]);
        assert_eq!(script.received(0), []);
        assert_eq!(
            script.at(6, Acknowledged { copy: 0, first: true }),
            [piece(1, 10_000, 10_000, 6)]
        );
        assert_eq!(script.received(0), []);
        assert_eq!(
            script.at(9, Acknowledged { copy: 0, first: true }),
            [piece(2, 20_000, 5_000, 9)]
        );
        assert_eq!(script.received(0), [Finish { copy: 0 }]);
        assert_eq!(script.at(12, Acknowledged { copy: 0, first: true }), [Confirm]);
    }

    #[test]
    fn a_flow_up_to_the_threshold_stays_whole() {
        let mut script = Script::new(&Split::default(), 100_000);
        assert_eq!(script.at(0, Started), [script.open(0, 0)]);
    }
}
