//! What lies between the hosts: a new kind of fabric is a file here, and a line in [`KINDS`].

pub mod engine;
pub mod kernel;

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;

use tailcut_engine::Time;
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::PortId;

#[cfg(target_os = "linux")]
use crate::prepared::Prepared;
use crate::settings::Checked;
#[cfg(target_os = "linux")]
use crate::sys::bpf::Object;
#[cfg(target_os = "linux")]
use crate::workers::Worker;

/// A kind of fabric.
pub trait Kind: Sync {
    /// As in `--lab-fabric NAME`.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// What becomes of the fields of a plan that it realises: topology, queue, balance, switch, faults and host.
    fn check(&self, checked: &mut Checked, scenario: &Scenario);

    /// Whether a packet takes the time of its transmission at an idle port, too.
    fn delays_when_idle(&self) -> bool;

    /// Whether connections that a run leaves unfinished go on sending through it afterwards.
    fn goes_on(&self) -> bool;

    /// Whether it brings frames to the further addresses of hosts, which subflows have.
    fn knows_further_addresses(&self) -> bool;

    /// How often it can tell the queue of each link at the most; zero if at any time.
    fn between_samples(&self) -> Time;

    /// Directed links whose interfaces it takes down while a run lasts, as the plan says. What comes to these is lost, and none of it
    /// thrown away by a kernel.
    ///
    /// # Errors
    /// When its incidents do not suit the network.
    #[cfg(target_os = "linux")]
    fn taken_down(&self, _: &Scenario) -> io::Result<BTreeSet<PortId>> {
        Ok(BTreeSet::new())
    }

    /// BPF programs of its switches, if it has any, from the directory that they are in: asked for while this process may still load them.
    ///
    /// # Errors
    /// Why they cannot be had.
    #[cfg(target_os = "linux")]
    fn programs(&self, _: &Scenario, _: Option<&Path>) -> Result<Vec<Object>, String> {
        Ok(vec![])
    }

    /// A process that joins the hosts, whose network namespaces are there with nothing in them. It does what
    /// [`Crossing`](crate::workers::Crossing) says, and reports what the fabric has to tell.
    ///
    /// # Errors
    /// The kernel's.
    #[cfg(target_os = "linux")]
    fn build(&self, prepared: &Prepared, hosts: &[Worker]) -> io::Result<Worker>;
}

/// All kinds; the first is what a run has that says nothing of it.
pub const KINDS: [&dyn Kind; 2] = [&engine::Engine, &kernel::Kernel];

/// The kind of this name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static dyn Kind, String> {
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
        format!("the lab has no fabric {name:?}; there are: {}", names.join(", "))
    })
}
