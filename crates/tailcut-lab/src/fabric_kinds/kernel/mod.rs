//! Switches as network namespaces: the kernel's own queues, routes and multipath.

mod balance;
#[cfg(target_os = "linux")]
mod busy_times;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod host_captures;
#[cfg(target_os = "linux")]
mod incidents;
#[cfg(target_os = "linux")]
mod port_rate_check;
#[cfg(target_os = "linux")]
mod queue_stats;
#[cfg(target_os = "linux")]
mod readback;
#[cfg(target_os = "linux")]
mod switch_process;
#[cfg(target_os = "linux")]
mod switch_programs;
#[cfg(target_os = "linux")]
mod switches;

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;

use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::faults::Incident;
use tailcut_net::queue::QueueSpec;
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::PortId;
use tailcut_net::topology::{Graph, HostId, Routes};

use crate::answers::{FabricFacts, RunCheck};
use crate::fabric_kinds::kind::FabricKind;
#[cfg(target_os = "linux")]
use crate::prepared::Prepared;
#[cfg(target_os = "linux")]
use crate::sys::bpf::BpfObject;
#[cfg(target_os = "linux")]
use crate::worker::{Worker, receive_result, start};

/// The kernel fabric.
pub struct KernelFabric;

/// The framing that the kernel counts: an Ethernet header.
const ETHERNET: u64 = 14;
/// The interval at which queues are read.
const POLL_INTERVAL: Time = Time::from_ms(5);
/// The largest limit of a queue in bytes that `tc` accepts.
const MAX_QUEUE_BYTES: u64 = u32::MAX as u64;
/// The most equal-cost ports of a switch: a line of `ip` has 512 words, and a route takes three per
/// port.
const MAX_PORTS: usize = 169;
/// The most switches of a run: more namespaces do not fit a machine.
const MAX_SWITCHES: u32 = 256;

impl FabricKind for KernelFabric {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn about(&self) -> &'static str {
        "a network namespace for each switch, with the kernel's own queues, routes and multipath"
    }

    fn delays_when_idle(&self) -> bool {
        false
    }

    fn forwards_after_run(&self) -> bool {
        true
    }

    fn facts(&self) -> FabricFacts {
        FabricFacts { routes_extra_addresses: false, sample_interval: POLL_INTERVAL }
    }

    fn check(&self, checked: &mut RunCheck, scenario: &Scenario) {
        let switches = scenario.graph.switches;
        checked.done_or_fatal(
            switches <= MAX_SWITCHES,
            "topology",
            "a network namespace for each switch, a veth pair for each link",
            format!("{switches} switches: the lab carries {MAX_SWITCHES} at most"),
        );
        let ports = most_ports(&scenario.graph);
        if ports > MAX_PORTS {
            checked.fatal(
                "topology",
                format!("a switch with {ports} equal-cost ports: a route of the kernel's takes {MAX_PORTS} at most"),
            );
        }
        checked.needs("tbf", "topology.rate");
        checked.near(
            "topology.rate",
            "tbf, which does not delay a packet at an idle port, and lets go at once what its timer may have been late for (300 us): short flows and \
             handshakes are too fast by a packet per idle hop; a busy port has its rate, which the verdict holds it to",
        );
        let longest = scenario.graph.links.iter().map(|link| link.propagation).max();
        let longest = longest.unwrap_or(Time::ZERO);
        checked.done_or_near(
            longest == Time::ZERO,
            "topology.propagation",
            "none",
            format!("none, in place of {longest} a link: only netem delays packets"),
        );
        queue(checked, scenario);
        limits(checked, scenario);
        balance::check(checked, &scenario.scheme.balance);
        let spec = &scenario.switch;
        checked.done_or_fatal(
            spec.shared_buffer == Limit::Unlimited,
            "switch.shared_buffer",
            "each port has a buffer of its own",
            "the kernel's queues share no memory: write shared_buffer = \"unlimited\"",
        );
        checked.done_or_fatal(
            spec.pfc.is_none(),
            "switch.pfc",
            "no port pauses another",
            "no interface of a namespace heeds pause frames",
        );
        checked.done("switch.alpha", "only a shared buffer has a share");
        faults(checked, scenario);
        let framing = scenario.host.framing_overhead.0;
        checked.done_or_fatal(
            framing >= ETHERNET,
            "host.framing_overhead",
            "tbf counts it with every packet",
            format!("{framing} bytes: the kernel counts an Ethernet header of {ETHERNET}"),
        );
        checked.near(
            "host.nic_queue",
            "tbf with its limit at the host's own interface, where a flow does not fill it: TCP keeps little in it (small queues)",
        );
    }

    #[cfg(target_os = "linux")]
    fn ports_taken_down(&self, scenario: &Scenario) -> io::Result<BTreeSet<PortId>> {
        incidents::ports_taken_down(&scenario.faults, &scenario.graph)
    }

    #[cfg(target_os = "linux")]
    fn load_programs(
        &self,
        scenario: &Scenario,
        directory: Option<&Path>,
    ) -> Result<Vec<BpfObject>, String> {
        switch_programs::load(scenario, directory)
    }

    #[cfg(target_os = "linux")]
    fn build(&self, prepared: &Prepared, hosts: &[Worker]) -> io::Result<Worker> {
        let pids: Vec<i32> = hosts.iter().map(|host| host.pid).collect();
        let work = |channel| switch_process::run_switches(prepared, &pids, &channel);
        let fabric = start("the fabric", work)?;
        receive_result::<()>(&fabric)?;
        Ok(fabric)
    }
}

fn faults(checked: &mut RunCheck, scenario: &Scenario) {
    let spec = &scenario.faults;
    let all = if spec.active { spec.incidents.as_slice() } else { &[] };
    if scenario.graph.is_lossy() {
        checked.fatal(
            "topology.file",
            "only netem loses packets of a link that is up: take the fabric engine",
        );
    }
    let delays = |one: &Incident| matches!(one, Incident::Loss { .. } | Incident::Delay { .. });
    match all {
        [] => checked.done("faults", "nothing fails"),
        all if all.iter().any(delays) => checked.fatal(
            "faults.incidents",
            "only netem delays or loses packets of a link that is up: take the fabric engine",
        ),
        _ => {
            checked.near(
                "faults.incidents",
                "links by ip link, other rates by tbf: the switches at the ends of a link that fails leave it out at once, all others when routing learns of it",
            );
            checked.done("faults.active", "without it nothing fails");
            checked.done("faults.reconvergence", "after it switches have the simulator's routes");
            checked.done("faults.known_at_start", "what is down then is left out from the start");
        }
    }
}

/// Returns the largest number of equal-cost ports of a switch towards a host.
fn most_ports(graph: &Graph) -> usize {
    let Ok(routes) = Routes::new(graph) else { return 0 };
    let hosts = || (0..graph.hosts).map(HostId);
    let ports = graph.each_switch().flat_map(|switch| hosts().map(move |host| (switch, host)));
    ports.map(|(switch, host)| routes.candidates(switch, host).len()).max().unwrap_or(0)
}

/// Refuses limits in bytes that `tc` does not accept.
fn limits(checked: &mut RunCheck, scenario: &Scenario) {
    let of_links = scenario.graph.links.iter().filter_map(|link| link.queue_limit);
    let limits = [
        ("queue.limit", vec![scenario.scheme.queue.limit()]),
        ("host.nic_queue", vec![scenario.host.nic_queue]),
        ("topology", of_links.collect()),
    ];
    for (field, limits) in limits {
        let too_large = limits.into_iter().find(|limit| match limit {
            Limit::AtMost(Amount::Bytes(bytes)) => *bytes > MAX_QUEUE_BYTES,
            _ => false,
        });
        if let Some(limit) = too_large {
            let most = Bytes(MAX_QUEUE_BYTES);
            checked.fatal(
                field,
                format!("a queue of {limit}: tc counts to {most}; write a smaller limit, or \"unlimited\""),
            );
        }
    }
}

fn queue(checked: &mut RunCheck, scenario: &Scenario) {
    match &scenario.scheme.queue {
        QueueSpec::DropTail(spec) => {
            checked.done("queue.kind", "the kernel's, which drops what finds no room");
            checked.done("queue.ties", "packets of one instant come as the kernel has them");
            match spec.limit {
                Limit::AtMost(Amount::Bytes(_)) => checked.near(
                    "queue.limit",
                    "bfifo, which counts an Ethernet header of 14 bytes with each packet and no more",
                ),
                _ => checked.done("queue.limit", "pfifo within tbf, for each port"),
            }
        }
        _ => checked.fatal(
            "queue.kind",
            "of the simulator's queues kernels have drop-tail alone, in the same way: write kind = \"drop-tail\", or take the fabric engine",
        ),
    }
}
