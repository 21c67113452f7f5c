//! RepFlow (Xu and Li, INFOCOM 2014): every flow up to a threshold is carried
//! whole by further connections with other destination ports, so that ECMP
//! sends the copies over other paths; the flow ends when the first copy ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::machine::{
    PolicyAction, PolicyEvent, ReceiverAction, Receiving, Replicate, ReplicationPlan, Sending,
};
use super::{Policy, check_copies};
use crate::component::SpecError;

/// Parameters of RepFlow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepFlow {
    /// Flows of at most this size are replicated (RepFlow III-A: 100 KB).
    pub threshold: Bytes,
    /// Connections per replicated flow, the original included.
    pub copies: u32,
    /// Delay of each further copy (RepFlow's Mininet: about 1 ms).
    pub copy_delay: Time,
    /// Fate of the copies that lost.
    pub loser: Loser,
}

/// The fate of a flow's slower connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loser {
    /// The receiver resets it; the reset travels as a packet.
    Reset,
    /// They finish.
    Finish,
}

impl Default for RepFlow {
    fn default() -> Self {
        RepFlow {
            threshold: Bytes(100_000),
            copies: 2,
            copy_delay: Time::ZERO,
            loser: Loser::Reset,
        }
    }
}

impl Policy for RepFlow {
    fn check(&self) -> Result<(), SpecError> {
        check_copies(self.threshold, self.copies, self.copy_delay)
    }

    fn replication_plan(&self, bytes: u64) -> ReplicationPlan {
        if bytes > self.threshold.0 {
            return ReplicationPlan::SINGLE;
        }
        ReplicationPlan::copied(self.copies, self.copy_delay)
    }

    fn instantiate(&self, _: u32) -> Box<dyn Replicate> {
        Box::new(self.clone())
    }
}

impl Replicate for RepFlow {
    fn on_event(
        &mut self,
        event: PolicyEvent,
        mut view: Sending<'_>,
        actions: &mut Vec<PolicyAction>,
    ) {
        match (event, self.loser) {
            (PolicyEvent::Started, _) => {
                self.replication_plan(view.flow.bytes).open_all(&mut view, actions);
            }
            (event, Loser::Reset) => drop(view.first_wins_and_abandons(event, actions)),
            (event, Loser::Finish) => drop(view.first_wins(event, actions)),
        }
    }

    fn received(&self, copy: u8, mut view: Receiving<'_>, answers: &mut Vec<ReceiverAction>) {
        match self.loser {
            Loser::Reset => view.first_wins_and_resets(copy, answers),
            Loser::Finish => drop(view.first_wins(copy, answers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicate::machine::Script;
    use PolicyAction::{AbandonOthers, Confirm};
    use PolicyEvent::{Acknowledged, Started};
    use ReceiverAction::{Finish, ResetOthers};

    #[test]
    fn every_copy_opens_its_delay_after_the_one_before() {
        let spec = RepFlow { copies: 3, copy_delay: Time::from_us(40), ..RepFlow::default() };
        let mut script = Script::new(&spec, 100_000);
        let opened = [script.open(0, 7), script.open(1, 47), script.open(2, 87)];
        assert_eq!(script.at(7, Started), opened);
    }

    #[test]
    fn a_flow_above_the_threshold_is_alone() {
        let mut script = Script::new(&RepFlow::default(), 100_001);
        assert_eq!(script.at(0, Started), [script.open(0, 0)]);
    }

    #[test]
    fn the_first_copy_to_arrive_ends_the_flow_and_the_others_are_reset_at_both_ends() {
        let mut script = Script::new(&RepFlow::default(), 5_000);
        script.at(0, Started);
        let won = [Finish { copy: 1 }, ResetOthers { but: 1 }];
        assert_eq!(script.received(1), won);
        assert_eq!(script.received(0), []);
        assert_eq!(script.at(60, Acknowledged { copy: 0, first: false }), []);
        let known = [Confirm, AbandonOthers { but: 1 }];
        assert_eq!(script.at(70, Acknowledged { copy: 1, first: true }), known);
    }

    #[test]
    fn losers_that_may_finish_are_left_alone() {
        let mut script =
            Script::new(&RepFlow { loser: Loser::Finish, ..Default::default() }, 5_000);
        script.at(0, Started);
        assert_eq!(script.received(0), [Finish { copy: 0 }]);
        assert_eq!(script.at(70, Acknowledged { copy: 0, first: true }), [Confirm]);
    }
}
