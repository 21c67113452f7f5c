//! Round robin over ports, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{KernelBalancer, PathSelector};
use crate::answers::RunCheck;

pub(super) struct KernelRoundRobin;

impl KernelBalancer for KernelRoundRobin {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::RoundRobin(_))
    }
    fn check(&self, checked: &mut RunCheck, _spec: &BalanceSpec) {
        checked.done(
            "balance",
            "nft counts the packets to each host, and a rule per count selects the next route",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Turn
    }
}
