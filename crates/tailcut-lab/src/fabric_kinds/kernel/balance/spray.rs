//! Packet spraying: a random port per packet, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{KernelBalancer, PathSelector};
use crate::answers::RunCheck;

pub(super) struct KernelSpray;

impl KernelBalancer for KernelSpray {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Spray(_))
    }
    fn check(&self, checked: &mut RunCheck, _spec: &BalanceSpec) {
        checked.done(
            "balance",
            "nft draws a random number per packet, and a rule selects the route of that number",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Draw
    }
}
