//! ECMP: multipath routes and the kernel's hash.

use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::ecmp::{Spread, Weights};
use tailcut_net::balance::hash::Salting;

use super::{KernelBalancer, PathSelector};
use crate::answers::RunCheck;

pub(super) struct Ecmp;

impl KernelBalancer for Ecmp {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Ecmp(_))
    }
    fn check(&self, checked: &mut RunCheck, spec: &BalanceSpec) {
        let BalanceSpec::Ecmp(ecmp) = spec else { return };
        let other = [
            (
                "balance.salt",
                ecmp.salt == Salting::None,
                "switches of kernels have a hash seed each",
            ),
            (
                "balance.spread",
                ecmp.spread != Spread::Threshold,
                "kernels choose by the region of a hash",
            ),
            ("balance.weights", ecmp.weights != Weights::Equal, "routes have equal shares here"),
        ];
        for (field, _, why) in other.into_iter().filter(|(_, differs, _)| *differs) {
            checked.fatal(field, format!("{why}: take the fabric engine"));
        }
        checked.near(
            "balance",
            "multipath routes by the kernel's own hash of the five-tuple, with a seed for each switch: only its distribution is the simulator's",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Hash
    }
}
