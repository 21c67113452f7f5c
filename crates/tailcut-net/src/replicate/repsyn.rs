//! RepSYN (Liu, Bai, Xu, Chen, Cai, RepNet): several SYNs on other paths, data only
//! on the connection that is established first; the others are reset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use super::machine::{
    PolicyAction, PolicyEvent, ReceiverAction, Receiving, Replicate, ReplicationPlan, Sending,
};
use super::{Policy, check_copies};
use crate::component::SpecError;

/// Parameters of RepSYN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepSyn {
    /// Flows of at most this size are replicated (RepNet: 100 KB).
    pub threshold: Bytes,
    /// Connections opened per replicated flow, the original included.
    pub copies: u32,
    /// Delay of each further SYN.
    pub copy_delay: Time,
}

impl Default for RepSyn {
    fn default() -> Self {
        RepSyn { threshold: Bytes(100_000), copies: 2, copy_delay: Time::ZERO }
    }
}

impl Policy for RepSyn {
    fn check(&self) -> Result<(), SpecError> {
        check_copies(self.threshold, self.copies, self.copy_delay)
    }

    fn replication_plan(&self, bytes: u64) -> ReplicationPlan {
        if bytes > self.threshold.0 {
            return ReplicationPlan::SINGLE;
        }
        ReplicationPlan { all_send: false, ..ReplicationPlan::copied(self.copies, self.copy_delay) }
    }

    fn instantiate(&self, _: u32) -> Box<dyn Replicate> {
        Box::new(self.clone())
    }
}

impl Replicate for RepSyn {
    fn on_event(
        &mut self,
        event: PolicyEvent,
        mut view: Sending<'_>,
        actions: &mut Vec<PolicyAction>,
    ) {
        match event {
            PolicyEvent::Started => {
                self.replication_plan(view.flow.bytes).open_all(&mut view, actions)
            }
            PolicyEvent::Established { copy } => {
                if !std::mem::replace(&mut view.sent.established, true) {
                    actions.push(PolicyAction::AbandonOthers { but: copy });
                }
            }
            event => drop(view.first_wins_and_abandons(event, actions)),
        }
    }

    fn received(&self, copy: u8, mut view: Receiving<'_>, answers: &mut Vec<ReceiverAction>) {
        view.first_wins_and_resets(copy, answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicate::machine::Script;
    use PolicyAction::AbandonOthers;
    use PolicyEvent::{Established, Started};

    #[test]
    fn the_first_connection_to_be_established_is_the_only_one_that_goes_on() {
        let mut script = Script::new(&RepSyn { copies: 3, ..RepSyn::default() }, 5_000);
        let opened = [script.open(0, 0), script.open(1, 0), script.open(2, 0)];
        assert_eq!(script.at(0, Started), opened);
        assert_eq!(script.at(30, Established { copy: 2 }), [AbandonOthers { but: 2 }]);
        assert_eq!(script.at(31, Established { copy: 0 }), [], "it was too late to be stopped");
    }
}
