//! Who carries the flows: the lab's own sockets, or `repnet` where a plan replicates flows, and then whatever is compared with it, too.
//! A way to replicate that repnet knows is a file, and a line in [`MODES`].

mod repflow;
mod repsyn;

use tailcut_engine::{Bytes, Time};
use tailcut_net::replicate::ReplicateSpec;

use crate::answers::RunCheck;
use crate::host_settings::Replication;

/// A way to replicate that repnet knows.
trait RepnetMode: Sync {
    /// As repnet calls it.
    fn name(&self) -> &'static str;
    /// What becomes of a plan's in a run of so many flows, if it is this one.
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &ReplicateSpec,
        flows: usize,
    ) -> Option<CopySettings>;
    /// Whether connections take part from source ports of the kernel's choice.
    fn kernel_chooses_ports(&self) -> bool {
        false
    }
}

/// What all of them have.
struct CopySettings {
    threshold: Bytes,
    copies: u32,
    delay: Time,
}

/// All of them.
const MODES: [&dyn RepnetMode; 2] = [&repflow::Repflow, &repsyn::Repsyn];

/// A Node process for each host.
pub const MAX_NODE_HOSTS: u32 = 64;

/// `by_repnet`: `repnet-bench` carries whatever the experiment compares.
pub(crate) fn check(checked: &mut RunCheck, spec: &ReplicateSpec, by_repnet: bool, flows: usize) {
    let found = match spec {
        ReplicateSpec::None if !by_repnet => {
            return checked.done("replicate.kind", "one connection for each flow");
        }
        ReplicateSpec::None => {
            checked.done(
                "replicate.kind",
                "one connection, by node:net and the same program as the other schemes",
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
            "the lab replicates by repnet, which knows RepFlow and RepSYN",
        );
    };
    checked.done_or_fatal(
        copies == 2,
        "replicate.copies",
        "two",
        format!("{copies}: repnet makes two"),
    );
    checked.done_or_fatal(
        checked.hosts.closes,
        "transport.close",
        "after the last byte, by a packet of its own",
        "receivers know a replicated flow's end by the end of its connection: write close = \"fin\"",
    );
    checked.near(
        "flows",
        "a Node process for each host; it does not tell what was sent again, and a flow is acknowledged when its receiver has ended the connection",
    );
    checked.done("replicate.threshold", "longer flows have one connection");
    checked.done("replicate.copy_delay", "repnet waits as long before the second copy");
    checked.needs("repnet-bench", "replicate");
    let (threshold, copy_delay_ns) = (threshold.0, delay.as_ns());
    checked.hosts.repnet =
        Some(Replication { mode, threshold, copy_delay_ns, kernel_chooses_ports });
}
