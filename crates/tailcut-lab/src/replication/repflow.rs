//! RepFlow: repnet's mode `flow`.

use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::Loser;

use super::{Copies, Mode};
use crate::settings::Checked;

pub(super) struct Repflow;

impl Mode for Repflow {
    fn name(&self) -> &'static str {
        "flow"
    }
    fn check(&self, checked: &mut Checked, spec: &ReplicateSpec, _flows: usize) -> Option<Copies> {
        let ReplicateSpec::Repflow(spec) = spec else { return None };
        checked.only(
            spec.loser == Loser::Reset,
            "replicate.loser",
            "the copy that lost is reset",
            "repnet resets or ends the copy that lost: write loser = \"reset\"",
        );
        checked.near(
            "replicate.kind",
            "repnet, mode flow: 76 bytes before the second copy's, 10 for each of its records and 24 back; it gives a connection up after 1 s",
        );
        Some(Copies { threshold: spec.threshold, copies: spec.copies, delay: spec.copy_delay })
    }
}
