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
            "repnet resets the copy that lost",
            "repnet resets the copy that lost: write loser = \"reset\"",
        );
        checked.near(
            "replicate.kind",
            "repnet, mode flow: 76 bytes precede the second copy's data, each of its records takes \
             10 more, and 24 bytes go back; a connection attempt is given up after 1 s",
        );
        Some(CopySettings {
            threshold: spec.threshold,
            copies: spec.copies,
            delay: spec.copy_delay,
        })
    }
}
