//! RepSYN: repnet's mode `syn`.

use tailcut_net::replicate::ReplicateSpec;

use super::{CopySettings, RepnetMode};
use crate::answers::RunCheck;

/// The most flows beside ports that the kernel chooses: ephemeral ports begin above them
/// (`ip_local_port_range`).
const MAX_RACING: usize = 31_000;

pub(super) struct Repsyn;

impl RepnetMode for Repsyn {
    fn name(&self) -> &'static str {
        "syn"
    }
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &ReplicateSpec,
        flows: usize,
    ) -> Option<CopySettings> {
        let ReplicateSpec::Repsyn(spec) = spec else { return None };
        checked.done_or_fatal(
            flows <= MAX_RACING,
            "replicate",
            "ports that the kernel chooses belong to no other flow",
            format!(
                "{flows} flows: beside the ports that the kernel chooses there is room for \
                     {MAX_RACING}"
            ),
        );
        checked.near(
            "replicate.kind",
            "repnet, mode syn: 76 bytes precede a short flow's data; the kernel chooses its source \
             ports, so paths have the simulator's distribution, but differ flow by flow; a \
             connection attempt is given up after 1 s",
        );
        Some(CopySettings {
            threshold: spec.threshold,
            copies: spec.copies,
            delay: spec.copy_delay,
        })
    }
    fn kernel_chooses_ports(&self) -> bool {
        true
    }
}
