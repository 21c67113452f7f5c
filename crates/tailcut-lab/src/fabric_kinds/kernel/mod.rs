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
        "one network namespace per switch, with the kernel's own queues, routes and multipath"
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
            "one network namespace per switch, one veth pair per link",
            format!("{switches} switches: the lab carries at most {MAX_SWITCHES}"),
        );
        let ports = most_ports(&scenario.graph);
        if ports > MAX_PORTS {
            checked.fatal(
                "topology",
                format!(
                    "a switch with {ports} equal-cost ports: a kernel route takes at most \
                         {MAX_PORTS}"
                ),
            );
        }
        checked.needs("tbf", "topology.rate");
        checked.near(
            "topology.rate",
            "tbf: an idle port forwards a packet without transmission time, and a busy one may \
             burst 300 us worth after a late timer. Short flows and handshakes are too fast by one \
             packet time per idle hop; busy ports keep their rate, which the verdict checks",
        );
        let longest = scenario.graph.links.iter().map(|link| link.propagation).max();
        let longest = longest.unwrap_or(Time::ZERO);
        checked.done_or_near(
            longest == Time::ZERO,
            "topology.propagation",
            "none",
            format!(
                "none instead of up to {longest} per link: kernel switches do not delay \
                     packets (the lab does not use netem)"
            ),
        );
        queue(checked, scenario);
        limits(checked, scenario);
        balance::check(checked, &scenario.scheme.balance);
        let spec = &scenario.switch;
        checked.done_or_fatal(
            spec.shared_buffer == Limit::Unlimited,
            "switch.shared_buffer",
            "each port has its own buffer",
            "the kernel's queues share no buffer: write shared_buffer = \"unlimited\"",
        );
        checked.done_or_fatal(
            spec.pfc.is_none(),
            "switch.pfc",
            "no port pauses another",
            "veth interfaces ignore pause frames: remove switch.pfc",
        );
        checked.done("switch.alpha", "applies to a shared buffer only");
        faults(checked, scenario);
        let framing = scenario.host.framing_overhead.0;
        checked.done_or_fatal(
            framing >= ETHERNET,
            "host.framing_overhead",
            "tbf adds it to every packet",
            format!(
                "{framing} bytes: the kernel counts at least the Ethernet header of {ETHERNET} \
                     bytes"
            ),
        );
        checked.near(
            "host.nic_queue",
            "tbf with this limit at the host's interface; a single flow does not fill it, since \
             TCP keeps little in it (TCP small queues)",
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
            "kernel switches cannot lose packets on a link that is up: use --lab-fabric engine",
        );
    }
    let delays = |one: &Incident| matches!(one, Incident::Loss { .. } | Incident::Delay { .. });
    match all {
        [] => checked.done("faults", "nothing fails"),
        all if all.iter().any(delays) => checked.fatal(
            "faults.incidents",
            "kernel switches cannot delay or lose packets on a link that is up: use --lab-fabric \
             engine",
        ),
        _ => {
            checked.near(
                "faults.incidents",
                "links by ip link, other rates by tbf: the switches at the ends of a failed link \
                 avoid it at once, all others after reconvergence",
            );
            checked.done("faults.active", "faults are applied only if this is true");
            checked.done("faults.reconvergence", "switches then get the simulator's routes");
            checked.done("faults.known_at_start", "routes avoid these links from the start");
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
                format!(
                    "a queue of {limit}: tc accepts at most {most}; write a smaller limit, or \
                         \"unlimited\""
                ),
            );
        }
    }
}

fn queue(checked: &mut RunCheck, scenario: &Scenario) {
    match &scenario.scheme.queue {
        QueueSpec::DropTail(spec) => {
            checked.done("queue.kind", "the kernel's drop-tail queue");
            checked.done("queue.ties", "the kernel decides the order of simultaneous packets");
            match spec.limit {
                Limit::AtMost(Amount::Bytes(_)) => checked.near(
                    "queue.limit",
                    "bfifo, which counts the Ethernet header of 14 bytes with each packet, and no \
                     other framing",
                ),
                _ => checked.done("queue.limit", "pfifo within tbf, per port"),
            }
        }
        _ => checked.fatal(
            "queue.kind",
            "kernel switches support drop-tail queues only: write kind = \"drop-tail\", or use \
             --lab-fabric engine",
        ),
    }
}
