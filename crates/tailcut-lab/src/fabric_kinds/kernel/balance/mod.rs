//! Load balancers of kernel switches. A new one is a file here and a line in [`BALANCERS`].

mod ecmp;
mod flowlet;
mod round_robin;
mod spray;
mod tinyflow;

use tailcut_net::balance::BalanceSpec;
#[cfg(target_os = "linux")]
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::SwitchId;

#[cfg(target_os = "linux")]
use super::switch_programs::ProgramSpec;
use crate::answers::RunCheck;

/// A load balancer of kernel switches.
pub(super) trait KernelBalancer: Sync {
    /// Whether this balancer implements the plan's.
    fn implements(&self, spec: &BalanceSpec) -> bool;

    /// Checks the plan's balancer, which this one implements.
    fn check(&self, checked: &mut RunCheck, spec: &BalanceSpec);

    /// The mechanism that selects a packet's egress port.
    fn selector(&self) -> PathSelector;

    /// Returns the BPF program of a switch, if the balancer needs one; none if the plan has another
    /// balancer.
    #[cfg(target_os = "linux")]
    fn program(&self, _scenario: &Scenario, _switch: SwitchId) -> Option<ProgramSpec> {
        None
    }

    /// Whether its program sees packets from hosts only.
    #[cfg(target_os = "linux")]
    fn is_at_edge_only(&self) -> bool {
        false
    }
}

/// A mechanism that selects a packet's egress port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSelector {
    /// The kernel's hash of the five-tuple.
    Hash,
    /// A random mark per packet.
    Draw,
    /// A mark that counts the packets to each host.
    Turn,
    /// A mark that a BPF program sets.
    Program,
}

/// All balancers of kernel switches.
pub(super) const BALANCERS: [&dyn KernelBalancer; 5] = [
    &ecmp::KernelEcmp,
    &spray::KernelSpray,
    &round_robin::KernelRoundRobin,
    &flowlet::KernelFlowlet,
    &tinyflow::KernelTinyFlow,
];

/// Checks the plan's balancer.
pub(super) fn check(checked: &mut RunCheck, spec: &BalanceSpec) {
    checked.needs("hash seeds", "balance");
    match find(spec) {
        Some(found) => {
            found.check(checked, spec);
            if matches!(found.selector(), PathSelector::Draw | PathSelector::Turn) {
                checked.needs("nft numgen", "balance");
            }
        }
        None => checked.fatal(
            "balance.kind",
            "kernel switches choose a path when a packet arrives, without its queues or link \
             rates, so this balancer is not available: use --lab-fabric engine",
        ),
    }
}

/// Returns the implementation of the plan's balancer, if kernel switches have it.
pub(super) fn find(spec: &BalanceSpec) -> Option<&'static dyn KernelBalancer> {
    BALANCERS.into_iter().find(|one| one.implements(spec))
}

/// Checks a balancer that needs a BPF program.
fn check_program(checked: &mut RunCheck, how: &str) {
    match checked.programs.clone() {
        Ok(()) => {
            checked.needs("BPF programs", "balance");
            checked.near("balance", how);
        }
        Err(why) => checked.fatal(
            "balance.kind",
            format!(
                "this balancer needs a BPF program on the switches, which cannot be loaded: \
                     {why}; or use --lab-fabric engine"
            ),
        ),
    }
}
