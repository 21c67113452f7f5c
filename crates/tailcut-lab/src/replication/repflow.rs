//! RepFlow: repnet's mode `flow`.

use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::Loser;

use super::{CopySettings, RepnetMode};
use crate::answers::RunCheck;

pub(super) struct Repflow;

impl RepnetMode for Repflow {
    fn name(&self) -> &'static str {
        "flow"
    }
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &ReplicateSpec,
        _flows: usize,
    ) -> Option<CopySettings> {
        let ReplicateSpec::Repflow(spec) = spec else { return None };
        checked.done_or_fatal(
            spec.loser == Loser::Reset,
            "replicate.loser",
            "the copy that lost is reset",
            "repnet resets or ends the copy that lost: write loser = \"reset\"",
        );
        checked.near(
            "replicate.kind",
            "repnet, mode flow: 76 bytes before the second copy's, 10 for each of its records and 24 back; it gives a connection up after 1 s",
        );
        Some(CopySettings {
            threshold: spec.threshold,
            copies: spec.copies,
            delay: spec.copy_delay,
        })
    }
}
