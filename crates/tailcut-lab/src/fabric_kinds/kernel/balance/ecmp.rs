//! ECMP: multipath routes and the kernel's hash.

use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::ecmp::{Spread, Weights};
use tailcut_net::balance::hash::Salting;

use super::{KernelBalancer, PathSelector};
use crate::answers::RunCheck;

pub(super) struct KernelEcmp;

impl KernelBalancer for KernelEcmp {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Ecmp(_))
    }
    fn check(&self, checked: &mut RunCheck, spec: &BalanceSpec) {
        let BalanceSpec::Ecmp(ecmp) = spec else { return };
        let other = [
            (
                "balance.salt",
                ecmp.salt == Salting::None,
                "each kernel switch has its own hash seed",
            ),
            (
                "balance.spread",
                ecmp.spread != Spread::Threshold,
                "kernels select the port by the range of a hash",
            ),
            (
                "balance.weights",
                ecmp.weights != Weights::Equal,
                "routes of kernel switches have \
                                                                 equal weights",
            ),
        ];
        for (field, _, why) in other.into_iter().filter(|(_, differs, _)| *differs) {
            checked.fatal(field, format!("{why}: use --lab-fabric engine"));
        }
        checked.near(
            "balance",
            "multipath routes with the kernel's hash of the five-tuple, and a seed per switch: \
             paths have the simulator's distribution, but differ flow by flow",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Hash
    }
}
