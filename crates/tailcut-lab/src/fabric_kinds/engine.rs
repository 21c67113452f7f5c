//! The simulator's own fabric in real time: every queue, balancer, topology and failure that the
//! simulator has.

#[cfg(target_os = "linux")]
use std::fmt::Write as _;
#[cfg(target_os = "linux")]
use std::io;

use tailcut_engine::Time;
use tailcut_net::queue::QueueSpec;
use tailcut_net::scenario::Scenario;

#[cfg(target_os = "linux")]
use crate::addressing::{INTERFACE, hardware_address};
use crate::answers::{FabricFacts, RunCheck};
#[cfg(target_os = "linux")]
use crate::fabric::process::run_fabric;
use crate::fabric_kinds::kind::FabricKind;
#[cfg(target_os = "linux")]
use crate::prepared::Prepared;
#[cfg(target_os = "linux")]
use crate::sys::process;
#[cfg(target_os = "linux")]
use crate::sys::sysctl::set_sysctls;
#[cfg(target_os = "linux")]
use crate::tools::Tool;
#[cfg(target_os = "linux")]
use crate::worker::{Worker, start};

/// The fabric engine.
pub struct EngineFabric;

impl FabricKind for EngineFabric {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn about(&self) -> &'static str {
        "the simulator's switches, queues, balancers and failures, in real time"
    }

    fn delays_when_idle(&self) -> bool {
        true
    }

    /// The next flows cross a new instance of the fabric.
    fn forwards_after_run(&self) -> bool {
        false
    }

    fn facts(&self) -> FabricFacts {
        FabricFacts { routes_extra_addresses: true, sample_interval: Time::ZERO }
    }

    fn check(&self, checked: &mut RunCheck, scenario: &Scenario) {
        let by_engine = "by the simulator's own code, in real time";
        match scenario.scheme.queue {
            QueueSpec::Pfabric(_) => {
                checked.fatal(
                    "queue.kind",
                    "kernels do not stamp priorities on packets: choose \
                                             another queue.kind",
                );
            }
            QueueSpec::Trimming(_) => checked.fatal(
                "queue.kind",
                "a kernel's TCP cannot use trimmed packets: choose another \
                                      queue.kind",
            ),
            _ => checked.done("queue", by_engine),
        }
        checked.done("balance", by_engine);
        match scenario.switch.pfc {
            None => checked.done("switch", by_engine),
            Some(_) => checked.fatal(
                "switch.pfc",
                "a veth interface ignores pause frames, so its host would keep sending: remove \
                 switch.pfc",
            ),
        }
        checked.done("faults", by_engine);
        checked.done(
            "host",
            "the fabric's first port, with its limit and framing, acts as the host's interface",
        );
    }

    #[cfg(target_os = "linux")]
    fn build(&self, prepared: &Prepared, hosts: &[Worker]) -> io::Result<Worker> {
        // The fabric's ends of the links would otherwise send IPv6 packets past the fabric's ports.
        set_sysctls(&[])?;
        Tool::Ip.run_batch(&links(hosts, prepared.hosts.mtu))?;
        let interfaces = (0..hosts.len())
            .map(|host| process::interface_index(&format!("e{host}")))
            .collect::<io::Result<Vec<u32>>>()?;
        start("the fabric", |channel| run_fabric(prepared, interfaces, &channel))
    }
}

/// Returns the links between hosts and fabric, as commands for `ip`.
#[cfg(target_os = "linux")]
fn links(hosts: &[Worker], mtu: u64) -> String {
    let hardware = hardware_address();
    let mut lines = String::new();
    for (number, host) in hosts.iter().enumerate() {
        let _ = write!(
            lines,
            "link add e{number} mtu {mtu} type veth \
             peer name {INTERFACE} mtu {mtu} address {hardware} netns {}\n\
             link set e{number} up\n",
            host.pid
        );
    }
    lines
}
