//! How switches of kernels choose among ports that are as short: a file for each way, and a line in [`CHOICES`].

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

/// A balancer that switches of kernels have.
pub(super) trait KernelBalancer: Sync {
    /// Whether a plan's is this one.
    fn implements(&self, spec: &BalanceSpec) -> bool;

    /// What becomes of a plan's that is this one.
    fn check(&self, checked: &mut RunCheck, spec: &BalanceSpec);

    /// What says by which port a packet leaves.
    fn selector(&self) -> PathSelector;

    /// The program of a switch, where it takes one; none if the plan's is another.
    #[cfg(target_os = "linux")]
    fn program(&self, _scenario: &Scenario, _switch: SwitchId) -> Option<ProgramSpec> {
        None
    }

    /// Whether only what comes in from hosts is seen by the program.
    #[cfg(target_os = "linux")]
    fn is_at_edge_only(&self) -> bool {
        false
    }
}

/// What says by which port a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSelector {
    /// The kernel's hash of its five-tuple.
    Hash,
    /// A mark that is drawn for each packet.
    Draw,
    /// A mark that counts the packets to each host.
    Turn,
    /// A mark of a program's.
    Program,
}

/// All of them.
pub(super) const BALANCERS: [&dyn KernelBalancer; 5] =
    [&ecmp::Ecmp, &spray::Spray, &round_robin::RoundRobin, &flowlet::Flowlet, &tinyflow::TinyFlow];

/// What becomes of a plan's.
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
            "switches of kernels all choose in one way, by what they know of a packet on its way in, and not by queues or by the rates of links: \
             take the fabric engine",
        ),
    }
}

/// The one that is a plan's, if switches of kernels have it.
pub(super) fn find(spec: &BalanceSpec) -> Option<&'static dyn KernelBalancer> {
    BALANCERS.into_iter().find(|one| one.implements(spec))
}

/// What becomes of one that takes a BPF program.
fn check_program(checked: &mut RunCheck, how: &str) {
    match checked.programs.clone() {
        Ok(()) => {
            checked.needs("BPF programs", "balance");
            checked.near("balance", how);
        }
        Err(why) => checked.fatal(
            "balance.kind",
            format!("switches remember flows by a BPF program: {why}; or take the fabric engine"),
        ),
    }
}
