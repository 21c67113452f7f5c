//! A kind of fabric: what lies between the hosts.

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
    /// As in `--lab-fabric NAME`.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// What becomes of the fields of a plan that it realises: topology, queue, balance, switch, faults and host.
    fn check(&self, checked: &mut RunCheck, scenario: &Scenario);

    /// Whether a packet takes the time of its transmission at an idle port, too.
    fn delays_when_idle(&self) -> bool;

    /// Whether connections that a run leaves unfinished go on sending through it afterwards.
    fn forwards_after_run(&self) -> bool;

    /// Facts on which the checks of hosts and traffic depend.
    fn facts(&self) -> FabricFacts;

    /// Directed links whose interfaces it takes down while a run lasts, as the plan says. What comes to these is lost, and none of it
    /// thrown away by a kernel.
    ///
    /// # Errors
    /// When its incidents do not suit the network.
    #[cfg(target_os = "linux")]
    fn ports_taken_down(&self, _: &Scenario) -> io::Result<BTreeSet<PortId>> {
        Ok(BTreeSet::new())
    }

    /// BPF programs of its switches, if it has any, from the directory that they are in: asked for while this process may still load them.
    ///
    /// # Errors
    /// Why they cannot be had.
    #[cfg(target_os = "linux")]
    fn load_programs(&self, _: &Scenario, _: Option<&Path>) -> Result<Vec<BpfObject>, String> {
        Ok(vec![])
    }

    /// A process that joins the hosts, whose network namespaces are there with nothing in them. It does what
    /// [`Crossing`](crate::worker::Crossing) says, and reports what the fabric has to tell.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(target_os = "linux")]
    fn build(&self, prepared: &Prepared, hosts: &[Worker]) -> io::Result<Worker>;
}
