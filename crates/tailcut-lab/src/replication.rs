//! Who carries the flows: the lab's own sockets, or `repnet` where a plan replicates flows, and then whatever is compared with it, too.

use serde::Serialize;
use tailcut_engine::Time;
use tailcut_net::replicate::repflow::Loser;
use tailcut_net::replicate::ReplicateSpec;

use crate::settings::Checked;

/// How `repnet-bench` carries flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replication {
    /// Its mode: `net`, `syn` or `flow`.
    pub mode: &'static str,
    /// Longer flows are not replicated.
    pub threshold: u64,
    /// By how much the second copy starts later.
    pub copy_delay_ns: u64,
}

impl Replication {
    /// Whether the kernel chooses the source port of a flow of so many bytes: RepSYN takes part from two of its choice.
    pub fn chooses_port(&self, bytes: u64) -> bool {
        self.mode == "syn" && bytes <= self.threshold
    }
}

/// Where the kernel chooses ports they begin here (`ip_local_port_range`), beyond those of so many flows.
const MOST_RACING: usize = 31_000;
/// A Node process for each host.
pub const MOST_NODES: u32 = 64;

/// `by_repnet`: `repnet-bench` carries whatever the experiment compares.
pub(crate) fn check(checked: &mut Checked, spec: &ReplicateSpec, by_repnet: bool, flows: usize) {
    let (mode, how, threshold, copies, delay) = match spec {
        ReplicateSpec::None if !by_repnet => {
            return checked.done("replicate.kind", "one connection for each flow");
        }
        ReplicateSpec::None => ("net", "", 0, 2, Time::ZERO),
        ReplicateSpec::Repflow(spec) => {
            checked.only(
                spec.loser == Loser::Reset,
                "replicate.loser",
                "the copy that lost is reset",
                "repnet resets or ends the copy that lost: write loser = \"reset\"",
            );
            let how = "repnet, mode flow: 76 bytes before the second copy's, 10 for each of its records and 24 back; it gives a connection up \
                 after 1 s";
            ("flow", how, spec.threshold.0, spec.copies, spec.copy_delay)
        }
        ReplicateSpec::Repsyn(spec) => {
            checked.only(
                flows <= MOST_RACING,
                "replicate",
                "where the kernel chooses ports they are no other flow's",
                format!("{flows} flows: beside ports that the kernel chooses there is room for {MOST_RACING}"),
            );
            let how = "repnet, mode syn: 76 bytes before a short flow's, from source ports that the kernel chooses, so that only their distribution \
                 is the simulator's; it gives connections up after 1 s";
            ("syn", how, spec.threshold.0, spec.copies, spec.copy_delay)
        }
        _ => {
            return checked.fatal(
                "replicate.kind",
                "the lab replicates by repnet, which knows RepFlow and RepSYN",
            );
        }
    };
    match mode {
        "net" => checked.done(
            "replicate.kind",
            "one connection, by node:net and the same program as the other schemes",
        ),
        _ => checked.near("replicate.kind", how),
    }
    checked.only(copies == 2, "replicate.copies", "two", format!("{copies}: repnet makes two"));
    checked.only(
        checked.hosts.closes,
        "transport.close",
        "after the last byte, by a packet of its own",
        "receivers know a replicated flow's end by the end of its connection: write close = \"fin\"",
    );
    let hosts = "a Node process for each host";
    checked.near(
        "flows",
        format!("{hosts}; it does not tell what was sent again, and a flow is acknowledged when its receiver has ended the connection"),
    );
    checked.done("replicate.threshold", "longer flows have one connection");
    checked.done("replicate.copy_delay", "repnet waits as long before the second copy");
    checked.needs("repnet-bench", "replicate");
    checked.hosts.repnet = Some(Replication { mode, threshold, copy_delay_ns: delay.as_ns() });
}
