//! Kinds of fabric: what lies between the hosts.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;

use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::PortId;

use crate::answers::{FabricFacts, RunCheck};
#[cfg(target_os = "linux")]
use crate::prepared::Prepared;
#[cfg(target_os = "linux")]
use crate::sys::bpf::BpfObject;
#[cfg(target_os = "linux")]
use crate::worker::Worker;

/// A kind of fabric.
pub trait FabricKind: Sync {
    /// Its name, as in `--lab-fabric NAME`.
    fn name(&self) -> &'static str;

    /// Its description in one line.
    fn about(&self) -> &'static str;

    /// Checks the fields of a plan that the fabric realises: topology, queue, balance, switch,
    /// faults and host.
    fn check(&self, checked: &mut RunCheck, scenario: &Scenario);

    /// Whether a packet takes its transmission time at an idle port, too.
    fn delays_when_idle(&self) -> bool;

    /// Whether unfinished connections of a run may still send through it afterwards.
    fn forwards_after_run(&self) -> bool;

    /// Facts on which the checks of hosts and traffic depend.
    fn facts(&self) -> FabricFacts;

    /// Returns the directed links whose interfaces are taken down during a run, as planned. Packets
    /// to these are lost, and not dropped by a kernel's mistake.
    ///
    /// # Errors
    /// The incidents do not fit the network.
    #[cfg(target_os = "linux")]
    fn ports_taken_down(&self, _: &Scenario) -> io::Result<BTreeSet<PortId>> {
        Ok(BTreeSet::new())
    }

    /// Loads the BPF programs of its switches, if they need any, from `directory`; called while
    /// this process still has the privilege.
    ///
    /// # Errors
    /// The reason why they cannot be loaded.
    #[cfg(target_os = "linux")]
    fn load_programs(&self, _: &Scenario, _: Option<&Path>) -> Result<Vec<BpfObject>, String> {
        Ok(vec![])
    }

    /// Starts the process of the fabric, and joins the hosts' network namespaces, which are empty
    /// so far. The process obeys [`FabricCommand`](crate::messages::FabricCommand)s and sends
    /// reports.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(target_os = "linux")]
    fn build(&self, prepared: &Prepared, hosts: &[Worker]) -> io::Result<Worker>;
}
