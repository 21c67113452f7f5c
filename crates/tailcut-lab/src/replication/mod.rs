//! Replication of flows, by `repnet`; the lab's own sockets carry the flows of experiments that
//! replicate none.
//!
//! Where an experiment replicates flows, repnet carries those of the baselines, too. A new way to
//! replicate is a file here and a line in `MODES`.

mod repflow;
mod repsyn;

use tailcut_engine::{Bytes, Time};
use tailcut_net::replicate::ReplicateSpec;

use crate::answers::RunCheck;
use crate::host_settings::Replication;

/// A way to replicate flows that repnet supports.
trait RepnetMode: Sync {
    /// Repnet's name of the mode.
    fn name(&self) -> &'static str;
    /// Checks a plan's replication in a run of `flows` flows, and returns its copies; none if the
    /// plan has another.
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &ReplicateSpec,
        flows: usize,
    ) -> Option<CopySettings>;
    /// Whether the kernel chooses the source ports of racing connections.
    fn kernel_chooses_ports(&self) -> bool {
        false
    }
}

/// The settings that all modes share.
struct CopySettings {
    threshold: Bytes,
    copies: u32,
    delay: Time,
}

/// All modes.
const MODES: [&dyn RepnetMode; 2] = [&repflow::Repflow, &repsyn::Repsyn];

/// The most hosts with repnet, which takes a Node process each.
pub const MAX_NODE_HOSTS: u32 = 64;

/// Checks the plan's replication. `by_repnet`: whether `repnet-bench` carries all schemes of the
/// experiment.
pub(crate) fn check(checked: &mut RunCheck, spec: &ReplicateSpec, by_repnet: bool, flows: usize) {
    let found = match spec {
        ReplicateSpec::None if !by_repnet => {
            return checked.done("replicate.kind", "one connection per flow");
        }
        ReplicateSpec::None => {
            checked.done(
                "replicate.kind",
                "one connection per flow, over node:net, by the program that carries the other \
                 schemes",
            );
            Some(("net", false, CopySettings { threshold: Bytes(0), copies: 2, delay: Time::ZERO }))
        }
        _ => MODES.iter().find_map(|mode| {
            let copies = mode.check(checked, spec, flows)?;
            Some((mode.name(), mode.kernel_chooses_ports(), copies))
        }),
    };
    let Some((mode, kernel_chooses_ports, CopySettings { threshold, copies, delay })) = found
    else {
        return checked.fatal(
            "replicate.kind",
            "the lab replicates with repnet, which supports kinds \"repflow\" and \"repsyn\" only",
        );
    };
    checked.done_or_fatal(
        copies == 2,
        "replicate.copies",
        "two",
        format!("{copies}: repnet makes two copies; write copies = 2"),
    );
    checked.done_or_fatal(
        checked.hosts.closes,
        "transport.close",
        "after the last byte, in a separate packet",
        "a replicated flow ends when its connection closes: write transport.close = \"fin\"",
    );
    checked.near(
        "flows",
        "one Node process per host: retransmissions are not reported, and a flow counts as \
         acknowledged when its receiver closes the connection",
    );
    checked.done("replicate.threshold", "longer flows use one connection");
    checked.done("replicate.copy_delay", "repnet delays the second copy by this time");
    checked.needs("repnet-bench", "replicate");
    let (threshold, copy_delay_ns) = (threshold.0, delay.as_ns());
    checked.hosts.repnet =
        Some(Replication { mode, threshold, copy_delay_ns, kernel_chooses_ports });
}
